#include "base/float_mode.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

void prg_float_mode_set(void) {
    fesetenv(FE_DFL_ENV);
#if defined(__x86_64__)
    _mm_setcsr(0x1f80);
#endif
}

void prg_float_mode_enter(fenv_t *host) {
    fegetenv(host);
    prg_float_mode_set();
}

void prg_float_mode_leave(const fenv_t *host) {
    fesetenv(host);
}
