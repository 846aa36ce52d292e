/* The cells of wanted columns in rows of delimited text, and the doubles that they spell.
 *
 * A row ends at \n, \r or \r\n. A quote at the start of a cell opens a quotation, which ends at the next single quote
 * or at the end of the file, and may hold delimiters and line ends; every other quote is an ordinary character.
 */
#ifndef DPFAST_CSV_H
#define DPFAST_CSV_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { CSV_STEP = 8 };

/* A high bit in each zero byte of a word; above the first zero byte others may have it, too. */
static inline uint64_t csv_zeros(uint64_t word)
{
    return (word - UINT64_C(0x0101010101010101)) & ~word & UINT64_C(0x8080808080808080);
}

/* The place among the CSV_STEP bytes from p of the first that is one of three; CSV_STEP if there is none. */
static inline int csv_first(const unsigned char *p, unsigned char a, unsigned char b, unsigned char c)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word = 0;
    for (int i = 0; i < CSV_STEP; i++) /* one load, on machines of either byte order */
        word |= (uint64_t)p[i] << 8 * i;
    const uint64_t found = csv_zeros(word ^ ones * a) | csv_zeros(word ^ ones * b) | csv_zeros(word ^ ones * c);
    return found ? __builtin_ctzll(found) / 8 : CSV_STEP;
}

typedef const unsigned char *csv_text;

/* The first byte of p..end that is one of three, or end. */
static inline csv_text csv_find(csv_text p, csv_text end, unsigned char a, unsigned char b, unsigned char c)
{
    for (; end - p >= CSV_STEP; p += CSV_STEP) {
        const int place = csv_first(p, a, b, c);
        if (place < CSV_STEP)
            return p + place;
    }
    while (p < end && *p != a && *p != b && *p != c)
        p++;
    return p;
}

/* The byte after the quotation that contains p; NULL if it ends outside the text, unless the file does, too. */
static inline csv_text csv_unquote(csv_text p, csv_text end, int final)
{
    for (;; p += 2) {
        p = csv_find(p, end, '"', '"', '"');
        if (end - p < 2)
            return final ? end : NULL;
        if (p[1] != '"')
            return p + 1;
    }
}

/* The end of the row whose next cell starts at p: its line end, or that of the file; NULL if the text ends before. */
static inline csv_text csv_rest(csv_text p, csv_text end, unsigned char delimiter, int final)
{
    for (;;) {
        if (p < end && *p == '"' && (p = csv_unquote(p + 1, end, final)) == NULL)
            return NULL;
        for (;; p++) {
            p = csv_find(p, end, '"', '\n', '\r');
            if (p == end)
                return final ? end : NULL;
            if (*p != '"')
                return p;
            if (p[-1] == delimiter) /* at the start of a cell */
                break;
        }
    }
}

/* The places, as start and end from the base of the text, of the wanted cells of the row at p, whose columns ascend
 * from 0; both are 0 for a cell that a short row lacks. Returns the start of the next row, or NULL if the text ends
 * before the row does. */
static inline csv_text csv_row(csv_text base, csv_text p, csv_text end, unsigned char delimiter, int final,
                               const int64_t *columns, ptrdiff_t count, int64_t *places)
{
    ptrdiff_t wanted = 0;
    for (int64_t column = 0; wanted < count; column++) {
        const csv_text start = p;
        if (p < end && *p == '"' && (p = csv_unquote(p + 1, end, final)) == NULL)
            return NULL;
        p = csv_find(p, end, delimiter, '\n', '\r');
        if (p == end && !final)
            return NULL;
        if (column == columns[wanted]) {
            places[2 * wanted] = start - base;
            places[2 * wanted + 1] = p - base;
            wanted++;
        }
        if (p == end || *p != delimiter)
            break;
        p++;
        if (wanted == count && (p = csv_rest(p, end, delimiter, final)) == NULL)
            return NULL;
    }
    for (; wanted < count; wanted++)
        places[2 * wanted] = places[2 * wanted + 1] = 0;
    if (p == end)
        return end;
    if (*p == '\r') {
        if (p + 1 == end)
            return final ? end : NULL;
        return p + (p[1] == '\n' ? 2 : 1);
    }
    return p + 1;
}

/* The places of the wanted cells of all rows of the text, 2 count for each row, at most `most` rows, of which a
 * blank line is one. Returns the number of rows, and in `next` the start of the first row not taken. */
static ptrdiff_t csv_rows(csv_text base, ptrdiff_t size, unsigned char delimiter, int final, const int64_t *columns,
                          ptrdiff_t count, int64_t *places, ptrdiff_t most, ptrdiff_t *next)
{
    const csv_text end = base + size;
    csv_text p = base;
    ptrdiff_t rows = 0;
    while (p < end && rows < most) {
        const csv_text after = csv_row(base, p, end, delimiter, final, columns, count, places + 2 * count * rows);
        if (after == NULL)
            break;
        rows++;
        p = after;
    }
    *next = p - base;
    return rows;
}

/* ---- numbers ---- */

/* clang-format off */
static const uint64_t CSV_FIVES[28] = {
    UINT64_C(1), UINT64_C(5), UINT64_C(25), UINT64_C(125), UINT64_C(625), UINT64_C(3125), UINT64_C(15625),
    UINT64_C(78125), UINT64_C(390625), UINT64_C(1953125), UINT64_C(9765625), UINT64_C(48828125), UINT64_C(244140625),
    UINT64_C(1220703125), UINT64_C(6103515625), UINT64_C(30517578125), UINT64_C(152587890625),
    UINT64_C(762939453125), UINT64_C(3814697265625), UINT64_C(19073486328125), UINT64_C(95367431640625),
    UINT64_C(476837158203125), UINT64_C(2384185791015625), UINT64_C(11920928955078125), UINT64_C(59604644775390625),
    UINT64_C(298023223876953125), UINT64_C(1490116119384765625), UINT64_C(7450580596923828125),
};
/* clang-format on */

