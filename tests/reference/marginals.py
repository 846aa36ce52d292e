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
    given = np.concatenate([tables[name].reshape(-1) for name in names])
    if not rows:
        return tables
    A, b = np.concatenate(rows), np.concatenate(right)
    V = np.diag(np.repeat([variances[name] for name in names], sizes))
    x = given - V @ A.T @ np.linalg.pinv(A @ V @ A.T) @ (A @ given - b)
    return {name: x[starts[i] : starts[i + 1]].reshape(tables[name].shape) for i, name in enumerate(names)}
