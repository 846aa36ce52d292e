/* The chain of chain.h with messages of any size. docs/proofs/joint-quantiles.md
 *
 * Messages have an exponent for each state, so that none is raised to a floor: the weight of each walk is right to the
 * margin, whatever the data are, also where states below the floors of chain.h have more outputs than all others together.
 * The same sums in the same order, a few times as slow.
 */
#ifndef DPFAST_WIDE_CHAIN_H
#define DPFAST_WIDE_CHAIN_H

#include "chain.h"
#include "wide.h"

#define DPFAST_MOST_RATE 0x1p30 /* exp(-rate) counts as exp(-2^30) for larger ones, to keep exponents in 64 bits */

typedef struct dpfast_wide_state {
    dpfast_wide value, gap, arrival; /* 0 for a state that does not exist or that no walk reaches */
} dpfast_wide_state;

/* The filters of chain.h. block: 2 size. */
static void dpfast_wide_filters(const dpfast_wide *f, ptrdiff_t size, ptrdiff_t d, const dpfast_wide *power,
                                dpfast_wide *left, dpfast_wide *right, dpfast_wide *block)
{
    const ptrdiff_t width = d - 1 < 1 ? 1 : d - 1 < size ? d - 1 : size;
    const dpfast_wide a = power[1];
    dpfast_wide *suffix = block, *prefix = block + size, sum = DPFAST_WIDE_ZERO;
    for (ptrdiff_t start = 0; start < size; start += width) {
        const ptrdiff_t end = start + width < size ? start + width : size;
        dpfast_wide after = DPFAST_WIDE_ZERO, before = DPFAST_WIDE_ZERO;
        for (ptrdiff_t p = start, q = end - 1; p < end; p++, q--) {
            left[p] = sum = dpfast_wide_plus(f[p], dpfast_wide_times(a, sum));
            suffix[q] = after = dpfast_wide_plus(f[q], dpfast_wide_times(a, after));
            prefix[p] = before = dpfast_wide_plus(before, dpfast_wide_times(power[p - start], f[p]));
        }
    }
    ptrdiff_t edge = width; /* the start of the block after that of p + 1 */
    for (ptrdiff_t p = 0; p < size; p++) {
        const ptrdiff_t stop = p + d - 1 < size - 1 ? p + d - 1 : size - 1;
        right[p] = stop > p ? dpfast_wide_times(a, suffix[p + 1]) : DPFAST_WIDE_ZERO;
        edge = edge > p + 1 ? edge : edge + width;
        if (stop >= edge)
            right[p] = dpfast_wide_plus(right[p], dpfast_wide_times(power[edge - p], prefix[stop]));
    }
}

/* longest[k], k = 0..count - 1: no run that ends with t in the gap of index open[k], and is longer, has 2^-88 of the term of
 * the runs of one target. widest: the weight of the widest gap. */
static void dpfast_wide_longest(const dpfast_target *t, double widest, const dpfast_wide *power, const int64_t *open,
                                ptrdiff_t count, int64_t *longest)
{
    dpfast_wide places =
        dpfast_wide_of(1.0); /* at least the weight of the places of a run, relative to its first one */
    for (ptrdiff_t k = 0; k < count; k++)
        longest[k] = 1;
    for (ptrdiff_t r = 1; r < t->free && t->first <= t[-r].last; r++) {
        const dpfast_target *s = t - r;
        places =
            dpfast_wide_times(places, dpfast_wide_of(t->measure ? widest : (widest + (double)r) / (double)(r + 1)));
        const int64_t least = -90 - places.exponent - power[t->rank - s->rank].exponent;
        for (ptrdiff_t k = 0; k < count && open[k] <= s->last; k++) {
            const int64_t own = t->wide[open[k] - t->first].arrival.exponent;
            longest[k] = s->wide[open[k] - s->first].arrival.exponent - own > least ? r + 1 : longest[k];
        }
    }
}

/* Terms of the runs of 1, 2, ... targets that end with t in gap i, as in dpfast_runs. */
static void dpfast_wide_runs(const dpfast_target *t, ptrdiff_t i, const dpfast_wide *power, ptrdiff_t runs,
                             dpfast_wide *terms)
{
    dpfast_gaps gaps;
    int64_t start;
    const int64_t w = dpfast_gap(t, i, &start);
    const double whole = dpfast_gap_weight(t, start, w);
    dpfast_wide places = dpfast_wide_of(whole);
    dpfast_read_gaps(t, i, 1, &whole, runs, &gaps);
    for (ptrdiff_t r = 0; r < runs; r++) {
        const dpfast_target *s = t - r;
        if (r > 0)
            places =
                dpfast_wide_times(places, dpfast_wide_of(t->measure ? whole : (whole + (double)r) / (double)(r + 1)));
        terms[r] =
            dpfast_wide_times(dpfast_wide_times(places, s->wide[i - s->first].arrival), power[t->rank - s->rank]);
        if (r > 0 && t->measure)
            terms[r] = dpfast_wide_times(terms[r], dpfast_wide_of(gaps.shares[r + 1][0]));
    }
}

