"""Tables of distinct keys, integers or byte strings, each with a code and a count; the loops are in ``keys.h``."""

cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

import numpy as np

cnp.import_array()

cdef extern from "keys.h" nogil:
    ctypedef struct dpfast_keys:
        uint64_t seed
        int64_t size
        int64_t *numbers
        int64_t *counts
        uint8_t *bytes

    ctypedef struct dpfast_spans:
        int layout
        const void *offsets
        const uint8_t *data
        Py_ssize_t width
        const uint8_t *missing
        uint8_t *scratch

    enum: DPFAST_OFFSETS32, DPFAST_OFFSETS64, DPFAST_ROWS, DPFAST_PADDED, DPFAST_UCS4, DPFAST_KEY_BLOCK

    void dpfast_keys_free(dpfast_keys *table)
    int dpfast_keys_reserve(dpfast_keys *table, int64_t more)
    uint64_t dpfast_span_hash(uint64_t seed, const uint8_t *bytes, int64_t length)
    int64_t dpfast_span_code(dpfast_keys *table, uint64_t hash, const uint8_t *bytes, int64_t length, int insert)
    int dpfast_group_integers(dpfast_keys *table, const int64_t *keys, const uint8_t *missing, Py_ssize_t n,
                              int64_t *codes, int insert)
    int dpfast_group_spans(dpfast_keys *table, const dpfast_spans *column, Py_ssize_t n, int64_t *codes, int insert,
                           int counted)
    void dpfast_key_words(const dpfast_keys *table, const int64_t *chosen, Py_ssize_t n, int64_t depth,
                          uint64_t *words, int64_t *lengths)


LAYOUTS = {"rows": DPFAST_ROWS, "padded": DPFAST_PADDED, "ucs4": DPFAST_UCS4}


cdef class _Keys:
    """The distinct keys of a table and the number of records of each."""

    cdef dpfast_keys table

    def __cinit__(self, uint64_t seed):
        self.table.seed = seed
        if dpfast_keys_reserve(&self.table, 1):
            raise MemoryError

    def __dealloc__(self):
        dpfast_keys_free(&self.table)

    def __len__(self):
        return self.table.size

    def counts(self):
        """The number of counted records of each key, by code."""
        return self._copied(self.table.counts)

    def add_counts(self, const int64_t[::1] codes, const int64_t[::1] counts):
        """Add to the counts of keys, by valid codes."""
        cdef Py_ssize_t i
        for i in range(codes.shape[0]):
            self.table.counts[codes[i]] += counts[i]

    cdef _copied(self, const int64_t *numbers):
        made = np.empty(self.table.size, np.int64)
        memcpy(cnp.PyArray_DATA(made), numbers, 8 * self.table.size)
        return made


cdef class Integers(_Keys):
    """A table of 64-bit integers."""

    def keys(self):
        """The keys in the order of their codes."""
        return self._copied(self.table.numbers)

    def group(self, const int64_t[::1] keys, const uint8_t[::1] missing, int64_t[::1] codes, bint insert):
        """Write the code of each key, -1 for a missing one, and for a new one unless `insert`."""
        cdef Py_ssize_t n = keys.shape[0]
        cdef const uint8_t *absent = NULL
        cdef int failed
        if n == 0:
            return
        if missing is not None:
            absent = &missing[0]
        with nogil:
            failed = dpfast_group_integers(&self.table, &keys[0], absent, n, &codes[0], insert)
        if failed:
            raise MemoryError


