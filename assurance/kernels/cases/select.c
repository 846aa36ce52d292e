#include "prelude.h"
#include "grid.h"
#include "select.h"

/* The leading bits of a magnitude, the last set if a dropped bit was: monotone, no wrap. */
void check_odd(void)
{
    const uint64_t a = any_uint64(), b = any_uint64();
    requires(a <= b);
    holds(dpfast_odd(a) <= dpfast_odd(b));
    holds(a >> 53 || dpfast_odd(a) == a);
    holds(dpfast_odd(a) >> 12 == a >> 12);
}

/* The floor of a key and its increment, 1 <= shift <= 64 (`select_set_grid`), against rounding in 128 bits. */
static void round_up_by(uint64_t value, int shift)
{
    const __int128 rounded = (__int128)(value >> (shift - 1) >> 1) + select_round_up(value, shift);
    holds(rounded == dpfast_round_shift((__int128)value, shift));
}

void check_round_up(void)
{
    const uint64_t value = any_uint64();
    round_up_by(value, 1);
    round_up_by(value, 2);
    round_up_by(value, 63);
    round_up_by(value, 64);
}

/* The place of a stratum's key: inside it, for strata of up to 2^32 records (3/4 n^(3/8) + 1 of `select_plan`). */
void check_position(void)
{
    const ptrdiff_t width = any_between(1, SIZE), stratum = (ptrdiff_t)(any_uint64() >> 12);
    const ptrdiff_t place = select_position(stratum, width, any_uint64()) - stratum * width;
    holds(0 <= place && place < width);
}

/* The key image keeps the order of doubles without NaN and -0.0, and is undone. */
void check_image(void)
{
    const double a = any_double(), b = any_double();
    requires(a == a && b == b && dpfast_bits(a) != (uint64_t)1 << 63 && dpfast_bits(b) != (uint64_t)1 << 63);
    holds((a < b) == (select_image(a) < select_image(b)));
    holds(dpfast_bits(select_key_of_image(select_image(a))) == dpfast_bits(a));
}

/* The network sorts all numbers because it sorts those of zeros and ones (Knuth's principle). */
void check_sort_run(void)
{
    double x[SELECT_RUN];
    for (int i = 0; i < SELECT_RUN; i++)
        x[i] = any_int() & 1 ? 1.0 : 0.0;
    select_sort_run(x);
    for (int i = 1; i < SELECT_RUN; i++)
        holds(x[i - 1] <= x[i]);
}

/* Room for n keys in 2^k runs of one length of at most 8. */
void check_sort_room(void)
{
    const ptrdiff_t n = any_between(1, SIZE), needed = select_sort_room(n);
    holds(n <= needed && needed < n + (n + 3) / 4 && (needed <= SELECT_RUN || needed % 2 == 0));
}

/* Integers of 64 bits as doubles, by two halves: the nearest double, as of the conversion of the compiler. */
void check_double_of(void)
{
    const uint64_t value = any_uint64();
    holds(select_double_of_uint64(value) == (double)value);
    holds(select_double_of_int64(value) == (double)(int64_t)value);
}

/* All finite halves: a magnitude of 11 bits times a power of two. */
void check_half(void)
{
    const uint16_t value = any_uint16();
    const int exponent = value >> 10 & 31;
    requires(exponent < 31);
    const int64_t digits = exponent ? (int64_t)(1024 | (value & 1023)) << (exponent - 1) : value & 1023;
    holds(select_half(value) == (value >> 15 ? -1.0 : 1.0) * (double)digits * 0x1p-24);
}

/* Integers rounded to multiples of 2^shift, 1 <= shift <= 63, 64 if unsigned (`select_set_grid`), or to odd. */
void check_rounded(void)
{
    const uint64_t value = any_uint64();
    const int shift = (int)any_between(1, 63), wide = (int)any_between(1, 64);
    holds(select_round_int64(value, shift) <= 0x1p63 && select_round_uint64(value, wide) <= 0x1p64);
    holds(select_odd_int64(value) <= 0x1p63);
}

/* A key from each of two strata of n keys and no key outside. */
void check_sample(void)
{
    const ptrdiff_t width = any_between(1, 2), n = 2 * width + any_between(0, width - 1);
    double *x = room(double, n), out[2];
    const struct select_keys keys = {.data = (const char *)x, .n = n, .stride = sizeof *x, .kind = SELECT_FLOAT64,
                                     .in_place = 1, .missing = 0.0};
    select_sample(&keys, width, any_uint64(), 0, 2, out);
    holds(out[0] == out[0] && out[1] == out[1]);
}

/* Two sorted runs of zeros and ones become one, with no key from outside: a NaN before and one after would stay. */
void check_merge_twins(void)
{
    double x[2 * SIZE + 2], out[2 * SIZE];
    const ptrdiff_t run = any_between(1, SIZE);
    int ones = 0;
    for (ptrdiff_t i = 0; i < 2 * SIZE + 2; i++)
        x[i] = NAN;
    for (ptrdiff_t i = 0; i < 2 * SIZE; i++)
        if (i < 2 * run) {
            const int one = any_int() & 1;
            x[i + 1] = one;
            ones += one;
            requires(i == 0 || i == run || x[i] <= x[i + 1]);
        }
    select_merge_twins(x + 1, run, out);
    for (ptrdiff_t i = 0; i < 2 * SIZE; i++)
        holds(i >= 2 * run || out[i] == (i < 2 * run - ones ? 0.0 : 1.0));
}

/* The part of a record, among parts of any lengths: it starts at the record or before, and the next one after it. */
void check_part_of(void)
{
    const ptrdiff_t num_parts = any_between(1, SIZE);
    struct select_part parts[SIZE] = {{0}};
    for (ptrdiff_t i = 1; i < SIZE; i++) {
        parts[i].start = any_ptrdiff();
        requires(parts[i - 1].start < parts[i].start);
    }
    const struct select_keys keys = {.parts = parts, .num_parts = num_parts};
    const ptrdiff_t record = any_between(0, PTRDIFF_MAX), found = select_part_of(&keys, record) - parts;
    holds(0 <= found && found < num_parts && parts[found].start <= record);
    holds(found == num_parts - 1 || record < parts[found + 1].start);
}

/* NaN where a bit is 0, the key as it was where it is 1 or beyond the last one, and no byte of bits beyond that. */
void check_hide_bits(void)
{
    const ptrdiff_t count = any_between(1, SIZE), bit = any_between(0, 15), i = any_between(0, SIZE - 1);
    const uint8_t *valid = room(uint8_t, (bit + count + 7) / 8);
    double keys[SIZE];
    const uint64_t before = dpfast_bits(keys[i]);
    select_hide_bits(valid, bit, count, keys);
    if (i >= count || valid[(bit + i) / 8] >> (bit + i) % 8 & 1)
        holds(dpfast_bits(keys[i]) == before);
    else
        holds(keys[i] != keys[i]);
}

/* NaN where a byte is not 0, the key as it was where it is 0. */
void check_hide_bytes(void)
{
    const ptrdiff_t count = any_between(1, SIZE), i = any_between(0, count - 1);
    uint8_t *absent = room(uint8_t, count);
    double *keys = room(double, count);
    const uint64_t before = dpfast_bits(keys[i]);
    select_hide_bytes(absent, count, keys);
    if (absent[i])
        holds(keys[i] != keys[i]);
    else
        holds(dpfast_bits(keys[i]) == before);
}
