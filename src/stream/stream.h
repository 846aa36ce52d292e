/* Order statistics of a stream: one pass counts records by the leading digits of their grid codes, and a later pass
 * processes only the records that share the leading digits of a wanted rank.
 *
 * Both passes should be little slower than reading: the digits of each group of records are computed by a few vector
 * operations while those of the previous group are counted or looked up, and memory is prefetched.
 */
#ifndef DPFAST_STREAM_H
#define DPFAST_STREAM_H

#include "grid.h"
#include "select.h"

#define STREAM_BLOCK SELECT_BLOCK
#define STREAM_LEVELS 4
#define STREAM_LANES 4  /* records whose digits go to the lower halves of words, and again to the upper */
#define STREAM_GROUP 16 /* records whose digits are computed at once */
#define STREAM_WORDS (STREAM_GROUP / 2)
#define STREAM_AHEAD 512 /* records being prefetched */
#define STREAM_HITS 1024 /* records held for a second look-up */
#define STREAM_TIES 3    /* equal neighbours in a group that indicate ties */
#define STREAM_FEW 16    /* values of a block that are counted one after the other */
#define STREAM_RARE 64   /* a value is rare if it is less than a 64th of the block */
#define STREAM_INLINE static inline __attribute__((always_inline))

/* ---- codes ---- */

/* The map from a double to its code, for grids within 2^51 steps of 0: the sum with 1.5 * 2^52 is rounded to an integer,
 * half to even, like x / step in `dpfast_code`; doubles from 2^52 to 2^53 have the order and spacing of their bits. */
struct stream_door {
    double lower, upper, missing;
    double scale, origin; /* 1 / step, 1.5 * 2^52 */
    uint64_t zero;        /* the bits of the sum for the code 0 */
    int plain; /* otherwise records are first converted to codes, as doubles, and this is the map for those */
};

static uint64_t stream_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static struct stream_door stream_door_of(const dpfast_grid *g)
{
    const double last = g->upper / g->step, limit = 0x1p51, origin = 0x1.8p52;
    if (g->step >= 0x1p-1000 && g->step <= 0x1p1000 && g->first >= -limit && last <= limit)
        return (struct stream_door){
            g->lower, g->upper, g->missing, 1.0 / g->step, origin, stream_bits(origin + g->first), 1};
    return (struct stream_door){0.0, last - g->first, 0.0, 1.0, 0x1p52, stream_bits(0x1p52), 0};
}

STREAM_INLINE uint64_t stream_code(double x, const struct stream_door *door)
{
    x = x == x ? x : door->missing;
    x = x > door->lower ? x : door->lower;
    x = x < door->upper ? x : door->upper;
    x = x * door->scale + door->origin;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits - door->zero;
}

/* The digits code >> shift of a group, two per word, which takes fewer steps than one per word or than a vector in
 * order. */
STREAM_INLINE void stream_digits(const double *x, const struct stream_door *door, int shift, uint64_t *words)
{
    for (int w = 0; w < STREAM_WORDS; w += STREAM_LANES)
        for (int k = 0; k < STREAM_LANES; k++)
            words[w + k] = stream_code(x[2 * w + k], door) >> shift
                           | stream_code(x[2 * w + STREAM_LANES + k], door) >> shift << 32;
}

static void stream_prefetch(const double *x)
{
    for (int k = 0; k < STREAM_GROUP; k += 8)
        __builtin_prefetch(x + k);
}

/* Codes as doubles, of any grid. */
static void stream_encode(const dpfast_grid *g, const double *x, ptrdiff_t count, double *out)
{
    for (ptrdiff_t i = 0; i < count; i++)
        out[i] = dpfast_code(x[i], g->lower, g->upper, g->step, g->missing, g->first);
}

/* Up to STREAM_BLOCK records from `start` on: in place, or in the buffer. */
static const double *stream_load(const struct select_keys *keys, const dpfast_grid *g, const struct stream_door *door,
                                 ptrdiff_t start, ptrdiff_t count, double *buffer)
{
    const double *x = (const double *)keys->data + start;
    if (!keys->in_place) {
        select_load(keys, start, count, buffer);
        x = buffer;
    }
    if (door->plain)
        return x;
    stream_encode(g, x, count, buffer);
    return buffer;
}

/* ---- counts ---- */

