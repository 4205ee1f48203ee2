#include "model/tensors.h"

#include <string.h>
#include <xxhash.h>

#include "base/error.h"

void prg_tensors_init(prg_tensors *tensors, prg_allocator *allocator) {
    *tensors = (prg_tensors){.allocator = allocator};
}

void prg_tensors_free(prg_tensors *tensors) {
    prg_free(tensors->allocator, tensors->items);
    prg_free(tensors->allocator, tensors->table);
    prg_tensors_init(tensors, tensors->allocator);
}

static bool starts_with(const char *name, size_t length, const char *prefix) {
    size_t n = strlen(prefix);
    return length >= n && memcmp(name, prefix, n) == 0;
}

uint64_t prg_tensor_hash(const char *name, size_t length) {
    static const char prefix[] = "language_model.";
    size_t skip = starts_with(name, length, prefix) ? sizeof prefix - 1 : 0;
    return XXH3_64bits(name + skip, length - skip);
}

bool prg_tensor_is_text(const char *name, size_t length) {
    static const char *const others[] = {"vision_tower.", "mm_projector.", "multi_modal_projector.", "vision_model.",
                                         "visual."};
    static const char stray[] = "rotary_emb.inv_freq";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (starts_with(name, length, others[i])) {
            return false;
        }
    }
    return length < sizeof stray - 1 || memcmp(name + length - (sizeof stray - 1), stray, sizeof stray - 1) != 0;
}

static uint64_t entry_of(uint64_t name, size_t index) {
    return (name >> 32 << 32) | (index + 1);
}

static size_t index_of(uint64_t entry) {
    return (size_t)(entry & UINT32_MAX) - 1;
}

/* The slot of a name, or the empty one where it would be. Half of the hash stands in the table, so that a tensor is
 * looked at when it is the right one only. */
static size_t slot_of(const prg_tensors *t, uint64_t name) {
    size_t slot = (size_t)name & (t->slots - 1);
    for (uint64_t entry; (entry = t->table[slot]) != 0; slot = (slot + 1) & (t->slots - 1)) {
        if (entry >> 32 == name >> 32 && t->items[index_of(entry)].name == name) {
            break;
        }
    }
    return slot;
}

prg_tensor *prg_tensors_find(const prg_tensors *tensors, uint64_t name) {
    if (tensors->count == 0) {
        return NULL;
    }
    uint64_t entry = tensors->table[slot_of(tensors, name)];
    return entry ? &tensors->items[index_of(entry)] : NULL;
}

/* Twice as much room; the table stays at most half full. */
static perigee_status grow(prg_tensors *t, perigee_error **err) {
    size_t capacity = t->capacity ? t->capacity * 2 : 512;
    if (capacity > UINT32_MAX / 4) {
        return prg_fail(err, PERIGEE_E_FORMAT, "more than %zu tensors", t->capacity);
    }
    prg_tensor *items = prg_realloc(t->allocator, t->items, capacity * sizeof *items);
    if (!items) {
        return prg_fail_memory(err);
    }
    t->items = items;
    uint64_t *table = prg_calloc(t->allocator, capacity * 2, sizeof *table);
    if (!table) {
        return prg_fail_memory(err);
    }
    prg_free(t->allocator, t->table);
    t->table = table;
    t->slots = capacity * 2;
    t->capacity = capacity;
    for (size_t i = 0; i < t->count; i++) {
        t->table[slot_of(t, t->items[i].name)] = entry_of(t->items[i].name, i);
    }
    return PERIGEE_OK;
}

perigee_status prg_tensors_add(prg_tensors *tensors, const prg_tensor_entry *entry, uint32_t file,
                               perigee_error **err) {
    if (tensors->count == tensors->capacity) {
        perigee_status st = grow(tensors, err);
        if (st != PERIGEE_OK) {
            return st;
        }
    }
    prg_tensor *t = &tensors->items[tensors->count];
    *t = (prg_tensor){.name = prg_tensor_hash(entry->name, entry->name_length),
                      .offset = entry->offset,
                      .size = entry->size,
                      .file = file,
                      .type = (uint8_t)entry->type,
                      .rank = (uint8_t)entry->rank,
                      .text = prg_tensor_is_text(entry->name, entry->name_length)};
    for (uint32_t i = 0; i < PRG_TENSOR_KEPT_RANK; i++) {
        t->shape[i] = i < entry->rank ? entry->shape[i] : 1;
    }
    tensors->table[slot_of(tensors, t->name)] = entry_of(t->name, tensors->count);
    tensors->count++;
    return PERIGEE_OK;
}

uint64_t prg_tensor_elements(const prg_tensor *tensor) {
    size_t bytes = prg_tensor_type_bytes((prg_tensor_type)tensor->type);
    return bytes ? tensor->size / bytes : 0;
}
