/* Order statistics x_(first..last) of n keys (doubles) in little more than one pass, without sorting or copying
 * the data.
 *
 * The bracket. One key is read from each of m = n / width consecutive strata, at a hashed place in it. The number of
 * sampled keys <= x_(r) is a sum of m independent indicators with mean r m / n (to within one stratum) and variance
 * v <= m p (1 - p), p = r / n. So two order statistics of the sample, at the ranks
 *
 *     i = first m / n - slack(first),   j = last m / n + slack(last),   slack = z sqrt(v) + z^2 / 3 + 2,   z = 3.5,
 *
 * bracket the window but with probability 2 exp(-z^2 / 2) < 4.4e-3 (Bernstein; 5e-4 by the normal law), over the places.
 * One scan counts the keys below, at, and above both ends of the bracket and copies out those strictly inside, about
 * (j - i) width of them (filter.h). Keys equal to an end are only counted, so ties are free. The counts give the ranks of
 * the copied keys and show whether the bracket contains the window: a wrong bracket is always detected.
 *
 * Cost. width = 3/4 n^(3/8), hence m = 4/3 n^(5/8) sampled keys and, at the median, z n / sqrt(m) copied ones: n + o(n)
 * steps, then the same again on the copied keys. This balances, from 1e4 to 1e8 keys, reads at random places against
 * copies. If the bracket was wrong, four counting passes of 16 bits each find x_(first) and x_(last) exactly; with these
 * as the ends of the bracket, the second scan cannot fail. So O(n) for every input, plus the sort of the window itself.
 *
 * The places are hashed with a fresh secret for each sample. They are independent of the data, so an adversary cannot
 * construct an order for which one record, at a sampled place, decides whether the bracket is wrong and hence the run
 * time. Results do not depend on the secret.
 */
#ifndef DPFAST_SELECT_H
#define DPFAST_SELECT_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"
#include "filter.h"
#include "mix.h"
#include "odd.h"

#define SELECT_BLOCK FILTER_BLOCK /* keys loaded at a time */

/* ---- keys: from a record of any supported dtype to a double ---- */

enum select_kind {
    SELECT_UNSUPPORTED,
    SELECT_FLOAT64,
    SELECT_FLOAT32,
    SELECT_FLOAT16,
    SELECT_INT64,
    SELECT_INT32,
    SELECT_INT16,
    SELECT_INT8,
    SELECT_UINT64,
    SELECT_UINT32,
    SELECT_UINT16,
    SELECT_UINT8
};

/* Some consecutive records of a column that lies in several arrays, or of which some are missing: read as doubles,
 * 64-bit integers too, because a column that can hold missing integers is one of doubles. All fields have 64 bits: an
 * array of int64 holds them. */
struct select_part {
    int64_t start;         /* its first record, among all of the column */
    const char *data;      /* which is here */
    int64_t stride;        /* bytes from one to the next, of any sign */
    int64_t kind;          /* NumPy's kind character */
    int64_t itemsize;      /* and item size */
    int64_t swapped;       /* whether the bytes of a record are in the other order */
    const uint8_t *valid;  /* a bit for each record, 0 for a missing one, or NULL: */
    int64_t bit;           /* the place of the first */
    const uint8_t *absent; /* a byte for each record, 1 for a missing one, or NULL */
};

struct select_keys {
    const char *data;    /* the first record */
    ptrdiff_t n, stride; /* records; bytes from one to the next, of any sign */
    enum select_kind kind;
    int in_place;                    /* aligned contiguous float64: scanned in place */
    int shift;                       /* 64-bit integers are rounded to multiples of 2^shift (negative: to odd), */
    double scale;                    /* scaled back by this, */
    double lower, upper;             /* and clamped to these */
    double missing;                  /* the key of a NaN */
    const struct select_part *parts; /* where the records are if they are not in one array, or NULL */
    ptrdiff_t num_parts;             /* at least 1, none empty, in order */
};

