"""The choice of ``method="auto"``: the rule, its table, and that it never depends on data."""

import itertools
import math
import warnings
from types import MappingProxyType

import numpy as np
import pytest
from numpy.random import PCG64
from scipy.stats import norm

import dpfast as dpf
from dpfast import Grid, InverseSensitivity, Ledger, SmoothSensitivity
from dpfast._kernels._calls import Parameters
from dpfast.aggregate.choice import choice_between
from dpfast.choosing import built
from dpfast.mechanisms import expectations
from dpfast.mechanisms.candidates import ExpectedErrors
from dpfast.mechanisms.methods import choice_among, mechanism_for
from dpfast.mechanisms.prediction import Expected, Predicted
from dpfast.mechanisms.references import Typical, references
from dpfast.statistics import Mean, Median, Quantile, TrimmedMean, WinsorizedMean
from tests.cases import every

GRID = Grid(0, 1000)


class Known(Predicted):
    """A mechanism with these expected errors, which are relative to the width of a reference."""

    def __init__(self, noise, sampling=1.0, fails=None):
        self.noise, self.sampling, self.fails = noise, sampling, fails

    def expected_error(self, n, distribution):
        if self.fails is not None:
            raise self.fails
        width = float(np.diff(distribution.points(np.array([0.25, 0.75])))[0])
        noise = self.noise(width) if callable(self.noise) else self.noise
        return Expected(width * noise, width * self.sampling)


def chosen(*mechanisms, n=1000, **options):
    candidates = {f"method {i}": mechanism for i, mechanism in enumerate(mechanisms)}
    return ExpectedErrors(candidates, n, **{"grid": GRID, **options}).choice({})


class TestRule:
    @every(
        "mechanisms, taken",
        [
            ([Known(1.0)], 0),
            ([Known(1.0), Known(0.5)], 1),
            ([Known(1.0), Known(0.96)], 0),
            ([Known(1.0), Known(2.0)], 0),
            ([Known(1.0), Known(0.5), Known(0.3)], 2),
            ([Known(1.0), Known(0.5), Known(0.3, fails=TypeError("unknown"))], 1),
            ([Known(1.0, fails=ValueError("unknown")), Known(0.5)], 0),
            ([Known(1.0), Known(math.nan)], 0),
            ([Known(0.1, sampling=10.0), Known(0.01, sampling=10.5)], 0),
            ([Known(0.1, sampling=10.0), Known(0.01, sampling=10.1)], 1),
            ([Known(1e-3), Known(1e-4)], 0),  # both are negligible
            # Better in most references, but 3 % worse, or 100 times better, in one.
            ([Known(1.0), Known(lambda width: 1.06 if width > 300 else 0.01)], 0),
            ([Known(1.0), Known(lambda width: 1.01 if width > 300 else 0.01)], 1),
            ([Known(lambda width: 100 if width < 1 else 1.0), Known(lambda width: 1.0)], 1),
        ],
    )
    def test_without_an_assumption(self, mechanisms, taken):
        choice = chosen(*mechanisms)
        assert choice.method == f"method {taken}"
        assert choice.mechanism is mechanisms[taken]
        assert choice.default == "method 0"

    @every(
        "mechanisms, taken",
        [
            ([Known(1.0), Known(0.5)], 1),
            ([Known(1.0), Known(2.0)], 0),
            ([Known(1.0, fails=ValueError("unknown")), Known(0.5)], 1),
            ([Known(0.01), Known(0.001)], 1),
            ([Known(1.0), Known(0.97)], 0),
            ([Known(1.0, sampling=3.0), Known(0.9, sampling=2.0), Known(0.1, sampling=3.0)], 1),
        ],
    )
    def test_with_an_assumption(self, mechanisms, taken):
        assert chosen(*mechanisms, distribution=norm()).method == f"method {taken}"

    def test_without_public_numbers(self):
        better = Known(1.0), Known(0.5)
        assert chosen(*better, n=None).method == "method 0"
        assert chosen(*better, grid=None).method == "method 0"

    def test_a_candidate_that_cannot_be_built(self):
        def fails():
            raise ValueError("noise of more than 2**56 steps")

        candidates, limits = built({"first": lambda: Known(1.0), "second": fails}, required="first")
        choice = ExpectedErrors(candidates, 100, GRID).choice(limits)
        assert choice.method == "first"
        assert "second" in str(choice)
        assert "2**56" in str(choice)

    def test_references_are_within_the_bounds_and_of_several_steps(self):
        for grid in (GRID, Grid(-5, 1e6), Grid(0, 120, step=1), Grid(0, 1, step=1)):
            found = references(grid)
            assert {r.shape for r in found} == {"normal", "lognormal", "Student-t(2)"}
            for reference in found:
                middle = reference.assumed.points(np.array([0.25, 0.5, 0.75]))
                assert grid.lower <= middle[0] < middle[2] <= grid.upper
                assert reference.scale == 1 or middle[2] - middle[0] >= 0.8 * grid.step
        assert len(references(GRID)) == 12
        assert len(references(Grid(0, 120, step=1))) == 6


