"""At most so many records of each unit, and of each unit and key; serves dpfast/groups/contributions.py.

docs/proofs/bounded-contributions.md
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset
from numpy.random cimport bitgen_t

import numpy as np

from dpfast._kernels._samplers import fill_words

from dpfast._kernels._samplers cimport unwrap

cdef enum:
    BLOCK = 16384

cdef extern from "bounding.h" nogil:
    ctypedef struct dpfast_reservoir:
        int64_t seen
        int64_t start

    ctypedef struct dpfast_reservoirs:
        int64_t limit
        dpfast_reservoir *groups
        int64_t count
        int64_t *slots

    ctypedef struct dpfast_entries:
        int64_t *records

    ctypedef struct dpfast_quota:
        pass

    ctypedef struct dpfast_sorted:
        uint64_t *words
        Py_ssize_t n
        const int64_t *keys
        int bits

    void dpfast_thin_quotas(const int64_t *codes, const uint8_t *keep, Py_ssize_t n, uint32_t limit,
                            dpfast_quota *quotas, int64_t groups)
    void dpfast_thin(bitgen_t *source, const uint64_t *words, const int64_t *codes, uint8_t *keep, Py_ssize_t n,
                     dpfast_quota *quotas, int64_t groups)
    void dpfast_pack(const int64_t *codes, bint hashed, uint64_t seed, dpfast_sorted *records)
    void dpfast_thin_sorted(bitgen_t *source, const uint64_t *words, dpfast_sorted *records, uint8_t *keep,
                            Py_ssize_t start, Py_ssize_t stop, uint32_t limit)
    void dpfast_reservoirs_free(dpfast_reservoirs *all)
    int dpfast_reservoirs_reserve(dpfast_reservoirs *all, int64_t count)
    int64_t dpfast_kept(const dpfast_reservoirs *all, int64_t group)
    int dpfast_bound_units(bitgen_t *source, dpfast_reservoirs *units, const int64_t *unit, Py_ssize_t n,
                           int64_t first, uint8_t *entered)
    int dpfast_bound_pairs(bitgen_t *source, dpfast_reservoirs *pairs, dpfast_reservoirs *units,
                           dpfast_entries *entries, const int64_t *pair, const int64_t *unit, Py_ssize_t n,
                           int64_t first, uint8_t *entered)


def thin(bit_generator, const int64_t[::1] codes not None, int64_t groups, int64_t limit, uint8_t[::1] keep not None):
    """Keep at most `limit` of the records of each group that are marked in `keep`, none of code -1.

    **Law** of each group a uniformly random subset of min(limit, its marked records) stays marked, independent of all
    others. **Assumes** codes below `groups`, `keep` of the same length with entries 0 and 1, limit >= 1. **Cost** two
    passes, at most one word for each record of a group that loses any (more with a probability below its number of
    records / 2**64), 16 bytes for each group.
    **Reference** Fan, Muller and Rezucha 1962; Knuth 1997, algorithm 3.4.2S.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t start, m, n = codes.shape[0]
    words, counters = np.empty(min(n, BLOCK), np.uint64), np.empty(groups + 1, np.uint64)
    counters[:] = 0  # not np.zeros: in large pages, which np.empty requests, random access takes half the time
    cdef uint64_t[::1] block = words, memory = counters
    cdef dpfast_quota *quotas = <dpfast_quota *> &memory[0]
    if n == 0:
        return
    with nogil:
        dpfast_thin_quotas(&codes[0], &keep[0], n, <uint32_t> min(limit, n), quotas, groups)
    for start in range(0, n, BLOCK):
        m = min(BLOCK, n - start)
        fill_words(bit_generator, words[:m])
        with bit_generator.lock, nogil:
            dpfast_thin(source, &block[0], &codes[start], &keep[start], m, quotas, groups)


