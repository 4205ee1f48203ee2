#include "kernels/forms/attention_form.h"
#include "kernels/forms/layer_rows.h"

ROWS(avx512, PERIGEE_CPU_AVX512, 200)
