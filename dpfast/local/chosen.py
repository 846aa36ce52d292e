"""The choice of a randomiser of categories, by its error and the length of its reports: public numbers only."""

from __future__ import annotations

import math
from functools import partial
from typing import SupportsIndex

from dpfast.choosing import Choice, Known, built, near_least
from dpfast.core import checks
from dpfast.core.traps import warn_of
from dpfast.core.types import Exact
from dpfast.local.categories import Categorical
from dpfast.local.hashed import HashedCategorical
from dpfast.local.responses import METHODS

_MOST_BITS = 2**31  # of a report
_MOST_COUNTED = 2**16  # categories of the methods whose counts take n k steps


def report_choice(
    k: SupportsIndex, *, epsilon: Exact, bits: SupportsIndex | None = None, n: SupportsIndex | None = None
) -> Choice:
    """Return the choice of `randomizer_for`; n is the number of reports of the errors in the table, 1 by default."""
    k, epsilon = checks.whole("k", k, least=2), checks.positive_down("epsilon", epsilon)
    most = _MOST_BITS if bits is None else checks.whole("bits", bits, least=1)
    reports = 1 if n is None else checks.whole("n", n, least=1)

    def build(method: str) -> Categorical | HashedCategorical:
        if method in ("subset", "oue", "olh") and k > _MOST_COUNTED:
            raise ValueError("counting takes n k steps, too many for more than 2**16 categories")
        return HashedCategorical(k, epsilon) if method == "hashed" else Categorical(k, epsilon, method)

    names = *METHODS, "hashed"
    candidates, limits = built({name: partial(build, name) for name in names}, required="hashed")
    lengths = {method: _bits(method, made) for method, made in candidates.items()}
    errors = {method: _error(made, reports) for method, made in candidates.items()}
    short = {method: error for method, error in errors.items() if lengths[method] <= most}
    if not short:
        raise ValueError(f"bits must be at least {min(lengths.values())} for these k and epsilon, not {most}")
    limits |= {method: "too long" for method in candidates if method not in short}
    among = "" if bits is None else f" of reports of at most {most:,} bits"
    legend = f"Error: root mean square, over the categories, of an unbiased frequency from n = {reports:,} reports."
    rows = {method: (errors[method], lengths[method]) for method in candidates}
    return Choice(
        candidates,
        min(near_least(short), key=lengths.__getitem__),
        f"its error is the least{among}, or within 2 % of it and its reports are shorter",
        limits=limits,
        known=lambda: Known(("error", "bits of a report"), rows, legend),
    )


def _bits(method: str, made: Categorical | HashedCategorical) -> int:
    """Return the length of a report, as `to_bytes` stores it."""
    return 8 * -(-made.k // 8) if method in ("subset", "oue") else 8 * made.report.itemsize


def _error(made: Categorical | HashedCategorical, n: int) -> float:
    """Return the root mean square, over categories, of the error of a frequency."""
    p, q = map(float, made.support)
    return math.sqrt((p * (1 - p) + (made.k - 1) * q * (1 - q)) / made.k / n) / (p - q)


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
    mechanism: Categorical | HashedCategorical = report_choice(k, epsilon=epsilon, bits=bits).mechanism
    warn_of(mechanism)
    return mechanism
