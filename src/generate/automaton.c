#include "generate/automaton.h"

#include <string.h>

#include "base/checked_math.h"
#include "base/error.h"
#include "generate/select.h"

/* Bounds on one step and on all of them: a pattern may ask for exponentially many states. */
enum { WORK_LIMIT = 1 << 16, CALL_LIMIT = 200, BYTE_LIMIT = 192 << 20 };

static bool reserve(prg_automaton *a, void **items, size_t wanted, size_t *capacity, size_t size) {
    if (a->no_memory || a->too_large) {
        return false;
    }
    if (wanted > *capacity) {
        size_t more = prg_max(wanted, *capacity + *capacity / 2 + 64);
        void *wider = prg_realloc(a->allocator, *items, more * size);
        if (!wider) {
            a->no_memory = true;
            return false;
        }
        *items = wider;
        *capacity = more;
    }
    return true;
}

static uint64_t mix(uint64_t x) {
    x ^= x >> 32;
    x *= UINT64_C(0xD6E8FEB86659FD93);
    x ^= x >> 32;
    return x;
}

/* ---- tables ---- */

static bool table_grow(prg_automaton *a, prg_table *t, size_t wanted) {
    if (wanted * 2 <= t->capacity) {
        return true;
    }
    size_t more = t->capacity ? t->capacity * 2 : 256;
    while (wanted * 2 > more) {
        more *= 2;
    }
    uint32_t *slots = prg_calloc(a->allocator, more, sizeof *slots);
    if (!slots) {
        a->no_memory = true;
        return false;
    }
    prg_free(a->allocator, t->slots);
    t->slots = slots;
    t->capacity = more;
    return true;
}

static uint64_t hash_cell(uint32_t above, uint32_t parent) {
    return mix((uint64_t)above << 32 | parent);
}

static void put_slot(prg_table *t, uint64_t hash, uint32_t value) {
    size_t at = hash & (t->capacity - 1);
    while (t->slots[at] != 0) {
        at = (at + 1) & (t->capacity - 1);
    }
    t->slots[at] = value;
}

uint32_t prg_automaton_cell(prg_automaton *automaton, uint32_t above, uint32_t parent) {
    prg_automaton *a = automaton;
    prg_table *t = &a->cell_table;
    uint64_t hash = hash_cell(above, parent);
    for (size_t at = hash & (t->capacity - 1); t->capacity && t->slots[at] != 0; at = (at + 1) & (t->capacity - 1)) {
        const prg_cell *c = &a->cells[t->slots[at]];
        if (c->above == above && c->parent == parent) {
            return t->slots[at];
        }
    }
    void *items = a->cells;
    bool room = reserve(a, &items, a->cell_count + 1, &a->cell_capacity, sizeof *a->cells);
    a->cells = items;
    size_t before = t->capacity;
    if (!room || !table_grow(a, t, a->cell_count + 1)) {
        return 0;
    }
    for (size_t i = 1; t->capacity != before && i < a->cell_count; i++) {
        put_slot(t, hash_cell(a->cells[i].above, a->cells[i].parent), (uint32_t)i);
    }
    a->cells[a->cell_count] = (prg_cell){above, parent, a->cells[parent].depth + 1};
    put_slot(t, hash, (uint32_t)a->cell_count);
    return (uint32_t)a->cell_count++;
}

uint32_t prg_automaton_stack(prg_automaton *automaton, uint32_t floor, uint32_t cells) {
    if (cells == 0) {
        return floor;
    }
    uint32_t above = automaton->cells[cells].above;
    uint32_t below = prg_automaton_stack(automaton, floor, automaton->cells[cells].parent);
    return prg_automaton_cell(automaton, above, below);
}

static uint64_t hash_configurations(const uint64_t *c, size_t n) {
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) {
        h = mix(h ^ c[i]) + UINT64_C(0x9E3779B97F4A7C15);
    }
    return mix(h);
}

