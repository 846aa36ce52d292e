/* DPFAST_CLONES: compile a loop once per vector width and let the loader pick; plain C elsewhere.
 *
 * Only for loops whose every operation is exact or correctly rounded by IEEE 754 (no contraction, no reassociation of
 * floats), so that all clones agree bit for bit. Off under sanitizers, whose runtime is not ready when the loader picks.
 */
#ifndef DPFAST_CLONES_H
#define DPFAST_CLONES_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) \
    && !defined(__SANITIZE_ADDRESS__)
#define DPFAST_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define DPFAST_CLONES
#endif

#endif
