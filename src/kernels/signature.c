#include "kernels/signature.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    ffi_type *type;
} types[] = {
    [PRG_VOID] = {"void", &ffi_type_void},
    [PRG_POINTER] = {"ptr", &ffi_type_pointer},
    [PRG_CONST_POINTER] = {"const ptr", &ffi_type_pointer},
    [PRG_SIZE] = {"size", sizeof(size_t) == 8 ? &ffi_type_uint64 : &ffi_type_uint32},
    [PRG_I32] = {"i32", &ffi_type_sint32},
    [PRG_U32] = {"u32", &ffi_type_uint32},
    [PRG_I64] = {"i64", &ffi_type_sint64},
    [PRG_U64] = {"u64", &ffi_type_uint64},
    [PRG_F32] = {"f32", &ffi_type_float},
    [PRG_F64] = {"f64", &ffi_type_double},
};

static void skip_spaces(const char **at) {
    *at += strspn(*at, " ");
}

/* A name is a whole word: "size" is no "size_t". */
static bool take_type(const char **at, prg_value_type *out) {
    skip_spaces(at);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const size_t length = strlen(types[i].name);
        if (strncmp(*at, types[i].name, length) == 0 && strchr(" ,()", (*at)[length])) {
            *at += length;
            *out = (prg_value_type)i;
            skip_spaces(at);
            return true;
        }
    }
    return false;
}

static bool parse(const char **at, prg_signature *out) {
    if (!take_type(at, &out->result) || **at != '(') {
        return false;
    }
    ++*at;
    skip_spaces(at);
    while (**at != ')') {
        if (out->count == PRG_PARAMETERS_MOST || !take_type(at, &out->parameters[out->count]) ||
            out->parameters[out->count] == PRG_VOID) {
            return false;
        }
        out->count++;
        if (**at == ',' && (*at)[1 + strspn(*at + 1, " ")] != ')') {
            ++*at;
        } else if (**at != ')') {
            return false;
        }
    }
    ++*at;
    skip_spaces(at);
    return **at == '\0';
}

bool prg_signature_parse(const char *text, prg_signature *out, char reason[PRG_REASON_SIZE]) {
    const char *at = text;
    *out = (prg_signature){PRG_VOID, {PRG_VOID}, 0};
    if (!parse(&at, out)) {
        (void)snprintf(reason, PRG_REASON_SIZE, "its signature can't be read at byte %zu", (size_t)(at - text));
        return false;
    }
    return true;
}

bool prg_signature_matches(const prg_signature *own, const prg_signature *slot, char reason[PRG_REASON_SIZE]) {
    if (own->count != slot->count) {
        (void)snprintf(reason, PRG_REASON_SIZE, "its signature has %zu parameters, that of the op %zu", own->count,
                       slot->count);
        return false;
    }
    if (own->result != slot->result) {
        (void)snprintf(reason, PRG_REASON_SIZE, "its signature returns %s, that of the op %s", types[own->result].name,
                       types[slot->result].name);
        return false;
    }
    for (size_t i = 0; i < own->count; i++) {
        if (own->parameters[i] != slot->parameters[i]) {
            (void)snprintf(reason, PRG_REASON_SIZE, "parameter %zu of its signature is %s, in that of the op %s", i + 1,
                           types[own->parameters[i]].name, types[slot->parameters[i]].name);
            return false;
        }
    }
    return true;
}

#define PRODUCT "void(const ptr,size,size,const ptr,size,size,ptr,size)"
#define ELEMENTWISE "void(const ptr,size,ptr)"
#define JOB "void(const ptr)"

enum { SLOTS_MOST = 5, HOST_SLOT = 4 };

static const prg_slot slots[][SLOTS_MOST + 1] = {
    [PERIGEE_OP_MATMUL] = {{"packed_bytes", "size(size)"},
                           {"pack", "void(const ptr,size,size,size,ptr)"},
                           {"scratch_bytes", "size(size,size)"},
                           {"multiply", "void(const ptr,size,size,const ptr,const ptr,size,ptr,size,ptr)"},
                           {"host", "i32(ptr,const ptr,size,size,const ptr,size,size,ptr,size)"}},
    [PERIGEE_OP_MATMUL_TRANSPOSED] = {{"multiply", PRODUCT}},
    [PERIGEE_OP_GATED_ACTIVATION] = {{"gated", "void(const ptr,const ptr,size,i32,f32,f32,ptr)"}},
    [PERIGEE_OP_RMS_NORM] = {{"rms_norm", "void(const ptr,const ptr,const ptr,size,f32,ptr)"}},
    [PERIGEE_OP_SOFTMAX] = {{"softmax", ELEMENTWISE}, {"sigmoid", ELEMENTWISE}, {"sigmoid_gate", ELEMENTWISE}},
    [PERIGEE_OP_SHORT_CONV] = {{"conv", JOB}},
    [PERIGEE_OP_KDA] = {{"run", JOB}},
    [PERIGEE_OP_ATTENTION] =
        {{"tile", JOB}, {"work_bytes", "size(size,size,size)"}, {"begin", JOB}, {"step", JOB}, {"end", JOB}},
    [PERIGEE_OP_RESIDUAL_MIX] = {{"mix", "void(const ptr,size,size,const ptr,size,f32,ptr,ptr)"}},
};

const prg_slot *prg_slot_of(uint32_t op, size_t index) {
    if (op >= sizeof slots / sizeof *slots || index >= SLOTS_MOST || !slots[op][index].name) {
        return NULL;
    }
    return &slots[op][index];
}

size_t prg_slot_main(uint32_t op, uint32_t flags) {
    if (op != PERIGEE_OP_MATMUL) {
        return 0;
    }
    return flags & PERIGEE_KERNEL_HOST ? HOST_SLOT : HOST_SLOT - 1;
}

const char *prg_bare_signature(uint32_t op) {
    if (op == PERIGEE_OP_MATMUL) {
        return PRODUCT;
    }
    const bool one = op == PERIGEE_OP_ATTENTION || !prg_slot_of(op, 1); /* a row that only has tiles needs no more */
    return prg_slot_of(op, 0) && one ? prg_slot_of(op, 0)->signature : NULL;
}

bool prg_call_type_init(prg_call_type *type, const prg_signature *signature) {
    for (size_t i = 0; i < signature->count; i++) {
        type->parameters[i] = types[signature->parameters[i]].type;
    }
    return ffi_prep_cif(&type->cif, FFI_DEFAULT_ABI, (unsigned)signature->count, types[signature->result].type,
                        type->parameters) == FFI_OK;
}
