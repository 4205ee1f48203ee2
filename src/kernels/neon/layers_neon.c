#define PRG_NEON
#include "kernels/forms/attention_form.h"
#include "kernels/forms/layer_rows.h"

ROWS(neon, PERIGEE_CPU_NEON, 100)
