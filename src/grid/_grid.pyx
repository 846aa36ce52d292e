"""Values to grid codes; serves dpfast/core/grid.py. The map itself is in grid.h."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from grid cimport dpfast_encode_array, dpfast_encode_floats, dpfast_floats, dpfast_grid

cdef extern from *:
    ctypedef int wide "__int128"

cdef extern from "grid.h":
    double dpfast_from_integer(const dpfast_grid *grid, wide v) noexcept nogil

cdef extern from "odd.h":
    uint64_t dpfast_odd(uint64_t magnitude) noexcept nogil

cdef enum:
    BLOCK = 512  # values that are converted at a time, in the cache of the first level

ctypedef fused Number:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    float
    double


def encode(const Number[:] values not None, int64_t[::1] out not None, *,
           double lower, double upper, double step, double missing, double first, int shift):
    """Fill `out` with the code of every value: clamp, scale, round half to even, count from `lower`.

    **Law** a deterministic elementwise map. **Assumes** a valid `dpfast.Grid`, len(out) == len(values).
    **Cost** O(n), memory-bound if `values` is contiguous float64.
    """
    cdef dpfast_grid grid = dpfast_grid(lower, upper, step, missing, first, shift)
    cdef double block[BLOCK]
    cdef Py_ssize_t i, count, start = 0, n = values.shape[0]
    with nogil:
        if Number is double:
            if n and values.strides[0] == sizeof(double):
                dpfast_encode_array(&grid, &values[0], &out[0], n)
                start = n
        while start < n:
            count = min(<Py_ssize_t> BLOCK, n - start)
            for i in range(count):
                if Number is int64_t or Number is uint64_t:
                    block[i] = dpfast_from_integer(&grid, <wide> values[start + i])
                else:
                    block[i] = values[start + i]
            dpfast_encode_array(&grid, block, &out[start], count)
            start += count


def encode_floats(const Number[:] values not None, double[::1] out not None, *, double lower, double upper,
                  double missing, double resolution, double unit, int64_t origin, int64_t first, int shift):
    """Fill `out` with the code of every value on the floats of 53 - `shift` digits, an integer below 2**52.

    **Law** a deterministic elementwise map. **Assumes** a valid `dpfast.FloatGrid`, len(out) == len(values).
    **Cost** O(n), about twice that of `encode`. **Reference** docs/proofs/float-grid.md.
    """
    cdef dpfast_floats grid = dpfast_floats(lower, upper, missing, resolution, unit, origin, first, shift)
    cdef double block[BLOCK]
    cdef Py_ssize_t i, count, start = 0, n = values.shape[0]
    with nogil:
        if Number is double:
            if n and values.strides[0] == sizeof(double):
                dpfast_encode_floats(&grid, &values[0], &out[0], n)
                start = n
        while start < n:
            count = min(<Py_ssize_t> BLOCK, n - start)
            for i in range(count):
                if Number is int64_t:
                    block[i] = _odd(values[start + i])
                elif Number is uint64_t:
                    block[i] = <double> dpfast_odd(values[start + i])
                else:
                    block[i] = values[start + i]
            dpfast_encode_floats(&grid, block, &out[start], count)
            start += count


cdef inline double _odd(int64_t value) noexcept nogil:
    return -<double> dpfast_odd(-<uint64_t> value) if value < 0 else <double> dpfast_odd(value)
