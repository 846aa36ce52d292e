/* Joint inverse sensitivity of order statistics k_1 < ... < k_m as a chain. docs/proofs/joint-quantiles.md
 *
 * State of a target: an index i = 0..n and a kind: "value", the output is x_i and the walk stands at i, or "gap", the
 * output is one of the w integers strictly between x_i and x_(i+1), x_0 = -1, x_(n+1) = M + 1. A step from index i' to i
 * of the next target costs |i - z|, z = i' + d, d the difference of the ranks, and 2 more into a gap with z <= i; an
 * output of total cost c (|i - k_m| for the last included) has score c / 2 and weight a^c, a = exp(-epsilon / 4). A
 * message holds, for each state of one target, the weight of all walks that lead there.
 *
 * With a base measure, an output counts as often as the product of the weights of its entries, 1 each by default: a value
 * as often as it weighs, a run in a gap as often as the complete symmetric polynomial of the weights there.
 *
 * A pinned target is one whose outputs are lower..upper with lower = upper; free targets lie between pins.
 *
 * Floors. Weights of states that exist are kept above 2^-880 of the largest (2^-960 for arrivals, 2^-1020 for a choice):
 * no state is lost to underflow, and the coin at the end corrects weights that were raised. Where that would be most of
 * them, the chain of wide_chain.h takes over.
 */
#ifndef DPFAST_CHAIN_H
#define DPFAST_CHAIN_H

#include <math.h>

#include "measure.h"

#define DPFAST_STATE_FLOOR 0x1p-880
#define DPFAST_ARRIVAL_FLOOR 0x1p-960
#define DPFAST_CHOICE_FLOOR 0x1p-1020
#define DPFAST_MOST_FREE DPFAST_MOST_POWERS /* targets between pins, with a base measure */
#define DPFAST_MOST_LENGTHS 65536           /* of runs, beyond which none is left out */
#define DPFAST_PLAIN 1.0                    /* marks of states whose longer runs count: in doubles, */
#define DPFAST_SCALED 2.0                   /* or in doubles with exponents of their own */
#define DPFAST_MOST_FALL (-40) /* of the exponent from target to target: floors stay above the least normal double */

static inline double dpfast_larger(double x, double y)
{
    return x > y ? x : y;
}
static inline double dpfast_one_if(int condition)
{
    return dpfast_double(-(uint64_t)condition & dpfast_bits(1.0));
}

typedef struct {
    ptrdiff_t rank, first, last;   /* k; the window of indices, inside 0..n */
    int64_t lower, upper;          /* allowed range of the output */
    const int64_t *x;              /* x_i is x[i - first + 1], i = first - 1 .. last + 1 */
    double *value, *gap, *arrival; /* message of index i at i - first, in units of 2^exponent */
    int64_t exponent;
    struct dpfast_wide_state *wide; /* the message in a chain of wide_chain.h, which has none of the last four */
    const dpfast_measure *measure;  /* NULL if all weights are 1 */
    ptrdiff_t free;                 /* free targets since the last pin, this one included; 0 if pinned */
} dpfast_target;

/* Whether the chain has a step from gap i to gap i: at the ends of a run of free targets. */
static inline int dpfast_meets(const dpfast_target *t)
{
    return t->free <= 1;
}

static inline int dpfast_allowed(const dpfast_target *t, ptrdiff_t i)
{
    int64_t x = t->x[i - t->first + 1];
    return i >= 1 && t->lower <= x && x <= t->upper;
}

/* Whether x_i is the first (last) of its equal values. */
static inline int dpfast_is_first(const dpfast_target *t, ptrdiff_t i)
{
    return t->x[i - t->first] < t->x[i - t->first + 1];
}

static inline int dpfast_is_last(const dpfast_target *t, ptrdiff_t i)
{
    return t->x[i - t->first + 1] < t->x[i - t->first + 2];
}

