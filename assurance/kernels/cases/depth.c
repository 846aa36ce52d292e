#include "prelude.h"
#include "depth.h"

/* Rays to records of codes below 2^31 (depth.h): a product of two fits 64 bits, and order is that of angles. */
void check_turns_back(void)
{
    const int64_t x = any_int32(), y = any_int32(), s = any_int32(), t = any_int32();
    requires(x > INT32_MIN && y > INT32_MIN && s > INT32_MIN && t > INT32_MIN && (x || y) && (s || t));
    const int64_t side = y > 0 || (y == 0 && x > 0) ? 1 : -1;
    const dpfast_ray a = {1.0, side * x, side * y, side}, b = {1.0, s, t, 1};
    (void)dpfast_turns_back(&a, &b);
}

/* The greatest common divisor of two integers of 3 bits, of either sign. */
void check_gcd(void)
{
    const int64_t a = any_between(-7, 7), b = any_between(-7, 7), common = dpfast_gcd(a, b);
    holds(common >= 0 && (common == 0) == (a == 0 && b == 0));
    holds(common == 0 || (a % common == 0 && b % common == 0));
}

/* Quotients rounded down, by 3, of numbers of 4 bits. */
void check_floor_ratio(void)
{
    const int a = (int)any_between(-8, 7), b = 3;
    const dpfast_wide quotient = dpfast_floor_ratio(a, b);
    holds(quotient * b <= a && a < (quotient + 1) * b);
}

/* Rays with different keys are sorted by them, the greatest first. */
void check_sort_rays(void)
{
    dpfast_ray rays[SIZE], scratch[SIZE];
    for (int i = 0; i < SIZE; i++)
        rays[i] = (dpfast_ray){any_int() & 1 ? 1.0 : 0.0, 0, 0, 1};
    dpfast_sort_rays(rays, scratch, SIZE);
    for (int i = 1; i < SIZE; i++)
        holds(rays[i - 1].key >= rays[i].key);
}