class TestTable:
    def test_text(self):
        choice = dpf.explain("trimmed_mean", 0.1, n=2048, bounds=(0, 1000), epsilon=1.0)
        lines = str(choice).splitlines()
        assert lines[0].split("  ")[0] == "method"
        assert lines[1].startswith("inverse-sensitivity")
        assert lines[2].startswith("smooth-sensitivity")
        assert lines[2].endswith("taken")
        assert lines[3].startswith("Expected error: E|release - population value| in data units")
        assert lines[4].startswith("Taken: smooth-sensitivity, because it has 0.64 times the noise")
        assert repr(choice) == str(choice)
        assert choice._repr_html_().startswith("<p>SmoothSensitivity release of the")
        assert "Taken: smooth-sensitivity, because" in choice._repr_html_()

    def test_typical_values(self):
        public = {"n": 1000, "bounds": (0, 1e6), "epsilon": 1.0}
        choice = dpf.explain("mean", **public, distribution=(100, 200))
        assert choice.table[0] == ["method", "normal", "Student-t(2)", "lognormal", "greatest ratio", ""]
        assert choice.method == "private-bounds"
        assert "nine tenths of them between the typical values" in str(choice)
        for row in choice.table[1:]:
            assert row[1] == f"{choice.candidates[row[0]].expected_error(1000, norm(150, 50 / 1.6448536)).total:.3g}"
        assert dpf.explain("mean", **public, distribution=(1e5, 9e5)).method == "global-sensitivity"
        assert dpf.explain("mean", **public).candidates.keys() == {"global-sensitivity"}

    def test_three_shapes_have_nine_tenths_between_typical_values(self):
        found = Typical(-3.0, 7.0).references_within(None)
        assert [reference.shape for reference in found] == ["lognormal", "Student-t(2)", "normal"]
        for reference in found:
            assert np.allclose(reference.assumed.points(np.array([0.05, 0.95])), [-3, 7], rtol=1e-12)

    @every(
        "values, error, message",
        [
            ((2, 1), ValueError, "must be in order"),
            ((1, 1), ValueError, "must be finite and different"),
            ((0, math.inf), ValueError, "must be finite and different"),
            ((0, 1, 2), TypeError, "must be a pair"),
            (("a", 1), TypeError, "must be a pair"),
            (5, TypeError, "must have a quantile function"),
        ],
    )
    def test_bad_assumptions(self, values, error, message):
        with pytest.raises(error, match=message):
            dpf.mean([np.nan], bounds=(0, 9), epsilon=1.0, distribution=values)
        with pytest.raises(error, match=message):
            dpf.explain("mean", n=9, bounds=(0, 9), epsilon=1.0, distribution=values)

    def test_the_errors_are_those_of_the_mechanisms(self):
        choice = dpf.explain("median", n=1024, bounds=(0, 1000), epsilon=1.0, distribution=norm(500, 100))
        assert choice.table[0] == ["method", "expected error", "noise", "sampling", ""]
        for row in choice.table[1:]:
            expected = choice.candidates[row[0]].expected_error(1024, norm(500, 100))
            assert row[1:4] == [f"{x:.3g}" for x in (expected.total, expected.noise, expected.sampling)]

    def test_explain_prints_it_before_the_release(self):
        texts = []
        dpf.winsorized_mean(np.zeros(200), 0.1, bounds=(0, 1000), epsilon=1.0, explain=texts.append)
        assert texts[0].startswith("method ")
        assert "InverseSensitivity release of the 0.1-Winsorized mean" in texts[0]
        dpf.trimmed_mean(
            np.zeros(9), 0.1, bounds=(0, 1), epsilon=1.0, method="smooth-sensitivity", explain=texts.append
        )
        assert texts[1].startswith("SmoothSensitivity release")

    def test_functions(self):
        public = {"n": 100, "bounds": (0, 10), "epsilon": 1.0}
        for function, arguments in [("quantile", (0.3,)), ("huber", (2.0,)), ("mean", ()), ("variance", ())]:
            choice = dpf.explain(function, *arguments, **public)
            assert choice.method == choice.default
            assert "no other mechanism is compared" in choice.reason
            assert dpf.explain(getattr(dpf, function), *arguments, **public).mechanism == choice.mechanism
        assert dpf.explain("quantile", [0.1, 0.9], n=100, epsilon=1.0).mechanism.qs == (0.1, 0.9)
        assert dpf.explain("iqr", n=1000, epsilon=1.0).mechanism.qs == (0.25, 0.75)
        private = dpf.explain("median", n=100, bounds=(0, 10), epsilon=1.0, neighbors="add-remove")
        assert private.reason == "no other mechanism is compared for these parameters"
        assert private.mechanism.hides_n
        assert dpf.explain("mean", n=100, bounds=(0, 9), epsilon=1.0, dtype=int).mechanism.grid.step == 1
        with pytest.raises(ValueError, match="function must be one of 'huber', "):
            dpf.explain("histogram", n=100, epsilon=1.0)
        with pytest.raises(TypeError, match="give either bounds="):
            dpf.explain("mean", n=100, epsilon=1.0)


