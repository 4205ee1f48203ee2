/* Scratch is laid out for the longest chunk; shorter ones must do with it. */
#include "layers/layers.h"
#include "support/exec.h"
#include "support/suite.h"

START_TEST(fewer_rows_take_no_more) {
    static const size_t widths[] = {1, 1408, 6144, 11264, 18432, 24769, 33792, 49152, 49153, 65537};
    test_exec t;
    ck_assert(test_exec_open(&t, "scalar", 2));
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        for (size_t hidden = 64; hidden <= 7168; hidden = 7 * hidden + 64) {
            prg_sizing sizing = {.table = t.table, .threads = 2, .hidden = hidden, .segments = 1};
            size_t before = 0;
            for (sizing.m = 1; sizing.m <= 512; sizing.m++) {
                const size_t bytes = prg_layer_mlp_scratch(&sizing, widths[i]);
                ck_assert_msg(bytes >= before, "%zu wide, hidden %zu: %zu rows take less than one fewer", widths[i],
                              hidden, sizing.m);
                before = bytes;
            }
        }
    }
    test_exec_close(&t);
}
END_TEST

PRG_SUITE("layer_scratch", NULL, NULL, fewer_rows_take_no_more)
