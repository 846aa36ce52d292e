/* Exact sums of codes, and of their squares, over keys clamped between two values. docs/proofs/exact-sums.md
 *
 * A code is below 2^52, so a block of 2048 codes sums to less than 2^63 and fits one unsigned word; blocks are added
 * in 128 bits, enough for 2^63 records of any grid. Integer sums have no rounding and do not depend on the order.
 */
#ifndef DPFAST_SUMS_H
#define DPFAST_SUMS_H

#include "grid.h"
#include "select.h"

#define SUMS_BLOCK SELECT_BLOCK
#define SUMS_HALF 26 /* a code is high 2^26 + low, both below 2^26 */

typedef unsigned __int128 sums_wide;
typedef __int128 sums_signed;

struct sums_moments {
    sums_wide sum, squares;
    ptrdiff_t absent; /* the number of NaN */
};

/* The sum of the codes of a block of keys clamped to low..high, NaN being `missing`. The bits of the double 2^52 +
 * code are those of 2^52 plus code: the bits are added, and the multiple of 2^52 is subtracted once, modulo 2^64. */
DPFAST_CLONES
static uint64_t sums_block(const double *x, ptrdiff_t count, double low, double high, double step, double missing,
                           double first)
{
    uint64_t sum = 0;
    for (ptrdiff_t i = 0; i < count; i++)
        sum += dpfast_bits(dpfast_code(x[i], low, high, step, missing, first) + 0x1p52);
    return sum - (uint64_t)count * dpfast_bits(0x1p52);
}

/* The same for the squares: high^2 2^52 + 2 high low 2^26 + low^2, each of the three sums below 2^63. */
DPFAST_CLONES
static sums_wide sums_block_squares(const double *x, ptrdiff_t count, double low, double high, double step,
                                    double missing, double first)
{
    uint64_t highs = 0, mixed = 0, lows = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        uint64_t code = dpfast_bits(dpfast_code(x[i], low, high, step, missing, first) + 0x1p52) & 0xFFFFFFFFFFFFFu;
        uint32_t upper = (uint32_t)(code >> SUMS_HALF), lower = (uint32_t)code & ((1u << SUMS_HALF) - 1);
        highs += (uint64_t)upper * upper;
        mixed += (uint64_t)upper * lower;
        lows += (uint64_t)lower * lower;
    }
    return ((sums_wide)highs << 2 * SUMS_HALF) + ((sums_wide)mixed << (SUMS_HALF + 1)) + lows;
}

/* The sum again, and the number of NaN, added to `absent`: in one loop, as a second one takes a quarter of the time. */
DPFAST_CLONES
static uint64_t sums_block_absent(const double *x, ptrdiff_t count, double low, double high, double step,
                                  double missing, double first, ptrdiff_t *absent)
{
    uint64_t sum = 0;
    int64_t unknown = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        sum += dpfast_bits(dpfast_code(x[i], low, high, step, missing, first) + 0x1p52);
        unknown += x[i] != x[i];
    }
    *absent += (ptrdiff_t)unknown;
    return sum - (uint64_t)count * dpfast_bits(0x1p52);
}

/* The keys of a block: in place, or in the buffer. */
static const double *sums_load(const struct select_keys *keys, ptrdiff_t start, ptrdiff_t count, double *buffer)
{
    if (keys->in_place)
        return (const double *)keys->data + start;
    select_load(keys, start, count, buffer);
    return buffer;
}

static inline double sums_within(const dpfast_grid *grid, double x)
{
    return x < grid->lower ? grid->lower : x > grid->upper ? grid->upper : x;
}

/* All over records start..stop-1 of any dtype, clamped to low <= high; squares and the number of NaN only if requested. */
static struct sums_moments sums_scan(const struct select_keys *keys, ptrdiff_t start, ptrdiff_t stop,
                                     const dpfast_grid *grid, double low, double high, int squares, int absent)
{
    const double step = grid->step, missing = grid->missing, first = grid->first;
    low = sums_within(grid, low);
    high = sums_within(grid, high);
    struct sums_moments total = {0, 0, 0};
    double buffer[SUMS_BLOCK];
    for (ptrdiff_t i = start; i < stop; i += SUMS_BLOCK) {
        ptrdiff_t count = stop - i < SUMS_BLOCK ? stop - i : SUMS_BLOCK;
        const double *x = sums_load(keys, i, count, buffer);
        total.sum += absent ? sums_block_absent(x, count, low, high, step, missing, first, &total.absent)
                            : sums_block(x, count, low, high, step, missing, first);
        if (squares)
            total.squares += sums_block_squares(x, count, low, high, step, missing, first);
    }
    return total;
}

/* A bracket, and the destination of the keys strictly inside it: worker w writes from room[w * (capacity + SELECT_BLOCK)]
 * on. */
struct sums_bracket {
    double low, high, *room;
    ptrdiff_t capacity;
};

/* One pass over the records for two brackets, low->high <= high->low, and, if requested, for the sum of the codes
 * clamped to the range between them. Blocks stay in the first-level cache for the three loops. */
static sums_wide sums_scan_between(const struct select_keys *keys, ptrdiff_t start, ptrdiff_t stop,
                                   const dpfast_grid *grid, const struct sums_bracket *low,
                                   const struct sums_bracket *high, int sums, ptrdiff_t worker,
                                   struct select_tally *tallies)
{
    const double left = sums_within(grid, low->high), right = sums_within(grid, high->low);
    double buffer[SUMS_BLOCK], *low_room = low->room + worker * (low->capacity + SELECT_BLOCK);
    double *high_room = high->room + worker * (high->capacity + SELECT_BLOCK);
    sums_wide total = 0;
    tallies[0] = tallies[1] = (struct select_tally){0};
    for (ptrdiff_t i = start; i < stop && !tallies[0].overflow && !tallies[1].overflow; i += SUMS_BLOCK) {
        ptrdiff_t count = stop - i < SUMS_BLOCK ? stop - i : SUMS_BLOCK;
        const double *x = sums_load(keys, i, count, buffer);
        select_scan_keys(x, count, low->low, low->high, &tallies[0], low_room, low->capacity);
        select_scan_keys(x, count, high->low, high->high, &tallies[1], high_room, high->capacity);
        if (sums)
            total += sums_block(x, count, left, right, grid->step, grid->missing, grid->first);
    }
    return total;
}

/* What turns the sum of codes clamped to the near end of a bracket, of code `bracket`, into the sum of codes clamped to
 * a window's last entry inside it, of code `window`, without the given number of ranks beyond that entry. `outer` keys
 * are beyond the bracket or at its far end; the `collected` ones inside sum to `inside` after the second clamping. The
 * products exceed 64 bits for some records, even if the sum between two windows does not. */
static sums_signed sums_correction(ptrdiff_t outer, ptrdiff_t collected, sums_wide inside, int64_t bracket,
                                   ptrdiff_t ranks, int64_t window)
{
    const sums_signed clamped = bracket, entry = window;
    return (sums_signed)inside - (outer + collected) * clamped + (outer - ranks) * entry;
}

#endif