/* Scratch memory as a source of keys: doubles already, none missing. */
static struct select_keys select_keys_of_doubles(const double *x, ptrdiff_t n)
{
    return (struct select_keys){
        .data = (const char *)x, .n = n, .stride = sizeof *x, .kind = SELECT_FLOAT64, .in_place = 1};
}

/* NumPy's kind character and item size, as an enumerator. */
static enum select_kind select_kind_of(char kind, ptrdiff_t itemsize)
{
    switch (kind) {
    case 'f':
        return itemsize == 8   ? SELECT_FLOAT64
               : itemsize == 4 ? SELECT_FLOAT32
               : itemsize == 2 ? SELECT_FLOAT16
                               : SELECT_UNSUPPORTED;
    case 'i':
        return itemsize == 8 ? SELECT_INT64 : itemsize == 4 ? SELECT_INT32 : itemsize == 2 ? SELECT_INT16 : SELECT_INT8;
    case 'u':
        return itemsize == 8   ? SELECT_UINT64
               : itemsize == 4 ? SELECT_UINT32
               : itemsize == 2 ? SELECT_UINT16
                               : SELECT_UINT8;
    case 'b': return SELECT_UINT8;
    default: return SELECT_UNSUPPORTED;
    }
}

/* step is a power of two, or 0 for floats of few digits. If it is so large that every int64 (|v| <= 2^63) is at most half of it, or every uint64 less
 * than half of it, all keys are zero for any shift; scale = 0 encodes this. */
static void select_set_grid(struct select_keys *keys, double lower, double upper, double step, double missing)
{
    const int longest = keys->kind == SELECT_UINT64 ? 64 : 63, shift = step > 1.0 ? ilogb(step) : 0;
    keys->lower = lower;
    keys->upper = upper;
    keys->missing = missing + 0.0;
    keys->shift = step == 0.0 ? -1 : shift > longest ? longest : shift;
    keys->scale = shift > longest ? 0.0 : ldexp(1.0, shift);
}

/* Clamping last is equivalent to clamping first, because rounding is monotone and keeps the bounds. It also makes the
 * conversion safe: a quotient within the bounds is exact, and rounding cannot move one beyond them back inside. */
static inline double select_clamp(double key, double lower, double upper)
{
    key = key < lower ? lower : key;
    return key > upper ? upper : key;
}

static inline double select_double_of_bits(uint64_t bits)
{
    double key;
    memcpy(&key, &bits, sizeof key);
    return key;
}

/* The nearest double. The halves of the integer are put below the exponents of 2^84 and 2^52, whose subtraction is
 * exact, so that the sum rounds once. Every vector unit supports this; few convert 64-bit integers. */
static inline double select_double_of_uint64(uint64_t value)
{
    double high = select_double_of_bits(value >> 32 | UINT64_C(0x4530000000000000));
    double low = select_double_of_bits((value & UINT32_MAX) | UINT64_C(0x4330000000000000));
    return (high - (0x1p84 + 0x1p52)) + low;
}

static inline double select_double_of_int64(uint64_t value)
{
    double high = select_double_of_bits((value >> 32 ^ UINT64_C(0x80000000)) | UINT64_C(0x4530000000000000));
    double low = select_double_of_bits((value & UINT32_MAX) | UINT64_C(0x4330000000000000));
    return (high - (0x1p84 + 0x1p63 + 0x1p52)) + low;
}

/* The increment of the floor of value / 2^shift, 1 <= shift <= 64, that rounds half to even. */
static inline uint64_t select_round_up(uint64_t value, int shift)
{
    uint64_t half = UINT64_C(1) << (shift - 1), odd = value >> (shift - 1) >> 1 & 1;
    return (value & (half | (half - 1))) > half - odd;
}

/* shift <= 63. The sign bit is flipped before the shift, which is then unsigned, and subtracted afterwards. */
static inline double select_round_int64(uint64_t value, int shift)
{
    const uint64_t sign = UINT64_C(1) << 63;
    return select_double_of_int64(((value ^ sign) >> shift) - (sign >> shift) + select_round_up(value, shift));
}

