"""What calls with the same public parameters share, found without Python code; serves dpfast/mechanisms/methods.py.

A dictionary takes the hash of each parameter and of a statistic, which is Python code, and cannot tell 1 from True.
"""

cimport cython
cimport numpy as cnp
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

cnp.import_array()

cdef extern from "mix.h" nogil:
    uint64_t DPFAST_GOLDEN
    uint64_t dpfast_mix(uint64_t z)

cdef enum:
    SLOTS = 256


cdef uint64_t _bits(double number) noexcept:
    cdef uint64_t bits
    memcpy(&bits, &number, sizeof(bits))
    return bits


cdef uint64_t _hash(object part) except? 1:
    """A hash of a parameter, the same for parameters that are `_same`."""
    cdef uint64_t h
    if type(part) is float:
        return _bits(part)
    if type(part) is str or type(part) is int:
        return <uint64_t> hash(part)
    if type(part) is not tuple:
        return <uint64_t> <size_t> <void *> part
    h = 0
    for each in <tuple> part:
        h = dpfast_mix(h + DPFAST_GOLDEN + _hash(each))
    return h


cdef bint _same(object a, object b) except -1:
    """Whether two parameters are one object, or equal numbers, texts or tuples of one type."""
    cdef Py_ssize_t i
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is float:
        return _bits(a) == _bits(b)
    if type(a) is str or type(a) is int:
        return a == b
    if type(a) is not tuple or len(<tuple> a) != len(<tuple> b):
        return False
    for i in range(len(<tuple> a)):
        if not _same((<tuple> a)[i], (<tuple> b)[i]):
            return False
    return True


@cython.final
cdef class Calls:
    """Results of calls, by a statistic, public parameters, and the kind of dtype and rough number of records.

    **Law** deterministic: `find` returns what `keep` was given for the same statistic and parameters (numbers, texts
    and tuples of one type and value, the same objects otherwise), an array of the same kind of dtype and the same
    number of records to three significant bits, rounded down; or None. It never reads a record.
    **Assumes** results depend on nothing else; `statistic` and objects of the types `kinds` never change.
    **Cost** 0.1 us; it keeps the results of 256 calls and their parameters alive, none of another type than numbers,
    texts, tuples of these, None and `kinds`.
    """

    cdef list _slots
    cdef frozenset _kinds

    def __init__(self, frozenset kinds not None):
        self._slots = [None] * SLOTS
        self._kinds = frozenset([float, int, bool, str, type(None)]) | kinds

    def find(self, statistic, x, tuple parameters not None):
        """The result, or None if there is none."""
        cdef tuple slot
        if not _is_vector(x):
            return None
        found = self._slots[_place(statistic, x, parameters)]
        if found is None:
            return None
        slot = <tuple> found
        if _same(slot[0], statistic) and <Py_ssize_t> slot[1] == _described(x) and _same(slot[2], parameters):
            return slot[3]
        return None

    def keep(self, statistic, x, tuple parameters not None, result):
        """Keep a result, unless x is not a vector or a parameter is of another type."""
        if _is_vector(x) and self._is_plain(parameters):
            self._slots[_place(statistic, x, parameters)] = statistic, _described(x), parameters, result

    cdef bint _is_plain(self, object part) except -1:
        if type(part) is tuple:
            for each in <tuple> part:
                if not self._is_plain(each):
                    return False
            return True
        return type(part) in self._kinds


cdef inline bint _is_vector(object x) noexcept:
    return cnp.PyArray_CheckExact(x) and cnp.PyArray_NDIM(<cnp.ndarray> x) == 1


cdef inline Py_ssize_t _described(object x) noexcept:
    """The kind of dtype of a vector, 7 bits, and its length: the first three bits, and how many follow."""
    cdef Py_ssize_t n = cnp.PyArray_DIM(<cnp.ndarray> x, 0), more = 0
    while n >> more >= 8:
        more += 1
    return (more << 3 | n >> more) << 7 | (<cnp.ndarray> x).descr.kind


cdef inline Py_ssize_t _place(object statistic, object x, tuple parameters) except -1:
    cdef uint64_t h = dpfast_mix(_hash(statistic) + DPFAST_GOLDEN * <uint64_t> _described(x))
    return dpfast_mix(h + _hash(parameters)) % SLOTS
