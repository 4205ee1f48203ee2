#include "kernels/forms/layer_rows.h"

ROWS(avx2, PERIGEE_CPU_AVX2, 100)
