#include "prelude.h"
#include "bounding.h"

/* Codes -1..groups - 1, `groups` + 1 quotas of zeros (bounding.h): every record is counted, at most `limit` kept. */
void check_thin(void)
{
    int64_t codes[SIZE];
    uint8_t keep[SIZE];
    uint64_t words[SIZE];
    const int64_t groups = 2;
    dpfast_quota quotas[3] = {{0, 0}, {0, 0}, {0, 0}};
    const uint32_t limit = (uint32_t)any_between(0, SIZE);
    bitgen_t source = source_of(1);
    uint32_t marked = 0, kept = 0;
    for (int i = 0; i < SIZE; i++) {
        codes[i] = any_between(-1, groups - 1);
        keep[i] = (uint8_t)(any_byte() & 1);
        marked += codes[i] == 0 && keep[i];
    }
    dpfast_thin_quotas(codes, keep, SIZE, limit, quotas, groups);
    dpfast_thin(&source, words, codes, keep, SIZE, quotas, groups);
    for (int i = 0; i < SIZE; i++) {
        holds(codes[i] >= 0 || !keep[i]);
        kept += codes[i] == 0 && keep[i];
    }
    holds(kept == (marked < limit ? marked : limit));
}

/* Words of records by group, the first group thinned first. */
void check_begin_group(void)
{
    int64_t codes[SIZE];
    uint64_t words[SIZE];
    uint8_t keep[SIZE];
    for (int i = 0; i < SIZE; i++) {
        codes[i] = any_between(0, 1);
        keep[i] = 1;
        requires(i == 0 || codes[i - 1] <= codes[i]);
    }
    dpfast_sorted sorted = {words, SIZE, NULL, 2, 0, {0, 0}};
    dpfast_pack(codes, 0, 0, &sorted);
    dpfast_begin_group(&sorted, keep, 1);
    ptrdiff_t equal = 0;
    for (int i = 0; i < SIZE; i++)
        equal += codes[i] == codes[0];
    holds(sorted.end == equal && sorted.quota.left == equal && sorted.quota.needed == 1);
}

/* Sorted records of two groups: at most `limit` of each stay marked. */
void check_thin_sorted(void)
{
    int64_t codes[SIZE];
    uint64_t words[SIZE], drawn[SIZE];
    uint8_t keep[SIZE];
    uint32_t marked = 0, kept = 0;
    const uint32_t limit = (uint32_t)any_between(0, SIZE);
    for (int i = 0; i < SIZE; i++) {
        codes[i] = any_between(0, 1);
        keep[i] = (uint8_t)(any_byte() & 1);
        requires(i == 0 || codes[i - 1] <= codes[i]);
        marked += codes[i] == 1 && keep[i];
    }
    dpfast_sorted sorted = {words, SIZE, NULL, 2, 0, {0, 0}};
    dpfast_pack(codes, 0, 0, &sorted);
    bitgen_t source = source_of(1);
    dpfast_thin_sorted(&source, drawn, &sorted, keep, 0, SIZE, limit);
    for (int i = 0; i < SIZE; i++)
        kept += codes[i] == 1 && keep[i];
    holds(kept == (marked < limit ? marked : limit));
}

/* Records of two units, of which `limit` are kept: each kept record is one of its unit, and no slot of another is used. */
static void bound_units_of(const int64_t *unit, int64_t limit)
{
    int64_t slots[4];
    uint8_t entered[SIZE] = {0};
    dpfast_reservoir groups[2] = {{0, 0}, {0, 0}};
    dpfast_reservoirs units = {limit, groups, 2, 2, slots, 0, 4};
    bitgen_t source = source_of(SIZE);
    holds(dpfast_bound_units(&source, &units, unit, SIZE, 0, entered) == 0);
    for (int g = 0; g < 2; g++) {
        const int64_t kept = dpfast_kept(&units, g);
        for (int64_t k = 0; k < kept; k++) {
            const int64_t record = slots[groups[g].start + k];
            holds(0 <= record && record < SIZE && unit[record] == g && entered[record]);
        }
    }
}

#if SIZE == 3   /* the harnesses of this file have sizes of their own */
void check_bound_units(void)
{
    for (int pattern = 0; pattern < 8; pattern++) {
        const int64_t unit[SIZE] = {pattern & 1, pattern >> 1 & 1, (pattern >> 2 & 1) - 1};
        bound_units_of(unit, 1);
        bound_units_of(unit, 2);
    }
}
#endif