/* The allowed part of gap i: w integers from *start on. */
static inline int64_t dpfast_gap(const dpfast_target *t, ptrdiff_t i, int64_t *start)
{
    int64_t low = t->x[i - t->first + 1] + 1, high = t->x[i - t->first + 2] - 1;
    low = low > t->lower ? low : t->lower;
    high = high < t->upper ? high : t->upper;
    *start = low;
    return high >= low ? high - low + 1 : 0;
}

/* left[p] = sum_{s <= p} f[s] a^(p-s), right[p] = sum_{p < s < p+d} f[s] a^(s-p): sums of positive terms only. The second
 * by blocks of d - 1 positions: to the end of the block of p + 1, and from the start of the next one. block: 2 size. */
static void dpfast_filters(const double *f, ptrdiff_t size, ptrdiff_t d, double a, const double *power, double *left,
                           double *right, double *block)
{
    const ptrdiff_t width = d - 1 < 1 ? 1 : d - 1 < size ? d - 1 : size;
    double *suffix = block, *prefix = block + size, sum = 0.0, back = 0.0;
    if (width == size) { /* one block; both sums in one loop, because each of their steps waits for the last */
        for (ptrdiff_t p = 0; p < size; p++) {
            const ptrdiff_t q = size - 1 - p;
            left[p] = sum = f[p] + a * sum;
            right[q] = a * back;
            back = f[q] + a * back;
        }
        return;
    }
    for (ptrdiff_t start = 0; start < size; start += width) {
        const ptrdiff_t end = start + width < size ? start + width : size;
        double after = 0.0, before = 0.0;
        for (ptrdiff_t p = start, q = end - 1; p < end; p++, q--) { /* three sums that do not wait for one another */
            left[p] = sum = f[p] + a * sum;
            suffix[q] = after = f[q] + a * after;
            prefix[p] = before = before + power[p - start] * f[p];
        }
    }
    ptrdiff_t edge = width; /* the start of the block after that of p + 1 */
    for (ptrdiff_t p = 0; p < size; p++) {
        const ptrdiff_t stop = p + d - 1 < size - 1 ? p + d - 1 : size - 1;
        right[p] = stop > p ? a * suffix[p + 1] : 0.0;
        edge = edge > p + 1 ? edge : edge + width;
        if (stop >= edge)
            right[p] += power[edge - p] * prefix[stop];
    }
}

/* The weight of x_i. */
static inline double dpfast_point_weight(const dpfast_target *t, ptrdiff_t i)
{
    const int64_t x = t->x[i - t->first + 1];
    return t->measure ? (double)dpfast_interval_weight(t->measure, x, x) : 1.0;
}

/* The weight of the w integers from `start`. */
static inline double dpfast_gap_weight(const dpfast_target *t, int64_t start, int64_t w)
{
    return (double)(t->measure ? dpfast_interval_weight(t->measure, start, start + w - 1) : w);
}

/* codes[j] = x_(first+j) + up, moved into lower..upper + 1, codes below 2^52. */
DPFAST_CLONES static void dpfast_clamp_codes(const dpfast_target *t, int64_t up, ptrdiff_t count, double *codes)
{
    const int64_t lower = t->lower, most = t->upper + 1, *x = t->x + 1;
    for (ptrdiff_t j = 0; j < count; j++) {
        int64_t code = x[j] + up > lower ? x[j] + up : lower;
        code = code < most ? code : most;
        codes[j] = dpfast_double((uint64_t)code | dpfast_bits(0x1p52)) - 0x1p52;
    }
}

/* The weights of the entries and of the gaps of the indices of a target, 0 where none is allowed: of codes up to one and
 * below the next, in vector loops if doubles hold all of these. below: for one more index. */
