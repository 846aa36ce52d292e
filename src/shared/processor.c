/* What clang's clones and __builtin_cpu_supports read of the processor, for Windows: the runtime library of `ziglang` says
 * that it has nothing beyond SSE2. Only what DPFAST_CLONES and dpfast_has_avx512 ask is found; names and numbers are those
 * of libgcc.
 */
#include <cpuid.h>

enum { OTHER = 3, POPCNT = 2, AVX2 = 10, AVX512F = 15 }; /* a vendor, and features */

struct {
    unsigned vendor, type, subtype, features[1];
} __cpu_model;
unsigned __cpu_features2[4];

/* The states of registers that the system keeps for each thread. */
static unsigned kept_states(void)
{
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* At load, since __builtin_cpu_supports does not call it. Clones call it before each of their calls: cpuid alone would
 * take a microsecond on a virtual machine. */
__attribute__((constructor)) int __cpu_indicator_init(void)
{
    unsigned a, b, c, d, kept = 0, found = 0;
    if (__cpu_model.vendor)
        return 0;
    if (__get_cpuid(1, &a, &b, &c, &d)) {
        kept = c & bit_OSXSAVE ? kept_states() : 0;
        found |= c & bit_POPCNT ? 1u << POPCNT : 0;
    }
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        found |= b & bit_AVX2 && (kept & 0x06) == 0x06 ? 1u << AVX2 : 0;
        found |= b & bit_AVX512F && (kept & 0xe6) == 0xe6 ? 1u << AVX512F : 0;
    }
    __cpu_model.features[0] = found;
    __cpu_model.vendor = OTHER;
    return 0;
}
