/* The attack ranges of a statistic of a small group of records. docs/proofs/groups.md, docs/proofs/monotone-statistics.md */
#ifndef DPFAST_RANKED_H
#define DPFAST_RANKED_H

#include <string.h>

#include "levels.h"

enum { DPFAST_SUM, DPFAST_DIFFERENCE, DPFAST_HUBER };

/* What is public of a group of n records: a row of int64. */
typedef struct {
    int64_t levels, first, last_rank, corner, last, radius;
} dpfast_ranked_size;

/* k gains - (sum of codes) + count theta - t far, which fits 64 bits where its terms may not: it is at most n k. */
static inline int64_t dpfast_clipped_sum(int64_t k, int64_t gains, int64_t codes, int64_t count, int64_t theta,
                                         int64_t t, int64_t far)
{
    return (int64_t)((__int128)k * gains + (__int128)count * theta + (__int128)t * far - codes);
}

/* What is known of the codes that are not at hand: `below` of them less than least - k, `above` greater than greatest + k,
 * `between` greater than greatest - k and less than least + k, of sum `total`; and least..greatest, which has all results.
 * If it is not 0..last, below and above are at least levels - 1. */
typedef struct {
    int64_t below, between, above, total, least, greatest;
} dpfast_huber_rest;

/* lower[t] and upper[t], t = 0..levels-1: the least theta in 0..last with sum clip(theta - x, -k, k) >= 0 after the t
 * greatest codes became 0, and after the t least became `last`. n sorted codes x are at hand, all of those from least - k
 * to greatest - k and from least + k to greatest + k; sums[i] is the sum of the codes before x[i].
 *
 * The sum is nondecreasing in theta, and linear between the points x - k, x + k, k for codes that became 0 and last - k for
 * those that became `last`. lower[t] falls with t, upper[t] rises, so theta moves over each point once: O(n + levels). */
static void dpfast_huber_ranges(const int64_t *x, const int64_t *sums, ptrdiff_t n, int64_t k, int64_t last,
                                const dpfast_huber_rest *rest, int64_t *lower, int64_t *upper, ptrdiff_t levels)
{
    const int64_t all = rest->below + rest->between + rest->above + n;
    ptrdiff_t before = n, until = n; /* the numbers of codes below theta - k, and below theta + k */
    int64_t theta = rest->greatest;  /* the sum is at least 0 */
    for (ptrdiff_t t = 0; t < levels; t++) {
        const ptrdiff_t m = n - (t > rest->above ? t - rest->above : 0);
        while (theta > 0) {
            while (before > 0 && x[before - 1] >= theta - k)
                before--;
            while (until > 0 && x[until - 1] >= theta + k)
                until--;
            const ptrdiff_t a = before < m ? before : m, b = until < m ? until : m;
            const int64_t count = rest->between + b - a, codes = rest->total + sums[b] - sums[a];
            const int64_t slope = count + (theta <= k ? t : 0);
            const int64_t far = theta < k ? theta : k, gains = 2 * (rest->below + a) + count - (all - t);
            const int64_t sum = dpfast_clipped_sum(k, gains, codes, count, theta, t, far);
            int64_t point = 0;
            point = a && x[a - 1] + k > point ? x[a - 1] + k : point;
            point = b && x[b - 1] - k > point ? x[b - 1] - k : point;
            point = t && k < theta && k > point ? k : point;
            if ((__int128)slope * (theta - point) > sum) {
                theta -= sum / slope;
                break;
            }
            theta = point;
        }
        lower[t] = theta;
    }
    before = until = 0;  /* the numbers of codes up to theta - k, and up to theta + k */
    theta = rest->least; /* the sum is below 0 before it */
    for (ptrdiff_t t = 0; t < levels; t++) {
        while (theta < last) {
            while (before < n && x[before] <= theta - k)
                before++;
            while (until < n && x[until] <= theta + k)
                until++;
            const ptrdiff_t gone = t > rest->below ? t - rest->below : 0;
            const ptrdiff_t a = before > gone ? before : gone, b = until > gone ? until : gone;
            const int64_t count = rest->between + b - a, codes = rest->total + sums[b] - sums[a];
            const int64_t far = last - theta < k ? last - theta : k, slope = count + (theta >= last - k ? t : 0);
            const int64_t gains = 2 * (rest->below + a) + count - (all + t);
            const int64_t sum = dpfast_clipped_sum(k, gains, codes, count, theta, -t, far);
            if (sum >= 0)
                break;
            int64_t point = last;
            point = a < n && x[a] + k < point ? x[a] + k : point;
            point = b < n && x[b] - k < point ? x[b] - k : point;
            point = t && last - k > theta && last - k < point ? last - k : point;
            if ((__int128)slope * (point - theta) >= -(__int128)sum) {
                theta += (-sum - 1) / slope + 1;
                break;
            }
            theta = point;
        }
        upper[t] = theta;
    }
}

/* The attack range of n sorted codes of 0..whole, which are followed and preceded by room for `levels` more codes. `scratch`
 * has room for n + 1 and for `levels` integers. */
static void dpfast_ranked_boxes(int kind, const dpfast_ranked_size *size, int64_t *codes, ptrdiff_t n, int64_t whole,
                                int64_t corner, int64_t *lower, int64_t *upper, int64_t *scratch)
{
    const ptrdiff_t levels = (ptrdiff_t)size->levels;
    const int64_t *low = codes + size->first - 1, *high = codes + size->last_rank - 1;
    if (kind == DPFAST_HUBER) {
        scratch[0] = 0;
        for (ptrdiff_t i = 0; i < n; i++)
            scratch[i + 1] = scratch[i] + codes[i];
        const dpfast_huber_rest none = {0, 0, 0, 0, 0, whole};
        dpfast_huber_ranges(codes, scratch, n, corner, whole, &none, lower, upper, levels);
        return;
    }
    for (ptrdiff_t t = 1; t <= levels; t++) {
        codes[-t] = 0;
        codes[n - 1 + t] = whole;
    }
    if (kind == DPFAST_SUM) {
        int64_t total = 0;
        for (const int64_t *code = low; code <= high; code++)
            total += *code;
        dpfast_shifted_sums(low, high, total, size->corner, lower, upper, levels);
    } else if (low == high) {
        memset(lower, 0, (size_t)levels * sizeof *lower);
        memset(upper, 0, (size_t)levels * sizeof *upper);
    } else {
        dpfast_difference_ranges(low, high, lower, upper, scratch, levels);
    }
}

#endif
