/* Tables of keys: the codes are those of a comparison with all earlier keys, for integers and each layout of byte
 * strings. Input: a byte of options, one for the width, one for missing records, one for numbered keys that are added
 * first, then the records. */
#include "target.h"
#include "keys.h"

enum { MOST = 256 };

typedef struct { uint8_t *bytes; int64_t length; } span; /* length -1: missing */

/* UTF-8 by the table of RFC 3629, extended to surrogates; 0 beyond Unicode. */
static int plain_utf8(uint32_t point, uint8_t *out)
{
    if (point < 0x80)
        return out[0] = (uint8_t)point, 1;
    if (point < 0x800)
        return out[0] = (uint8_t)(0xc0 + point / 64), out[1] = (uint8_t)(0x80 + point % 64), 2;
    if (point < 0x10000) {
        out[0] = (uint8_t)(0xe0 + point / 4096);
        out[1] = (uint8_t)(0x80 + point / 64 % 64), out[2] = (uint8_t)(0x80 + point % 64);
        return 3;
    }
    if (point > 0x10ffff)
        return 0;
    out[0] = (uint8_t)(0xf0 + point / 262144), out[1] = (uint8_t)(0x80 + point / 4096 % 64);
    out[2] = (uint8_t)(0x80 + point / 64 % 64), out[3] = (uint8_t)(0x80 + point % 64);
    return 4;
}

/* The bytes of a record, copied. */
static span plain_span(const uint8_t *record, ptrdiff_t width, int layout, int missing)
{
    span made = {malloc((size_t)width + 1), width};
    if (layout == DPFAST_UCS4) {
        ptrdiff_t points = width / 4;
        uint32_t point;
        made.length = 0;
        for (; points; points--) {
            memcpy(&point, record + 4 * (points - 1), 4);
            if (point)
                break;
        }
        for (ptrdiff_t j = 0; j < points; j++) {
            memcpy(&point, record + 4 * j, 4);
            const int more = plain_utf8(point, made.bytes + made.length);
            missing |= !more;
            made.length += more;
        }
    } else if (width) {
        memcpy(made.bytes, record, (size_t)width);
        while (layout == DPFAST_PADDED && made.length && made.bytes[made.length - 1] == 0)
            made.length--;
    }
    if (missing)
        made.length = -1;
    return made;
}

static int same(span a, span b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, (size_t)a.length) == 0);
}

/* Require codes by first appearance, from `first` on: equal keys have equal codes, and others new ones. */
static void check_codes(const span *spans, const int64_t *codes, ptrdiff_t n, int64_t first)
{
    int64_t next = first;
    for (ptrdiff_t i = 0; i < n; i++) {
        int64_t expected = spans[i].length < 0 ? DPFAST_NO_KEY : next;
        for (ptrdiff_t j = 0; j < i && expected == next; j++)
            if (spans[j].length >= 0 && same(spans[i], spans[j]))
                expected = codes[j];
        require(codes[i] == expected);
        next += expected == next;
    }
}

