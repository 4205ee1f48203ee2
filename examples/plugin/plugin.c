/* Two kernels in a shared object of their own, built against the installed headers alone:
 *     perigee run MODEL --plugins ./perigee_example.so --check-kernels
 * Both are bare functions: the library packs activations for the product and calls the pointers as they are. */
#include <math.h>
#include <perigee/sys/kernel.h>
#include <string.h>

/* y[t, r] = sum over c of w[first + r, c] x[t, c]; weights are BF16, the upper halves of float32. */
static void product(const perigee_matrix *w, size_t first, size_t count, const float *x, size_t ldx, size_t m, float *y,
                    size_t ldy) {
    for (size_t r = 0; r < count; r++) {
        /* codes need no alignment: not to be read as uint16_t where they lie */
        const unsigned char *row = (const unsigned char *)w->codes + (first + r) * w->row_bytes;
        for (size_t t = 0; t < m; t++) {
            double sum = 0;
            for (size_t c = 0; c < w->cols; c++) {
                uint16_t code;
                memcpy(&code, row + 2 * c, sizeof code);
                uint32_t bits = (uint32_t)code << 16;
                float weight;
                memcpy(&weight, &bits, sizeof weight);
                sum += (double)weight * (double)x[t * ldx + c];
            }
            y[t * ldy + r] = (float)sum;
        }
    }
}

/* y = gain * x / sqrt(mean(x^2) + eps), then times sigmoid(gate) unless `gate` is NULL; y may be x. */
static void rms_norm(const float *x, const float *gain, const float *gate, size_t n, float eps, float *y) {
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        squares += (double)x[i] * (double)x[i];
    }
    double scale = 1 / sqrt(squares / (double)n + (double)eps);
    for (size_t i = 0; i < n; i++) {
        double value = (double)gain[i] * (double)x[i] * scale;
        y[i] = (float)(gate ? value / (1 + exp(-(double)gate[i])) : value);
    }
}

static const perigee_kernel_row rows[] = {
    {
        .struct_size = sizeof(perigee_kernel_row),
        .op = PERIGEE_OP_MATMUL,
        .dtype = PERIGEE_DTYPE_BF16,
        .precision = PERIGEE_PRECISION_EXACT,
        .error_bound = 1e-6,
        .name = "matmul_bf16_example",
        .isa = "c",
        .numerics = "double, one chain",
        .signature = "void(const ptr,size,size,const ptr,size,size,ptr,size)",
        .function = (perigee_kernel_fn)product,
    },
    {
        .struct_size = sizeof(perigee_kernel_row),
        .op = PERIGEE_OP_RMS_NORM,
        .precision = PERIGEE_PRECISION_EXACT,
        .error_bound = 1e-6,
        .name = "rms_norm_example",
        .isa = "c",
        .numerics = "double, one chain",
        .signature = "void(const ptr,const ptr,const ptr,size,f32,ptr)",
        .function = (perigee_kernel_fn)rms_norm,
    },
};

#if defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

EXPORT extern const uint32_t perigee_kernel_plugin_version;
EXPORT int32_t perigee_kernel_plugin(const perigee_kernel_registry *registry);

const uint32_t perigee_kernel_plugin_version = PERIGEE_KERNEL_VERSION;

int32_t perigee_kernel_plugin(const perigee_kernel_registry *registry) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int32_t refused = registry->add(registry->self, &rows[i]);
        if (refused) {
            return refused;
        }
    }
    return 0;
}