/* The message of target t from that of t - 1. scratch: 6 (2 T + 1) + 2 numbers and 1 for each target. */
static void dpfast_wide_step(dpfast_target *t, const dpfast_wide *power, dpfast_wide *scratch)
{
    const dpfast_target *s = t - 1;
    const ptrdiff_t d = t->rank - s->rank, sources = s->last - s->first + 1;
    /* errors e = i - k as positions, as in dpfast_step */
    const ptrdiff_t from = s->first - s->rank < t->first - t->rank ? s->first - s->rank : t->first - t->rank;
    const ptrdiff_t to = s->last - s->rank > t->last - t->rank ? s->last - s->rank : t->last - t->rank;
    const ptrdiff_t size = to - from + 1, shift = s->rank + from - s->first;
    dpfast_wide *f = scratch, *left = f + size + 1, *right = left + size, *terms = right + 3 * size;
    int64_t *open = (int64_t *)(terms + t->free + 1), *longest = open + (t->last - t->first + 1);
    double widest = 1.0;
    ptrdiff_t count = 0; /* of the gaps that are open */

    for (ptrdiff_t p = 0; p < size; p++) {
        const ptrdiff_t j = p + shift;
        f[p] = j >= 0 && j < sources ? dpfast_wide_plus(s->wide[j].value, s->wide[j].gap) : DPFAST_WIDE_ZERO;
    }
    left[-1] = DPFAST_WIDE_ZERO;
    dpfast_wide_filters(f, size, d, power, left, right, right + size);
    for (ptrdiff_t i = t->first; i <= t->last; i++) {
        const ptrdiff_t p = i - t->rank - from, same = i - s->first; /* the source of cost 0, and that of index i */
        dpfast_wide_state *state = t->wide + (i - t->first);
        dpfast_wide at = DPFAST_WIDE_ZERO, meeting = at;
        if (same >= 0 && same < sources) {
            at = dpfast_wide_times(power[d], s->wide[same].value);
            meeting = dpfast_meets(t) ? dpfast_wide_times(power[d], f[p + d]) : at;
        }
        state->value = state->arrival = state->gap = DPFAST_WIDE_ZERO;
        if (dpfast_allowed(t, i)) {
            dpfast_wide value = f[p];
            if (dpfast_is_first(t, i))
                value = dpfast_wide_plus(value, dpfast_wide_times(power[1], left[p - 1]));
            if (dpfast_is_last(t, i))
                value = dpfast_wide_plus(value, dpfast_wide_plus(right[p], at));
            state->value = dpfast_wide_times(value, dpfast_wide_of(dpfast_point_weight(t, i)));
        }
        int64_t start;
        const int64_t w = dpfast_gap(t, i, &start);
        if (w > 0) {
            state->arrival =
                dpfast_wide_plus(dpfast_wide_times(power[2], left[p]), dpfast_wide_plus(right[p], meeting));
            widest = dpfast_larger(widest, dpfast_gap_weight(t, start, w));
            open[count++] = i;
        }
    }
    dpfast_wide_longest(t, widest, power, open, count, longest);
    for (ptrdiff_t k = 0; k < count; k++) {
        dpfast_wide *gap = &t->wide[open[k] - t->first].gap;
        dpfast_wide_runs(t, open[k], power, longest[k], terms);
        for (ptrdiff_t r = 0; r < longest[k]; r++)
            *gap = dpfast_wide_plus(*gap, terms[r]);
    }
}

/* The weights of the states of the last target, including the step to its rank. Returns their sum. */
static dpfast_wide dpfast_wide_ends(const dpfast_target *t, const dpfast_wide *power, dpfast_wide *weights)
{
    dpfast_wide total = DPFAST_WIDE_ZERO;
    for (ptrdiff_t i = t->first; i <= t->last; i++) {
        const dpfast_wide_state *state = t->wide + (i - t->first);
        const ptrdiff_t away = i < t->rank ? t->rank - i : i - t->rank;
        weights[i - t->first] = dpfast_wide_times(dpfast_wide_plus(state->value, state->gap), power[away]);
        total = dpfast_wide_plus(total, weights[i - t->first]);
    }
    return total;
}

/* The weights of the sources of state (i, kind) of target t, as in dpfast_sources. */
static ptrdiff_t dpfast_wide_sources(const dpfast_target *t, ptrdiff_t i, int is_gap, const dpfast_wide *power,
                                     dpfast_wide *weights, ptrdiff_t *source, int *only_value)
{
    const dpfast_target *s = t - 1;
    ptrdiff_t level;
    const ptrdiff_t n = dpfast_source_range(t, i, is_gap, source, &level, only_value);
    for (ptrdiff_t j = *source; j < *source + n; j++) {
        const dpfast_wide_state *state = s->wide + (j - s->first);
        const dpfast_wide mass = *only_value && j == i ? state->value : dpfast_wide_plus(state->value, state->gap);
        dpfast_wide weight = dpfast_wide_times(mass, power[j <= level ? level - j : j - level]);
        weights[j - *source] = is_gap && j <= level ? dpfast_wide_times(weight, power[2]) : weight;
    }
    return n;
}

#endif
