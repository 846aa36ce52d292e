/* Sums over hyperplanes for one type of count: include after defining DPFAST_COUNT, an unsigned type, and DPFAST_OF(name),
 * the names of its functions. Sums are exact modulo the range of the type: of the reports of a function, none is counted
 * twice for a cell, so that a type with room for their number is enough. `dpfast_` names are documented here once.
 */

/* Entries that are added at once, in four variables that stay in registers of any width; gcc keeps an array of them in
 * memory, which takes many times as long. Rows of `room` may be read so far beyond their end. */
typedef DPFAST_COUNT DPFAST_OF(dpfast_strip) __attribute__((vector_size(64), aligned(sizeof(DPFAST_COUNT)), may_alias));

/* Each entry of h becomes the number of reports with h + b modulo the prime below `width`, for each of `vectors` of
 * digits. */
DPFAST_CLONES static void DPFAST_OF(dpfast_near)(DPFAST_COUNT *table, ptrdiff_t vectors, ptrdiff_t prime,
                                                 ptrdiff_t width, ptrdiff_t lanes, DPFAST_COUNT *room)
{
    const ptrdiff_t run = prime * lanes;
    for (ptrdiff_t a = 0; a < vectors; a++) {
        DPFAST_COUNT *row = table + a * run;
        memcpy(room, row, (size_t)run * sizeof *row);
        memset(row, 0, (size_t)lanes * sizeof *row);
        for (ptrdiff_t b = 0; b < width; b++)
            for (ptrdiff_t l = 0; l < lanes; l++)
                row[l] += room[b * lanes + l];
        for (ptrdiff_t h = 1; h < prime; h++) { /* b = -h enters, b = width - h leaves */
            const DPFAST_COUNT *in = room + (prime - h) * lanes;
            const DPFAST_COUNT *out = room + (width >= h ? width - h : width - h + prime) * lanes;
            for (ptrdiff_t l = 0; l < lanes; l++)
                row[h * lanes + l] = row[(h - 1) * lanes + l] + in[l] - out[l];
        }
    }
}

/* out[i] = the sum over digits a of rows[a][i], i < n. */
static inline __attribute__((always_inline)) void DPFAST_OF(dpfast_add_rows)(const DPFAST_COUNT *const *rows,
                                                                             ptrdiff_t prime, ptrdiff_t n,
                                                                             DPFAST_COUNT *out)
{
    const ptrdiff_t strip = DPFAST_STRIP / sizeof *out;
    for (ptrdiff_t i = 0; i < n; i += strip) {
        DPFAST_OF(dpfast_strip) sums[4], first = {0}, second = {0}, third = {0}, fourth = {0};
        for (ptrdiff_t a = 0; a < prime; a++) {
            const DPFAST_OF(dpfast_strip) *row = (const DPFAST_OF(dpfast_strip) *)(rows[a] + i);
            first += row[0], second += row[1], third += row[2], fourth += row[3];
        }
        sums[0] = first, sums[1] = second, sums[2] = third, sums[3] = fourth;
        if (n - i >= strip) /* a copy of known size is no call, which would take as long as the sums */
            memcpy(out + i, sums, DPFAST_STRIP);
        else
            memcpy(out + i, sums, (size_t)(n - i) * sizeof *out);
    }
}

/* Replace one digit a of the vectors, with `before` vectors of higher digits and `after` of lower ones, by a digit v: the
 * entry of v and h becomes the sum over a of those of a and h + a v modulo the prime. With `only` just h = 0 is computed.
 *
 * `room` has prime rows of 2 run entries and DPFAST_STRIP bytes, each with the entries of a digit twice, and `rows`
 * prime. */
