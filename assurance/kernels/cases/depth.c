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
