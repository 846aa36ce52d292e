"""What samples show: empirical lower bounds on epsilon, and the power of tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.audit.events import best_event, log_ratio_down
from dpfast.audit.verification import OF_NUMBERS
from dpfast.core import checks
from dpfast.core.rounding import double_up
from dpfast.random import RandomSource


def distinguish(
    mechanism: Any,
    x: ArrayLike,
    y: ArrayLike,
    *,
    trials: int,
    confidence: float = 0.99,
    events: str = "listed",
    rng: RandomSource = None,
) -> float:
    """Estimate a lower bound, from samples, on the epsilon that separates two neighbouring datasets.

    Half of the releases select an event (a threshold, a value, a granularity, or a pattern of mantissa bits) and a
    direction; the other half give Clopper-Pearson bounds for it, so the selection costs no confidence.

    Parameters
    ----------
    mechanism : Mechanism or local randomiser
        Any object with ``privacy`` (the bound accounts for its delta) and ``release(x, size=, rng=)``, or
        ``randomize(X, rng=)`` of many records. A release or report may have several numbers; a 64-bit word, too long
        for a float, counts as two.
    x, y : array_like
        Neighbouring datasets; for a local randomiser two records.
    trials : int
        The number of releases on each side, at least 4.
    confidence : float
        In (0, 1): the bound is at most the true epsilon with at least this probability.
    events : str
        "listed" are events on one number of a release. "learned" adds thresholds of a score of all its numbers, a
        logistic regression on part of the releases, which finds what two numbers show only together.
    rng : numpy.random.Generator or BitGenerator, optional

    Returns
    -------
    float
        At least 0; a value above the declared epsilon refutes the declaration.

    Notes
    -----
    Cost: 2 * trials releases, and a few sorts for each number of a release. Samples cannot show that a mechanism is
    private; use `verify`.

    References
    ----------
    Ding et al. 2018 (StatDP); Bichsel, Steffen, Bogunovic and Vechev 2021 (DP-Sniper); Clopper and Pearson 1934.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 20, step=1), epsilon=1.0)
    >>> dpf.audit.distinguish(mechanism, [0, 0, 20], [0, 20, 20], trials=20_000) <= 1.0
    True
    >>> from dpfast import local
    >>> x, y, sure = [1.0, 0.0], [-1.0, 0.0], 1 - 1e-9
    >>> dpf.audit.distinguish(local.L2Ball(2, 1.0), x, y, trials=20_000, confidence=sure) <= 1.0
    True
    """
    trials = checks.whole("trials", trials, least=4)
    confidence = checks.between("confidence", confidence, 0, 1)
    learned = checks.choice("events", events, ("listed", "learned")) == "learned"
    samples = [_columns(mechanism, data, trials, rng) for data in (x, y)]
    half, delta = trials // 2, double_up(mechanism.privacy.delta)
    a, b = ([column[:half] for column in sample] for sample in samples)
    chosen = best_event(a, b, delta, confidence, learned=learned)
    second = [[column[half:] for column in sample] for sample in samples]
    hits, others = (chosen.event.count(second[side]) for side in (chosen.side, 1 - chosen.side))
    bound = log_ratio_down(hits, others, trials - half, delta, confidence)
    return max(float(bound), 0.0)


def _columns(mechanism: Any, data: ArrayLike, trials: int, rng: RandomSource) -> list[NDArray[np.float64]]:
    """Return the releases or reports, as one array for each of their numbers; 64-bit words are split into halves."""
    if hasattr(mechanism, "randomize"):
        record = np.asarray(data)
        values = np.asarray(mechanism.randomize(np.broadcast_to(record, (trials, *record.shape)), rng=rng))
    else:
        values = np.asarray(mechanism.release(data, size=trials, rng=rng))
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{type(mechanism).__name__} releases no numbers: use audit.distinguish{OF_NUMBERS}")
    rows = np.ascontiguousarray(values).reshape(trials, -1)
    if rows.dtype == np.uint64:
        rows = rows.view(np.uint32)
    return list(np.ascontiguousarray(rows.T, dtype=np.float64))


def power_bound(level: float, epsilon: float) -> float:
    """Return the largest power of any level-`level` test about one record of an epsilon-differentially private release.

    ``min(level e^epsilon, 1 - e^-epsilon (1 - level))``; randomised response attains it.

    Parameters
    ----------
    level : float
        The probability of a false positive, in [0, 1].
    epsilon : float
        At least 0.

    References
    ----------
    Wasserman and Zhou 2010, theorem 3, gives the first term; the second is its mirror image.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.audit.power_bound(0.05, 1.0), 4)
    0.1359
    """
    level = checks.fraction("level", level)
    epsilon = checks.nonnegative("epsilon", epsilon)
    likely = level * math.exp(epsilon) if epsilon < 700 else level and math.exp(min(epsilon + math.log(level), 0.0))
    return min(likely, 1 - math.exp(-epsilon) * (1 - level))
