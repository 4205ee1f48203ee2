/* What this machine can do, measured where the benchmark runs: seconds of this thread's processor time, so that a busy
 * machine disturbs less; the best of several short runs. */
#ifndef PRG_BENCH_LIMITS_H
#define PRG_BENCH_LIMITS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static inline double limit_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Huge pages, written once; for weights that are larger than any cache. */
static inline void *limit_buffer(size_t bytes) {
    const size_t unit = (size_t)2 << 20;
    char *p = mmap(NULL, bytes + unit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    p = (char *)(((uintptr_t)p + unit - 1) & ~(uintptr_t)(unit - 1));
    madvise(p, bytes, MADV_HUGEPAGE);
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        *(uint64_t *)(void *)(p + i) = x;
    }
    return p;
}

typedef long long limit_vector __attribute__((vector_size(64)));
static volatile long long limit_sink;

/* Seconds to read all of a buffer in one linear stream. */
__attribute__((noinline, unused)) static double limit_read(const void *p, size_t bytes) {
    const limit_vector *v = p;
    limit_vector a = {0}, b = a, c = a, d = a;
    const double begin = limit_seconds();
    for (size_t i = 0; i + 4 <= bytes / sizeof *v; i += 4) {
        a ^= v[i];
        b ^= v[i + 1];
        c ^= v[i + 2];
        d ^= v[i + 3];
    }
    a ^= b ^ c ^ d;
    limit_sink = a[0] ^ a[1] ^ a[2] ^ a[3] ^ a[4] ^ a[5] ^ a[6] ^ a[7];
    return limit_seconds() - begin;
}

/* Seconds to read and write n floats in place, n a multiple of 64. */
#if defined(__x86_64__) && !defined(__clang__) /* clang takes no other attribute beside this one */
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
__attribute__((noinline, unused)) static double
limit_update(float *x, size_t n) {
    typedef float vector __attribute__((vector_size(64)));
    vector *v = (vector *)(void *)x;
    const double begin = limit_seconds();
    for (size_t i = 0; i + 4 <= n / 16; i += 4) {
        v[i] *= 0.999f;
        v[i + 1] *= 0.999f;
        v[i + 2] *= 0.999f;
        v[i + 3] *= 0.999f;
    }
    return limit_seconds() - begin;
}

#if defined(__x86_64__)
#define LIMIT_LINE(op, to) op " %%zmm0, %%zmm1, %%zmm" #to "\n"
#define LIMIT_LOOP(op)                                                                                                 \
    "vpxorq %%zmm0, %%zmm0, %%zmm0\nvpxorq %%zmm1, %%zmm1, %%zmm1\n1:\n" LIMIT_LINE(op, 4) LIMIT_LINE(op, 5)           \
        LIMIT_LINE(op, 6) LIMIT_LINE(op, 7) LIMIT_LINE(op, 8) LIMIT_LINE(op, 9) LIMIT_LINE(op, 10) LIMIT_LINE(op, 11)  \
            LIMIT_LINE(op, 12) LIMIT_LINE(op, 13) LIMIT_LINE(op, 14) LIMIT_LINE(op, 15) "dec %0\njnz 1b\n"
