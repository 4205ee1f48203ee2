#include "kernels/forms/layer_rows.h"

ROWS(avx512, PERIGEE_CPU_AVX512, 200)