static inline double select_round_uint64(uint64_t value, int shift)
{
    return select_double_of_uint64((value >> (shift - 1) >> 1) + select_round_up(value, shift));
}

static inline double select_odd_uint64(uint64_t value)
{
    return select_double_of_uint64(dpfast_odd(value));
}

static inline double select_odd_int64(uint64_t value)
{
    const uint64_t negative = -(value >> 63), magnitude = (value ^ negative) - negative;
    const double key = select_odd_uint64(magnitude);
    return negative ? -key : key;
}

/* Exponent and fraction are moved to those of a float (all ones stay all ones), and an exact product corrects the bias,
 * also for subnormals. */
static inline double select_half(uint16_t value)
{
    uint32_t bits = (uint32_t)(value & 0x7fff) << 13, special = -(uint32_t)((value & 0x7c00) == 0x7c00);
    float magnitude;
    bits |= special & UINT32_C(0x7f800000);
    memcpy(&magnitude, &bits, sizeof magnitude);
    double key = magnitude * 0x1p112;
    return value & 0x8000 ? -key : key;
}

/* A loop over records `value` of a C type; memcpy because a field of a packed record may lie anywhere. The contiguous
 * copy of the loop exists so that it vectorises. */
#define SELECT_LOAD(type, key) \
    if (stride == (ptrdiff_t)sizeof(type)) \
        for (ptrdiff_t i = 0; i < count; i++) { \
            type value; \
            memcpy(&value, data + i * (ptrdiff_t)sizeof(type), sizeof value); \
            out[i] = (key); \
        } \
    else \
        for (ptrdiff_t i = 0; i < count; i++) { \
            type value; \
            memcpy(&value, data + i * stride, sizeof value); \
            out[i] = (key); \
        } \
    break

/* Keys start..start+count-1 of one array, NaN still NaN. */
DPFAST_CLONES
static void select_load_array(const struct select_keys *keys, ptrdiff_t start, ptrdiff_t count, double *restrict out)
{
    const char *data = keys->data + start * keys->stride;
    const ptrdiff_t stride = keys->stride;
    const double lower = keys->lower, upper = keys->upper, scale = keys->scale;
    const int shift = keys->shift;

    switch (keys->kind) {
    case SELECT_FLOAT64: SELECT_LOAD(double, value);
    case SELECT_FLOAT32: SELECT_LOAD(float, (double)value);
    case SELECT_FLOAT16: SELECT_LOAD(uint16_t, select_half(value));
    case SELECT_INT32: SELECT_LOAD(int32_t, (double)value);
    case SELECT_INT16: SELECT_LOAD(int16_t, (double)value);
    case SELECT_INT8: SELECT_LOAD(int8_t, (double)value);
    case SELECT_UINT32: SELECT_LOAD(uint32_t, (double)value);
    case SELECT_UINT16: SELECT_LOAD(uint16_t, (double)value);
    case SELECT_UINT8: SELECT_LOAD(uint8_t, (double)value);
    case SELECT_INT64:
        if (shift < 0) {
            SELECT_LOAD(uint64_t, select_clamp(select_odd_int64(value), lower, upper));
        }
        if (shift == 0) {
            SELECT_LOAD(uint64_t, select_clamp(select_double_of_int64(value), lower, upper));
        }
        SELECT_LOAD(uint64_t, select_clamp(select_round_int64(value, shift) * scale, lower, upper));
    case SELECT_UINT64:
        if (shift < 0) {
            SELECT_LOAD(uint64_t, select_clamp(select_odd_uint64(value), lower, upper));
        }
        if (shift == 0) {
            SELECT_LOAD(uint64_t, select_clamp(select_double_of_uint64(value), lower, upper));
        }
        SELECT_LOAD(uint64_t, select_clamp(select_round_uint64(value, shift) * scale, lower, upper));
    case SELECT_UNSUPPORTED: break;
    }
}

/* What turns four keys into NaN where a bit of the index is 0: all ones are a NaN. By shifts of the bits, instead of this
 * table, a column with missing records took three times as long. */
