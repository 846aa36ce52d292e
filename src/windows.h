/* Many windows of order statistics at once: one pass counts every key in one of 2^14 buckets of equal width and stores
 * its bucket in two bytes; the counts determine the buckets that intersect a window, whose keys are then copied. */
#ifndef DPFAST_WINDOWS_H
#define DPFAST_WINDOWS_H

#include "select.h"

#define WINDOWS_CHUNK 8         /* keys tested by one branch */
#define WINDOWS_BUCKETS 16384   /* and one on each side, for keys beyond the ends */

struct windows_buckets {
    double lower, upper;        /* keys are clamped to these, */
    double step;                /* and rounded to multiples of step if step > 0 */
    double start, scale;        /* start of bucket 1, in half keys or in steps; buckets per such unit */
};

/* Between the keys low and high. Halves avoid overflow of a difference; subtraction and product are monotone. */
static struct windows_buckets windows_between(double low, double high, double lower, double upper)
{
    double scale = (WINDOWS_BUCKETS - 1) / (0.5 * high - 0.5 * low);
    return (struct windows_buckets){lower, upper, 0.0, 0.5 * low, scale < 1e300 ? scale : 1e300};
}

/* One for each point of the grid, the bucket of lower + c step being c + 1: all exact, step being a power of two. Keys are
 * measured in steps, because half of a subnormal number may not be a double. */
static struct windows_buckets windows_of_points(double lower, double upper, double step)
{
    return (struct windows_buckets){lower, upper, step, lower / step, 1.0};
}

/* The bucket of each key, 0..WINDOWS_BUCKETS + 1. */
DPFAST_CLONES
static void windows_find(const struct windows_buckets *b, const double *restrict keys, ptrdiff_t count,
                         uint16_t *restrict found)
{
    const double lower = b->lower, upper = b->upper, step = b->step, start = b->start, scale = b->scale;
    if (step > 0.0) {
        for (ptrdiff_t i = 0; i < count; i++)
            found[i] = (uint16_t)(int32_t)(__builtin_rint(select_clamp(keys[i], lower, upper) / step) - start + 1.0);
        return;
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        double place = (0.5 * select_clamp(keys[i], lower, upper) - start) * scale + 1.0;
        place = place < 0.0 ? 0.0 : place;
        found[i] = (uint16_t)(int32_t)(place > WINDOWS_BUCKETS + 1 ? WINDOWS_BUCKETS + 1 : place);
    }
}

/* Finds and counts the buckets of records start..stop-1. Two tables of counts, because equal neighbours would otherwise
 * wait for one another. */
static void windows_count(const struct select_keys *keys, const struct windows_buckets *b, ptrdiff_t start,
                          ptrdiff_t stop, uint16_t *found, int64_t *counts)
{
    double block[SELECT_BLOCK];
    int64_t *others = counts + WINDOWS_BUCKETS + 2;
    for (ptrdiff_t i = start; i < stop; i += SELECT_BLOCK) {
        const ptrdiff_t count = stop - i < SELECT_BLOCK ? stop - i : SELECT_BLOCK;
        select_load_filled(keys, i, count, block);
        windows_find(b, block, count, found + i);
        for (ptrdiff_t k = 0; k + 1 < count; k += 2) {
            counts[found[i + k]]++;
            others[found[i + k + 1]]++;
        }
        if (count % 2)
            counts[found[i + count - 1]]++;
    }
}

/* Copies the keys of marked buckets among records start..stop-1 to `room`, clamped. Returns how many: `capacity`, known
 * from the counts. */
static ptrdiff_t windows_collect(const struct select_keys *keys, const struct windows_buckets *b, ptrdiff_t start,
                                 ptrdiff_t stop, const uint16_t *found, const unsigned char *marked, double *room,
                                 ptrdiff_t capacity)
{
    double chunk[WINDOWS_CHUNK];
    ptrdiff_t collected = 0;
    for (ptrdiff_t i = start; i < stop; i += WINDOWS_CHUNK) {
        const ptrdiff_t count = stop - i < WINDOWS_CHUNK ? stop - i : WINDOWS_CHUNK;
        unsigned char any = 0;
        for (ptrdiff_t k = 0; k < count; k++)
            any |= marked[found[i + k]];
        if (!any)
            continue;
        select_load_filled(keys, i, count, chunk);
        for (ptrdiff_t k = 0; k < count && collected < capacity; k++) {
            room[collected] = select_clamp(chunk[k], b->lower, b->upper);
            collected += marked[found[i + k]];
        }
    }
    return collected;
}

#endif