static void dpfast_state_weights(const dpfast_target *t, ptrdiff_t count, double *points, double *gaps, double *below)
{
    const dpfast_measure *measure = t->measure;
    if (t->upper >= (int64_t)1 << 51 || (measure && measure->total > (int64_t)1 << 52)) {
        for (ptrdiff_t j = 0; j < count; j++) {
            int64_t start;
            const int64_t w = dpfast_gap(t, t->first + j, &start);
            points[j] = dpfast_allowed(t, t->first + j) ? dpfast_point_weight(t, t->first + j) : 0.0;
            gaps[j] = w > 0 ? dpfast_gap_weight(t, start, w) : 0.0;
        }
        return;
    }
    dpfast_clamp_codes(t, 0, count + 1, below);
    dpfast_clamp_codes(t, 1, count, points);
    if (measure) {
        dpfast_weigh_below(measure, below, count + 1);
        dpfast_weigh_below(measure, points, count);
    }
    for (ptrdiff_t j = 0; j < count; j++) {
        gaps[j] = dpfast_larger(below[j + 1] - points[j], 0.0);
        points[j] -= below[j];
    }
}

/* x is the result times 2^*exponent; the result is x itself if that is at least 2^-100. */
static inline double dpfast_scaled(double x, int *exponent)
{
    *exponent = 0;
    return x < 0x1p-100 ? frexp(x, exponent) : x;
}

/* a^d is the result times 2^*exponent: a^d may be no double where the number of places makes up for it. */
static double dpfast_scaled_power(const double *power, ptrdiff_t d, int64_t *exponent)
{
    double product = 1.0;
    *exponent = 0;
    while (d > 0 && product > 0.0) {
        int shift;
        ptrdiff_t part = d;
        while (part > 1 && power[part] < 0x1p-800)
            part = (part + 1) / 2;
        product = dpfast_scaled(product * power[part], &shift);
        *exponent += shift;
        d -= part;
    }
    return product;
}

static inline int dpfast_shift(int64_t exponent)
{
    return (int)(exponent < -4000 ? -4000 : exponent > 4000 ? 4000 : exponent);
}

/* The gaps of LANES indices side by side, the last of them empty if there are fewer. */
typedef struct {
    dpfast_lanes whole;                        /* the weight of a gap, a divisor: 1 for an empty one */
    dpfast_lanes places;                       /* its weight */
    dpfast_lanes shares[DPFAST_MOST_FREE + 1]; /* h_r / whole^r if there is a measure; else unused */
} dpfast_gaps;

/* The gaps of n indices from i on, of the weights `whole`, for runs of up to `runs` targets. h_r is the sum of the weights
 * of all sorted places of r entries: r h_r = p_1 h_(r-1) + ... + p_r h_0, p_k the sum of the k-th powers of the weights. */
DPFAST_CLONES static void dpfast_read_gaps(const dpfast_target *t, ptrdiff_t i, ptrdiff_t n, const double *whole,
                                           ptrdiff_t runs, dpfast_gaps *gaps)
{
    dpfast_lanes sums[DPFAST_MOST_FREE];
    int64_t start[DPFAST_LANES], stop[DPFAST_LANES];
    for (ptrdiff_t l = 0; l < DPFAST_LANES; l++) {
        start[l] = 0;
        const int64_t w = l < n ? dpfast_gap(t, i + l, start + l) : 0;
        stop[l] = start[l] + w - 1;
        gaps->places[l] = w ? whole[l] : 0.0;
        gaps->whole[l] = w ? whole[l] : 1.0;
    }
    if (!t->measure)
        return;
    dpfast_power_sums(t->measure, start, stop, &gaps->whole, sums, runs);
    gaps->shares[0] = (dpfast_lanes){0.0} + 1.0;
    for (ptrdiff_t r = 1; r <= runs; r++) {
        dpfast_lanes share = {0.0};
        for (ptrdiff_t k = 0; k < r; k++)
            share += sums[k] * gaps->shares[r - 1 - k];
        gaps->shares[r] = share / (double)r;
    }
}

/* The number of targets that a run which ends with t in gap i can have. */
static inline ptrdiff_t dpfast_most_runs(const dpfast_target *t, ptrdiff_t i)
{
    ptrdiff_t runs = 1;
    while (runs < t->free && i <= t[-runs].last)
        runs++;
    return runs;
}