/* Adds 1 to the count of each cell; `cells` is overwritten. Additions to one count wait for one another, so while the
 * first cell is frequent its records are added at once. Counts have 32 bits, to touch half as many cache lines. */
DPFAST_CLONES
static void stream_add(uint32_t *cells, ptrdiff_t n, uint32_t *counts)
{
    while (n) {
        const uint32_t first = cells[0];
        uint32_t same = 0;
        for (ptrdiff_t i = 0; i < n; i++)
            same += cells[i] == first;
        if (8 * (ptrdiff_t)same < n)
            break;
        counts[first] += same;
        if (same == n)
            return;
        ptrdiff_t rest = 0;
        for (ptrdiff_t i = 0; i < n; i++) {
            const uint32_t cell = cells[i];
            cells[rest] = cell;
            rest += cell != first;
        }
        n = rest;
    }
    for (ptrdiff_t i = 0; i < n; i++)
        counts[cells[i]]++;
}

STREAM_INLINE void stream_add_group(const uint64_t *words, uint32_t *counts)
{
    for (int k = 0; k < STREAM_WORDS; k++) {
        counts[(uint32_t)words[k]]++;
        counts[words[k] >> 32]++;
    }
}

/* Whether the first records of a block have few digits, or few values. They affect only the run time. */
static int stream_is_tied(const double *x, const struct stream_door *door, int shift)
{
    int ties = 0;
    for (int k = 1; k < STREAM_GROUP; k++)
        ties += stream_code(x[k], door) >> shift == stream_code(x[k - 1], door) >> shift;
    return ties >= STREAM_TIES;
}

static int stream_repeats(const double *x)
{
    int ties = 0;
    for (int k = 1; k < STREAM_GROUP; k++)
        ties += stream_bits(x[k]) == stream_bits(x[k - 1]);
    return ties >= STREAM_TIES;
}

DPFAST_CLONES
static void stream_count_tied(const double *x, ptrdiff_t count, const struct stream_door *given, int shift,
                              uint32_t *counts)
{
    const struct stream_door door = *given;
    uint32_t cells[STREAM_BLOCK];
    for (ptrdiff_t i = 0; i < count; i++)
        cells[i] = (uint32_t)(stream_code(x[i], &door) >> shift);
    stream_add(cells, count, counts);
}

/* Digits of the next group are computed before those of the last are counted, so that neither waits for the other. */
DPFAST_CLONES
static void stream_count_block(const double *x, ptrdiff_t count, const struct stream_door *given, int shift,
                               uint32_t *counts)
{
    const struct stream_door door = *given;
    const ptrdiff_t twice = 2 * STREAM_GROUP, whole = count - count % twice;
    uint64_t even[STREAM_WORDS], odd[STREAM_WORDS];
    if (whole)
        stream_digits(x, &door, shift, even);
    for (ptrdiff_t i = 0; i < whole; i += twice) {
        stream_prefetch(x + i + STREAM_AHEAD);
        stream_digits(x + i + STREAM_GROUP, &door, shift, odd);
        stream_add_group(even, counts);
        stream_prefetch(x + i + STREAM_AHEAD + STREAM_GROUP);
        if (i + twice < whole)
            stream_digits(x + i + twice, &door, shift, even);
        stream_add_group(odd, counts);
    }
    for (ptrdiff_t i = whole; i < count; i++)
        counts[stream_code(x[i], &door) >> shift]++;
}

/* The values of a block and how often each occurs, or 0 if there are more than STREAM_FEW, or two that are rare. It takes
 * a vector comparison of the whole block for each value. */
DPFAST_CLONES
static int stream_values(const double *x, ptrdiff_t count, double *values, uint32_t *times)
{
    int found = 0, rare = 0;
    for (ptrdiff_t i = 0, known = 0; known < count; found++) {
        if (found == STREAM_FEW || rare > 1)
            return 0;
        const uint64_t bits = stream_bits(x[i]);
        uint64_t same = 0;
        for (ptrdiff_t k = 0; k < count; k++)
            same += stream_bits(x[k]) == bits;
        values[found] = x[i];
        times[found] = (uint32_t)same;
        known += (ptrdiff_t)same;
        rare += STREAM_RARE * (ptrdiff_t)same < count;
        for (int seen = known < count; seen; i += seen) {
            seen = 0;
            for (int j = 0; j <= found; j++)
                seen |= stream_bits(x[i]) == stream_bits(values[j]);
        }
    }
    return found;
}