/* Multiply-adds per second of 12 registers of AVX-512. */
#define LIMIT_RATE(name, op, each)                                                                                     \
    __attribute__((noinline, unused)) static double name(void) {                                                       \
        double best = 1e9;                                                                                             \
        for (int i = 0; i < 5; i++) {                                                                                  \
            long n = 1000000;                                                                                          \
            const double begin = limit_seconds();                                                                      \
            __asm__ volatile(LIMIT_LOOP(op)                                                                            \
                             : "+r"(n)::"zmm0", "zmm1", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8", "zmm9", "zmm10",       \
                               "zmm11", "zmm12", "zmm13", "zmm14", "zmm15", "cc");                                     \
            const double seconds = limit_seconds() - begin;                                                            \
            best = seconds < best ? seconds : best;                                                                    \
        }                                                                                                              \
        return 1000000.0 * 12 * (each) / best;                                                                         \
    }
LIMIT_RATE(limit_f32, "vfmadd231ps", 16)
LIMIT_RATE(limit_bf16, "vdpbf16ps", 32)
LIMIT_RATE(limit_int8, "vpdpbusd", 64)

/* The same of AVX2, whose int8 product is three operations: pairs of bytes, pairs of pairs, their sum. */
#define LIMIT_FMA_YMM(to) "vfmadd231ps %%ymm0, %%ymm1, %%ymm" #to "\n"
#define LIMIT_INT8_YMM(to)                                                                                             \
    "vpmaddubsw %%ymm0, %%ymm1, %%ymm3\nvpmaddwd %%ymm1, %%ymm3, %%ymm3\nvpaddd %%ymm3, %%ymm" #to ", %%ymm" #to "\n"
#define LIMIT_RATE_YMM(name, LINE, each)                                                                               \
    __attribute__((noinline, unused)) static double name(void) {                                                       \
        double best = 1e9;                                                                                             \
        for (int i = 0; i < 5; i++) {                                                                                  \
            long n = 1000000;                                                                                          \
            const double begin = limit_seconds();                                                                      \
            __asm__ volatile("vpxor %%ymm0, %%ymm0, %%ymm0\nvpxor %%ymm1, %%ymm1, %%ymm1\n1:\n" LINE(4) LINE(5)        \
                                 LINE(6) LINE(7) LINE(8) LINE(9) LINE(10) LINE(11) LINE(12) LINE(13) LINE(14)          \
                                     LINE(15) "dec %0\njnz 1b\n"                                                       \
                             : "+r"(n)::"ymm0", "ymm1", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9",        \
                               "ymm10", "ymm11", "ymm12", "ymm13", "ymm14", "ymm15", "cc");                            \
            const double seconds = limit_seconds() - begin;                                                            \
            best = seconds < best ? seconds : best;                                                                    \
        }                                                                                                              \
        return 1000000.0 * 12 * (each) / best;                                                                         \
    }
LIMIT_RATE_YMM(limit_f32_avx2, LIMIT_FMA_YMM, 8)
LIMIT_RATE_YMM(limit_int8_avx2, LIMIT_INT8_YMM, 32)

#define LIMIT_TILES(op)                                                                                                \
    "1:\n" op " %%tmm6, %%tmm4, %%tmm0\n" op " %%tmm7, %%tmm4, %%tmm1\n" op " %%tmm6, %%tmm5, %%tmm2\n" op             \
    " %%tmm7, %%tmm5, %%tmm3\ndec %0\njnz 1b\n"
/* Multiply-adds per second of four tiles of sums, on values that are not zero (zeros run faster). The system must have
 * allowed the process to use tiles. */
#define LIMIT_TILE_RATE(name, op, each)                                                                                \
    __attribute__((noinline, unused)) static double name(void) {                                                       \
        static _Alignas(64) unsigned char shape[64], values[1024];                                                     \
        double best = 1e9;                                                                                             \
        shape[0] = 1;                                                                                                  \
        for (int i = 0; i < 8; i++) {                                                                                  \
            shape[16 + 2 * i] = 64;                                                                                    \
            shape[48 + i] = 16;                                                                                        \
        }                                                                                                              \
        for (uint32_t i = 0, x = 1; i < sizeof values; i++) {                                                          \
            x = x * 1664525 + 1013904223;                                                                              \
            values[i] = (unsigned char)(i % 2 ? 0x3c | (x >> 24 & 0x81) : x >> 24);                                    \
        }                                                                                                              \
        for (int i = 0; i < 5; i++) {                                                                                  \
            long n = 200000;                                                                                           \
            const double begin = limit_seconds();                                                                      \
            __asm__ volatile(                                                                                          \
                "ldtilecfg (%1)\ntileloadd (%2,%3,1), %%tmm4\ntileloadd (%2,%3,1), %%tmm5\n"                           \
                "tileloadd (%2,%3,1), %%tmm6\ntileloadd (%2,%3,1), %%tmm7\n" LIMIT_TILES(op) "tilerelease\n"           \
                : "+r"(n)                                                                                              \
                : "r"(shape), "r"(values), "r"(64L)                                                                    \
                : "memory", "cc");                                                                                     \
            const double seconds = limit_seconds() - begin;                                                            \
            best = seconds < best ? seconds : best;                                                                    \
        }                                                                                                              \
        return 200000.0 * 4 * (each) / best;                                                                           \
    }
LIMIT_TILE_RATE(limit_tile_bf16, "tdpbf16ps", 8192)
LIMIT_TILE_RATE(limit_tile_int8, "tdpbssd", 16384)
#endif

#endif