/* Terms of the runs of r = 1, 2, ... targets that end with t in gap i, which is in a lane of `gaps`: the sum of the weights
 * of all sorted places, the arrival of the first of them, a to the difference of ranks; in units of 2^unit. Returns their
 * number.
 *
 * The sum of the weights of all sorted places is C(w+r-1, r) if all weights are 1, else a share of the r-th power of the
 * weight of the gap. */
static ptrdiff_t dpfast_runs_in(const dpfast_target *t, ptrdiff_t i, const dpfast_gaps *gaps, ptrdiff_t lane,
                                const double *power, int64_t unit, double *terms)
{
    int64_t exponent = 0;
    double places = gaps->places[lane], share = 1.0;
    const double whole = gaps->whole[lane];
    const ptrdiff_t runs = dpfast_most_runs(t, i);
    terms[0] = t->arrival[i - t->first] * places;
    for (ptrdiff_t r = 1; r < runs; r++) {
        int shift;
        if (t->measure) {
            share = gaps->shares[r + 1][lane];
            places *= whole;
        } else {
            places = places * (whole + (double)r) / (double)(r + 1);
        }
        places = frexp(places, &shift);
        exponent += shift;
        int64_t falling;
        const double falls = dpfast_scaled_power(power, t->rank - t[-r].rank, &falling);
        const double first = dpfast_scaled(t[-r].arrival[i - t[-r].first], &shift);
        terms[r] =
            ldexp(places * share * first * falls, dpfast_shift(exponent + t[-r].exponent - unit + falling + shift));
    }
    return runs;
}

/* The same for one gap. */
static ptrdiff_t dpfast_runs(const dpfast_target *t, ptrdiff_t i, const double *power, int64_t unit, double *terms)
{
    dpfast_gaps gaps;
    int64_t start;
    const int64_t w = dpfast_gap(t, i, &start);
    const double whole = dpfast_gap_weight(t, start, w);
    dpfast_read_gaps(t, i, 1, &whole, dpfast_most_runs(t, i), &gaps);
    return dpfast_runs_in(t, i, &gaps, 0, power, unit, terms);
}

/* A length of the runs that end with some target. In a gap of w integers, with that target's own arrival, these runs have
 * less than 2^-70 of the term of the runs of one target if their arrival is at most `share` times its own, and less than
 * 2^-960 of the target's largest message if it is at most `least`. */
typedef struct {
    double factor; /* a to the difference of ranks, in units of the message; 0 if terms are not multiplied in doubles */
    double share, least;
} dpfast_length;

/* The lengths 2, 3, ... of the runs that end with t, up to the last that may count, and their number; -1 if they are too
 * many. Doubles hold the terms of the first *plain of them, but for those of factor 0. widest: the widest gap; largest: at
 * most the largest message of t. */
static ptrdiff_t dpfast_lengths(const dpfast_target *t, const double *power, double widest, double largest,
                                dpfast_length *lengths, ptrdiff_t *plain)
{
    double places = 1.0; /* times 2^exponent: at least the number of sorted places of the run over w */
    int64_t exponent = 0;
    ptrdiff_t count = 0;
    *plain = 0;
    for (ptrdiff_t r = 1; r < t->free && t->first <= t[-r].last; r++) {
        int shift;
        int64_t scale;
        const double falls = dpfast_scaled_power(power, t->rank - t[-r].rank, &scale);
        scale += t[-r].exponent - t[-1].exponent;
        places = frexp(places * (widest + (double)r), &shift);
        exponent += shift;
        if (falls == 0.0)
            break;
        if (count == DPFAST_MOST_LENGTHS)
            return -1;
        const double factor = ldexp(falls, dpfast_shift(scale)), most = places * falls; /* times 2^(exponent + scale) */
        const int unit = dpfast_shift(-exponent - scale);
        const int inside = exponent <= 900; /* the exponents do not fall */
        lengths[count++] = (dpfast_length){inside && scale <= 900 && factor >= 0x1p-960 ? factor : 0.0,
                                           ldexp(0x1p-71 / most, unit), /* a half of it, for the least doubles */
                                           ldexp(0x1p-961 * largest / (most * widest), unit)};
        *plain += inside;
    }
    while (count > 0 && lengths[count - 1].least >= 1.0) /* no arrival of a target is above 1 in its own units */
        count--;
    *plain = *plain < count ? *plain : count;
    return count;
}

