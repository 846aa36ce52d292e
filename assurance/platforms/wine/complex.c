/* Complex functions of the C library of Windows, which wine 8 does not have and on whose call it ends the process: NumPy
 * and SciPy call some of them. By real functions, as plain formulas: no outcome that the table compares bit for bit
 * needs them. */
#include <math.h>

#define FUNCTIONS(real, name) \
    typedef struct { real x, y; } number##name; \
    static number##name of##name(double x, double y) { return (number##name){(real)x, (real)y}; } \
    real stand_in_creal##name(number##name z) { return z.x; } \
    real stand_in_cimag##name(number##name z) { return z.y; } \
    real stand_in_cabs##name(number##name z) { return (real)hypot(z.x, z.y); } \
    real stand_in_carg##name(number##name z) { return (real)atan2(z.y, z.x); } \
    number##name stand_in_cexp##name(number##name z) { return of##name(exp(z.x) * cos(z.y), exp(z.x) * sin(z.y)); } \
    number##name stand_in_clog##name(number##name z) { return of##name(log(hypot(z.x, z.y)), atan2(z.y, z.x)); } \
    number##name stand_in_csqrt##name(number##name z) \
    { \
        const double r = sqrt(hypot(z.x, z.y)), a = atan2(z.y, z.x) / 2; \
        return of##name(r * cos(a), r * sin(a)); \
    } \
    number##name stand_in_csin##name(number##name z) \
    { \
        return of##name(sin(z.x) * cosh(z.y), cos(z.x) * sinh(z.y)); \
    } \
    number##name stand_in_ccos##name(number##name z) \
    { \
        return of##name(cos(z.x) * cosh(z.y), -sin(z.x) * sinh(z.y)); \
    } \
    number##name stand_in_csinh##name(number##name z) \
    { \
        return of##name(sinh(z.x) * cos(z.y), cosh(z.x) * sin(z.y)); \
    } \
    number##name stand_in_ccosh##name(number##name z) \
    { \
        return of##name(cosh(z.x) * cos(z.y), sinh(z.x) * sin(z.y)); \
    } \
    number##name stand_in_catan##name(number##name z) \
    { \
        const double x = z.x, y = z.y; \
        return of##name(atan2(2 * x, 1 - x * x - y * y) / 2, \
                        log((x * x + (y + 1) * (y + 1)) / (x * x + (y - 1) * (y - 1))) / 4); \
    } \
    number##name stand_in_cpow##name(number##name z, number##name w) \
    { \
        const double logarithm = log(hypot(z.x, z.y)), angle = atan2(z.y, z.x); \
        const double r = exp(w.x * logarithm - w.y * angle), a = w.y * logarithm + w.x * angle; \
        return r == 0 ? of##name(0, 0) : of##name(r * cos(a), r * sin(a)); \
    }

FUNCTIONS(double, )
FUNCTIONS(float, f)