# ---- the choice and data ----


def datasets(n):
    """Data sets of n records that look as different as they can."""
    rng = np.random.default_rng(n)
    yield np.zeros(n)
    yield np.full(n, np.nan)
    yield np.full(n, np.inf)
    yield np.where(np.arange(n) % 2, -np.inf, np.nan)
    yield rng.permutation(np.linspace(0, 1000, n))
    yield rng.standard_cauchy(n) * 1e6
    yield np.full(n, 1e308)
    yield rng.integers(0, 2, n) * 1000.0


PUBLIC = [
    (TrimmedMean(0.1), 200, 1.0, 0.0, None),
    (TrimmedMean(0.1), 4000, 1.0, 0.0, None),
    (TrimmedMean(0.25), 500, 4.0, 1e-6, None),
    (WinsorizedMean(0.1), 3000, 4.0, 0.0, None),
    (Quantile(0.9), 100, 4.0, 0.0, norm(400, 10)),
    (Median(), 300, 0.5, 0.0, None),
    (Mean(), 300, 4.0, 0.0, norm(400, 10)),
    (Mean(), 1000, 1.0, 0.0, (399.0, 401.0)),
    (Quantile(0.9), 100, 2.0, 0.0, [399.0, 401.0]),
]


@pytest.mark.parametrize(("statistic", "n", "epsilon", "delta", "distribution"), PUBLIC)
def test_the_choice_is_the_same_for_all_data(statistic, n, epsilon, delta, distribution):
    """T30: every data set, as an array and in chunks, has the same mechanism."""
    public = Parameters((0, 1000), None, epsilon, delta, distribution=distribution)
    made = {mechanism_for(statistic, x, public) for x in datasets(n)}
    made |= {
        mechanism_for(statistic, dpf.Chunks(np.array_split(x, 3)), public) for x in itertools.islice(datasets(n), 2)
    }
    assert len(made) == 1


@pytest.mark.parametrize("assumed", [(1, 1e100), (-1e100, 1), (1e17, 1e17 + 64), (0, 5e-324), norm(1e307, 1)])
@pytest.mark.parametrize("name", ["mean", "sum", "median", "iqr"])
def test_assumptions_far_from_the_bounds(name, assumed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpf.errors.UtilityWarning)
        assert math.isfinite(getattr(dpf, name)([1.0, 2.0] * 50, epsilon=1.0, bounds=(0, 10), distribution=assumed))


