/* Uniformly random subsets of the records of each group, on exact draws. docs/proofs/bounded-contributions.md
 *
 * `dpfast_thin` reads the records twice (Fan, Muller and Rezucha 1962; algorithm S of Knuth); `dpfast_thin_sorted` reads
 * them by group, for many groups, whose counters would not be in a cache. A reservoir reads them once
 * (algorithm R of Vitter 1985): the first `limit` items fill its slots, and item i > limit takes one of i equally likely
 * places, of which `limit` are the slots. Which slots are replaced does not depend on what they hold.
 */
#ifndef DPFAST_BOUNDING_H
#define DPFAST_BOUNDING_H

#include <stdlib.h>
#include <string.h>

#include "draws.h"
#include "mix.h"

#define DPFAST_FIRST_SLOTS 4   /* of a group; a power of two, which doubles when they are full */
#define DPFAST_GROUPS_AHEAD 16 /* whose memory is requested before it is used */
#define DPFAST_ROWS_AHEAD 32   /* as well */

typedef struct {
    uint32_t left, needed;
} dpfast_quota; /* records of a group to come, and to keep of these */

static inline void dpfast_request_quota(const dpfast_quota *quotas, const int64_t *codes, ptrdiff_t i, ptrdiff_t n)
{
    if (i + DPFAST_GROUPS_AHEAD < n && codes[i + DPFAST_GROUPS_AHEAD] >= 0)
        __builtin_prefetch(quotas + codes[i + DPFAST_GROUPS_AHEAD], 1);
}

/* Count the marked records of each group, the last of `groups` + 1 quotas being of those of no group (code -1), and set
 * what is to be kept of them: at most `limit`. `quotas` are zeros; n is below 2^32. */
static void dpfast_thin_quotas(const int64_t *codes, const uint8_t *keep, ptrdiff_t n, uint32_t limit,
                               dpfast_quota *quotas, int64_t groups)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        dpfast_request_quota(quotas, codes, i, n);
        quotas[codes[i] < 0 ? groups : codes[i]].left += keep[i];
    }
    for (int64_t g = 0; g < groups; g++)
        quotas[g].needed = quotas[g].left < limit ? quotas[g].left : limit;
}

/* Law, over uniform words, one for each record: a marked record of a group stays marked with probability needed / left,
 * exactly, and the quota becomes that of the later records. Without branches, which would be mispredicted. */
static void dpfast_thin(bitgen_t *source, const uint64_t *words, const int64_t *codes, uint8_t *keep, ptrdiff_t n,
                        dpfast_quota *quotas, int64_t groups)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        dpfast_request_quota(quotas, codes, i, n);
        dpfast_quota *quota = quotas + (codes[i] < 0 ? groups : codes[i]);
        uint8_t marked = keep[i];
        uint64_t left = (uint64_t)quota->left + !marked; /* at least 1 */
        keep[i] = marked & (dpfast_below(source, words[i], left) < quota->needed);
        quota->left -= marked;
        quota->needed -= keep[i];
    }
}

/* Records by group: words whose last `bits` bits are the number of a record, and the others those of its code, or of its
 * hash if `keys` are given, where groups of equal hash are told apart by their keys. */
typedef struct {
    uint64_t *words;
    ptrdiff_t n;
    const int64_t *keys;
    int bits;
    ptrdiff_t end;      /* of the group that is being thinned */
    dpfast_quota quota; /* of this group */
} dpfast_sorted;

static void dpfast_pack(const int64_t *codes, int hashed, uint64_t seed, dpfast_sorted *sorted)
{
    uint64_t last = ((uint64_t)1 << sorted->bits) - 1;
    for (ptrdiff_t i = 0; i < sorted->n; i++) {
        uint64_t group = hashed ? dpfast_mix((uint64_t)codes[i] ^ seed) & ~last : (uint64_t)codes[i] << sorted->bits;
        sorted->words[i] = group | (uint64_t)i;
    }
}

