/* The density of records from counts of square-wave reports: expectation maximisation with smoothing (Li et al. 2020).
 *
 * Post-processing of public counts: no float here decides a privacy event. A report of cell i is one of the symbols i, ...,
 * i + width - 1, each with the probability `inside`, or one of the others, each with the probability `outside`. */
#ifndef DPFAST_SQUARE_H
#define DPFAST_SQUARE_H

#include <math.h>
#include <stddef.h>

#include "certified.h"

/* Prefix sums: sums[i] is that of the first i entries of x. */
static inline void square_sums(const double *x, ptrdiff_t n, double *sums)
{
    sums[0] = 0.0;
    for (ptrdiff_t i = 0; i < n; i++)
        sums[i + 1] = sums[i] + x[i];
}

/* The probability of each of the cells + width - 1 symbols, from prefix sums of the density. */
static inline void square_expected(const double *sums, ptrdiff_t cells, ptrdiff_t width, double inside, double outside,
                                   double *expected)
{
    for (ptrdiff_t j = 0; j < cells + width - 1; j++) {
        ptrdiff_t last = j + 1 < cells ? j + 1 : cells, first = j + 1 > width ? j + 1 - width : 0;
        expected[j] = outside * sums[cells] + (inside - outside) * (sums[last] - sums[first]);
    }
}

/* Average f over `span` neighbours, twice, the second time to the other side: a triangle of 2 span - 1 cells, which is
 * (1, 2, 1) / 4 for span 2. Beyond its ends f is its mirror image, so its sum remains. `sums` has room for
 * cells + 2 span - 1. Assumes 1 <= span <= cells. */
static inline void square_smooth(double *f, ptrdiff_t cells, ptrdiff_t span, double *sums)
{
    ptrdiff_t reach = span - 1;
    double *averages = f;
    sums[0] = 0.0;
    for (ptrdiff_t i = -reach; i < cells + reach; i++) {
        ptrdiff_t mirrored = i < 0 ? -1 - i : i < cells ? i : 2 * cells - 1 - i;
        sums[i + reach + 1] = sums[i + reach] + f[mirrored];
    }
    /* The average of the averages that begin at i - reach, ..., i is a difference of sums of sums. */
    double run = 0.0;
    for (ptrdiff_t i = 0; i <= reach; i++)
        run += sums[i + span] - sums[i];
    for (ptrdiff_t i = 0; i < cells; i++) {
        averages[i] = run / ((double)span * (double)span);
        if (i + 1 < cells)
            run += (sums[i + 1 + reach + span] - sums[i + 1 + reach]) - (sums[i + span] - sums[i]);
        if (run < 0.0)
            run = 0.0; /* a rounding error */
    }
}

/* Iterate from f until the logarithm of the likelihood changes by less than `tolerance`, at most `most` times; f, of
 * sum 1, becomes the density, and its likelihood is returned. `sums` has room for cells + 2 width + 2 span, `expected`
 * for cells + width - 1. */
static double square_maximise(const double *counts, ptrdiff_t cells, ptrdiff_t width, double inside, double outside,
                              ptrdiff_t span, double tolerance, ptrdiff_t most, double *f, double *sums,
                              double *expected)
{
    ptrdiff_t symbols = cells + width - 1;
    double previous = -INFINITY;
    for (ptrdiff_t round = 0;; round++) {
        double likelihood = 0.0, total = 0.0;
        square_sums(f, cells, sums);
        square_expected(sums, cells, width, inside, outside, expected);
        for (ptrdiff_t j = 0; j < symbols; j++)
            if (counts[j] > 0.0)
                likelihood += counts[j] * dpfast_log(expected[j]);
        if (fabs(likelihood - previous) < tolerance || round == most)
            return likelihood;
        previous = likelihood;
        for (ptrdiff_t j = 0; j < symbols; j++)
            expected[j] = counts[j] / expected[j];
        square_sums(expected, symbols, sums);
        for (ptrdiff_t i = 0; i < cells; i++) {
            f[i] *= outside * sums[symbols] + (inside - outside) * (sums[i + width] - sums[i]);
            total += f[i];
        }
        for (ptrdiff_t i = 0; i < cells; i++)
            f[i] /= total;
        square_smooth(f, cells, span, sums);
    }
}

#endif
