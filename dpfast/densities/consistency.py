"""Consistent tables from noisy marginals: weighted least squares, by post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Names = tuple[Any, ...]

_SWEEPS = 200
_STILL = 1e-9  # records by which no cell moves in the last sweep, if there are fewer


def nearest_consistent(
    tables: Mapping[Names, NDArray[Any]], variances: Mapping[Names, float], total: float | None
) -> dict[Names, Values]:
    """Return the nonnegative tables with equal shared margins that are nearest to the given ones.

    Parameters
    ----------
    tables : mapping
        A table for each tuple of names, with an axis for each.
    variances : mapping
        The variance of each count of a table: squared distances are divided by it.
    total : float, optional
        The known sum of each table.

    Notes
    -----
    Dykstra's alternating projections between the nonnegative tables and those with equal margins, in at most 200
    sweeps: the margins of the result differ by a small part of the noise.
    """
    order = {name: i for i, name in enumerate(dict.fromkeys(chain.from_iterable(tables)))}
    axes = {names: np.argsort([order[name] for name in names]) for names in tables}
    sorted_tables = {
        tuple(names[i] for i in axes[names]): np.transpose(np.asarray(table, np.float64), axes[names])
        for names, table in tables.items()
    }
    sorted_variances = {tuple(names[i] for i in axes[names]): variances[names] for names in tables}
    corrections = {names: np.zeros_like(table) for names, table in sorted_tables.items()}
    current = sorted_tables
    shifted: dict[Names, Values] = {}
    for _ in range(_SWEEPS):
        equal = with_equal_margins(current, sorted_variances, total)
        before, shifted = shifted, {names: equal[names] + corrections[names] for names in equal}
        current = {names: np.maximum(table, 0.0) for names, table in shifted.items()}
        corrections = {names: shifted[names] - current[names] for names in current}
        if before and all(np.abs(table - before[names]).max() < _STILL for names, table in shifted.items()):
            break
    return {
        names: np.transpose(current[tuple(names[i] for i in axes[names])], np.argsort(axes[names])) for names in tables
    }


def with_equal_margins(
    tables: Mapping[Names, Values], variances: Mapping[Names, float], total: float | None
) -> dict[Names, Values]:
    """Return the tables with equal shared margins that minimise the sum of squared distances, each divided by its
    variance.

    The names of each table are in a common order. A table is the orthogonal sum of one part for each subset of its
    names: the margin on the subset, centred along each axis, and spread evenly. Parts of the same subset in different
    tables estimate the same centred margin, with a variance proportional to the number of cells that are added up: the
    best is their weighted mean.
    """
    parts = {names: _parts(names, table) for names, table in tables.items()}
    sums: dict[Names, tuple[Values, float]] = {}
    for names, table in tables.items():
        for subset, part in parts[names].items():
            cells = table.size / part.size
            weight = 1 / (variances[names] * cells)
            value, weights = sums.get(subset, (np.zeros(()), 0.0))
            sums[subset] = value + weight * cells * _squeezed(names, subset, part), weights + weight
    margins = {subset: value / weights for subset, (value, weights) in sums.items()}
    if total is not None:
        margins[()] = np.asarray(float(total))
    found = {}
    for names, table in tables.items():
        spread = np.zeros(table.shape)
        for subset, part in parts[names].items():
            spread += margins[subset].reshape(part.shape) * (part.size / table.size)
        found[names] = spread
    return found


def _parts(names: Names, table: Values) -> dict[Names, Values]:
    """Return the orthogonal parts of a table by subset of its names; other axes have length 1."""
    parts: dict[Names, Values] = {(): table}
    for axis, name in enumerate(names):
        split = {}
        for subset, part in parts.items():
            mean = part.mean(axis=axis, keepdims=True)
            split[subset] = mean
            split[(*subset, name)] = part - mean
        parts = split
    return parts


def _squeezed(names: Names, subset: Names, part: Values) -> Values:
    """Return a part without the axes of other names."""
    return part.reshape([part.shape[names.index(name)] for name in subset])
