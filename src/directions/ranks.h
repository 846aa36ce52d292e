/* The order of scores, which is all that a choice among directions tells of a record. docs/proofs/reflection.md */
#ifndef DPFAST_RANKS_H
#define DPFAST_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include "certified.h"
#include "clones.h"

/* A word that orders as the double does, -0 as 0; NaN somewhere, always at the same place. */
static inline uint64_t dpfast_order(double x)
{
    uint64_t bits = dpfast_bits(x + 0.0);
    return bits ^ (-(bits >> 63) | (uint64_t)1 << 63);
}

/* The place of the key of this rank among n keys, from the largest, rank 0; of equal keys the first comes first. Whatever
 * the keys are, the n ranks have n different places. Counting n^2 / 2 pairs is faster than sorting for up to 1024 keys,
 * which take less time than the directions whose scores they are. */
DPFAST_CLONES static ptrdiff_t dpfast_ranked(const uint64_t *keys, ptrdiff_t n, ptrdiff_t rank)
{
    for (ptrdiff_t j = 0; j < n - 1; j++) {
        ptrdiff_t ahead = 0;
        for (ptrdiff_t i = 0; i < j; i++)
            ahead += keys[i] >= keys[j];
        for (ptrdiff_t i = j + 1; i < n; i++)
            ahead += keys[i] > keys[j];
        if (ahead == rank)
            return j;
    }
    return n - 1;
}

#endif
