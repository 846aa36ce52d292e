"""Tables of synthetic columns, of the kind that users gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def like(X: Any, columns: Mapping[Any, NDArray[Any]]) -> Any:
    """Columns as a table of the kind of X: pandas, polars, Arrow, a mapping, a structured array, or rows."""
    library = type(X).__module__.partition(".")[0]
    if library == "pandas":
        import pandas

        return pandas.DataFrame(columns)
    if library == "polars":
        import polars

        return polars.DataFrame({str(name): _listed(values) for name, values in columns.items()})
    if library == "pyarrow":
        import pyarrow

        return pyarrow.table({str(name): _listed(values) for name, values in columns.items()})
    if isinstance(X, Mapping):
        return dict(columns)
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        kinds = [(str(name), values.dtype) for name, values in columns.items()]
        rows = np.empty(len(next(iter(columns.values()))), kinds)
        for name, values in columns.items():
            rows[name] = values
        return rows
    return np.column_stack(list(columns.values()))


def _listed(values: NDArray[Any]) -> Any:
    """An array of numbers unchanged; objects as a list."""
    return values.tolist() if values.dtype == object else values