/* Marks the states whose runs of some length count: n arrivals of theirs, and of the first targets of those runs. */
DPFAST_CLONES static void dpfast_mark(const double *arrival, const double *other, dpfast_length length, ptrdiff_t n,
                                      double *marks)
{
    const double mark = length.factor > 0.0 ? DPFAST_PLAIN : DPFAST_SCALED;
    for (ptrdiff_t j = 0; j < n; j++) {
        const double bound = length.share * arrival[j], most = bound > length.least ? bound : length.least;
        const double marked = marks[j] > mark ? marks[j] : mark;
        marks[j] = other[j] > most ? marked : marks[j];
    }
}

/* Adds the terms of the runs of 2..count + 1 targets in the gaps of n <= LANES indices from i on. */
DPFAST_CLONES static void dpfast_add_longer_runs(dpfast_target *t, ptrdiff_t i, ptrdiff_t n, const dpfast_gaps *gaps,
                                                 const dpfast_length *lengths, ptrdiff_t count)
{
    dpfast_lanes places = gaps->places, terms;
    double *gap = t->gap + (i - t->first);
    for (ptrdiff_t r = 1; r <= count && i <= t[-r].last; r++) {
        const double *arrival = t[-r].arrival + (i - t[-r].first), factor = lengths[r - 1].factor;
        const ptrdiff_t inside = t[-r].last - i + 1 < n ? t[-r].last - i + 1 : n;
        if (t->measure) {
            places *= gaps->whole;
            terms = places * gaps->shares[r + 1];
        } else {
            terms = places = places * (gaps->whole + (double)r) / (double)(r + 1);
        }
        for (ptrdiff_t l = 0; l < inside; l++)
            gap[l] += terms[l] * arrival[l] * factor;
    }
}

/* Adds the runs of two targets or more to the messages of t, which have the term of the runs of one. Returns the largest
 * message. gaps: their weights; marks: a double for each state; scratch: 4 for each target. */
static double dpfast_add_runs(dpfast_target *t, const double *power, const double *gaps, double widest, double largest,
                              double *marks, double *scratch)
{
    const ptrdiff_t end = (t->last < t[-1].last ? t->last : t[-1].last) - t->first + 1;
    dpfast_length *lengths = (dpfast_length *)scratch;
    double *terms = (double *)(lengths + t->free);
    ptrdiff_t plain;
    const ptrdiff_t count = dpfast_lengths(t, power, widest, largest, lengths, &plain);
    for (ptrdiff_t j = 0; j < end; j++)
        marks[j] = count < 0 ? DPFAST_SCALED : 0.0;
    for (ptrdiff_t r = 1; r <= count; r++) {
        const ptrdiff_t n = (t->last < t[-r].last ? t->last : t[-r].last) - t->first + 1;
        dpfast_mark(t->arrival, t[-r].arrival + (t->first - t[-r].first), lengths[r - 1], n, marks);
    }
    for (ptrdiff_t start = 0; start < end; start += DPFAST_LANES) {
        const ptrdiff_t n = end - start < DPFAST_LANES ? end - start : DPFAST_LANES, i = t->first + start;
        dpfast_gaps side_by_side;
        double mark = 0.0, ones[DPFAST_LANES], *gap = t->gap + start;
        for (ptrdiff_t l = 0; l < n; l++) {
            mark = dpfast_larger(mark, marks[start + l]);
            ones[l] = gap[l];
        }
        if (mark == 0.0)
            continue;
        dpfast_read_gaps(t, i, n, gaps + start, mark == DPFAST_PLAIN ? plain + 1 : dpfast_most_runs(t, i),
                         &side_by_side);
        dpfast_add_longer_runs(t, i, n, &side_by_side, lengths, plain);
        for (ptrdiff_t l = 0; l < n; l++) {
            if (marks[start + l] == DPFAST_SCALED && side_by_side.places[l] > 0.0) {
                const ptrdiff_t runs = dpfast_runs_in(t, i + l, &side_by_side, l, power, t[-1].exponent, terms);
                gap[l] = ones[l];
                for (ptrdiff_t r = 1; r < runs; r++)
                    gap[l] += terms[r];
            }
            largest = dpfast_larger(largest, gap[l]);
        }
    }
    return largest;
}

