"""The square wave: exact laws, the estimate against a slow twin, errors against the published one, wrong versions."""

import copy
import doctest
import importlib
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast import Grid, Privacy, audit, local
from dpfast._kernels import _square
from dpfast.core.coin import coin
from dpfast.local.square import best_half_width, spans
from tests.reference import local as words_reference
from tests.reference import shuffling
from tests.reference import square as reference
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel

SURVEYS = [
    local.SquareWave((0, 1), 1.0, cells=2),
    local.SquareWave((-2, 6), 0.5, cells=8),
    local.SquareWave((0, 1), 3.0, cells=50),
    local.SquareWave(Grid(1, 5, step=1), 2.0),
]
every = pytest.mark.parametrize("survey", SURVEYS, ids=repr)


# ---- the law ----


@pytest.mark.parametrize("epsilon", [2.0**-40, 1e-6, 0.01, 0.5, 1.0, 4.0, 20.0, 44.0])
def test_the_width_is_the_published_one(epsilon):
    with mpmath.workdps(60):
        x, growth = mpmath.mpf(epsilon), mpmath.exp(epsilon)
        exact = (x * growth - growth + 1) / (2 * growth * (growth - 1 - x))
    assert best_half_width(epsilon) == pytest.approx(float(exact), rel=1e-12)
    survey = local.SquareWave((0, 1), epsilon)
    assert abs(survey.width - 2 * 1024 * float(exact)) <= 1
    assert best_half_width(100.0) == best_half_width(44.4)


@every
def test_laws_have_two_probabilities_and_the_window_of_the_cell(survey):
    for cell, x in enumerate((survey.grid.lower, survey.grid.upper)):
        law = survey.law(x)
        assert sum(law.pmf) == 1
        start = 0 if cell == 0 else survey.cells - 1
        assert [p == max(law.pmf) for p in law.pmf] == [
            start <= symbol < start + survey.width for symbol in range(len(law.pmf))
        ]
        assert max(law.pmf) / min(law.pmf) == survey.coin.ratio
        assert Fraction(sum(p == max(law.pmf) for p in law.pmf), len(law.pmf)) == survey.share


@every
def test_decoded_reports_are_unbiased_for_the_middle_of_the_cell(survey):
    low, high = survey.density(np.zeros(1, survey.report)).edges[[0, -1]]
    values = survey.decode(np.arange(len(survey.law(0.0).pmf)).astype(survey.report))
    for x in np.linspace(survey.grid.lower, survey.grid.upper, 7):
        pmf = np.array([float(p) for p in survey.law(x).pmf])
        width = (high - low) / survey.cells
        cell = survey._starts(np.array([x]))[0]
        assert pmf @ values == pytest.approx(low + (cell + 0.5) * width, abs=1e-9)
        assert survey.variance(x) == pytest.approx(pmf @ values**2 - (pmf @ values) ** 2, rel=1e-9)
    assert survey.variance() == pytest.approx(
        max(survey.variance(np.linspace(survey.grid.lower, survey.grid.upper, 99)))
    )


@every
def test_reports_are_those_of_the_twin(survey):
    rng = np.random.default_rng(1)
    x = rng.uniform(survey.grid.lower - 1, survey.grid.upper + 1, 100)
    x[:3] = math.nan, math.inf, -math.inf
    script = [int(w) for w in rng.integers(0, 2**64, 400, dtype=np.uint64)]
    out = np.zeros(x.size, survey.report)
    survey.fill(ScriptedBits(script), x, out)
    starts = survey._starts(x).tolist()
    assert starts[:3] == [0, survey.cells - 1, 0]
    size = survey.cells + survey.width - 1
    words = words_reference.Words(script)
    assert out.tolist() == words_reference.windows(words, starts, survey.width, size, survey.coin.threshold)


@pytest.mark.parametrize(("epsilon", "wrong"), [(1.0, False), (0.9, True), (1.1, True)])
def test_reports_follow_the_law(epsilon, wrong):
    survey = local.SquareWave((0, 1), 1.0, cells=20)
    other = copy.copy(survey)
    object.__setattr__(other, "epsilon", epsilon)
    n = 400_000
    counts = survey.aggregate(survey.randomize(np.full(n, 0.3), rng=PCG64(1))).sums
    pmf = np.array([float(p) for p in survey.law(0.3).pmf])
    if wrong:
        p = float(coin(epsilon, Fraction(survey.width, len(pmf) - survey.width)).probability)
        pmf = np.where(pmf == pmf.max(), p / survey.width, (1 - p) / (len(pmf) - survey.width))
    assert chi_square_rejects(counts, pmf) == wrong


class Claimed:
    def __init__(self, rows):
        self.privacy, self.grid, self.grids = Privacy(1.0, neighbors="local"), Grid(0, len(rows) - 1, step=1.0), None
        self.rows = rows

    def law(self, x):
        row = self.rows[int(x[0])]
        return local.FiniteLaw(np.arange(len(row)), tuple(row))