/* Adds every record to counts[code >> shift]. */
static void stream_count(const struct select_keys *keys, const dpfast_grid *g, int shift, uint32_t *counts)
{
    const struct stream_door door = stream_door_of(g);
    double buffer[STREAM_BLOCK];
    for (ptrdiff_t i = 0; i < keys->n; i += STREAM_BLOCK) {
        const ptrdiff_t count = keys->n - i < STREAM_BLOCK ? keys->n - i : STREAM_BLOCK;
        const double *x = stream_load(keys, g, &door, i, count, buffer);
        double values[STREAM_FEW];
        uint32_t times[STREAM_FEW];
        const int whole = count >= STREAM_GROUP;
        const int few = whole && stream_repeats(x) ? stream_values(x, count, values, times) : 0;
        for (int k = 0; k < few; k++)
            counts[stream_code(values[k], &door) >> shift] += times[k];
        if (few)
            continue;
        if (whole && stream_is_tied(x, &door, shift))
            stream_count_tied(x, count, &door, shift, counts);
        else
            stream_count_block(x, count, &door, shift, counts);
    }
}

/* ---- the records of wanted cells ---- */

/* The action for the records of each cell of a level: ignore (0), copy the codes (1), or look up the next digit in table
 * `mark - 2` of the next level. Every level except the first has a row of marks for each table. */
struct stream_level {
    const int32_t *marks;
    int shift, bits; /* the digit: the last `bits` bits of code >> shift */
};

/* The destination of marked records. */
struct stream_sink {
    const struct stream_level *levels; /* `depth` of them, */
    int depth;
    struct stream_level last; /* and the level that is counted */
    uint32_t *counts;
    int64_t *room;
    ptrdiff_t copied, capacity; /* of the room */
};

/* The cell of a code in table `mark - 2` of a level. */
static inline uint64_t stream_cell(const struct stream_level *level, int32_t mark, uint64_t code)
{
    return (uint64_t)(mark - 2) << level->bits | (code >> level->shift & ((UINT64_C(1) << level->bits) - 1));
}

/* The mark of a code at the last level of marks that it reaches. */
STREAM_INLINE int32_t stream_mark(uint64_t code, const struct stream_sink *sink)
{
    int32_t mark = sink->levels[0].marks[code >> sink->levels[0].shift];
    for (int level = 1; level < sink->depth && mark > 1; level++)
        mark = sink->levels[level].marks[stream_cell(&sink->levels[level], mark, code)];
    return mark;
}

/* Walks up to STREAM_HITS records down the levels. Consecutive records are often in one cell of one level. */
DPFAST_CLONES
static void stream_walk(const double *hits, ptrdiff_t n, const struct stream_door *given, struct stream_sink *sink)
{
    const struct stream_door door = *given;
    const struct stream_level first = sink->levels[0], last = sink->last;
    uint64_t codes[STREAM_HITS], differing = 0;
    uint32_t cells[STREAM_HITS];
    ptrdiff_t counted = 0;
    if (n <= 0)
        return;
    for (ptrdiff_t i = 0; i < n; i++)
        codes[i] = stream_code(hits[i], &door);
    for (ptrdiff_t i = 0; i < n; i++)
        differing |= codes[i] ^ codes[0];
    const int32_t common = differing >> first.shift == 0 ? first.marks[codes[0] >> first.shift] : 0;
    if (sink->depth == 1 && common > 1) {
        for (ptrdiff_t i = 0; i < n; i++)
            cells[i] = (uint32_t)stream_cell(&last, common, codes[i]);
        stream_add(cells, n, sink->counts);
        return;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        const int32_t mark = stream_mark(codes[i], sink);
        if (mark > 1)
            cells[counted++] = (uint32_t)stream_cell(&last, mark, codes[i]);
        else if (mark == 1 && sink->copied < sink->capacity)
            sink->room[sink->copied++] = (int64_t)codes[i];
    }
    stream_add(cells, counted, sink->counts);
}