#define SELECT_HIDDEN(b) {(b) & 1 ? 0 : ~0ull, (b) & 2 ? 0 : ~0ull, (b) & 4 ? 0 : ~0ull, (b) & 8 ? 0 : ~0ull}
static const uint64_t select_hidden[16][4] = {
    SELECT_HIDDEN(0),  SELECT_HIDDEN(1),  SELECT_HIDDEN(2),  SELECT_HIDDEN(3), SELECT_HIDDEN(4),  SELECT_HIDDEN(5),
    SELECT_HIDDEN(6),  SELECT_HIDDEN(7),  SELECT_HIDDEN(8),  SELECT_HIDDEN(9), SELECT_HIDDEN(10), SELECT_HIDDEN(11),
    SELECT_HIDDEN(12), SELECT_HIDDEN(13), SELECT_HIDDEN(14), SELECT_HIDDEN(15)};

/* Word by word: copies of all four in one array took ten times as long. */
static inline void select_hide_four(const uint64_t *hidden, double *restrict out)
{
    for (int k = 0; k < 4; k++) {
        uint64_t key;
        memcpy(&key, out + k, sizeof key);
        key |= hidden[k];
        memcpy(out + k, &key, sizeof key);
    }
}

/* NaN for each bit that is 0. The bits of 8 keys are those of a byte, after the first ones. */
DPFAST_CLONES
static void select_hide_bits(const uint8_t *restrict valid, ptrdiff_t bit, ptrdiff_t count, double *restrict out)
{
    ptrdiff_t i = 0;
    valid += bit / 8;
    bit %= 8;
    for (; i < count && (bit + i) % 8; i++)
        out[i] = *valid >> (bit + i) & 1 ? out[i] : NAN;
    for (valid += (bit + 7) / 8; i + 8 <= count; i += 8, valid++) {
        select_hide_four(select_hidden[*valid & 15], out + i);
        select_hide_four(select_hidden[*valid >> 4], out + i + 4);
    }
    for (int k = 0; i < count; i++, k++)
        out[i] = *valid >> k & 1 ? out[i] : NAN;
}

/* NaN for each byte that is not 0. */
DPFAST_CLONES
static void select_hide_bytes(const uint8_t *restrict absent, ptrdiff_t count, double *restrict out)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        uint64_t key;
        memcpy(&key, out + i, sizeof key);
        key |= -(uint64_t)(absent[i] != 0);
        memcpy(out + i, &key, sizeof key);
    }
}

/* Records start..start+count-1, at most SELECT_BLOCK, with their bytes in the other order. */
#define SELECT_SWAP(type, swap) \
    for (ptrdiff_t i = 0; i < count; i++) { \
        type value; \
        memcpy(&value, data + i * stride, sizeof value); \
        value = swap(value); \
        memcpy((char *)block + i * (ptrdiff_t)sizeof value, &value, sizeof value); \
    }

DPFAST_CLONES
static void select_swap(const char *data, ptrdiff_t stride, ptrdiff_t itemsize, ptrdiff_t count,
                        uint64_t *restrict block)
{
    if (itemsize == 8 && stride == 8) {
        SELECT_SWAP(uint64_t, __builtin_bswap64)
    } else if (itemsize == 8) {
        SELECT_SWAP(uint64_t, __builtin_bswap64)
    } else if (itemsize == 4) {
        SELECT_SWAP(uint32_t, __builtin_bswap32)
    } else {
        SELECT_SWAP(uint16_t, __builtin_bswap16)
    }
}

/* Keys start..start+count-1 of an array whose bytes are in the other order. */
static void select_load_swapped(const struct select_keys *keys, ptrdiff_t itemsize, ptrdiff_t start, ptrdiff_t count,
                                double *restrict out)
{
    uint64_t block[SELECT_BLOCK];
    struct select_keys native = *keys;
    native.data = (const char *)block;
    native.stride = itemsize;
    for (ptrdiff_t i = 0; i < count; i += SELECT_BLOCK) {
        const ptrdiff_t some = count - i < SELECT_BLOCK ? count - i : SELECT_BLOCK;
        select_swap(keys->data + (start + i) * keys->stride, keys->stride, itemsize, some, block);
        select_load_array(&native, 0, some, out + i);
    }
}

