/* What all targets use: a trap where a promise does not hold, and copies that end where the sanitizer sees it. */
#ifndef DPFAST_TARGET_H
#define DPFAST_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline void require(int holds)
{
    if (!holds)
        __builtin_trap();
}

/* A copy with no byte to spare, for `free`. */
static inline uint8_t *exactly(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (size)
        memcpy(copy, data, size);
    return copy;
}

#endif
