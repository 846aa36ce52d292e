#include "prelude.h"
#include "sums.h"

/* The correction of trimmed sums, for n < 2^62 records (state.py) and codes below 2^52 (grid.check_grid): no product and
 * no sum overflows. `_windows` of _select.pyx: keys beyond and inside a bracket, and ranks, are at most n together. */
void check_trimmed_sums(void)
{
    const ptrdiff_t outer = (ptrdiff_t)(any_uint64() >> 3), collected = (ptrdiff_t)(any_uint64() >> 3);
    const ptrdiff_t ranks = (ptrdiff_t)(any_uint64() >> 2);
    const int64_t bracket = (int64_t)(any_uint64() >> 12), window = (int64_t)(any_uint64() >> 12);
    const sums_wide inside = (sums_wide)any_uint64() << 50;
    (void)sums_correction(outer, collected, inside, bracket, ranks, window);
}

/* The sum over the ranks beyond `ranks` of SIZE sorted codes of 4 bits, from that of codes clamped to the bracket's near
 * end; the window's last entry lies in the bracket. */
void check_trimmed_sums_of_few(void)
{
    int64_t codes[SIZE];
    const int64_t far = any_byte() >> 4, near = any_byte() >> 4;
    requires(far <= near);
    for (int i = 0; i < SIZE; i++) {
        codes[i] = any_byte() >> 4;
        requires(i == 0 || codes[i - 1] <= codes[i]);
    }
    ptrdiff_t outer = 0, collected = 0;
    const ptrdiff_t ranks = any_between(1, SIZE);
    const int64_t window = codes[ranks - 1];
    requires(far <= window && window <= near);
    sums_wide total = 0, inside = 0, wanted = 0;
    for (int i = 0; i < SIZE; i++) {
        total += (sums_wide)(codes[i] < near ? near : codes[i]);
        outer += codes[i] <= far;
        collected += far < codes[i] && codes[i] < near;
        if (far < codes[i] && codes[i] < near)
            inside += (sums_wide)(codes[i] < window ? window : codes[i]);
        if (i >= ranks)
            wanted += (sums_wide)codes[i];
    }
    holds((sums_signed)total + sums_correction(outer, collected, inside, near, ranks, window) == (sums_signed)wanted);
}