/* The part that holds a record. */
static inline const struct select_part *select_part_of(const struct select_keys *keys, ptrdiff_t record)
{
    ptrdiff_t low = 0, high = keys->num_parts - 1;
    while (low < high) {
        const ptrdiff_t middle = low + (high - low + 1) / 2;
        if (keys->parts[middle].start <= record)
            low = middle;
        else
            high = middle - 1;
    }
    return keys->parts + low;
}

/* Where a record is. */
static inline const char *select_address(const struct select_keys *keys, ptrdiff_t record)
{
    if (!keys->parts)
        return keys->data + record * keys->stride;
    const struct select_part *part = select_part_of(keys, record);
    return part->data + (record - part->start) * part->stride;
}

/* Keys of a part, its records start..start+count-1. */
static void select_load_part(const struct select_part *part, ptrdiff_t start, ptrdiff_t count, double *restrict out)
{
    const struct select_keys keys = {.data = part->data,
                                     .stride = part->stride,
                                     .kind = select_kind_of((char)part->kind, part->itemsize),
                                     .scale = 1.0,
                                     .lower = -INFINITY,
                                     .upper = INFINITY};
    if (part->swapped)
        select_load_swapped(&keys, part->itemsize, start, count, out);
    else
        select_load_array(&keys, start, count, out);
    if (part->valid)
        select_hide_bits(part->valid, part->bit + start, count, out);
    if (part->absent)
        select_hide_bytes(part->absent + start, count, out);
}

/* Keys start..start+count-1, NaN still NaN. */
static void select_load(const struct select_keys *keys, ptrdiff_t start, ptrdiff_t count, double *restrict out)
{
    if (!keys->parts) {
        select_load_array(keys, start, count, out);
        return;
    }
    const struct select_part *part = select_part_of(keys, start), *last = keys->parts + keys->num_parts - 1;
    for (; count > 0; part++) {
        const ptrdiff_t left = (part < last ? part[1].start : keys->n) - start, some = left < count ? left : count;
        select_load_part(part, start - part->start, some, out);
        start += some;
        count -= some;
        out += some;
    }
}

/* NaN becomes `missing`, and -0.0 becomes 0.0, so that equal keys have equal bits. */
DPFAST_CLONES static void select_fill(double *keys, ptrdiff_t count, double missing)
{
    for (ptrdiff_t i = 0; i < count; i++)
        keys[i] = keys[i] == keys[i] ? keys[i] + 0.0 : missing;
}

/* The keys of records start..start+count-1, filled. */
static void select_load_filled(const struct select_keys *keys, ptrdiff_t start, ptrdiff_t count, double *restrict out)
{
    select_load(keys, start, count, out);
    select_fill(out, count, keys->missing);
}

/* ---- the sort of a few hundred keys, no NaN among them ---- */

#define SELECT_RUN 8 /* keys in a sorting network */

/* Put the lesser key first. Two independent selections, because gcc would turn one into an unpredictable branch. */
static inline void select_order(double *x, int i, int j)
{
    double left = x[i], right = x[j];
    x[i] = left < right ? left : right;
    x[j] = left > right ? left : right;
}

/* Batcher's network for eight keys: minima and maxima only, without branches to mispredict. */
static inline void select_sort_run(double *x)
{
    select_order(x, 0, 1), select_order(x, 2, 3), select_order(x, 4, 5), select_order(x, 6, 7);
    select_order(x, 0, 2), select_order(x, 1, 3), select_order(x, 4, 6), select_order(x, 5, 7);
    select_order(x, 1, 2), select_order(x, 5, 6);
    select_order(x, 0, 4), select_order(x, 1, 5), select_order(x, 2, 6), select_order(x, 3, 7);
    select_order(x, 2, 4), select_order(x, 3, 5);
    select_order(x, 1, 2), select_order(x, 3, 4), select_order(x, 5, 6);
}