uint32_t prg_automaton_intern(prg_automaton *automaton, const uint64_t *configurations, size_t count) {
    prg_automaton *a = automaton;
    prg_table *t = &a->state_table;
    uint64_t hash = hash_configurations(configurations, count);
    for (size_t at = hash & (t->capacity - 1); t->capacity && t->slots[at] != 0; at = (at + 1) & (t->capacity - 1)) {
        const prg_automaton_state *s = &a->states[t->slots[at] - 1];
        if (s->count == count &&
            memcmp(a->configurations + s->first, configurations, count * sizeof *configurations) == 0) {
            return t->slots[at] - 1;
        }
    }
    size_t classes = a->nfa->class_count, before = t->capacity;
    void *states = a->states, *rows = a->rows, *held = a->configurations;
    bool room = reserve(a, &states, a->state_count + 1, &a->state_capacity, sizeof *a->states);
    a->states = states;
    room = room && reserve(a, &rows, (a->state_count + 1) * classes, &a->row_capacity, sizeof *a->rows);
    a->rows = rows;
    room = room &&
           reserve(a, &held, a->configuration_count + count, &a->configuration_capacity, sizeof *a->configurations);
    a->configurations = held;
    if (!room || !table_grow(a, t, a->state_count + 1)) {
        return PRG_AUTOMATON_NONE;
    }
    for (size_t i = 0; t->capacity != before && i < a->state_count; i++) {
        const prg_automaton_state *s = &a->states[i];
        put_slot(t, hash_configurations(a->configurations + s->first, s->count), (uint32_t)i + 1);
    }
    a->states[a->state_count] =
        (prg_automaton_state){(uint32_t)a->configuration_count, (uint32_t)count, PRG_AUTOMATON_NONE};
    memcpy(a->configurations + a->configuration_count, configurations, count * sizeof *configurations);
    a->configuration_count += count;
    memset(a->rows + a->state_count * classes, 0, classes * sizeof *a->rows);
    put_slot(t, hash, (uint32_t)a->state_count + 1);
    if (prg_automaton_bytes(a) > BYTE_LIMIT) {
        a->too_large = true;
    }
    return (uint32_t)a->state_count++;
}

/* ---- steps ---- */

/* The configurations being collected are a set: `seen` holds their numbers in `work`. */
static void add_work(prg_automaton *a, uint32_t state, uint32_t cell) {
    if (a->nfa->states[state].height == PRG_NFA_NONE) {
        return; /* no way to an end */
    }
    uint64_t c = (uint64_t)state << 32 | cell;
    prg_table *t = &a->seen;
    size_t before = t->capacity;
    void *items = a->work;
    bool room = reserve(a, &items, a->work_count + 1, &a->work_capacity, sizeof *a->work);
    a->work = items;
    if (!room || !table_grow(a, t, a->work_count + 1)) {
        return;
    }
    for (size_t i = 0; t->capacity != before && i < a->work_count; i++) {
        put_slot(t, mix(a->work[i]), (uint32_t)i + 1);
    }
    size_t at = mix(c) & (t->capacity - 1);
    for (; t->slots[at] != 0; at = (at + 1) & (t->capacity - 1)) {
        if (a->work[t->slots[at] - 1] == c) {
            return;
        }
    }
    if (a->work_count == WORK_LIMIT) {
        a->too_large = true;
        return;
    }
    t->slots[at] = (uint32_t)a->work_count + 1;
    a->work[a->work_count++] = c;
}

/* Runs of the table end at a free slot, and what is cleared is always the rest of a run. */
static void forget_seen(prg_automaton *a) {
    for (size_t i = 0; i < a->work_count; i++) {
        size_t at = mix(a->work[i]) & (a->seen.capacity - 1);
        for (; a->seen.slots[at] != 0; at = (at + 1) & (a->seen.capacity - 1)) {
            a->seen.slots[at] = 0;
        }
    }
}

