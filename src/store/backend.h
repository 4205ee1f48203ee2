/* What every kind of store has: a table of addresses, and what pinning means. */
#ifndef PRG_STORE_BACKEND_H
#define PRG_STORE_BACKEND_H

#include "store/store.h"

typedef struct prg_store_ops {
    void (*close)(prg_store *store); /* frees what `own` is, never the store */
    /* NULL where every group is always there */
    perigee_status (*want)(prg_store *store, const uint32_t *groups, size_t n, perigee_error **err);
    perigee_status (*pin)(prg_store *store, uint32_t group, perigee_error **err);
    void (*release)(prg_store *store, uint32_t group);
} prg_store_ops;

struct prg_store {
    prg_allocator *allocator;
    const prg_store_ops *ops;
    void *own;
    size_t part_count, group_count;
    const unsigned char **address; /* [part_count] */
    int64_t bytes;
};

/* A store without addresses yet; references the allocator. */
perigee_status prg_store_new(prg_allocator *allocator, const prg_store_plan *plan, const prg_store_ops *ops, void *own,
                             prg_store **out, perigee_error **err);

#endif
