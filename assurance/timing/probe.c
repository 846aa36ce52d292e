/* For `counts.py`: counters of callgrind, and a source of given words. */
#include <stdint.h>
#include <valgrind/callgrind.h>

static uint64_t words[64];
static uint64_t used;

void probe_start(void) { CALLGRIND_START_INSTRUMENTATION; }
void probe_zero(void) { CALLGRIND_ZERO_STATS; }
void probe_dump(void) { CALLGRIND_DUMP_STATS; }

void probe_rewind(void) { used = 0; }
uint64_t probe_used(void) { return used; }
uint64_t *probe_words(void) { return words; }
uint64_t probe_next(void *unused) { (void)unused; return words[used++ & 63]; }
uint32_t probe_next32(void *unused) { return (uint32_t)(probe_next(unused) >> 32); }
double probe_double(void *unused) { return (double)(probe_next(unused) >> 11) * 0x1p-53; }

/* The control: a geometric draw that counts trials. */
int64_t probe_trials(uint64_t threshold)
{
    int64_t count = 0;
    while (probe_next(0) >= threshold)
        count++;
    return count;
}
