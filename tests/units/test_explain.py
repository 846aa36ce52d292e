"""The text of ``explain=``: before data are read, from public numbers, at no cost."""

import math
import re
from functools import partial

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import local
from dpfast._kernels._calls import Parameters
from dpfast.mechanisms.intervals import interval_for
from dpfast.mechanisms.methods import mechanism_for
from tests.cases import every
from tests.untouchable import Untouchable

MOMENTS = {dpf.statistics.Mean(): np.mean, dpf.statistics.Sum(): np.sum, dpf.statistics.Variance(): np.var}
MEAN = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=dpf.Grid(0, 1), epsilon=1.0)


class Sized(Untouchable):
    """Records of which only the number may be read."""

    def __len__(self):
        return 1000


EXPLAINED = {
    "mean": (
        lambda x, **o: dpf.mean(x, bounds=(0, 100), epsilon=0.5, missing=50, **o),
        ["count as 50.", "about 0.2 for n = 1,000"],
    ),
    "median": (
        lambda x, **o: dpf.median(x, epsilon=0.5, **o),
        ["are left out", "about 4 ranks (0.4 % of n)", "is 500"],
    ),
    "quantile": (
        lambda x, **o: dpf.quantile(x, [0.1, 0.9], bounds=(0, 1), epsilon=1.0, **o),
        ["are left out", "ranks"],
    ),
    "iqr": (lambda x, **o: dpf.iqr(x, epsilon=1.0, **o), ["0.25 to 0.75"]),
    "trimmed_mean": (lambda x, **o: dpf.trimmed_mean(x, 0.1, bounds=(0, 100), epsilon=1.0, **o), ["spread evenly"]),
    "winsorized_mean": (lambda x, **o: dpf.winsorized_mean(x, 0.1, bounds=(0, 100), epsilon=1.0, **o), ["Winsor"]),
    "huber": (lambda x, **o: dpf.huber(x, 3.0, bounds=(0, 100), epsilon=1.0, **o), ["Huber"]),
    "sum": (
        lambda x, **o: dpf.sum(x, bounds=(0, 100), epsilon=0.5, neighbors="add-remove", missing="drop", **o),
        ["are left out", "about 200."],
    ),
    "count": (lambda x, **o: dpf.count(x, epsilon=0.5, missing="drop", **o), ["are not counted", "about 1.92."]),
    "count all": (lambda x, **o: dpf.count(x, epsilon=0.5, **o), ["are counted"]),
    "variance": (
        lambda x, **o: dpf.variance(x, bounds=(0, 1), epsilon=1.0, **o),
        ["about 0.001 (0.00174 of the standard deviation)"],
    ),
    "std": (lambda x, **o: dpf.std(x, bounds=(0, 1), epsilon=1.0, missing="half", **o), ["as 1 at odd ones"]),
    "mean, private bounds": (
        lambda x, **o: dpf.mean(x, bounds="private", epsilon=1.0, missing=3.0, **o),
        ["count as 3, clamped to the bounds that are found", "for bounds and", "for the mean within them"],
    ),
    "bounds": (
        lambda x, **o: dpf.bounds(x, epsilon=1.0, **o),
        ["do not move the bounds", "6 % is for a median that stands for missing records and 94 % for quantiles"],
    ),
    "m_estimate": (
        lambda x, **o: dpf.m_estimate(x, dpf.psi.Huber(5.0), bounds=(0, 100), epsilon=1.0, **o),
        ["Huber's psi"],
    ),
    "interval": (lambda x, **o: dpf.interval("median", x, epsilon=0.5, **o), ["45 % is for the median", "0.5"]),
    "interval of a mean": (
        lambda x, **o: dpf.interval("mean", x, bounds=(0, 100), epsilon=0.5, **o),
        ["60 % is for the mean and 40 % for the variance", "about 0.333 for n = 1,000"],
    ),
    "interval of a count": (lambda x, **o: dpf.interval("count", x, epsilon=0.5, **o), ["are counted", "about 1.92."]),
    "theil_sen": (
        lambda x, **o: dpf.theil_sen(x, x, epsilon=1.0, standard_error=True, **o),
        ["50 % is for the slope, 33.3 % for the intercept and 16.7 % for the standard error", "in turn"],
    ),
    "theil_sen, missing": (lambda x, **o: dpf.theil_sen(x, x, epsilon=1.0, missing=2, **o), ["66.7 %", "count as 2."]),
    "by_group": (
        lambda x, **o: dpf.by_group(MEAN, x, labels=np.zeros(1000, int), **o),
        ["count as 0", "for all groups together"],
    ),
    "robust_mean": (lambda x, **o: dpf.robust_mean(x, bounds=(0, 100), epsilon=1.0, **o), ["NestedBoxes"]),
}


