#include "kernels/kernel_set.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

struct perigee_kernel_set {
    prg_allocator *allocator;
    prg_arena strings;
    prg_kernel_set_row *first, **last;
    atomic_size_t references;
    atomic_bool closed;
};

perigee_status perigee_kernel_set_new(perigee_kernel_set **out, perigee_error **err) {
    prg_clear(err);
    if (!out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "out is NULL");
    }
    prg_allocator *allocator = NULL;
    perigee_status status = prg_allocator_new(NULL, &allocator, err);
    if (status != PERIGEE_OK) {
        return status;
    }
    perigee_kernel_set *set = prg_calloc(allocator, 1, sizeof *set);
    if (!set) {
        prg_allocator_drop(allocator);
        return prg_fail_memory(err);
    }
    set->allocator = allocator;
    prg_arena_init(&set->strings, allocator);
    set->last = &set->first;
    atomic_init(&set->references, 1);
    atomic_init(&set->closed, false);
    *out = set;
    return PERIGEE_OK;
}

static bool copy_string(perigee_kernel_set *set, const char **string) {
    if (*string) {
        *string = prg_arena_strndup(&set->strings, *string, strlen(*string));
        return *string != NULL;
    }
    return true;
}

static perigee_status add(perigee_kernel_set *set, const perigee_kernel_row *row, perigee_release_fn release,
                          perigee_error **err) {
    if (!set || !row) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "set or row is NULL");
    }
    if (atomic_load(&set->closed)) {
        return prg_fail(err, PERIGEE_E_STATE, "a context was made with this set: it grows no more");
    }
    prg_kernel_set_row *added = prg_arena_alloc(&set->strings, 1, sizeof *added);
    if (!added) {
        return prg_fail_memory(err);
    }
    char reason[PRG_REASON_SIZE];
    if (!prg_kernel_row_take(row, &added->row, reason)) {
        return prg_fail(err, PERIGEE_E_KERNEL, "kernel row refused: %s", reason);
    }
    if (!copy_string(set, &added->row.name) || !copy_string(set, &added->row.isa) ||
        !copy_string(set, &added->row.numerics) || !copy_string(set, &added->row.signature)) {
        return prg_fail_memory(err);
    }
    added->release = release;
    *set->last = added;
    set->last = &added->next;
    return PERIGEE_OK;
}

perigee_status perigee_kernel_set_add(perigee_kernel_set *set, const perigee_kernel_row *row,
                                      perigee_release_fn release, perigee_error **err) {
    prg_clear(err);
    perigee_status status = add(set, row, release, err);
    if (status != PERIGEE_OK && release && row) {
        release(row->user);
    }
    return status;
}

void perigee_kernel_set_free(perigee_kernel_set *set) {
    if (!set || atomic_fetch_sub(&set->references, 1) != 1) {
        return;
    }
    for (prg_kernel_set_row *row = set->first; row; row = row->next) {
        if (row->release) {
            row->release(row->row.user);
        }
    }
    prg_allocator *allocator = set->allocator;
    prg_arena_free(&set->strings);
    prg_free(allocator, set);
    prg_allocator_drop(allocator);
}

const perigee_kernel_set *prg_kernel_set_hold(const perigee_kernel_set *set) {
    if (set) {
        perigee_kernel_set *mine = (perigee_kernel_set *)(uintptr_t)set; /* counting is no change that a host sees */
        atomic_store(&mine->closed, true);
        atomic_fetch_add(&mine->references, 1);
    }
    return set;
}

const prg_kernel_set_row *prg_kernel_set_rows(const perigee_kernel_set *set) {
    return set ? set->first : NULL;
}
