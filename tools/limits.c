#include "limits.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { HUGE_PAGE = 2 << 20, LINE = 64, ROUNDS = 4, ACCUMULATORS = 12, STEPS = 8 << 20, MAX_THREADS = 256 };

typedef struct loops {
    const char *isa;
    size_t lanes; /* of float32 */
    /* Both return something that depends on all they did, so that nothing is left out. */
    uint64_t (*read)(const void *from, size_t lines);
    float (*multiply_add)(size_t steps); /* ACCUMULATORS * lanes each step */
} loops;

struct limits {
    unsigned char *map, *buffer;
    size_t map_size, size, threads;
};

static uint64_t read_plain(const void *from, size_t lines) {
    const uint64_t *at = from;
    uint64_t sum[8] = {0};
    for (size_t i = 0; i < lines; i++, at += 8) {
        for (size_t k = 0; k < 8; k++) {
            sum[k] ^= at[k];
        }
    }
    return sum[0] ^ sum[1] ^ sum[2] ^ sum[3] ^ sum[4] ^ sum[5] ^ sum[6] ^ sum[7];
}

/* A loop over the accumulators; the compiler keeps them in registers. */
#define MULTIPLY_ADD(type, start, fused, last)                                                                         \
    type sum[ACCUMULATORS];                                                                                            \
    type x = start;                                                                                                    \
    for (size_t k = 0; k < ACCUMULATORS; k++) {                                                                        \
        sum[k] = x;                                                                                                    \
    }                                                                                                                  \
    for (size_t i = 0; i < steps; i++) {                                                                               \
        _Pragma("GCC unroll 12") for (size_t k = 0; k < ACCUMULATORS; k++) {                                           \
            sum[k] = fused;                                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    float all = 0;                                                                                                     \
    for (size_t k = 0; k < ACCUMULATORS; k++) {                                                                        \
        all += last;                                                                                                   \
    }                                                                                                                  \
    return all

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static uint64_t read_avx512(const void *from, size_t lines) {
    const __m512i *at = from;
    __m512i a = _mm512_setzero_si512();
    __m512i b = a;
    __m512i c = a;
    __m512i d = a;
    for (size_t i = 0; i + 4 <= lines; i += 4, at += 4) {
        a = _mm512_xor_si512(a, _mm512_load_si512(at));
        b = _mm512_xor_si512(b, _mm512_load_si512(at + 1));
        c = _mm512_xor_si512(c, _mm512_load_si512(at + 2));
        d = _mm512_xor_si512(d, _mm512_load_si512(at + 3));
    }
    a = _mm512_xor_si512(_mm512_xor_si512(a, b), _mm512_xor_si512(c, d));
    return (uint64_t)_mm512_reduce_add_epi64(a);
}

__attribute__((target("avx512f"))) static float multiply_add_avx512(size_t steps) {
    MULTIPLY_ADD(__m512, _mm512_set1_ps(1e-4F), _mm512_fmadd_ps(x, x, sum[k]), _mm512_cvtss_f32(sum[k]));
}

__attribute__((target("avx2"))) static uint64_t read_avx2(const void *from, size_t lines) {
    const __m256i *at = from;
    __m256i a = _mm256_setzero_si256();
    __m256i b = a;
    __m256i c = a;
    __m256i d = a;
    for (size_t i = 0; i + 2 <= lines; i += 2, at += 4) {
        a = _mm256_xor_si256(a, _mm256_load_si256(at));
        b = _mm256_xor_si256(b, _mm256_load_si256(at + 1));
        c = _mm256_xor_si256(c, _mm256_load_si256(at + 2));
        d = _mm256_xor_si256(d, _mm256_load_si256(at + 3));
    }
    a = _mm256_xor_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(c, d));
    return (uint64_t)_mm256_extract_epi64(a, 0) ^ (uint64_t)_mm256_extract_epi64(a, 3);
}

__attribute__((target("avx2,fma"))) static float multiply_add_avx2(size_t steps) {
    MULTIPLY_ADD(__m256, _mm256_set1_ps(1e-4F), _mm256_fmadd_ps(x, x, sum[k]), _mm256_cvtss_f32(sum[k]));
}

static float multiply_add_plain(size_t steps) {
    MULTIPLY_ADD(__m128, _mm_set1_ps(1e-4F), _mm_add_ps(_mm_mul_ps(x, x), sum[k]), _mm_cvtss_f32(sum[k]));
}
#elif defined(__aarch64__)
static float multiply_add_plain(size_t steps) {
    MULTIPLY_ADD(float32x4_t, vdupq_n_f32(1e-4F), vfmaq_f32(sum[k], x, x), vgetq_lane_f32(sum[k], 0));
}
#else
static float multiply_add_plain(size_t steps) {
    MULTIPLY_ADD(float, 1e-4F, x *x + sum[k], sum[k]);
}
#endif

static const loops *pick(void) {
#if defined(__x86_64__)
    static const loops avx512 = {"avx512", 16, read_avx512, multiply_add_avx512};
    static const loops avx2 = {"avx2", 8, read_avx2, multiply_add_avx2};
    static const loops plain = {"sse2", 4, read_plain, multiply_add_plain};
    if (__builtin_cpu_supports("avx512f")) {
        return &avx512;
    }
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &avx2 : &plain;
#elif defined(__aarch64__)
    static const loops neon = {"neon", 4, read_plain, multiply_add_plain};
    return &neon;
#else
    static const loops plain = {"none", 1, read_plain, multiply_add_plain};
    return &plain;
#endif
}

const char *limits_isa(void) {
    return pick()->isa;
}

/* Of integers: in assembly, since a compiler takes products of the same registers out of the loop. */
typedef struct int8_loop {
    size_t each; /* multiply-adds of a step */
    void (*run)(size_t steps);
} int8_loop;

#if defined(__x86_64__)
#define AVX2_INT8(t, a)                                                                                                \
    "vpmaddubsw %%ymm1, %%ymm0, %%ymm" #t "\nvpmaddwd %%ymm2, %%ymm" #t ", %%ymm" #t "\nvpaddd %%ymm" #t ", %%ymm" #a  \
    ", %%ymm" #a "\n"

static void int8_avx2(size_t steps) {
    __asm__ volatile("vpxor %%ymm0, %%ymm0, %%ymm0\nvpxor %%ymm1, %%ymm1, %%ymm1\nvpxor %%ymm2, %%ymm2, %%ymm2\n1:\n" //
                     AVX2_INT8(3, 9) AVX2_INT8(4, 10) AVX2_INT8(5, 11) AVX2_INT8(6, 12) AVX2_INT8(7, 13)
                         AVX2_INT8(8, 14) "dec %0\njnz 1b\nvzeroupper\n"
                     : "+r"(steps)::"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                       "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "cc");
}

#define VNNI_INT8(a) "vpdpbusd %%zmm1, %%zmm0, %%zmm" #a "\n"

static void int8_vnni(size_t steps) {
    __asm__ volatile("vpxorq %%zmm0, %%zmm0, %%zmm0\nvpxorq %%zmm1, %%zmm1, %%zmm1\n1:\n" //
                     VNNI_INT8(2) VNNI_INT8(3) VNNI_INT8(4) VNNI_INT8(5) VNNI_INT8(6) VNNI_INT8(7) VNNI_INT8(8)
                         VNNI_INT8(9) VNNI_INT8(10) VNNI_INT8(11) VNNI_INT8(12)
                             VNNI_INT8(13) "dec %0\njnz 1b\nvzeroupper\n"
                     : "+r"(steps)::"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                       "xmm10", "xmm11", "xmm12", "xmm13", "cc");
}
#endif

/* NULL: none. */
static const int8_loop *pick_int8(void) {
#if defined(__x86_64__)
    static const int8_loop vnni = {(size_t)12 * 64, int8_vnni};
    static const int8_loop avx2 = {(size_t)6 * 32, int8_avx2};
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni")) {
        return &vnni;
    }
    return __builtin_cpu_supports("avx2") ? &avx2 : NULL;
#else
    return NULL;
#endif
}

typedef enum task { TASK_WRITE, TASK_READ, TASK_MULTIPLY_ADD, TASK_INT8 } task;

typedef struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    task what;
    unsigned char *from;
    size_t size;
    double begun, ended;
    volatile uint64_t sink;
} worker;

