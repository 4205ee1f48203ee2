/* Types of functions at run time: what a row says of its own, and what the slots of the ops take. */
#ifndef PRG_KERNELS_SIGNATURE_H
#define PRG_KERNELS_SIGNATURE_H

#include <ffi.h>
#include <stdbool.h>

#include "perigee/sys/kernel.h"

enum { PRG_PARAMETERS_MOST = 16, PRG_REASON_SIZE = 160 };

typedef enum prg_value_type {
    PRG_VOID,
    PRG_POINTER,
    PRG_CONST_POINTER,
    PRG_SIZE,
    PRG_I32,
    PRG_U32,
    PRG_I64,
    PRG_U64,
    PRG_F32,
    PRG_F64
} prg_value_type;

typedef struct prg_signature {
    prg_value_type result;
    prg_value_type parameters[PRG_PARAMETERS_MOST];
    size_t count;
} prg_signature;

/* "result(type,type,…)" with types void (as a result), ptr, const ptr, size, i32, u32, i64, u64, f32 and f64. False,
 * and why in `reason`. */
bool prg_signature_parse(const char *text, prg_signature *out, char reason[PRG_REASON_SIZE]);
/* Equal in result, number, types and constness? False, and the first difference in `reason`. */
bool prg_signature_matches(const prg_signature *own, const prg_signature *slot, char reason[PRG_REASON_SIZE]);

/* A function of an op: place `index` of perigee_kernel_row.run.functions. */
typedef struct prg_slot {
    const char *name; /* as "multiply" */
    const char *signature;
} prg_slot;

/* NULL behind the last one of an op. */
const prg_slot *prg_slot_of(uint32_t op, size_t index);
/* The function that a row's own signature is about; `flags` as in the row. */
size_t prg_slot_main(uint32_t op, uint32_t flags);
/* The signature of a bare function for an op; NULL where one function is not enough. */
const char *prg_bare_signature(uint32_t op);

/* A call of that type, as libffi has it. It points into itself: never copied. */
typedef struct prg_call_type {
    ffi_cif cif;
    ffi_type *parameters[PRG_PARAMETERS_MOST];
} prg_call_type;

bool prg_call_type_init(prg_call_type *type, const prg_signature *signature);

#endif
