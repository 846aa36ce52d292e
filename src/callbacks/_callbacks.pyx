"""Values of a function given as a pointer, in a loop without the GIL; serves dpfast/psi.py and dpfast/robust/.

The function is passed as in SciPy's LowLevelCallable: a capsule, named by the signature, whose context is user_data.
"""

from cpython.pycapsule cimport PyCapsule_GetContext, PyCapsule_GetName, PyCapsule_GetPointer

ctypedef double (*of_number)(double) noexcept nogil
ctypedef double (*of_number_and_data)(double, void *) noexcept nogil
ctypedef double (*of_row)(int, double *) noexcept nogil
ctypedef double (*of_row_and_data)(int, double *, void *) noexcept nogil


def evaluate(capsule, bint rows, bint data, double[:, ::1] points not None, double[::1] out not None):
    """Fill with the values of the function at each point, in order.

    **Law** deterministic. **Assumes**, checked by the caller: the function is ``double (double)``, or with `rows`
    ``double (int, double *)``, called with the length of a row and the row; with `data` it takes a ``void *`` at the
    end. Without `rows`, points have one column. **Cost** the calls plus a nanosecond each, without the GIL.
    """
    cdef void *function = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))
    cdef void *user_data = PyCapsule_GetContext(capsule)
    cdef Py_ssize_t i
    cdef int d = <int> points.shape[1]
    with nogil:
        for i in range(points.shape[0]):
            if rows and data:
                out[i] = (<of_row_and_data> function)(d, &points[i, 0], user_data)
            elif rows:
                out[i] = (<of_row> function)(d, &points[i, 0])
            elif data:
                out[i] = (<of_number_and_data> function)(points[i, 0], user_data)
            else:
                out[i] = (<of_number> function)(points[i, 0])
