/* Errors of calls whose arguments a function does not take, which are raised before its first line. */
#ifndef DPFAST_ADVICE_H
#define DPFAST_ADVICE_H

#include <Python.h>

/* The TypeError that is being raised, no longer raised and owned by the caller, if no line of Python has run: it has no
 * traceback. Otherwise NULL, and the error is raised as it was. */
static PyObject *dpfast_refused(void)
{
    PyObject *error = NULL, *traceback = NULL;
    if (!PyErr_ExceptionMatches(PyExc_TypeError))
        return NULL;
#if PY_VERSION_HEX >= 0x030C0000
    error = PyErr_GetRaisedException();
    traceback = PyException_GetTraceback(error);
    if (traceback != NULL)
        PyErr_SetRaisedException(error);
#else
    PyObject *type = NULL;
    PyErr_Fetch(&type, &error, &traceback);
    if (traceback == NULL) {
        PyErr_NormalizeException(&type, &error, &traceback);
        Py_XDECREF(type);
    } else {
        Py_INCREF(traceback);
        PyErr_Restore(type, error, traceback);
    }
#endif
    Py_XDECREF(traceback);
    return traceback == NULL ? error : NULL;
}

/* Raise an error, and give up the reference. */
static void dpfast_raise(PyObject *error)
{
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_DECREF(error);
}

/* Let a type take calls by the function that is `place` bytes into its objects. Assumes: it has no subclasses. */
static void dpfast_take_calls(PyObject *kind, Py_ssize_t place)
{
    PyTypeObject *type = (PyTypeObject *)kind;
    type->tp_vectorcall_offset = place;
    type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    PyType_Modified(type);
}

#endif