/* Begin with the next group: move its records to its beginning, where records of other groups have the same hash. */
static void dpfast_begin_group(dpfast_sorted *sorted, const uint8_t *keep, uint32_t limit)
{
    uint64_t *words = sorted->words, last = ((uint64_t)1 << sorted->bits) - 1, first = words[sorted->end];
    const int64_t *keys = sorted->keys;
    uint32_t left = 0;
    ptrdiff_t end = sorted->end;
    for (ptrdiff_t i = end; i < sorted->n && ((words[i] ^ first) & ~last) == 0; i++) {
        if (i + DPFAST_ROWS_AHEAD < sorted->n) {
            uint64_t ahead = words[i + DPFAST_ROWS_AHEAD] & last;
            __builtin_prefetch(keep + ahead, 1);
            if (keys != NULL)
                __builtin_prefetch(keys + ahead);
        }
        if (keys != NULL && keys[words[i] & last] != keys[first & last])
            continue;
        uint64_t word = words[i];
        words[i] = words[end];
        words[end++] = word;
        left += keep[word & last];
    }
    sorted->end = end;
    sorted->quota = (dpfast_quota){left, left < limit ? left : limit};
}

/* `dpfast_thin` for the sorted records start, ..., stop - 1. */
static void dpfast_thin_sorted(bitgen_t *source, const uint64_t *words, dpfast_sorted *sorted, uint8_t *keep,
                               ptrdiff_t start, ptrdiff_t stop, uint32_t limit)
{
    uint64_t last = ((uint64_t)1 << sorted->bits) - 1;
    for (ptrdiff_t i = start; i < stop; i++) {
        if (i == sorted->end)
            dpfast_begin_group(sorted, keep, limit);
        uint8_t *mark = keep + (sorted->words[i] & last), marked = *mark;
        uint64_t left = (uint64_t)sorted->quota.left + !marked; /* at least 1 */
        *mark = marked & (dpfast_below(source, words[i - start], left) < sorted->quota.needed);
        sorted->quota.left -= marked;
        sorted->quota.needed -= *mark;
    }
}

typedef struct {
    int64_t seen, start;
} dpfast_reservoir; /* items so far; the first of its slots */

typedef struct {
    int64_t limit;
    dpfast_reservoir *groups;
    int64_t count, group_space;
    int64_t *slots;
    int64_t used, space;
} dpfast_reservoirs;

/* Items that may be dropped after they took a slot of a first reservoir: the record in each, -1 if dropped. */
typedef struct {
    int64_t *records;
    int64_t count, space;
} dpfast_entries;

static void dpfast_reservoirs_free(dpfast_reservoirs *all)
{
    free(all->groups);
    free(all->slots);
}

/* Space for `needed` items of `size` bytes, doubling. 0, or -1 without memory. */
static inline int dpfast_grow(void **items, int64_t *space, int64_t needed, size_t size)
{
    if (needed <= *space)
        return 0;
    int64_t larger = 2 * needed + 1024;
    void *moved = realloc(*items, (size_t)larger * size);
    if (moved == NULL)
        return -1;
    *items = moved;
    *space = larger;
    return 0;
}

/* Make sure that there are `count` groups. 0, or -1 without memory. */
static int dpfast_reservoirs_reserve(dpfast_reservoirs *all, int64_t count)
{
    if (count <= all->count)
        return 0;
    if (dpfast_grow((void **)&all->groups, &all->group_space, count, sizeof *all->groups))
        return -1;
    memset(all->groups + all->count, 0, (size_t)(count - all->count) * sizeof *all->groups);
    all->count = count;
    return 0;
}

static inline int64_t dpfast_kept(const dpfast_reservoirs *all, int64_t group)
{
    int64_t seen = all->groups[group].seen;
    return seen < all->limit ? seen : all->limit;
}

/* Law: the slot that the next item of a group takes, as an index; -1 if the item is not kept. `fresh`: whether the slot was
 * empty. -2 without memory. One word if the slots are full. */
