#include "kernels/cpu.h"

#include "perigee/sys/kernel.h"

#if defined(__x86_64__)
#include <cpuid.h>

static uint64_t saved_registers(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

uint64_t prg_cpu_features(void) {
    /* XCR0: SSE and AVX; and opmask, both halves of ZMM; and configuration and data of tiles */
    const uint64_t ymm = 0x6, zmm = 0xe6, tiles = 0x60000;
    unsigned a, b, c, d;
    uint64_t features = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX)) {
        return 0;
    }
    uint64_t saved = saved_registers();
    unsigned fma_f16c = bit_FMA | bit_F16C, leaf_1 = c;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        return 0;
    }
    if ((saved & ymm) == ymm && (leaf_1 & fma_f16c) == fma_f16c && (b & bit_AVX2)) {
        features |= PERIGEE_CPU_AVX2;
    }
    const unsigned amx = 1u << 22 | 1u << 24, leaf_7 = d; /* BF16, TILE */
    const unsigned avx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ;
    if (features && (saved & zmm) == zmm && (b & avx512) == avx512) {
        features |= PERIGEE_CPU_AVX512;
        if ((c & bit_AVX512VNNI) && (c & bit_AVX512VBMI)) {
            features |= PERIGEE_CPU_AVX512_VNNI;
        }
        if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 5)) {
            features |= PERIGEE_CPU_AVX512_BF16;
            if ((saved & tiles) == tiles && (leaf_7 & amx) == amx) {
                features |= PERIGEE_CPU_AMX_BF16;
            }
        }
    }
    return features;
}

#elif defined(__aarch64__)
#include <sys/auxv.h>

uint64_t prg_cpu_features(void) {
    const unsigned long asimddp = 1ul << 20; /* HWCAP_ASIMDDP */
    uint64_t features = PERIGEE_CPU_NEON;
    if (getauxval(AT_HWCAP) & asimddp) {
        features |= PERIGEE_CPU_DOTPROD;
    }
    return features;
}

#else

uint64_t prg_cpu_features(void) {
    return 0;
}

#endif