DPFAST_CLONES static void DPFAST_OF(dpfast_sum_digit)(DPFAST_COUNT *table, ptrdiff_t before, ptrdiff_t prime,
                                                      ptrdiff_t after, ptrdiff_t lanes, int only, DPFAST_COUNT *room,
                                                      const DPFAST_COUNT **rows)
{
    const ptrdiff_t run = prime * lanes, stride = 2 * run + DPFAST_STRIP / sizeof *room;
    for (ptrdiff_t block = 0; block < before * after; block++) {
        DPFAST_COUNT *first = table + (block / after * prime * after + block % after) * run;
        for (ptrdiff_t a = 0; a < prime; a++) {
            memcpy(room + a * stride, first + a * after * run, (size_t)run * sizeof *room);
            memcpy(room + a * stride + run, first + a * after * run, (size_t)run * sizeof *room);
            rows[a] = room + a * stride;
        }
        for (ptrdiff_t v = 0; v < prime; v++) {
            DPFAST_OF(dpfast_add_rows)(rows, prime, only ? lanes : run, first + v * after * run);
            for (ptrdiff_t a = 0; a < prime; a++) {
                rows[a] += a * lanes;
                rows[a] -= rows[a] >= room + a * stride + run ? run : 0;
            }
        }
    }
}

/* All digits of vectors of `digits` of them, `size` vectors; the entries of the last one only for h = 0 if `only`. */
static void DPFAST_OF(dpfast_sum_digits)(DPFAST_COUNT *table, ptrdiff_t size, ptrdiff_t prime, int digits,
                                         ptrdiff_t lanes, int only, DPFAST_COUNT *room, const DPFAST_COUNT **rows)
{
    ptrdiff_t after = 1;
    for (int digit = 0; digit < digits; digit++, after *= prime)
        DPFAST_OF(dpfast_sum_digit)(table, size / after / prime, prime, after, lanes, only && digit == digits - 1, room,
                                    rows);
}

/* to[c][b][r] = from[r][c][b]: the higher digits r become lanes. */
static void DPFAST_OF(dpfast_swap_digits)(const DPFAST_COUNT *from, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t prime,
                                          DPFAST_COUNT *to)
{
    for (ptrdiff_t c = 0; c < columns; c++)
        for (ptrdiff_t r = 0; r < rows; r++) /* few neighbours in, `prime` streams out */
            for (ptrdiff_t b = 0; b < prime; b++)
                to[(c * prime + b) * rows + r] = from[(r * columns + c) * prime + b];
}

/* to[c][b][r] = from[r][b][c]: lanes become digits, and digits lanes. */
static void DPFAST_OF(dpfast_swap_lanes)(const DPFAST_COUNT *from, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t prime,
                                         DPFAST_COUNT *to)
{
    enum { BLOCK = 32 }; /* of rows, whose lines a cache holds */
    for (ptrdiff_t first = 0; first < rows; first += BLOCK) {
        const ptrdiff_t last = first + BLOCK < rows ? first + BLOCK : rows;
        for (ptrdiff_t c = 0; c < columns; c++)
            for (ptrdiff_t b = 0; b < prime; b++)
                for (ptrdiff_t r = first; r < last; r++)
                    to[(c * prime + b) * rows + r] = from[(r * prime + b) * columns + c];
    }
}

/* The supports of the cells of `lanes` functions, at h = 0, in place of their reports. */
static void DPFAST_OF(dpfast_supports)(DPFAST_COUNT *table, ptrdiff_t size, ptrdiff_t prime, int digits,
                                       ptrdiff_t width, ptrdiff_t lanes, DPFAST_COUNT *room, const DPFAST_COUNT **rows)
{
    DPFAST_OF(dpfast_near)(table, size, prime, width, lanes, room);
    DPFAST_OF(dpfast_sum_digits)(table, size, prime, digits, lanes, 1, room, rows);
}

/* The supports of the cells of the only function, at h = 0 of `columns` lanes, in place of its reports. The lower and the
 * higher digits are each the lanes of the others. */
static void DPFAST_OF(dpfast_supports_alone)(DPFAST_COUNT *table, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t prime,
                                             int low, int high, ptrdiff_t width, DPFAST_COUNT *other,
                                             DPFAST_COUNT *room, const DPFAST_COUNT **places)
{
    DPFAST_OF(dpfast_swap_digits)(table, rows, columns, prime, other);
    DPFAST_OF(dpfast_near)(other, columns, prime, width, rows, room);
    DPFAST_OF(dpfast_sum_digits)(other, columns, prime, low, rows, 0, room, places);
    DPFAST_OF(dpfast_swap_lanes)(other, columns, rows, prime, table);
    DPFAST_OF(dpfast_sum_digits)(table, rows, prime, high, columns, 1, room, places);
}

#undef DPFAST_COUNT
#undef DPFAST_OF
