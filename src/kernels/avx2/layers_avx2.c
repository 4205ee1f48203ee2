#include "kernels/forms/layer_rows.h"

ROWS_BUT_ATTENTION(avx2, PERIGEE_CPU_AVX2, 100)