/* Two adjacent sorted runs of one length. The lower half of the result is taken from the front and the upper half from
 * the back: two chains of dependent steps run in parallel, neither leaves its run, and no step branches. */
static inline void select_merge_twins(const double *left, ptrdiff_t run, double *restrict out)
{
    const double *right = left + run, *left_back = right - 1, *right_back = right + run - 1;
    double *back = out + 2 * run - 1;
    for (ptrdiff_t i = 0; i < run; i++) {
        double a = *left, b = *right, c = *left_back, d = *right_back;
        ptrdiff_t take_right = b < a, take_left = d < c;
        *out++ = a < b ? a : b;
        *back-- = c > d ? c : d;
        right += take_right;
        left += 1 - take_right;
        left_back -= take_left;
        right_back -= 1 - take_left;
    }
}

/* Room, in doubles, that select_sort needs for x and again for its scratch: 2^k runs of one length of at most 8. */
static inline ptrdiff_t select_sort_room(ptrdiff_t n)
{
    ptrdiff_t runs = 1;
    while (runs * SELECT_RUN < n)
        runs *= 2;
    return (n + runs - 1) / runs * runs;
}

/* Merge sort of x, bottom up, O(n log n) always. Returns where the sorted keys are: x or scratch. Both hold
 * room = select_sort_room(n) doubles. Runs of equal length make every merge one of equal runs. */
static double *select_sort(double *x, ptrdiff_t n, double *scratch)
{
    const ptrdiff_t room = select_sort_room(n);
    ptrdiff_t run = room;
    while (run > SELECT_RUN)
        run /= 2;
    for (ptrdiff_t i = n; i < room; i++)
        x[i] = INFINITY;
    for (ptrdiff_t i = 0; i < room; i += run) {
        double padded[SELECT_RUN];
        for (ptrdiff_t k = 0; k < SELECT_RUN; k++)
            padded[k] = k < run ? x[i + k] : INFINITY;
        select_sort_run(padded);
        memcpy(x + i, padded, (size_t)run * sizeof *x);
    }
    for (; run < room; run *= 2) {
        for (ptrdiff_t i = 0; i < room; i += 2 * run)
            select_merge_twins(x + i, run, scratch + i);
        double *swap = x;
        x = scratch;
        scratch = swap;
    }
    return x;
}

/* ---- the bracket ---- */

struct select_bracket {
    ptrdiff_t width, strata; /* one sampled key in each stratum */
    ptrdiff_t first, last;   /* ranks in the sample; below 1 or above `strata` the bracket is unbounded on that side */
    ptrdiff_t capacity;      /* room for the keys strictly inside */
};

#define SELECT_SLACK 3.5
#define SELECT_AHEAD 128 /* sampled keys being fetched */

static struct select_bracket select_plan(ptrdiff_t n, ptrdiff_t first, ptrdiff_t last)
{
    struct select_bracket plan;
    const double z = SELECT_SLACK;
    plan.width = (ptrdiff_t)(0.75 * sqrt(sqrt((double)n)) * sqrt(sqrt(sqrt((double)n)))) + 1;
    plan.strata = n / plan.width;

    double m = (double)plan.strata, p = (double)first / (double)n, q = (double)last / (double)n;
    plan.first = (ptrdiff_t)floor(m * p - z * sqrt(m * p * (1.0 - p)) - z * z / 3.0 - 2.0);
    plan.last = (ptrdiff_t)ceil(m * q + z * sqrt(m * q * (1.0 - q)) + z * z / 3.0 + 2.0);

    double i = plan.first < 1 ? 0.0 : (double)plan.first, j = plan.last > plan.strata ? m + 1.0 : (double)plan.last;
    double gaps = j - i + z * sqrt(j - i) + z * z;
    plan.capacity = (ptrdiff_t)(gaps * (double)plan.width);
    return plan;
}

