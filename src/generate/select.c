#include "generate/select.h"

#include <stdbool.h>
#include <string.h>

uint64_t prg_select_key(float value, uint32_t index) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return ((uint64_t)bits << 32) | (uint32_t)~index;
}

uint32_t prg_select_index(uint64_t key) {
    return ~(uint32_t)key;
}

float prg_select_value(uint64_t key) {
    uint32_t bits = (uint32_t)(key >> 32);
    bits = bits & 0x80000000u ? bits & 0x7FFFFFFFu : ~bits;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void swap(uint64_t *a, uint64_t *b) {
    uint64_t t = *a;
    *a = *b;
    *b = t;
}

static uint64_t median(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

/* Greatest first around a pivot that is one of the keys; returns how many are at least the pivot's rank. */
static size_t divide(uint64_t *keys, size_t n) {
    uint64_t pivot = median(keys[0], keys[n / 2], keys[n - 1]);
    size_t i = 0, j = n - 1;
    for (;;) {
        while (keys[i] > pivot) {
            i++;
        }
        while (keys[j] < pivot) {
            j--;
        }
        if (i >= j) {
            return j + 1;
        }
        swap(&keys[i], &keys[j]);
        i++;
        j--;
    }
}

static void sift(uint64_t *keys, size_t at, size_t n) {
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && keys[child + 1] < keys[child]) {
            child++;
        }
        if (keys[at] <= keys[child]) {
            return;
        }
        swap(&keys[at], &keys[child]);
    }
}

/* Heap sort: no stack, no worst case. */
void prg_select_sort(uint64_t *keys, size_t n) {
    for (size_t i = n / 2; i-- > 0;) {
        sift(keys, i, n);
    }
    for (size_t i = n; i-- > 1;) {
        swap(&keys[0], &keys[i]);
        sift(keys, 0, i);
    }
}

/* The k greatest keys to the front. A run of unlucky pivots ends in a sort. */
static void partition(uint64_t *keys, size_t n, size_t k) {
    for (int rounds = 64; n > 1 && k > 0 && k < n; rounds--) {
        if (rounds == 0) {
            prg_select_sort(keys, n);
            return;
        }
        size_t front = divide(keys, n);
        if (front == n) { /* the pivot is the least: take it off */
            if (k == n - 1) {
                size_t least = 0;
                for (size_t i = 1; i < n; i++) {
                    least = keys[i] < keys[least] ? i : least;
                }
                swap(&keys[least], &keys[n - 1]);
                return;
            }
            prg_select_sort(keys, n);
            return;
        }
        if (k <= front) {
            n = front;
        } else {
            keys += front;
            n -= front;
            k -= front;
        }
    }
}

void prg_select_top(const float *values, size_t n, size_t k, uint64_t *keys) {
    if (k == 0) {
        return;
    }
    size_t held = 0;
    bool full = false;
    float floor = 0; /* the k-th of those seen at the last partition: later ones must be greater */
    for (size_t i = 0; i < n; i++) {
        float v = values[i];
        if (full && !(v > floor)) {
            continue;
        }
        keys[held++] = prg_select_key(v + 0.0f, (uint32_t)i);
        if (held == 2 * k) {
            partition(keys, held, k);
            held = k;
            uint64_t least = keys[0];
            for (size_t j = 1; j < k; j++) {
                least = keys[j] < least ? keys[j] : least;
            }
            floor = prg_select_value(least);
            full = true;
        }
    }
    partition(keys, held, k);
}

/* One digit of the search: the bits of a float >= 0 order like the float, so its digits are a radix. Sums the weights
 * by this digit and walks down from the greatest until `*target` is met; false if it never is. */
static bool search_digit(const float *weights, size_t n, unsigned shift, unsigned digit_bits, prg_mass_buckets *b,
                         double *target, uint32_t *digit) {
    uint32_t digits = 1u << digit_bits;
    memset(b->mass, 0, digits * sizeof *b->mass);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &weights[i], sizeof bits);
        b->mass[(bits >> shift) & (digits - 1)] += (double)weights[i];
    }
    uint32_t last = 0;
    for (uint32_t d = digits; d-- > 0;) {
        if (b->mass[d] == 0) {
            continue;
        }
        last = d;
        if (b->mass[d] >= *target) {
            *digit = d;
            return true;
        }
        *target -= b->mass[d];
    }
    *digit = last;
    *target = b->mass[last];
    return false;
}

/* The weights with this digit, to `out`, which may be `weights`. */
static size_t gather(const float *weights, size_t n, unsigned shift, uint32_t mask, uint32_t digit, float *out) {
    size_t held = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &weights[i], sizeof bits);
        float w = weights[i];
        out[held] = w; /* no branch: the digit is not to be guessed */
        held += ((bits >> shift) & mask) == digit;
    }
    return held;
}

size_t prg_select_mass(const float *weights, size_t n, double target, prg_mass_buckets *buckets, float *scratch,
                       float *floor) {
    uint32_t high, middle, low;
    *floor = 0;
    if (n == 0 || !search_digit(weights, n, 20, 12, buckets, &target, &high)) {
        return SIZE_MAX;
    }
    /* Below the first digit, rounding may leave a little of the target: then the least weight is the one. */
    n = gather(weights, n, 20, 0xFFF, high, scratch);
    (void)search_digit(scratch, n, 10, 10, buckets, &target, &middle);
    n = gather(scratch, n, 10, 0x3FF, middle, scratch);
    (void)search_digit(scratch, n, 0, 10, buckets, &target, &low);
    n = gather(scratch, n, 0, 0x3FF, low, scratch);
    uint32_t bits = high << 20 | middle << 10 | low;
    memcpy(floor, &bits, sizeof bits);
    size_t needed = 0;
    while (needed < n && target > 0) {
        target -= (double)*floor;
        needed++;
    }
    needed = needed > 0 ? needed : 1;
    return needed < n ? needed : SIZE_MAX;
}
