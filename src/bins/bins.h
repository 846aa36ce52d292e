/* Exact counts in the cells of a regular grid of bins, and uniform draws from cells. docs/proofs/histogram-bins.md
 *
 * A bin of an axis is a range of codes, and encoding is monotone: bin i holds the keys from a threshold on, the least
 * double whose code is the first code of the bin. Keys are not encoded. One product gives a guess, which is bin i or i
 * - 1 for every key of bin i; `bins_certified` checks this at the thresholds, which is enough because the guess is
 * monotone. One comparison with the next threshold decides. If the check fails (bounds far from 0 relative to their
 * width, or bins of barely more than one code), a search decides instead.
 */
#ifndef DPFAST_BINS_H
#define DPFAST_BINS_H

#include "draws.h"
#include "select.h"

#define BINS_BLOCK SELECT_BLOCK
/* Tables used in turn, so that increments of equal consecutive cells do not wait for one another. */
#define BINS_LANES 4

struct bins_axis {
    const double *thresholds; /* of bin i at [i], -inf at [0] and NaN at [bins] */
    double origin, scale;     /* the guess: (key - origin) * scale */
    double missing;           /* the key of a NaN */
    int32_t bins;
    int certified; /* whether every guess is right or one too low */
};

/* Clamped as a double, so that the conversion is defined; NaN to 0. */
static inline int32_t bins_guess(double key, double origin, double scale, double last)
{
    double place = (key - origin) * scale;
    place = place > 0.0 ? place : 0.0;
    place = place < last ? place : last;
    return (int32_t)place;
}

static int bins_certified(const struct bins_axis *axis)
{
    const double last = axis->bins - 1;
    for (int32_t i = 1; i < axis->bins; i++) {
        double threshold = axis->thresholds[i], below = nextafter(threshold, -INFINITY);
        if (bins_guess(threshold, axis->origin, axis->scale, last) < i - 1
            || bins_guess(below, axis->origin, axis->scale, last) > i - 1)
            return 0;
    }
    return 1;
}

/* cells[i] = cells[i] * bins + the bin of keys[i], from a guess. */
DPFAST_CLONES
static void bins_locate_by_guess(const double *keys, ptrdiff_t count, const double *thresholds, double origin,
                                 double scale, double missing, int32_t bins, int32_t *cells)
{
    const double last = bins - 1;
    for (ptrdiff_t i = 0; i < count; i++) {
        double key = keys[i] == keys[i] ? keys[i] : missing;
        int32_t guess = bins_guess(key, origin, scale, last);
        cells[i] = cells[i] * bins + guess + (key >= thresholds[guess + 1]);
    }
}

static void bins_locate_by_search(const struct bins_axis *axis, const double *keys, ptrdiff_t count, int32_t *cells)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        double key = keys[i] == keys[i] ? keys[i] : axis->missing;
        int32_t low = 0, high = axis->bins - 1;
        while (low < high) {
            int32_t middle = low + (high - low + 1) / 2;
            if (key >= axis->thresholds[middle])
                low = middle;
            else
                high = middle - 1;
        }
        cells[i] = cells[i] * axis->bins + low;
    }
}

/* The cells of records start..start+count-1, count <= BINS_BLOCK, the last axis varying fastest. */
static void bins_locate(const struct select_keys *keys, const struct bins_axis *axes, int dimensions, ptrdiff_t start,
                        ptrdiff_t count, int32_t *cells)
{
    double buffer[BINS_BLOCK];
    memset(cells, 0, (size_t)count * sizeof *cells);
    for (int a = 0; a < dimensions; a++) {
        const double *x = buffer;
        if (keys[a].in_place)
            x = (const double *)keys[a].data + start;
        else
            select_load(&keys[a], start, count, buffer);
        if (axes[a].certified)
            bins_locate_by_guess(x, count, axes[a].thresholds, axes[a].origin, axes[a].scale, axes[a].missing,
                                 axes[a].bins, cells);
        else
            bins_locate_by_search(&axes[a], x, count, cells);
    }
}

