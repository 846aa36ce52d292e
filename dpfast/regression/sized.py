"""Regressions of a private number of records: of a random sample of a noisy number of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np

from dpfast.choosing import Explain, tell
from dpfast.core import checks
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.rounding import down
from dpfast.core.spending import spending
from dpfast.core.types import Exact
from dpfast.mechanisms.mechanism import UNKNOWN_ERROR
from dpfast.mechanisms.resized import LEAST_EPSILON, MOST, OF_NUMBER, NoisySize, sample_places
from dpfast.random import RandomSource, bit_generator
from dpfast.regression.fit import Fit
from dpfast.streaming import Chunks, Labelled

_DROPS = "missing='drop' makes the number of records private: it needs neighbors='add-remove'"


@dataclass(frozen=True)
class PrivateNumber:
    """A private number of records, as a regression releases it before the fit, for a tenth of epsilon.

    As `dpfast.Resized`, for regressions that choose or make several mechanisms by the number of records:
    https://dpfast.readthedocs.io/en/latest/proofs/resized.html.

    Parameters
    ----------
    privacy : Privacy
        Of the number and the fit together.
    drops : bool
        Whether records with a missing entry are left out before they are counted.
    """

    privacy: Privacy
    drops: bool

    @classmethod
    def of(cls, neighbors: str, missing: Any, epsilon: Exact, delta: Exact) -> Self | None:
        """Check the parameters of a call; return None for a public number of records."""
        checks.choice("neighbors", neighbors, ("replace-one", "add-remove"))
        if missing not in (None, "drop"):
            raise ValueError(f"missing must be None or 'drop' for a regression, not {missing!r}")
        if neighbors == "replace-one":
            if missing is not None:
                raise ValueError(_DROPS)
            return None
        made = cls(
            Privacy(checks.positive_down("epsilon", epsilon), checks.delta_down(delta), neighbors), bool(missing)
        )
        if made._for_number < LEAST_EPSILON:
            raise ValueError(f"epsilon={epsilon!r} must be at least {LEAST_EPSILON / float(OF_NUMBER):.3g}")
        return made

    @property
    def rest(self) -> float:
        """The epsilon of the fit."""
        return down(Fraction(self.privacy.epsilon) * (1 - OF_NUMBER))

    @property
    def _for_number(self) -> Fraction:
        return Fraction(self.privacy.epsilon) - Fraction(self.rest)

    def fit(
        self,
        records: Any,
        check: Callable[[int], object],
        fitted: Callable[[Labelled, int], Fit],
        *,
        label: str,
        rng: RandomSource,
        explain: Explain,
    ) -> Fit:
        """Release the number of records, and a fit to a sample of as many.

        Parameters
        ----------
        records : Labelled, or Chunks of such records, which are then in memory together
        check : function of a number of records
            Raises a ValueError if there is no fit to so many.
        fitted : function of records and their number
            Returns a fit, for one replaced record, of `rest` and the delta of `privacy`.
        label : str
            What the release is.
        """
        check(MOST)
        size = NoisySize(self._for_number, least=_least(check))
        tell(self._explanation(label), explain)
        with spending(PrivacyProfile(self.privacy), label=f"<{label}: {self.privacy}>"):
            source = bit_generator(rng)
            pieces = map(Labelled.of, records) if isinstance(records, Chunks) else [records]
            known = _joined([self._read(piece) for piece in pieces])
            number = size.drawn(len(known), source)
            places = sample_places(len(known), number, source)
            filled = _joined([known, Labelled(np.full((1, known.columns), np.nan), np.full(1, np.nan))])
            return replace(fitted(filled[places], number), privacy=self.privacy, n=None)

    def _read(self, records: Labelled) -> Labelled:
        """Return records as floats, without those that are left out."""
        known = Labelled(records.rows.astype(np.float64), records.labels.astype(np.float64))
        return known[~(np.isnan(known.rows).any(axis=1) | np.isnan(known.labels))] if self.drops else known

    def _explanation(self, label: str) -> str:
        records = "Records with a missing entry are left out. " if self.drops else ""
        return (
            f"{label}: {self.privacy}. Of epsilon, {float(100 * OF_NUMBER):g} % is for the number of records, and the "
            f"rest for a fit to a random sample of a noisy number of them. {records}{UNKNOWN_ERROR}."
        )


def _joined(parts: Sequence[Labelled]) -> Labelled:
    return Labelled(np.concatenate([part.rows for part in parts]), np.concatenate([part.labels for part in parts]))


def _least(check: Callable[[int], object]) -> int:
    """Return a number of records for which there is a fit; a power of two. Public."""
    n = 1
    while n < MOST:
        try:
            check(n)
        except ValueError:
            n *= 2
        else:
            break
    return n
