/* One source for several plugins; which one is a macro of the build: PLUGIN_GOOD, or what is bad about it. */
#include <math.h>
#include <string.h>

#include "perigee/sys/kernel.h"

#define SHOWN __attribute__((visibility("default")))

static size_t none(size_t k) {
    (void)k;
    return 64;
}

#ifdef PLUGIN_PACKED
static size_t ragged(size_t k) {
    return k * sizeof(float);
}
#endif
#ifdef PLUGIN_PACKED_NONE
static size_t nothing(size_t k) {
    (void)k;
    return 0;
}
#endif

static void pack(const float *x, size_t ldx, size_t m, size_t k, void *packed) {
    (void)x, (void)ldx, (void)m, (void)k, (void)packed;
}

static size_t scratch(size_t m, size_t k) {
    (void)m, (void)k;
    return 0;
}

static void multiply(const perigee_matrix *w, size_t first, size_t count, const void *packed, const uint32_t *rows,
                     size_t m, float *y, size_t ldy, void *space) {
    (void)w, (void)first, (void)packed, (void)rows, (void)space;
    for (size_t t = 0; t < m; t++) {
        for (size_t r = 0; r < count; r++) {
            y[t * ldy + r] = 7;
        }
    }
}

#ifdef PLUGIN_HOST
static int32_t host(void *user, const perigee_matrix *w, size_t first, size_t count, const float *x, size_t ldx,
                    size_t m, float *y, size_t ldy) {
    (void)user, (void)w, (void)first, (void)count, (void)x, (void)ldx, (void)m, (void)y, (void)ldy;
    return 1;
}
#endif

#if defined(PLUGIN_VERSION_TO_COME)
SHOWN const uint32_t perigee_kernel_plugin_version = PERIGEE_KERNEL_VERSION + 1;
#elif defined(PLUGIN_VERSION_NONE)
SHOWN const uint32_t perigee_kernel_plugin_version = 0;
#else
SHOWN const uint32_t perigee_kernel_plugin_version = PERIGEE_KERNEL_VERSION;
#endif

/* A row of a version of the struct that is not there yet. */
typedef struct larger_row {
    perigee_kernel_row row;
    void *member;
} larger_row;

#ifdef PLUGIN_NO_SYMBOL
#define perigee_kernel_plugin another_name
#endif
SHOWN int32_t perigee_kernel_plugin(const perigee_kernel_registry *registry);