/* Adds records start..stop-1, fewer than 2^32, to `lanes` tables of `size` counts. */
static void bins_count(const struct select_keys *keys, const struct bins_axis *axes, int dimensions, ptrdiff_t start,
                       ptrdiff_t stop, uint32_t *counts, ptrdiff_t size, int lanes)
{
    int32_t cells[BINS_BLOCK];
    uint32_t *second = counts + (lanes == BINS_LANES ? size : 0), *third = second + (second - counts);
    uint32_t *fourth = third + (second - counts);
    for (ptrdiff_t i = start; i < stop; i += BINS_BLOCK) {
        ptrdiff_t count = stop - i < BINS_BLOCK ? stop - i : BINS_BLOCK, j = 0;
        bins_locate(keys, axes, dimensions, i, count, cells);
        for (; j + 4 <= count; j += 4) {
            counts[cells[j]]++;
            second[cells[j + 1]]++;
            third[cells[j + 2]]++;
            fourth[cells[j + 3]]++;
        }
        for (; j < count; j++)
            counts[cells[j]]++;
    }
}

/* Uniform on 0..n-1 from a word already drawn; takes further words if Lemire's method rejects it (draws.h). */
static inline uint64_t bins_uniform(bitgen_t *source, uint64_t word, uint64_t n)
{
    unsigned __int128 product = (unsigned __int128)word * n;
    if (__builtin_expect((uint64_t)product < n, 0)) {
        uint64_t unfair = -n % n;
        while ((uint64_t)product < unfair)
            product = (unsigned __int128)source->next_uint64(source->state) * n;
    }
    return (uint64_t)(product >> 64);
}

/* A law on cells with integer weights: item i has the ranks cumulative[i - 1]..cumulative[i] - 1. */
struct bins_weights {
    const uint64_t *cumulative; /* increasing; the last is the total, below 2^63 */
    const int32_t *cells;
    const int32_t *guide; /* the item that has rank g << shift, at [g] */
    int shift;
    uint64_t total;
};

/* Law: cells, independent, each with probability weight / total, exactly. */
static void bins_draw_cells(bitgen_t *source, const struct bins_weights *law, const uint64_t *words, int32_t *cells,
                            ptrdiff_t n)
{
    const uint64_t *cumulative = law->cumulative;
    const int shift = law->shift;
    for (ptrdiff_t i = 0; i < n; i++) {
        uint64_t rank = bins_uniform(source, words[i], law->total);
        int32_t item = law->guide[rank >> shift];
        item += rank >= cumulative[item]; /* branch-free: the condition holds one time in four */
        while (rank >= cumulative[item])
            item++;
        cells[i] = law->cells[item];
    }
}

/* A uniform grid point of bin b: codes edges[b]..edges[b+1]-1; the last bin includes edges[bins]. */
static inline double bins_point(bitgen_t *source, uint64_t word, const int64_t *edges, int32_t b, int32_t bins,
                                int64_t first, double step)
{
    uint64_t width = (uint64_t)(edges[b + 1] - edges[b]) + (b == bins - 1);
    return (double)(first + edges[b] + (int64_t)bins_uniform(source, word, width)) * step;
}

/* Law: the coordinate, on one axis, of a uniform grid point of each cell. The bin of a cell is cell / divisor % bins, or
 * the cell itself for divisor 0; `edges` count from 0 as codes do from `first`. */
static void bins_draw_points(bitgen_t *source, const uint64_t *words, const int32_t *cells, ptrdiff_t n,
                             const int64_t *edges, int32_t bins, int32_t divisor, int64_t first, double step,
                             double *out, ptrdiff_t stride)
{
    if (divisor == 0)
        for (ptrdiff_t i = 0; i < n; i++)
            out[i * stride] = bins_point(source, words[i], edges, cells[i], bins, first, step);
    else
        for (ptrdiff_t i = 0; i < n; i++)
            out[i * stride] = bins_point(source, words[i], edges, cells[i] / divisor % bins, bins, first, step);
}

#endif
