#include "prelude.h"
#include "csv.h"

/* The byte after a quotation, in a text that ends where the memory ends, or its end, or NULL. */
void check_csv_unquote(void)
{
    unsigned char text[SIZE];
    const ptrdiff_t size = any_between(0, SIZE);
    const csv_text p = text + SIZE - size, end = text + SIZE;
    const int final = any_int() & 1;
    const csv_text after = csv_unquote(p, end, final);
    holds(after == NULL ? !final : p <= after && after <= end);
    holds(after == NULL || after == end || after[-1] == '"');
}

/* The first of three bytes in a word of 8, against a loop. */
void check_csv_first(void)
{
    unsigned char text[CSV_STEP], a = any_byte(), b = any_byte(), c = any_byte();
    int place = 0;
    while (place < CSV_STEP && text[place] != a && text[place] != b && text[place] != c)
        place++;
    holds(csv_first(text, a, b, c) == place);
}

/* A cell is anywhere in the text: its bytes may be followed by nothing. */
void check_csv_number(void)
{
    const ptrdiff_t size = any_between(0, SIZE);
    unsigned char *text = room(unsigned char, size);
    const int64_t place[2] = {0, size};
    int64_t hard[1];
    double out[1];
    const ptrdiff_t left = csv_numbers(text, place, 2, 1, out, hard);
    holds(left == 0 || (left == 1 && hard[0] == 0));
}

/* `csv_digits`: a number below 2^64 and the byte after it, whatever the number before. */
void check_csv_digits(void)
{
    unsigned char text[SIZE];
    uint64_t number = any_uint64(), before = number;
    const csv_text after = csv_digits(text, text + SIZE, &number);
    holds(after >= text && after <= text + SIZE && (after > text || number == before));
}

/* `csv_number`: digits > 0, |exponent| <= 27. The integer part of the conversion only: shifts, quotients, indices. */
void check_csv_scaled(void)
{
    const uint64_t digits = any_uint64();
    const int exponent = (int)any_between(-27, 27);
    requires(digits > (uint64_t)1 << 53);
    (void)csv_scaled(digits, exponent);
}
