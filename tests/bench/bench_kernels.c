/* Rates of the matrix products, one thread: GB/s of weights and multiply-adds per second for each row of the table and
 * each shape, with shares of what the machine does in the same run; transposed ones for the heads of latent attention.
 * Usage: bench_kernels [part of a row's name] [most rows of activations]. */
#include <string.h>

#include "dtype/dtype.h"
#include "kernels/cpu.h"
#include "kernels/table.h"
#include "limits.h"
#include "os/machine.h"

enum { REPEAT = 7, MOST_SUMS = 32 * 512, MOST_COLS = 33792 };

static const struct {
    const char *name;
    size_t rows, cols;
} shapes[] = {
    {"Moonlight gate", 1408, 2048}, {"Moonlight down", 2048, 1408}, {"Moonlight dense down", 2048, 11264},
    {"K2 gate", 2048, 7168},        {"K3 expert gate", 3072, 3584}, {"K3 dense down, a part", 1024, MOST_COLS},
};

static const size_t batches[] = {1, 4, 16, 64, 512};

typedef struct limits {
    double f32, bf16, int8, tile_bf16, tile_int8;
} limits;

static limits measure(void) {
    limits l = {0};
#if defined(__x86_64__)
    const uint64_t features = prg_cpu_features();
    if (features & PERIGEE_CPU_AVX512) {
        l.f32 = limit_f32();
    } else if (features & PERIGEE_CPU_AVX2) {
        l.f32 = limit_f32_avx2();
        l.int8 = limit_int8_avx2();
    }
    if (features & PERIGEE_CPU_AVX512_BF16) {
        l.bf16 = limit_bf16();
    }
    if (features & PERIGEE_CPU_AVX512_VNNI) {
        l.int8 = limit_int8();
    }
    if ((features & PERIGEE_CPU_AMX_BF16) && prg_os_allow_tiles()) {
        l.tile_bf16 = limit_tile_bf16();
        l.tile_int8 = limit_tile_int8();
    }
#endif
    printf("limits: float32 %.0f, bf16 %.0f, int8 %.0f, tiles of bf16 %.0f, of int8 %.0f G multiply-adds/s\n",
           l.f32 * 1e-9, l.bf16 * 1e-9, l.int8 * 1e-9, l.tile_bf16 * 1e-9, l.tile_int8 * 1e-9);
    return l;
}

/* Scales that keep all finite. */
static void fill_scales(const prg_dtype *dtype, unsigned char *scales, size_t bytes) {
    const uint16_t half = dtype->id == PERIGEE_DTYPE_INT4 ? prg_f32_to_bf16(0.01f) : prg_f32_to_f16(0.01f);
    const float value = 0.01f;
    for (size_t i = 0; i < bytes; i += dtype->scale_bytes) {
        const uint8_t byte = (uint8_t)(118 + i % 5);
        const void *from = dtype->scale_bytes == 1   ? (const void *)&byte
                           : dtype->scale_bytes == 2 ? (const void *)&half
                                                     : (const void *)&value;
        memcpy(scales + i, from, dtype->scale_bytes);
    }
}

typedef struct work {
    const perigee_kernel_row *row;
    unsigned char *codes, *scales;
    size_t code_bytes, scale_bytes;
    float *x, *y;
    void *packed, *scratch;
} work;

/* As many matrices of the shape, one behind the other, as the buffer holds. */
static double run(const work *w, size_t rows, size_t cols, size_t m, size_t most_bytes, size_t *bytes) {
    const uint32_t dtype = w->row->dtype;
    const size_t each = rows * prg_dtype_row_bytes(dtype, cols);
    const size_t scales = prg_dtype_matrix_bytes(dtype, rows, cols) - each;
    const double begin = limit_seconds();
    *bytes = 0;
    for (size_t at = 0, scale_at = 0; at + each <= most_bytes; at += each, scale_at += scales) {
        const perigee_matrix matrix = prg_matrix_make(dtype, rows, cols, w->codes + at, w->scales + scale_at);
        w->row->run.matmul.multiply(&matrix, 0, rows, w->packed, NULL, m, w->y, rows, w->scratch);
        *bytes += each + scales;
    }
    return limit_seconds() - begin;
}

static void print_share(const char *of, double rate, double limit) {
    if (limit > 0) {
        printf(", of %s %.0f", of, 100 * rate / limit);
    }
}

static double least(double a, double b) {
    return a < b ? a : b;
}

static void bench_shape(const work *w, const limits *l, size_t shape, size_t m) {
    const size_t rows = shapes[shape].rows, cols = shapes[shape].cols;
    const perigee_matmul_functions *f = &w->row->run.matmul;
    const size_t each = rows * prg_dtype_row_bytes(w->row->dtype, cols);
    const size_t some = each * (m <= 16 ? 8 : m <= 64 ? 4 : 1);
    const size_t most = m == 1 || some > w->code_bytes ? w->code_bytes : some;
    f->pack(w->x, cols, m, cols, w->packed);
    double read = 1e9, best = 1e9;
    size_t bytes = 0;
    for (int i = 0; i < REPEAT; i++) {
        if (m == 1) {
            read = least(read, limit_read(w->codes, w->code_bytes));
        }
        best = least(best, run(w, rows, cols, m, most, &bytes));
    }
    const double values = (double)(most / each * rows * cols);
    const double rate = values * (double)m / best;
    printf("%-34s %-22s %4zu: %6.1f GB/s %7.1f G/s", w->row->name, shapes[shape].name, m, (double)bytes / best * 1e-9,
           rate * 1e-9);
    if (m == 1) {
        printf("  %3.0f %% of %.1f GB/s read", 100 * (double)bytes / best / ((double)w->code_bytes / read),
               (double)w->code_bytes / read * 1e-9);
    } else if (l->f32 > 0) {
        printf("  %% of float32 %3.0f", 100 * rate / l->f32);
        print_share("bf16", rate, l->bf16);
        print_share("int8", rate, l->int8);
        print_share("bf16 tiles", rate, l->tile_bf16);
    }
    printf("\n");
    fflush(stdout);
}

