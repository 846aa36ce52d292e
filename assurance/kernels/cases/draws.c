#include "prelude.h"
#include "draws.h"

/* Lemire's method, 1 <= n < 2^SIZE: a number below n, at most one further word. */
void check_below(void)
{
    bitgen_t source = source_of(1);
    const uint64_t n = any_uint64(), word = any_uint64();
    requires(1 <= n && n < (uint64_t)1 << SIZE);
    holds(dpfast_below(&source, word, n) < n);
}

/* `dpfast_uniform` at ranges up to 2^SIZE, and at the full range of words. */
void check_uniform(void)
{
    bitgen_t source = source_of(2);
    const uint64_t last = any_uint64();
    requires(last < (uint64_t)1 << SIZE || last == UINT64_MAX);
    const uint64_t drawn = dpfast_uniform(&source, last);
    holds(drawn <= last && (last != UINT64_MAX || drawn == word_given));
}

/* `dpfast_bernoulli`: 0 <= numerator <= denominator, denominator > 0. */
void check_bernoulli(void)
{
    bitgen_t source = source_of(1);
    const uint64_t numerator = any_uint64(), denominator = any_uint64();
    requires(numerator <= denominator && 0 < denominator && denominator < (uint64_t)1 << SIZE);
    const int drawn = dpfast_bernoulli(&source, numerator, denominator);
    holds((drawn == 0 || drawn == 1) && (numerator > 0 || !drawn) && (numerator < denominator || drawn));
}

/* `dpfast_first_above`, n >= 1 nondecreasing doubles without NaN. */
void check_first_above(void)
{
    const ptrdiff_t n = any_between(1, SIZE);
    double *cumulative = room(double, n), target = any_double();
    for (ptrdiff_t i = 0; i < n; i++)
        requires(cumulative[i] == cumulative[i] && (i == 0 || cumulative[i - 1] <= cumulative[i]));
    const ptrdiff_t found = dpfast_first_above(target, cumulative, n);
    holds(0 <= found && found < n);
    holds(found == n - 1 || cumulative[found] > target);
    holds(found == 0 || !(cumulative[found - 1] > target));
}

void check_choose(void)
{
    const ptrdiff_t n = any_between(1, SIZE);
    double *weights = room(double, n), *cumulative = room(double, n);
    const ptrdiff_t chosen = dpfast_choose_weight(any_uint64(), weights, n, cumulative);
    holds(-1 <= chosen && chosen < n);
}

/* A draw of a scale in [2^34, 2^56], refined: of magnitude below 2^62, on its cell, with the sign of the coarse draw. */
void check_refined(void)
{
    const double scale = any_double();
    requires(0x1p34 <= scale && scale <= 0x1p56);
    const int halvings = dpfast_halvings(scale), symmetric = any_between(0, 1);
    holds(6 <= halvings && halvings <= 28);
    uint64_t word = any_uint64();
    int64_t draw = (int64_t)any_uint64();
    const int64_t coarse = draw;
    requires(symmetric || draw >= 0);
    if (dpfast_count_doubtful(&word, &draw, 1))
        return;
    dpfast_refine(&word, &draw, 1, halvings, symmetric);
    holds(draw == dpfast_refined(word, coarse, halvings, symmetric));
    const int64_t least = symmetric ? 2 * (coarse < 0 ? -coarse : coarse) - 1 : 2 * coarse;   /* in halves of a cell */
    const int64_t magnitude = coarse < 0 ? -draw : draw;
    holds(least * ((int64_t)1 << (halvings - 1)) <= magnitude);
    holds(magnitude <= (least + 2) * ((int64_t)1 << (halvings - 1)));
}
