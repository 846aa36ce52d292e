/* What all harnesses share: names for assumptions and assertions, inputs, a source of words, and the builtins of gcc
 * that CBMC does not have, as the functions of its library. */
#ifndef KERNELS_PRELUDE_H
#define KERNELS_PRELUDE_H

#include <math.h>
#include <numpy/random/bitgen.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#undef NAN
#define NAN (0.0 / 0.0)
#define __builtin_rint rint
#define __builtin_trunc trunc
#define __builtin_parity(x) parity_of(x)
#define __builtin_prefetch(...) ((void)0)

static inline int parity_of(unsigned x)
{
    x ^= x >> 16, x ^= x >> 8, x ^= x >> 4, x ^= x >> 2;
    return (int)((x ^ x >> 1) & 1);
}

#define requires(condition) __CPROVER_assume(condition)
#define holds(condition) __CPROVER_assert(condition, #condition)

/* Any value: CBMC gives a variable without a value every one. */
#define ANY(type, name) static inline type name(void) { type value; return value; }
ANY(ptrdiff_t, any_ptrdiff)
ANY(int, any_int)
ANY(uint8_t, any_byte)
ANY(uint16_t, any_uint16)
ANY(int32_t, any_int32)
ANY(uint32_t, any_uint32)
ANY(int64_t, any_int64)
ANY(uint64_t, any_uint64)
ANY(double, any_double)
ANY(__int128, any_wide)

static inline ptrdiff_t any_between(ptrdiff_t least, ptrdiff_t most)
{
    ptrdiff_t n = any_ptrdiff();
    requires(least <= n && n <= most);
    return n;
}

/* Memory of exactly this size: what is read or written beyond it is an error. */
static inline void *room_of(size_t size)
{
    void *made = malloc(size);
    requires(made != NULL);
    return made;
}

#define room(type, count) ((type *)room_of((size_t)(count) * sizeof(type)))

/* A source of any words, whose runs end after `words` of them: rejection is checked up to that number. */
static int words_left;
static uint64_t word_given; /* the last one */

static uint64_t any_word(void *state)
{
    (void)state;
    requires(words_left > 0);
    words_left--;
    word_given = any_uint64();
    return word_given;
}

static inline bitgen_t source_of(int words)
{
    words_left = words;
    return (bitgen_t){NULL, any_word, NULL, NULL, NULL};
}

#endif
