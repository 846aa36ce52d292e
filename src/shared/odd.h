/* 64-bit integers as doubles rounded to odd: a magnitude of 2^53 or more keeps its leading bits, the last of which is set
 * if a dropped bit was. Rounding the result to 51 bits or fewer is rounding the integer: the dropped bits cannot turn a
 * number beside a tie into a tie. docs/proofs/float-grid.md */
#ifndef DPFAST_ODD_H
#define DPFAST_ODD_H

#include <stdint.h>

#define DPFAST_ODD_DROPPED UINT64_C(2047)

/* Monotone. The result converts to a double without rounding. */
static inline uint64_t dpfast_odd(uint64_t magnitude)
{
    const uint64_t dropped = magnitude >> 53 ? magnitude & DPFAST_ODD_DROPPED : 0;
    return dropped ? (magnitude - dropped) | (DPFAST_ODD_DROPPED + 1) : magnitude;
}

#endif