def thin_sorted(bit_generator, const int64_t[::1] keys not None, int64_t limit, uint8_t[::1] keep not None,
                seed=None):
    """`thin` by a sort of the records, for any number of groups.

    **Law**, **Assumes** as `thin`, but `keys` are any integers if a `seed` of their hash is given; else they are at
    least 0 where `keep` is 1, and less than 2**(64 - n.bit_length()). **Cost** a sort of n words, and two passes, with
    a word for each record.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t start, stop, n = keys.shape[0]
    if n == 0:
        return
    records, words = np.empty(n, np.uint64), np.empty(min(n, BLOCK), np.uint64)
    cdef uint64_t[::1] packed = records, block = words
    cdef bint hashed = seed is not None
    cdef uint64_t mixed = seed if hashed else 0
    cdef dpfast_sorted by_group
    memset(&by_group, 0, sizeof(by_group))
    by_group.words, by_group.n, by_group.bits = &packed[0], n, n.bit_length()
    if hashed:
        by_group.keys = &keys[0]
    with nogil:
        dpfast_pack(&keys[0], hashed, mixed, &by_group)
    records.sort()
    for start in range(0, n, BLOCK):
        stop = min(n, start + BLOCK)
        fill_words(bit_generator, words[:stop - start])
        with bit_generator.lock, nogil:
            dpfast_thin_sorted(source, &block[0], &by_group, &keep[0], start, stop, <uint32_t> min(limit, n))


cdef class Reservoirs:
    """The records that are kept of each unit: at most `per_unit`, and at most `per_key` of each pair with a key.

    **Law** of each pair a uniformly random subset of min(per_key, its records), and of each unit a uniformly random
    subset of min(per_unit, what is left); all independent. Without pairs, the second alone. **Assumes** limits from 1
    to 2**62. **Cost** one or two words for each record beyond a limit, and 16 bytes for each unit and pair.
    """

    cdef dpfast_reservoirs units, pairs
    cdef dpfast_entries entries

    def __cinit__(self, int64_t per_unit, int64_t per_key):
        self.units.limit, self.pairs.limit = per_unit, per_key

    def __dealloc__(self):
        dpfast_reservoirs_free(&self.units)
        dpfast_reservoirs_free(&self.pairs)
        free(self.entries.records)

    def add(self, bit_generator, const int64_t[::1] units not None, const int64_t[::1] pairs, int64_t first,
            uint8_t[::1] entered not None, int64_t unit_count, int64_t pair_count):
        """Offer the records first, first + 1, ...; mark in `entered`, zeros, those that are kept at first.

        **Assumes** codes below the counts, `units` -1 where a record is left out, and `pairs`, if not None, as well.
        """
        cdef bitgen_t *source = unwrap(bit_generator)
        cdef Py_ssize_t n = units.shape[0]
        cdef int failed
        if dpfast_reservoirs_reserve(&self.units, unit_count) or dpfast_reservoirs_reserve(&self.pairs, pair_count):
            raise MemoryError
        if n == 0:
            return
        with bit_generator.lock, nogil:
            if pairs is None:
                failed = dpfast_bound_units(source, &self.units, &units[0], n, first, &entered[0])
            else:
                failed = dpfast_bound_pairs(source, &self.pairs, &self.units, &self.entries, &pairs[0], &units[0], n,
                                            first, &entered[0])
        if failed:
            raise MemoryError

    def kept(self):
        """The numbers of the records that are kept, by unit."""
        cdef int64_t total = 0, unit, j, i = 0, item
        with nogil:
            for unit in range(self.units.count):
                total += dpfast_kept(&self.units, unit)
        made = np.empty(total, np.int64)
        cdef int64_t[::1] out = made
        with nogil:
            for unit in range(self.units.count):
                for j in range(dpfast_kept(&self.units, unit)):
                    item = self.units.slots[self.units.groups[unit].start + j]
                    out[i] = item if self.entries.records == NULL else self.entries.records[item]
                    i += 1
        return made
