/* One macro: compile a function once per vector width and let the loader choose.
 *
 * Put DPFAST_CLONES before a function whose plain C loops gcc vectorises. Every clone computes the same bits
 * as long as the loops contain only exact operations (the build has no -ffast-math and no contraction).
 * It needs ifunc, that is GCC with glibc on x86-64, or clang 22 for Windows, which asks processor.c at each call.
 * Elsewhere, and under AddressSanitizer, whose runtime is not yet initialised when the resolvers run, the macro is empty
 * and the plain function remains. Define it on the command line to compile for one width alone, as assurance.platforms
 * does.
 */
#ifndef DPFAST_CLONES_H
#define DPFAST_CLONES_H

#include <limits.h> /* defines __GLIBC__ through features.h */

/* Whether functions of AVX-512 intrinsics are compiled, for loops that no compiler vectorises; a build for one width
 * has none unless its command line says so. */
#ifndef DPFAST_AVX512
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CPROVER__) && !defined(DPFAST_CLONES)
#define DPFAST_AVX512 1
#else
#define DPFAST_AVX512 0
#endif
#endif
#define DPFAST_512 __attribute__((target("avx512f,popcnt"))) /* before such a function */
#define dpfast_has_avx512() (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("popcnt"))

#if defined(DPFAST_CLONES)
#elif defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) \
    && !defined(__SANITIZE_ADDRESS__)
#define DPFAST_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#elif defined(__x86_64__) && defined(_WIN32) && defined(__clang__) && __clang_major__ >= 22
#define DPFAST_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define DPFAST_CLONES
#endif

#endif