def test_controls():
    """The odds of the window forgotten; and windows cut at the bounds, as without symbols beyond them."""
    cells, width = 6, 3
    size = cells + width - 1

    def rows(p):
        return [
            [p / width if s <= y < s + width else (1 - p) / (size - width) for y in range(size)] for s in range(cells)
        ]

    assert audit.verify(Claimed(rows(coin(1.0, Fraction(width, size - width)).probability)), values=cells).holds
    assert not audit.verify(Claimed(rows(coin(1.0).probability)), values=cells).holds
    p = coin(1.0, Fraction(width, cells - width)).probability
    cut = []
    for s in range(cells):
        near = [y for y in range(cells) if abs(y - s) <= width // 2]
        cut.append([p / len(near) if y in near else (1 - p) / (cells - len(near)) for y in range(cells)])
    assert not audit.verify(Claimed(cut), values=cells).holds


# ---- the estimate ----


@pytest.mark.parametrize(("cells", "width", "span"), [(2, 1, 1), (5, 3, 2), (40, 17, 1), (40, 17, 4), (64, 64, 8)])
def test_the_kernel_is_its_twin(cells, width, span):
    rng = np.random.default_rng(cells)
    counts = rng.integers(0, 50, cells + width - 1).astype(float)
    counts[0] = 0
    inside, outside = 3 / (3 * width + cells - 1), 1 / (3 * width + cells - 1)
    p = reference.matrix(cells, width, inside, outside)
    for most in (0, 1, 30):
        shares = np.full(cells, 1 / cells)
        found = _square.maximise(counts, width, inside, outside, span, 0.0, most, shares)
        exact, expected = reference.maximised(counts, p, span, 0.0, np.full(cells, 1 / cells), most)
        assert found == pytest.approx(exact, rel=1e-12)
        np.testing.assert_allclose(shares, expected, rtol=1e-8, atol=1e-12)
    assert shares.sum() == pytest.approx(1)


def test_without_smoothing_the_likelihood_is_the_greatest():
    """Frequencies that fit the counts exactly, if there are some."""
    survey = local.SquareWave(Grid(1, 4, step=1), 2.0)
    p = reference.matrix(4, survey.width, *sorted(set(survey.law(1.0).pmf), reverse=True))
    truth = np.array([0.5, 0.1, 0.1, 0.3])
    counts = np.rint(p @ truth * 10**9)
    shares = np.full(4, 0.25)
    law = survey.law(1.0).pmf
    _square.maximise(counts, survey.width, float(max(law)), float(min(law)), 1, 1e-6, 10**5, shares)
    np.testing.assert_allclose(shares, truth, atol=1e-4)


def test_spans():
    assert spans(1024) == [64, 32, 16, 8, 4, 2]
    assert spans(32) == [2]
    assert spans(31) == spans(2) == [1]


DENSITIES = {
    "beta": lambda rng, n: rng.beta(5, 2, n),
    "pay": lambda rng, n: np.minimum(rng.lognormal(10.5, 0.6, n) / 3e5, 1.0),
    "exponential": lambda rng, n: np.minimum(rng.exponential(0.1, n), 1.0),
    "two modes": lambda rng, n: np.clip(np.where(rng.random(n) < 0.5, 0.25, 0.7) + rng.normal(0, 0.07, n), 0, 1),
}


@pytest.mark.parametrize("epsilon", [pytest.param(1.0, marks=pytest.mark.slow), 3.0])
def test_errors_are_at_most_those_of_the_published_mechanism(epsilon):
    """The geometric mean over densities of the mean Wasserstein error; relative to half of the reports it rises."""
    ratios, fewer = [], []
    for make in DENSITIES.values():
        errors = []
        for seed in range(6):
            rng = Generator(PCG64(seed))
            x = make(rng, 10_000)
            ours, half = (local.density(y, bounds=(0, 1), epsilon=epsilon, rng=rng) for y in (x, x[::4]))
            published = reference.published(x, epsilon, 256, rng)
            errors.append([reference.wasserstein(d.weights / 2.0**40, x) for d in (ours, half)])
            errors[-1].append(reference.wasserstein(published, x))
        own, half_error, theirs = np.mean(errors, axis=0)
        ratios.append(own / theirs)
        fewer.append(half_error / theirs)
    assert np.exp(np.mean(np.log(ratios))) < 1.05
    assert np.exp(np.mean(np.log(fewer))) > 1.2


@pytest.mark.parametrize("name", ["beta", "pay", "exponential"])
def test_the_default_density_is_nearer_than_a_series(name):
    errors = []
    for seed in range(3):
        rng = Generator(PCG64(seed))
        x, at = DENSITIES[name](rng, 20_000), np.linspace(0, 1, 1001)
        found = [local.density(x, bounds=(0, 1), epsilon=1.0, rng=rng, method=m) for m in ("auto", "series")]
        exact = np.searchsorted(np.sort(x), at, side="right") / x.size
        errors.append([np.abs(density.cdf(at) - exact).mean() for density in found])
    wave, series = np.mean(errors, axis=0)
    assert wave < series
    if name == "pay":
        assert wave < 0.4 * series


# ---- densities ----


def test_a_density_of_whole_numbers():
    ratings = Generator(PCG64(1)).choice(5, 50_000, p=[0.1, 0.1, 0.2, 0.4, 0.2]) + 1
    density = local.density(ratings, bounds=(1, 5), epsilon=2.0, rng=PCG64(2))
    assert len(density.cells) == 5
    np.testing.assert_allclose(density.pdf([1, 2, 3, 4, 5]), [0.1, 0.1, 0.2, 0.4, 0.2], atol=0.05)
    assert density.quantile(0.5) == 4.0
    assert set(density.sample(100)) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    assert density.edges.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]


