"""Tukey depth in two and three dimensions and the grid points of a polytope; serves dpfast/laws/depth.py.

The loops are in ``depth.h``, the proofs in docs/proofs/tukey-depth.md.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc


cdef extern from "depth.h" nogil:
    ctypedef struct dpfast_ray:
        pass
    ctypedef struct dpfast_edge:
        pass
    ctypedef struct dpfast_strip:
        pass
    int64_t dpfast_depth_2(const int64_t *records, Py_ssize_t n, const int64_t *point, dpfast_ray *rays,
                           dpfast_ray *scratch, int64_t *normal)
    int64_t dpfast_depth_3(const int64_t *records, Py_ssize_t n, const int64_t *point, int64_t enough, int64_t *apart,
                           dpfast_ray *rays, dpfast_ray *scratch, int64_t *normal)
    Py_ssize_t dpfast_polygon(const int64_t *lines, const int64_t *limits, Py_ssize_t m, Py_ssize_t above,
                              Py_ssize_t below, int64_t last, dpfast_edge *edges, dpfast_strip *strips)
    uint64_t dpfast_polygon_count(const dpfast_strip *strips, Py_ssize_t count)
    void dpfast_polygon_point(const dpfast_strip *strips, uint64_t index, int64_t *point)


cdef class Depths:
    """The depths of points among n records of two codes below 2**28 or three codes below 2**8.

    **Law** deterministic. **Assumes** records of shape (n, 2) or (n, 3), codes in range, n >= 1. **Cost** 64 n bytes,
    88 n for three codes. Do not share it between threads.
    **Reference** docs/proofs/tukey-depth.md; Rousseeuw and Ruts 1996.
    """

    cdef const int64_t[:, ::1] _records
    cdef dpfast_ray *_rays
    cdef int64_t *_apart

    def __cinit__(self, const int64_t[:, ::1] records not None):
        cdef size_t n = records.shape[0]
        if n < 1 or records.shape[1] < 2 or records.shape[1] > 3:
            raise ValueError("records must have two or three codes each")
        self._records = records
        self._rays = <dpfast_ray *> malloc(2 * n * sizeof(dpfast_ray))
        self._apart = <int64_t *> malloc(3 * n * sizeof(int64_t)) if records.shape[1] == 3 else NULL
        if self._rays == NULL or (records.shape[1] == 3 and self._apart == NULL):
            raise MemoryError()

    def __dealloc__(self):
        free(self._rays)
        free(self._apart)

    cdef int64_t _of(self, const int64_t *point, int64_t enough, int64_t *normal) noexcept nogil:
        cdef Py_ssize_t n = self._records.shape[0]
        if self._records.shape[1] == 2:
            return dpfast_depth_2(&self._records[0, 0], n, point, self._rays, self._rays + n, normal)
        return dpfast_depth_3(&self._records[0, 0], n, point, enough, self._apart, self._rays, self._rays + n, normal)

    def at(self, const int64_t[::1] point not None, int64_t[::1] normal not None, int64_t enough=0):
        """The depth of a point; `normal` becomes the outward normal of a closed half-space with that many records.

        With three codes, a depth below `enough` may be returned as a greater number that is also below it, that of the
        half-space of `normal`. **Cost** O(n log n), O(n**2 log n) for three codes, without the GIL.
        """
        cdef Py_ssize_t d = self._records.shape[1]
        cdef int64_t depth
        if point.shape[0] != d or normal.shape[0] != d:
            raise ValueError("a point of another number of codes than the records")
        with nogil:
            depth = self._of(&point[0], enough, &normal[0])
        return depth

    def fill(self, const int64_t[:, ::1] points not None, int64_t[::1] out not None):
        """Fill with the depths of all points; **Cost** that of `at` for each."""
        cdef int64_t[3] normal
        cdef Py_ssize_t i
        if points.shape[1] != self._records.shape[1] or out.shape[0] != points.shape[0]:
            raise ValueError("points of another number of codes than the records")
        with nogil:
            for i in range(points.shape[0]):
                out[i] = self._of(&points[i, 0], 0, normal)


def bound(const int64_t[:, ::1] normals not None, const int64_t[:, ::1] products not None,
          const int64_t[::1] point not None):
    """The least number of records in the half-spaces with these normals and the point on their edges.

    Row i of `products` has the products of normal i with all records, in order. **Law** deterministic. **Assumes** one
    row or more. **Cost** O(m log n) for m normals, without the GIL.
    """
    cdef Py_ssize_t n = products.shape[1], i, j, low, high, middle
    cdef int64_t least = n, edge
    if normals.shape[0] != products.shape[0] or normals.shape[1] != point.shape[0]:
        raise ValueError("normals, products and the point do not fit together")
    with nogil:
        for i in range(normals.shape[0]):
            edge = 0
            for j in range(point.shape[0]):
                edge += normals[i, j] * point[j]
            low, high = 0, n  # the first product that is not below the edge
            while low < high:
                middle = (low + high) // 2
                if products[i, middle] < edge:
                    low = middle + 1
                else:
                    high = middle
            least = min(least, <int64_t> (n - low))
    return least


cdef struct _Slice:  # scratch memory of one call, so that several threads may call at once
    int64_t *limits
    dpfast_edge *edges
    dpfast_strip *strips


cdef int _allocate(_Slice *slice, size_t lines) except -1:
    slice.limits = <int64_t *> malloc(lines * sizeof(int64_t))
    slice.edges = <dpfast_edge *> malloc(2 * lines * sizeof(dpfast_edge))
    slice.strips = <dpfast_strip *> malloc((lines + 1) * sizeof(dpfast_strip))
    if slice.limits == NULL or slice.edges == NULL or slice.strips == NULL:
        _free(slice)
        raise MemoryError()
    return 0


cdef void _free(_Slice *slice) noexcept:
    free(slice.limits)
    free(slice.edges)
    free(slice.strips)


cdef class Polytopes:
    """Polytopes with the same normals: the grid points (x, y, z) with lines . (x, y, z) <= limits, 0 <= x, z <= last.

    Parameters
    ----------
    lines : ndarray of int64, shape (m, 3)
        First rows with b > 0, then rows with b < 0, each sorted by a / abs(b), then rows with b = 0, of (a, b, c).
        The rows with b bound y to 64-bit integers everywhere.
    above, below : int
        The number of rows of the first two kinds, each at least 1.
    last : pair of int
        The last x and the last z, which is 0 in two dimensions.

    **Assumes** coefficients below 2**46 and limits below 2**57 in magnitude, fewer than 2**63 points.
    """

    cdef const int64_t[:, ::1] _lines
    cdef Py_ssize_t _above, _below
    cdef int64_t _last_x, _last_z

    def __cinit__(self, const int64_t[:, ::1] lines not None, Py_ssize_t above, Py_ssize_t below, last):
        if lines.shape[1] != 3 or above < 1 or below < 1 or above + below > lines.shape[0]:
            raise ValueError("lines must have three coefficients and bound y from above and below")
        self._lines, self._above, self._below = lines, above, below
        self._last_x, self._last_z = last

    cdef Py_ssize_t _slice(self, _Slice *slice, const int64_t *limits, int64_t z) noexcept nogil:
        """Make the strips of the points with this z."""
        cdef Py_ssize_t i
        for i in range(self._lines.shape[0]):
            slice.limits[i] = limits[i] - self._lines[i, 2] * z
        return dpfast_polygon(&self._lines[0, 0], slice.limits, self._lines.shape[0], self._above, self._below,
                              self._last_x, slice.edges, slice.strips)

    def counts(self, const int64_t[:, ::1] limits not None, int64_t[::1] out not None):
        """Fill with the number of points of each polytope, the limits of which are a row.

        **Cost** O(m log(last)) for each row and z, without the GIL.
        """
        cdef _Slice slice
        cdef Py_ssize_t i
        cdef int64_t z
        if limits.shape[1] != self._lines.shape[0] or out.shape[0] != limits.shape[0]:
            raise ValueError("limits must have a row for each polytope and a column for each line")
        _allocate(&slice, self._lines.shape[0])
        with nogil:
            for i in range(limits.shape[0]):
                out[i] = 0
                for z in range(self._last_z + 1):
                    out[i] += dpfast_polygon_count(slice.strips, self._slice(&slice, &limits[i, 0], z))
        _free(&slice)

    def point(self, const int64_t[::1] limits not None, uint64_t index, int64_t[::1] out not None):
        """Fill with the point of this index in the order of z, x and y, which is below the number of points.

        **Cost** as for one row of `counts`.
        """
        cdef _Slice slice
        cdef int64_t[2] point = [0, 0]
        cdef Py_ssize_t strips
        cdef uint64_t inside
        cdef int64_t z = 0
        if limits.shape[0] != self._lines.shape[0] or out.shape[0] != 3:
            raise ValueError("limits must have an entry for each line, a point three")
        _allocate(&slice, self._lines.shape[0])
        with nogil:
            while z <= self._last_z:
                strips = self._slice(&slice, &limits[0], z)
                inside = dpfast_polygon_count(slice.strips, strips)
                if index < inside:
                    dpfast_polygon_point(slice.strips, index, point)
                    break
                index -= inside
                z += 1
        _free(&slice)
        if z > self._last_z:
            raise ValueError("an index beyond the points of the polytope")
        out[0], out[1], out[2] = point[0], point[1], z
