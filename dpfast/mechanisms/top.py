"""The most frequent keys of private records, in order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.choosing import Explain, explained
from dpfast.core import checks, containers
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.rounding import down, up
from dpfast.core.traps import of_order, warn
from dpfast.core.types import Exact
from dpfast.keys import lookup
from dpfast.laws import DiscreteLaplace, Independent, Law, NoisyIntegers
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.partitions import PartitionSelection
from dpfast.mechanisms.plan import Plan
from dpfast.mechanisms.selection import Selection
from dpfast.random import RandomSource, bit_generator
from dpfast.streaming import Counts, known_records

_METHODS = ("auto", "counts", "peeling")
_MOST_SCALE = 2**54


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
    method : {"auto", "counts", "peeling"}
        "counts" adds discrete Laplace noise to all counts and sorts them. "peeling" selects one key after the other
        among those that are left by permute-and-flip, with epsilon / k for each. "auto" takes the one with the lesser
        `error`, from public numbers; the attribute holds the choice.

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
    McKenna and Sheldon 2020, "Permute-and-flip: a new mechanism for differentially private selection"; Durfee and
    Rogers 2019, "Practical differentially private top-k selection with pay-what-you-get composition".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.TopK(2, ["Lima", "Oslo", "Rome"], epsilon=1.0)
    >>> mechanism.method, mechanism(np.repeat(["Rome", "Oslo", "Lima"], [100, 300, 500]))
    ('counts', array(['Lima', 'Oslo'], dtype=object))
    """

    releases_numbers: ClassVar[bool] = False

    k: int
    keys: Sequence[Any]
    epsilon: float = field(kw_only=True)
    contributions: int = field(kw_only=True, default=1)
    per_key: int | None = field(kw_only=True, default=None)
    neighbors: str = field(kw_only=True, default="add-remove")
    method: str = field(kw_only=True, default="auto")

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checks.whole("k", self.k, least=1))
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        checks.choice("method", self.method, _METHODS)
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
        if self.method == "auto":
            errors = {method: self._error(method, 0.95) for method in _METHODS[1:]}
            object.__setattr__(self, "method", min(errors, key=errors.__getitem__))

    @property
    def privacy(self) -> Privacy:
        per_unit = self.contributions if self.contributions > 1 else None
        return Privacy(self.epsilon, 0.0, self.neighbors, per_unit=per_unit)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        if self.method == "peeling":
            return PrivacyProfile(self.privacy, (("pure", up(Fraction(self.epsilon) / self.k), self.k),))
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

    def error(self, n: SupportsIndex | None = None, *, confidence: float = 0.95) -> float:
        """Return how far a released key may be out of order, in records; it does not depend on n. Public.

        With probability `confidence`, no key that is left out, or released later, has more records than this beyond
        those of an earlier one.

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
        return self._selection.error(d, confidence=1 - missed / self.k)

    def _explained_error(self, n: int | None) -> str:
        return f"With probability 0.95, no key is out of order by more than {self.error():.3g} records"

    def __repr__(self) -> str:
        how = "noisy counts" if self.method == "counts" else "peeling"
        return f"<TopK release of {self.k} of {len(self.keys)} keys by {how}: {self.privacy}>"

    def plan(self, n: SupportsIndex | None = None) -> Plan:
        return super().plan(None)  # the number of records with listed keys is private

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


class PeeledKeys(Law):
    """The law of k places that are selected one after the other among those that are left.

    Parameters
    ----------
    counts : ndarray of int64
    k : int
    selection : Selection
        Of one place.
    decode : callable
        Converts places to what is released.
    """

    def __init__(self, counts: NDArray[np.int64], k: int, *, selection: Selection, decode: Any) -> None:
        self.counts, self.k, self._selection, self._decode = counts, k, selection, decode

    def _law(self, left: list[int]) -> Any:
        return self._selection.law_of(self.counts[left])

    def outcomes(self) -> NDArray[np.int64]:
        checks.outcomes(math.perm(len(self.counts), self.k))
        return np.array(list(itertools.permutations(range(len(self.counts)), self.k)), np.int64)

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        places = containers.integers("k", k)
        out = [self._log_probability(each) for each in places.reshape(-1, self.k).tolist()]
        return np.array(out).reshape(places.shape[:-1])

    def _log_probability(self, places: list[int]) -> float:
        left, total = list(range(len(self.counts))), 0.0
        for place in places:
            if place not in left:
                return -math.inf
            total += float(self._law(left).logpmf(left.index(place)))
            left.remove(place)
        return total

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        source, shape = bit_generator(rng), checks.shape(size)
        out = np.empty((math.prod(shape), self.k), np.int64)
        for row in out:
            left = list(range(len(self.counts)))
            for j in range(self.k):
                row[j] = left.pop(self._law(left).sample(rng=source))
        return out.reshape(*shape, self.k)

    def value(self, k: ArrayLike) -> Any:
        return self._decode(containers.integers("k", k))


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
        mechanism = TopK(most, keys, epsilon=exact, **options)
        n = None if mechanism.neighbors == "add-remove" else known_records(x)
        if n:
            warn(of_order(mechanism.error(), n))
        made: list[Any] = explained(mechanism, explain, x)(x, rng=rng, workers=workers).tolist()
        return made
    checks.choice("keys", keys, ("private",))
    selection = PartitionSelection(exact, small, **options)
    released = explained(selection, explain, x)(x, rng=rng, workers=workers)
    order = np.argsort(-released.counts, kind="stable")[:most]
    if isinstance(released.keys, tuple):
        return list(zip(*(column[order].tolist() for column in released.keys), strict=True))
    found: list[Any] = released.keys[order].tolist()
    return found
