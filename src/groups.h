/* The levels of the nested-interval law of one quantile of a small group. docs/proofs/groups.md,
 * docs/proofs/add-remove.md */
#ifndef DPFAST_GROUPS_H
#define DPFAST_GROUPS_H

#include "grid.h"
#include "levels.h"

typedef struct {
    dpfast_grid grid;
    int64_t last, radius;
    const dpfast_measure *measure;
    ptrdiff_t cap;          /* of the levels */
    double loss;            /* 1 - exp(-epsilon / 2) */
    const double *powers;   /* exp(-t epsilon / 2), t = 0, 1, ... */
    const int64_t *ranks;   /* of n = 0, 1, ... records; NULL if a record may be added or removed */
    uint64_t numerator;     /* then q = numerator 2^-shift, numerator < 2^53 */
    int shift;
    int above;              /* whether q >= 1/2 */
} dpfast_group_plan;

/* floor(q m) and ceil(q m), 0 <= m < 2^62. */
static inline ptrdiff_t dpfast_floor_share(const dpfast_group_plan *plan, ptrdiff_t m)
{
    return plan->shift > 127 ? 0 : (ptrdiff_t)(((unsigned __int128)plan->numerator * (uint64_t)m) >> plan->shift);
}

static inline ptrdiff_t dpfast_ceil_share(const dpfast_group_plan *plan, ptrdiff_t m)
{
    unsigned __int128 product = (unsigned __int128)plan->numerator * (uint64_t)m;
    if (plan->shift > 127)
        return product > 0;
    return (ptrdiff_t)((product + (((unsigned __int128)1 << plan->shift) - 1)) >> plan->shift);
}

/* The ranks between which the points of score t lie: k - t and k + t; or ceil(q n - t c) and floor(q n + t c) + 1, c the
 * greater of q and 1 - q, for t <= n. */
static inline void dpfast_level_ranks(const dpfast_group_plan *plan, ptrdiff_t n, ptrdiff_t t, ptrdiff_t *low,
                                      ptrdiff_t *high)
{
    if (plan->ranks) {
        *low = (ptrdiff_t)plan->ranks[n] - t;
        *high = (ptrdiff_t)plan->ranks[n] + t;
    } else if (plan->above) {
        *low = dpfast_ceil_share(plan, n - t);
        *high = dpfast_floor_share(plan, n + t) + 1;
    } else {
        *low = dpfast_ceil_share(plan, n + t) - t;
        *high = dpfast_floor_share(plan, n - t) + t + 1;
    }
}

/* Boxes and running weights of the levels of n sorted codes, n >= 0. Returns the number of levels before "anywhere".
 *
 * If both ranks are outside 1..n, the level is "anywhere", and so are all later levels, which are merged into one. This
 * holds from some t <= n on, so `lower` and `upper` need room for n levels, `cumulative` and `plan->powers` for n + 1. */
static ptrdiff_t dpfast_group_levels(const dpfast_group_plan *plan, const int64_t *codes, ptrdiff_t n, int64_t *lower,
                                     int64_t *upper, double *cumulative)
{
    const int64_t last = plan->last, radius = plan->radius;
    dpfast_sum sum = {0.0, 0.0};
    ptrdiff_t levels = 0;
    for (; levels < plan->cap && levels < n; levels++) {
        ptrdiff_t low, high;
        dpfast_level_ranks(plan, n, levels, &low, &high);
        if (low < 1 && high > n)
            break;
        int64_t left = (low < 1 ? 0 : codes[low - 1]) - radius;
        lower[levels] = left > 0 ? left : 0;
        upper[levels] = high > n || last - codes[high - 1] < radius ? last : codes[high - 1] + radius;
    }
    dpfast_interval_weights(plan->measure, lower, upper, cumulative, levels);
    for (ptrdiff_t t = 0; t < levels; t++)
        cumulative[t] *= plan->powers[t] * plan->loss;
    cumulative[levels] = plan->powers[levels] * (double)plan->measure->total;
    for (ptrdiff_t t = 0; t <= levels; t++) {
        cumulative[t] = dpfast_add(&sum, cumulative[t]);
        if (t && cumulative[t] < cumulative[t - 1])
            cumulative[t] = cumulative[t - 1];
    }
    return levels;
}

#endif
