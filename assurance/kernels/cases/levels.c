#include "prelude.h"
#include "levels.h"

static int64_t any_code(void)
{
    const int64_t code = any_int64();
    requires(0 <= code && code < ((int64_t)1 << 52));
    return code;
}

/* low and high point to the middles of 2n - 1 sorted codes (_levels.pyx). */
void check_difference_ranges(void)
{
    const ptrdiff_t n = SIZE;
    int64_t low[2 * SIZE - 1], high[2 * SIZE - 1], lower[SIZE], upper[SIZE], scratch[SIZE];
    for (ptrdiff_t i = 0; i < 2 * n - 1; i++) {
        low[i] = any_code();
        high[i] = any_code();
        requires(low[i] <= high[i] && (i == 0 || (low[i - 1] <= low[i] && high[i - 1] <= high[i])));
    }
    dpfast_difference_ranges(low + n - 1, high + n - 1, lower, upper, scratch, n);
    holds(lower[0] == high[n - 1] - low[n - 1] && upper[0] == lower[0]);
    for (ptrdiff_t t = 1; t < n; t++)
        holds(0 <= lower[t] && lower[t] <= lower[t - 1] && upper[t - 1] <= upper[t]);
}

/* Sums of 1..SIZE sorted codes at each of n levels: nested boxes. */
void check_shifted_sums(void)
{
    const ptrdiff_t n = any_between(1, SIZE), records = any_between(1, SIZE);
    int64_t codes[3 * SIZE - 2], lower[SIZE], upper[SIZE], total = 0;
    const int64_t corner = any_between(0, 1);
    const int64_t *low = codes + n - 1, *high = low + records - 1;
    for (ptrdiff_t i = 0; i < 2 * n + records - 2; i++) {
        codes[i] = any_between(0, 7);
        requires(i == 0 || codes[i - 1] <= codes[i]);
    }
    for (ptrdiff_t i = 0; i < records; i++)
        total += low[i];
    dpfast_shifted_sums(low, high, total, corner, lower, upper, n);
    holds(lower[0] == upper[0]);
    for (ptrdiff_t t = 1; t < n; t++)
        holds(0 <= lower[t] && lower[t] <= lower[t - 1] && upper[t - 1] <= upper[t]);
}

void check_depth(void)
{
    const ptrdiff_t n = any_between(1, SIZE);
    int64_t lower[SIZE], upper[SIZE];
    const ptrdiff_t depth = dpfast_depth(lower, upper, n);
    holds(0 <= depth && depth < n);
}

/* low[0..n] nonincreasing, high[0..n] nondecreasing, low[0] <= high[0]: a gap holds the code strictly inside. */
void check_place_in_gap(void)
{
    const ptrdiff_t n = any_between(1, SIZE);
    int64_t low[SIZE + 1], high[SIZE + 1], code = any_code(), step, width;
    for (ptrdiff_t i = 0; i <= SIZE; i++) {
        low[i] = any_code();
        high[i] = any_code();
        requires(low[i] <= high[i] && (i == 0 || (low[i] <= low[i - 1] && high[i - 1] <= high[i])));
    }
    requires(low[0] == high[0]);  /* `interpolates` is of an order statistic: both are its code */
    dpfast_place_in_gap(low, high, n, code, &step, &width);
    holds(0 <= step && step < width);
}

/* A table of the weights below each code 0..last + 1, and boxes each inside the next. */
void check_shell_weights(void)
{
    const ptrdiff_t n = any_between(0, SIZE), last = any_between(0, SIZE);
    int64_t table[SIZE + 2], lower[SIZE], upper[SIZE], sizes[SIZE + 1], sum = 0;
    table[0] = 0;
    for (ptrdiff_t k = 0; k <= SIZE; k++) {
        table[k + 1] = any_int64();
        requires(table[k] < table[k + 1] && table[k + 1] < ((int64_t)1 << 62));  /* _measures.py: below 2^62 */
    }
    for (ptrdiff_t t = 0; t < n; t++) {
        lower[t] = any_between(0, last);
        upper[t] = any_between(lower[t], last);
        requires(t == 0 || (lower[t] <= lower[t - 1] && upper[t - 1] <= upper[t]));
    }
    dpfast_measure measure;
    measure.table = table;
    measure.floats = NULL;
    measure.total = table[last + 1];
    dpfast_shell_weights(&measure, lower, upper, sizes, n);
    for (ptrdiff_t t = 0; t <= n; t++) {
        holds(sizes[t] >= 0);
        sum += sizes[t];
    }
    holds(sum == measure.total);
}

/* The code at a place below the weight of first..last. */
void check_point_at(void)
{
    int64_t table[SIZE + 2];
    const ptrdiff_t first = any_between(0, SIZE), last = any_between(first, SIZE);
    table[0] = 0;
    for (ptrdiff_t k = 0; k <= SIZE; k++) {
        table[k + 1] = any_int64();
        requires(table[k] < table[k + 1] && table[k + 1] < ((int64_t)1 << 62));
    }
    dpfast_measure measure;
    measure.table = table;
    measure.floats = NULL;
    const int64_t place = any_int64();
    requires(0 <= place && place < dpfast_interval_weight(&measure, first, last));
    const int64_t found = dpfast_point_at(&measure, first, last, place);
    holds(first <= found && found <= last);
    holds(table[found] <= place + table[first] && place + table[first] < table[found + 1]);
}
