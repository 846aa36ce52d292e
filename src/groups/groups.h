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
    ptrdiff_t cap;        /* of the levels */
    double rate, loss;    /* epsilon / 2, 1 - exp(-rate) */
    const double *powers; /* exp(-t rate), t = 0, 1, ... */
    const int64_t *ranks; /* of n = 0, 1, ... records; NULL if a record may be added or removed */
    uint64_t numerator;   /* then q = numerator 2^-shift, numerator < 2^53 */
    int shift;
    int above; /* whether q >= 1/2 */
    int deep;  /* whether depth counts */
    int flips; /* whether to draw by permute-and-flip */
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

#define DPFAST_FEW 16 /* groups of fewer records are sorted side by side */
#define DPFAST_ABREAST 32

/* Sort each column of the first `most` rows. */
DPFAST_CLONES static void dpfast_sort_columns(int64_t (*rows)[DPFAST_ABREAST], ptrdiff_t most)
{
    for (ptrdiff_t a = 0; a < most; a++)
        for (ptrdiff_t b = a + 1; b < most; b++) {
            int64_t *restrict low = rows[a], *restrict high = rows[b];
            for (ptrdiff_t l = 0; l < DPFAST_ABREAST; l++) {
                const int64_t x = low[l], y = high[l];
                low[l] = x < y ? x : y;
                high[l] = x < y ? y : x;
            }
        }
}

/* Boxes of the levels of n sorted codes, n >= 0, which are `apart` places apart. Returns the number of levels before "anywhere".
 *
 * If both ranks are outside 1..n, the level is "anywhere", and so are all later levels, which are merged into one, unless
 * each takes a word. This holds from some t <= n on, so `lower` and `upper` need room for max(n, 1) levels; *depth < n. */
static ptrdiff_t dpfast_group_levels(const dpfast_group_plan *plan, const int64_t *codes, ptrdiff_t apart, ptrdiff_t n,
                                     int64_t *lower, int64_t *upper, ptrdiff_t *depth)
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
        const int64_t first = low < 1 ? 0 : codes[(low - 1) * apart];
        const int64_t final = high > n ? last : codes[(high - 1) * apart];
        single &= first == final;
        *depth = single ? levels : *depth;
        lower[levels] = first > radius ? first - radius : 0;
        upper[levels] = last - final < radius ? last : final + radius;
    }
    return levels;
}

/* The running weights of the levels 0..levels, from `plan->powers` and the weights of the boxes. */
static void dpfast_group_cumulative(const dpfast_group_plan *plan, double *cumulative, ptrdiff_t levels,
                                    ptrdiff_t depth)
{
    const double at_first = levels ? cumulative[0] : 0.0;
    for (ptrdiff_t t = 0; t < levels; t++)
        cumulative[t] *= plan->powers[t + depth] * plan->loss;
    if (levels)
        cumulative[0] = at_first * (depth ? dpfast_one_minus_exp_neg((double)(depth + 1) * plan->rate) : plan->loss);
    cumulative[levels] = plan->powers[levels + depth] * (double)plan->measure->total;
    dpfast_level_sums(cumulative, levels);
}

/* The levels of several groups of fewer than DPFAST_FEW records: the boxes of group g, the last of them anywhere, are those
 * from start[g] to start[g + 1]. */
typedef struct {
    double cumulative[DPFAST_TOGETHER]; /* the running weights of each group, unless by permute-and-flip */
    int64_t codes[DPFAST_TOGETHER], lower[DPFAST_TOGETHER], upper[DPFAST_TOGETHER];
    int64_t columns[DPFAST_TOGETHER / 2 / DPFAST_ABREAST][DPFAST_FEW][DPFAST_ABREAST];
    dpfast_interval_counts counts;
    ptrdiff_t start[DPFAST_TOGETHER], depth[DPFAST_TOGETHER];
} dpfast_few_groups;

/* The number of groups from offsets[0] on, at most `groups`, that dpfast_prepare_few takes: until one has DPFAST_FEW
 * records, or their boxes, of which a group of n records has at most n + 2, may be too many. */
static inline ptrdiff_t dpfast_take_few(const int64_t *offsets, ptrdiff_t groups)
{
    ptrdiff_t count = 0, boxes = 0;
    for (; count < groups; count++) {
        const int64_t n = offsets[count + 1] - offsets[count];
        if (n >= DPFAST_FEW || (boxes += (ptrdiff_t)n + 2) > DPFAST_TOGETHER)
            break;
    }
    return count;
}

/* Fill `few` with the first groups, as many as dpfast_take_few says, and return their number. While no word decides between
 * them, a processor works on several groups at a time. Assumes a measure without a table, codes below 2^52. */
static ptrdiff_t dpfast_prepare_few(const dpfast_group_plan *plan, const double *values, const int64_t *offsets,
                                    ptrdiff_t groups, dpfast_few_groups *few)
{
    const ptrdiff_t count = dpfast_take_few(offsets, groups), tiles = (count + DPFAST_ABREAST - 1) / DPFAST_ABREAST;
    ptrdiff_t most[DPFAST_TOGETHER / 2 / DPFAST_ABREAST] = {0}, boxes = 0;
    dpfast_encode_array(&plan->grid, values + offsets[0], few->codes, (ptrdiff_t)(offsets[count] - offsets[0]));
    for (int64_t i = offsets[count]; i < offsets[groups] && i < offsets[count] + DPFAST_TOGETHER; i += 8)
        __builtin_prefetch(values + i);                                 /* of the next groups */
    memset(few->columns, 0x7f, (size_t)tiles * sizeof few->columns[0]); /* more than all codes */
    for (ptrdiff_t g = 0; g < count; g++) {
        const ptrdiff_t n = (ptrdiff_t)(offsets[g + 1] - offsets[g]), tile = g / DPFAST_ABREAST;
        const int64_t *codes = few->codes + (offsets[g] - offsets[0]);
        for (ptrdiff_t i = 0; i < n; i++)
            few->columns[tile][i][g % DPFAST_ABREAST] = codes[i];
        most[tile] = n > most[tile] ? n : most[tile];
    }
    for (ptrdiff_t tile = 0; tile < tiles; tile++)
        dpfast_sort_columns(few->columns[tile], most[tile]);
    few->start[0] = 0;
    for (ptrdiff_t g = 0; g < count; g++) {
        const int64_t *sorted = &few->columns[g / DPFAST_ABREAST][0][g % DPFAST_ABREAST];
        boxes += dpfast_group_levels(plan, sorted, DPFAST_ABREAST, (ptrdiff_t)(offsets[g + 1] - offsets[g]),
                                     few->lower + boxes, few->upper + boxes, &few->depth[g]);
        few->lower[boxes] = 0;
        few->upper[boxes] = plan->last;
        few->start[g + 1] = ++boxes;
    }
    if (plan->flips)
        return count;
    dpfast_counted_weights(plan->measure, few->lower, few->upper, boxes, &few->counts, few->cumulative);
    for (ptrdiff_t g = 0; g < count; g++)
        dpfast_group_cumulative(plan, few->cumulative + few->start[g], few->start[g + 1] - few->start[g] - 1,
                                few->depth[g]);
    return count;
}

#endif
