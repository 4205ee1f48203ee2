/* Steps over sessions that come and go, without growth of memory. PERIGEE_TEST_STEPS sets their number. */
#include "perigee/state.h"
#include "support/golden.h"
#include "support/host_allocator.h"
#include "support/suite.h"

enum { SLOTS = 12 };

static unsigned next(unsigned *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

static size_t resident_kilobytes(void) {
    size_t pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert_int_eq(fscanf(f, "%zu %zu", &pages, &resident), 2);
    fclose(f);
    return resident * 4;
}

START_TEST(churn) {
    static host h;
    perigee_allocator allocator = host_allocator(&h);
    perigee_context *context = NULL;
    golden_ok(perigee_context_new(NULL, &allocator, NULL, NULL, &context, NULL), NULL);
    static const char *const names[] = {"kimi_k3", "kimi_k2"};
    perigee_model *models[2] = {golden_model(context, names[0], NULL), golden_model(context, names[1], NULL)};
    perigee_session *slots[SLOTS] = {NULL};
    const char *asked = getenv("PERIGEE_TEST_STEPS");
    const size_t steps = asked ? strtoul(asked, NULL, 10) : 200000;
    unsigned seed = 5;
    long long most[2] = {0, 0};
    size_t resident[2] = {0, 0};
    for (size_t i = 0; i < steps; i++) {
        const size_t k = next(&seed) % SLOTS;
        const unsigned what = next(&seed) % 100;
        if (!slots[k] || what < 2 || perigee_session_position(slots[k]) > 150) {
            perigee_session_free(slots[k]);
            slots[k] = golden_session(models[k % 2], k % 3 ? NULL : "checkpoints=1000000 checkpoint_interval=16");
        } else if (what < 4) {
            perigee_session *fork = NULL;
            golden_ok(perigee_session_fork(slots[k], &fork, NULL), NULL);
            perigee_session_free(slots[k]);
            slots[k] = fork;
        } else if (what < 5) {
            perigee_session_rewind(slots[k], perigee_session_position(slots[k]) / 2, NULL, NULL, NULL);
        } else if (what < 6) {
            size_t size = 0;
            golden_ok(perigee_state_size(slots[k], NULL, &size, NULL), NULL);
            void *bytes = malloc(size);
            golden_ok(perigee_state_save(slots[k], NULL, bytes, size, NULL, NULL), NULL);
            golden_ok(perigee_state_load(slots[k], NULL, bytes, size, NULL), NULL);
            free(bytes);
        }
        const int32_t token = (int32_t)(next(&seed) % 300);
        golden_step(slots[k], &token, 1, PERIGEE_LOGITS_LAST);
        /* the first half shows how high it gets; the second must not go beyond */
        const int half = i >= steps / 2;
        most[half] = h.bytes > most[half] ? h.bytes : most[half];
        resident[half] = i + 1 == steps / 2 || i + 1 == steps ? resident_kilobytes() : resident[half];
    }
    printf("most given out %lld then %lld bytes, resident %zu then %zu KB\n", most[0], most[1], resident[0],
           resident[1]);
    ck_assert_int_le(most[1], most[0] + most[0] / 20);
    ck_assert_uint_le(resident[1], resident[0] + resident[0] / 20 + 1024);
    for (size_t k = 0; k < SLOTS; k++) {
        perigee_session_free(slots[k]);
    }
    perigee_model_free(models[0]);
    perigee_model_free(models[1]);
    perigee_context_free(context);
    ck_assert_int_eq(h.bytes, 0);
}
END_TEST

static void nothing(void) {}

PRG_SUITE("churn", nothing, nothing, churn)
