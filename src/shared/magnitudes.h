/* A base measure of floats, by magnitude: modest numbers and round numbers have more weight. docs/proofs/base-measures.md
 *
 * A point of a FloatGrid has an index, counted from 0.0, and the magnitude |index|. Magnitudes are in pieces: piece 0 is
 * 0, piece p up to `digits` the magnitudes of p bits, and each further piece the next 2^(digits - 1) of them, an octave
 * of values. All magnitudes of a piece have one weight, its slope, and the listed ones, the round numbers, have more.
 *
 * below(m), the weight of the magnitudes 0..m-1, is base + slope m, plus the weights of the round numbers below m. Buckets
 * find these in O(1): 2^fine equal parts of each piece but the first, or single magnitudes.
 */
#ifndef DPFAST_MAGNITUDES_H
#define DPFAST_MAGNITUDES_H

#include <stddef.h>
#include <stdint.h>

#include "draws.h"

#define DPFAST_ADDED_TOGETHER 32
#define DPFAST_BLOCK_OF_PIECES 32
#define DPFAST_FEW_POWERS 16
#define DPFAST_MOST_KINDS 128 /* of weights in a piece, to be counted before their powers are added */

typedef struct {
    uint64_t base, slope; /* modulo 2^64 */
} dpfast_piece;

typedef struct {
    int digits, fine;
    ptrdiff_t step;      /* a power of two: buckets hold fewer than twice as many round numbers */
    int64_t first, last; /* the buckets from that of the first round number to the one after that of the last */
    ptrdiff_t pieces;
    int64_t zero; /* the weight of 0 */
    const dpfast_piece *piece;
    const int64_t *edge;           /* below(the first magnitude) of each piece, and of the one after all pieces */
    const int64_t *held;           /* how many round numbers are below each piece, and in all */
    const int32_t *start;          /* how many are below each bucket first..last */
    const int64_t *point;          /* their magnitudes, ascending, then INT64_MAX 2 step times */
    const int64_t *before;         /* the weights of those before each of them, and of all */
    const int32_t *kind;           /* the kind of weight of each of them, of those of its piece */
    const int64_t *kinds;          /* for each piece and all, the place of its first kind of weight */
    ptrdiff_t most_kinds;          /* of a piece */
    const int64_t *weight, *count; /* each kind: a weight, and how many magnitudes of the piece have it */
    /* For each piece, the greatest weight in it and in the further pieces of its block of DPFAST_BLOCK_OF_PIECES, and the
     * sums of the powers 1..DPFAST_FEW_POWERS of the weights of their magnitudes over that one; for each block the same of
     * it and all further blocks. */
    const double *top, *tail, *block_top, *block_tail;
} dpfast_magnitudes;

/* The bucket of a magnitude below 2^53, in order; 0 is that of 0. */
static inline int64_t dpfast_bucket(const dpfast_magnitudes *f, int64_t m)
{
    const int64_t evenly = (int64_t)(dpfast_bits((double)m) >> (52 - f->fine)) - ((int64_t)1023 << f->fine) + 1;
    const int64_t octaves = (m >> (f->digits - 1 - f->fine)) + (((int64_t)f->digits - 2) * ((int64_t)1 << f->fine)) + 1;
    const int64_t bucket = m >> (f->digits - 1) ? octaves : evenly;
    return bucket < 0 ? 0 : bucket; /* the bits of 0.0 are 0 */
}

static inline ptrdiff_t dpfast_piece_of(const dpfast_magnitudes *f, int64_t bucket)
{
    return (ptrdiff_t)((bucket + ((int64_t)1 << f->fine) - 1) >> f->fine);
}

/* The first magnitude of a piece. */
static inline int64_t dpfast_first_of_piece(const dpfast_magnitudes *f, ptrdiff_t p)
{
    return p == 0 ? 0 : p <= f->digits ? (int64_t)1 << (p - 1) : (int64_t)(p - f->digits + 1) << (f->digits - 1);
}

/* How many round numbers are below m, which is in `bucket`. */
static inline ptrdiff_t dpfast_rounds_below(const dpfast_magnitudes *f, int64_t m, int64_t bucket)
{
    int64_t b = bucket < f->last ? bucket : f->last;
    b = b > f->first ? b - f->first : 0;
    ptrdiff_t j = f->start[b];
    for (ptrdiff_t step = f->step; step; step >>= 1) /* those after the bucket are not below m */
        j += f->point[j + step - 1] < m ? step : 0;
    return j;
}

/* below(m) */
static inline int64_t dpfast_below_magnitude(const dpfast_magnitudes *f, int64_t m)
{
    const int64_t bucket = dpfast_bucket(f, m);
    const dpfast_piece *piece = f->piece + dpfast_piece_of(f, bucket);
    return (int64_t)(piece->base + piece->slope * (uint64_t)m) + f->before[dpfast_rounds_below(f, m, bucket)];
}

/* The weight of the points from 0.0 to before an index, negative for those from a negative index on: weights are even. */
static inline int64_t dpfast_below_index(const dpfast_magnitudes *f, int64_t index)
{
    const int64_t below = dpfast_below_magnitude(f, index >= 0 ? index : 1 - index);
    return index >= 0 ? below : f->zero - below;
}

