"""Functions that advise whoever calls them with arguments that they do not take; serves dpfast/core/words.py."""

from functools import update_wrapper
from types import MethodType

cimport cython
from cpython.object cimport PyObject

cdef extern from "advice.h":
    ctypedef PyObject *(*Call "vectorcallfunc")(PyObject *, PyObject *const *, size_t, PyObject *) noexcept
    PyObject *PyObject_Vectorcall(PyObject *callable, PyObject *const *given, size_t count, PyObject *names) noexcept
    PyObject *dpfast_refused() noexcept
    void dpfast_raise(PyObject *error) noexcept
    void dpfast_take_calls(object kind, Py_ssize_t place) noexcept


@cython.final
cdef class PublicFunction:
    """A function in all respects, whose call passes its arguments on as they are.

    **Assumes** `advise` is a function of the function and of a TypeError, whose message it may change.
    **Cost** 100 instructions, where a median of few records takes 37,000. `advise` is told only of a call that fails
    before the first line of the function, because of its arguments.
    """

    cdef Call _call
    cdef object _function, _advise
    cdef dict __dict__
    cdef object __weakref__

    def __init__(self, function not None, advise not None):
        self._function, self._advise, self._call = function, advise, &_called
        update_wrapper(self, function)

    def __call__(self, *given, **named):
        return self._function(*given, **named)

    def __get__(self, instance, owner):
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self):
        return PublicFunction, (self._function, self._advise)

    def __repr__(self):
        return repr(self._function)


cdef PyObject *_called(PyObject *self, PyObject *const *given, size_t count, PyObject *names) noexcept:
    """What the interpreter calls in place of `__call__`, which would take a tuple and a dictionary."""
    cdef PyObject *result = PyObject_Vectorcall(<PyObject *> (<PublicFunction> self)._function, given, count, names)
    if result is NULL:
        _tell(<PublicFunction> self)
    return result


cdef void _tell(PublicFunction self) noexcept:
    """Tell of an error of arguments, which is then raised, whatever the advice does."""
    cdef PyObject *error = dpfast_refused()
    if error is not NULL:
        try:
            self._advise(self._function, <object> error)
        except Exception:
            pass
        dpfast_raise(error)


cdef void _take_calls() noexcept:
    cdef PublicFunction one = PublicFunction(update_wrapper, update_wrapper)
    dpfast_take_calls(PublicFunction, <char *> &one._call - <char *> <PyObject *> one)


_take_calls()
