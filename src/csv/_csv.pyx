"""Rows of delimited text: where the wanted cells are, and the doubles that they spell; for dpfast/tables.

The loops are in ``csv.h``.
"""

from cpython.unicode cimport PyUnicode_Decode, PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t

cdef extern from "csv.h" nogil:
    ctypedef const unsigned char *csv_text
    bint csv_strip(csv_text *begin, csv_text *end)
    Py_ssize_t csv_rows(const unsigned char *base, Py_ssize_t size, unsigned char delimiter, int final,
                        const int64_t *columns, Py_ssize_t count, int64_t *places, Py_ssize_t most, Py_ssize_t *next)
    Py_ssize_t csv_numbers(const unsigned char *base, const int64_t *places, Py_ssize_t stride, Py_ssize_t rows,
                           double *out, int64_t *hard)


def rows(
    const unsigned char[::1] text not None,
    Py_ssize_t start,
    Py_ssize_t stop,
    unsigned char delimiter,
    bint final,
    const int64_t[::1] columns not None,
    int64_t[:, :, ::1] places not None,
):
    """Find the cells of some columns in the complete rows of ``text[start:stop]``.

    Writes for row i and wanted column j ``places[i, j] = (first, end)``, relative to `start`: with the quotes, if the
    cell begins with one; ``(0, 0)`` if the row is too short. With `final` the text ends with stop, which also ends the
    last row. A blank line is a row. Returns (rows, next): their number, at most
    ``len(places)``, and the start of the first row that was not taken.

    **Law** deterministic. **Assumes** 0 <= start < stop <= len(text); ascending columns from 0, at least one;
    ``places`` of shape (any, len(columns), 2); a delimiter that is not a quote or the end of a line. **Cost** O(bytes).
    """
    cdef Py_ssize_t next = 0, count
    with nogil:
        count = csv_rows(&text[start], stop - start, delimiter, final, &columns[0], columns.shape[0],
                         &places[0, 0, 0], places.shape[0], &next)
    return count, start + next


def numbers(
    const unsigned char[::1] text not None,
    Py_ssize_t start,
    const int64_t[:, :, ::1] places not None,
    Py_ssize_t column,
    double[::1] out not None,
    int64_t[::1] hard not None,
):
    """Write to `out` what ``float`` reads in the cells ``places[:, column]`` of `rows`, NaN where it raises.

    Returns how many rows are left to Python; `hard` lists them.

    **Law** deterministic: the double nearest to the decimal. **Assumes** `start` and places from `rows`, at least one;
    ``len(places)`` entries of out and of hard. **Cost** O(bytes of the cells).
    """
    cdef Py_ssize_t left
    with nogil:
        left = csv_numbers(&text[start], &places[0, column, 0], 2 * places.shape[1], places.shape[0], &out[0], &hard[0])
    return left


def texts(
    const unsigned char[::1] text not None,
    Py_ssize_t start,
    const int64_t[:, :, ::1] places not None,
    Py_ssize_t column,
    dict known not None,
    list out not None,
    int64_t[::1] hard not None,
    bytes encoding not None,
):
    """Append to `out` the texts of the cells ``places[:, column]`` of `rows`; a byte b without a text is U+DC00 + b.

    Equal texts are one object: ``known[text]``, which is added if it is missing. Appends None for a cell with quotes
    inside its quotes or after them, and returns how many they are; `hard` lists them.

    **Law** deterministic. **Assumes** as in `numbers`; the name of an encoding. **Cost** O(bytes of the cells).
    """
    cdef Py_ssize_t i, left = 0
    cdef csv_text begin, end
    cdef const char *name = encoding
    cdef bint utf8 = encoding == b"utf-8"
    for i in range(places.shape[0]):
        begin, end = &text[start] + places[i, column, 0], &text[start] + places[i, column, 1]
        if csv_strip(&begin, &end):
            if utf8:
                cell = PyUnicode_DecodeUTF8(<const char *>begin, end - begin, "surrogateescape")
            else:
                cell = PyUnicode_Decode(<const char *>begin, end - begin, name, "surrogateescape")
            out.append(known.setdefault(cell, cell))
        else:
            out.append(None)
            hard[left] = i
            left += 1
    return left
