"""What calls with the same public parameters share, found without Python code; serves dpfast/mechanisms/methods.py.

A dictionary takes the hash of each parameter and of a statistic, which is Python code, and cannot tell 1 from True.
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np

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

cdef frozenset NUMBERS = frozenset([Fraction, Decimal, np.float64, np.float32, np.int64, np.int32])


cdef uint64_t _bits(double number) noexcept:
    cdef uint64_t bits
    memcpy(&bits, &number, sizeof(bits))
    return bits


cdef uint64_t _hash(object part) except? 1:
    """A hash of a parameter, the same for parameters that are `_same`."""
    cdef uint64_t h
    if part is None:  # most parameters: without it, they are looked up among the types of numbers
        return 0
    if type(part) is float:
        return _bits(part)
    if type(part) is str or type(part) is int:
        return <uint64_t> hash(part)
    if type(part) is not tuple:
        return <uint64_t> hash(part) if type(part) in NUMBERS else <uint64_t> <size_t> <void *> part
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
    if type(a) in NUMBERS:
        return a == b and a != 0  # zeros may have different signs
    if type(a) is not tuple or len(<tuple> a) != len(<tuple> b):
        return False
    for i in range(len(<tuple> a)):
        if not _same((<tuple> a)[i], (<tuple> b)[i]):
            return False
    return True


@cython.final
cdef class Parameters:
    """The public parameters of a call of a statistic by their names, as the user gave them. It never changes.

    A list of bounds, weights or typical values is a tuple here, so that nobody can change it after it was checked.
    """

    cdef tuple _parts

    def __init__(
        self, bounds=None, grid=None, epsilon=None, delta=0.0, method="auto", missing=None, distribution=None,
        neighbors="replace-one", measure="auto",
    ):
        if type(bounds) is list:
            bounds = tuple(<list> bounds)
        if type(measure) is list:
            measure = tuple(<list> measure)
        if type(distribution) is list:
            distribution = tuple(<list> distribution)
        self._parts = bounds, grid, epsilon, delta, method, neighbors, missing, measure, distribution

    @property
    def bounds(self):
        return self._parts[0]

    @property
    def grid(self):
        return self._parts[1]

    @property
    def epsilon(self):
        return self._parts[2]

    @property
    def delta(self):
        return self._parts[3]

    @property
    def method(self):
        return self._parts[4]

    @property
    def neighbors(self):
        return self._parts[5]

    @property
    def missing(self):
        return self._parts[6]

    @property
    def measure(self):
        return self._parts[7]

    @property
    def distribution(self):
        return self._parts[8]


@cython.final
cdef class Described:
    """All that the choice of a mechanism reads of records: whether they are integers, whether some may be missing, and
    their number, 0 if unknown.

    It stands for records that are no vector.
    """

    cdef readonly bint integers, missing
    cdef readonly Py_ssize_t n

    def __init__(self, bint integers, Py_ssize_t n, bint missing=True):
        self.integers, self.n, self.missing = integers, n, missing

    def declares_integers(self):
        return self.integers

    def may_be_missing(self):
        return self.missing

    def __len__(self):
        return self.n


@cython.final
cdef class Calls:
    """Results of calls, by a statistic, public parameters, and the kind of dtype and rough number of records.

    **Law** deterministic: `find` returns what `keep` was given for the same statistic and parameters (numbers, texts
    and tuples of one type and value, the same objects otherwise), the same `sums`, and a vector of the same kind of
    dtype and the same number of records to three significant bits, rounded down, or records `Described` so; or None.
    It never reads a record.
    **Assumes** results depend on nothing else; `statistic`, a distribution with a hash and objects of the types
    `kinds` never change.
    **Cost** 0.1 us; it keeps the results of 256 calls and their parameters alive, but for a distribution none of
    another type than numbers, texts, tuples of these, None and `kinds`.
    """

    cdef list _slots
    cdef frozenset _kinds

    def __init__(self, frozenset kinds not None):
        self._slots = [None] * SLOTS
        self._kinds = frozenset([float, int, bool, str, type(None)]) | NUMBERS | kinds

    def find(self, statistic, x, Parameters parameters not None, bint sums):
        """The result, or None if there is none. `sums`: whether a release costs its epsilon and delta alone."""
        cdef tuple slot
        cdef Py_ssize_t described = _described(x, sums)
        if described < 0:
            return None
        place = _place(statistic, described, parameters._parts)
        with cython.critical_section(self):  # without the GIL, `keep` could free the tuple before it is held here
            found = self._slots[place]
        if found is None:
            return None
        slot = <tuple> found
        if _same(slot[0], statistic) and <Py_ssize_t> slot[1] == described and _same(slot[2], parameters._parts):
            return slot[3]
        return None

    def keep(self, statistic, x, Parameters parameters not None, bint sums, result):
        """Keep a result, unless x is neither a vector nor `Described`, or a parameter or level is of another type."""
        cdef Py_ssize_t described = _described(x, sums)
        if described < 0 or not self._is_plain(parameters._parts[:8]):
            return
        try:
            hash(parameters._parts[8])  # an array may change
        except TypeError:
            return
        if type(statistic) is not tuple or self._is_plain(statistic):
            place = _place(statistic, described, parameters._parts)
            slot = statistic, described, parameters._parts, result
            with cython.critical_section(self):
                self._slots[place] = slot

    cdef bint _is_plain(self, object part) except -1:
        if type(part) is tuple:
            for each in <tuple> part:
                if not self._is_plain(each):
                    return False
            return True
        return type(part) in self._kinds


cdef inline Py_ssize_t _described(object x, bint sums) noexcept:
    """The kind of dtype of records, 7 bits, and their number: the first three bits, and how many follow; else -1."""
    cdef Py_ssize_t n, more = 0
    cdef char kind
    if cnp.PyArray_CheckExact(x) and cnp.PyArray_NDIM(<cnp.ndarray> x) == 1:
        n, kind = cnp.PyArray_DIM(<cnp.ndarray> x, 0), (<cnp.ndarray> x).descr.kind
    elif type(x) is Described:
        n, kind = (<Described> x).n, (b"N" if (<Described> x).missing else b"I") if (<Described> x).integers else b"F"
    else:
        return -1
    while n >> more >= 8:
        more += 1
    return ((more << 3 | n >> more) << 7 | kind) << 1 | sums


cdef inline Py_ssize_t _place(object statistic, Py_ssize_t described, tuple parts) except -1:
    cdef uint64_t h = dpfast_mix(_hash(statistic) + DPFAST_GOLDEN * <uint64_t> described)
    return dpfast_mix(h + _hash(parts)) % SLOTS
