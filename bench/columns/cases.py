"""Calls of all functions that release numbers of a column: what each released, and where that should lie.

A call of a function without public bounds is judged by the range of the records, one with bounds by the width of these,
which is the range that its user states.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

import dpfast as dpf
from dpfast import local

SHOWN = 20  # synthetic records of a call
FAR = 3.0  # ranges


class Release(NamedTuple):
    """Released numbers, the exact ones or the interval that records lie in, and the range that they are judged by."""

    values: object
    low: object
    high: object
    scale: object

    @property
    def absurd(self):
        """Whether a number is further than three ranges from where it should lie, or is none."""
        values, low, high, scale = (np.asarray(part, np.float64) for part in self)
        return not np.all((values >= low - FAR * scale) & (values <= high + FAR * scale))


@dataclass(frozen=True)
class Case:
    """A call ``run(column, x, epsilon, rng)`` that returns a `Release`, or None if it does not fit the column."""

    name: str
    function: str  # its name in tests/releases.py, or that of the class
    run: Callable
    level: float = 0.5  # the smallest of min(q, 1 - q), by which the calls are sorted
    bounded: bool = False  # by public bounds
    grouped: bool = False
    private_n: bool = False  # then a warning presumes `PRESUMED` records
    quantile: float | None = None  # whose rank error counts


def near(values, exact, scale):
    return Release(values, exact, exact, scale)


def _records(values, column, scale):
    return Release(values, *column.ends, scale)


def _quantiles(column, q):
    return np.array([column.quantile(level) for level in np.atleast_1d(q)]).reshape(np.shape(q))


def _quantile(q, column, x, epsilon, rng, **options):
    return near(dpf.quantile(x, q, epsilon=epsilon, rng=rng, **options), _quantiles(column, q), column.range)


def _median(column, x, epsilon, rng):
    return near(dpf.median(x, epsilon=epsilon, rng=rng), column.quantile(0.5), column.range)


def _median_in_chunks(column, x, epsilon, rng):
    chunks = dpf.Chunks(np.array_split(x, 2))
    return near(dpf.median(chunks, epsilon=epsilon, rng=rng), column.quantile(0.5), column.range)


def _median_of_counted(column, x, epsilon, rng):
    counted = dpf.Counted(*np.unique(x, return_counts=True))
    return near(dpf.median(counted, epsilon=epsilon, rng=rng), column.quantile(0.5), column.range)


def _median_with_missing(column, x, epsilon, rng):
    if column.holes is None:
        return None
    released = dpf.median(column.holes, missing="half", epsilon=epsilon, rng=rng)
    return near(released, column.quantile(0.5), column.range)


def _median_by_group(column, x, epsilon, rng):
    if column.labels is None:
        return None
    mechanism = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.FloatGrid(), epsilon=epsilon)
    keys = sorted(set(column.labels))
    released = dpf.by_group(mechanism, x, labels=column.labels, keys=keys, rng=rng)
    return _records([released[key] for key in keys], column, column.range)


def _quantiles_of_mechanism(column, x, epsilon, rng):
    levels = (0.25, 0.5, 0.75)
    released = dpf.Quantiles(levels, grid=dpf.FloatGrid(), epsilon=epsilon)(x, rng=rng)
    return near(released, _quantiles(column, levels), column.range)


def _iqr(column, x, epsilon, rng, bounds=None):
    low, high = _quantiles(column, (0.25, 0.75))
    scale = column.range if bounds is None else column.width
    return near(dpf.iqr(x, epsilon=epsilon, bounds=bounds and column.bounds, rng=rng), high - low, scale)


def _bounds(column, x, epsilon, rng):
    return near(dpf.bounds(x, epsilon=epsilon, rng=rng), column.ends, column.range)


def _interval(statistic, column, x, epsilon, rng):
    """The value and the ends; an end of all floats says that nothing is known."""
    options, scale = ({}, column.range) if statistic == "median" else ({"bounds": column.bounds}, column.width)
    found = dpf.interval(statistic, x, epsilon=epsilon, rng=rng, **options)
    exact = {"median": column.quantile(0.5), "mean": column.mean}[statistic]
    ends = [end for end in (found.low, found.high) if abs(end) < 2.0**63]
    return near([found.value, *ends], exact, scale)


def _interval_with_missing(column, x, epsilon, rng):
    return None if column.holes is None else _interval("median", column, column.holes, epsilon, rng)


# The statistics that are sums or trimmed, with exact values and the power of the range that judges them.
MOMENTS = {
    "mean": ((), lambda column: column.mean, lambda scale, n: scale),
    "sum": ((), lambda column: column.mean * column.n, lambda scale, n: scale * n),
    "variance": ((), lambda column: column.variance, lambda scale, n: FAR * scale**2),
    "std": ((), lambda column: column.variance**0.5, lambda scale, n: scale),
    "trimmed_mean": ((0.1,), lambda column: column.quantile(0.5), lambda scale, n: scale),
    "winsorized_mean": ((0.1,), lambda column: column.quantile(0.5), lambda scale, n: scale),
}


def _moment(name, bounds, column, x, epsilon, rng, **options):
    arguments, exact, scaled = MOMENTS[name]
    scale = column.range if bounds == "private" else column.width
    options["bounds"] = bounds if bounds == "private" else column.bounds
    released = getattr(dpf, name)(x, *arguments, epsilon=epsilon, rng=rng, **options)
    return near(released, exact(column), scaled(scale, column.n))


def _moment_in_wide_bounds(name, column, x, epsilon, rng):
    """With bounds a thousand times too wide, as for `method="private-bounds"`."""
    _, exact, scaled = MOMENTS[name]
    lower, upper = column.bounds
    bounds = (lower - 500 * column.width, upper + 500 * column.width)
    released = getattr(dpf, name)(x, method="private-bounds", bounds=bounds, epsilon=epsilon, rng=rng)
    return near(released, exact(column), scaled(column.range, column.n))


def _mean_with_missing(column, x, epsilon, rng):
    if column.holes is None:
        return None
    released = dpf.mean(column.holes, bounds="private", epsilon=epsilon, rng=rng)
    return _records(released, column, column.range)


def _huber(column, x, epsilon, rng):
    k = 10.0 ** np.floor(np.log10(column.range))
    released = dpf.huber(x, k, bounds="private", epsilon=epsilon, rng=rng)
    return _records(released, column, column.range)


def _m_estimate(column, x, epsilon, rng):
    psi = dpf.psi.Huber(column.width / 10)
    released = dpf.m_estimate(x, psi, bounds=column.bounds, epsilon=epsilon, rng=rng)
    return _records(released, column, column.width)


def _robust_mean(column, x, epsilon, rng):
    released = dpf.robust_mean(x[:, None], bounds=column.bounds, epsilon=epsilon, rng=rng)
    return near(released, column.quantile(0.5), column.width)


def _theil_sen(column, x, epsilon, rng):
    """The line at the quartiles and the median of the other column."""
    if column.partner is None or np.ptp(column.partner) == 0:
        return None
    fit = dpf.theil_sen(column.partner, x, epsilon=epsilon, rng=rng)
    places = np.quantile(column.partner, [0.25, 0.5, 0.75])
    return _records(fit.predict(places[:, None]), column, column.range)


def _histogram(column, x, epsilon, rng):
    released = dpf.histogram(x, bounds=column.bounds, epsilon=epsilon, rng=rng)
    return _records([*released.quantile([0.1, 0.5, 0.9]), *released.sample(SHOWN, rng=rng)], column, column.width)


def _density(module, column, x, epsilon, rng):
    released = module.density(x, bounds=column.bounds, epsilon=epsilon, rng=rng)
    return _records([*released.quantile([0.1, 0.5, 0.9]), *released.sample(SHOWN, rng=rng)], column, column.width)


def _synthesize(column, x, epsilon, rng):
    return _records(dpf.synthesize(x, SHOWN, epsilon=epsilon, rng=rng), column, column.range)


def _table(column, x):
    """The column without bounds, beside that of the groups if there is one."""
    if column.labels is None:
        return {"x": x}, {"x": dpf.Bins()}
    return {"x": x, "group": column.labels}, {"x": dpf.Bins(), "group": sorted(set(column.labels))}


def _drawn(values, column):
    """Records of a column without bounds: NaN is a missing one, of which noise alone makes a few."""
    return _records(values[~np.isnan(values)], column, column.range)


def _synthesize_table(column, x, epsilon, rng):
    table, columns = _table(column, x)
    drawn = dpf.synthesize(table, SHOWN, columns=columns, epsilon=epsilon, rng=rng)
    return _drawn(drawn["x"], column)


def _marginals(column, x, epsilon, rng):
    table, columns = _table(column, x)
    released = dpf.marginals(table, columns, epsilon=epsilon, rng=rng)
    return _drawn(released.sample(SHOWN, rng=rng)["x"], column)


def _seed(rng):
    return int(rng.random_raw() % 2**31)


def _quantile_transformer(column, x, epsilon, rng):
    from dpfast.sklearn import PrivateQuantileTransformer

    made = PrivateQuantileTransformer(bounds=column.bounds, epsilon=epsilon, n_quantiles=3, random_state=_seed(rng))
    return _records(made.fit(x[:, None]).quantiles_, column, column.width)


def _robust_scaler(column, x, epsilon, rng):
    """The center, and the scale unless it is 1, as of equal records."""
    from dpfast.sklearn import PrivateRobustScaler

    made = PrivateRobustScaler(epsilon=epsilon, random_state=_seed(rng)).fit(x[:, None])
    (low, high), exact = _quantiles(column, (0.25, 0.75)), column.quantile(0.5)
    shown = [made.scale_[0] - (high - low)] if made.scale_[0] != 1 else []
    return near([made.center_[0] - exact, *shown], 0.0, column.range)


def _local(name, column, x, epsilon, rng, *, arguments=()):
    released = getattr(local, name)(x, *arguments, bounds=column.bounds, epsilon=epsilon, rng=rng)
    return _records(released, column, column.width)


def _moments():
    for name in MOMENTS:
        yield Case(f"{name}, private bounds", f"dpf.{name}", partial(_moment, name, "private"))
    for name in MOMENTS:
        yield Case(f"{name}, bounds", f"dpf.{name}", partial(_moment, name, "public"), bounded=True)
    for name in ("mean", "sum", "variance", "std"):
        yield Case(f"{name}, wide bounds", f"dpf.{name}", partial(_moment_in_wide_bounds, name))


CASES = {
    case.name: case
    for case in [
        Case("median", "dpf.median", _median, quantile=0.5),
        Case("quantile .1", "dpf.quantile", partial(_quantile, 0.1), level=0.1, quantile=0.1),
        Case("quantile .9", "dpf.quantile", partial(_quantile, 0.9), level=0.1, quantile=0.9),
        Case("quantiles .1 .5 .9", "dpf.quantile", partial(_quantile, (0.1, 0.5, 0.9)), level=0.1),
        Case("median, Chunks", "dpf.median", _median_in_chunks, quantile=0.5),
        Case("median, Counted", "dpf.median", _median_of_counted, quantile=0.5),
        Case("median, missing", "dpf.median", _median_with_missing),
        Case(
            "median, add-remove",
            "dpf.quantile",
            partial(_quantile, 0.5, neighbors="add-remove"),
            private_n=True,
            quantile=0.5,
        ),
        Case(
            "quantiles .1 .5 .9, add-remove",
            "dpf.quantile",
            partial(_quantile, (0.1, 0.5, 0.9), neighbors="add-remove"),
            private_n=True,
            level=0.1,
        ),
        Case("median by group", "dpf.by_group", _median_by_group, grouped=True),
        Case("Quantiles", "dpf.Quantiles", _quantiles_of_mechanism, level=0.25),
        Case("iqr", "dpf.iqr", _iqr, level=0.25),
        Case("iqr, bounds", "dpf.iqr", partial(_iqr, bounds=True), level=0.25, bounded=True),
        Case("bounds", "dpf.bounds", _bounds),
        Case("interval of the median", "dpf.interval", partial(_interval, "median")),
        Case("interval of the median, missing", "dpf.interval", _interval_with_missing),
        Case("interval of the mean, bounds", "dpf.interval", partial(_interval, "mean"), bounded=True),
        *_moments(),
        Case("mean, private bounds, missing", "dpf.mean", _mean_with_missing),
        Case(
            "mean, private bounds, add-remove",
            "dpf.mean",
            partial(_moment, "mean", "private", neighbors="add-remove"),
            private_n=True,
        ),
        Case("huber, private bounds", "dpf.huber", _huber),
        Case("m_estimate, bounds", "dpf.m_estimate", _m_estimate, bounded=True),
        Case("robust_mean, bounds", "dpf.robust_mean", _robust_mean, bounded=True),
        Case("theil_sen", "dpf.theil_sen", _theil_sen),
        Case("histogram, bounds", "dpf.histogram", _histogram, bounded=True),
        Case("density, bounds", "dpf.density", partial(_density, dpf), bounded=True),
        Case("synthesize", "dpf.synthesize", _synthesize),
        Case("synthesize, Bins()", "dpf.synthesize", _synthesize_table),
        Case("marginals, Bins()", "dpf.marginals", _marginals),
        Case("PrivateRobustScaler", "dpfast.sklearn.PrivateRobustScaler", _robust_scaler, level=0.25),
        Case(
            "PrivateQuantileTransformer, bounds",
            "dpfast.sklearn.PrivateQuantileTransformer",
            _quantile_transformer,
            bounded=True,
        ),
        Case("local.mean, bounds", "local.mean", partial(_local, "mean"), bounded=True),
        Case("local.median, bounds", "local.median", partial(_local, "median"), bounded=True),
        Case("local.median_naive, bounds", "local.median_naive", partial(_local, "median_naive"), bounded=True),
        Case(
            "local.quantile .1, bounds",
            "local.quantile",
            partial(_local, "quantile", arguments=(0.1,)),
            level=0.1,
            bounded=True,
        ),
        Case("local.density, bounds", "local.density", partial(_density, local), bounded=True),
    ]
}

# Functions that release, but no numbers of a column.
OTHERS = {
    "dpf.count": "a number of records, which has no range",
    "dpf.covariance": "moments of rows in a ball, whose radius is public",
    "dpf.glm": "coefficients",
    "dpf.linear_regression": "coefficients",
    "dpf.mle": "parameters of a family, inside their bounds",
    "dpf.contribution_limit": "a number of records of a unit, within public bounds",
    "dpf.partitions": "keys",
    "dpf.select": "one of public candidates",
    "dpf.top_k": "keys",
    "robust.reduce": "one of public candidates",
    "robust.robust_mean": "the same function as dpf.robust_mean",
    "local.glm": "coefficients",
    "local.sparse_mean": "rows in a ball, whose radius is public",
}