class Explained(Exception):
    """Ends a call after its explanation."""


@every("function", EXPLAINED)
def test_an_explanation_comes_before_the_data_are_read_and_costs_nothing(function):
    release, parts = EXPLAINED[function]
    texts = []

    def stop(text):
        texts.append(text)
        raise Explained

    with dpf.Ledger(epsilon=0.01) as ledger, pytest.raises(Explained):
        release(Sized(), explain=stop)
    assert ledger.spent == dpf.Privacy(0.0)
    [text] = texts
    for part in ["epsilon = ", *parts]:
        assert part in text, text
    assert text.count("\n") <= (7 if text.startswith("method") else 3)  # a comparison of mechanisms comes first
    with pytest.raises(TypeError, match="explain must be True, False or a function of a text, not str"):
        release(Sized(), explain="yes")


def test_explanations_of_arrays(capsys):
    X = np.random.default_rng(0).normal(50, 10, (500, 2))
    for function in (dpf.mean, dpf.covariance):
        assert function(X, radius=100.0, epsilon=1.0, explain=True).shape[0] == 2
        assert "A row with NaN or an infinity counts as the center of the ball" in capsys.readouterr().out
    dpf.mle(X[:, 0], "exponential", bounds=(0.001, 1.0), epsilon=1.0, method="blocks", explain=True)
    assert "outside the support of the family, are left out of their public block" in capsys.readouterr().out
    dpf.histogram(X, 3, bounds=(0, 100), epsilon=1.0, missing="half", explain=True)
    assert "as 100 at odd ones" in capsys.readouterr().out
    dpf.density(X[:, 0], bounds=(0, 100), epsilon=1.0, explain=True)
    assert "SeriesCoefficients" in capsys.readouterr().out
    dpf.mean(dpf.Chunks(lambda: iter([X[:, 0]])), bounds=(0, 100), epsilon=1.0, explain=True)
    assert "about 1 for n = 100, 0.1 for n = 1,000, 0.01 for n = 10,000." in capsys.readouterr().out
    dpf.mean(X[:, 0], bounds=(0, 100), epsilon=1.0, neighbors="add-remove", explain=True)
    assert capsys.readouterr().out.count("\n") == 4  # the error depends on n
    with pytest.raises(ValueError, match="x must be one-dimensional"):
        dpf.median(np.array(1.0), epsilon=1.0, explain=lambda text: None)
    dpf.mean(X[:, 0], bounds=(0, 100), epsilon=1.0)
    assert capsys.readouterr().out == ""


