/* Copies of the recurrent state at earlier positions. A latent cache needs none: there a position is its own record. */
#include <string.h>

#include "session/session.h"

static void forget(perigee_session *session, size_t index) {
    prg_checkpoints *c = &session->checkpoints;
    prg_free(session->model->context->allocator, c->list[index].state);
    memmove(c->list + index, c->list + index + 1, (c->count - index - 1) * sizeof *c->list);
    c->count--;
}

void prg_checkpoints_trim(perigee_session *session, size_t position) {
    prg_checkpoints *c = &session->checkpoints;
    while (c->count > 0 && (position == 0 || c->list[c->count - 1].position > position)) {
        forget(session, c->count - 1);
    }
}

/* The one that is missed least: where the gap that it leaves is small against its distance from the present. So the
 * recent past stays dense and the distant one thins out. */
static size_t least_useful(const prg_checkpoints *c, size_t position) {
    size_t worst = 0;
    double least = -1;
    for (size_t i = 0; i < c->count; i++) {
        const size_t before = i > 0 ? c->list[i - 1].position : 0;
        const size_t after = i + 1 < c->count ? c->list[i + 1].position : position;
        const double cost = (double)(after - before) / (double)(position - c->list[i].position + 1);
        if (least < 0 || cost < least) {
            least = cost;
            worst = i;
        }
    }
    return worst;
}

void prg_checkpoints_note(perigee_session *session, size_t position, const float *state) {
    prg_checkpoints *c = &session->checkpoints;
    const size_t floats = prg_state_floats(&session->state);
    const size_t last = c->count > 0 ? c->list[c->count - 1].position : 0;
    if (c->limit == 0 || floats == 0 || position < last + c->every) {
        return;
    }
    if (c->count == c->limit) {
        forget(session, least_useful(c, position));
    }
    float *copy = prg_alloc(session->model->context->allocator, floats * sizeof *copy);
    if (copy) {
        memcpy(copy, state, floats * sizeof *copy);
        c->list[c->count++] = (prg_checkpoint){position, copy};
    }
}

const prg_checkpoint *prg_checkpoints_find(const perigee_session *session, size_t position) {
    const prg_checkpoints *c = &session->checkpoints;
    for (size_t i = c->count; i > 0; i--) {
        if (c->list[i - 1].position <= position) {
            return &c->list[i - 1];
        }
    }
    return NULL;
}
