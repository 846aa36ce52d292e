#include "prelude.h"
#include "series.h"
#include "slopes.h"

/* The node of a code below `size`, multiplier = floor(2^63 nodes / size), nodes = min(size, 2^14): below `nodes`. */
void check_node(void)
{
    const int64_t size = (int64_t)any_byte() + 1, code = any_byte(), nodes = size < SIZE ? size : SIZE;
    requires(code < size);
    const uint64_t multiplier = (uint64_t)(((unsigned __int128)nodes << 63) / (uint64_t)size);
    const ptrdiff_t node = dpfast_node(code, multiplier);
    holds(0 <= node && node < nodes && (nodes < size || node == code));
}

/* A position as a word: floor(position size / 2^64) is below the size, here of 8 bits. */
void check_code_at(void)
{
    const uint64_t size = (uint64_t)any_byte() + 1;
    const int64_t code = dpfast_code_at(any_uint64(), size);
    holds(0 <= code && (uint64_t)code < size);
}

/* The pairs of each matching of up to SIZE records are inside the arrays, and there are floor(n / 2) of them. */
void check_matching(void)
{
    for (ptrdiff_t n = 2; n <= SIZE; n++) {
        double *x = room(double, n), *y = room(double, n), *out = room(double, n / 2);
        for (ptrdiff_t i = 0; i < n; i++)
            x[i] = y[i] = 0.0;
        for (ptrdiff_t turn = 0; turn < (n % 2 ? n : n - 1); turn++)
            slopes_of_matching(x, y, n, turn, any_uint64(), 0.0, 1.0, out);
    }
}