static inline int64_t dpfast_take_slot(bitgen_t *source, dpfast_reservoirs *all, int64_t group, int *fresh)
{
    dpfast_reservoir *reservoir = all->groups + group;
    int64_t seen = reservoir->seen;
    *fresh = seen < all->limit;
    if (!*fresh) {
        reservoir->seen++;
        uint64_t word = source->next_uint64(source->state);
        int64_t place = (int64_t)dpfast_below(source, word, (uint64_t)seen + 1);
        return place < all->limit ? reservoir->start + place : -1;
    }
    if (seen == 0 || (seen >= DPFAST_FIRST_SLOTS && (seen & (seen - 1)) == 0)) { /* full */
        int64_t room = seen ? 2 * seen : DPFAST_FIRST_SLOTS;
        room = room < all->limit ? room : all->limit;
        if (dpfast_grow((void **)&all->slots, &all->space, all->used + room, sizeof *all->slots))
            return -2;
        if (seen)
            memcpy(all->slots + all->used, all->slots + reservoir->start, (size_t)seen * sizeof *all->slots);
        reservoir->start = all->used;
        all->used += room;
    }
    reservoir->seen++;
    return reservoir->start + seen;
}

static inline void dpfast_request(const dpfast_reservoirs *all, const int64_t *groups, ptrdiff_t i, ptrdiff_t n)
{
    if (i + DPFAST_GROUPS_AHEAD < n && groups[i + DPFAST_GROUPS_AHEAD] >= 0)
        __builtin_prefetch(all->groups + groups[i + DPFAST_GROUPS_AHEAD], 1);
    if (all->slots != NULL && i + DPFAST_GROUPS_AHEAD / 2 < n && groups[i + DPFAST_GROUPS_AHEAD / 2] >= 0)
        __builtin_prefetch(all->slots + all->groups[groups[i + DPFAST_GROUPS_AHEAD / 2]].start, 1);
}

/* Offer the records first, first + 1, ... to their units (-1: left out), and set `entered` where a record took a slot.
 * 0, or -1 without memory. */
static int dpfast_bound_units(bitgen_t *source, dpfast_reservoirs *units, const int64_t *unit, ptrdiff_t n,
                              int64_t first, uint8_t *entered)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        int fresh;
        dpfast_request(units, unit, i, n);
        if (unit[i] < 0)
            continue;
        int64_t slot = dpfast_take_slot(source, units, unit[i], &fresh);
        if (slot == -2)
            return -1;
        if (slot >= 0) {
            units->slots[slot] = first + i;
            entered[i] = 1;
        }
    }
    return 0;
}

/* The same with a first reservoir for each pair of a unit and a key: every slot of it is an item of the unit, whatever
 * record it holds then or later. */
static int dpfast_bound_pairs(bitgen_t *source, dpfast_reservoirs *pairs, dpfast_reservoirs *units,
                              dpfast_entries *entries, const int64_t *pair, const int64_t *unit, ptrdiff_t n,
                              int64_t first, uint8_t *entered)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        int fresh;
        dpfast_request(pairs, pair, i, n);
        if (pair[i] < 0)
            continue;
        int64_t slot = dpfast_take_slot(source, pairs, pair[i], &fresh);
        if (slot == -2)
            return -1;
        if (slot < 0)
            continue;
        if (!fresh) {
            int64_t *record = entries->records + pairs->slots[slot];
            entered[i] = *record >= 0;
            if (*record >= 0)
                *record = first + i;
            continue;
        }
        if (dpfast_grow((void **)&entries->records, &entries->space, entries->count + 1, sizeof *entries->records))
            return -1;
        int64_t entry = entries->count++, place = dpfast_take_slot(source, units, unit[i], &fresh);
        if (place == -2)
            return -1;
        pairs->slots[slot] = entry;
        entries->records[entry] = place < 0 ? -1 : first + i;
        if (place < 0)
            continue;
        if (!fresh)
            entries->records[units->slots[place]] = -1;
        units->slots[place] = entry;
        entered[i] = 1;
    }
    return 0;
}

#endif
