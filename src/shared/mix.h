/* Public pseudorandom words from a seed, the same on every machine: SplitMix64 (Steele, Lea and Flood 2014). Not
 * secure and never used for a privacy decision: it defines the public subset or direction of a seed, or where a
 * selection reads first. */
#ifndef DPFAST_MIX_H
#define DPFAST_MIX_H

#include <stdint.h>

#define DPFAST_GOLDEN 0x9E3779B97F4A7C15u

static inline uint64_t dpfast_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

typedef struct {
    uint64_t state;
} dpfast_mixer;

static inline uint64_t dpfast_next_mixed(void *mixer)
{
    return dpfast_mix(((dpfast_mixer *)mixer)->state += DPFAST_GOLDEN);
}

#endif