/* The magnitude m with below(m) <= place < below(m + 1). */
static int64_t dpfast_magnitude_at(const dpfast_magnitudes *f, int64_t place)
{
    ptrdiff_t p = 0, beyond = f->pieces;
    while (beyond - p > 1) {
        const ptrdiff_t middle = p + (beyond - p) / 2;
        if (f->edge[middle] <= place)
            p = middle;
        else
            beyond = middle;
    }
    const dpfast_piece *piece = f->piece + p;
    ptrdiff_t j = f->held[p], end = f->held[p + 1]; /* j: the round numbers m of the piece with below(m) <= place */
    while (j < end) {
        const ptrdiff_t middle = j + (end - j) / 2;
        if ((int64_t)(piece->base + piece->slope * (uint64_t)f->point[middle]) + f->before[middle] <= place)
            j = middle + 1;
        else
            end = middle;
    }
    const uint64_t evenly = (uint64_t)place - piece->base - (uint64_t)f->before[j];
    if (j > f->held[p] && (int64_t)(evenly - piece->slope * (uint64_t)(f->point[j - 1] + 1)) < 0)
        return f->point[j - 1];
    return (int64_t)(evenly / piece->slope);
}

/* The index i with below(i) <= place < below(i + 1), of the weights of dpfast_below_index. */
static int64_t dpfast_index_at(const dpfast_magnitudes *f, int64_t place)
{
    return place >= 0 ? dpfast_magnitude_at(f, place) : -dpfast_magnitude_at(f, f->zero - 1 - place);
}

/* Sums of powers, and the last few terms of each, which are added later: fewer additions in a row, less error. */
typedef struct {
    double *sums, *recent;
    ptrdiff_t count, apart, terms; /* the powers 1..count; sums are `apart` */
} dpfast_powers;

static inline void dpfast_settle(dpfast_powers *powers)
{
    for (ptrdiff_t k = 0; k < powers->count; k++) {
        powers->sums[k * powers->apart] += powers->recent[k];
        powers->recent[k] = 0.0;
    }
    powers->terms = 0;
}

/* Add `codes` times the powers of a share. */
static inline void dpfast_add_powers(dpfast_powers *powers, double share, double codes)
{
    double power = codes;
    for (ptrdiff_t k = 0; k < powers->count; k++)
        powers->recent[k] += power *= share;
    if (++powers->terms == DPFAST_ADDED_TOGETHER)
        dpfast_settle(powers);
}

/* Add sums of powers, of weights over `top`, as those of weights over `whole`, share = top / whole. */
static inline void dpfast_add_sums(dpfast_powers *powers, const double *sums, double share)
{
    double power = 1.0;
    for (ptrdiff_t k = 0; k < powers->count; k++)
        powers->recent[k] += sums[k] * (power *= share);
    if (++powers->terms == DPFAST_ADDED_TOGETHER)
        dpfast_settle(powers);
}

/* Add the powers of weight / whole of all magnitudes from piece p on. */
static void dpfast_add_tail(const dpfast_magnitudes *f, ptrdiff_t p, double whole, dpfast_powers *powers)
{
    const ptrdiff_t block = p / DPFAST_BLOCK_OF_PIECES + 1;
    if (p >= f->pieces)
        return;
    dpfast_add_sums(powers, f->tail + p * DPFAST_FEW_POWERS, f->top[p] / whole);
    if (block * DPFAST_BLOCK_OF_PIECES < f->pieces)
        dpfast_add_sums(powers, f->block_tail + block * DPFAST_FEW_POWERS, f->block_top[block] / whole);
}

/* Add the powers of weight / whole of the magnitudes low..high, if there are any. */
static void dpfast_add_magnitudes(const dpfast_magnitudes *f, int64_t low, int64_t high, double whole,
                                  dpfast_powers *powers)
{
    if (low > high)
        return;
    const ptrdiff_t end = dpfast_piece_of(f, dpfast_bucket(f, high));
    const int to_the_end = powers->count <= DPFAST_FEW_POWERS && high + 1 == dpfast_first_of_piece(f, f->pieces);
    for (ptrdiff_t p = dpfast_piece_of(f, dpfast_bucket(f, low)); p <= end; p++) {
        const int64_t start = dpfast_first_of_piece(f, p), stop = dpfast_first_of_piece(f, p + 1) - 1;
        if (to_the_end && low <= start) {
            dpfast_add_tail(f, p, whole, powers);
            return;
        }
        if (low <= start && stop <= high) {
            for (int64_t k = f->kinds[p]; k < f->kinds[p + 1]; k++)
                dpfast_add_powers(powers, (double)f->weight[k] / whole, (double)f->count[k]);
            continue;
        }
        const int64_t from = low > start ? low : start, to = high < stop ? high : stop;
        ptrdiff_t j = dpfast_rounds_below(f, from, dpfast_bucket(f, from));
        const ptrdiff_t beyond = dpfast_rounds_below(f, to + 1, dpfast_bucket(f, to + 1));
        dpfast_add_powers(powers, (double)f->piece[p].slope / whole, (double)(to - from + 1 - (beyond - j)));
        if (f->most_kinds > DPFAST_MOST_KINDS) {
            for (; j < beyond; j++) {
                const int64_t weight = (int64_t)f->piece[p].slope + f->before[j + 1] - f->before[j];
                dpfast_add_powers(powers, (double)weight / whole, 1.0);
            }
            continue;
        }
        int64_t counts[DPFAST_MOST_KINDS] = {0};
        for (; j < beyond; j++)
            counts[f->kind[j]]++;
        for (int64_t k = f->kinds[p]; k < f->kinds[p + 1]; k++)
            if (counts[k - f->kinds[p]])
                dpfast_add_powers(powers, (double)f->weight[k] / whole, (double)counts[k - f->kinds[p]]);
    }
}

#endif