/* The place where the key of a stratum is read, chosen by SplitMix64 from a secret seed. */
static inline ptrdiff_t select_position(ptrdiff_t stratum, ptrdiff_t width, uint64_t secret)
{
    uint64_t h = dpfast_mix(secret + ((uint64_t)stratum + 1) * DPFAST_GOLDEN);
    return stratum * width + (ptrdiff_t)(((h >> 32) * (uint64_t)width) >> 32);
}

DPFAST_CLONES static void select_positions(ptrdiff_t start, ptrdiff_t count, ptrdiff_t width, uint64_t secret,
                                           ptrdiff_t *places)
{
    for (ptrdiff_t i = 0; i < count; i++)
        places[i] = select_position(start + i, width, secret);
}

/* The places of the keys of SELECT_AHEAD strata from `start` on, fewer before `stop`, whose lines are fetched. */
static inline void select_fetch(const struct select_keys *keys, ptrdiff_t width, uint64_t secret, ptrdiff_t start,
                                ptrdiff_t stop, ptrdiff_t *places)
{
    const ptrdiff_t count = stop - start < SELECT_AHEAD ? stop - start : SELECT_AHEAD;
    select_positions(start, count, width, secret, places);
    for (ptrdiff_t i = 0; i < count; i++)
        __builtin_prefetch(select_address(keys, places[i]));
}

/* The sampled keys of the strata start..stop-1. The reads do not wait for one another. */
static void select_sample(const struct select_keys *keys, ptrdiff_t width, uint64_t secret, ptrdiff_t start,
                          ptrdiff_t stop, double *out)
{
    ptrdiff_t places[2][SELECT_AHEAD];
    select_fetch(keys, width, secret, start, stop, places[0]);
    for (ptrdiff_t first = start, turn = 0; first < stop; first += SELECT_AHEAD, turn = !turn) {
        select_fetch(keys, width, secret, first + SELECT_AHEAD, stop, places[!turn]);
        for (ptrdiff_t i = 0; i < SELECT_AHEAD && first + i < stop; i++)
            if (keys->in_place)
                out[first + i] = ((const double *)keys->data)[places[turn][i]];
            else
                select_load(keys, places[turn][i], 1, out + first + i);
    }
    select_fill(out + start, stop - start, keys->missing);
}

/* ---- the scan ---- */

struct select_tally {
    ptrdiff_t not_below, not_above, inside; /* keys >= low, keys <= high, both; NaN is not counted */
    ptrdiff_t at_low;                       /* keys == low */
    ptrdiff_t collected;                    /* keys strictly between low and high, copied to `room` */
    ptrdiff_t overflow;                     /* `room` was too small; the other fields are then meaningless */
};

/* Contiguous keys. `room` holds SELECT_BLOCK keys more than `capacity`, so that a block is tested once. */
static void select_scan_keys(const double *x, ptrdiff_t count, double low, double high, struct select_tally *tally,
                             double *room, ptrdiff_t capacity)
{
    struct filter_counts counts = {0};
    ptrdiff_t collected = tally->collected;
    for (ptrdiff_t i = 0; i < count; i += SELECT_BLOCK) {
        collected += filter_between(x + i, count - i < SELECT_BLOCK ? count - i : SELECT_BLOCK, low, high,
                                    room + collected, &counts);
        if (collected > capacity) {
            tally->overflow = 1;
            return;
        }
    }
    const ptrdiff_t at_low = counts.from_low - counts.above_low;
    const ptrdiff_t at_high = low < high ? counts.to_high - counts.below_high : 0;
    tally->not_below += counts.from_low;
    tally->not_above += counts.to_high;
    tally->inside += at_low + collected - tally->collected + at_high;
    tally->at_low += at_low;
    tally->collected = collected;
}