/* Follow what takes no byte. True if some configuration returns to below the floor. */
static bool close_work(prg_automaton *a) {
    bool exits = false;
    for (size_t i = 0; i < a->work_count && !a->no_memory && !a->too_large; i++) {
        uint32_t state = (uint32_t)(a->work[i] >> 32), cell = (uint32_t)a->work[i];
        const prg_nfa_state *s = &a->nfa->states[state];
        if (s->accepts && cell == 0) {
            exits = true;
        } else if (s->accepts) {
            add_work(a, a->cells[cell].above, a->cells[cell].parent);
        }
        for (uint32_t k = s->first; k != PRG_NFA_NONE; k = a->nfa->edges[k].next) {
            const prg_nfa_edge *e = &a->nfa->edges[k];
            if (e->kind == PRG_NFA_EPSILON) {
                add_work(a, e->target, cell);
            } else if (e->kind == PRG_NFA_CALL && a->nfa->states[e->target].height != PRG_NFA_NONE &&
                       a->nfa->states[e->rule].height != PRG_NFA_NONE) {
                if (a->cells[cell].depth >= CALL_LIMIT) {
                    a->too_large = true;
                    break;
                }
                add_work(a, e->rule, prg_automaton_cell(a, e->target, cell));
            }
        }
    }
    return exits;
}

/* Only configurations with an edge that takes a byte matter from here on. */
static bool takes_byte(const prg_nfa *nfa, uint32_t state) {
    for (uint32_t k = nfa->states[state].first; k != PRG_NFA_NONE; k = nfa->edges[k].next) {
        if (nfa->edges[k].kind == PRG_NFA_BYTES) {
            return true;
        }
    }
    return false;
}

static uint32_t need_of(const prg_automaton *a, uint64_t configuration) {
    uint32_t cell = (uint32_t)configuration;
    uint32_t need = a->cells[cell].depth + a->nfa->states[configuration >> 32].height;
    for (; cell != 0; cell = a->cells[cell].parent) {
        uint32_t below = a->cells[cell].depth - 1 + a->nfa->states[a->cells[cell].above].height;
        need = below > need ? below : need;
    }
    return need;
}

static uint32_t bottom_of(const prg_automaton *a, uint32_t cell) {
    while (cell != 0 && a->cells[cell].parent != 0) {
        cell = a->cells[cell].parent;
    }
    return cell;
}

static uint32_t without_bottom(prg_automaton *a, uint32_t cell) {
    uint32_t parent = a->cells[cell].parent;
    if (parent == 0) {
        return 0;
    }
    uint32_t above = a->cells[cell].above;
    return prg_automaton_cell(a, above, without_bottom(a, parent));
}

/* Lower part of all stacks that is the same, onto the floor. */
static uint32_t push_common(prg_automaton *a) {
    uint32_t pushed = 0;
    while (a->work_count > 0 && !a->no_memory && !a->too_large) {
        uint32_t bottom = bottom_of(a, (uint32_t)a->work[0]);
        for (size_t i = 0; i < a->work_count && bottom != 0; i++) {
            bottom = bottom_of(a, (uint32_t)a->work[i]) == bottom ? bottom : 0;
        }
        if (bottom == 0) {
            break;
        }
        for (size_t i = 0; i < a->work_count; i++) {
            a->work[i] = (a->work[i] >> 32 << 32) | without_bottom(a, (uint32_t)a->work[i]);
        }
        pushed = prg_automaton_cell(a, a->cells[bottom].above, pushed);
    }
    return pushed;
}

/* The step that the collected configurations make. */
static uint32_t finish_work(prg_automaton *a) {
    prg_step step = {PRG_AUTOMATON_NONE, 0, PRG_NFA_NONE, close_work(a)};
    size_t n = 0;
    size_t collected = a->work_count;
    forget_seen(a);
    for (size_t i = 0; i < collected; i++) {
        if (takes_byte(a->nfa, (uint32_t)(a->work[i] >> 32))) {
            uint32_t need = need_of(a, a->work[i]);
            step.need = need < step.need ? need : step.need;
            a->work[n++] = a->work[i];
        }
    }
    a->work_count = n;
    step.pushed = push_common(a);
    if (n > 0) {
        prg_select_sort(a->work, n);
        step.state = prg_automaton_intern(a, a->work, n);
    }
    a->work_count = 0;
    void *items = a->steps;
    bool room = reserve(a, &items, a->step_count + 1, &a->step_capacity, sizeof *a->steps);
    a->steps = items;
    if (!room || (step.state == PRG_AUTOMATON_NONE && !step.exits)) {
        return 1;
    }
    a->steps[a->step_count] = step;
    return (uint32_t)a->step_count++;
}