/* As attention's absorbed products: 128 rows of a head's keys, the 128 of its values left out; sums of 32 heads. */
static void bench_transposed(const work *w, const limits *l, size_t m) {
    enum { ROWS = 128, COLS = 512, HEADS = 32 };
    const size_t part = ROWS * prg_dtype_row_bytes(w->row->dtype, COLS), all = w->code_bytes / (2 * part);
    const size_t heads = m == 1 ? all : HEADS;
    double read = 1e9, best = 1e9;
    for (int i = 0; i < REPEAT; i++) {
        if (m == 1) {
            read = least(read, limit_read(w->codes, w->code_bytes));
        }
        const double begin = limit_seconds();
        for (size_t h = 0; h < heads; h++) {
            const perigee_matrix matrix = prg_matrix_make(w->row->dtype, ROWS, COLS, w->codes + h * 2 * part, NULL);
            w->row->run.transposed.multiply(&matrix, 0, ROWS, w->x + h % HEADS * ROWS, HEADS * ROWS, m,
                                            w->y + h % HEADS * COLS, HEADS * COLS);
        }
        best = least(best, limit_seconds() - begin);
    }
    const double rate = (double)(heads * ROWS * COLS * m) / best;
    printf("%-34s %-22s %4zu: %6.1f GB/s %7.1f G/s", w->row->name, "a head of 128 x 512", m,
           (double)(heads * part) / best * 1e-9, rate * 1e-9);
    if (m == 1) {
        printf("  %3.0f %% of %.1f GB/s read", 100 * (double)(heads * part) / best / ((double)w->code_bytes / read),
               (double)w->code_bytes / read * 1e-9);
    } else if (l->f32 > 0) {
        printf("  %% of float32 %3.0f", 100 * rate / l->f32);
    }
    printf("\n");
    fflush(stdout);
}

static void bench_row(const work *w, const limits *l, size_t most_m) {
    for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++) {
        for (size_t m = 0; m < sizeof batches / sizeof *batches && batches[m] <= most_m; m++) {
            if (w->row->op == PERIGEE_OP_MATMUL) {
                bench_shape(w, l, shape, batches[m]);
            } else if (shape == 0) {
                bench_transposed(w, l, batches[m]);
            }
        }
    }
}

int main(int argc, char **argv) {
    const char *part = argc > 1 ? argv[1] : "";
    const size_t most_m = argc > 2 ? (size_t)strtoul(argv[2], NULL, 10) : 512;
    prg_allocator *allocator;
    prg_kernel_table *table;
    if (prg_allocator_new(NULL, &allocator, NULL) != PERIGEE_OK ||
        prg_kernel_table_new(allocator, "auto", "fast", "", NULL, &table, NULL) != PERIGEE_OK) {
        return 1;
    }
    const limits l = measure();
    work w = {.code_bytes = (size_t)192 << 20, .scale_bytes = (size_t)32 << 20};
    w.codes = limit_buffer(w.code_bytes);
    w.scales = limit_buffer(w.scale_bytes);
    w.x = limit_buffer((size_t)512 * MOST_COLS * 4);
    w.y = limit_buffer((size_t)512 * MOST_SUMS * 4);
    w.packed = limit_buffer((size_t)512 * (MOST_COLS + 1024) * 8);
    w.scratch = limit_buffer((size_t)64 << 20);
    for (size_t i = 0; i < (size_t)512 * MOST_COLS; i++) {
        w.x[i] = (float)(i * 2654435761u % 1000) * 1e-3f - 0.5f;
    }
    for (size_t i = 0; i < prg_kernel_table_count(table); i++) {
        w.row = prg_kernel_table_at(table, i);
        if ((w.row->op != PERIGEE_OP_MATMUL && w.row->op != PERIGEE_OP_MATMUL_TRANSPOSED) ||
            !strstr(w.row->name, part) || strcmp(w.row->isa, "scalar") == 0) {
            continue;
        }
        const prg_dtype *dtype = prg_dtype_get(w.row->dtype);
        for (size_t at = 0; dtype->id == PERIGEE_DTYPE_FP8 && at < w.code_bytes; at++) {
            w.codes[at] ^= (w.codes[at] & 127) == 127; /* weights are numbers; others are looked for code by code */
        }
        if (dtype->scale_rows) {
            fill_scales(dtype, w.scales, w.scale_bytes);
        } else { /* random bits are no numbers: exponents near one */
            for (size_t at = 0; at < w.code_bytes; at += dtype->block_bytes) {
                unsigned char *top = w.codes + at + dtype->block_bytes - 1;
                *top = dtype->id == PERIGEE_DTYPE_F16 ? (*top & 0x83) | 0x24 : (*top & 0x80) | 0x3c;
            }
        }
        bench_row(&w, &l, most_m);
    }
    measure();
    prg_kernel_table_free(table);
    prg_allocator_drop(allocator);
    return 0;
}
