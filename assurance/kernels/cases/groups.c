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

/* Each column is in order, and has each code as often as before. */
void check_sort_columns(void)
{
    int64_t rows[SIZE][DPFAST_ABREAST], sought = any_int64();
    const ptrdiff_t n = any_between(0, SIZE), l = any_between(0, DPFAST_ABREAST - 1);
    int before = 0, after = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        before += rows[i][l] == sought;
    dpfast_sort_columns(rows, n);
    for (ptrdiff_t i = 0; i < n; i++) {
        holds(i == 0 || rows[i - 1][l] <= rows[i][l]);
        after += rows[i][l] == sought;
    }
    holds(before == after);
}

/* Groups of few records, whose boxes have room: at most DPFAST_TOGETHER / 2 groups of at most DPFAST_TOGETHER records. */
void check_take_few(void)
{
    const ptrdiff_t groups = any_between(0, SIZE);
    int64_t offsets[SIZE + 1];
    for (ptrdiff_t g = 0; g <= groups; g++)
        requires(0 <= offsets[g] && offsets[g] < ((int64_t)1 << 62) && (g == 0 || offsets[g - 1] <= offsets[g]));
    const ptrdiff_t count = dpfast_take_few(offsets, groups);
    holds(0 <= count && count <= groups);
    for (ptrdiff_t g = 0; g < count; g++)
        holds(offsets[g + 1] - offsets[g] < DPFAST_FEW);
    holds(offsets[count] - offsets[0] + 2 * count <= DPFAST_TOGETHER);
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
    const ptrdiff_t levels = dpfast_group_levels(&plan, codes, 1, n, lower, upper, &depth);
    holds(0 <= levels && levels <= n && 0 <= depth && depth <= (n ? n - 1 : 0));
    for (ptrdiff_t t = 0; t < levels; t++) {
        holds(0 <= lower[t] && lower[t] <= upper[t] && upper[t] <= last);
        holds(t == 0 || (lower[t] <= lower[t - 1] && upper[t - 1] <= upper[t]));
    }
}
