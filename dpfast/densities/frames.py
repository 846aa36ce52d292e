"""Tables of synthetic columns, of the kind that users gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core.tabular import whole_column

_BLOCK = 2**11  # rows


def like(X: Any, columns: Mapping[Any, NDArray[Any]], labels: Mapping[Any, Sequence[Any]]) -> Any:
    """Columns as a table of the kind of X: pandas, polars, Arrow, a mapping, a structured array, or rows.

    `labels` has all possible values of each column of objects: a library infers the type of the column from these, too,
    so that it does not depend on the values drawn.
    """
    library = type(X).__module__.partition(".")[0]
    if library in ("pandas", "polars", "pyarrow"):
        k = len(next(iter(columns.values())))
        possible = {name: _with_labels(values, labels.get(name, ())) for name, values in columns.items()}
        if library == "pandas":
            import pandas

            listed = {name: whole_column(_listed(values)) for name, values in possible.items()}
            return pandas.DataFrame({name: pandas.Series(cells).iloc[:k] for name, cells in listed.items()})
        if library == "polars":
            import polars

            return polars.DataFrame({str(name): polars.Series(_listed(x)).head(k) for name, x in possible.items()})
        import pyarrow

        return pyarrow.table({str(name): pyarrow.array(_listed(x)).slice(0, k) for name, x in possible.items()})
    if isinstance(X, Mapping):
        return dict(columns)
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        kinds = [(str(name), values.dtype) for name, values in columns.items()]
        rows = np.empty(len(next(iter(columns.values()))), kinds)
        for name, values in columns.items():
            rows[name] = values
        return rows
    return _rows(list(columns.values()))


def _rows(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Columns side by side, some rows at a time that stay in the cache."""
    rows = np.empty((len(columns[0]), len(columns)), np.result_type(*columns))
    for first in range(0, len(rows), _BLOCK):
        for place, values in enumerate(columns):
            rows[first : first + _BLOCK, place] = values[first : first + _BLOCK]
    return rows


def _with_labels(values: NDArray[Any], labels: Sequence[Any]) -> NDArray[Any]:
    """Return an array of numbers unchanged; objects with the labels behind them."""
    return np.append(values, np.array(labels, object)) if values.dtype == object else values


def _listed(values: NDArray[Any]) -> Any:
    """Return an array of numbers unchanged; objects as a list."""
    return values.tolist() if values.dtype == object else values