static void *work(void *user) {
    worker *w = user;
    const loops *l = pick();
    pthread_barrier_wait(w->start);
    w->begun = cli_now();
    if (w->what == TASK_WRITE) {
        memset(w->from, 0x5A, w->size);
    } else if (w->what == TASK_READ) {
        for (size_t i = 0; i < ROUNDS; i++) {
            w->sink ^= l->read(w->from, w->size / LINE);
        }
    } else if (w->what == TASK_MULTIPLY_ADD) {
        w->sink ^= l->multiply_add(STEPS) > 0;
    } else {
        pick_int8()->run(STEPS);
    }
    w->ended = cli_now();
    return NULL;
}

/* Seconds from the first start to the last end; 0 on failure. */
static double together(const limits *l, task what, size_t threads) {
    worker workers[MAX_THREADS];
    pthread_barrier_t start;
    threads = threads < l->threads ? threads : l->threads;
    if (pthread_barrier_init(&start, NULL, (unsigned)threads) != 0) {
        return 0;
    }
    size_t share = l->size / threads / HUGE_PAGE * HUGE_PAGE;
    for (size_t i = 0; i < threads; i++) {
        workers[i] = (worker){.start = &start, .what = what, .from = l->buffer + i * share, .size = share};
        if (i > 0 && pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            abort(); /* those that wait at the barrier could not be called back */
        }
    }
    work(&workers[0]);
    double begun = workers[0].begun;
    double ended = workers[0].ended;
    for (size_t i = 1; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        begun = workers[i].begun < begun ? workers[i].begun : begun;
        ended = workers[i].ended > ended ? workers[i].ended : ended;
    }
    pthread_barrier_destroy(&start);
    return ended - begun;
}

