#include "prelude.h"
#include "score_cells.h"

/* A magnitude below 2^53 lies in its cell, and the last bits of its double tell where. */
void check_scores_cell(void)
{
    const int fine = (int)(any_uint64() % 9);
    const int64_t magnitude = (int64_t)(any_uint64() >> 11);
    const uint64_t bits = dpfast_bits((double)magnitude);
    const int64_t cell = scores_cell_of(bits, fine), least = scores_least(cell, fine);
    holds(least <= magnitude && magnitude < scores_least(cell + 1, fine));
    const int64_t exponent = cell ? (cell - 1) >> fine : 0;
    holds(magnitude - least == (int64_t)((bits & ((UINT64_C(1) << (52 - fine)) - 1)) >> (52 - exponent)));
}

/* The number of edges up to a point, edges ascending. */
void check_edges_up_to(void)
{
    int64_t edges[SIZE];
    const int64_t theta = any_int64();
    for (int i = 1; i < SIZE; i++)
        requires(edges[i - 1] <= edges[i]);
    const scores_cut cut = {.edges = edges, .edge_count = SIZE};
    const ptrdiff_t found = scores_edges_up_to(&cut, theta);
    holds(0 <= found && found <= SIZE && (found == 0 || edges[found - 1] <= theta) && (found == SIZE || edges[found] > theta));
}

/* Rejection below a denominator of up to 2^110: masks and shifts, 0 < numerator <= denominator. */
void check_scores_bernoulli(void)
{
    bitgen_t source = source_of(2);
    const scores_wide numerator = any_wide(), denominator = any_wide();
    requires(0 < numerator && numerator <= denominator && denominator < (scores_wide)1 << 110);
    const int drawn = scores_bernoulli(&source, numerator, denominator);
    holds(drawn == 1 || (drawn == 0 && numerator < denominator));
}

/* Differences below 2^53 in magnitude: a bucket of the guide, monotone. */
void check_bucket(void)
{
    const int64_t a = any_int64(), b = any_int64(), most = (int64_t)1 << 53;
    requires(-most < a && a <= b && b < most);
    holds(0 <= scores_bucket(a) && scores_bucket(a) <= scores_bucket(b) && scores_bucket(b) < SCORES_BUCKETS);
}