/* The part of a message that does not come from runs, for the states of index i = first + j, not yet in units of the
 * target: -1 for the value or the arrival of a state that does not exist. f, left and right begin at the source of j, left
 * with an entry before it. at, meeting: what comes from the same index; points, gaps: the weights of the places. Returns
 * the largest message, and *widest, the weight of the widest gap. */
DPFAST_CLONES static double dpfast_arrive(const dpfast_target *t, double a, const double *f, const double *left,
                                          const double *right, const double *at, const double *meeting,
                                          const double *points, const double *gaps, double *widest)
{
    const ptrdiff_t count = t->last - t->first + 1;
    const int64_t *x = t->x;
    double *value = t->value, *arrival = t->arrival, *gap = t->gap;
    for (ptrdiff_t j = 0; j < count; j++) {
        const double first = dpfast_one_if(x[j] < x[j + 1]), last = dpfast_one_if(x[j + 1] < x[j + 2]); /* of equals */
        value[j] = ((f[j] + first * (a * left[j - 1])) + last * (right[j] + at[j])) * points[j];
    }
    for (ptrdiff_t j = 0; j < count; j++) {
        arrival[j] = a * a * left[j] + (right[j] + meeting[j]);
        gap[j] = arrival[j] * gaps[j];
    }
    int64_t largest = 0, most = (int64_t)dpfast_bits(1.0); /* bits of doubles >= 0 are in their order */
    for (ptrdiff_t j = 0; j < count; j++) {
        const int64_t of_value = (int64_t)dpfast_bits(value[j]), of_gap = (int64_t)dpfast_bits(gap[j]);
        const int64_t larger = of_value > of_gap ? of_value : of_gap, weight = (int64_t)dpfast_bits(gaps[j]);
        value[j] = points[j] > 0.0 ? value[j] : -1.0;
        arrival[j] = gaps[j] > 0.0 ? arrival[j] : -1.0;
        largest = larger > largest ? larger : largest;
        most = weight > most ? weight : most;
    }
    *widest = dpfast_double((uint64_t)most);
    return dpfast_double((uint64_t)largest);
}

/* Messages in units of 2^exponent more than those of t - 1, raised to their floors. gaps: the weights of the gaps. */
DPFAST_CLONES static void dpfast_raise(dpfast_target *t, int exponent, const double *gaps)
{
    const ptrdiff_t count = t->last - t->first + 1;
    const double unit = ldexp(1.0, -exponent);
    double *restrict value = t->value, *restrict arrival = t->arrival, *restrict gap = t->gap;
    t->exponent = t[-1].exponent + exponent;
    for (ptrdiff_t j = 0; j < count; j++) {
        const double come = arrival[j] * unit, raised = dpfast_larger(value[j] * unit, DPFAST_STATE_FLOOR);
        const double more = come < DPFAST_ARRIVAL_FLOOR ? DPFAST_ARRIVAL_FLOOR * gaps[j] : 0.0;
        const double through = dpfast_larger(gap[j] * unit + more, DPFAST_STATE_FLOOR);
        value[j] = value[j] >= 0.0 ? raised : 0.0;
        gap[j] = arrival[j] >= 0.0 ? through : 0.0;
        arrival[j] = arrival[j] >= 0.0 ? dpfast_larger(come, DPFAST_ARRIVAL_FLOOR) : 0.0;
    }
}

