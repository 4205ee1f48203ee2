/* Loading: where weights go, and what comes of a folder. */
#ifndef PRG_MODEL_OPEN_H
#define PRG_MODEL_OPEN_H

#include "model/bind.h"
#include "model/model.h"
#include "perigee/options.h"

/* Memory beside weights that must be left when `weights=auto` chooses: scratch and some sessions. */
enum { PRG_MEMORY_RESERVE = 256 << 20 };

typedef struct prg_placement {
    bool mapped;
    bool fits;              /* resident, with what is needed beside it */
    int64_t resident_bytes; /* of weights, were they resident */
    int64_t available;      /* the smaller of the budget and what the system has */
} prg_placement;

/* Values of options that the library does not have. */
perigee_status prg_model_check_options(const perigee_options *options, perigee_error **err);
/* As the options `weights` and `memory_budget` say. `need`: bytes beside resident weights. */
perigee_status prg_model_place(const perigee_options *options, int64_t resident_bytes, int64_t need, prg_placement *out,
                               perigee_error **err);
/* `io` NULL: the system. */
perigee_status prg_model_open(perigee_context *context, const char *path, const perigee_options *options,
                              const prg_load_control *control, const prg_io *io, perigee_model **out,
                              perigee_error **err);
/* Of config, inner eps, form of the trunk, all names, shapes and dtypes, and the bytes of at most 1,000 small tensors.
 */
perigee_status prg_fingerprint(prg_checkpoint *checkpoint, double inner_eps, prg_trunk trunk, uint64_t out[2],
                               perigee_error **err);

#endif
