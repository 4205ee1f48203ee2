#include "base/error.h"
#include "layers/layers.h"

void *prg_layer_take(const prg_exec *exec, size_t count, size_t size, perigee_error **err) {
    void *p = prg_scratch_take(exec->scratch, count, size);
    if (!p) {
        prg_fail(err, PERIGEE_E_INTERNAL, "scratch of %zu bytes is too small for %zu * %zu more at %zu",
                 exec->scratch->capacity, count, size, exec->scratch->used);
    }
    return p;
}
