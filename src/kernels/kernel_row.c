/* What makes a row of a plugin or a host acceptable. */
#include <string.h>

#include "dtype/dtype.h"
#include "kernels/kernel_set.h"

static const char *const op_names[] = {
    [PERIGEE_OP_MATMUL] = "matmul",
    [PERIGEE_OP_MATMUL_TRANSPOSED] = "matmul_transposed",
    [PERIGEE_OP_GATED_ACTIVATION] = "gated_activation",
    [PERIGEE_OP_RMS_NORM] = "rms_norm",
    [PERIGEE_OP_SOFTMAX] = "softmax",
    [PERIGEE_OP_SHORT_CONV] = "short_conv",
    [PERIGEE_OP_KDA] = "kda",
    [PERIGEE_OP_ATTENTION] = "attention",
    [PERIGEE_OP_RESIDUAL_MIX] = "residual_mix",
};

const char *prg_kernel_op_name(uint32_t op) {
    return op < sizeof op_names / sizeof *op_names && op_names[op] ? op_names[op] : "";
}

static const char *functions_missing(const perigee_kernel_row *row) {
    if (row->op != PERIGEE_OP_MATMUL) {
        return row->run.functions[0] ? NULL : "it has no function";
    }
    const perigee_matmul_functions *f = &row->run.matmul;
    if (row->flags & PERIGEE_KERNEL_HOST) {
        return f->host ? NULL : "it has no host function";
    }
    return f->packed_bytes && f->pack && f->scratch_bytes && f->multiply ? NULL
                                                                         : "a function of the product is missing";
}

const char *prg_kernel_row_take(const perigee_kernel_row *from, perigee_kernel_row *out) {
    if (!from || from->struct_size < sizeof(perigee_kernel_row)) {
        return "struct_size is smaller than that of version 1";
    }
    memcpy(out, from, sizeof *out); /* what a newer version appends is not known here */
    out->struct_size = sizeof *out;
    if (!prg_kernel_op_name(out->op)[0]) {
        return "its op is not known";
    }
    if (out->dtype != PERIGEE_DTYPE_NONE && !prg_dtype_get(out->dtype)) {
        return "its stored form is not known";
    }
    if (out->precision > PERIGEE_PRECISION_FAST) {
        return "its precision is not known";
    }
    if (!out->name || !out->isa || !out->numerics) {
        return "a name is missing";
    }
    if (out->error_bound < 0 || out->error_bound != out->error_bound) {
        return "its error bound is not a number";
    }
    if ((out->flags & PERIGEE_KERNEL_HOST) && out->op != PERIGEE_OP_MATMUL) {
        return "only a product can run on the calling thread";
    }
    return functions_missing(out);
}