static const double CSV_TENS[23] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

static inline double csv_power_of_two(int exponent)
{
    const uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double power;
    memcpy(&power, &bits, 8);
    return power;
}

/* The double nearest to digits 10^exponent, ties to even, for digits > 0 and |exponent| <= 27.
 *
 * 10^k is 5^k 2^k, and 5^27 < 2^63. A product with 5^k is exact in 128 bits. A quotient by 5^k has at least 63 bits,
 * because the dividend is at least 2^126 and the divisor below 2^63. Of either, the leading 62 to 64 bits and a last
 * bit that says whether anything nonzero follows round to the same double. All powers of two are normal. */
static inline double csv_scaled(uint64_t digits, int exponent)
{
    if (digits <= UINT64_C(1) << 53 && exponent >= -22 && exponent <= 22) /* one operation on exact doubles */
        return exponent < 0 ? (double)digits / CSV_TENS[-exponent] : (double)digits * CSV_TENS[exponent];
    const int lead = __builtin_clzll(digits);
    unsigned __int128 exact;
    int two;
    uint64_t rest = 0;
    if (exponent >= 0) {
        exact = (unsigned __int128)digits * CSV_FIVES[exponent];
        two = exponent;
    } else {
        const uint64_t five = CSV_FIVES[-exponent];
        const unsigned __int128 dividend = (unsigned __int128)(digits << lead) << 63;
        exact = dividend / five;
        rest = (uint64_t)(dividend - exact * five);
        two = exponent - lead - 63;
    }
    const uint64_t high = (uint64_t)(exact >> 64);
    if (high) {
        const int shift = 64 - __builtin_clzll(high);
        const unsigned __int128 below = exact & ((((unsigned __int128)1) << shift) - 1);
        exact >>= shift;
        two += shift;
        rest |= below != 0;
    }
    return (double)((uint64_t)exact | (rest != 0)) * csv_power_of_two(two);
}

static inline int csv_is_space(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Narrow a cell in quotes to its text. Returns 0, and changes nothing, if quotes follow the first inside or behind. */
static inline int csv_strip(csv_text *begin, csv_text *end)
{
    if (*begin == *end || **begin != '"')
        return 1;
    if (*end - csv_find(*begin + 1, *end, '"', '"', '"') != 1)
        return 0;
    ++*begin;
    --*end;
    return 1;
}

/* Append decimal digits to a number as long as it stays below 2^64, and return the byte after the last one taken. */
static inline csv_text csv_digits(csv_text p, csv_text end, uint64_t *number)
{
    for (; p < end && *p >= '0' && *p <= '9' && *number < UINT64_MAX / 10; p++)
        *number = 10 * *number + (*p - '0');
    return p;
}

/* Read a cell as Python's float() reads its text, NaN where that raises. Returns 0 if this has to be left to Python:
 * quotes inside, characters beyond ASCII, underscores, infinities, more digits or a larger exponent than fit here. */
static inline int csv_number(csv_text p, csv_text end, double *out)
{
    if (!csv_strip(&p, &end))
        return 0;
    while (p < end && csv_is_space(*p))
        p++;
    while (p < end && csv_is_space(end[-1]))
        end--;
    const int negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    uint64_t digits = 0;
    csv_text start = p;
    p = csv_digits(p, end, &digits);
    ptrdiff_t whole = p - start, fraction = 0;
    if (p < end && *p == '.') {
        start = ++p;
        p = csv_digits(p, end, &digits);
        fraction = p - start;
    }
    if (whole + fraction == 0) { /* in ASCII, only infinities and NaN do not begin with a digit here */
        *out = __builtin_nan("");
        return p == end || (*p >= ' ' && *p <= '~' && *p != 'i' && *p != 'I');
    }
    ptrdiff_t exponent = -fraction;
    if (p < end) {
        if (*p++ != 'e' && p[-1] != 'E')
            return 0;
        const int minus = p < end && *p == '-';
        if (p < end && (*p == '-' || *p == '+'))
            p++;
        uint64_t power = 0;
        start = p;
        if (end - start > 4 || (p = csv_digits(p, end, &power)) == start || p < end)
            return 0;
        exponent += minus ? -(ptrdiff_t)power : (ptrdiff_t)power;
    }
    if (digits == 0) {
        *out = negative ? -0.0 : 0.0;
        return 1;
    }
    if (exponent < -27 || exponent > 27)
        return 0;
    const double value = csv_scaled(digits, (int)exponent);
    *out = negative ? -value : value;
    return 1;
}

/* Read a cell of each row into out. Cells that are left to Python are NaN, and their rows are listed in `hard`; returns
 * how many. */
static ptrdiff_t csv_numbers(csv_text base, const int64_t *places, ptrdiff_t stride, ptrdiff_t rows, double *out,
                             int64_t *hard)
{
    ptrdiff_t left = 0;
    for (ptrdiff_t i = 0; i < rows; i++) {
        const int64_t *place = places + i * stride;
        if (!csv_number(base + place[0], base + place[1], out + i)) {
            out[i] = __builtin_nan("");
            hard[left++] = i;
        }
    }
    return left;
}

#endif
