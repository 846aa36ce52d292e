# cython: freethreading_compatible=True
"""The control of assurance/platforms/thread_sanitizer.sh: threads that add to one number without a lock."""

cdef extern from *:
    """
    static volatile long long dpfast_total = 0;
    """
    long long dpfast_total


def add(long long times):
    global dpfast_total
    cdef long long i
    with nogil:
        for i in range(times):
            dpfast_total += 1
    return dpfast_total