int32_t perigee_kernel_plugin(const perigee_kernel_registry *registry) {
    larger_row larger;
    memset(&larger, 0, sizeof larger);
    perigee_kernel_row *row = &larger.row;
    *row = (perigee_kernel_row){
        .struct_size = sizeof *row,
        .op = PERIGEE_OP_MATMUL,
        .dtype = PERIGEE_DTYPE_F16,
        .error_bound = 1e-3,
        .name = "sevens",
        .isa = "none",
        .numerics = "sevens",
        .signature = "void(const ptr, size, size, const ptr, const ptr, size, ptr, size, ptr)",
        .row_tile = 1,
        .token_tile = 1,
        .run.matmul = {none, pack, scratch, multiply, NULL},
    };
    int32_t result = registry->add(registry->self, row);
    row->name = "another";
    int32_t expected = 1; /* that the next row be refused */
#if defined(PLUGIN_SHORT)
    row->struct_size = 16;
#elif defined(PLUGIN_ENDLESS)
    row->struct_size = SIZE_MAX;
#elif defined(PLUGIN_LARGER)
    row->struct_size = sizeof larger;
    larger.member = &larger;
#elif defined(PLUGIN_LARGER_ZERO)
    row->struct_size = sizeof larger;
    expected = 0;
#elif defined(PLUGIN_FIRST_VERSION) /* which had neither a bare function nor const in its signatures */
    row->struct_size = offsetof(perigee_kernel_row, function);
    row->function = (perigee_kernel_fn)multiply;
    row->signature = "void(ptr,size,size,ptr,ptr,size,ptr,size,ptr)";
    expected = 0;
#elif defined(PLUGIN_ARITY)
    row->signature = "void(const ptr,size,size,const ptr,const ptr,size,ptr,size)";
#elif defined(PLUGIN_TYPE)
    row->signature = "void(const ptr,size,size,const ptr,const ptr,i32,ptr,size,ptr)";
#elif defined(PLUGIN_CONST)
    row->signature = "void(const ptr,size,size,ptr,const ptr,size,ptr,size,ptr)";
#elif defined(PLUGIN_RESULT)
    row->signature = "i32(const ptr,size,size,const ptr,const ptr,size,ptr,size,ptr)";
#elif defined(PLUGIN_UNREADABLE)
    row->signature = "void(const ptr,size_t)";
#elif defined(PLUGIN_UNSIGNED)
    memset(&row->run, 0, sizeof row->run);
    row->function = (perigee_kernel_fn)multiply;
    row->signature = NULL;
#elif defined(PLUGIN_BARE_AND_MORE)
    row->function = (perigee_kernel_fn)multiply;
#elif defined(PLUGIN_NULL)
    row->run.matmul.pack = NULL;
#elif defined(PLUGIN_EMPTY)
    memset(&row->run, 0, sizeof row->run);
    row->op = PERIGEE_OP_KDA;
    row->dtype = PERIGEE_DTYPE_NONE;
    row->signature = NULL;
#elif defined(PLUGIN_OP)
    row->op = 31;
#elif defined(PLUGIN_DTYPE)
    row->dtype = 63;
#elif defined(PLUGIN_PART)
    row->struct_size = sizeof *row - 4;
#elif defined(PLUGIN_TILE)
    row->row_tile = SIZE_MAX;
#elif defined(PLUGIN_BOUND)
    row->error_bound = INFINITY;
#elif defined(PLUGIN_FLAG)
    row->flags = 128;
#elif defined(PLUGIN_NAMELESS)
    row->name = NULL;
#elif defined(PLUGIN_NAME_EMPTY)
    row->name = "";
#elif defined(PLUGIN_NAME_LATIN)
    row->name = "pr\xFC"
                "fung"; /* of another encoding than UTF-8 */
#elif defined(PLUGIN_ISA_LINE)
    row->isa = "two\nlines";
#elif defined(PLUGIN_NUMERICS_CONTROL)
    row->numerics = "\xC2\x9B"
                    "31m"; /* U+009B begins an escape sequence */
#elif defined(PLUGIN_HOST)
    row->flags = PERIGEE_KERNEL_HOST;
    row->signature = NULL;
    row->run.matmul.host = host;
#elif defined(PLUGIN_DUPLICATE)
    row->name = "sevens";
    expected = 0;
#elif defined(PLUGIN_BUILT_IN)
    row->name = "matmul_f16_scalar";
    expected = 0;
#elif defined(PLUGIN_OTHER_TABLE) /* which a table of scalar rows leaves out */
#if defined(__x86_64__)
    row->name = "matmul_f16_avx2";
#elif defined(__aarch64__)
    row->name = "matmul_f16_neon";
#else
    row->name = "matmul_f16_scalar";
#endif
    expected = 0;
#elif defined(PLUGIN_OTHER_MACHINE) /* no processor has all of it */
    row->name = "sevens";
    row->features = UINT64_MAX;
    expected = 0;
#elif defined(PLUGIN_PACKED)
    row->run.matmul.packed_bytes = ragged;
    expected = 0;
#elif defined(PLUGIN_PACKED_NONE)
    row->run.matmul.packed_bytes = nothing;
    expected = 0;
#elif defined(PLUGIN_SHOWN_TILES)
    return registry->features & PERIGEE_CPU_AMX_BF16 ? 50 : 0;
#elif defined(PLUGIN_REFUSING)
    return 3;
#else
    return result;
#endif
    const int32_t second = registry->add(registry->self, row);
    if ((second != 0) != expected) {
        return 100;
    }
#ifdef PLUGIN_NULL
    return registry->add(registry->self, NULL) ? 0
                                               : 101; /* it takes nothing more, and what it returns does not matter */
#endif
    return result ? result : second;
}
