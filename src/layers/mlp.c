/* The gated MLP of dense layers and shared experts. */
#include "layers/layers.h"

/* What lies between the products is as wide as the MLP: long chunks go in tiles of rows, so that it stays small. Each
 * tile reads the weights again: wide models, whose weights grow with the square of the width, get as much more room. */
enum { INNER_BYTES = 12 << 20, USUAL_HIDDEN = 2048, LEAST_ROWS = 64 };

static size_t most_rows(size_t m, size_t hidden, size_t inner) {
    const double wide = hidden > USUAL_HIDDEN ? (double)hidden / USUAL_HIDDEN : 1;
    const double fit = INNER_BYTES / sizeof(float) * wide * wide / (double)(inner > 0 ? inner : 1);
    if (fit >= (double)m + LEAST_ROWS) { /* rounded down it still holds m: fewer rows never get a larger tile */
        return m;
    }
    const size_t rows = fit < LEAST_ROWS ? LEAST_ROWS : (size_t)fit & ~(size_t)(LEAST_ROWS - 1);
    return m < rows ? m : rows;
}

/* Tiles as equal as may be. */
static size_t tile_rows(size_t m, size_t hidden, size_t inner) {
    const size_t most = most_rows(m, hidden, inner), tiles = most > 0 ? (m + most - 1) / most : 1;
    const size_t each = ((m + tiles - 1) / tiles + LEAST_ROWS - 1) & ~(size_t)(LEAST_ROWS - 1);
    return each < most ? each : most;
}

perigee_status prg_layer_mlp(prg_pass *pass, const prg_mlp_weights *w, prg_gate act, const float *x, float *y,
                             perigee_error **err) {
    const prg_exec *exec = &pass->exec;
    const size_t m = pass->m, hidden = pass->hidden, inner = w->gate.rows, mark = exec->scratch->used;
    const size_t tile = tile_rows(m, hidden, inner);
    const perigee_matrix gate = prg_store_matrix(pass->store, &w->gate);
    const perigee_matrix up = prg_store_matrix(pass->store, &w->up);
    const perigee_matrix down = prg_store_matrix(pass->store, &w->down);
    float *mid = prg_layer_take(exec, tile * inner, sizeof *mid, err);
    perigee_status st = mid ? PERIGEE_OK : PERIGEE_E_INTERNAL;
    for (size_t t = 0; st == PERIGEE_OK && t < m; t += tile) {
        const size_t rows = m - t < tile ? m - t : tile;
        const prg_gated_job first = {&gate, &up, {x + t * hidden, hidden, rows, hidden, NULL}, mid, inner};
        const prg_weighted_job second = {&down, {mid, inner, rows, inner, NULL}, NULL, NULL};
        st = prg_gated_matmul(exec, &first, 1, act, err);
        if (st == PERIGEE_OK) {
            st = prg_weighted_matmul(exec, &second, 1, y + t * hidden, hidden, err);
        }
    }
    exec->scratch->used = mark;
    return st;
}

size_t prg_layer_mlp_scratch(const prg_sizing *sizing, size_t inner) {
    const size_t tile = most_rows(sizing->m, sizing->hidden, inner); /* no less than of fewer rows */
    const size_t in = prg_matmul_scratch(sizing->table, sizing->threads, 1, tile, sizing->hidden);
    const size_t back = prg_matmul_scratch(sizing->table, sizing->threads, 1, tile, inner);
    return prg_scratch_bytes(tile * inner, sizeof(float)) + (in > back ? in : back);
}
