/* Order statistics of a stream: records are counted by the leading digits of their grid codes, and in a later pass only
 * those that share the leading digits of a wanted rank are looked at again.
 *
 * Keys become codes in blocks that stay in the first-level cache; the codes of a chunk are never held together.
 */
#ifndef DPFAST_STREAM_H
#define DPFAST_STREAM_H

#include "grid.h"
#include "select.h"

#define STREAM_BLOCK SELECT_BLOCK
#define STREAM_LEVELS 4

/* 1 / step in two factors, each a double whatever the step. A product with a power of two is exact, or so small that it
 * rounds to 0 as the quotient does. */
struct stream_scale {
    double first, second;
};

static struct stream_scale stream_scale_of(double step)
{
    const int shift = ilogb(step), half = shift / 2;
    return (struct stream_scale){ldexp(1.0, -half), ldexp(1.0, half - shift)};
}

/* The code of a double, as a double, by products with 1 / step. */
static inline double stream_code(double x, double lower, double upper, double missing, double first, double scale,
                                 double scale_again)
{
    x = x == x ? x : missing;
    x = x > lower ? x : lower;
    x = x < upper ? x : upper;
    return __builtin_rint(x * scale * scale_again) - first;
}

/* The digits code >> shift of a block, below 2^31: a conversion truncates, and codes are not negative. */
DPFAST_CLONES
static void stream_digits(const double *restrict x, ptrdiff_t count, double lower, double upper, double missing,
                          double first, double scale, double scale_again, double shrink, uint32_t *restrict digits)
{
    for (ptrdiff_t i = 0; i < count; i++)
        digits[i] = (uint32_t)(int32_t)(stream_code(x[i], lower, upper, missing, first, scale, scale_again) * shrink);
}

static const double *stream_load(const struct select_keys *keys, ptrdiff_t start, ptrdiff_t count, double *buffer)
{
    if (keys->in_place)
        return (const double *)keys->data + start;
    select_load(keys, start, count, buffer);
    return buffer;
}

/* Adds every record to counts[code >> shift]. */
static void stream_count(const struct select_keys *keys, const dpfast_grid *g, int shift, int64_t *counts)
{
    const struct stream_scale scale = stream_scale_of(g->step);
    const double shrink = ldexp(1.0, -shift);
    double buffer[STREAM_BLOCK];
    uint32_t digits[STREAM_BLOCK];
    for (ptrdiff_t i = 0; i < keys->n; i += STREAM_BLOCK) {
        const ptrdiff_t count = keys->n - i < STREAM_BLOCK ? keys->n - i : STREAM_BLOCK;
        const double *x = stream_load(keys, i, count, buffer);
        stream_digits(x, count, g->lower, g->upper, g->missing, g->first, scale.first, scale.second, shrink,
                      digits);
        for (ptrdiff_t k = 0; k < count; k++)
            counts[digits[k]]++;
    }
}

/* What to do with the records of each cell of a level: nothing (0), copy their codes (1), or look at their next digit in
 * table `mark - 2` of the next level. A level but the first has a row of marks for each table. */
struct stream_level {
    const int32_t *marks;
    int shift, bits;      /* the digit: the last `bits` bits of code >> shift */
};

/* The cell of a code in table `mark - 2` of a level. */
static inline int64_t stream_cell(const struct stream_level *level, int32_t mark, int64_t code)
{
    return (int64_t)(mark - 2) << level->bits | (code >> level->shift & ((INT64_C(1) << level->bits) - 1));
}

/* Walks the records of marked cells down the levels; `any` says which cells of the first level are marked. Records that
 * arrive at the last level are added to its counts. Returns the number of codes copied, at most `capacity`. */
static ptrdiff_t stream_refine(const struct select_keys *keys, const dpfast_grid *g, const unsigned char *any,
                               const struct stream_level *levels, int depth, const struct stream_level *last,
                               int64_t *counts, int64_t *room, ptrdiff_t capacity)
{
    const struct stream_scale scale = stream_scale_of(g->step);
    const double shrink = ldexp(1.0, -levels->shift);
    double buffer[STREAM_BLOCK];
    uint32_t digits[STREAM_BLOCK + SELECT_CHUNK];
    ptrdiff_t copied = 0;
    for (ptrdiff_t i = 0; i < keys->n; i += STREAM_BLOCK) {
        const ptrdiff_t count = keys->n - i < STREAM_BLOCK ? keys->n - i : STREAM_BLOCK;
        const double *x = stream_load(keys, i, count, buffer);
        stream_digits(x, count, g->lower, g->upper, g->missing, g->first, scale.first, scale.second, shrink, digits);
        memset(digits + count, 0, SELECT_CHUNK * sizeof *digits);
        for (ptrdiff_t start = 0; start < count; start += SELECT_CHUNK) {
            unsigned char found = 0;
            for (int k = 0; k < SELECT_CHUNK; k++)
                found |= any[digits[start + k]];
            if (!found)
                continue;
            const ptrdiff_t stop = start + SELECT_CHUNK < count ? start + SELECT_CHUNK : count;
            for (ptrdiff_t k = start; k < stop; k++) {
                int32_t mark = levels->marks[digits[k]];
                if (!mark)
                    continue;
                const int64_t code = (int64_t)stream_code(x[k], g->lower, g->upper, g->missing, g->first, scale.first,
                                                          scale.second);
                for (int level = 1; level < depth && mark > 1; level++)
                    mark = levels[level].marks[stream_cell(&levels[level], mark, code)];
                if (mark > 1)
                    counts[stream_cell(last, mark, code)]++;
                else if (mark == 1 && copied < capacity)
                    room[copied++] = code;
            }
        }
    }
    return copied;
}

#endif