/* Whether two targets have the same places, of the same weights. */
static inline int dpfast_looks_alike(const dpfast_target *t, const dpfast_target *s)
{
    const int bounds = t->lower == s->lower && t->upper == s->upper;
    return t->free > 1 && t->x == s->x && t->first == s->first && t->last == s->last && bounds;
}

/* The message of target t from that of t - 1, whose step used the same scratch before: 9 (2 T + 1) + 1 doubles and 4 for each
 * target. */
static void dpfast_step(dpfast_target *t, double a, const double *power, double *scratch)
{
    const dpfast_target *s = t - 1;
    const ptrdiff_t d = t->rank - s->rank, sources = s->last - s->first + 1;
    /* errors e = i - k as positions */
    const ptrdiff_t from = s->first - s->rank < t->first - t->rank ? s->first - s->rank : t->first - t->rank;
    const ptrdiff_t to = s->last - s->rank > t->last - t->rank ? s->last - s->rank : t->last - t->rank;
    const ptrdiff_t size = to - from + 1, count = t->last - t->first + 1;
    const ptrdiff_t shift = s->rank + from - s->first;  /* position p is entry p + shift of s, */
    const ptrdiff_t offset = t->first - t->rank - from; /* entry j of t is position j + offset */
    double *points = scratch, *gaps = points + count;   /* those of t - 1 are still there */
    double *f = gaps + count + 1, *left = f + size + 1, *right = left + size, *at = right + size, *meeting = at + size;
    double *terms = meeting + size;
    if (!dpfast_looks_alike(t, s))
        dpfast_state_weights(t, count, points, gaps, f);

    memset(f - 1, 0, (size + 2) * sizeof *f);
    for (ptrdiff_t j = shift > 0 ? shift : 0; j < sources && j - shift < size; j++)
        f[j - shift] = s->value[j] + s->gap[j];
    dpfast_filters(f, size, d, a, power, left, right, at);
    const ptrdiff_t level = offset + d,
                    ends = sources - shift < size ? sources - shift : size; /* entry j's own index in s */
    const int meets = dpfast_meets(t);
    memset(at, 0, 2 * size * sizeof *at);
    for (ptrdiff_t j = level + shift < 0 ? -level - shift : 0; j < count && j + level < ends; j++) {
        at[j] = power[d] * s->value[j + level + shift];
        meeting[j] = meets ? power[d] * f[j + level] : at[j];
    }

    double widest;
    double largest = dpfast_arrive(t, a, f + offset, left + offset, right + offset, at, meeting, points, gaps, &widest);
    if (t->free > 1)
        largest = dpfast_add_runs(t, power, gaps, widest, largest, f, terms);
    int exponent;
    frexp(largest, &exponent);
    dpfast_raise(t, exponent > DPFAST_MOST_FALL ? exponent : DPFAST_MOST_FALL, gaps);
}

/* The number of the n sorted codes that are at most `most`. */
static inline ptrdiff_t dpfast_up_to(const int64_t *codes, ptrdiff_t n, int64_t most)
{
    ptrdiff_t low = 0;
    while (n > 0) {
        const ptrdiff_t half = n / 2;
        const int inside = codes[low + half] <= most;
        low += inside ? half + 1 : 0;
        n = inside ? n - half - 1 : half;
    }
    return low;
}

/* Leaves out the indices of t at which no code from lower to upper can be. */
static void dpfast_narrow(dpfast_target *t)
{
    const int64_t *codes = t->x + 1; /* of the indices first..last */
    const ptrdiff_t count = t->last - t->first + 1, below = dpfast_up_to(codes, count, t->lower - 1);
    const ptrdiff_t inside = dpfast_up_to(codes, count, t->upper), cut = below > 1 ? below - 1 : 0;
    t->last = t->first + (inside > cut + 1 ? inside : cut + 1) - 1;
    t->first += cut;
    t->x += cut;
}