ROWS = np.random.default_rng(1).normal(size=(400, 7))
TABLE = {"a": ROWS[:, 0], "b": ROWS[:, 1] > 0, "c": ROWS[:, 2] > 1}
DOMAINS = {"a": dpf.Bins(), "b": dpf.Categories([0, 1]), "c": dpf.Categories([0, 1])}
LINEAR = {"label_bound": 9.0, "epsilon": 1.0}
OF_TABLES = {
    "linear_regression": (
        lambda **o: dpf.linear_regression(ROWS, ROWS[:, 0], radius=3.0, **LINEAR, **o),
        ["RegressionMoments", "counts as one at both centers", "The noise is pure"],
    ),
    "linear_regression, Gaussian": (
        lambda **o: dpf.linear_regression(ROWS, ROWS[:, 0], bounds=(-3, 3), delta=1e-6, **LINEAR, **o),
        ["Taken: gaussian, because its noise has less deviation for 7 columns", "standard deviation"],
    ),
    "linear_regression, pure": (
        lambda **o: dpf.linear_regression(ROWS[:, :2], ROWS[:, 0], radius=3.0, delta=1e-6, **LINEAR, **o),
        ["Taken: pure, because its noise has less deviation for 2 columns", "epsilon = 1 (pure"],
    ),
    "glm": (
        lambda **o: dpf.glm(ROWS, ROWS[:, 0] > 0, radius=3.0, epsilon=1.0, delta=1e-6, **o),
        ["releases from 400 records", "Of mu squared, 2 % is for the mean of the labels", "delta = 1e-06"],
    ),
    "glm, pure": (
        lambda **o: dpf.glm(ROWS[:, :2], ROWS[:, 0] > 0, bounds=(-3, 3), epsilon=8.0, **o),
        ["Of epsilon, ", "are matched to them"],
    ),
    "marginals": (
        lambda **o: dpf.marginals(TABLE, DOMAINS, epsilon=1.0, **o),
        ["pairs of a tree", "10 % is for quantiles", "15 % is for columns, 10 % for the choice of the tree", "Laplace"],
    ),
    "marginals, all": (
        lambda **o: dpf.marginals(TABLE, DOMAINS, "all", epsilon=1.0, delta=5e-4, **o),
        ["3 marginals", "Gaussian noise of standard deviation"],
    ),
    "synthesize": (
        lambda **o: dpf.synthesize(TABLE, columns=DOMAINS, epsilon=1.0, **o),
        ["pairs of a tree", "10 % is for quantiles"],
    ),
    "by_group": (
        lambda **o: dpf.by_group({"first": MEAN, "second": MEAN}, ROWS[:, 0], labels=np.zeros(400, int), **o),
        ["first: Global", "second: Global", "Each of the 2 is charged once, for all groups together"],
    ),
    "histogram": (
        lambda **o: dpf.histogram(ROWS[:, 0], 100, bounds=(-3, 3), epsilon=1.0, **o),
        ["discrete Laplace noise of standard deviation 2.8 on each count"],
    ),
}


@every("function", OF_TABLES)
def test_an_explanation_of_tables_costs_nothing_and_changes_no_release(function):
    release, parts = OF_TABLES[function]
    texts = []

    def stop(text):
        texts.append(text)
        raise Explained

    with dpf.Ledger(epsilon=0.01) as ledger, pytest.raises(Explained):
        release(explain=stop)
    assert ledger.spent == dpf.Privacy(0.0)
    [text] = texts
    for part in parts:
        assert part in text, text
    with pytest.raises(TypeError, match="explain must be True, False or a function of a text, not str"):
        release(explain="yes")
    made = [release(rng=np.random.default_rng(3), explain=told) for told in (False, texts.append)]
    assert texts[1:] == [text]
    assert repr(made[0]) == repr(made[1])


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({}, ["Taken: descent, because there are at most 7,", "MedianDescent", "against everyone but its owner"]),
        ({"density": 1.0}, ["expected error", "with confidence 0.95", "because its expected error is less"]),
        ({"method": "search"}, ["Local median by QuantileSearch"]),
        ({"steps": (1.0, 0.5)}, ["Local median by MedianDescent"]),
    ],
)
def test_an_explanation_of_local_medians(options, parts):
    texts = []

    def stop(text):
        texts.append(text)
        raise Explained

    with pytest.raises(Explained):
        local.median(Sized(), bounds=(0, 1), epsilon=1.0, explain=stop, **options)
    for part in parts:
        assert part in texts[0], texts[0]
    x = np.linspace(0, 1, 1000)
    made = [
        local.median(x, bounds=(0, 1), epsilon=1.0, rng=np.random.default_rng(1), explain=told, **options)
        for told in (False, texts.append)
    ]
    assert made[0] == made[1]
    assert texts[0] == texts[1]


