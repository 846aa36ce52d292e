/* Memory for tables that are read and written at random places: in large pages, whose addresses the processor finds
 * several times faster, and fetched before it is written. */
#ifndef DPFAST_PAGES_H
#define DPFAST_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define DPFAST_PAGE ((size_t)1 << 21)

/* `size` bytes, for `free`; NULL without memory. */
static inline void *dpfast_large(size_t size)
{
    if (size < DPFAST_PAGE)
        return malloc(size);
    size = (size + DPFAST_PAGE - 1) & ~(DPFAST_PAGE - 1);
    void *made = aligned_alloc(DPFAST_PAGE, size);
#ifdef MADV_HUGEPAGE
    if (made != NULL)
        madvise(made, size, MADV_HUGEPAGE);  /* a hint: without it the table is only slower */
#endif
    return made;
}

/* Bring the line of table[z] into the first-level cache, to be written, whether or not the table has such an entry. */
static inline void dpfast_fetch(const void *table, uint64_t z, ptrdiff_t size)
{
    __builtin_prefetch((const void *)((uintptr_t)table + z * (uintptr_t)size), 1);
}

#endif
