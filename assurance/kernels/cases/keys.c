#include "prelude.h"
#include "keys.h"

/* `dpfast_load` reads `length` bytes, up to 8. */
void check_load(void)
{
    const int64_t length = any_between(0, 8);
    uint8_t *bytes = room(uint8_t, length);
    const uint64_t word = dpfast_load(bytes, length);
    holds(length > 0 || word == 0);
}

/* A hash reads its bytes and no others. */
void check_span_hash(void)
{
    const int64_t length = any_between(0, SIZE);
    uint8_t *bytes = room(uint8_t, length);
    (void)dpfast_span_hash(any_uint64(), bytes, length);
}

/* UTF-8 of any 32 bits, as Python encodes it with `surrogatepass`: at most 4 bytes, whose lengths and bits are right. */
void check_utf8(void)
{
    const uint32_t point = any_uint32();
    uint8_t out[4] = {0, 0, 0, 0};
    const int length = dpfast_utf8(point, out);
    holds((length == 0) == (point > 0x10ffff));
    holds(length == 0 || (length == 1 ? out[0] < 0x80 : out[0] >> (7 - length) == (1 << (length + 1)) - 2));
    uint32_t back = length == 1 ? out[0] : length == 2 ? out[0] & 0x1f : length == 3 ? out[0] & 0xf : out[0] & 7;
    for (int i = 1; i < 4; i++)
        if (i < length) {
            holds(out[i] >> 6 == 2);
            back = back << 6 | (out[i] & 0x3f);
        }
    holds(length == 0 || back == point);
}

/* A record of a column: width a multiple of 4 for UCS4, `scratch` of `width` bytes (_keys.pyx). */
void check_span(void)
{
    const ptrdiff_t i = any_between(0, 1), width = 4 * SIZE;
    uint8_t *data = room(uint8_t, 2 * width), *scratch = room(uint8_t, width);
    const int layouts[3] = {DPFAST_ROWS, DPFAST_PADDED, DPFAST_UCS4};
    dpfast_spans column = {layouts[any_between(0, 2)], NULL, data, width, NULL, scratch};
    const uint8_t *bytes;
    const int64_t length = dpfast_span(&column, i, scratch, &bytes);
    holds(-1 <= length && length <= width);
}

/* The same with offsets, ascending within the data (Arrow's layout, checked by its library). */
void check_span_offsets(void)
{
    int32_t ends[3];
    int64_t wide_ends[3];
    const ptrdiff_t i = any_between(0, 1), size = any_between(0, SIZE);
    uint8_t *data = room(uint8_t, size);
    for (int j = 0; j < 3; j++) {
        ends[j] = any_int32();
        wide_ends[j] = ends[j];
        requires((j ? ends[j - 1] : 0) <= ends[j] && ends[j] <= size);
    }
    const uint8_t *bytes;
    const int wide = any_int() & 1;
    dpfast_spans column = {wide ? DPFAST_OFFSETS64 : DPFAST_OFFSETS32, wide ? (void *)wide_ends : (void *)ends, data, 0,
                           NULL, NULL};
    const int64_t length = dpfast_span(&column, i, NULL, &bytes);
    holds(length == ends[i + 1] - ends[i] && bytes - data + length <= size);
}

/* A table of 4 slots, with room for 3 keys, some of which are there: codes are below the size, equal for equal keys. */
void check_integer_code(void)
{
    dpfast_slot slots[4];
    int64_t numbers[3], counts[3];
    memset(slots, 0xff, sizeof slots);
    dpfast_keys table = {slots, 3, 0, 0, 3, numbers, counts, NULL, 0};
    int64_t keys[SIZE], codes[SIZE];
    for (int i = 0; i < SIZE; i++) {
        const uint64_t hash = any_uint64();  /* a bijection of the keys: the hash stands for the key */
        keys[i] = (int64_t)hash;
        codes[i] = dpfast_integer_code(&table, hash, keys[i], 1);
        holds(0 <= codes[i] && codes[i] < table.size && table.size <= i + 1 && numbers[codes[i]] == keys[i]);
    }
    for (int i = 0; i < SIZE; i++)
        holds((codes[i] == codes[0]) == (keys[i] == keys[0]));
}

/* The words by which keys are sorted: `depth` may be beyond a key. */
void check_key_words(void)
{
    int64_t numbers[2] = {any_between(0, SIZE), any_between(0, SIZE)}, chosen[1] = {any_between(0, 1)}, lengths[1];
    requires(numbers[0] <= numbers[1]);
    uint8_t *bytes = room(uint8_t, numbers[1]);
    dpfast_keys table = {NULL, 0, 0, 2, 2, numbers, NULL, bytes, numbers[1]};
    uint64_t words[1];
    dpfast_key_words(&table, chosen, 1, 8 * any_between(0, 2), words, lengths);
    holds(0 <= lengths[0] && lengths[0] <= 9);
}

/* Two byte strings of one hash, whose slots are the last and the first: codes are equal for equal strings only. */
static void span_codes(int64_t first, int64_t second)
{
    dpfast_slot slots[4];
    const int64_t lengths[2] = {first, second};
    int64_t numbers[3], counts[3], codes[2];
    uint8_t stored[2 * SIZE], text[2][SIZE];
    memset(slots, 0xff, sizeof slots);
    dpfast_keys table = {slots, 3, 0, 0, 3, numbers, counts, stored, sizeof stored};
    int equal = first == second;
    for (int j = 0; j < SIZE; j++)
        equal &= j >= first || text[0][j] == text[1][j];
    for (int i = 0; i < 2; i++)
        codes[i] = dpfast_span_code(&table, 3, text[i], lengths[i], 1);
    holds(codes[0] == 0 && codes[1] == !equal && table.size == codes[1] + 1);
    holds(numbers[codes[1]] - (codes[1] ? numbers[0] : 0) == second);
}

void check_span_code(void)
{
    for (int64_t first = 0; first <= SIZE; first++)
        for (int64_t second = 0; second <= SIZE; second++)
            span_codes(first, second);
}