/* Records start..stop-1 of any dtype: in place, or through a buffer that stays in the first-level cache. */
static struct select_tally select_scan(const struct select_keys *keys, ptrdiff_t start, ptrdiff_t stop, double low,
                                       double high, double *room, ptrdiff_t capacity)
{
    struct select_tally tally = {0};
    if (keys->in_place) {
        select_scan_keys((const double *)(keys->data) + start, stop - start, low, high, &tally, room, capacity);
        return tally;
    }
    double block[SELECT_BLOCK];
    for (ptrdiff_t i = start; i < stop && !tally.overflow; i += SELECT_BLOCK) {
        ptrdiff_t count = stop - i < SELECT_BLOCK ? stop - i : SELECT_BLOCK;
        select_load(keys, i, count, block);
        select_scan_keys(block, count, low, high, &tally, room, capacity);
    }
    return tally;
}

/* ---- marked keys ---- */

/* Copies those of `count` <= SELECT_BLOCK keys, NaN still NaN, whose cells are marked: `found` has the cell of each.
 * Returns how many, at most `room`. No step branches on a key. */
static ptrdiff_t select_marked(const struct select_keys *keys, ptrdiff_t start, ptrdiff_t count, const uint16_t *found,
                               const uint8_t *marked, double *restrict out, ptrdiff_t room)
{
    double block[SELECT_BLOCK];
    uint16_t places[SELECT_BLOCK];
    const double *x = (const double *)keys->data + start;
    ptrdiff_t some = 0;
    for (ptrdiff_t k = 0; k < count; k++) {
        places[some] = (uint16_t)k;
        some += marked[found[k]];
    }
    some = some < room ? some : room;
    if (!keys->in_place && some) {
        select_load(keys, start, count, block);
        x = block;
    }
    for (ptrdiff_t k = 0; k < some; k++)
        out[k] = x[places[k]];
    return some;
}

/* ---- the exact bracket, for samples that missed the window ---- */

#define SELECT_DIGITS 65536

/* A double as an integer of the same order (no NaN, no -0.0), and back. */
static inline uint64_t select_image(double key)
{
    uint64_t bits;
    memcpy(&bits, &key, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static inline double select_key_of_image(uint64_t image)
{
    double key;
    uint64_t bits = image >> 63 ? image ^ UINT64_C(1) << 63 : ~image;
    memcpy(&key, &bits, sizeof key);
    return key;
}

/* Converts a rank among the keys of a prefix to the next digit and a rank among the keys that also share this digit. */
static inline uint64_t select_digit(const int64_t *counts, int64_t *rank)
{
    uint64_t digit = 0;
    while (digit < SELECT_DIGITS - 1 && *rank > counts[digit])
        *rank -= counts[digit++];
    return digit;
}

/* x_(first) and x_(last), four passes, from the most significant 16 bits on. counts holds 2 x SELECT_DIGITS; the second
 * half is used once the prefixes of the two ranks differ. */
static void select_by_digits(const struct select_keys *keys, ptrdiff_t first, ptrdiff_t last, int64_t *counts,
                             double *low, double *high)
{
    double block[SELECT_BLOCK];
    int64_t *counts_high = counts + SELECT_DIGITS;
    int64_t rank_low = first, rank_high = last;
    uint64_t prefix_low = 0, prefix_high = 0;

    for (int shift = 48; shift >= 0; shift -= 16) {
        const int apart = prefix_low != prefix_high;
        memset(counts, 0, 2 * SELECT_DIGITS * sizeof *counts);
        for (ptrdiff_t i = 0; i < keys->n; i += SELECT_BLOCK) {
            ptrdiff_t count = keys->n - i < SELECT_BLOCK ? keys->n - i : SELECT_BLOCK;
            select_load_filled(keys, i, count, block);
            for (ptrdiff_t k = 0; k < count; k++) {
                uint64_t digits = select_image(block[k]) >> shift, prefix = digits >> 16;
                if (prefix == prefix_low)
                    counts[digits % SELECT_DIGITS]++;
                if (apart && prefix == prefix_high)
                    counts_high[digits % SELECT_DIGITS]++;
            }
        }
        prefix_low = prefix_low << 16 | select_digit(counts, &rank_low);
        prefix_high = prefix_high << 16 | select_digit(apart ? counts_high : counts, &rank_high);
    }
    *low = select_key_of_image(prefix_low);
    *high = select_key_of_image(prefix_high);
}

#endif
