#include "prelude.h"
#include "groups.h"

/* floor(q m) and ceil(q m), q = numerator 2^-shift < 1, numerator < 2^53 and 0 <= m < 2^62 (groups.h): no product or sum
 * wraps, and the results fit. */
void check_shares(void)
{
    const dpfast_group_plan plan = {.numerator = any_uint64() >> 11, .shift = any_int()};
    const ptrdiff_t m = (ptrdiff_t)(any_uint64() >> 2);
    requires(53 <= plan.shift);
    const ptrdiff_t down = dpfast_floor_share(&plan, m), up = dpfast_ceil_share(&plan, m);
    holds(0 <= down && 0 <= up);
}

/* In order, and as often as before. */
void check_sort_few(void)
{
    int64_t codes[SIZE], out[SIZE], sought = any_int64();
    const ptrdiff_t n = any_between(0, SIZE);
    int before = 0, after = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        requires(0 <= codes[i] && codes[i] < ((int64_t)1 << 52));
        before += codes[i] == sought;
    }
    dpfast_sort_few(codes, n, out);
    for (ptrdiff_t i = 0; i < n; i++) {
        holds(i == 0 || out[i - 1] <= out[i]);
        after += out[i] == sought;
    }
    holds(before == after);
}

/* Boxes of the levels of n sorted codes: ranks as `dpfast_level_ranks` gives them, room for max(n, 1) levels. */
void check_group_levels(void)
{
    const ptrdiff_t n = any_between(0, SIZE);
    const int64_t last = any_int64(), radius = any_int64();
    requires(0 <= last && last < ((int64_t)1 << 52) && 0 <= radius && radius <= last);
    int64_t *codes = room(int64_t, n), *lower = room(int64_t, n ? n : 1), *upper = room(int64_t, n ? n : 1), ranks[SIZE + 1];
    for (ptrdiff_t i = 0; i < n; i++)
        requires(0 <= codes[i] && codes[i] <= last && (i == 0 || codes[i - 1] <= codes[i]));
    for (ptrdiff_t i = 0; i <= SIZE; i++)
        requires(1 <= ranks[i] && ranks[i] <= (i ? i : 1));
    const dpfast_group_plan plan = {.last = last, .radius = radius, .cap = any_between(0, SIZE), .ranks = ranks,
                                    .deep = any_int() & 1, .flips = any_int() & 1};
    ptrdiff_t depth;
    const ptrdiff_t levels = dpfast_group_levels(&plan, codes, n, lower, upper, &depth);
    holds(0 <= levels && levels <= n && 0 <= depth && depth <= (n ? n - 1 : 0));
    for (ptrdiff_t t = 0; t < levels; t++) {
        holds(0 <= lower[t] && lower[t] <= upper[t] && upper[t] <= last);
        holds(t == 0 || (lower[t] <= lower[t - 1] && upper[t - 1] <= upper[t]));
    }
}
