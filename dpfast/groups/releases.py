"""`by_group`: one release, or several, for each group of records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.choosing import Explain, tell
from dpfast.core import checks, containers
from dpfast.core.grid import FloatGrid
from dpfast.core.privacy import Privacy, total_up
from dpfast.core.spending import Cost, spending_together
from dpfast.core.types import Records
from dpfast.groups.draws import LABELS, OFFSETS, Groups, draw, warn_of_groups
from dpfast.groups.key_types import KeyType
from dpfast.groups.keyed import RELEASE, KeyedReleases, ReleasedColumn
from dpfast.groups.labels import GroupKeys, label_columns, name_of, table_columns, together
from dpfast.mechanisms import Mechanism, PartitionSelection
from dpfast.mechanisms.mechanism import not_mechanism
from dpfast.random import RandomSource, bit_generator
from dpfast.streaming import Counted


@overload
def by_group(
    mechanism: Mechanism,
    x: Records,
    *,
    labels: ArrayLike | None = None,
    keys: None = None,
    offsets: ArrayLike | None = None,
    num_groups: SupportsIndex | None = None,
    contributions: SupportsIndex = 1,
    per_key: SupportsIndex | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> NDArray[np.float64]: ...


@overload
def by_group(
    mechanism: Mapping[str, Any] | Sequence[Mechanism],
    x: Any,
    *,
    labels: ArrayLike | None = None,
    keys: None = None,
    offsets: ArrayLike | None = None,
    num_groups: SupportsIndex | None = None,
    contributions: SupportsIndex = 1,
    per_key: SupportsIndex | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> dict[str, NDArray[np.float64]]: ...


@overload
def by_group(
    mechanism: Mechanism | Mapping[str, Any] | Sequence[Mechanism],
    x: Any,
    *,
    labels: Any,
    keys: Iterable[Any],
    partitions: PartitionSelection | None = None,
    others: Any = None,
    contributions: SupportsIndex = 1,
    per_key: SupportsIndex | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> KeyedReleases: ...


def by_group(
    mechanism: Mechanism | Mapping[str, Any] | Sequence[Mechanism],
    x: Any,
    *,
    labels: Any = None,
    keys: Any = None,
    partitions: PartitionSelection | None = None,
    others: Any = None,
    offsets: ArrayLike | None = None,
    num_groups: SupportsIndex | None = None,
    contributions: SupportsIndex = 1,
    per_key: SupportsIndex | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> Any:
    """Release one number, or vector, for each group of records; one epsilon covers all groups together.

    If the mechanism is for one replaced record, labels and groups are public and the same for neighbours. If it is for
    one record added or removed, they are private: the guarantee is for one record together with its label.

    Parameters
    ----------
    mechanism : Mechanism, mapping of str to Mechanism, or list of Mechanism
        The release for each group: floats, or arrays of one shape. Several mechanisms must have the same neighbours,
        and each one is charged; those of a list are named by their statistics. A mapping may also have pairs
        (mechanism, column), for the records ``x[column]``.
    x : array_like of shape (n,), or (n, d) for a mechanism of rows; with columns, a data frame or mapping
        Private data, of the kind that the mechanism requires; never modified. NaN counts as the lower bound unless the
        mechanism's grid says otherwise; for ``missing="half"`` by its position in its group. Also `dpfast.Counted`,
        with a label for each of its values: the groups of an SQL engine.
    labels : column of length n, or several of them
        The group of each record, by position, in any order. With `keys`: text, bytes or numbers, as an array, a list
        (`dpfast.keys.column_of` lists the types of its cells), or a column of pandas, polars or Arrow, also
        categorical; several columns as a frame, a table, an array of shape (n, k) or a tuple of columns.
        A record is dropped if its label is missing or not among the keys. Without `keys`:
        integers 0..num_groups - 1. A record whose label is outside this range, masked or null is dropped. With private
        labels, a record whose label is not a whole number (NaN, None in a list, 0.5, text) is also dropped. A float
        that is a whole number is a valid label.
    keys : sequence, or "private", optional
        Public keys of the groups, in the order of the result: a list, a column, an index or a frame, or tuples for
        several columns of labels, like ``itertools.product(regions, years)``. Also released ones, ``partitions.keys``
        of a `dpfast.Partitions`. They must not come from private data, as
        the categories of a column often do. "private": the keys that `partitions` releases; needs
        ``neighbors="add-remove"``. None among the keys of a single column is the group of the missing labels.
    partitions : PartitionSelection, optional
        The selection of the keys for ``keys="private"``, charged in addition to the mechanism.
    others : key, optional
        The public key of a further group, the last, of all records whose label is neither missing nor among the listed
        keys.
    offsets : array_like of int, shape (num_groups + 1,)
        Instead of `labels`, for records in the order of their groups: group g is ``x[offsets[g]:offsets[g + 1]]``.
        Nondecreasing from 0 to n, and public, as the layout of the records in memory.
    num_groups : int, optional
        G, public. Default for public labels: the largest label + 1.
    contributions : int
        k, the number of records that one unit (a person) may have: the guarantee is then for units, and a ledger
        charges it as it is. For "add-remove". The data must have been bounded: `dpfast.bound_contributions`.
    per_key : int, optional
        1 promises that a unit has at most one record in each group, as ``bound_contributions(..., keys=labels,
        per_unit=k, per_key=1)`` keeps them: rho is then k times that of one record instead of k**2 times, and mu
        sqrt(k) times instead of k times. Default: the records of a unit may be in one group.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads, -1 for one per core; the result does not depend on it.
    explain : bool or callable
        See `dpfast.median`.

    Returns
    -------
    KeyedReleases
        With `keys`, whatever the container: a mapping of each key to its release, with `privacy`, the `counts` of
        private keys, `interval`, `plot`, `to_pandas`, `to_polars` and `to_arrow`. NaN for an empty group whose
        emptiness is public, that is, for one replaced record; otherwise an empty group is drawn like every other.
    ndarray of float64, shape (G,) or (G, ...)
        Without `keys`: a random point of the grid for an empty group, and NaN if the mechanism releases None. Of
        several mechanisms a dict of arrays.

    Raises
    ------
    TypeError, ValueError
        A mechanism of scores, or one that does not release numbers; neither or both of `labels` and `offsets`; a number
        of labels that differs from the number of records; public labels that are not integers, without `keys`; private
        labels with a dtype of text, objects or dates, without `keys`; labels or keys of another dtype; keys that
        are equal or do not fit the columns of labels; offsets that are out of order; `num_groups`
        and `keys` missing with private labels; an empty public group without `keys` and without a grid for one number;
        mechanisms with different neighbours; errors of the mechanism.

    Notes
    -----
    Privacy: each record is in one group, so all releases of a mechanism together have the guarantee of one of them
    (https://dpfast.readthedocs.io/en/latest/proofs/groups.html), and a ledger charges one for each mechanism, all of
    them or none; a warning of too few records in the smallest group, of public size, comes before. Each group's
    release has the law of the mechanism on its records, and groups are independent. Guide:
    https://dpfast.readthedocs.io/en/latest/guides/groups.html.
    Cost: grouping by a hash table; for `GlobalSensitivity` one pass over the records and one over the groups, less than
    the same groupby of pandas; for `InverseSensitivity`, `Quantiles` and `SmoothSensitivity` a counting sort
    and one kernel call per 1024 groups or more, for medians about a tenth of a loop over ``np.median`` for groups of
    100; for other mechanisms, `Counted` records and groups of more than 4096 records a loop. Timing is outside the
    guarantee.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> rng = np.random.default_rng(0)
    >>> school, score = rng.integers(0, 50, 20_000), rng.normal(60, 10, 20_000)
    >>> median = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 100), epsilon=1.0)
    >>> released = dpf.by_group(median, score, labels=school, num_groups=50)
    >>> released.shape, bool(np.abs(released - 60).max() < 5)
    ((50,), True)
    >>> region = np.array(["north", "south"])[school % 2]
    >>> released = dpf.by_group(median, score, labels=region, keys=["south", "north", "west"])
    >>> list(released), bool(abs(released["north"] - 60) < 5), released["west"]
    (['south', 'north', 'west'], True, nan)
    >>> released.privacy
    Privacy(epsilon=1.0, delta=0.0, neighbors='replace-one', records=1)
    """
    jobs = _jobs(mechanism)
    hides_n = jobs[0].mechanism.hides_n
    if (labels is None) == (offsets is None):
        raise TypeError("give either labels= or offsets=")
    threads, _ = checks.threads(workers), bit_generator(rng)
    costs = [cost_for_each_group(job.mechanism, contributions, per_key) for job in jobs]
    count = None if num_groups is None else checks.whole("num_groups", num_groups)
    if keys is not None and (labels is None or count is not None):
        raise TypeError("keys are those of labels=: leave out offsets and num_groups")
    if keys is None and count is None and offsets is None and hides_n:
        raise TypeError("num_groups or keys is needed: with neighbors='add-remove' labels are private")
    columns = None if keys is None else label_columns(labels)
    private = selects(keys, partitions, hides_n)
    if private and isinstance(x, Counted):
        raise TypeError("keys='private' needs records one by one, not counted")
    if others is not None and (keys is None or private):
        raise TypeError("others is the key of a further group: give it with a list of keys=")
    named = None if columns is None or private else GroupKeys.of(columns, keys, nulls=True, others=others)
    selecting = [] if partitions is None else [partitions]
    costs[:0] = [selection.cost for selection in selecting]
    privacy = total_up([cost.profile for cost in costs])
    given = [job.given(x) for job in jobs]
    groups, smallest, sizes = None, None, list[NDArray[np.int64]]()
    floats = any(isinstance(grid, FloatGrid) for job in jobs for grid in job.mechanism.points)
    if not hides_n and (floats or explain is not False):
        # Only floats may be of no use. Sizes are public: one pass over the labels counts them before the charge.
        groups = _groups(labels, named, offsets, count, hides_n, threads)
        sizes = [groups.sizes(column) for column in given]
        smallest = min((int(found[found > 0].min()) for found in sizes if found.any()), default=None)
    if explain is not False:
        tell(_explanation(jobs, partitions, smallest), explain)
    if floats or hides_n:
        for i, job in enumerate(jobs):
            warn_of_groups(job.mechanism, None if hides_n else sizes[i])
    with spending_together(costs, of=[*selecting, *(job.mechanism for job in jobs)]):
        records = [job.records(column) for job, column in zip(jobs, given, strict=True)]
        counts = None
        n, *others = (len(values.values if isinstance(values, Counted) else values) for values in records)
        if any(other != n for other in others):
            raise ValueError("the columns of x must be equally long")
        if columns is not None and partitions is not None:
            released = partitions(together([column for _, column in columns]), rng=rng, workers=threads)
            named, counts = GroupKeys.of(columns, released.keys), released.counts
        if groups is None:
            groups = _groups(labels, named, offsets, count, hides_n, threads)
        groups.check_records(n)
        arrays = [draw(job.mechanism, values, groups, rng, threads) for job, values in zip(jobs, records, strict=True)]
    if named is None:
        return arrays[0] if jobs[0].name is None else {job.name: array for job, array in zip(jobs, arrays, strict=True)}
    released_columns = [
        ReleasedColumn(
            job.title(x),
            array,
            job.parts(array.shape[1:], x),
            job.mechanism,
            None if hides_n else groups.sizes(values),
        )
        for job, array, values in zip(jobs, arrays, records, strict=True)
    ]
    return keyed(named, released_columns, privacy, counts=counts, alone=jobs[0].name is None)


def cost_for_each_group(mechanism: Mechanism, contributions: SupportsIndex, per_key: SupportsIndex | None) -> Cost:
    """Return the cost of a release in each group, for units if they may have several records."""
    k, different = checks.whole("contributions", contributions, least=1), checks.one_or_none("per_key", per_key)
    label, profile, _ = mechanism.cost
    return Cost(f"{label} for each group", profile if k == 1 else profile.for_units(k, per_key=different))


def keyed(
    named: GroupKeys,
    columns: Sequence[ReleasedColumn],
    privacy: Privacy,
    *,
    counts: NDArray[np.int64] | None = None,
    alone: bool = True,
) -> KeyedReleases:
    """Return the releases by their keys, which keep the names and the types of the labels."""
    types = [KeyType.of(column) for column in named.columns]
    return KeyedReleases(
        named.listed, columns, privacy, names=named.column_names(), types=types, counts=counts, alone=alone
    )


def _explanation(jobs: Sequence[_Job], partitions: PartitionSelection | None, smallest: int | None) -> str:
    """Return the text about the mechanisms and the selection of keys: groups share a guarantee, these do not.

    The errors are those of the smallest group, if sizes are public.
    """
    texts = [job.mechanism.explanation(smallest) for job in jobs]
    texts = [text if job.name is None else f"{job.name}: {text}" for job, text in zip(jobs, texts, strict=True)]
    if partitions is not None:
        texts.insert(0, f"Keys: {partitions.explanation()}")
    charged = "It is charged once" if len(texts) == 1 else f"Each of the {len(texts)} is charged once"
    hidden = "; n is that of a group" if jobs[0].mechanism.hides_n else ""
    size = hidden if smallest is None else f"; the smallest one has {smallest:,} records"
    return "\n".join([*texts, f"{charged}, for all groups together, because a record is in one group{size}."])


def _groups(
    labels: Any, named: GroupKeys | None, offsets: Any, count: int | None, private: bool, threads: int
) -> Groups:
    """Return the groups by their labels, keys or offsets; the records are not read."""
    if named is not None:
        return Groups(len(named), _flat(named.places(threads)), sparse=not private)
    if offsets is not None:
        ends = _offsets(offsets, count)
        return Groups(len(ends) - 1, offsets=ends)
    codes = _flat(containers.labels(labels, private=private))
    return Groups(int(codes.max(initial=-1)) + 1 if count is None else count, codes)


@dataclass(frozen=True)
class _Job:
    """One of the mechanisms of a call.

    Parameters
    ----------
    name : str or None
        None for the only mechanism of a call.
    mechanism : Mechanism
        The release for each group.
    column : str or None
        The column of x that has its records; None for all of x.
    """

    name: str | None
    mechanism: Mechanism
    column: Any = None

    def __post_init__(self) -> None:
        made = self.mechanism
        if not isinstance(made, Mechanism):
            raise TypeError(not_mechanism(made))
        checks.reads_records(made)
        if not (made.releases_numbers or made.parts):
            raise TypeError(f"a {type(made).__name__} does not release numbers, which by_group puts into one array")

    def given(self, x: Any) -> Any:
        """Return the records of the mechanism in x, as they were given, if their dtype can be read."""
        if self.column is not None:
            if [name for name, _ in table_columns(x) or ()].count(self.column) > 1:
                raise ValueError(f"several columns of x are named {self.column!r}: rename all but one")
            x = x[self.column]
        if (empty := containers.without_records(x)) is not None:
            self.records(empty)
        return x

    def records(self, column: Any) -> NDArray[Any] | Counted:
        """Those that were given in an array of numbers, or counted."""
        name = "x" if self.column is None else f"x[{self.column!r}]"
        if isinstance(column, Counted):
            return column
        values = containers.numbers(name, column, dimensions=self.mechanism.dimensions)
        if values.ndim not in (1, 2):
            raise ValueError(f"{name} must have a record in each entry or row, not shape {containers.shape_of(values)}")
        return values

    def title(self, x: Any) -> str:
        """Return the name of the column of releases: for the only mechanism of a call that of the records."""
        return str(name_of(x) or RELEASE) if self.name is None else self.name

    def parts(self, shape: tuple[int, ...], x: Any) -> list[str]:
        """Return the names of the numbers of a release of this shape."""
        if self.mechanism.parts:
            return list(self.mechanism.parts)
        table = table_columns(x)
        if table is not None and shape == (len(table),):
            return [str(name) for name, _ in table]
        return [", ".join(map(str, place)) for place in np.ndindex(shape)]


def _jobs(mechanism: Any) -> list[_Job]:
    """Return the mechanisms of a call, with distinct names if there may be several."""
    if isinstance(mechanism, Mapping):
        pairs = [(made if isinstance(made, tuple) else (made, None)) for made in mechanism.values()]
        jobs = [_Job(str(name), *pair) for name, pair in zip(mechanism, pairs, strict=True)]
    elif isinstance(mechanism, (list, tuple)):
        jobs = [_Job(str(getattr(made, "statistic", type(made).__name__)), made) for made in mechanism]
    else:
        return [_Job(None, mechanism)]
    if not jobs:
        raise ValueError("at least one mechanism is needed")
    if len({job.name for job in jobs}) < len(jobs):
        raise ValueError("mechanisms need distinct names: give a mapping of names to mechanisms")
    if len({job.mechanism.privacy.neighbors for job in jobs}) > 1:
        raise ValueError("neighbors must be the same for all mechanisms of a call")
    return jobs


def selects(keys: Any, partitions: Any, hides_n: bool) -> bool:
    """Whether the keys are to be selected by `partitions`, after a check of both."""
    private = isinstance(keys, str) and keys == "private"
    if private != (partitions is not None):
        raise TypeError("keys='private' and partitions=, the selection of the keys, must be given together")
    if not private:
        return False
    if not isinstance(partitions, PartitionSelection):
        raise TypeError(f"partitions must be a dpfast.PartitionSelection, not {type(partitions).__name__}")
    if not (hides_n and partitions.hides_n):
        raise ValueError("keys='private' needs neighbors='add-remove', of the mechanism and of partitions")
    return True


def _flat(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    if codes.ndim != 1:
        raise ValueError(LABELS)
    return codes


def _offsets(offsets: Any, groups: int | None) -> NDArray[np.int64]:
    ends = np.ascontiguousarray(containers.integers("offsets", offsets))
    if ends.ndim != 1 or ends.size < 1 or (groups is not None and ends.size != groups + 1):
        wanted = "num_groups + 1" if groups is None else groups + 1
        raise ValueError(f"offsets must have {wanted} entries")
    if ends[0] != 0 or (np.diff(ends) < 0).any():
        raise ValueError(OFFSETS)
    return ends
