/* Exact grouping of keys: a hash table of integers, or of byte strings, with a code for each distinct key.
 *
 * Codes are 0, 1, 2, ... in the order in which keys are first seen. Two keys have the same code if and only if they are
 * equal: the hash of an integer is a bijection of its 64 bits, and byte strings of equal hash are compared in full.
 * Open addressing with linear probing; a block of keys is hashed first, so that their slots arrive from memory together.
 */
#ifndef DPFAST_KEYS_H
#define DPFAST_KEYS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pages.h"

#define DPFAST_KEY_BLOCK 64
#define DPFAST_KEY_FIRST_SLOTS 1024
#define DPFAST_NO_KEY (-1)

typedef struct {
    uint64_t hash;
    int64_t code;
} dpfast_slot; /* code -1: empty */

typedef struct {
    dpfast_slot *slots; /* a power of two of them */
    uint64_t mask, seed;
    int64_t size, room; /* distinct keys, and how many fit before the table grows */
    int64_t *numbers;   /* the integer keys, or the end of each byte string in `bytes` */
    int64_t *counts;    /* records of each key */
    uint8_t *bytes;
    int64_t space; /* of `bytes` */
} dpfast_keys;

/* The layouts of a column of byte strings. */
enum { DPFAST_OFFSETS32, DPFAST_OFFSETS64, DPFAST_ROWS, DPFAST_PADDED, DPFAST_UCS4 };

typedef struct {
    int layout;
    const void *offsets; /* of the records in `data`, one more than records */
    const uint8_t *data;
    ptrdiff_t width;        /* bytes of a record of fixed width */
    const uint8_t *missing; /* 1 for a missing record, or NULL */
    uint8_t *scratch;       /* DPFAST_KEY_BLOCK * width bytes, for DPFAST_UCS4 */
} dpfast_spans;

static inline uint64_t dpfast_mixed(uint64_t x) /* a bijection: SplitMix64's last steps */
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t dpfast_integer_hash(uint64_t seed, int64_t key)
{
    return dpfast_mixed((uint64_t)key ^ seed);
}

