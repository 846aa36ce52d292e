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
    double rate, loss;      /* epsilon / 2, 1 - exp(-rate) */
    const double *powers;   /* exp(-t rate), t = 0, 1, ... */
    const int64_t *ranks;   /* of n = 0, 1, ... records; NULL if a record may be added or removed */
    uint64_t numerator;     /* then q = numerator 2^-shift, numerator < 2^53 */
    int shift;
    int above;              /* whether q >= 1/2 */
    int deep;               /* whether depth counts */
    int flips;              /* whether to draw by permute-and-flip */
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

/* n <= 16 codes below 2^52 in order: the rank of each is the number of smaller ones, in one pass for each. A code and its
 * place make a number, so that no two are equal. */
DPFAST_CLONES static void dpfast_sort_few(const int64_t *codes, ptrdiff_t n, int64_t *out)
{
    int64_t keys[DPFAST_FEW], ranks[DPFAST_FEW] = {0};
    for (ptrdiff_t i = 0; i < DPFAST_FEW; i++)
        keys[i] = i < n ? codes[i] << 4 | i : INT64_MAX;
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t k = 0; k < DPFAST_FEW; k++)
            ranks[k] += keys[i] < keys[k];
    for (ptrdiff_t i = 0; i < n; i++)
        out[ranks[i]] = codes[i];
}

/* Boxes of the levels of n sorted codes, n >= 0. Returns the number of levels before "anywhere".
 *
 * If both ranks are outside 1..n, the level is "anywhere", and so are all later levels, which are merged into one, unless
 * each takes a word. This holds from some t <= n on, so `lower` and `upper` need room for max(n, 1) levels; *depth < n. */
static ptrdiff_t dpfast_group_levels(const dpfast_group_plan *plan, const int64_t *codes, ptrdiff_t n, int64_t *lower,
                                     int64_t *upper, ptrdiff_t *depth)
{
    const int64_t last = plan->last, radius = plan->radius;
    const int merged = plan->ranks || !plan->flips;
    ptrdiff_t levels = 0;
    int single = plan->deep;
    *depth = 0;
    for (; levels < plan->cap && levels < (merged || n ? n : 1); levels++) {
        ptrdiff_t low, high;
        dpfast_level_ranks(plan, n, levels, &low, &high);
        if (merged && low < 1 && high > n)
            break;
        const int64_t first = low < 1 ? 0 : codes[low - 1], final = high > n ? last : codes[high - 1];
        single &= first == final;
        *depth = single ? levels : *depth;
        lower[levels] = first > radius ? first - radius : 0;
        upper[levels] = last - final < radius ? last : final + radius;
    }
    return levels;
}

/* The running weights of the levels 0..levels, from `plan->powers` and the weights of the boxes. */
static void dpfast_group_cumulative(const dpfast_group_plan *plan, double *cumulative, ptrdiff_t levels, ptrdiff_t depth)
{
    const double at_first = levels ? cumulative[0] : 0.0;
    for (ptrdiff_t t = 0; t < levels; t++)
        cumulative[t] *= plan->powers[t + depth] * plan->loss;
    if (levels)
        cumulative[0] = at_first * (depth ? dpfast_one_minus_exp_neg((double)(depth + 1) * plan->rate) : plan->loss);
    cumulative[levels] = plan->powers[levels + depth] * (double)plan->measure->total;
    dpfast_level_sums(cumulative, levels);
}

#endif