cdef class Spans(_Keys):
    """A table of byte strings."""

    def keys(self):
        """The ends of the keys, in the order of their codes, and their bytes one after another."""
        cdef Py_ssize_t used = self.table.numbers[self.table.size - 1] if self.table.size else 0
        made = np.empty(used, np.uint8)
        if used:
            memcpy(cnp.PyArray_DATA(made), self.table.bytes, used)
        return self._copied(self.table.numbers), made

    def words(self, const int64_t[::1] codes, int64_t depth, uint64_t[::1] words, int64_t[::1] lengths):
        """Write 8 bytes of each key from `depth` on as a big-endian word, and the length from there, at most 9."""
        if codes.shape[0]:
            with nogil:
                dpfast_key_words(&self.table, &codes[0], codes.shape[0], depth, &words[0], &lengths[0])

    def group_offsets(self, cnp.ndarray offsets, const uint8_t[::1] data, const uint8_t[::1] missing,
                      int64_t[::1] codes, bint insert, bint counted):
        """Group the byte strings data[offsets[i]:offsets[i + 1]]; offsets are contiguous int32 or int64."""
        cdef dpfast_spans column
        column.layout = DPFAST_OFFSETS32 if offsets.dtype == np.int32 else DPFAST_OFFSETS64
        column.offsets = cnp.PyArray_DATA(offsets)
        column.data = &data[0] if data.shape[0] else NULL
        column.width = 0
        self._group(&column, offsets.shape[0] - 1, missing, codes, insert, counted)

    def group_fixed(self, const uint8_t[:, ::1] records, str layout, const uint8_t[::1] missing, int64_t[::1] codes,
                    bint insert, bint counted):
        """Group rows of bytes: "rows" as they are, "padded" without final zeros, "ucs4" as UTF-8."""
        cdef dpfast_spans column
        column.layout = LAYOUTS[layout]
        column.offsets = NULL
        column.width = records.shape[1]
        column.data = &records[0, 0] if records.shape[0] and records.shape[1] else NULL
        self._group(&column, records.shape[0], missing, codes, insert, counted)

    cdef _group(self, dpfast_spans *column, Py_ssize_t n, const uint8_t[::1] missing, int64_t[::1] codes, bint insert,
                bint counted):
        cdef int64_t *out = NULL
        cdef int failed
        if n == 0:
            return
        column.missing = NULL
        if missing is not None:
            column.missing = &missing[0]
        if codes is not None:
            out = &codes[0]
        column.scratch = <uint8_t *>PyMem_Malloc(DPFAST_KEY_BLOCK * column.width + 1)
        if column.scratch == NULL:
            raise MemoryError
        with nogil:
            failed = dpfast_group_spans(&self.table, column, n, out, insert, counted)
        PyMem_Free(column.scratch)
        if failed:
            raise MemoryError

    def group_cells(self, list cells, encode, int64_t[::1] codes, bint insert, bint counted):
        """Group objects by the bytes that `encode` makes of each, or None for a missing one."""
        cdef Py_ssize_t i
        cdef int64_t code
        cdef uint64_t hashed
        for i in range(len(cells)):
            made = encode(cells[i])
            code = -1
            if made is not None:
                if dpfast_keys_reserve(&self.table, 1):
                    raise MemoryError
                hashed = dpfast_span_hash(self.table.seed, <const uint8_t *>PyBytes_AS_STRING(made),
                                          PyBytes_GET_SIZE(made))
                code = dpfast_span_code(&self.table, hashed, <const uint8_t *>PyBytes_AS_STRING(made),
                                        PyBytes_GET_SIZE(made), insert)
                if code == -2:
                    raise MemoryError
            if codes is not None:
                codes[i] = code
            if counted and code >= 0:
                self.table.counts[code] += 1


def merge_counts(const int64_t[::1] keys, const int64_t[::1] counts, const int64_t[::1] other_keys,
                 const int64_t[::1] other_counts, int64_t[::1] out_keys, int64_t[::1] out_counts):
    """Merge two sorted tables of distinct integers and their counts; return the number of distinct keys."""
    cdef Py_ssize_t i = 0, j = 0, m = 0, n = keys.shape[0], k = other_keys.shape[0]
    with nogil:
        while i < n or j < k:
            if j == k or (i < n and keys[i] <= other_keys[j]):
                out_keys[m], out_counts[m] = keys[i], counts[i]
                if j < k and other_keys[j] == keys[i]:
                    out_counts[m] += other_counts[j]
                    j += 1
                i += 1
            else:
                out_keys[m], out_counts[m] = other_keys[j], other_counts[j]
                j += 1
            m += 1
    return m
