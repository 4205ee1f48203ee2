/* What makes a row of a plugin or a host acceptable. */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "dtype/dtype.h"
#include "kernels/kernel_set.h"
#include "kernels/plain.h"
#include "kernels/signature.h"

enum {
    FIRST_VERSION_SIZE = offsetof(perigee_kernel_row, function),
    SIZE_MOST = 4096, /* of a row of any version to come: more is no size but garbage */
    TILE_MOST = 65536 /* far beyond any tile, and no product of two overflows */
};

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

static bool reads_weights(uint32_t op) {
    return op == PERIGEE_OP_MATMUL || op == PERIGEE_OP_MATMUL_TRANSPOSED;
}

/* What is known of a row that may be of an older or a newer version. */
static const char *copy_known(const perigee_kernel_row *from, perigee_kernel_row *out) {
    if (!from || from->struct_size > SIZE_MOST ||
        (from->struct_size < sizeof *out && from->struct_size != FIRST_VERSION_SIZE)) {
        return "struct_size is that of no version";
    }
    const unsigned char *bytes = (const unsigned char *)from;
    for (size_t i = sizeof *out; i < from->struct_size; i++) {
        if (bytes[i]) {
            return "it sets a member that this version of the library doesn't know";
        }
    }
    *out = (perigee_kernel_row){0};
    memcpy(out, from, from->struct_size < sizeof *out ? from->struct_size : sizeof *out);
    out->struct_size = sizeof *out;
    out->row_tile += out->row_tile == 0;
    out->token_tile += out->token_tile == 0;
    return NULL;
}

/* Names are printed in tables and as JSON. */
static const char *check_name(const char *name) {
    if (!name) {
        return "a name is missing";
    }
    if (!name[0]) {
        return "a name is empty";
    }
    const unsigned char *text = (const unsigned char *)name;
    const size_t length = strlen(name);
    if (prg_utf8_check(text, length) != length) {
        return "a name is not UTF-8";
    }
    for (size_t at = 0, width; at < length; at += width) {
        const uint32_t code = prg_utf8_decode(text + at, &width);
        if (code < 0x20 || (code >= 0x7F && code < 0xA0)) {
            return "a name has a control character";
        }
    }
    return NULL;
}

static const char *check_names(const perigee_kernel_row *row) {
    const char *refusal = check_name(row->name);
    if (!refusal) {
        refusal = check_name(row->isa);
    }
    return refusal ? refusal : check_name(row->numerics);
}

static const char *check_words(const perigee_kernel_row *row) {
    if (!prg_kernel_op_name(row->op)[0]) {
        return "its op is not known";
    }
    if (row->dtype != PERIGEE_DTYPE_NONE && !prg_dtype_get(row->dtype)) {
        return "its stored form is not known";
    }
    if (reads_weights(row->op) != (row->dtype != PERIGEE_DTYPE_NONE)) {
        return "products name a stored form of weights, and no other op does";
    }
    if (row->precision > PERIGEE_PRECISION_FAST) {
        return "its precision is not known";
    }
    if (!(row->error_bound >= 0 && row->error_bound <= DBL_MAX)) {
        return "its error bound is not a number";
    }
    if (row->row_tile > TILE_MOST || row->token_tile > TILE_MOST) {
        return "row_tile or token_tile is no size of a tile";
    }
    if (row->flags & ~(uint32_t)(PERIGEE_KERNEL_NONDETERMINISTIC | PERIGEE_KERNEL_HOST)) {
        return "it sets a flag that this version of the library doesn't know";
    }
    return row->flags & PERIGEE_KERNEL_HOST && row->op != PERIGEE_OP_MATMUL
               ? "only a product can run on the calling thread"
               : NULL;
}

static const char *check_functions(const perigee_kernel_row *row) {
    if (row->flags & PERIGEE_KERNEL_HOST) {
        return row->run.matmul.host ? NULL : "it has no host function";
    }
    if (row->op == PERIGEE_OP_ATTENTION) {
        const perigee_attention_functions *f = &row->run.attention;
        const int walks = !!f->work_bytes + !!f->begin + !!f->step + !!f->end;
        if (walks == 4 || (walks == 0 && f->tile)) {
            return NULL;
        }
        return walks ? "a function of its op is missing" : "it has no function";
    }
    for (size_t i = 0; prg_slot_of(row->op, i); i++) {
        const bool host = row->op == PERIGEE_OP_MATMUL && i == prg_slot_main(row->op, PERIGEE_KERNEL_HOST);
        if (!host && !row->run.functions[i]) {
            return i == 0 ? "it has no function" : "a function of its op is missing";
        }
    }
    return NULL;
}

static const char *take_bare(perigee_kernel_row *row) {
    for (size_t i = 0; i < sizeof row->run / sizeof *row->run.functions; i++) {
        if (row->run.functions[i]) {
            return "it has a bare function and others beside it";
        }
    }
    if (row->flags & PERIGEE_KERNEL_HOST) {
        return "a bare function can't be a HOST row's";
    }
    if (!prg_bare_signature(row->op)) {
        return "its op takes more than a bare function";
    }
    if (!row->signature) {
        return "a bare function says its signature";
    }
    if (row->op == PERIGEE_OP_MATMUL) {
        row->run.matmul = prg_plain_functions;
    } else {
        row->run.functions[0] = row->function;
    }
    return NULL;
}

static bool check_signature(const perigee_kernel_row *row, char reason[PRG_REASON_SIZE]) {
    prg_signature own, slot;
    const char *wanted = row->function ? prg_bare_signature(row->op)
                                       : prg_slot_of(row->op, prg_slot_main(row->op, row->flags))->signature;
    return prg_signature_parse(row->signature, &own, reason) && prg_signature_parse(wanted, &slot, reason) &&
           prg_signature_matches(&own, &slot, reason);
}

bool prg_kernel_row_take(const perigee_kernel_row *from, perigee_kernel_row *out, char reason[PRG_REASON_SIZE]) {
    const char *refusal = copy_known(from, out);
    if (!refusal) {
        refusal = check_words(out);
    }
    if (!refusal) {
        refusal = check_names(out);
    }
    if (!refusal) {
        refusal = out->function ? take_bare(out) : check_functions(out);
    }
    if (refusal) {
        (void)snprintf(reason, PRG_REASON_SIZE, "%s", refusal);
        return false;
    }
    /* in the first version it was a remark, without const */
    const bool said = out->signature && from->struct_size > FIRST_VERSION_SIZE;
    return !said || check_signature(out, reason);
}
