/* Draws with secret words or secret records under memcheck, which reports each branch and each address that depends on
 * an undefined byte. A case is a function case_NAME; `python -m assurance.timing` compares its reports with
 * assurance/timing/expected.py. It runs without valgrind too, where marks do nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <valgrind/memcheck.h>

#include "draws.h"
#include "grid.h"
#include "knorm.h"
#include "normal.h"
#include "randomize.h"
#define dpfast_subset dpfast_coordinates  /* randomize.h has another function of this name */
#include "bits.h"
#undef dpfast_subset

enum { N = 512, D = 5, MOST = 8192 };

static uint64_t words[MOST], more[MOST];
static int64_t out[MOST];
static uint64_t bits[MOST], lanes[MOST];
static double reals[MOST], normals[MOST];
static uint32_t records[MOST], pairs[2 * MOST];
static uint64_t state;
static volatile uint64_t sink;

static uint64_t mixed(void)  /* SplitMix64: public, the same in each run */
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t next_secret(void *unused)
{
    (void)unused;
    uint64_t word = mixed();
    VALGRIND_MAKE_MEM_UNDEFINED(&word, sizeof word);
    return word;
}

static bitgen_t source = {NULL, next_secret, NULL, NULL, NULL};

#define SECRET(array) VALGRIND_MAKE_MEM_UNDEFINED(array, sizeof(array))
#define CASE(name) static __attribute__((noinline)) void case_##name(void)

/* Fresh words, of which one in eight is small, as the draws of large magnitude need it; fresh records in 0..99. */
static void prepare(void)
{
    for (int i = 0; i < MOST; i++) {
        words[i] = i % 8 ? mixed() : mixed() >> (13 + mixed() % 40);
        more[i] = mixed();
        out[i] = 0;
        bits[i] = lanes[i] = 0;
        reals[i] = ldexp((double)(int64_t)mixed(), -63);
        records[i] = (uint32_t)(mixed() % 100);
    }
}

static void finish(void)
{
    VALGRIND_MAKE_MEM_DEFINED(words, sizeof words), VALGRIND_MAKE_MEM_DEFINED(more, sizeof more);
    VALGRIND_MAKE_MEM_DEFINED(out, sizeof out), VALGRIND_MAKE_MEM_DEFINED(bits, sizeof bits);
    VALGRIND_MAKE_MEM_DEFINED(lanes, sizeof lanes), VALGRIND_MAKE_MEM_DEFINED(reals, sizeof reals);
    VALGRIND_MAKE_MEM_DEFINED(normals, sizeof normals), VALGRIND_MAKE_MEM_DEFINED(records, sizeof records);
    VALGRIND_MAKE_MEM_DEFINED(pairs, sizeof pairs);
    for (int i = 0; i < MOST; i++)
        sink += (uint64_t)out[i] + bits[i] + lanes[i] + pairs[i] + dpfast_bits(reals[i]);
}

/* ---- noise: the words are secret ---- */

CASE(geometric) { SECRET(words); dpfast_geometric(words, out, N, 1e3); }
CASE(levels) { SECRET(words); dpfast_levels(words, out, N, 2.5, 0.25); }
CASE(on_level)
{
    SECRET(words);
    dpfast_levels(more, out, N, 2.5, 0.25);
    SECRET(out);
    for (int i = 0; i < N; i++)
        out[i] = dpfast_on_level(&source, words[i], out[i], 10, 4);
}
CASE(rounded_laplace) { SECRET(words); dpfast_rounded_laplace(words, out, N, 1e3); }
CASE(rounded_gaussian) { SECRET(more); dpfast_rounded_gaussian(more, out, N, 1e3); }  /* no more small words than usual */
CASE(rounded_gaussian_one)
{
    SECRET(words);
    for (int i = 0; i < N; i++)
        dpfast_rounded_gaussian(words + i, out + i, 1, 1e3);
}
CASE(rounded_student3)
{
    SECRET(words);
    for (int i = 0; i < N; i++)
        out[i] = dpfast_rounded_student3(words[i], 1e3);
}
CASE(below_exp_neg)
{
    SECRET(words), SECRET(reals);
    for (int i = 0; i < N; i++)
        out[i] = dpfast_below_exp_neg(words[i], __builtin_fabs(reals[i]));
}
CASE(bernoulli)
{
    for (int i = 0; i < N; i++)
        out[i] = dpfast_bernoulli(&source, 123, 1000);
}
CASE(uniform)
{
    for (int i = 0; i < N; i++)
        out[i] = (int64_t)dpfast_uniform(&source, 999);
}
CASE(box)
{
    double scales[D] = {10.0, 20.0, 30.0, 40.0, 50.0};
    SECRET(words), SECRET(more);
    dpfast_box(words, more, out, N / D, D, scales);
}
CASE(ball)
{
    double scales[D] = {10.0, 20.0, 30.0, 40.0, 50.0};
    SECRET(words), SECRET(more);
    dpfast_ball(words, more, out, N / D, D, scales, normals);
}

/* ---- records to codes: the records are secret ---- */

