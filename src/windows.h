/* Many windows of order statistics at once: one pass counts every key in one of 2^14 buckets of equal width, which tells
 * the buckets that meet a window; a second one copies their keys out. */
#ifndef DPFAST_WINDOWS_H
#define DPFAST_WINDOWS_H

#include "select.h"

#define WINDOWS_BUCKETS 16384   /* and one on each side, for keys beyond the ends */

struct windows_buckets {
    double lower, upper;        /* keys are clamped to these, */
    double step;                /* and rounded to multiples of step if step > 0 */
    double start, scale;        /* bucket 1 starts here; buckets for one unit of key / 2 */
};

/* Between the keys low and high. Halves, so that no difference overflows; subtraction and product are monotone. */
static struct windows_buckets windows_between(double low, double high, double lower, double upper, double step)
{
    double scale = (WINDOWS_BUCKETS - 1) / (0.5 * high - 0.5 * low);
    return (struct windows_buckets){lower, upper, step, 0.5 * low, scale < 1e300 ? scale : 1e300};
}

/* The bucket of each key, 0..WINDOWS_BUCKETS + 1; the keys are clamped and rounded in place. */
DPFAST_CLONES
static void windows_find(const struct windows_buckets *b, double *restrict keys, ptrdiff_t count, int32_t *restrict found)
{
    const double lower = b->lower, upper = b->upper, step = b->step, start = b->start, scale = b->scale;
    for (ptrdiff_t i = 0; i < count; i++) {
        double key = keys[i] < lower ? lower : keys[i];
        key = key > upper ? upper : key;
        keys[i] = key;
    }
    if (step > 0.0)
        for (ptrdiff_t i = 0; i < count; i++)
            keys[i] = __builtin_rint(keys[i] / step) * step + 0.0;
    for (ptrdiff_t i = 0; i < count; i++) {
        double place = (0.5 * keys[i] - start) * scale + 1.0;
        place = place < 0.0 ? 0.0 : place;
        found[i] = (int32_t)(place > WINDOWS_BUCKETS + 1 ? WINDOWS_BUCKETS + 1 : place);
    }
}

/* Counts the keys of records start..stop-1 in their buckets; `one` becomes a key of each. */
static void windows_count(const struct select_keys *keys, const struct windows_buckets *b, ptrdiff_t start,
                          ptrdiff_t stop, int64_t *counts, double *one)
{
    double block[SELECT_BLOCK];
    int32_t found[SELECT_BLOCK];
    for (ptrdiff_t i = start; i < stop; i += SELECT_BLOCK) {
        const ptrdiff_t count = stop - i < SELECT_BLOCK ? stop - i : SELECT_BLOCK;
        select_load_filled(keys, i, count, block);
        windows_find(b, block, count, found);
        for (ptrdiff_t k = 0; k < count; k++)
            counts[found[k]]++;
        if (b->step > 0.0)
            for (ptrdiff_t k = 0; k < count; k++)
                one[found[k]] = block[k];
    }
}

/* Copies the keys of marked buckets among records start..stop-1 to `room`. Returns how many: at most `capacity`, the
 * number known from the counts (less than all only if somebody writes to the records meanwhile). */
static ptrdiff_t windows_collect(const struct select_keys *keys, const struct windows_buckets *b, ptrdiff_t start,
                                 ptrdiff_t stop, const unsigned char *marked, double *room, ptrdiff_t capacity)
{
    double block[SELECT_BLOCK];
    int32_t found[SELECT_BLOCK];
    ptrdiff_t collected = 0;
    for (ptrdiff_t i = start; i < stop && collected <= capacity; i += SELECT_BLOCK) {
        const ptrdiff_t count = stop - i < SELECT_BLOCK ? stop - i : SELECT_BLOCK;
        select_load_filled(keys, i, count, block);
        windows_find(b, block, count, found);
        for (ptrdiff_t k = 0; k < count; k++) {
            room[collected] = block[k];     /* SELECT_BLOCK places beyond the capacity */
            collected += marked[found[k]];
        }
    }
    return collected < capacity ? collected : capacity;
}

#endif
