"""Bounded contributions: at most so many records of each unit, chosen at random, so that guarantees hold for units."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import chain, compress
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._bounding import Reservoirs, thin, thin_sorted
from dpfast.core import checks, containers
from dpfast.core.grid import Grid
from dpfast.core.spending import Cost, spending_together
from dpfast.core.traps import warn, warn_of
from dpfast.core.types import Exact
from dpfast.keys import KeyColumn, KeyCounts, KeyTable, column_of
from dpfast.keys.columns import Numbers, Several
from dpfast.keys.table import NUMBERS, SEED
from dpfast.mechanisms import InverseSensitivity
from dpfast.random import RandomSource, bit_generator
from dpfast.statistics import Quantile

__all__ = ["BoundedContributions", "bound_contributions", "contribution_limit"]

_MOST = 2**30  # records of one array; there may be twice as many units, and as many keys
_CACHED = 2**21  # groups whose counters a cache of the processor holds
_LIMIT = 2**62  # larger limits on records have no effect
_MOST_LIMIT = 2**20  # that `contribution_limit` releases; larger ones would only take time

Codes = NDArray[np.int64]


def bound_contributions(
    unit: Any,
    *arrays: Any,
    keys: Any = None,
    per_unit: SupportsIndex,
    per_key: SupportsIndex | None = None,
    rng: RandomSource = None,
) -> Any:
    """Keep a random subset of at most `per_unit` records of each unit, and at most `per_key` of each unit and key.

    A unit, such as a person, is what the guarantee protects where one has several records. After this call a mechanism
    with ``neighbors="add-remove"`` protects a unit with all its records by its group guarantee of `per_unit` records:
    ``mechanism.privacy.for_units(per_unit)``, which a ``dpf.Ledger(..., neighbors="add-remove", per_unit=per_unit)``
    charges.

    Parameters
    ----------
    unit : column of n keys
        The unit of each record: numbers, text or bytes in any container, in lists also dates, UUIDs and others;
        several columns as a tuple or a frame (`dpfast.keys.column_of`). Records without a unit (None, NaN, null,
        masked) are left out.
    *arrays : array_like, each with n records
        NumPy arrays, lists, columns and frames of pandas, polars or Arrow. Private, and never modified.
    keys : column of n keys, optional
        The group of each record, for `per_key`. Records without a key are left out.
    per_unit : int
        At least 1.
    per_key : int, optional
        At least 1; given with `keys`, and only with them.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the choice reproducible, hence not private. Default: the secure generator.

    Returns
    -------
    array_like, or tuple of them
        The kept records of each array in their order, in the same type of container with the same dtype. Private, and
        so is their number.

    Raises
    ------
    TypeError, ValueError
        For parameters out of range, columns that are not keys, or different numbers of records.

    Notes
    -----
    **Law**: first, if `keys` are given, a uniformly random subset of min(`per_key`, its records) of each pair of a unit
    and a key; then a uniformly random subset of min(`per_unit`, what is left) of each unit. All choices are exact and
    independent. That of a unit depends on how many records the unit has with each key, and on nothing else.
    **Privacy**: removing a unit removes exactly its kept records, at most `per_unit`, and leaves the law of all others
    unchanged (https://dpfast.readthedocs.io/en/latest/proofs/bounded-contributions.html). The number of kept records is
    private, so a mechanism for "replace-one" does not protect units;
    https://dpfast.readthedocs.io/en/latest/guides/units.html has the exception, and a recipe.
    **Cost** grouping (integers of a wide range are sorted), and two passes with a random word for each record, in all
    one to three sorts of the units. `BoundedContributions` reads chunks.

    References
    ----------
    Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo and Gipson 2020, "Differentially private SQL with bounded user
    contribution"; Fan, Muller and Rezucha 1962, "Development of sampling plans by using sequential (item by item)
    selection techniques and digital computers".

    Examples
    --------
    >>> import dpfast as dpf
    >>> person, minutes = ["ann", "bob", "ann", "ann", None], [12, 40, 15, 11, 30]
    >>> people, kept = dpf.bound_contributions(person, person, minutes, per_unit=2)
    >>> sorted(people), 40 in kept, 30 in kept
    (['ann', 'ann', 'bob'], True, False)
    """
    limits = _limits(per_unit, per_key)
    source = bit_generator(rng)
    _check_given(arrays, keys, limits)
    n = _common_length(unit, arrays, keys)
    if n >= _MOST:
        stream = BoundedContributions(per_unit=per_unit, per_key=per_key, rng=rng)
        stream.update(unit, *arrays, keys=keys)
        return stream.kept()
    keep = np.ones(n, np.uint8)
    if keys is not None:
        units, _ = _numbered(unit)
        codes, key_count = _numbered(keys)
        missing = (units < 0) | (codes < 0)
        _keep_few(source, np.ma.MaskedArray(units * key_count + codes, missing), limits[1], keep)
        unit = np.ma.MaskedArray(units, units < 0)
    _keep_few(source, unit, limits[0], keep)
    return _results([taken(x, keep.view(np.bool_)) for x in arrays])


def contribution_limit(
    unit: Any, *, epsilon: Exact, share: float = 0.95, most: SupportsIndex = 1000, rng: RandomSource = None
) -> int:
    """Release a limit on the records of a unit that most units do not exceed, for `bound_contributions`.

    Parameters
    ----------
    unit : column of n keys
        The unit of each record, as for `bound_contributions`. Records without a unit are left out.
    epsilon : float
        Positive; rounded down to a double.
    share : float
        In (0, 1]: about this share of the units have at most so many records.
    most : int
        The largest limit that may be released, from 2 to 2**20.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.

    Returns
    -------
    int
        From 1 to `most`.

    Raises
    ------
    TypeError, ValueError
        For a parameter out of range, or a column that is not one of keys.

    Notes
    -----
    The release is the `share`-quantile of the numbers of records, one number for each unit, at most `most`, by the
    inverse sensitivity mechanism (`dpfast.quantile`), with 1 / L**2 as the base measure of a limit L. **Privacy**:
    epsilon for one unit of *any* number of records added or removed, because it adds or removes one number. A ledger
    for units of any size charges it as it is. **Error**: let L be the limit that the share of the units have. The
    limits above it weigh about L times as much as L itself, so that a release above 2 L has a probability of at most
    L exp(-epsilon units (1 - share) / (2 share)), for a share of at least a half: 1 % from 38 log(100 L) / epsilon
    units on for `share` = .95, 240 / epsilon for L = 5. With fewer units the release is often too large, without a
    warning, as their number is private; for 50 / epsilon units in one of five to ten releases. **Cost**:
    counting the keys.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> persons = np.repeat(np.arange(10_000), np.arange(10_000) % 8)  # of 0 to 7 records
    >>> dpf.contribution_limit(persons, epsilon=0.5)
    7
    """
    largest = checks.whole("most", most, least=2)
    if largest > _MOST_LIMIT:
        raise ValueError(f"most must be at most 2**20, not {largest}")
    mechanism = InverseSensitivity(
        Quantile(checks.fraction("share", share)),
        grid=Grid(1, largest, step=1),
        epsilon=checks.positive_down("epsilon", epsilon),
        neighbors="add-remove",
        measure=_weights(largest),
    )
    source, plan, profile = bit_generator(rng), mechanism.plan(), mechanism.privacy_profile
    warn_of(mechanism)
    warn(plan.traps)
    whole = replace(profile, privacy=replace(profile.privacy, per_unit=_LIMIT))
    with spending_together((Cost(f"limit on the records of a unit: {mechanism!r}", whole),), of=(mechanism,)):
        counted = KeyCounts()
        counted.add(unit)
        numbers = counted.sorted().counts.astype(np.float64)
        return int(plan.draw(mechanism.values_of(numbers), source))


@lru_cache(maxsize=16)
def _weights(most: int) -> tuple[int, ...]:
    """Return the base measure of the limits from 1 to `most`, in proportion to 1 / limit**2.

    No scale is preferred: all limits above one weigh about as much as it does, times the limit. Equal weights need 400
    / epsilon units at a share of .95, where these need 200 to 300: of 100 / epsilon units with a geometric number of
    records, of mean 3, equal weights released more than twice the quantile in 94 of 100 releases, these in 8. Those in
    proportion to 1 / limit**3 did so in 2, but release less than half of it for numbers with heavy tails: of 150 /
    epsilon units of Zipf's law of exponent 2 in 5 of 100 releases, these in 3.
    """
    return tuple(_MOST_LIMIT**2 // limit**2 for limit in range(1, most + 1))


class BoundedContributions:
    """The records that `bound_contributions` keeps, from chunks of records.

    Memory: the kept records and at most as many others, 16 bytes and the key for each unit and for each pair of a unit
    and a key, and with `per_key` 8 bytes for each record that it leaves.

    Parameters
    ----------
    per_unit, per_key, rng
        Like those of `bound_contributions`.

    Notes
    -----
    The law is that of one call with all records. The records of a unit may be in any chunks; all of them must be read
    by the same object. On several machines, send all records of a unit to one of them.

    References
    ----------
    Vitter 1985, "Random sampling with a reservoir".

    Examples
    --------
    >>> import dpfast as dpf
    >>> bounded = dpf.BoundedContributions(per_unit=1)
    >>> for people, minutes in [(["ann", "bob"], [12, 40]), (["bob", "cy", "bob"], [35, 7, 38])]:
    ...     bounded.update(people, people, minutes)
    >>> people, minutes = bounded.kept()
    >>> sorted(people)
    ['ann', 'bob', 'cy']
    """

    def __init__(
        self, *, per_unit: SupportsIndex, per_key: SupportsIndex | None = None, rng: RandomSource = None
    ) -> None:
        self._limits = _limits(per_unit, per_key)
        bit_generator(rng)
        self._rng = rng
        self._reservoirs = Reservoirs(*self._limits)
        self._groups = _Groups()
        self._pieces: list[tuple[Codes, list[Any]]] = []  # the numbers of records, increasing, and the records
        self._read = self._stored = self._settled = 0  # records; of pieces; of pieces after the last `_settle`

    def __repr__(self) -> str:
        per_unit, per_key = self._limits
        return f"<BoundedContributions of at most {per_unit} per unit{f', {per_key} per key' if per_key else ''}>"

    def update(self, unit: Any, *arrays: Any, keys: Any = None) -> None:
        """Read the next chunk, with the parameters of `bound_contributions`. Every chunk has the same arrays."""
        _check_given(arrays, keys, self._limits)
        if self._pieces and len(arrays) != len(self._pieces[0][1]):
            raise ValueError(f"every chunk must have {len(self._pieces[0][1])} arrays, not {len(arrays)}")
        n = _common_length(unit, arrays, keys)
        units, pairs = self._groups.add(unit, keys)
        entered = np.zeros(n, np.uint8)
        self._reservoirs.add(
            bit_generator(self._rng),
            units,
            pairs,
            self._read,
            entered,
            len(self._groups.units),
            len(self._groups.pairs),
        )
        chosen = entered.view(np.bool_)
        self._pieces.append((self._read + np.flatnonzero(chosen), [taken(x, chosen) for x in arrays]))
        self._read += n
        self._stored += int(chosen.sum())
        if self._stored > 2 * self._settled + len(units):
            self._settle()

    def kept(self) -> Any:
        """Return the kept records of each array, in their order: an array, or a tuple if the chunks had several.

        Each has the type of its chunks, but Arrow's arrays become a chunked array, and record batches a table.
        """
        if not self._pieces:
            raise ValueError("no chunk was read")
        self._settle()
        return _results([_joined(list(pieces)) for pieces in zip(*(piece[1] for piece in self._pieces), strict=True)])

    def _settle(self) -> None:
        """Drop the records that later ones have replaced."""
        kept = np.sort(self._reservoirs.kept())
        pieces: list[tuple[Codes, list[Any]]] = []
        for numbers, arrays in self._pieces:
            held = np.zeros(len(numbers), np.bool_)
            if len(numbers):
                inside = kept[np.searchsorted(kept, numbers[0]) : np.searchsorted(kept, numbers[-1], side="right")]
                held[np.searchsorted(numbers, inside)] = True
            if not pieces or held.any():
                pieces.append((numbers[held], [taken(x, held) for x in arrays]))
        self._pieces, self._stored, self._settled = pieces, len(kept), len(kept)


class _Groups:
    """The codes of units, and of pairs of a unit and a key."""

    def __init__(self) -> None:
        self.units, self._keys, self.pairs = KeyTable(), KeyTable(), KeyTable()

    def add(self, unit: Any, keys: Any) -> tuple[Codes, Codes | None]:
        """Return the codes of the units of records, -1 for a record that is left out, and of the pairs, if there are
        keys.
        """
        units = self.units.add(unit)
        if keys is None:
            return units, None
        codes = self._keys.add(keys)
        if max(len(self.units), len(self._keys)) >= 2 * _MOST:
            raise MemoryError("too many units or keys")
        missing = (units < 0) | (codes < 0)
        pairs = self.pairs.add(np.ma.MaskedArray((units << 32) | codes, missing))
        units[missing] = -1
        return units, pairs


def _keep_few(source: Any, keys: Any, limit: int, keep: NDArray[np.uint8]) -> None:
    """Keep at most `limit` of the marked records of each key, and none without a key."""
    n = len(keep)
    part = _integers(column_of(keys))
    sortable = 2 ** (64 - n.bit_length())  # codes below it are sorted together with the numbers of records
    if part is None or (_range(part) >= sortable and _seem_few(part.values)):
        codes, count = _coded(keys)
        keep &= codes >= 0
    else:
        codes, count = part.values, _range(part)
        if part.missing is not None:
            keep &= ~part.missing.view(np.bool_)
        if count >= sortable:
            thin_sorted(source, codes, limit, keep, seed=SEED)
            return
        codes = codes - codes.min()
    if count <= min(_CACHED, 2 * n):
        thin(source, codes, count, limit, keep)
    else:
        thin_sorted(source, codes, limit, keep)


def _range(part: Numbers) -> int:
    """One more than the distance of the least and the greatest integer."""
    return int(part.values.max()) - int(part.values.min()) + 1


def _seem_few(keys: Codes) -> bool:
    """Whether a sample repeats so many keys that a table of all would be in a cache of the processor."""
    sample = keys[:: -(-len(keys) // 4096)]
    return len(np.unique(sample)) < 0.9 * len(sample)


def _numbered(keys: Any) -> tuple[Codes, int]:
    """Return a number for the key of each record, -1 without a key, and a number above all of them, at most 2**31."""
    part = _integers(column_of(keys))
    if part is None or _range(part) > 2**31:
        return _coded(keys)
    codes = part.values - part.values.min()
    return (codes if part.missing is None else np.where(part.missing, -1, codes)), int(codes.max()) + 1


def _coded(keys: Any) -> tuple[Codes, int]:
    table = KeyTable()
    codes = table.add(keys)
    return codes, max(len(table), 1)


def _integers(column: KeyColumn | Several) -> Numbers | None:
    """Return the integers of a column that is one array of them, and not empty."""
    if isinstance(column, KeyColumn) and column.kind in NUMBERS and len(column.parts) == 1 and len(column):
        [part] = column.parts
        assert isinstance(part, Numbers)
        return part
    return None


def _limits(per_unit: SupportsIndex, per_key: SupportsIndex | None) -> tuple[int, int]:
    """Return the two limits, 0 for none per key."""
    most = min(checks.whole("per_unit", per_unit, least=1), _LIMIT)
    return most, 0 if per_key is None else min(checks.whole("per_key", per_key, least=1), _LIMIT)


def _check_given(arrays: tuple[Any, ...], keys: Any, limits: tuple[int, int]) -> None:
    if not arrays:
        raise TypeError("an array of records is needed besides unit")
    if (keys is None) != (limits[1] == 0):
        raise TypeError("keys and per_key must be given together")


def _common_length(unit: Any, arrays: tuple[Any, ...], keys: Any) -> int:
    """Return the number of records, which must be that of all arrays; no message has it, because it may be private."""
    n = len(column_of(unit, "unit"))
    if any(_length(x) != n for x in arrays) or (keys is not None and len(column_of(keys)) != n):
        raise ValueError("unit, keys and all arrays must have the same number of records")
    return n


def _length(x: Any) -> int:
    """Return the number of records: rows of a frame, entries of anything else."""
    if isinstance(x, (str, bytes)) or not (hasattr(x, "shape") or hasattr(x, "__len__")):
        raise TypeError(f"an array of records is needed, not {type(x).__name__}")
    shape = getattr(x, "shape", None)
    if shape == ():
        raise TypeError("an array of records is needed, not a zero-dimensional one")
    return int(shape[0]) if shape else len(x)


def taken(x: Any, keep: NDArray[np.bool_]) -> Any:
    """Return the records that are to be kept, in a container of the same type; a list for another sequence without a
    dtype.
    """
    x = containers.imported(x)
    if containers.is_sequence(x):
        kept = list(compress(x, keep))
        return tuple(kept) if type(x) is tuple else kept
    library = type(x).__module__.partition(".")[0]
    if library == "polars":
        import polars

        return x.filter(polars.Series(keep))
    if library == "pyarrow":
        import pyarrow

        return x.filter(pyarrow.array(keep))
    return x.compress(keep, axis=0) if type(x) is np.ndarray else x[keep]


def _joined(pieces: list[Any]) -> Any:
    """Return the records of pieces. The type depends on theirs, and not on their number, which is private."""
    first = pieces[0]
    if isinstance(first, (list, tuple)):
        return type(first)(chain.from_iterable(pieces))
    library = type(first).__module__.partition(".")[0]
    if library == "pandas":
        import pandas

        if isinstance(first, pandas.Index):
            return first.append(pieces[1:])
        together = pandas.concat(pieces if hasattr(first, "iloc") else [pandas.Series(piece) for piece in pieces])
        return together if hasattr(first, "iloc") else together.array
    if library == "polars":
        import polars

        return polars.concat(pieces)
    if library == "pyarrow":
        import pyarrow

        if hasattr(first, "schema"):
            return pyarrow.concat_tables([pyarrow.table(piece) for piece in pieces])
        return pyarrow.chunked_array([chunk for piece in pieces for chunk in getattr(piece, "chunks", [piece])])
    pieces = [*pieces, first[:0]]  # two or more, because a single array of records keeps another dtype
    return (np.ma if isinstance(first, np.ma.MaskedArray) else np).concatenate(pieces)


def _results(arrays: list[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else tuple(arrays)
