"""Shuffled reports: the central guarantee of local reports that a server sees in random order, without names."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _samplers
from dpfast.core import checks, shuffling
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.rounding import double_up, down
from dpfast.core.tabular import Declared
from dpfast.core.traps import Cautious
from dpfast.local.categories import Categorical
from dpfast.local.randomizer import LocalMechanism
from dpfast.random import RandomSource, bit_generator


@dataclass(frozen=True)
class Shuffled(Declared, Cautious):
    """The guarantee of a batch of n local reports in random order: (epsilon, delta) for one replaced record.

    The epsilon is smaller than that of one report, by a factor that grows like sqrt(n) for large n, because the report
    of one person hides among those of the others. A trusted shuffler must remove names and order (`shuffle`).

    Parameters
    ----------
    randomizer : local randomiser or float
        The randomiser of all n people, with reports that do not depend on those of others: `Randomizer`,
        `HashedCategorical`, `HeavyHitters` or `Attributes`, so also what `randomizer_for` returns. Or the epsilon that
        all of them have: pure epsilon-local differential privacy, each record reported once.
    n : int
        The number of honest people whose reports are shuffled together, at least 1; public. Dishonest people do not
        count.
    delta : float
        In (0, 1), for `privacy`.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, or the randomiser is a protocol in which each report depends on earlier ones.

    Notes
    -----
    The bounds are certified: the delta of a dominating pair of laws is computed by a sum of O(sqrt(n)) terms with a
    bound of all rounding errors, and rounded up. The reports of `Categorical` (except "oue"), `HashedCategorical`,
    `HeavyHitters`, `Interval` (except "laplace"), `L2Ball`, `Hypercube` and `SeriesReports` support a record or not,
    and the bound uses which share of them does (``share``), as for k-ary randomised response with k = 1 / share. The
    share of half spaces and majorities is 1 / 2, which gains nothing; that of "privunit" is of real arithmetic. For
    "k-rr", `epsilon_down` shows that the bound is nearly the least. The pair of any other randomiser is the largest
    that its epsilon allows (https://dpfast.readthedocs.io/en/latest/proofs/shuffling.html). Use it in a ledger with
    neighbors="replace-one", which composes batches by the whole curve in a plan, by Renyi divergences, or by (epsilon,
    delta). Cost: milliseconds for n = 1e6, one second or a few for 1e9; beyond 2**34 the guarantee is that of 2**34
    reports.

    References
    ----------
    Balle, Bell, Gascon and Nissim 2019, "The privacy blanket of the shuffle model"; Feldman, McMillan and Talwar 2021,
    "Hiding among the clones", and 2023, "Stronger privacy amplification by shuffling".

    Examples
    --------
    >>> import dpfast as dpf
    >>> survey = dpf.local.Categorical(16, epsilon=2.0, method="k-rr")
    >>> batch = dpf.local.Shuffled(survey, n=100_000, delta=1e-8)
    >>> round(batch.privacy.epsilon, 4), round(batch.epsilon_down(1e-8), 4)
    (0.0261, 0.0261)
    >>> dpf.Ledger(0.1, 1e-6).affords(batch)
    True
    """

    randomizer: LocalMechanism | float
    n: int = field(kw_only=True)
    delta: float = field(kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.randomizer, LocalMechanism):
            if not hasattr(self.randomizer, "randomize"):
                raise ValueError(
                    f"{type(self.randomizer).__name__} cannot be shuffled, as each report depends on earlier ones: use "
                    f"a randomiser with `randomize`, such as Interval, SeriesReports or L2Ball"
                )
        else:
            epsilon = checks.rational_or_double("the epsilon of a report", self.randomizer)
            if not 0 < epsilon < math.inf:
                raise ValueError(f"the epsilon of a report must be positive and finite, not {self.randomizer!r}")
            object.__setattr__(self, "randomizer", double_up(epsilon))
        object.__setattr__(self, "n", checks.whole("n", self.n, least=1))
        delta = checks.delta_down(self.delta)
        if not delta:
            raise ValueError("delta must be positive, not 0.0: without delta, shuffling does not improve the guarantee")
        object.__setattr__(self, "delta", delta)

    @cached_property
    def _batch(self) -> shuffling.Batch:
        reports = self.randomizer
        if not isinstance(reports, LocalMechanism):
            return shuffling.Batch(reports, self.n)
        kinds = down(1 / reports.share)
        k = int(kinds) if kinds == int(kinds) else kinds
        return shuffling.Batch(float(reports.privacy.epsilon), self.n, max(k, 2))

    @property
    def _bounded_below(self) -> bool:
        """Whether lower bounds are known: for k-ary response with k > 2."""
        return isinstance(self.randomizer, Categorical) and self.randomizer.method == "k-rr" and self.randomizer.k > 2

    @property
    def privacy(self) -> Privacy:
        """The guarantee for one replaced record: the epsilon at `delta`."""
        epsilon = self.epsilon_up(self.delta)
        return Privacy(epsilon, self.delta if epsilon < self._batch.epsilon else 0.0)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        """The guarantee in the form that a `dpfast.Ledger` composes."""
        epsilon, n, k = self._batch
        return PrivacyProfile(self.privacy, (("shuffled", epsilon, 1, n, k),), failure=0.0)

    def delta_up(self, epsilon: float) -> float:
        """Return a delta with which the batch is (epsilon, delta)-differentially private, rounded up."""
        return shuffling.delta_up(self._batch, checks.nonnegative_rational("epsilon", epsilon))

    def epsilon_up(self, delta: float) -> float:
        """Return the least epsilon, up to one part in 2**24, for which `delta_up` is at most delta."""
        return shuffling.epsilon_up(self._batch, checks.delta_down(delta))

    def delta_down(self, epsilon: float) -> float:
        """Return a delta below which the batch is not (epsilon, delta)-differentially private: 0 where none is known.

        One is known for `Categorical` with method "k-rr" and k > 2.
        """
        if not self._bounded_below:
            return 0.0
        return shuffling.delta_down(self._batch, checks.nonnegative_rational("epsilon", epsilon))

    def epsilon_down(self, delta: float) -> float:
        """Return an epsilon below which the batch is not (epsilon, delta)-differentially private; see `delta_down`."""
        return shuffling.epsilon_down(self._batch, checks.delta_down(delta)) if self._bounded_below else 0.0

    def shuffle(self, reports: NDArray[Any], *, rng: RandomSource = None) -> NDArray[Any]:
        """Return the reports in uniformly random order: every order has exactly the same probability.

        Parameters
        ----------
        reports : ndarray
            n reports along the first axis.
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the order reproducible, hence not private. Default: the secure generator.

        Examples
        --------
        >>> import numpy as np, dpfast as dpf
        >>> batch = dpf.local.Shuffled(dpf.local.Binary(1.0), n=4, delta=1e-6)
        >>> int(batch.shuffle(np.array([0, 0, 1, 0], np.uint8)).sum())
        1
        """
        rows = np.asarray(reports)
        if rows.shape[:1] != (self.n,):
            raise ValueError(f"reports must have n = {self.n} rows, not shape {rows.shape}")
        source, keys = bit_generator(rng), np.empty(self.n, np.uint64)
        while True:
            _samplers.fill_words(source, keys)
            order = np.argsort(keys)
            sorted_keys = keys[order]
            if not (sorted_keys[1:] == sorted_keys[:-1]).any():  # equal keys would favour one order
                return rows[order]
