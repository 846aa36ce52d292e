/* Many windows of order statistics at once: one pass counts every key in one of 2^12 buckets of equal width and stores
 * its bucket in two bytes; the counts determine the buckets that intersect a window, whose keys are then copied. For many
 * keys and few windows, brackets from a sample come first, and copy the keys around the windows (brackets.h). */
#ifndef DPFAST_WINDOWS_H
#define DPFAST_WINDOWS_H

#include "select.h"

#define WINDOWS_BUCKETS 4096 /* and one on each side, for keys beyond the ends; their counts fit a first-level cache */
#define WINDOWS_POINTS 16384 /* buckets at most, if each is a point of a grid */
#define WINDOWS_COUNTED ((ptrdiff_t)1 << 31) /* keys counted at once: half the range of 32-bit counts */

struct windows_buckets {
    double lower, upper; /* keys are clamped to these, */
    double step;         /* and rounded to multiples of step if step > 0 */
    double start, scale; /* start of bucket 1, in half keys or in steps; buckets per such unit */
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

/* The bucket of each key, 0..WINDOWS_BUCKETS + 1, or of each point; NaN is `missing`. */
DPFAST_CLONES
static void windows_find(const struct windows_buckets *b, const double *restrict keys, ptrdiff_t count, double missing,
                         int32_t *restrict cells)
{
    const double lower = b->lower, upper = b->upper, step = b->step, start = b->start, scale = b->scale;
    if (step > 0.0) {
        for (ptrdiff_t i = 0; i < count; i++) {
            const double key = keys[i] == keys[i] ? keys[i] : missing;
            cells[i] = (int32_t)(__builtin_rint(select_clamp(key, lower, upper) / step) - start + 1.0);
        }
        return;
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        const double key = keys[i] == keys[i] ? keys[i] : missing;
        cells[i] = (int32_t)select_clamp((0.5 * key - start) * scale + 1.0, 0.0, WINDOWS_BUCKETS + 1);
    }
}

/* Adds the cells to two tables of counts, because equal neighbours would otherwise wait for one another, and stores them
 * in two bytes each. */
DPFAST_CLONES
static void windows_add(const int32_t *restrict cells, ptrdiff_t count, uint32_t *restrict counts,
                        uint32_t *restrict others, uint16_t *restrict found)
{
    for (ptrdiff_t i = 0; i < count; i++)
        found[i] = (uint16_t)cells[i];
    for (ptrdiff_t i = 0; i + 1 < count; i += 2) {
        counts[cells[i]]++;
        others[cells[i + 1]]++;
    }
    if (count % 2)
        counts[cells[count - 1]]++;
}

/* Finds and counts the buckets of records start..stop-1, fewer than 2^31. counts: two tables of `size`. */
static void windows_count(const struct select_keys *keys, const struct windows_buckets *b, ptrdiff_t start,
                          ptrdiff_t stop, uint16_t *found, uint32_t *counts, ptrdiff_t size)
{
    double block[SELECT_BLOCK];
    int32_t cells[SELECT_BLOCK];
    for (ptrdiff_t i = start; i < stop; i += SELECT_BLOCK) {
        const ptrdiff_t count = stop - i < SELECT_BLOCK ? stop - i : SELECT_BLOCK;
        const double *x = (const double *)keys->data + i;
        if (!keys->in_place) {
            select_load(keys, i, count, block);
            x = block;
        }
        windows_find(b, x, count, keys->missing, cells);
        windows_add(cells, count, counts, counts + size, found + i);
    }
}

/* Copies the keys of marked buckets among records start..stop-1 to `room`, clamped. Returns how many: `capacity`, known
 * from the counts. */
static ptrdiff_t windows_collect(const struct select_keys *keys, const struct windows_buckets *b, ptrdiff_t start,
                                 ptrdiff_t stop, const uint16_t *found, const unsigned char *marked, double *room,
                                 ptrdiff_t capacity)
{
    const double lower = b->lower, upper = b->upper, missing = keys->missing;
    double kept[SELECT_BLOCK];
    ptrdiff_t collected = 0;
    for (ptrdiff_t i = start; i < stop; i += SELECT_BLOCK) {
        const ptrdiff_t count = stop - i < SELECT_BLOCK ? stop - i : SELECT_BLOCK;
        const ptrdiff_t some = select_marked(keys, i, count, found + i, marked, kept, capacity - collected);
        for (ptrdiff_t k = 0; k < some; k++)
            room[collected + k] = select_clamp(kept[k] == kept[k] ? kept[k] : missing, lower, upper);
        collected += some;
    }
    return collected;
}

#endif
