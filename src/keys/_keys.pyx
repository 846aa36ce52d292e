"""Tables of distinct keys, integers or byte strings, each with a code and a count; the loops are in ``keys.h``."""

cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int64_t, uint8_t, uint64_t, uintptr_t
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


ctypedef struct Seen:
    PyObject *cell
    int64_t code

cdef extern from "Python.h":
    bint is_ascii "PyUnicode_IS_COMPACT_ASCII"(PyObject *text)
    const void *ascii_data "PyUnicode_DATA"(PyObject *text)
    Py_ssize_t ascii_length "PyUnicode_GET_LENGTH"(PyObject *text)

cdef enum:
    SEEN_BITS = 16  # 1 MB: a cache of the processor holds it
    SHORT = 256  # bytes of text that are copied to the stack

cdef uint64_t GOLDEN = 0x9E3779B97F4A7C15

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
        """Group objects by the bytes that `encode` makes of each, or None for a missing one.

        **Assumes** that `encode` makes of text its UTF-8, after the same bytes for all text, or None.
        **Cost** a few ns for the same str, bytes or None as shortly before, found by its address; a call of `encode`
        for objects other than ASCII text.
        """
        cdef Py_ssize_t i
        cdef int64_t code
        cdef PyObject *cell
        cdef object before = encode("")
        cdef Seen *seen = <Seen *>PyMem_Calloc(1 << SEEN_BITS, sizeof(Seen))
        cdef Seen *slot
        if seen == NULL:
            raise MemoryError
        try:
            for i in range(len(cells)):
                cell = PyList_GET_ITEM(cells, i)
                slot = &seen[(<uint64_t><uintptr_t>cell * GOLDEN) >> (64 - SEEN_BITS)]
                if slot.cell == cell:
                    code = slot.code
                else:
                    if before is not None and PyUnicode_CheckExact(<object>cell) and is_ascii(cell):
                        code = self._text_code(before, cell, insert)
                    else:
                        made = encode(<object>cell)
                        code = -1
                        if made is not None:
                            code = self._code(<const uint8_t *>PyBytes_AS_STRING(made), PyBytes_GET_SIZE(made), insert)
                    if PyUnicode_CheckExact(<object>cell) or PyBytes_CheckExact(<object>cell) or <object>cell is None:
                        slot.cell, slot.code = cell, code
                if codes is not None:
                    codes[i] = code
                if counted and code >= 0:
                    self.table.counts[code] += 1
        finally:
            PyMem_Free(seen)

    cdef int64_t _text_code(self, bytes before, PyObject *text, bint insert) except -2:
        """The code of ASCII text, after the bytes `before`."""
        cdef uint8_t short[SHORT]
        cdef Py_ssize_t head = PyBytes_GET_SIZE(before), length = ascii_length(text)
        if head + length > SHORT:
            made = before + (<object>text).encode()
            return self._code(<const uint8_t *>PyBytes_AS_STRING(made), head + length, insert)
        memcpy(short, PyBytes_AS_STRING(before), head)
        memcpy(short + head, ascii_data(text), length)
        return self._code(short, head + length, insert)

    cdef int64_t _code(self, const uint8_t *start, Py_ssize_t length, bint insert) except -2:
        """The code of a byte string; -1 for a new one unless `insert`."""
        cdef int64_t code
        if insert and dpfast_keys_reserve(&self.table, 1):
            raise MemoryError
        code = dpfast_span_code(&self.table, dpfast_span_hash(self.table.seed, start, length), start, length, insert)
        if code == -2:
            raise MemoryError
        return code


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
