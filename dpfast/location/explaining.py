"""The choice of ``method="auto"`` as a table, without data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike

from dpfast._kernels._calls import Parameters
from dpfast.choosing import Choice
from dpfast.core import checks
from dpfast.core.grid import Points
from dpfast.core.types import Exact
from dpfast.mechanisms.methods import choice_for
from dpfast.statistics.named import STATISTICS

__all__ = ["explain"]


# Functions with a choice of their own: its module, which is imported on demand, and its function. A list that these
# modules extend would depend on which of them a program has imported.
_CHOICES = {
    "synthesize": ("dpfast.densities.choice", "synthesis_choice"),
    "randomizer_for": ("dpfast.local.chosen", "report_choice"),
}


def explain(
    function: str | Callable[..., Any],
    *parameters: Any,
    n: SupportsIndex | None = None,
    epsilon: Exact,
    bounds: tuple[float, float] | str | None = None,
    grid: Points | None = None,
    delta: Exact = 0.0,
    measure: str | Sequence[int] = "auto",
    definition: str = "record",
    distribution: Any = None,
    neighbors: str = "replace-one",
    missing: float | str | None = None,
    dtype: DTypeLike = float,
    bits: SupportsIndex | None = None,
) -> Choice:
    """Show which mechanism ``method="auto"`` of a function of numbers takes, and why; no data, no cost in privacy.

    Parameters
    ----------
    function : str or function
        "huber", "iqr", "mean", "median", "quantile", "std", "sum", "trimmed_mean", "variance" or "winsorized_mean", or
        that function; "synthesize" for one column; `dpfast.local.randomizer_for`. Others explain themselves with
        ``explain=True``.
    *parameters
        The positional parameters of the function after x, such as the ``trim`` of a trimmed mean.
    n : int, optional
        The number of records; a public guess for ``neighbors="add-remove"``, where the choice does not use it.
    epsilon, bounds, grid, delta, measure, definition, distribution, neighbors, missing
        As in the function.
    dtype : dtype
        That of the records: integers and booleans have a grid of step 1 within `bounds`.
    bits : int, optional
        Of `dpfast.local.randomizer_for`, which has only n and epsilon besides.

    Returns
    -------
    Choice
        It prints as a table: the candidates, their expected errors E|release - population value| in data units, the
        one that is taken, and the reason. `.mechanism` is the mechanism, for `dpfast.by_group`, streams and audits;
        `.method` its name; `.table` the rows.

    Raises
    ------
    TypeError, ValueError
        As the function, and for an unknown one.

    Notes
    -----
    The rule is that of https://dpfast.readthedocs.io/en/latest/guides/choosing.html. Cost: at most about 50 ms.

    Examples
    --------
    >>> import dpfast as dpf
    >>> choice = dpf.explain("trimmed_mean", 0.1, n=2048, bounds=(0, 1000), epsilon=1.0)
    >>> print(choice)  # doctest: +ELLIPSIS
    method               width / 4  width / 40  width / 400  width / 4000  greatest ratio
    inverse-sensitivity  4.61       0.461       0.0461       0.00461       1
    smooth-sensitivity   4.57       0.457       0.0457       0.00457       0.991           taken
    ...
    Taken: smooth-sensitivity, because it has 0.64 times the noise of inverse-sensitivity ...
    >>> dpf.explain(dpf.winsorized_mean, 0.1, n=200, bounds=(0, 1000), epsilon=1.0).method
    'inverse-sensitivity'

    Wide bounds, and typical values of pay:

    >>> dpf.explain("mean", n=1000, bounds=(0, 1e8), epsilon=1.0, distribution=(15_000, 100_000)).method
    'private-bounds'
    """
    name = function if isinstance(function, str) else getattr(function, "__name__", "")
    if name not in STATISTICS and name not in _CHOICES:
        names = ", ".join(map(repr, (*STATISTICS, *_CHOICES)))
        raise ValueError(f"function must be one of {names}, not {function!r}")
    others = {"bounds": bounds, "grid": grid, "delta": delta or None, "distribution": distribution, "missing": missing}
    if name in _CHOICES:
        module, choice = _CHOICES[name]
        given = {key: value for key, value in (*others.items(), ("bits", bits)) if value is not None}
        made: Choice = getattr(import_module(module), choice)(*parameters, n=n, epsilon=epsilon, **given)
        return made
    if bits is not None:
        raise TypeError(f"bits is for randomisers of local privacy, not for {name}")
    count = None if n is None or neighbors == "add-remove" else checks.whole("n", n, least=1)
    statistic = STATISTICS[name](*parameters, **({} if definition == "record" else {"definition": definition}))
    if name == "iqr" and bounds is None and grid is None:
        statistic = (0.25, 0.75)
    public = Parameters(bounds, grid, epsilon, delta, "auto", missing, distribution, neighbors, measure)
    return choice_for(statistic, np.empty(0, dtype), count, public)