static uint8_t byte_in_class(const prg_nfa *nfa, uint8_t byte_class) {
    unsigned b = 0;
    while (nfa->classes[b] != byte_class) {
        b++;
    }
    return (uint8_t)b;
}

uint32_t prg_automaton_next(prg_automaton *automaton, uint32_t state, uint8_t byte_class) {
    prg_automaton *a = automaton;
    size_t at = (size_t)state * a->nfa->class_count + byte_class;
    if (a->rows[at] != 0) {
        return a->rows[at];
    }
    uint8_t byte = byte_in_class(a->nfa, byte_class);
    const prg_automaton_state s = a->states[state];
    for (size_t i = 0; i < s.count; i++) {
        uint64_t c = a->configurations[s.first + i];
        for (uint32_t k = a->nfa->states[c >> 32].first; k != PRG_NFA_NONE; k = a->nfa->edges[k].next) {
            const prg_nfa_edge *e = &a->nfa->edges[k];
            if (e->kind == PRG_NFA_BYTES && byte >= e->low && byte <= e->high) {
                add_work(a, e->target, (uint32_t)c);
            }
        }
    }
    uint32_t step = a->work_count > 0 ? finish_work(a) : 1;
    if (!a->no_memory && !a->too_large) {
        a->rows[at] = step;
    }
    return step;
}

uint32_t prg_automaton_enter(prg_automaton *automaton, uint32_t state) {
    prg_automaton *a = automaton;
    if (a->entries[state] == 0) {
        add_work(a, state, 0);
        uint32_t step = finish_work(a);
        if (a->no_memory || a->too_large) {
            return 1;
        }
        a->entries[state] = step;
    }
    return a->entries[state];
}

/* ---- life ---- */

perigee_status prg_automaton_init(prg_automaton *automaton, prg_allocator *allocator, const prg_nfa *nfa,
                                  perigee_error **err) {
    memset(automaton, 0, sizeof *automaton);
    automaton->allocator = allocator;
    automaton->nfa = nfa;
    automaton->entries = prg_calloc(allocator, nfa->state_count, sizeof *automaton->entries);
    automaton->cells = prg_calloc(allocator, 64, sizeof *automaton->cells);
    if (!automaton->entries || !automaton->cells) {
        prg_automaton_free(automaton);
        return prg_fail_memory(err);
    }
    automaton->cell_capacity = 64;
    prg_automaton_clear(automaton);
    return PERIGEE_OK;
}

static void table_free(prg_automaton *a, prg_table *t) {
    prg_free(a->allocator, t->slots);
    *t = (prg_table){NULL, 0, 0};
}

static void drop_states(prg_automaton *a) {
    table_free(a, &a->state_table);
    table_free(a, &a->cell_table);
    table_free(a, &a->seen);
    prg_free(a->allocator, a->states);
    prg_free(a->allocator, a->rows);
    prg_free(a->allocator, a->configurations);
}

void prg_automaton_clear(prg_automaton *automaton) {
    prg_automaton *a = automaton;
    drop_states(a);
    a->states = NULL;
    a->rows = NULL;
    a->configurations = NULL;
    a->state_capacity = a->row_capacity = a->configuration_capacity = 0;
    a->state_count = a->configuration_count = a->work_count = 0;
    a->step_count = 2;
    a->cell_count = 1;
    a->no_memory = a->too_large = false;
    memset(a->entries, 0, a->nfa->state_count * sizeof *a->entries);
}

void prg_automaton_free(prg_automaton *automaton) {
    prg_automaton *a = automaton;
    drop_states(a);
    prg_free(a->allocator, a->steps);
    prg_free(a->allocator, a->cells);
    prg_free(a->allocator, a->entries);
    prg_free(a->allocator, a->work);
    memset(a, 0, sizeof *a);
}

size_t prg_automaton_bytes(const prg_automaton *automaton) {
    const prg_automaton *a = automaton;
    return a->state_capacity * sizeof *a->states + a->row_capacity * sizeof *a->rows +
           a->configuration_capacity * sizeof *a->configurations + a->step_capacity * sizeof *a->steps +
           a->cell_capacity * sizeof *a->cells + (a->state_table.capacity + a->cell_table.capacity) * sizeof(uint32_t);
}
