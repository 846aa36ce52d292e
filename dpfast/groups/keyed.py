"""Releases by key: one result for all containers and mechanisms, with its guarantee, which converts to frames."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core import plotting
from dpfast.core.privacy import Privacy
from dpfast.core.tabular import Column, Tabular, unused
from dpfast.groups.key_types import KeyType
from dpfast.mechanisms import Estimate, GlobalSensitivity, Mechanism
from dpfast.mechanisms.intervals import IntervalMechanism
from dpfast.mechanisms.usefulness import are_few
from dpfast.statistics import Count, Variance

_SHOWN = 10  # keys in a repr
_KEY = "key"  # the name of a column of keys without a name
_COUNT = "count"  # that of the column of noisy counts
RELEASE = "release"  # that of releases without a name


@dataclass(frozen=True)
class ReleasedColumn:
    """The releases of one mechanism for all groups.

    Parameters
    ----------
    name : str
    array : ndarray of float64, shape (G,) or (G, ...)
        The releases.
    parts : sequence of str, optional
        The names of the numbers of one release, unless it is a single number.
    mechanism : Mechanism, optional
    sizes : ndarray of int64, shape (G,), optional
        The numbers of records of the groups, if they are public.
    """

    name: str
    array: NDArray[np.float64]
    parts: Sequence[str] = ()
    mechanism: Mechanism | None = None
    sizes: NDArray[np.int64] | None = None

    @property
    def label(self) -> str:
        """The name of the numbers, or what they are if they have none."""
        return self.name if self.name != RELEASE else str(getattr(self.mechanism, "statistic", RELEASE))

    def size(self, place: int) -> int | None:
        """Return the number of records of a group; None if it is private."""
        return None if self.sizes is None else int(self.sizes[place])

    def release(self, place: int) -> Any:
        """Return the release of a group: a float, an array, or an `Estimate`."""
        found = self.array[place]
        if isinstance(self.mechanism, IntervalMechanism):
            return self.mechanism.estimate(*found.tolist(), n=self.size(place))
        return found if found.ndim else float(found)

    def numbers(self, *, alone: bool) -> dict[str, NDArray[np.float64]]:
        """Return the columns of numbers by name, which begins with that of the mechanism unless it is alone."""
        if self.array.ndim == 1:
            return {self.name: self.array}
        size = int(np.prod(self.array.shape[1:]))
        parts = self.parts or [str(j) for j in range(size)]
        names = parts if alone else [f"{self.name} {part}" for part in parts]
        return dict(zip(names, self.array.reshape(len(self.array), size).T, strict=True))

    def few(self, counts: NDArray[np.int64] | None) -> NDArray[np.bool_] | None:
        """Return which groups have few records, by noisy counts or by what is public: `KeyedReleases.few`."""
        if self.mechanism is None or self.mechanism.privacy.unit != "epsilon":
            return None
        sizes: NDArray[Any] | None = self.sizes if counts is None else counts
        if isinstance(getattr(self.mechanism, "statistic", None), Count):
            sizes = self.array if self.array.ndim == 1 else self.array[:, 0]
        found = None if sizes is None else are_few(self.mechanism, sizes)
        if found is not None and self.sizes is not None:
            found &= self.sizes > 0  # which have a release
        if not isinstance(self.mechanism, IntervalMechanism) or (ends := self.mechanism.range_of(None)) is None:
            return found
        low, high = self.array[:, 1:].T / 2  # halves, because the difference of two doubles may be none
        wide: NDArray[np.bool_] = high - low >= (ends[1] / 2 - ends[0] / 2) / 2
        return wide if found is None else found | wide

    def interval(self, confidence: float | None) -> NDArray[np.float64]:
        """Return an interval for each group: `KeyedReleases.interval`."""
        if isinstance(self.mechanism, IntervalMechanism):
            if confidence not in (None, self.mechanism.confidence):
                raise ValueError(f"confidence must be {self.mechanism.confidence!r}, that of the estimates")
            return self.array[:, 1:].copy()
        if self.mechanism is None or self.array.ndim > 1:
            raise TypeError("the noise of these releases is not known")
        wanted = 0.95 if confidence is None else confidence
        return np.array(
            [
                (np.nan, np.nan) if np.isnan(x) else self.mechanism.noise_interval(x, wanted, n=self.size(place))
                for place, x in enumerate(self.array.tolist())
            ]
        ).reshape(-1, 2)


@dataclass(frozen=True, kw_only=True)
class RootColumn(ReleasedColumn):
    """The square roots of the releases of a mechanism for all groups, as standard deviations are of variances.

    Parameters
    ----------
    of : ReleasedColumn
        The releases.
    """

    of: ReleasedColumn

    @classmethod
    def from_column(cls, column: ReleasedColumn) -> RootColumn:
        """Return the square roots of a column, whose releases are not negative."""
        inner = getattr(column.mechanism, "mechanism", column.mechanism)  # of a sample
        if not isinstance(getattr(inner, "statistic", None), Variance) or column.array.ndim > 1:
            raise TypeError(
                "roots() are those of variances; interval('std', ...) has standard deviations with intervals"
            )
        return cls(
            name=column.name, array=np.sqrt(column.array), mechanism=column.mechanism, sizes=column.sizes, of=column
        )

    @property
    def label(self) -> str:
        """The name of the numbers, or what they are if they have none."""
        return self.name if self.name != RELEASE else "standard deviation"

    def interval(self, confidence: float | None) -> NDArray[np.float64]:
        """Return the square roots of the ends, rounded outward."""
        low, high = np.sqrt(self.of.interval(confidence)).T
        return np.column_stack([np.maximum(np.nextafter(low, -np.inf), 0), np.nextafter(high, np.inf)])


class KeyedReleases(Tabular, Mapping[Any, Any]):
    """The release of each group by its key: a mapping that keeps the guarantee, and converts to frames.

    Of one mechanism, a key has a float, an array or an `Estimate`; of several, a dict of these by their names.
    `to_pandas`, `to_polars` and `to_arrow` return the keys in columns, with the types of the labels, the noisy `counts`
    if there are any, and a column for each number.

    Parameters
    ----------
    keys : sequence
        The keys: text, bytes, numbers or the like, or tuples of them for several columns of keys.
    columns : sequence of ReleasedColumn
        The releases of each mechanism.
    privacy : Privacy
        The guarantee of all releases for all groups together, with the selection of the keys if they are private.
    names : sequence of str, optional
        The names of the columns of keys. Default: "key", or "key_0", "key_1" and so on.
    types : sequence of KeyType, optional
        Their types.
    counts : ndarray of int64, shape (G,), optional
        With private keys, the noisy numbers of records that their selection released; None for public keys.
    alone : bool
        Whether a single mechanism was given by itself, rather than in a list or a mapping.

    Attributes
    ----------
    privacy : Privacy
    counts : ndarray of int64 or None

    Examples
    --------
    >>> import dpfast as dpf
    >>> median = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 9, step=1), epsilon=200)
    >>> released = dpf.by_group(median, [2, 7, 3], labels=["a", "b", "a"], keys=["b", "a", "none"])
    >>> released["b"], list(released), released.array
    (7.0, ['b', 'a', 'none'], array([ 7.,  2., nan]))
    >>> released.privacy.epsilon
    200.0
    """

    def __init__(
        self,
        keys: Sequence[Hashable],
        columns: Sequence[ReleasedColumn],
        privacy: Privacy,
        *,
        names: Sequence[str] = (),
        types: Sequence[KeyType] = (),
        counts: NDArray[np.int64] | None = None,
        alone: bool = True,
    ) -> None:
        self._places = {key: i for i, key in enumerate(keys)}
        self._columns, self._alone = list(columns), alone
        self._names, self._types = list(names), list(types)
        self.privacy, self.counts = privacy, counts

    def __getitem__(self, key: Any) -> Any:
        place = self._places[key]
        if self._alone:
            return self._columns[0].release(place)
        return {column.name: column.release(place) for column in self._columns}

    def __iter__(self) -> Iterator[Any]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def array(self) -> NDArray[np.float64]:
        """The releases in the order of the keys, shape (G,) or (G, ...); of several mechanisms their numbers, (G,
        k).
        """
        if self._alone:
            return self._columns[0].array
        return np.stack([numbers for column in self._columns for numbers in column.numbers(alone=False).values()], 1)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.array, dtype) if copy or dtype is not None else self.array

    @cached_property
    def columns(self) -> dict[str, KeyedReleases]:
        """The releases of each mechanism by its name. The guarantee stays that of all together."""
        shared: dict[str, Any] = {"names": self._names, "types": self._types, "counts": self.counts}
        return {column.name: KeyedReleases(list(self), [column], self.privacy, **shared) for column in self._columns}

    def _caption(self) -> str:
        what = ", ".join(column.name for column in self._columns)
        return f"{what} of {len(self):,} groups; {self.privacy}, all groups together"

    def _keys(self) -> tuple[list[str], list[list[Any]], list[KeyType]]:
        """Return the names, cells and types of the columns of keys."""
        keys = list(self)
        width = len(self._types) or len(self._names) or (len(keys[0]) if keys and isinstance(keys[0], tuple) else 1)
        cells = [list(column) for column in zip(*keys, strict=True)] if width > 1 and keys else [list(keys)]
        cells += [[] for _ in range(width - len(cells))]
        names = self._names or ([f"{_KEY}_{j}" for j in range(width)] if width > 1 else [_KEY])
        return names, cells, self._types or [KeyType()] * width

    def _numbers(self, taken: Sequence[str]) -> dict[str, Column]:
        """Return the noisy counts and the numbers of the releases by names that are not taken."""
        found: dict[str, Column] = {}
        if self.counts is not None:
            found[unused(_COUNT, dict.fromkeys(taken))] = self.counts
        for column in self._columns:
            for name, numbers in column.numbers(alone=self._alone).items():
                found[unused(name, {**dict.fromkeys(taken), **found})] = numbers
        return found

    def _as_columns(self) -> dict[str, Column]:
        names, cells, _ = self._keys()
        return {**dict(zip(names, cells, strict=True)), **self._numbers(names)}

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame: columns of keys, with the types of the labels, and columns of numbers."""
        import pandas

        names, cells, types = self._keys()
        keys = {name: kind.pandas(column) for name, column, kind in zip(names, cells, types, strict=True)}
        return pandas.DataFrame({**keys, **self._numbers(names)})

    def to_polars(self) -> Any:
        """Return a polars.DataFrame with the same columns."""
        import polars

        names, cells, types = self._keys()
        keys = [kind.polars(name, column) for name, column, kind in zip(names, cells, types, strict=True)]
        return polars.DataFrame([*keys, *(polars.Series(*named) for named in self._numbers(names).items())])

    def to_arrow(self) -> Any:
        """Return a pyarrow.Table with the same columns.

        Raises a TypeError for keys that no type of Arrow can hold together.
        """
        import pyarrow

        names, cells, types = self._keys()
        keys = {name: kind.arrow(column) for name, column, kind in zip(names, cells, types, strict=True)}
        return pyarrow.table({**keys, **{name: pyarrow.array(x) for name, x in self._numbers(names).items()}})

    def interval(self, confidence: float | None = None) -> NDArray[np.float64]:
        """Intervals for each group, each by itself; NaN for a group without a release.

        Of estimates (`dpfast.interval`), theirs, for the population. Of other releases, those of
        `Mechanism.noise_interval` for the exact statistic: what the noise can have done.

        Parameters
        ----------
        confidence : float, optional
            In (0, 1). Default: 0.95; for estimates theirs, which is the only one.

        Returns
        -------
        ndarray of float64, shape (G, 2)

        Raises
        ------
        TypeError
            If the spread of the releases depends on the data, as that of medians does (`dpfast.interval` releases them
            with intervals), or the mechanism is not known; for several mechanisms, which have them in `columns`.
        """
        return self._single("interval()").interval(confidence)

    @property
    def has_noise_intervals(self) -> bool:
        """Whether `interval` says what the noise can have done."""
        mechanism = self._columns[0].mechanism if self._alone else None
        return isinstance(mechanism, GlobalSensitivity) and not mechanism.jointly

    @cached_property
    def few(self) -> NDArray[np.bool_] | None:
        """Which groups have so few records that their releases may be far from the truth.

        By released or public numbers only: the counts of private keys, counts that are the releases themselves, public
        sizes, and intervals of at least half the width of the bounds. None where there is none of these, as of medians
        by public keys of groups of private sizes. A group has few records if a count of them for the same epsilon would
        have a standard error above a quarter of it, which is below 5.7 / epsilon records; or if a quantile of as many
        is outside of all of them with a probability above 1 %, for records that are spread over a thousandth of the
        bounds.
        """
        return self._single("few").few(self.counts)

    def _single(self, use: str) -> ReleasedColumn:
        if len(self._columns) > 1:
            name = self._columns[0].name
            raise TypeError(f"these are releases of several mechanisms: use columns[{name!r}].{use}")
        return self._columns[0]

    def roots(self) -> KeyedReleases:
        """Return the square roots of variances: standard deviations, with the same guarantee and without a charge.

        Raises
        ------
        TypeError
            If these are not the variances of a single mechanism, without the intervals of a population.

        Examples
        --------
        >>> import dpfast as dpf
        >>> variance = dpf.GlobalSensitivity(dpf.statistics.Variance(), grid=dpf.Grid(0, 9, step=1), epsilon=500)
        >>> released = dpf.by_group(variance, [2, 7, 3, 3] * 100, labels=["a", "b", "a", "b"] * 100, keys=["b", "a"])
        >>> round(released["b"]), round(released.roots()["b"])
        (4, 2)
        """
        column = RootColumn.from_column(self._single("roots()"))
        shared: dict[str, Any] = {"names": self._names, "types": self._types, "counts": self.counts}
        return KeyedReleases(list(self), [column], self.privacy, **shared, alone=self._alone)

    def plot(self, ax: Any = None, *, unit: str | None = None, confidence: float | None = None) -> Any:
        """Plot the release of each group with Matplotlib, with its interval where one is known.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Default: the current axes.
        unit : str, optional
            The unit of the releases, for the label of the axis.
        confidence : float, optional
            Of the intervals, see `interval`.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        TypeError
            For several mechanisms, which have their plots in `columns`.
        ValueError
            If a release is neither a single number nor an estimate.
        """
        column = self._single("plot()")
        estimates = isinstance(column.mechanism, IntervalMechanism)
        values = column.array[:, 0] if estimates else column.array
        if values.ndim > 1:
            raise ValueError("plot supports releases of a single number for each group")
        reach = None
        with suppress(TypeError):
            low, high = self.interval(confidence).T
            reach = np.array([values - low, high - values])
        ax = plotting.axes(ax)
        names = [plotting.plain(", ".join(map(str, key)) if isinstance(key, tuple) else key) for key in self]
        plotting.rows_of_intervals(ax, names, values, reach)
        ax.invert_yaxis()
        ax.set_xlabel(plotting.with_unit(column.label, unit))
        title = f"Private {'estimates' if estimates else 'releases'} for {len(self):,} groups"
        if reach is not None:
            stated = column.mechanism.confidence if isinstance(column.mechanism, IntervalMechanism) else confidence
            title += f", {plotting.percent(0.95 if stated is None else stated)} intervals"
            title += "" if estimates else " of the noise"
        plotting.entitle(ax, title, self.privacy)
        return ax

    def __repr__(self) -> str:
        shown = [f"{key!r}: {_shown(release)}" for key, release in islice(self.items(), _SHOWN)]
        few = None if len(self._columns) > 1 else self.few
        said = f"; few records in {np.sum(few):,} of {len(self):,} groups" if few is not None and np.any(few) else ""
        return f"KeyedReleases({{{', '.join(shown + ['...'] * (len(self) > _SHOWN))}}}{said}; {self.privacy})"


def _shown(release: Any) -> str:
    """Return a release in short; its guarantee, which is that of all, is left out."""
    if isinstance(release, dict):
        return f"{{{', '.join(f'{name!r}: {_shown(part)}' for name, part in release.items())}}}"
    if isinstance(release, np.ndarray):
        return f"[{', '.join(f'{part:.12g}' for part in release.ravel())}]"
    if isinstance(release, Estimate):
        return "{:.6g} ({:.6g} to {:.6g})".format(*release)
    return f"{release:.12g}" if isinstance(release, float) else repr(release)