/* Adds values that occur several times to the counts; returns 0, and adds none, if one is to be copied. */
static int stream_walk_values(const double *values, const uint32_t *times, int n, const struct stream_door *door,
                              struct stream_sink *sink)
{
    uint64_t codes[STREAM_FEW];
    int32_t marks[STREAM_FEW];
    for (int k = 0; k < n; k++) {
        codes[k] = stream_code(values[k], door);
        marks[k] = stream_mark(codes[k], sink);
        if (marks[k] == 1)
            return 0;
    }
    for (int k = 0; k < n; k++)
        if (marks[k] > 1)
            sink->counts[stream_cell(&sink->last, marks[k], codes[k])] += times[k];
    return 1;
}

/* Whether digits of a group belong to marked cells. */
STREAM_INLINE int stream_found(const uint64_t *words, const unsigned char *any)
{
    unsigned char found = 0;
    for (int k = 0; k < STREAM_WORDS; k++)
        found |= any[(uint32_t)words[k]] | any[words[k] >> 32];
    return found;
}

/* Copies the records of marked cells, in their order; the digits are those of a group. */
DPFAST_CLONES
static double *stream_pick(const double *x, const uint64_t *words, const unsigned char *any, double *hits)
{
    for (int w = 0; w < STREAM_WORDS; w += STREAM_LANES) {
        const double *eight = x + 2 * w;
        unsigned char marked[2 * STREAM_LANES];
        int found = 0;
        for (int k = 0; k < STREAM_LANES; k++) {
            found += marked[k] = any[(uint32_t)words[w + k]];
            found += marked[STREAM_LANES + k] = any[words[w + k] >> 32];
        }
        if (found == 2 * STREAM_LANES) {
            memcpy(hits, eight, 2 * STREAM_LANES * sizeof *x);
            hits += found;
            continue;
        }
        for (int k = 0; k < 2 * STREAM_LANES; k++) {
            *hits = eight[k];
            hits += marked[k];
        }
    }
    return hits;
}

DPFAST_CLONES
static void stream_refine_block(const double *x, ptrdiff_t count, const struct stream_door *given,
                                const unsigned char *any, struct stream_sink *sink)
{
    const struct stream_door door = *given;
    const ptrdiff_t twice = 2 * STREAM_GROUP, whole = count - count % twice;
    const int shift = sink->levels[0].shift;
    uint64_t even[STREAM_WORDS], odd[STREAM_WORDS];
    double hits[STREAM_HITS], *end = hits;
    if (whole)
        stream_digits(x, &door, shift, even);
    for (ptrdiff_t i = 0; i < whole; i += twice) {
        stream_prefetch(x + i + STREAM_AHEAD);
        stream_digits(x + i + STREAM_GROUP, &door, shift, odd);
        if (stream_found(even, any))
            end = stream_pick(x + i, even, any, end);
        stream_prefetch(x + i + STREAM_AHEAD + STREAM_GROUP);
        if (i + twice < whole)
            stream_digits(x + i + twice, &door, shift, even);
        if (stream_found(odd, any))
            end = stream_pick(x + i + STREAM_GROUP, odd, any, end);
        if (end - hits >= STREAM_HITS - twice) {
            stream_walk(hits, end - hits, &door, sink);
            end = hits;
        }
    }
    for (ptrdiff_t i = whole; i < count; i++) {
        *end = x[i];
        end += any[stream_code(x[i], &door) >> shift];
    }
    stream_walk(hits, end - hits, &door, sink);
}

/* Walks the records of marked cells down the levels; `any` is 1 for the marked cells of the first level, else 0. Records
 * that arrive at the last level are added to its counts; at most `capacity` codes are copied. */
static void stream_refine(const struct select_keys *keys, const dpfast_grid *g, const unsigned char *any,
                          struct stream_sink *sink)
{
    const struct stream_door door = stream_door_of(g);
    double buffer[STREAM_BLOCK];
    for (ptrdiff_t i = 0; i < keys->n; i += STREAM_BLOCK) {
        const ptrdiff_t count = keys->n - i < STREAM_BLOCK ? keys->n - i : STREAM_BLOCK;
        const double *x = stream_load(keys, g, &door, i, count, buffer);
        double values[STREAM_FEW];
        uint32_t times[STREAM_FEW];
        int few = 0;
        if (count >= STREAM_GROUP && stream_repeats(x))
            few = stream_values(x, count, values, times);
        if (!few || !stream_walk_values(values, times, few, &door, sink))
            stream_refine_block(x, count, &door, any, sink);
    }
}

#endif