def test_typical_values_beyond_the_limit():
    with pytest.raises(ValueError, match=r"within 2\*\*400"):
        dpf.mean([1.0, 2.0], epsilon=1.0, bounds=(0, 10), distribution=(1, 1e300))


def test_an_assumption_fitted_to_the_records_is_found():
    """A control of T30: the choice then depends on the data."""
    made = {
        mechanism_for(Mean(), x, Parameters((0, 1000), None, 4.0, distribution=norm(np.mean(x), 1 + np.std(x))))
        for x in (np.full(300, 400.0), np.linspace(0, 1000, 300))
    }
    assert len(made) == 2


def test_the_choice_is_the_same_for_all_tiny_data():
    """All data sets of one or two records on four values, and of three records on three."""
    values = (0.0, 3.0, np.nan, 1.0)
    for statistic, n in itertools.product((TrimmedMean(0.4), WinsorizedMean(0.25)), range(1, 4)):
        made = {
            mechanism_for(statistic, np.array(x), Parameters((0, 3), None, 4.0, 0.0, "auto"))
            for x in itertools.product(values[: 4 if n < 3 else 3], repeat=n)
        }
        assert len(made) == 1


def test_a_release_is_that_of_the_mechanism_taken():
    x = np.random.default_rng(0).normal(500, 100, 4000)
    for function, arguments in (("trimmed_mean", (0.1,)), ("winsorized_mean", (0.1,)), ("mean", ()), ("median", ())):
        for n, epsilon in ((100, 1.0), (4000, 4.0)):
            choice = dpf.explain(function, *arguments, n=n, bounds=(0, 1000), epsilon=epsilon)
            release = getattr(dpf, function)(x[:n], *arguments, bounds=(0, 1000), epsilon=epsilon, rng=PCG64(3))
            assert release == choice.mechanism(x[:n], rng=PCG64(3))
            [grid], options = choice.mechanism.points, {"epsilon": epsilon, "rng": PCG64(3)}
            assert release == getattr(dpf, function)(x[:n], *arguments, grid=grid, **options)
            assert release == getattr(dpf, function)(
                dpf.Chunks([x[:50], x[50:n]]), *arguments, bounds=(0, 1000), epsilon=epsilon, rng=PCG64(3)
            )


def test_a_small_epsilon_keeps_the_default_without_a_comparison():
    names = [dpf.explain("trimmed_mean", 0.1, n=2**40, bounds=(0, 9), epsilon=e).candidates for e in (0.0099, 1e-6)]
    assert [list(candidates) for candidates in names] == [["inverse-sensitivity"]] * 2


def test_a_private_number_of_records_keeps_the_default():
    kept = [
        mechanism_for(
            Median(), np.zeros(n), Parameters((0, 9), None, 4.0, distribution=norm(5, 1), neighbors="add-remove")
        )
        for n in (0, 1, 100, 10_000)
    ]
    assert len(set(kept)) == 1
    assert isinstance(kept[0], InverseSensitivity)


class TestLedger:
    PUBLIC = MappingProxyType({"bounds": (0, 1000), "epsilon": 4.0})

    def test_the_charge_is_that_of_the_mechanism_taken(self):
        x = np.zeros(4000)
        with Ledger(100.0, delta=1e-3) as ledger:
            dpf.trimmed_mean(x, 0.1, delta=1e-4, **self.PUBLIC)
        [charge] = ledger.charges
        assert charge.label.startswith("<SmoothSensitivity release of the 0.1-trimmed mean")
        assert (
            charge.profile.privacy
            == dpf.explain("trimmed_mean", 0.1, n=4000, delta=1e-4, **self.PUBLIC).mechanism.privacy
        )

    def test_a_ledger_by_rho_keeps_what_costs_less(self):
        x = np.zeros(4000)
        assert isinstance(dpf.explain("trimmed_mean", 0.1, n=4000, **self.PUBLIC).mechanism, SmoothSensitivity)
        with Ledger(rho=100.0) as ledger:
            dpf.trimmed_mean(x, 0.1, **self.PUBLIC)
            assert "costs more" in str(dpf.explain("trimmed_mean", 0.1, n=4000, **self.PUBLIC))
        assert ledger.charges[0].label.startswith("<InverseSensitivity release of the 0.1-trimmed mean")


