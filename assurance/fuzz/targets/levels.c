/* The boxes of the levels of one quantile of a small group: ranks by 128-bit division, boxes within the grid, each inside
 * the next. Input: four bytes of options, eight of the share, then the codes, two bytes each. */
#include "target.h"
#include "groups.h"

enum { MOST = 64 };

static ptrdiff_t share_down(const dpfast_group_plan *plan, ptrdiff_t m)
{
    unsigned __int128 product = (unsigned __int128)plan->numerator * (uint64_t)m;
    for (int i = 0; i < plan->shift && product; i++)
        product /= 2;
    return (ptrdiff_t)product;
}

static ptrdiff_t share_up(const dpfast_group_plan *plan, ptrdiff_t m)
{
    unsigned __int128 product = (unsigned __int128)plan->numerator * (uint64_t)m;
    int rest = 0;
    for (int i = 0; i < plan->shift && product; i++) {
        rest |= (int)(product % 2);
        product /= 2;
    }
    return (ptrdiff_t)product + rest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 12 || size > 512)
        return 0;
    const ptrdiff_t n = (ptrdiff_t)(size - 12) / 2 < MOST ? (ptrdiff_t)(size - 12) / 2 : MOST;
    dpfast_group_plan plan = {0};
    memcpy(&plan.numerator, data + 4, 8);
    plan.numerator &= (UINT64_C(1) << 53) - 1;
    int bits = 0;
    while (bits < 53 && plan.numerator >> bits)
        bits++;
    plan.shift = bits + data[3];             /* a share below 1, down to 2^-255 */
    plan.above = bits && data[3] == 0;
    plan.deep = data[0] & 1, plan.flips = data[0] >> 1 & 1;
    plan.last = data[0] & 4 ? INT64_C(1) << 62 : 65535;
    plan.radius = data[0] & 8 ? plan.last : data[1];
    plan.cap = data[0] & 16 ? data[2] : MOST + 1;
    int64_t *ranks = malloc((size_t)(n + 1) * sizeof *ranks);
    for (ptrdiff_t i = 0; i <= n; i++)       /* of i records, 1 to i */
        ranks[i] = i ? 1 + data[2] % i : 1;
    if (data[0] & 32)
        plan.ranks = ranks;
    int64_t *codes = malloc((size_t)n * sizeof *codes + 1);
    for (ptrdiff_t i = 0; i < n; i++) {      /* ascending */
        const int64_t code = (data[12 + 2 * i] | data[13 + 2 * i] << 8) * (plan.last / 65535);
        ptrdiff_t j = i;
        for (; j > 0 && codes[j - 1] > code; j--)
            codes[j] = codes[j - 1];
        codes[j] = code;
    }
    for (ptrdiff_t t = 0; t <= n && plan.ranks == NULL; t++) {
        ptrdiff_t low, high;
        dpfast_level_ranks(&plan, n, t, &low, &high);
        require(low == (plan.above ? share_up(&plan, n - t) : share_up(&plan, n + t) - t));
        require(high == (plan.above ? share_down(&plan, n + t) : share_down(&plan, n - t) + t) + 1);
    }
    const size_t room = (size_t)(n ? n : 1) * sizeof(int64_t);
    int64_t *lower = malloc(room), *upper = malloc(room);
    ptrdiff_t depth = -1;
    const ptrdiff_t levels = dpfast_group_levels(&plan, codes, 1, n, lower, upper, &depth);
    require(levels >= 0 && levels <= plan.cap && levels <= (n ? n : 1) && depth >= 0 && depth < (n ? n : 1));
    for (ptrdiff_t t = 0; t < levels; t++) {
        require(lower[t] >= 0 && lower[t] <= upper[t] && upper[t] <= plan.last);
        require(t == 0 || (lower[t] <= lower[t - 1] && upper[t] >= upper[t - 1]));
    }
    free(lower);
    free(upper);
    free(codes);
    free(ranks);
    return 0;
}
