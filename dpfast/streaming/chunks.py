"""Records in pieces that a mechanism can read several times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks, containers
from dpfast.core.spending import unpaid

_SMALL, _TOGETHER = 2**10, 2**15  # records of a vector that is copied, and of one that is made of these
_LIBRARIES = ("numpy", "pandas", "polars", "pyarrow")  # whose containers say their length without code of others


class Chunks:
    """Records in pieces that can be read several times, accepted by mechanisms in place of one array.

    Parameters
    ----------
    source : iterable, Arrow ChunkedArray, or callable
        Pieces: array_like, of shape (m,) or (m, d) as the mechanism requires, of any lengths including 0; for example a
        list of arrays, slices of a memmap, the chunks of an Arrow ChunkedArray; also `Counted`. Or a function without
        arguments that returns a new iterator over the same pieces for each pass.

    Raises
    ------
    TypeError
        For an iterator, which can be read only once; pass the function that makes it.

    Notes
    -----
    Each piece is read in its own dtype, which is public like its length: 64-bit integers are not first rounded to
    doubles, as they would be in one array with floats. The step of ``bounds=`` is 1 if all pieces of a sequence, or the
    first piece of another source, have an integer or boolean dtype.
    Privacy: the guarantee is for the records that the source yields. If the source itself makes a private release, for
    example of bounds to clamp to, that is a separate release in each pass; a `dpfast.Ledger` charges it.
    Cost: a mechanism reads the pieces once per pass (`State.passes`) and keeps only the summary. A release that needs n
    beforehand, for ``bins="auto"`` or ``terms="auto"``, reads them once more. A release without bounds that may be of
    no use warns before it is charged (`UtilityWarning`): if no list or tuple shows the number of records, after the
    first pass, which then precedes the charge.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> ages = np.random.default_rng(0).integers(18, 90, 100_000)
    >>> chunks = dpf.Chunks(np.array_split(ages, 10))
    >>> 53 <= dpf.median(chunks, bounds=(0, 100), epsilon=1.0) <= 55
    True
    >>> def opened():
    ...     return (np.random.default_rng(seed).normal(50, 10, 1000) for seed in range(100))
    >>> 49 <= dpf.median(dpf.Chunks(opened), bounds=(0, 100), epsilon=1.0) <= 51
    True
    """

    def __init__(self, source: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        if hasattr(source, "iterchunks"):
            source = source.iterchunks
        if getattr(source, "ndim", 0) == 1 and getattr(getattr(source, "dtype", None), "kind", "O") in "biuf":
            raise TypeError("source must be arrays, not one, whose records would be pieces: use Chunks.slices(array)")
        if not callable(source):
            if not isinstance(source, Iterable):
                raise TypeError(f"source must be an iterable of arrays or a function, not {type(source).__name__}")
            if iter(source) is source:
                raise TypeError("source is an iterator, which can be read only once: give a function that returns one")
        self._source = source
        self._n: int | None = None

    @classmethod
    def slices(cls, array: NDArray[Any], size: SupportsIndex = 2**18) -> Chunks:
        """Return the pieces of an array, for example a memmap, with ``size`` records each."""
        step = checks.whole("size", size, least=1)
        return cls([array[start : start + step] for start in range(0, len(array), step)])

    @classmethod
    def parquet(cls, path: Any, columns: str | Sequence[str]) -> Chunks:
        """Yield the row groups of a Parquet file: of one column, or of several as tables of float64. Needs pyarrow."""

        def opened() -> Iterator[Any]:
            from pyarrow import parquet

            names = [columns] if isinstance(columns, str) else list(columns)
            with parquet.ParquetFile(path) as file:
                for group in range(file.num_row_groups):
                    table = file.read_row_group(group, columns=names)
                    pieces = [table.column(name) for name in names]
                    if isinstance(columns, str):
                        yield pieces[0]
                    else:
                        yield np.stack([containers.vector("x", piece).astype(np.float64) for piece in pieces], axis=1)

        return cls(opened)

    def __iter__(self) -> Iterator[Any]:
        return unpaid(lambda: iter(self._source() if callable(self._source) else self._source))

    def __repr__(self) -> str:
        return "<Chunks of private records>"

    def declares_integers(self) -> bool:
        """Whether the dtypes of the pieces declare integers or booleans."""
        if isinstance(self._source, Sequence):
            return len(self._source) > 0 and all(map(containers.declares_integers, self._source))
        return containers.declares_integers(next(iter(self), None))

    def may_be_missing(self) -> bool:
        """Whether records may be missing, by the types of the pieces."""
        if isinstance(self._source, Sequence):
            return any(map(containers.may_be_missing, self._source))
        return containers.may_be_missing(next(iter(self), None))

    def named_columns(self) -> tuple[str, ...] | None:
        """Return the names of the columns of the first piece; None unless it is a data frame."""
        first = next(iter(self), None)
        return None if first is self else containers.column_names(first)

    @property
    def listed(self) -> Sequence[Any]:
        """The pieces of a list or tuple; none of another source, whose own code yields them."""
        return self._source if isinstance(self._source, list | tuple) else ()

    @property
    def known(self) -> int | None:
        """The number of records, if it is known without reading pieces."""
        if self._n is None and isinstance(self._source, list | tuple):
            sizes = [known_records(piece) for piece in self._source]
            return None if None in sizes else sum(size or 0 for size in sizes)
        return self._n

    def records(self) -> int:
        """Return the number of records, counted once by reading all pieces."""
        if self._n is None:
            self._n = sum(records_of(piece) or 0 for piece in self)
        return self._n


def joined(chunks: Iterable[Any]) -> Iterator[Any]:
    """Yield the chunks, small vectors of one dtype together: to read one by itself costs 3 to 20 us, to copy it 1.

    They are copied at once, because a source may fill one array again and again.
    """
    room, filled = np.empty(0), 0
    for chunk in chunks:
        small = type(chunk) is np.ndarray and chunk.ndim == 1 and len(chunk) <= _SMALL and chunk.dtype.kind in "fiub"
        if filled and not (small and chunk.dtype == room.dtype and filled + len(chunk) <= len(room)):
            yield room[:filled]
            room, filled = np.empty(0), 0  # the reading may keep the last one
        if not small:
            yield chunk
            continue
        if not filled:
            room = np.empty(_TOGETHER, chunk.dtype)
        room[filled : filled + len(chunk)] = chunk
        filled += len(chunk)
    if filled:
        yield room[:filled]


@overload
def records_of(x: NDArray[Any] | Chunks) -> int: ...


@overload
def records_of(x: object) -> int | None: ...


def records_of(x: Any) -> int | None:
    """Return the number of records of x, public unless the mechanism hides it: `Chunks` may read all pieces for it.

    None if x has no records to count, so that a mechanism rejects it. A pair of containers is one of rows and labels.
    """
    if isinstance(x, Chunks):
        return x.records()
    if isinstance(x, tuple) and len(x) == 2 and _is_sized(x[0]):
        x = x[0]
    return len(x) if _is_sized(x) else None


def _is_sized(x: Any) -> bool:
    return hasattr(type(x), "__len__") and getattr(x, "ndim", None) != 0


def known_records(x: Any) -> int | None:
    """`records_of`, if it is known without reading pieces and without code of others: before a charge.

    None for a tuple of containers, which may be rows, or rows and labels.
    """
    if isinstance(x, Chunks):
        return x.known
    kind = type(x)
    if kind is tuple and any(map(_is_sized, x[:1])):
        return None
    plain = kind in (list, tuple, range) or kind.__module__.partition(".")[0] in _LIBRARIES
    return records_of(x) if plain else None