limits *limits_new(size_t threads) {
    limits *l = calloc(1, sizeof *l);
    if (!l) {
        return NULL;
    }
    /* threads beyond the processors would have their shares one after the other, and so from a cache */
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t most = processors > 0 && processors < MAX_THREADS ? (size_t)processors : MAX_THREADS;
    l->threads = threads < 1 ? 1 : threads > most ? most : threads;
    /* far more than the last cache, or some of it would be read from there */
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t wanted = cache > 0 ? (size_t)cache * 2 : 0;
    wanted = wanted > (256U << 20) ? wanted : 256U << 20;
    wanted = wanted < (512U << 20) ? wanted : 512U << 20;
    l->size = (wanted / l->threads / HUGE_PAGE + 1) * HUGE_PAGE * l->threads;
    l->map_size = l->size + HUGE_PAGE;
    l->map = mmap(NULL, l->map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (l->map == MAP_FAILED) {
        free(l);
        return NULL;
    }
    l->buffer = l->map + (HUGE_PAGE - (uintptr_t)l->map % HUGE_PAGE) % HUGE_PAGE;
    madvise(l->buffer, l->size, MADV_HUGEPAGE);
    together(l, TASK_WRITE, l->threads);
    return l;
}

void limits_free(limits *l) {
    if (l) {
        munmap(l->map, l->map_size);
        free(l);
    }
}

double limits_read(limits *l, size_t threads) {
    threads = threads < l->threads ? threads : l->threads;
    double seconds = together(l, TASK_READ, threads);
    size_t share = l->size / threads / HUGE_PAGE * HUGE_PAGE;
    return seconds > 0 ? (double)(share * threads * ROUNDS) / seconds : 0;
}

double limits_multiply_add(limits *l, size_t threads) {
    threads = threads < l->threads ? threads : l->threads;
    double seconds = together(l, TASK_MULTIPLY_ADD, threads);
    double count = (double)STEPS * ACCUMULATORS * (double)pick()->lanes * (double)threads;
    return seconds > 0 ? count / seconds : 0;
}

double limits_int8(limits *l, size_t threads) {
    const int8_loop *loop = pick_int8();
    if (!loop) {
        return 0;
    }
    threads = threads < l->threads ? threads : l->threads;
    double seconds = together(l, TASK_INT8, threads);
    return seconds > 0 ? (double)STEPS * (double)loop->each * (double)threads / seconds : 0;
}