static inline uint64_t dpfast_folded(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t dpfast_load(const uint8_t *bytes, int64_t length) /* up to 8 bytes, whose length is hashed too */
{
    if (length >= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        return word;
    }
    if (length >= 4) {
        uint32_t first, last;
        memcpy(&first, bytes, 4);
        memcpy(&last, bytes + length - 4, 4);
        return (uint64_t)first << 32 | last;
    }
    return length ? (uint64_t)bytes[0] << 16 | (uint64_t)bytes[length / 2] << 8 | bytes[length - 1] : 0;
}

static inline uint64_t dpfast_span_hash(uint64_t seed, const uint8_t *bytes, int64_t length)
{
    uint64_t hash = seed ^ dpfast_mixed((uint64_t)length);
    int64_t at = 0;
    for (; at + 8 < length; at += 8)
        hash = dpfast_folded(hash ^ dpfast_load(bytes + at, 8), 0x9e3779b97f4a7c15u) + seed;
    return dpfast_mixed(hash ^ dpfast_load(bytes + at, length - at));
}

static void dpfast_keys_free(dpfast_keys *table)
{
    free(table->slots);
    free(table->numbers);
    free(table->counts);
    free(table->bytes);
    memset(table, 0, sizeof *table);
}

/* Make a table of `slots` slots, a power of two, with room for 3/4 as many keys. 0, or -1 without memory. */
static int dpfast_keys_resize(dpfast_keys *table, uint64_t slots)
{
    int64_t room = (int64_t)(slots / 4 * 3);
    int64_t *numbers = realloc(table->numbers, (size_t)room * sizeof *numbers);
    if (numbers == NULL)
        return -1;
    table->numbers = numbers;
    int64_t *counts = realloc(table->counts, (size_t)room * sizeof *counts);
    if (counts == NULL)
        return -1;
    table->counts = counts;
    dpfast_slot *made = dpfast_large(slots * sizeof *made);
    if (made == NULL)
        return -1;
    memset(made, 0xff, (size_t)slots * sizeof *made);
    for (uint64_t i = 0; table->slots != NULL && i <= table->mask; i++) {
        dpfast_slot slot = table->slots[i];
        if (slot.code < 0)
            continue;
        uint64_t place = slot.hash & (slots - 1);
        while (made[place].code >= 0)
            place = (place + 1) & (slots - 1);
        made[place] = slot;
    }
    free(table->slots);
    table->slots = made;
    table->mask = slots - 1;
    table->room = room;
    return 0;
}

/* Make sure that `more` further keys fit. */
static inline int dpfast_keys_reserve(dpfast_keys *table, int64_t more)
{
    uint64_t slots = table->slots == NULL ? DPFAST_KEY_FIRST_SLOTS : table->mask + 1;
    if (table->slots != NULL && table->size + more <= table->room)
        return 0;
    while ((int64_t)(slots / 4 * 3) < table->size + more)
        slots *= 2;
    return dpfast_keys_resize(table, slots);
}

static inline int64_t dpfast_append(dpfast_keys *table, uint64_t place, uint64_t hash, int64_t number)
{
    int64_t code = table->size++;
    table->slots[place] = (dpfast_slot){hash, code};
    table->numbers[code] = number;
    table->counts[code] = 0;
    return code;
}

/* The code of an integer; if it is new, the next code, or -1 unless `insert`. */
static inline int64_t dpfast_integer_code(dpfast_keys *table, uint64_t hash, int64_t key, int insert)
{
    uint64_t place = hash & table->mask;
    while (table->slots[place].code >= 0 && table->slots[place].hash != hash)
        place = (place + 1) & table->mask;
    int64_t code = table->slots[place].code;
    return code >= 0 || !insert ? code : dpfast_append(table, place, hash, key);
}

/* The code of a byte string, in the same way; -2 without memory. */
static inline int64_t dpfast_span_code(dpfast_keys *table, uint64_t hash, const uint8_t *bytes, int64_t length,
                                       int insert)
{
    uint64_t place = hash & table->mask;
    for (; table->slots[place].code >= 0; place = (place + 1) & table->mask) {
        if (table->slots[place].hash != hash)
            continue;
        int64_t code = table->slots[place].code, start = code ? table->numbers[code - 1] : 0;
        if (table->numbers[code] - start == length
            && (length == 0 || memcmp(table->bytes + start, bytes, (size_t)length) == 0))
            return code;
    }
    if (!insert)
        return DPFAST_NO_KEY;
    int64_t used = table->size ? table->numbers[table->size - 1] : 0;
    if (used + length > table->space) {
        int64_t space = 2 * (used + length) + 4096;
        uint8_t *moved = realloc(table->bytes, (size_t)space);
        if (moved == NULL)
            return -2;
        table->bytes = moved;
        table->space = space;
    }
    if (length)
        memcpy(table->bytes + used, bytes, (size_t)length);
    return dpfast_append(table, place, hash, used + length);
}

/* Write the codes of n integers. 0, or -1 without memory. */
static int dpfast_group_integers(dpfast_keys *table, const int64_t *keys, const uint8_t *missing, ptrdiff_t n,
                                 int64_t *codes, int insert)
{
    uint64_t hashes[DPFAST_KEY_BLOCK];
    for (ptrdiff_t start = 0; start < n; start += DPFAST_KEY_BLOCK) {
        ptrdiff_t m = n - start < DPFAST_KEY_BLOCK ? n - start : DPFAST_KEY_BLOCK;
        if (insert && dpfast_keys_reserve(table, DPFAST_KEY_BLOCK))
            return -1;
        for (ptrdiff_t i = 0; i < m; i++) {
            hashes[i] = dpfast_integer_hash(table->seed, keys[start + i]);
            __builtin_prefetch(table->slots + (hashes[i] & table->mask));
        }
        for (ptrdiff_t i = 0; i < m; i++) {
            int64_t code = DPFAST_NO_KEY;
            if (missing == NULL || !missing[start + i])
                code = dpfast_integer_code(table, hashes[i], keys[start + i], insert);
            codes[start + i] = code;
        }
    }
    return 0;
}

/* The UTF-8 of a code point, which may be a surrogate; the number of bytes, 0 beyond Unicode. */
static inline int dpfast_utf8(uint32_t point, uint8_t *out)
{
    if (point < 0x80) {
        out[0] = (uint8_t)point;
        return 1;
    }
    int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    if (point > 0x10ffff)
        return 0;
    for (int i = more; i > 0; i--, point >>= 6)
        out[i] = (uint8_t)(0x80 | (point & 0x3f));
    out[0] = (uint8_t)(0xff << (7 - more) | point);
    return more + 1;
}

/* The bytes of a record, and their number; -1 for a missing one. */
static inline int64_t dpfast_span(const dpfast_spans *column, ptrdiff_t i, uint8_t *scratch, const uint8_t **bytes)
{
    if (column->missing != NULL && column->missing[i])
        return -1;
    const uint8_t *record = column->data + i * column->width;
    int64_t length = column->width;
    switch (column->layout) {
    case DPFAST_OFFSETS32: {
        const int32_t *ends = (const int32_t *)column->offsets + i;
        *bytes = column->data + ends[0];
        return ends[1] - ends[0];
    }
    case DPFAST_OFFSETS64: {
        const int64_t *ends = (const int64_t *)column->offsets + i;
        *bytes = column->data + ends[0];
        return ends[1] - ends[0];
    }
    case DPFAST_PADDED:
        while (length && record[length - 1] == 0)
            length--;
        break;
    case DPFAST_UCS4: {
        int64_t points = length / 4, used = 0;
        const uint32_t *text = (const uint32_t *)record;
        while (points && text[points - 1] == 0)
            points--;
        for (int64_t j = 0; j < points; j++) {
            int more = dpfast_utf8(text[j], scratch + used);
            if (more == 0)
                return -1;
            used += more;
        }
        *bytes = scratch;
        return used;
    }
    }
    *bytes = record;
    return length;
}

/* Write the codes of n byte strings unless `codes` is NULL; `counted` adds to the counts. 0, or -1 without memory. */
static int dpfast_group_spans(dpfast_keys *table, const dpfast_spans *column, ptrdiff_t n, int64_t *codes, int insert,
                              int counted)
{
    uint64_t hashes[DPFAST_KEY_BLOCK];
    const uint8_t *bytes[DPFAST_KEY_BLOCK];
    int64_t lengths[DPFAST_KEY_BLOCK];
    for (ptrdiff_t start = 0; start < n; start += DPFAST_KEY_BLOCK) {
        ptrdiff_t m = n - start < DPFAST_KEY_BLOCK ? n - start : DPFAST_KEY_BLOCK;
        if (insert && dpfast_keys_reserve(table, DPFAST_KEY_BLOCK))
            return -1;
        for (ptrdiff_t i = 0; i < m; i++) {
            lengths[i] = dpfast_span(column, start + i, column->scratch + i * column->width, bytes + i);
            if (lengths[i] < 0)
                continue;
            hashes[i] = dpfast_span_hash(table->seed, bytes[i], lengths[i]);
            __builtin_prefetch(table->slots + (hashes[i] & table->mask));
        }
        for (ptrdiff_t i = 0; i < m; i++) {
            int64_t code = DPFAST_NO_KEY;
            if (lengths[i] >= 0)
                code = dpfast_span_code(table, hashes[i], bytes[i], lengths[i], insert);
            if (code == -2)
                return -1;
            if (codes != NULL)
                codes[start + i] = code;
            if (counted && code >= 0)
                table->counts[code]++;
        }
    }
    return 0;
}

/* The 8 bytes of each chosen key from `depth` on, as a big-endian word padded by zeros, and its bytes beyond `depth`, at
 * most 8: a key that ends earlier is less than one that continues by zeros. */
static void dpfast_key_words(const dpfast_keys *table, const int64_t *chosen, ptrdiff_t n, int64_t depth,
                             uint64_t *words, int64_t *lengths)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        int64_t code = chosen[i], start = code ? table->numbers[code - 1] : 0;
        int64_t length = table->numbers[code] - start - depth;
        length = length < 0 ? 0 : length;
        uint64_t word = 0;
        for (int64_t j = 0; j < 8; j++)
            word = word << 8 | (j < length ? table->bytes[start + depth + j] : 0);
        words[i] = word;
        lengths[i] = length < 9 ? length : 9;
    }
}

#endif