# ---- the errors that are compared ----


@every(
    "mechanism",
    [
        dpf.InverseSensitivity(Median(), grid=GRID, epsilon=1.0),
        dpf.InverseSensitivity(TrimmedMean(0.1), grid=GRID, epsilon=1.0),
        dpf.InverseSensitivity(WinsorizedMean(0.1), grid=GRID, epsilon=1.0),
        dpf.InverseSensitivity(dpf.statistics.InterquartileRange(), grid=GRID, epsilon=1.0),
        dpf.InverseSensitivity(dpf.statistics.Huber(50.0), grid=GRID, epsilon=1.0),
        dpf.SmoothSensitivity(Quantile(0.9), grid=GRID, epsilon=1.0, delta=1e-6),
        dpf.SmoothSensitivity(TrimmedMean(0.1), grid=GRID, epsilon=1.0),
        dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=1.0),
        dpf.GlobalSensitivity(dpf.statistics.Sum(), grid=GRID, epsilon=1.0),
        dpf.GlobalSensitivity(dpf.statistics.Variance(), grid=GRID, epsilon=1.0),
    ],
    ids=lambda mechanism: f"{type(mechanism).__name__} {mechanism.statistic}",
)
def test_expected_errors_against_simulation(mechanism):
    n, draws, assumed = 600, 300 if "Huber" in str(mechanism.statistic) else 800, norm(400, 100)
    rng = np.random.default_rng(7)
    expected = mechanism.expected_error(n, assumed)
    population = {"sum": n * 400, "variance": 1e4, "interquartile range": 134.898, "0.9-quantile": 528.155}
    target = population.get(str(mechanism.statistic), 400)
    releases = [mechanism(rng.normal(400, 100, n), rng=PCG64(i)) for i in range(draws)]
    assert np.mean(np.abs(np.array(releases) - target)) == pytest.approx(expected.total, rel=0.1)


def test_an_expected_error_is_computed_once(monkeypatch):
    """The choice asks for three errors of each of three mechanisms, for an epsilon that calls share; its text and the
    warnings for those of its own.
    """
    counted, imagined = [], expectations.summaries
    monkeypatch.setattr(expectations, "summaries", lambda *of: counted.append(of) or imagined(*of))
    public = {"bounds": (0, 100), "epsilon": 0.987, "distribution": (30, 70)}
    dpf.median(np.linspace(20, 80, 4321), **public, explain=lambda text: None)
    assert 3 < len(counted) <= 21


def test_the_errors_that_are_shown_are_those_of_epsilon_itself():
    """Not of the next larger epsilon and the next smaller number of records of few bits, which a choice compares."""
    public = {"n": 1150, "bounds": (0, 100), "epsilon": 0.0626}
    choice = dpf.explain("median", **public, distribution=norm(50, 10))
    row = next(row for row in choice.table if row[0] == choice.method)
    assert row[1] == f"{choice.mechanism.expected_error(1150, norm(50, 10)).total:.3g}"
    assert "of n = 1,150 records" in str(choice)
    blocks = dpf.SampleAndAggregate("exponential", bounds=(0.2, 5), epsilon=0.0626)
    shown = choice_between(blocks, 1150, None)
    middle = {row[0]: row[2] for row in shown.table[1:]}
    assert middle["blocks"] == f"{blocks.deviations(1150, {'rate': 1.0})[0]:.3g}"


def test_epsilons_that_are_near_share_a_choice(monkeypatch):
    """The errors are computed once; the mechanism that is taken has its own epsilon."""
    counted, imagined = [], expectations.even_summary
    monkeypatch.setattr(expectations, "even_summary", lambda *of: counted.append(of) or imagined(*of))
    grid, names = dpf.Grid(0, 77), ("inverse-sensitivity", "smooth-sensitivity")
    near = [choice_among(names, dpf.statistics.TrimmedMean(0.1), grid, e, 0.0, 1000) for e in (1.01, 1.02, 1.0625)]
    assert len(counted) == 2 * len(references(grid))
    assert [choice.mechanism.epsilon for choice in near] == [1.01, 1.02, 1.0625]
    assert len({choice.method for choice in near}) == 1
