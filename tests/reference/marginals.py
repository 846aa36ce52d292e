"""Slow twins of marginals: one record at a time, constrained least squares by dense linear algebra."""

import itertools
from collections import Counter

import numpy as np


def counts(rows, sizes, marginals):
    """The counts of all cells of marginals, one marginal after the other, from rows of bins."""
    found = []
    for columns in marginals:
        number = Counter(tuple(row[c] for c in columns) for row in rows)
        found += [number[cell] for cell in itertools.product(*(range(sizes[c]) for c in columns))]
    return found


def score(rows, pair, sizes, independent):
    """The l1 distance of a pair's counts from given integers."""
    found = np.reshape(counts(rows, sizes, [pair]), [sizes[c] for c in pair])
    return int(np.abs(found - independent).sum())


def equal_margins(tables, variances, total):
    """Weighted least squares with equal margins on shared columns, and a known sum: by the KKT equations."""
    given = np.concatenate([table.reshape(-1) for table in tables.values()])
    return _tables_of(_onto_equal_margins(tables, variances, total)(given), tables)


def nearest(tables, variances, total, sweeps):
    """The nearest nonnegative tables with equal margins: Dykstra's alternating projections."""
    onto, corrections = _onto_equal_margins(tables, variances, total), 0.0
    x = np.concatenate([table.reshape(-1) for table in tables.values()])
    for _ in range(sweeps):
        shifted = onto(x) + corrections
        x = np.maximum(shifted, 0.0)
        corrections = shifted - x
    return _tables_of(x, tables)


def _tables_of(x, tables):
    pieces = np.split(x, np.cumsum([table.size for table in tables.values()])[:-1])
    return {name: piece.reshape(tables[name].shape) for name, piece in zip(tables, pieces, strict=True)}


def _onto_equal_margins(tables, variances, total):
    """The projection of all cells, one after the other, onto tables with equal margins."""
    names = list(tables)
    sizes = [tables[name].size for name in names]
    starts = np.cumsum([0, *sizes])
    rows, right = [], []

    def margin(i, shared):
        """The matrix that adds up the cells of table i to its margin on shared columns."""
        table = tables[names[i]]
        axes = [names[i].index(name) for name in shared]
        out = []
        for cell in itertools.product(*(range(table.shape[axis]) for axis in axes)):
            row = np.zeros(starts[-1])
            for place in itertools.product(*map(range, table.shape)):
                if all(place[axis] == c for axis, c in zip(axes, cell, strict=True)):
                    row[starts[i] + np.ravel_multi_index(place, table.shape)] = 1
            out.append(row)
        return np.array(out)

    for i, j in itertools.combinations(range(len(names)), 2):
        shared = [name for name in names[i] if name in names[j]]
        rows.append(margin(i, shared) - margin(j, shared))
        right.append(np.zeros(len(rows[-1])))
    if total is not None:
        rows.append(margin(0, []))
        right.append(np.array([total]))
    if not rows:
        return lambda x: x
    A, b = np.concatenate(rows), np.concatenate(right)
    V = np.diag(np.repeat([variances[name] for name in names], sizes))
    gain = V @ A.T @ np.linalg.pinv(A @ V @ A.T)
    return lambda x: x - gain @ (A @ x - b)