static void check_spans(const uint8_t *data, size_t size, int layout, ptrdiff_t width, const uint8_t *missing,
                        int numbered, uint64_t seed)
{
    dpfast_keys table = {.seed = seed};
    int64_t codes[MOST];
    span spans[MOST];
    if (numbered) { /* numbered keys of 9 bytes, which hardly any record repeats */
        uint8_t *named = malloc(9 * (size_t)numbered), spare[1];
        int32_t *ends = malloc(4 * ((size_t)numbered + 1));
        int64_t *found = malloc(8 * (size_t)numbered);
        for (int32_t i = 0; i <= numbered; i++) {
            ends[i] = 9 * i;
            if (i < numbered) {
                memcpy(named + 9 * i, "\xff\xfekey", 5);
                memcpy(named + 9 * i + 5, &i, 4);
            }
        }
        const dpfast_spans column = {DPFAST_OFFSETS32, ends, named, 0, NULL, spare};
        require(dpfast_group_spans(&table, &column, numbered, found, 1, 1) == 0);
        for (int i = 0; i < numbered; i++)
            require(found[i] == i);
        free(named), free(ends), free(found);
    }
    const int64_t first = table.size;
    const int offsets = layout == DPFAST_OFFSETS32 || layout == DPFAST_OFFSETS64;
    ptrdiff_t n = 0;
    int32_t ends32[MOST + 1] = {0};
    int64_t ends64[MOST + 1] = {0};
    if (offsets) { /* a byte of length before each record */
        for (size_t at = 0; at < size && n < MOST; n++) {
            const size_t length = data[at] % 20 <= size - at - 1 ? data[at] % 20 : size - at - 1;
            ends64[n + 1] = ends64[n] + (int64_t)length;
            at += 1 + length;
        }
    } else
        n = width ? (ptrdiff_t)size / width : (ptrdiff_t)size;
    n = n < MOST ? n : MOST;
    uint8_t *records = exactly(data, offsets ? (size_t)ends64[n] : (size_t)(n * width));
    if (offsets) {
        size_t at = 0;
        for (ptrdiff_t i = 0; i < n; i++) {
            const size_t length = (size_t)(ends64[i + 1] - ends64[i]);
            memcpy(records + ends64[i], data + at + 1, length);
            ends32[i + 1] = (int32_t)ends64[i + 1];
            at += 1 + length;
        }
    }
    uint8_t *scratch = malloc((size_t)(DPFAST_KEY_BLOCK * width) + 1);
    const void *ends = layout == DPFAST_OFFSETS32 ? (const void *)ends32 : ends64;
    const dpfast_spans column = {layout, offsets ? ends : NULL, records, offsets ? 0 : width, missing, scratch};
    require(dpfast_group_spans(&table, &column, n, codes, 1, 1) == 0);
    int64_t valid = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const ptrdiff_t place = offsets ? ends64[i] : i * width, length = offsets ? ends64[i + 1] - ends64[i] : width;
        spans[i] = plain_span(records + place, length, layout, missing != NULL && missing[i]);
        valid += spans[i].length >= 0;
        if (codes[i] >= 0) { /* the table holds the bytes themselves */
            require(spans[i].length >= 0 && codes[i] < table.size);
            const int64_t start = codes[i] ? table.numbers[codes[i] - 1] : 0;
            const span held = {table.bytes == NULL ? NULL : table.bytes + start, table.numbers[codes[i]] - start};
            require(same(spans[i], held));
        }
    }
    if (first == 0 || !offsets || size < 1) { /* numbered keys may be repeated by records with offsets */
        check_codes(spans, codes, n, first);
        int64_t counted = 0;
        for (int64_t code = first; code < table.size; code++)
            counted += table.counts[code];
        require(first != 0 || counted == valid);
    }
    int64_t again[MOST], lengths[MOST], chosen[MOST];
    uint64_t words[MOST];
    require(dpfast_group_spans(&table, &column, n, again, 0, 0) == 0);
    require(memcmp(again, codes, (size_t)n * sizeof *codes) == 0);
    ptrdiff_t some = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        if (codes[i] >= 0)
            chosen[some++] = codes[i];
    dpfast_key_words(&table, chosen, some, 8, words, lengths);
    for (ptrdiff_t i = 0; i < n; i++)
        free(spans[i].bytes);
    free(scratch);
    free(records);
    dpfast_keys_free(&table);
}

static void check_integers(const uint8_t *data, size_t size, const uint8_t *missing, int numbered, uint64_t seed)
{
    dpfast_keys table = {.seed = seed};
    int64_t keys[MOST], codes[MOST];
    span spans[MOST];
    for (int64_t i = 0; i < numbered; i++) {
        const int64_t key = INT64_MAX - i;
        require(dpfast_group_integers(&table, &key, NULL, 1, codes, 1) == 0 && codes[0] == i);
    }
    const int64_t first = table.size;
    ptrdiff_t n = (ptrdiff_t)(size / 2 < MOST ? size / 2 : MOST);
    for (ptrdiff_t i = 0; i < n; i++) { /* 16 bits each, of either sign, some of them far away */
        int16_t small;
        memcpy(&small, data + 2 * i, 2);
        keys[i] = small & 1 ? (int64_t)small * (INT64_C(1) << 40) : small;
        spans[i] = (span){(uint8_t *)(keys + i), missing != NULL && missing[i] ? -1 : 8};
    }
    require(dpfast_group_integers(&table, keys, missing, n, codes, 1) == 0);
    check_codes(spans, codes, n, first);
    dpfast_keys_free(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4 || size > 2048)
        return 0;
    const int layout = data[0] & 7;
    const uint64_t seed = data[0] & 8 ? UINT64_C(0x0123456789abcdef) : 0;
    const ptrdiff_t width = layout == DPFAST_UCS4 ? 4 * (data[1] & 7) : data[1] & 31;
    uint8_t missing[MOST];
    for (int i = 0; i < MOST; i++)
        missing[i] = (uint8_t)(data[2] && i % data[2] == data[2] / 2);
    const int numbered = data[3] < 0xe0 ? 0 : 64 * (data[3] - 0xdf); /* up to 2048 */
    const uint8_t *mask = data[2] ? missing : NULL;
    if (layout <= DPFAST_UCS4)
        check_spans(data + 4, size - 4, layout, width, mask, numbered, seed);
    else
        check_integers(data + 4, size - 4, mask, numbered, seed);
    return 0;
}
