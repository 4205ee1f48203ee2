/* The meaning of the kernels that are written over lanes. */
#include "kernels/forms/attention_form.h"
#include "kernels/forms/layer_rows.h"

ROWS(scalar, 0, 0)