def test_what_is_said_of_a_private_number_of_records():
    """Intervals say how many records they need, keys how many are released, and errors by their number."""
    x, label = np.arange(5000.0) % 100, np.arange(5000) % 7
    hidden = {"bounds": (0, 100), "neighbors": "add-remove", "missing": "drop"}
    texts = []
    interval = dpf.interval("median", x, epsilon=0.1, **hidden, explain=texts.append)
    found = re.search(
        r"a guess for n = 1,000 or less, about 101 ranks .*With fewer than about ([\d,]+) records", texts[0]
    )
    least = int(found[1].replace(",", ""))
    assert interval.high - interval.low < 50
    few = [dpf.interval("median", x[: least // 4], epsilon=0.1, **hidden, rng=PCG64(seed)) for seed in range(9)]
    assert sum((each.low, each.high) == (0, 100) for each in few) >= 7
    enough = [dpf.interval("median", x[: 2 * least], epsilon=0.1, **hidden, rng=PCG64(seed)) for seed in range(9)]
    assert sum((each.low, each.high) == (0, 100) for each in enough) <= 2
    for release, error in (partial(dpf.interval, "mean"), "a guess for n = 100, about "), (dpf.mean, "about 7"):
        release(x, epsilon=0.1, **hidden, explain=texts.append)
        assert re.search(f"{error}.* for n = 1,000, .* for n = 10,000; for records spread evenly", texts[-1])
    dpf.mean(x, bounds="private", neighbors="add-remove", epsilon=9, explain=texts.append)
    assert "Expected error: it depends on the records, and on their private number." in texts[-1]
    keys = dpf.PartitionSelection(0.1, 1e-6)
    dpf.interval(
        "median", x, epsilon=0.1, **hidden, labels=label, keys="private", partitions=keys, explain=texts.append
    )
    assert f"A key is released if its noisy count is at least {keys.threshold:,}" in texts[-1]
    assert "ends of the interval are often the bounds" in texts[-1]


def _interval(statistic, grid, epsilon, neighbors):
    return interval_for(statistic, grid, epsilon, 0.95, neighbors)


def _number(statistic, grid, epsilon, neighbors):
    return mechanism_for(
        statistic, None, Parameters(None, grid, epsilon, 0.0, "global-sensitivity", neighbors=neighbors)
    )


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_foreseen_errors_are_those_of_releases(epsilon, neighbors):
    """Of 300 simulated releases from records spread evenly, on average, within their own error and 10 %."""
    rng, n = np.random.default_rng(5), 1000
    x = 37.123 + (911.77 - 37.123) * (rng.permutation(n) + 0.5) / n  # the median is no round number
    whole, grid = 1000 * (rng.permutation(n) + 0.5) / n, dpf.Grid(0, 1000, step=2.0**-14)
    ranked = np.sort(x)
    cases = [(make, statistic, f) for make in (_interval, _number) for statistic, f in MOMENTS.items()]
    for make, statistic, exact in [*cases, (_interval, dpf.statistics.Median(), None)]:
        made = make(statistic, grid, epsilon, neighbors)
        foreseen = made.foreseen(n)
        releases = [made(whole if exact else x, rng=rng) for _ in range(300)]
        values = np.array([getattr(release, "value", release) for release in releases])
        away = np.abs(values - exact(whole)) if exact else np.abs(np.searchsorted(ranked, values) - n / 2)
        error, doubt = away.mean(), 4 * away.std() / math.sqrt(len(away))
        assert abs(error - foreseen.size) <= 0.1 * foreseen.size + doubt, (made, foreseen, error)
        for wrong in (0.5, 2.0):  # would be seen
            assert abs(error - wrong * foreseen.size) > 0.1 * foreseen.size + doubt


def test_foreseen_guesses():
    """Errors that are a quarter of the records, and releases that may be anywhere within the bounds."""
    told = dpf.InverseSensitivity(dpf.statistics.Quantile(0.9), grid=dpf.Grid(0, 1), epsilon=0.01).explanation()
    assert "Expected error, besides that of sampling: a guess for n = 10,000 or less.\n" in told
    told = dpf.Quantiles([0.4, 0.5, 0.6], grid=dpf.Grid(0, 1, step=0.5), epsilon=0.5).explanation()
    assert "about 7.6 ranks (7.6 % of n) for n = 100, 7.6 ranks (0.76 % of n) for n = 1,000" in told
    told = dpf.GlobalSensitivity(dpf.statistics.Sum(), grid=dpf.Grid(0, 1), epsilon=1e-4).explanation(1)
    assert "a guess for n = 1." in told
