"""The most frequent keys of private records, in order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast.choosing import Explain, explained
from dpfast.core import checks, containers
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.rounding import down, up
from dpfast.core.traps import of_order, warn
from dpfast.core.types import Exact
from dpfast.keys import lookup
from dpfast.laws import DiscreteLaplace, Independent, Law, NoisyIntegers
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.orders import (
    AIMS,
    JointKeys,
    PeeledKeys,
    fits_joint,
    joint_error,
    missed_by_counts,
    missed_by_joint,
    missed_by_peeling,
)
from dpfast.mechanisms.partitions import PartitionSelection
from dpfast.mechanisms.selection import Selection
from dpfast.random import RandomSource
from dpfast.streaming import Counts, known_records

_METHODS = ("auto", "counts", "peeling", "joint")
_FEWEST_JOINT = 5  # keys


@dataclass(frozen=True, repr=False)
class TopK(Mechanism):
    """Release the k most frequent of public keys, in order, without their counts.

    Pure epsilon-differential privacy for one unit (a person) added or removed, or for one record replaced.

    Parameters
    ----------
    k : int
        At most the number of keys.
    keys : sequence of keys
        Public and distinct. Records with other keys are left out.
    epsilon : float
        Positive, for all k; rounded down to a double.
    contributions : int
        The number of records that one unit may have; add-remove only.
    per_key : int, optional
        1 promises that all records of a unit have different keys, as `dpfast.bound_contributions` makes them.
    neighbors : {"add-remove", "replace-one"}
    method : {"auto", "counts", "peeling", "joint"}
        "counts" adds discrete Laplace noise to all counts and sorts them. "peeling" selects one key after the other
        among those that are left by permute-and-flip, with epsilon / k for each. "joint" selects all k at once by the
        joint exponential mechanism. "auto" chooses from public numbers; the attribute holds the choice.
    typical : sequence of float, optional
        Assumed counts of the keys, in any order, such as public ones of last year: "auto" takes the method that misses
        the fewest records for them. Only the error depends on it. Default: "counts", or "peeling" if its `error` is
        less; "joint" for at least five keys of units with at least k / 2 different keys.
    aim : {"greatest", "mean"}
        What is missed for `typical` counts: the greatest or the mean difference of the j-th released key from the j-th
        most frequent one, j = 1, ..., k. Counts that fall as those of Zipf's law have a smaller mean by peeling, and a
        smaller greatest difference by joint selection.

    Raises
    ------
    TypeError, ValueError
        An invalid parameter, before any data are read.

    Notes
    -----
    Privacy (https://dpfast.readthedocs.io/en/latest/proofs/top-k.html): the counts change by the number of records of a
    unit together, or by 2 for a replaced record, so that noise on all of them costs as much as on one. One count
    changes by at most 1 if the records of a unit have different keys, whatever their number, so that peeling is better
    for k = 1, and for units with more records than k. Equal noisy counts are in the order of the keys.

    References
    ----------
    McKenna and Sheldon 2020, "Permute-and-flip: a new mechanism for differentially private selection"; Gillenwater,
    Joseph, Munoz and Ribero 2022, "A joint exponential mechanism for differentially private top-k"; Durfee and
    Rogers 2019, "Practical differentially private top-k selection with pay-what-you-get composition".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.TopK(2, ["Lima", "Oslo", "Rome"], epsilon=1.0)
    >>> mechanism.method, mechanism(np.repeat(["Rome", "Oslo", "Lima"], [100, 300, 500]))
    ('counts', array(['Lima', 'Oslo'], dtype=object))
    """

    reads_all: ClassVar[bool] = False  # the number of records with listed keys is private
    releases_numbers: ClassVar[bool] = False

    k: int
    keys: Sequence[Any]
    epsilon: float = field(kw_only=True)
    contributions: int = field(kw_only=True, default=1)
    per_key: int | None = field(kw_only=True, default=None)
    neighbors: str = field(kw_only=True, default="add-remove")
    method: str = field(kw_only=True, default="auto")
    typical: Sequence[float] | None = field(kw_only=True, default=None)
    aim: str = field(kw_only=True, default="greatest")

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checks.whole("k", self.k, least=1))
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        checks.choice("method", self.method, _METHODS)
        checks.choice("aim", self.aim, tuple(AIMS))
        if isinstance(self.keys, (int, np.integer)):
            raise TypeError("keys must be a sequence of keys, not a number")
        listed = PartitionSelection(  # the same checks of keys, neighbours, contributions and the size of the noise
            self.epsilon,
            contributions=self.contributions,
            per_key=self.per_key,
            neighbors=self.neighbors,
            domain=self.keys,  # type: ignore[arg-type]
        )
        object.__setattr__(self, "keys", listed.domain)
        object.__setattr__(self, "contributions", listed.contributions)
        if self.k > len(self.keys):
            raise ValueError(f"k must be at most the number of keys, {len(self.keys)}, not {self.k}")
        if self.typical is not None:
            object.__setattr__(self, "typical", _typical(self.typical, len(self.keys)))
        if self.method == "auto":
            object.__setattr__(self, "method", self._best())

    def _best(self) -> str:
        fits = fits_joint(len(self.keys), self.k, self._joint_epsilon)
        if self.typical is not None:
            missed = self._missed(np.array(self.typical), joint=fits)
            return min(missed, key=missed.__getitem__)
        # Measured for counts by Zipf's laws of exponents .5, 1 and 1.5 of 100 and 2,000 keys.
        if fits and self.k >= _FEWEST_JOINT and self.per_key and 2 * self.contributions >= self.k:
            return "joint"
        return min(("counts", "peeling"), key=lambda method: self._error(method, 0.95))

    def _missed(self, counts: NDArray[np.float64], *, joint: bool = True) -> dict[str, float]:
        """Return the expected number of records that each method misses for these counts, in descending order."""
        selection = self._selection
        rate = selection.epsilon / float(selection.sensitivity) / (1 if selection.monotone else 2)
        found = {
            "counts": missed_by_counts(counts, self.k, float(self._noise.scale), self.aim),
            "peeling": missed_by_peeling(counts, self.k, rate, self.aim),
        }
        if joint:
            found["joint"] = missed_by_joint(counts, self.k, self._joint_epsilon, self.aim)
        return found

    @property
    def privacy(self) -> Privacy:
        per_unit = self.contributions if self.contributions > 1 else None
        return Privacy(self.epsilon, 0.0, self.neighbors, per_unit=per_unit)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        if self.method == "peeling":
            return PrivacyProfile(self.privacy, (("pure", up(Fraction(self.epsilon) / self.k), self.k),))
        if self.method == "joint":
            return PrivacyProfile(self.privacy, (("bounded-range", self.epsilon, 1),))
        if self.contributions > 1:
            return PrivacyProfile(self.privacy)
        changed = 2 if self.neighbors == "replace-one" else 1
        return PrivacyProfile(self.privacy, (("discrete-laplace", up(Fraction(self.epsilon) / changed), changed),))

    @cached_property
    def _noise(self) -> DiscreteLaplace:
        changed = 2 if self.neighbors == "replace-one" else self.contributions
        return DiscreteLaplace(changed / Fraction(self.epsilon))

    @cached_property
    def _selection(self) -> Selection:
        """The selection of one key."""
        return Selection(
            epsilon=down(Fraction(self.epsilon) / self.k),
            sensitivity=1 if self.per_key else self.contributions,
            monotone=self.neighbors == "add-remove",
            selection="permute-and-flip",
            neighbors=self.neighbors,
        )

    @property
    def _joint_epsilon(self) -> float:
        """Epsilon, divided by the most by which a unit changes the missed records: one count by 1, or by all records.

        Two counts by 1 in opposite directions for a replaced record.
        """
        change = 2 if self.neighbors == "replace-one" else 1 if self.per_key else self.contributions
        return down(Fraction(self.epsilon) / change)

    def error(self, n: SupportsIndex | None = None, *, confidence: float = 0.95) -> float:
        """Return how many records a released key may have less than the key whose place it has. Public, for any n.

        With probability `confidence`, for any counts and for all j, the j-th released key has at most so many records
        less than the j-th most frequent one. Infinite for joint selection with so small an epsilon that memory limits
        its scores, which ``method="auto"`` does not take.

        Examples
        --------
        >>> import dpfast as dpf
        >>> [round(dpf.TopK(k, range(100), epsilon=1.0).error(), 1) for k in (1, 2, 10)]
        [7.5, 14.0, 14.0]
        """
        return self._error(self.method, checks.between("confidence", confidence, 0, 1))

    def _error(self, method: str, confidence: float) -> float:
        d, missed = len(self.keys), 1 - confidence
        if method == "counts":
            return 2.0 * self._noise.magnitude(1 - missed / d)
        if method == "joint":
            return joint_error(d, self.k, self._joint_epsilon, missed)
        return self._selection.error(d, confidence=1 - missed / self.k)

    def _explained_error(self, n: int | None) -> str:
        if math.isinf(error := self.error()):
            return "Any keys may be released: nothing can be said of the records that they miss"
        return f"With probability 0.95, no key has {error:.3g} records less than the one whose place it has"

    def __repr__(self) -> str:
        how = {"counts": "noisy counts", "joint": "one selection"}.get(self.method, self.method)
        return f"<TopK release of {self.k} of {len(self.keys)} keys by {how}: {self.privacy}>"

    def reading(self) -> Counts:
        size = len(self.keys)
        return Counts((size,), self._listed, lambda places, threads: np.bincount(places, minlength=size))

    def _listed(self, x: Any) -> NDArray[np.int64]:
        """Return the places among the keys of the records whose keys are there."""
        places = lookup(x, self.keys)
        return places[places >= 0]

    def law_of(self, summary: Any) -> Law:
        counts, _ = summary
        if self.method == "peeling":
            return PeeledKeys(counts, self.k, selection=self._selection, decode=self._named)
        if self.method == "joint":
            return JointKeys(counts, self.k, epsilon=self._joint_epsilon, decode=self._named)
        noise = Independent(DiscreteLaplace(self._noise.scale), len(counts))
        return NoisyIntegers(counts, noise=noise, most=2**61, decode=self._sorted)

    def _sorted(self, counts: NDArray[np.int64]) -> Any:
        return self._named(np.argsort(-counts, axis=-1, kind="stable")[..., : self.k])

    def _named(self, places: NDArray[np.int64]) -> NDArray[Any]:
        """Return the keys at these places, in an array of objects."""
        keys = np.empty(len(self.keys), object)
        for place, key in enumerate(self.keys):
            keys[place] = key
        return keys[places]

    def sampled(self, law: Law, shape: tuple[int, ...], source: np.random.BitGenerator) -> NDArray[Any]:
        return np.asarray(law.value(law.sample(shape, rng=source)))


def top_k(
    x: Any,
    k: SupportsIndex,
    *,
    keys: Sequence[Any] | str,
    epsilon: Exact,
    delta: Exact = 0.0,
    contributions: SupportsIndex = 1,
    per_key: SupportsIndex | None = None,
    neighbors: str = "add-remove",
    typical: Sequence[float] | None = None,
    aim: str = "greatest",
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> list[Any]:
    """Release the most frequent keys of private records, most frequent first.

    Parameters
    ----------
    x : array_like of shape (n,) or (n, j), frame, tuple of columns, or Chunks
        The key of each record; see `dpfast.partitions`. Missing keys are left out.
    k : int
        How many.
    keys : sequence of keys, or "private"
        The possible keys, public; records with other keys are left out. "private": the keys of the records, which needs
        a positive delta; there may then be fewer than k that enough records have.
    epsilon : float
        Positive.
    delta : float
        For keys="private".
    contributions, per_key, neighbors
        See `dpfast.TopK` and `dpfast.PartitionSelection`.
    typical, aim
        For the choice of the method, of public keys; see `dpfast.TopK`.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads that read the data; the result does not depend on it.
    explain : bool or callable
        Print a text about the release, or pass it to this function.

    Returns
    -------
    list of keys

    Notes
    -----
    Privacy: `dpfast.TopK`; for private keys, the greatest of the noisy counts of `dpfast.PartitionSelection`, which
    releases the keys: https://dpfast.readthedocs.io/en/latest/proofs/top-k.html.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> cities = np.repeat(["Oslo", "Rome", "Lima"], [500, 300, 20])
    >>> dpf.top_k(cities, 2, keys="private", epsilon=1.0, delta=1e-6)
    ['Oslo', 'Rome']
    """
    most, exact = checks.whole("k", k, least=1), checks.positive_down("epsilon", epsilon)
    small = checks.delta_down(delta)
    options: dict[str, Any] = {"contributions": contributions, "per_key": per_key, "neighbors": neighbors}
    if not isinstance(keys, str):
        if small:
            raise ValueError("delta must be 0 for public keys, whose guarantee is pure")
        mechanism = TopK(most, keys, epsilon=exact, typical=typical, aim=aim, **options)
        n = None if mechanism.neighbors == "add-remove" else known_records(x)
        if n:
            warn(of_order(mechanism.error(), n))
        made: list[Any] = explained(mechanism, explain, x)(x, rng=rng, workers=workers).tolist()
        return made
    checks.choice("keys", keys, ("private",))
    if typical is not None or aim != "greatest":
        raise TypeError("typical and aim must be left out for private keys, which have one method")
    if not small:
        raise ValueError("delta must be positive for private keys, such as 1e-6; or give keys=, all possible ones")
    selection = PartitionSelection(exact, small, **options)
    released = explained(selection, explain, x)(x, rng=rng, workers=workers)
    order = np.argsort(-released.counts, kind="stable")[:most]
    if isinstance(released.keys, tuple):
        return list(zip(*(column[order].tolist() for column in released.keys), strict=True))
    found: list[Any] = released.keys[order].tolist()
    return found


def _typical(counts: Any, d: int) -> tuple[float, ...]:
    """Return assumed counts in descending order, one for each of d keys; those that are not given are 0."""
    values = np.sort(containers.numbers("typical", counts, dimensions=1).astype(np.float64))[::-1]
    if not 1 <= values.size <= d or not np.isfinite(values).all() or values[-1] < 0:
        raise ValueError(f"typical must be finite and at least 0, one for each of at most {d} keys")
    return (*values.tolist(), *[0.0] * (d - values.size))
