"""Sums over normal rows by quadrature, for dpfast/regression/populations.py; no privacy event depends on them."""

from libc.math cimport fabs, sqrt


cdef void _times(const double[:, ::1] root, const double *x, double *out) noexcept nogil:
    """out = root x, for a symmetric root."""
    cdef Py_ssize_t i, j, p = root.shape[0]
    for j in range(p):
        out[j] = 0.0
    for i in range(p):
        for j in range(p):
            out[j] += root[i, j] * x[i]


cdef double _unit(double *x, Py_ssize_t p) noexcept nogil:
    """Divide x by its length, and return it."""
    cdef Py_ssize_t j
    cdef double largest = 0.0, square = 0.0
    for j in range(p):
        largest = max(largest, fabs(x[j]))
    if largest == 0.0:
        return 0.0
    for j in range(p):
        x[j] /= largest
        square += x[j] * x[j]
    for j in range(p):
        x[j] /= sqrt(square)
    return largest * sqrt(square)


cdef void _without(double *x, const double *q, Py_ssize_t p) noexcept nogil:
    """Remove the part of x along the unit vector q; twice, so that rounding leaves none."""
    cdef Py_ssize_t j, _turn
    cdef double inner
    for _turn in range(2):
        inner = 0.0
        for j in range(p):
            inner += x[j] * q[j]
        for j in range(p):
            x[j] -= inner * q[j]


def plane(const double[:, ::1] root not None, const double[::1] theta not None, const double[::1] truth not None,
          double[:, ::1] room not None, double[:, ::1] out not None):
    """Write root q1 and root q2 to the two rows of `out`: q1, q2 an orthonormal basis of root theta and root truth.

    Where these are parallel or 0, q2 and q1 are any such vectors; for p = 1, q2 is 0. **Assumes** a symmetric root of
    shape (p, p), finite vectors, room and out of shape (2, p). **Cost** O(p**2).
    """
    cdef Py_ssize_t p = root.shape[0], j, least = 0
    cdef double *first = &room[0, 0]
    cdef double *second = &room[1, 0]
    with nogil:
        _times(root, &theta[0], first)
        _times(root, &truth[0], second)
        if _unit(first, p) == 0.0:
            first[0] = 1.0
        _unit(second, p)
        _without(second, first, p)
        if _unit(second, p) < 1e-12:
            for j in range(p):
                second[j] = 0.0
                least = j if fabs(first[j]) < fabs(first[least]) else least
            if p > 1:
                second[least] = 1.0
                _without(second, first, p)
                _unit(second, p)
        _times(root, first, &out[0, 0])
        _times(root, second, &out[1, 0])


cdef double _inner(const double[:, ::1] axes, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef Py_ssize_t j
    cdef double total = 0.0
    for j in range(axes.shape[1]):
        total += axes[a, j] * axes[b, j]
    return total


cdef inline double _cube(double size, double deviation, double normal) noexcept nogil:
    """The square length of Wilson and Hilferty for a normal number."""
    cdef double root = max(1.0 - deviation * deviation + deviation * normal, 0.0)
    return size * root * root * root


def clipped(const double[:, ::1] axes not None, const double[::1] rest not None, double clip,
            const double[:, ::1] nodes not None, const double[:, ::1] lengths not None,
            const double[:, ::1] labels not None, const double[:, ::1] slopes not None,
            double[:, ::1] out not None):
    """Add sums over rows z + e to `out`: z = axes[0] + u axes[1] + v axes[2], and e of a random length.

    `nodes` holds rows (weight, u, v) and `lengths` rows (weight, normal number); rest is the mean of ``|e|**2`` and the
    deviation of its cube root, relative. `labels` holds the chances of the first label at each node, and the residuals
    of the two labels; `slopes` the curvatures of the model at theta and at the truth. A residual is moved into +-clip /
    |z + e|. The rows of `out` are for the mean residual; the curvature at theta times the chance that a residual is not
    moved; the mean square; and the curvature at the truth times the second residual less the first. Each is summed with
    the factors 1, u, v, u u, u v, v v and ``|e|**2``. **Cost** nodes times lengths.
    """
    cdef Py_ssize_t i, j, k, label, n = nodes.shape[0], p = axes.shape[1]
    cdef double u, v, norm, square, limit, residual, chance, moved, before
    cdef double[3][3] inner
    cdef double[4] value, total, along_rest, weights
    cdef double[6] factors
    with nogil:
        for i in range(3):
            for k in range(3):
                inner[i][k] = 0.0
                for j in range(p):
                    inner[i][k] += axes[i, j] * axes[k, j]
        for i in range(n):
            u, v = nodes[i, 1], nodes[i, 2]
            factors = [1.0, u, v, u * u, u * v, v * v]
            total, along_rest = [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]
            norm = max(inner[0][0] + 2.0 * (u * inner[0][1] + v * inner[0][2] + u * v * inner[1][2])
                       + u * u * inner[1][1] + v * v * inner[2][2], 0.0)
            for k in range(lengths.shape[0]):
                square = _cube(rest[0], rest[1], lengths[k, 1])
                limit = clip / sqrt(norm + square + 1e-100)
                value, before = [0.0, 0.0, 0.0, 0.0], 0.0
                for label in range(2):
                    residual, chance = labels[1 + label, i], 1.0 - labels[0, i] if label else labels[0, i]
                    moved = min(max(residual, -limit), limit)
                    value[0] += chance * moved
                    value[1] += chance if fabs(residual) < limit else 0.0
                    value[2] += chance * moved * moved
                    value[3], before = moved - before, moved
                for j in range(4):
                    total[j] += lengths[k, 0] * value[j]
                    along_rest[j] += lengths[k, 0] * square * value[j]
            weights = [nodes[i, 0], nodes[i, 0] * slopes[0, i], nodes[i, 0], nodes[i, 0] * slopes[1, i]]
            for j in range(4):
                for k in range(6):
                    out[j, k] += weights[j] * total[j] * factors[k]
                out[j, 6] += weights[j] * along_rest[j]