CASE(encode)
{
    dpfast_grid grid = {-0.5, 0.5, 0x1p-20, 0.0, -0x1p19, -20};
    reals[7] = NAN, reals[8] = INFINITY;
    SECRET(reals);
    dpfast_encode_array(&grid, reals, out, N);
}
CASE(encode_floats)
{
    dpfast_floats grid = {-0.5, 0.5, 0.0, 0x1p-30, 0x1p-39, 0, 0, 43};
    grid.origin = (int64_t)(dpfast_bits(grid.resolution) - (UINT64_C(1) << 52));
    SECRET(reals);
    dpfast_encode_floats(&grid, reals, normals, N);
}
CASE(encode_integers)
{
    dpfast_grid grid = {-1024.0, 1024.0, 4.0, 0.0, -256.0, 2};
    SECRET(more);
    for (int i = 0; i < N; i++)
        reals[i] = dpfast_from_integer(&grid, (int64_t)more[i] >> 48);
    dpfast_encode_array(&grid, reals, out, N);
}
CASE(encode_one)
{
    dpfast_grid grid = {-0.5, 0.5, 0x1p-20, 0.0, -0x1p19, -20};
    reals[7] = NAN, reals[8] = INFINITY;
    SECRET(reals);
    for (int i = 0; i < N; i++)
        out[i] = dpfast_encode(&grid, reals[i]);
}

/* ---- local coins: words and records are secret ---- */

#define THRESHOLD UINT64_C(0xbb56000000000123)

CASE(window)
{
    SECRET(words), SECRET(records);
    for (int i = 0; i < N; i++)
        out[i] = dpfast_window(&source, words + 2 * i, records[i], 1, 100, THRESHOLD);
}
CASE(interval)
{
    SECRET(words), SECRET(records);
    for (int i = 0; i < N; i++)
        out[i] = dpfast_window(&source, words + 2 * i, records[i], 30, 130, THRESHOLD);
}
CASE(row)
{
    SECRET(words), SECRET(records);
    for (int i = 0; i < N; i++)
        out[i] = dpfast_row(words + 2 * i, records[i], 127, THRESHOLD);
}
CASE(dither)
{
    double knots[9] = {0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 1.0};
    SECRET(words), SECRET(reals);
    for (int i = 0; i < N; i++)
        out[i] = dpfast_dither(reals[i], 0.0, words[i], knots, 9);
}
CASE(threshold_bits)
{
    SECRET(words);
    dpfast_threshold_bits(words, THRESHOLD, bits, lanes, N);
}
CASE(close_lanes)
{
    dpfast_threshold_bits(words, THRESHOLD, bits, lanes, N);
    SECRET(bits), SECRET(lanes);
    for (int i = 0; i < N; i++)
        bits[i] = dpfast_close_lanes(&source, bits[i], lanes[i], THRESHOLD);
}
CASE(subset)
{
    SECRET(words), SECRET(records);
    for (int i = 0; i < N; i++)
        dpfast_subset(&source, words + 8 * i, records[i], 7, 100, THRESHOLD, bits + 2 * i);
}
CASE(line)
{
    SECRET(words), SECRET(records);
    for (int i = 0; i < N; i++)
        dpfast_line(&source, words + 3 * i, records[i], 1u << 30, THRESHOLD, pairs + 2 * i);
}
CASE(round_bits)
{
    uint64_t one[64];
    for (int j = 0; j < 64; j++)
        one[j] = UINT64_C(1) << j;
    SECRET(words), SECRET(reals);
    for (int i = 0; i < 32; i++)
        dpfast_round_bits(&source, reals + 100 * i, 100, 1.0, words + 32 * i, one, bits + 2 * i);
}
CASE(flip_minority)
{
    SECRET(words), SECRET(bits);
    for (int i = 0; i < N; i++)
        dpfast_flip_minority(&source, words + 4 * i, 100, THRESHOLD, bits + 2 * i);
}
CASE(ones)
{
    uint64_t few[4] = {UINT64_C(1) << 60, UINT64_C(1) << 61, UINT64_C(1) << 62, UINT64_C(1) << 63};
    SECRET(words);
    for (int i = 0; i < N; i++)
        out[i] = dpfast_ones(words + 2 * i, THRESHOLD, few, 4, few, 4);
}
CASE(flip_weight)
{
    SECRET(words), SECRET(bits);
    for (int i = 0; i < 32; i++) {
        int64_t ones = 20 + (int64_t)(mixed() % 60);
        VALGRIND_MAKE_MEM_UNDEFINED(&ones, sizeof ones);
        dpfast_flip_weight(&source, words + 2 * i, 100, ones, bits + 2 * i);
    }
}

/* ---- controls: a loop that ends early, an address, and a selection by masks, which must not be reported ---- */

CASE(control_loop)
{
    for (int i = 0; i < N; i++)
        while (next_secret(NULL) < THRESHOLD)
            out[i]++;
}
CASE(control_address)
{
    SECRET(words);
    for (int i = 0; i < N; i++)
        out[i] = (int64_t)more[words[i] & 1023];
}
CASE(control_masks)
{
    SECRET(words);
    for (int i = 0; i < N; i++) {
        uint64_t mask = -(words[i] >> 63);
        out[i] = (int64_t)((words[i] & mask) | (more[i] & ~mask));
    }
}

#define RUN(name) (prepare(), case_##name(), finish(), (void)puts(#name))

int main(void)
{
    RUN(geometric), RUN(levels), RUN(on_level), RUN(rounded_laplace), RUN(rounded_gaussian), RUN(rounded_gaussian_one);
    RUN(rounded_student3), RUN(below_exp_neg), RUN(bernoulli), RUN(uniform), RUN(box), RUN(ball);
    RUN(encode), RUN(encode_floats), RUN(encode_integers), RUN(encode_one);
    RUN(window), RUN(interval), RUN(row), RUN(dither), RUN(threshold_bits), RUN(close_lanes), RUN(subset), RUN(line);
    RUN(round_bits), RUN(flip_minority), RUN(ones), RUN(flip_weight);
    RUN(control_loop), RUN(control_address), RUN(control_masks);
    return 0;
}
