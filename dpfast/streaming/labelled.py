"""Records of a row and a label each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from dpfast.core import containers
from dpfast.streaming.chunks import Chunks


@dataclass(frozen=True, eq=False, repr=False)
class Labelled:
    """n records of a row and a label each.

    Mechanisms and states of such records take a pair (X, y), which must be a tuple, or a matrix whose last column has
    the labels (a table, for example).

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    labels : ndarray of shape (n,)

    Examples
    --------
    >>> from dpfast.streaming import Labelled
    >>> records = Labelled.of(([[1.0, 2.0], [3.0, 4.0]], [0, 1]))
    >>> len(records), records[1:].rows, records[1:].labels
    (2, array([[3., 4.]]), array([1.]))
    >>> Labelled.of([[1.0, 2.0, 0.0], [3.0, 4.0, 1.0]]).labels
    array([0., 1.])
    """

    rows: NDArray[Any]
    labels: NDArray[Any]

    ndim: ClassVar[int] = 2

    @classmethod
    def of(cls, x: Any) -> Labelled:
        """Convert a pair (X, y) or a matrix of at least two columns. Checks shapes and dtypes only."""
        if isinstance(x, tuple) and len(x) == 2:
            return cls.pair(x)
        if isinstance(x, Labelled):
            return x
        rows = containers.matrix("X", x)
        if rows.shape[1] < 2:
            raise ValueError("records must be a pair (X, y), or rows of at least two columns whose last one is y")
        return cls(rows[:, :-1], rows[:, -1])

    @classmethod
    def pair(cls, x: Any) -> Labelled:
        """Convert a pair (X, y) of array_likes."""
        if not isinstance(x, tuple) or len(x) != 2:
            raise TypeError(f"x must be a pair (X, y) of rows and labels, not {type(x).__name__}")
        rows, labels = containers.matrix("X", x[0]), containers.vector("y", x[1])
        if len(rows) != len(labels):
            raise ValueError(f"X and y must be equally long, not {len(rows)} and {len(labels)}")
        return cls(rows, labels)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, places: slice | NDArray[Any]) -> Labelled:
        return Labelled(self.rows[places], self.labels[places])

    def __repr__(self) -> str:
        return f"<{len(self)} private records of {self.columns} columns and a label>"

    @property
    def columns(self) -> int:
        """The number of columns d of the rows."""
        return int(self.rows.shape[1])


def labelled_or_chunks(X: Any, y: Any) -> Labelled | Chunks:
    """Return the records of a call with X and y, or `Chunks` of such records, without y."""
    if y is None and isinstance(X, tuple):
        return Labelled.of(X)
    check_labels_given(X, y)
    return X if isinstance(X, Chunks) else Labelled.of((X, y))


def names_of_columns(X: Any, *, labelled: bool = False) -> tuple[str, ...] | None:
    """Return the names of the columns of rows, or of a pair (rows, labels), or in the first piece of `Chunks` of such
    records.

    None unless the rows are a data frame. `labelled` says whether the last column of a data frame has the labels, as in
    chunks. Raises a ValueError for two columns of the same name.
    """
    if isinstance(X, Chunks):
        return names_of_columns(next(iter(X), None), labelled=True)
    names = containers.column_names(X[0] if isinstance(X, tuple) and X else X)
    if names and not isinstance(X, tuple) and labelled:
        names = names[:-1]
    if names and len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"several columns are named {twice!r}: rename all but one")
    return names


def check_labels_given(X: Any, y: Any) -> None:
    """Raise a TypeError unless y is given, or left out for `Chunks`."""
    if isinstance(X, Chunks):
        if y is not None:
            raise TypeError("y must be left out for dpfast.Chunks: each piece is a pair (X, y) or has y as last column")
    elif y is None:
        raise TypeError("y must be given, the labels, unless X is dpfast.Chunks of pairs (X, y)")
