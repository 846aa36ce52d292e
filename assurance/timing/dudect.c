/* Cycles of one call with a fixed secret against random secrets, in random order: Reparaz, Balasch and Verbauwhede 2016.
 *
 * Welch's t of all measurements and of those below each of 100 percentiles of the first ones; the greatest |t| is
 * printed. Before a call its secrets are copied into one buffer, so that both classes use the same addresses. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

#include "draws.h"
#include "grid.h"
#include "normal.h"
#include "randomize.h"

enum { CROPS = 100, FIRST = 10000, EACH = 8 };

static uint64_t state = 1;

static uint64_t mixed(void)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t next(void *unused) { (void)unused; return mixed(); }
static bitgen_t source = {NULL, next, NULL, NULL, NULL};

static uint64_t secret[EACH];  /* of the next call */
static int64_t out[EACH];
static uint64_t bits[EACH];
static uint32_t pair[2];
static const uint64_t threshold = UINT64_C(0xbb56000000000123);

static void laplace(void) { dpfast_rounded_laplace(secret, out, 1, 1e3); }
static void geometric(void) { dpfast_geometric(secret, out, 1, 1.0); }
static void gaussian(void) { dpfast_rounded_gaussian(secret, out, 1, 1e3); }
static void student(void) { out[0] = dpfast_rounded_student3(secret[0], 1e3); }
static void stairs(void) { dpfast_levels(secret, out, 1, 2.5, 0.25); out[0] = dpfast_on_level(&source, secret[1], out[0], 10, 4); }
static void bernoulli_exp(void) { out[0] = dpfast_below_exp_neg(secret[0], 0.5); }
static void response(void) { out[0] = dpfast_window(&source, secret, (uint32_t)(secret[2] >> 32) % 100, 1, 100, threshold); }
static void hadamard(void) { out[0] = dpfast_row(secret, (uint32_t)(secret[2] >> 57), 127, threshold); }
static void subset(void)
{
    bits[0] = bits[1] = 0;
    dpfast_subset(&source, secret, (uint32_t)(secret[7] >> 58), 6, 100, threshold, bits);
}
static void line(void) { dpfast_line(&source, secret, (uint32_t)(secret[3] >> 33), 1u << 30, threshold, pair); }
static void code(void)
{
    static const dpfast_grid grid = {-0.5, 0.5, 0x1p-20, 0.0, -0x1p19, -20};
    out[0] = dpfast_encode(&grid, (double)(int64_t)secret[0] * 0x1p-63);
}
static void control(void)  /* a geometric draw by trials */
{
    uint64_t z = secret[0];
    out[0] = 0;
    while (z >> 63) {
        z <<= 1;
        out[0]++;
    }
}

static const struct { const char *name; void (*call)(void); } CASES[] = {
    {"rounded Laplace", laplace}, {"geometric", geometric}, {"rounded Gaussian", gaussian}, {"Student", student},
    {"staircase", stairs}, {"Bernoulli(exp(-x))", bernoulli_exp}, {"k-RR", response}, {"Hadamard", hadamard},
    {"subset", subset}, {"line (OLH)", line}, {"grid code", code}, {"control: trials until success", control},
};

typedef struct { double n, mean, squares; } moments;

static void add(moments *m, double x)
{
    double d = x - m->mean;
    m->mean += d / ++m->n;
    m->squares += d * (x - m->mean);
}

static double welch(const moments *a, const moments *b)
{
    if (a->n < 1000 || b->n < 1000)
        return 0.0;
    double v = a->squares / (a->n - 1) / a->n + b->squares / (b->n - 1) / b->n;
    return v > 0.0 ? (a->mean - b->mean) / sqrt(v) : 0.0;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t measured(void (*call)(void), int class)
{
    for (int i = 0; i < EACH; i++) {
        uint64_t random = mixed(), fixed = UINT64_C(0xf000000000000001) + ((uint64_t)i << 40);
        secret[i] = dpfast_either(-(uint64_t)class, random, fixed);
    }
    unsigned aux;
    _mm_mfence();
    uint64_t start = __rdtscp(&aux);
    _mm_lfence();
    call();
    uint64_t stop = __rdtscp(&aux);
    _mm_lfence();
    return stop - start;
}

int main(int count, char **arguments)
{
    long n = count > 1 ? atol(arguments[1]) : 1000000;
    for (size_t c = 0; c < sizeof CASES / sizeof *CASES; c++) {
        static uint64_t first[FIRST];
        double crop[CROPS];
        moments sums[CROPS + 1][2] = {0};
        for (int i = 0; i < FIRST; i++)
            first[i] = measured(CASES[c].call, (int)(mixed() >> 63));
        qsort(first, FIRST, sizeof *first, ascending);
        for (int k = 0; k < CROPS; k++)
            crop[k] = (double)first[(int)(FIRST * (1.0 - pow(0.5, 10.0 * (k + 1) / CROPS)))];
        for (long i = 0; i < n; i++) {
            int class = (int)(mixed() >> 63);
            double cycles = (double)measured(CASES[c].call, class);
            add(&sums[CROPS][class], cycles);
            for (int k = 0; k < CROPS; k++)
                if (cycles < crop[k])
                    add(&sums[k][class], cycles);
        }
        double most = 0.0, difference = 0.0;
        for (int k = 0; k <= CROPS; k++) {
            double t = welch(&sums[k][0], &sums[k][1]);
            if (fabs(t) > fabs(most))
                most = t, difference = sums[k][0].mean - sums[k][1].mean;
        }
        printf("%s\t%llu\t%.1f\t%.2f\n", CASES[c].name, (unsigned long long)first[FIRST / 2], most, difference);
    }
    return 0;
}