/* min(S(o), most), S(o) computed by the walk of the proof note; the targets 1..m after that of the start. */
static int64_t dpfast_score(const dpfast_target *t, ptrdiff_t m, const int64_t *o, int64_t most)
{
    int64_t cost = 0;
    ptrdiff_t i = 0, previous = 0;
    for (ptrdiff_t j = 1; j <= m; j++) {
        const ptrdiff_t z = i + t[j].rank - previous,
                        count = t[j].last - t[j].first + 3; /* x[0] is that of first - 1 */
        const ptrdiff_t below = t[j].first - 2 + dpfast_up_to(t[j].x, count, o[j - 1] - 1);
        const ptrdiff_t up_to = t[j].first - 2 + dpfast_up_to(t[j].x, count, o[j - 1]);
        if (up_to > below) {
            i = z > below + 1 ? z : below + 1;
            i = i < up_to ? i : up_to;
            cost += i > z ? i - z : z - i;
        } else {
            i = below;
            cost += z <= i ? i - z + 2 : z - i;
        }
        previous = t[j].rank;
    }
    cost += i > previous ? i - previous : previous - i;
    return cost / 2 < most ? cost / 2 : most;
}

static inline double dpfast_weight(double mass, double power)
{
    return mass > 0.0 ? dpfast_larger(mass * power, DPFAST_CHOICE_FLOOR) : 0.0;
}

/* The sources of state (i, kind) of target t: their number, *source, the index of the first, and *level, that of cost 0.
 * A last source at index i itself counts only as a value (*only_value), unless a gap may follow the same gap. */
static inline ptrdiff_t dpfast_source_range(const dpfast_target *t, ptrdiff_t i, int is_gap, ptrdiff_t *source,
                                            ptrdiff_t *level, int *only_value)
{
    const dpfast_target *s = t - 1;
    const int down = is_gap || dpfast_is_last(t, i), up = is_gap || dpfast_is_first(t, i);
    *level = i - (t->rank - s->rank);
    ptrdiff_t from = up ? s->first : *level, to = down ? i : *level;
    from = from > s->first ? from : s->first;
    to = to < s->last ? to : s->last;
    *source = from;
    *only_value = to == i && !(is_gap && dpfast_meets(t));
    return to >= from ? to - from + 1 : 0;
}

/* The weights of n sources: their messages times the powers from `first` on, which rise or fall, times `factor`. */
DPFAST_CLONES static void dpfast_weigh(const double *value, const double *gap, ptrdiff_t n, const double *power,
                                       ptrdiff_t first, int rises, double factor, double *weights)
{
    if (rises)
        for (ptrdiff_t j = 0; j < n; j++)
            weights[j] = dpfast_weight(value[j] + gap[j], power[first + j] * factor);
    else
        for (ptrdiff_t j = 0; j < n; j++)
            weights[j] = dpfast_weight(value[j] + gap[j], power[first - j] * factor);
}

/* The weights of these sources. */
static ptrdiff_t dpfast_sources(const dpfast_target *t, ptrdiff_t i, int is_gap, double a, const double *power,
                                double *weights, ptrdiff_t *source, int *only_value)
{
    const dpfast_target *s = t - 1;
    ptrdiff_t level;
    const ptrdiff_t n = dpfast_source_range(t, i, is_gap, source, &level, only_value), below = level - *source;
    const ptrdiff_t up = below < 0 ? 0 : below < n ? below + 1 : n; /* the number of sources up to the level */
    const double *value = s->value + (*source - s->first), *gap = s->gap + (*source - s->first);
    dpfast_weigh(value, gap, up, power, below, 0, is_gap ? a * a : 1.0, weights);
    dpfast_weigh(value + up, gap + up, n - up, power, up - below, 1, 1.0, weights + up);
    if (*only_value && n > 0) /* the gap of the last source does not count */
        weights[n - 1] = dpfast_weight(value[n - 1], power[i - level]);
    return n;
}

#endif
