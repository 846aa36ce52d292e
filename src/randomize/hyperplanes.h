/* The reports that support each cell of hash functions: sums over hyperplanes of vectors of digits, in integers.
 * docs/proofs/local-categories.md
 *
 * A table has an entry for each vector a of digits modulo a prime, the last digit first in memory, each offset b, and
 * each of `lanes` columns that are treated alike: the entries of one vector are `run` = prime * lanes neighbours.
 */
#ifndef DPFAST_HYPERPLANES_H
#define DPFAST_HYPERPLANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"

/* Bytes of entries that are added at once: rows of `room` may be read so far beyond their end. */
#define DPFAST_STRIP 256

#define DPFAST_COUNT uint8_t
#define DPFAST_OF(name) name##_8
#include "hyperplane_sums.h"
#define DPFAST_COUNT uint16_t
#define DPFAST_OF(name) name##_16
#include "hyperplane_sums.h"
#define DPFAST_COUNT uint32_t
#define DPFAST_OF(name) name##_32
#include "hyperplane_sums.h"

/* For each digit a != 0 and place below twice the prime, the digit v with a v + place = 0 modulo the prime. */
static void dpfast_roots(ptrdiff_t prime, uint8_t *roots)
{
    for (ptrdiff_t a = 1; a < prime; a++)
        for (ptrdiff_t v = 0; v < prime; v++)
            for (ptrdiff_t place = (prime - a * v % prime) % prime; place < 2 * prime; place += prime)
                roots[2 * a * prime + place] = (uint8_t)v;
}

/* out[v] += 1 for each cell v that the report (a, b) supports: a v + b modulo the prime is below `width`. The higher
 * digits of v give a height, the last one follows from it. `heights` has room for prime**(digits - 1) of them. */
DPFAST_CLONES static void dpfast_add_report(uint64_t a, uint64_t b, ptrdiff_t prime, int digits, ptrdiff_t width,
                                            const uint8_t *roots, uint16_t *heights, int64_t *out)
{
    const uint64_t last = a % prime;
    const uint8_t *root = roots + 2 * last * prime;
    ptrdiff_t size = 1;
    heights[0] = (uint16_t)b;
    for (int digit = 1; digit < digits; digit++, size *= prime) {
        a /= prime;
        for (ptrdiff_t v = 1, step = a % prime; v < prime; v++)
            for (ptrdiff_t i = 0; i < size; i++) {
                uint16_t height = (uint16_t)(heights[(v - 1) * size + i] + step);
                heights[v * size + i] = height >= prime ? (uint16_t)(height - prime) : height;
            }
    }
    if (last == 0) {
        for (ptrdiff_t i = 0; i < size; i++)
            for (ptrdiff_t v = 0; v < prime; v++)
                out[i * prime + v] += heights[i] < width;
        return;
    }
    for (ptrdiff_t h = 0; h < width; h++)
        for (ptrdiff_t i = 0; i < size; i++)
            out[i * prime + root[heights[i] + prime - h]] += 1;
}

/* The word number `number` of SplitMix64 from a seed: public. */
static inline uint64_t dpfast_mixed(uint64_t number, uint64_t seed)
{
    uint64_t z = seed + (number + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* A hash function, Thorup's pair-multiply-shift: three public words. */
typedef struct {
    uint64_t first, second, offset;
} dpfast_hash;

static inline dpfast_hash dpfast_hash_of(uint64_t number, uint64_t seed)
{
    uint64_t first = dpfast_mixed(3 * number, seed), second = dpfast_mixed(3 * number + 1, seed);
    return (dpfast_hash){first, second, dpfast_mixed(3 * number + 2, seed)};
}

static inline uint64_t dpfast_cell(dpfast_hash hash, uint64_t key, uint64_t buckets)
{
    uint64_t top = ((hash.first + key) * (hash.second + (key >> 32)) + hash.offset) >> 32;
    return (top * buckets) >> 32;
}

/* The product of two vectors of digits, modulo the prime. */
static inline uint64_t dpfast_product(uint64_t a, uint64_t v, uint64_t prime, int digits)
{
    uint64_t total = 0;
    for (int digit = 0; digit < digits; digit++, a /= prime, v /= prime)
        total += (a % prime) * (v % prime);
    return total % prime;
}

#endif
