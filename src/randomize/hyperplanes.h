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

/* Entries that are added at once, in four variables that stay in registers of any width; gcc keeps an array of them in
 * memory, which takes many times as long. Rows of `room` may be read so far beyond their end. */
typedef uint32_t dpfast_strip __attribute__((vector_size(64), aligned(4), may_alias));
#define DPFAST_STRIP 64

/* Each entry of h becomes the number of reports with h + b modulo the prime below `width`, for each of `vectors` of
 * digits. */
DPFAST_CLONES static void dpfast_near(uint32_t *table, ptrdiff_t vectors, ptrdiff_t prime, ptrdiff_t width,
                                      ptrdiff_t lanes, uint32_t *room)
{
    const ptrdiff_t run = prime * lanes;
    for (ptrdiff_t a = 0; a < vectors; a++) {
        uint32_t *row = table + a * run;
        memcpy(room, row, (size_t)run * sizeof *row);
        memset(row, 0, (size_t)lanes * sizeof *row);
        for (ptrdiff_t b = 0; b < width; b++)
            for (ptrdiff_t l = 0; l < lanes; l++)
                row[l] += room[b * lanes + l];
        for (ptrdiff_t h = 1; h < prime; h++) { /* b = -h enters, b = width - h leaves */
            const uint32_t *in = room + (prime - h) * lanes;
            const uint32_t *out = room + (width >= h ? width - h : width - h + prime) * lanes;
            for (ptrdiff_t l = 0; l < lanes; l++)
                row[h * lanes + l] = row[(h - 1) * lanes + l] + in[l] - out[l];
        }
    }
}

/* out[i] = the sum over digits a of rows[a][i], i < n. */
static inline __attribute__((always_inline)) void dpfast_add_rows(const uint32_t *const *rows, ptrdiff_t prime,
                                                                  ptrdiff_t n, uint32_t *out)
{
    for (ptrdiff_t i = 0; i < n; i += DPFAST_STRIP) {
        dpfast_strip sums[4], first = {0}, second = {0}, third = {0}, fourth = {0};
        for (ptrdiff_t a = 0; a < prime; a++) {
            const dpfast_strip *row = (const dpfast_strip *)(rows[a] + i);
            first += row[0], second += row[1], third += row[2], fourth += row[3];
        }
        sums[0] = first, sums[1] = second, sums[2] = third, sums[3] = fourth;
        memcpy(out + i, sums, (size_t)(n - i < DPFAST_STRIP ? n - i : DPFAST_STRIP) * sizeof *out);
    }
}

/* Replace one digit a of the vectors, with `before` vectors of higher digits and `after` of lower ones, by a digit v: the
 * entry of v and h becomes the sum over a of those of a and h + a v modulo the prime. With `only` just h = 0 is computed.
 *
 * `room` has prime rows of 2 run + DPFAST_STRIP entries, each with the entries of a digit twice, and `rows` prime. */
DPFAST_CLONES static void dpfast_sum_digit(uint32_t *table, ptrdiff_t before, ptrdiff_t prime, ptrdiff_t after,
                                           ptrdiff_t lanes, int only, uint32_t *room, const uint32_t **rows)
{
    const ptrdiff_t run = prime * lanes, stride = 2 * run + DPFAST_STRIP;
    for (ptrdiff_t block = 0; block < before * after; block++) {
        uint32_t *first = table + (block / after * prime * after + block % after) * run;
        for (ptrdiff_t a = 0; a < prime; a++) {
            memcpy(room + a * stride, first + a * after * run, (size_t)run * sizeof *room);
            memcpy(room + a * stride + run, first + a * after * run, (size_t)run * sizeof *room);
            rows[a] = room + a * stride;
        }
        for (ptrdiff_t v = 0; v < prime; v++) {
            dpfast_add_rows(rows, prime, only ? lanes : run, first + v * after * run);
            for (ptrdiff_t a = 0; a < prime; a++) {
                rows[a] += a * lanes;
                rows[a] -= rows[a] >= room + a * stride + run ? run : 0;
            }
        }
    }
}

/* All digits of vectors of `digits` of them, `size` vectors; the entries of the last one only for h = 0 if `only`. */
static void dpfast_sum_digits(uint32_t *table, ptrdiff_t size, ptrdiff_t prime, int digits, ptrdiff_t lanes, int only,
                              uint32_t *room, const uint32_t **rows)
{
    ptrdiff_t after = 1;
    for (int digit = 0; digit < digits; digit++, after *= prime)
        dpfast_sum_digit(table, size / after / prime, prime, after, lanes, only && digit == digits - 1, room, rows);
}

/* to[c][b][r] = from[r][c][b]: the higher digits r become lanes. */
static void dpfast_swap_digits(const uint32_t *from, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t prime, uint32_t *to)
{
    for (ptrdiff_t c = 0; c < columns; c++)
        for (ptrdiff_t b = 0; b < prime; b++)
            for (ptrdiff_t r = 0; r < rows; r++)
                to[(c * prime + b) * rows + r] = from[(r * columns + c) * prime + b];
}

/* to[c][b][r] = from[r][b][c]: lanes become digits, and digits lanes. */
static void dpfast_swap_lanes(const uint32_t *from, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t prime, uint32_t *to)
{
    for (ptrdiff_t c = 0; c < columns; c++)
        for (ptrdiff_t b = 0; b < prime; b++)
            for (ptrdiff_t r = 0; r < rows; r++)
                to[(c * prime + b) * rows + r] = from[(r * prime + b) * columns + c];
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
