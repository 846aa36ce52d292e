/* Delimited text: the cells are those of a parser that goes byte by byte, whole or in parts, and numbers are those of
 * strtod. Input: a byte of options, one of wanted columns, one for the place of the cut, then the text. */
#include "target.h"
#include "csv.h"

enum { MOST_COLUMNS = 8, MOST_ROWS = 64 };

/* The rows of the text, each after the other: the same result as csv_rows with all of the text. */
static ptrdiff_t plain_rows(const uint8_t *t, ptrdiff_t size, uint8_t delimiter, const int64_t *columns,
                            ptrdiff_t count, int64_t *places, ptrdiff_t most, ptrdiff_t *next)
{
    ptrdiff_t rows = 0, p = 0;
    while (p < size && rows < most) {
        int64_t *found = places + 2 * count * rows;
        memset(found, 0, (size_t)(2 * count) * sizeof *found);
        for (int64_t column = 0;; column++) {
            const ptrdiff_t start = p;
            if (p < size && t[p] == '"') {
                p++;
                while (p < size && !(t[p] == '"' && !(p + 1 < size && t[p + 1] == '"')))
                    p += t[p] == '"' ? 2 : 1;
                p += p < size;
            }
            while (p < size && t[p] != delimiter && t[p] != '\n' && t[p] != '\r')
                p++;
            for (ptrdiff_t j = 0; j < count; j++)
                if (columns[j] == column) {
                    found[2 * j] = start;
                    found[2 * j + 1] = p;
                }
            if (p == size || t[p] != delimiter)
                break;
            p++;
        }
        if (p < size)
            p += t[p] == '\r' && p + 1 < size && t[p + 1] == '\n' ? 2 : 1;
        rows++;
    }
    *next = p;
    return rows;
}

static int is_decimal(const char *text)
{
    return *text && text[strspn(text, "0123456789+-.eE \t\n\v\f\r")] == 0;
}

/* Compare a number that csv_number reads with strtod, which rounds correctly. */
static void check_number(const uint8_t *text, ptrdiff_t size)
{
    uint8_t *cell = exactly(text, (size_t)size);
    double value = 0.0;
    if (csv_number(cell, cell + size, &value)) {
        int quoted = size >= 2 && text[0] == '"' && text[size - 1] == '"';
        char *plain = calloc((size_t)size + 1, 1), *end;
        memcpy(plain, text + quoted, (size_t)(size - 2 * quoted));
        const double expected = strtod(plain, &end);
        const int begun = end != plain;
        end += strspn(end, " \t\n\v\f\r");
        const int whole = begun && end == plain + size - 2 * quoted;
        if (value == value)
            require(whole && memcmp(&value, &expected, sizeof value) == 0);
        else
            require(!whole || !is_decimal(plain));
        free(plain);
    }
    free(cell);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3 || size > 4096)
        return 0;
    const uint8_t delimiter = (const uint8_t[]){',', ';', '\t', ' '}[data[0] & 3];
    const ptrdiff_t most = data[0] & 8 ? 2 : MOST_ROWS;
    int64_t columns[MOST_COLUMNS];
    ptrdiff_t count = 0;
    for (int j = 0; j < MOST_COLUMNS; j++)
        if (data[1] >> j & 1)
            columns[count++] = j;
    if (count == 0)
        columns[count++] = 0;
    const ptrdiff_t n = (ptrdiff_t)size - 3, cut = n ? data[2] % n : 0;
    uint8_t *text = exactly(data + 3, (size_t)n);
    int64_t places[2 * MOST_COLUMNS * MOST_ROWS], expected[2 * MOST_COLUMNS * MOST_ROWS];
    ptrdiff_t next = 0, last = 0;
    const ptrdiff_t rows = csv_rows(text, n, delimiter, 1, columns, count, places, most, &next);
    require(rows == plain_rows(text, n, delimiter, columns, count, expected, most, &last) && next == last);
    const size_t bytes = (size_t)(2 * count * rows) * sizeof *places;
    require(memcmp(places, expected, bytes) == 0);

    /* the same text in two parts, of which the first is not final */
    uint8_t *part = exactly(text, (size_t)cut);
    ptrdiff_t begun = csv_rows(part, cut, delimiter, 0, columns, count, places, most, &next), after = 0;
    free(part);
    require(next <= cut && begun <= rows);
    part = exactly(text + next, (size_t)(n - next));
    begun += csv_rows(part, n - next, delimiter, 1, columns, count, places + 2 * count * begun, most - begun,
                      &after);
    free(part);
    require(begun == rows);

    double *numbers = malloc((size_t)rows * sizeof *numbers + 1);
    int64_t *hard = malloc((size_t)rows * sizeof *hard + 1);
    for (ptrdiff_t j = 0; j < count; j++) {
        const ptrdiff_t left = csv_numbers(text, expected + 2 * j, 2 * count, rows, numbers, hard);
        require(left >= 0 && left <= rows);
    }
    for (ptrdiff_t i = 0; i < rows * count; i++)
        check_number(text + expected[2 * i], expected[2 * i + 1] - expected[2 * i]);
    free(numbers);
    free(hard);
    free(text);
    return 0;
}
