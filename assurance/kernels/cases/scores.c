#include "prelude.h"
#include "scores.h"

/* Codes and knots below 2^52 in magnitude (score-laws.md), left < right: a flag is set where x + knot is inside. */
void check_scores_flag(void)
{
    int64_t codes[1] = {(int64_t)(any_uint64() >> 12)};
    const int64_t left = (int64_t)(any_uint64() >> 12), right = (int64_t)(any_uint64() >> 12);
    const int64_t knot = any_int64() >> 11;
    uint8_t flags[1] = {0};
    requires(left < right);
    scores_flag(codes, 1, knot, left, right, flags);
    holds(flags[0] == (left < codes[0] + knot && codes[0] + knot < right));
}

/* One term of the sum over a block: clip(theta - x - knot, 0, gap), no overflow. */
void check_scores_ramp(void)
{
    int64_t codes[SIZE], theta_less_knot = any_int64() >> 10, gap = (int64_t)(any_uint64() >> 11);
    for (int i = 0; i < SIZE; i++)
        requires(0 <= codes[i] && codes[i] < ((int64_t)1 << 52));
    holds(scores_ramp(codes, SIZE, theta_less_knot, gap) <= SIZE * (uint64_t)gap);
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
