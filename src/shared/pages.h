/* Memory for tables that are read and written at random places: in large pages, whose addresses the processor finds
 * several times faster, and fetched before it is written. */
#ifndef DPFAST_PAGES_H
#define DPFAST_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#ifdef _WIN32
#include <malloc.h>
#endif
#ifdef __linux__
#include <sys/mman.h>
#endif

#define DPFAST_PAGE ((size_t)1 << 21)

/* `size` bytes, for `free`; NULL without memory. Only Linux takes the hint, without which the table is only slower. */
static inline void *dpfast_large(size_t size)
{
#ifdef MADV_HUGEPAGE
    if (size >= DPFAST_PAGE) {
        size = (size + DPFAST_PAGE - 1) & ~(DPFAST_PAGE - 1);
        void *made = aligned_alloc(DPFAST_PAGE, size);
        if (made != NULL)
            madvise(made, size, MADV_HUGEPAGE);
        return made;
    }
#endif
    return malloc(size);
}

/* `size` bytes at a line of the cache, for dpfast_free_lines; NULL without memory. */
static inline void *dpfast_lines(size_t size)
{
    size = (size + 63) & ~(size_t)63;
#ifdef _WIN32
    return _aligned_malloc(size, 64);
#else
    return aligned_alloc(64, size);
#endif
}

static inline void dpfast_free_lines(void *lines)
{
#ifdef _WIN32
    _aligned_free(lines);
#else
    free(lines);
#endif
}

/* Bring the line of table[z] into the first-level cache, to be written, whether or not the table has such an entry. */
static inline void dpfast_fetch(const void *table, uint64_t z, ptrdiff_t size)
{
    __builtin_prefetch((const void *)((uintptr_t)table + z * (uintptr_t)size), 1);
}

#endif
