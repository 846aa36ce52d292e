#include "prelude.h"
#include "bins.h"
#include "marginals.h"
#include "spans.h"

/* A guess is a bin, whatever the key, the origin and the scale; the conversion of a double is within its range. */
void check_bins_guess(void)
{
    const int32_t bins = any_int32();
    requires(bins >= 1);
    const int32_t guess = bins_guess(any_double(), any_double(), any_double(), bins - 1);
    holds(0 <= guess && guess < bins);
}

/* The bin of a key by search: thresholds ascend from -inf, and NaN is `missing`, a number (bins.h). */
void check_bins_search(void)
{
    const int32_t bins = (int32_t)any_between(1, SIZE);
    double *thresholds = room(double, bins), key[1] = {any_double()};
    thresholds[0] = -INFINITY;
    for (int32_t i = 0; i < bins; i++)
        requires(thresholds[i] == thresholds[i] && (i == 0 || thresholds[i - 1] < thresholds[i]));
    const struct bins_axis axis = {.thresholds = thresholds, .missing = any_double(), .bins = bins};
    requires(axis.missing == axis.missing);
    int32_t cells[1] = {0};
    bins_locate_by_search(&axis, key, 1, cells);
    const double known = key[0] == key[0] ? key[0] : axis.missing;
    holds(0 <= cells[0] && cells[0] < bins && thresholds[cells[0]] <= known);
    holds(cells[0] == bins - 1 || known < thresholds[cells[0] + 1]);
}

/* A cell for a word, at most one further word: the item that holds its rank, from a guide of every fourth rank. */
void check_bins_draw_cells(void)
{
    uint64_t cumulative[SIZE], words[1];
    const int32_t items[3] = {0, 1, 2};
    int32_t guide[2], cells[1];
    for (int i = 0; i < SIZE; i++)
        requires((i ? cumulative[i - 1] : 0) < cumulative[i] && cumulative[i] <= 8);
    const uint64_t total = cumulative[SIZE - 1];
    for (uint64_t g = 0; g < 2; g++) {
        guide[g] = 0;
        for (int i = 0; i + 1 < SIZE; i++)
            guide[g] += cumulative[i] <= 4 * g;
    }
    const struct bins_weights law = {cumulative, items, guide, 2, total};
    bitgen_t source = source_of(1);
    bins_draw_cells(&source, &law, words, cells, 1);
    const uint64_t word = words_left ? words[0] : word_given, rank = (uint64_t)((unsigned __int128)word * total >> 64);
    holds(0 <= cells[0] && cells[0] < SIZE && rank < cumulative[cells[0]]);
    holds(cells[0] == 0 || cumulative[cells[0] - 1] <= rank);
}

/* A point of the bin of a cell, one axis of bins of 3 and 5 points: the last bin includes its upper edge. */
void check_bins_draw_points(void)
{
    const int64_t edges[3] = {0, 3, 7};
    const int32_t divisor = any_int() & 1 ? 2 : 0, cell = (int32_t)any_between(0, divisor ? 7 : 1);
    const int32_t bin = divisor ? cell / divisor % 2 : cell;
    uint64_t words[1];
    double out[1];
    bitgen_t source = source_of(1);
    bins_draw_points(&source, words, &cell, 1, edges, 2, divisor, -3, 1.0, out, 1);
    holds(edges[bin] - 3 <= out[0] && out[0] <= edges[bin + 1] - 3 && (bin == 1 || out[0] < edges[bin + 1] - 3));
}

/* A marginal of the first column of two and one of both, codes below 2 and 3: each record is counted once in each. */
void check_marginals(void)
{
    uint16_t codes[2 * SIZE];
    uint32_t counts[8] = {0}, first = 0, cell = 0;
    const int32_t columns[3] = {0, 0, 1}, ends[2] = {1, 3}, bins[2] = {2, 3};
    const int64_t offsets[2] = {0, 2};
    const struct marginals_plan plan = {columns, ends, offsets, bins, 2};
    for (int i = 0; i < SIZE; i++)
        requires(codes[i] < 2 && codes[SIZE + i] < 3);
    marginals_count(&plan, codes, SIZE, 0, SIZE, counts);
    for (int i = 0; i < SIZE; i++) {
        first += codes[i] == 1;
        cell += codes[i] == 1 && codes[SIZE + i] == 2;
    }
    holds(counts[1] == first && counts[0] == SIZE - first && counts[2 + 5] == cell);
}

/* Any key is in 0..WINDOWS_BUCKETS + 1: start is finite, 0 < scale <= 1e300 (`windows_between`), `missing` a number. */
void check_windows_find(void)
{
    const struct windows_buckets b = {0.0, 1.0, 0.0, any_double(), any_double()};
    const double key[1] = {any_double()}, missing = any_double();
    requires(b.start - b.start == 0.0 && 0.0 < b.scale && b.scale <= 1e300 && missing == missing);
    int32_t cells[1];
    windows_find(&b, key, 1, missing, cells);
    holds(0 <= cells[0] && cells[0] <= WINDOWS_BUCKETS + 1);
}

/* Room for the keys of marked buckets and no more: their counts are known. Whole keys are copied. */
void check_windows_collect(void)
{
    double x[SIZE];
    uint16_t found[SIZE];
    const unsigned char marked[2] = {any_int() & 1, any_int() & 1};
    ptrdiff_t capacity = 0;
    for (int i = 0; i < SIZE; i++) {
        requires(found[i] < 2);
        capacity += marked[found[i]];
    }
    const struct select_keys keys = {.data = (const char *)x, .n = SIZE, .stride = 8, .kind = SELECT_FLOAT64,
                                     .in_place = 1};
    const struct windows_buckets b = {0.0, 1.0, 0.0, 0.0, 1.0};
    double *room_for_keys = room(double, capacity);
    holds(windows_collect(&keys, &b, 0, SIZE, found, marked, room_for_keys, capacity) == capacity);
}

/* Each key is counted once, in one of two tables. */
void check_windows_add(void)
{
    int32_t cells[SIZE], ones = 0;
    uint32_t counts[2] = {0, 0}, others[2] = {0, 0};
    const ptrdiff_t count = any_between(0, SIZE);
    uint16_t *found = room(uint16_t, count);
    for (int i = 0; i < SIZE; i++) {
        requires(0 <= cells[i] && cells[i] < 2);
        ones += i < count && cells[i];
    }
    windows_add(cells, count, counts, others, found);
    holds(counts[1] + others[1] == (uint32_t)ones && counts[0] + others[0] == (uint32_t)(count - ones));
}