@pytest.mark.filterwarnings("ignore::dpfast.PrivacyWarning")
def test_without_privacy():
    density = local.density(np.linspace(0, 1, 1001), bounds=(0, 1), epsilon=1e6, rng=PCG64(2))
    assert density.quantile([0.1, 0.5, 0.9]) == pytest.approx([0.1, 0.5, 0.9], abs=0.02)


def test_the_result():
    x = Generator(PCG64(1)).normal(50, 5, 100_000)
    density = local.density(x, bounds=(0, 100), epsilon=1.0, rng=PCG64(2))
    assert (density.n, density.privacy) == (100_000, Privacy(1.0, neighbors="local"))
    assert repr(density).startswith("<SquareWaveDensity of 1024 cells from 0.0 to 100.0, n = 100000: epsilon = 1")
    assert density.quantile(0.5) == pytest.approx(50, abs=1)
    assert density.cdf([-1.0, 0.0, 100.0]).tolist() == [0.0, 0.0, 1.0]
    again = pickle.loads(pickle.dumps(density))
    assert np.array_equal(again.weights, density.weights)
    columns = density._as_columns()
    assert columns["share"].sum() == pytest.approx(1)
    assert columns["density"] @ (columns["upper"] - columns["lower"]) == pytest.approx(1)
    with pytest.raises(ValueError, match="read-only"):
        density.weights[0] = 1
    survey = local.SquareWave((0, 100), 1.0)
    parts = [survey.aggregate(survey.randomize(half, rng=PCG64(3))) for half in (x[:50_000], x[50_000:])]
    assert survey.density(parts[0] + parts[1]).n == 100_000
    assert survey.estimate(parts[0] + parts[1]) == pytest.approx(50, abs=4 * survey.error(100_000))


@pytest.mark.host
def test_plot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    _, ax = pyplot.subplots()
    assert local.density(np.ones(99), bounds=(0, 4), epsilon=1.0).plot(ax, unit="km") is ax
    assert ax.get_xlabel() == "value (km)"
    pyplot.close()


def test_parameters():
    make = local.SquareWave
    with pytest.raises(ValueError, match="cells must be at most 4096"):
        make((0, 1), 1.0, cells=4097)
    with pytest.raises(ValueError, match="cells must be"):
        make((0, 1), 1.0, cells=1)
    with pytest.raises(ValueError, match="bins must be between"):
        make(Grid(0, 3, step=1), 1.0, cells=5)
    with pytest.raises(ValueError, match="epsilon"):
        make((0, 1), 2.0**-41)
    with pytest.raises(ValueError, match="at least 2 cells"):
        make((0.0, 5e-324), 1.0)
    with pytest.raises(ValueError, match="lower"):
        make((1, 0), 1.0)
    for bounds, epsilon in [((-1e300, 1e300), 1.0), ((0, 1e150), 2.0**-40)]:  # of a decoded report, or its square
        with pytest.raises(ValueError, match="beyond the range of float64"):
            make(bounds, epsilon)
    for missing in ("half", "drop"):
        with pytest.raises(ValueError, match="missing"):
            make(Grid(0, 1, missing=missing), 1.0)
    with pytest.warns(dpf.UtilityWarning, match="do not divide evenly into 3 bins"):
        make(Grid(1, 5, step=1), 1.0, cells=3)
    assert make((0, 1), 1.0) == make((0.0, 1.0), 1.0, cells=1024)
    assert make(Grid(0, 100, step=1), 1.0).cells == 101
    with pytest.raises(ValueError, match="at least one report"):
        make((0, 1), 1.0).density(np.zeros(0, np.uint16))


@pytest.mark.parametrize("n", [2, 4])
def test_shuffled_batches_are_below_the_bound(n):

    survey = local.SquareWave((0, 1), 2.0, cells=6)
    matrix = [list(survey.law(x).pmf) for x in (0.0, 1.0)]
    batch = local.Shuffled(survey, n=n, delta=1e-6)
    for threshold in (Fraction(1), Fraction(3)):
        worst = shuffling.worst_delta(matrix, n, threshold)
        assert 0 < worst <= Fraction(batch.delta_up(Fraction(math.log(threshold) * (1 - 2.0**-50))))


def test_ledgers_charge_reports():
    with dpf.Ledger(1.0, neighbors="local") as ledger:
        local.density(np.ones(9), bounds=(0, 4), epsilon=0.75)
    assert ledger.spent.epsilon == 0.75


def test_docstring_examples():
    tests = doctest.testmod(importlib.import_module("dpfast.local.square"))
    assert tests.attempted > 5
    assert tests.failed == 0
