"""The choice of a randomiser of categories, by its error and the length of its reports: public numbers only."""

from __future__ import annotations

import math
from typing import SupportsIndex

from dpfast.core import checks
from dpfast.core.traps import warn_of
from dpfast.core.types import Exact
from dpfast.local.categories import Categorical
from dpfast.local.hashed import HashedCategorical
from dpfast.local.responses import METHODS
from dpfast.mechanisms.explanation import Comparison

_MOST_BITS = 2**31  # of a report
_LOSS = 1.02  # in root mean square, of shorter reports
_MOST_COUNTED = 2**16  # categories of the methods whose counts take n k steps


class ReportChoice(Comparison):
    """A randomiser of categories that was chosen, and why. Public: it depends on no data.

    Parameters
    ----------
    k : int
    epsilon : float
    bits : int, optional
    n : int, optional
        See `randomizer_for`; n is the number of reports of the errors in the table, 1 by default.

    Attributes
    ----------
    method : str
        "hashed", or the method of `Categorical`.
    mechanism : Categorical or HashedCategorical
    reason : str
    """

    mechanism: Categorical | HashedCategorical

    def __init__(
        self, k: SupportsIndex, epsilon: float, *, bits: SupportsIndex | None = None, n: SupportsIndex | None = None
    ) -> None:
        k = checks.whole("k", k, least=2)
        self.bits = _MOST_BITS if bits is None else checks.whole("bits", bits, least=1)
        self.n = 1 if n is None else checks.whole("n", n, least=1)
        self.candidates: dict[str, Categorical | HashedCategorical] = {}
        self._excluded: dict[str, str] = {}
        for method in (*METHODS, "hashed"):
            if method in ("subset", "oue", "olh") and k > _MOST_COUNTED:
                self._excluded[method] = "counting takes n k steps, too many for more than 2**16 categories"
                continue
            try:
                made = HashedCategorical(k, epsilon) if method == "hashed" else Categorical(k, epsilon, method)
            except ValueError as error:
                if method == "hashed":  # parameters that no method takes
                    raise
                self._excluded[method] = str(error)
            else:
                self.candidates[method] = made
        short = [method for method in self.candidates if self._bits(method) <= self.bits]
        if not short:
            least = min(map(self._bits, self.candidates))
            raise ValueError(f"bits must be at least {least} for these k and epsilon, not {self.bits}")
        limit = min(map(self._error, short)) * _LOSS
        self.method = min((method for method in short if self._error(method) <= limit), key=self._bits)
        self.mechanism = self.candidates[self.method]
        among = "" if bits is None else f" of reports of at most {self.bits:,} bits"
        self.reason = f"its error is the least{among}, or within 2 % of it and its reports are shorter"

    def _bits(self, method: str) -> int:
        """Return the length of a report, as `to_bytes` stores it."""
        made = self.candidates[method]
        if method in ("subset", "oue"):
            return 8 * -(-made.k // 8)
        return 8 * made.report.itemsize

    def _error(self, method: str) -> float:
        """Return the root mean square, over categories, of the error of a frequency."""
        made = self.candidates[method]
        p, q = map(float, made.support)
        return math.sqrt((p * (1 - p) + (made.k - 1) * q * (1 - q)) / made.k / self.n) / (p - q)

    @property
    def table(self) -> list[list[str]]:
        """The rows of the table, headings first."""
        rows = [["method", "error", "bits of a report", ""]]
        for method in self.candidates:
            length = self._bits(method)
            note = "taken" if method == self.method else "too long" if length > self.bits else ""
            rows.append([method, f"{self._error(method):.3g}", f"{length:,}", note])
        return [*rows, *([method, "", "", why] for method, why in self._excluded.items())]

    @property
    def legend(self) -> str:
        """What the numbers of the table are."""
        return f"Error: root mean square, over the categories, of an unbiased frequency from n = {self.n:,} reports.\n"


def randomizer_for(
    k: SupportsIndex, epsilon: Exact, *, bits: SupportsIndex | None = None
) -> Categorical | HashedCategorical:
    """Return the local randomiser for one of k categories with the least error, by reports of at most so many bits.

    Parameters
    ----------
    k : int
        Number of categories, 2..2**64; records are the integers 0..k - 1.
    epsilon : float
        At least 2**-40; rounded down to a double.
    bits : int, optional
        The greatest length of a report, in bits, as `to_bytes` stores it. Default: any length.

    Returns
    -------
    Categorical or HashedCategorical
        That of the least mean square error of the k frequencies; of those within 2 % of the root of it, the one with
        the shortest reports, the first on a tie. Up to 2**16 categories, all methods of `Categorical` are candidates;
        beyond, those whose counts take n k steps are not. The choice depends on k, epsilon and bits only, so that
        clients and server make the same one. ``dpfast.explain(randomizer_for, k, epsilon=..., n=...)`` shows it.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, or if all reports are longer.

    Notes
    -----
    The errors are exact, up to the collisions of hashed keys (`HashedCategorical`), which only matter for frequent
    keys. Cost: about 10 ms.

    Examples
    --------
    >>> from dpfast import local
    >>> local.randomizer_for(16, 1.0).method
    'subset'
    >>> local.randomizer_for(10**6, 1.0)
    HashedCategorical(k=1000000, epsilon=1.0, cells=1048576, seed=0)
    >>> local.randomizer_for(64, 1.0, bits=8).method
    'hadamard'
    >>> import dpfast as dpf
    >>> print(dpf.explain(local.randomizer_for, 64, epsilon=1.0, n=10_000))  # doctest: +ELLIPSIS
    method    error   bits of a report
    k-rr      0.0474  8
    subset    0.0189  64                taken
    oue       0.0192  64
    olh       0.0192  64
    hadamard  0.0216  8
    hashed    0.0192  16
    Error: root mean square, over the categories, of an unbiased frequency from n = 10,000 reports.
    ...
    """
    mechanism = ReportChoice(k, checks.positive_down("epsilon", epsilon), bits=bits).mechanism
    warn_of(mechanism)
    return mechanism
