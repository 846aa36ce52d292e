"""T46: Mechanisms for a public number of records with a private one: laws, controls, and functions that use them."""

import itertools
import math
import pickle
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast import Quantiles, Resized, audit
from dpfast.mechanisms.resized import NoisySize, ResizedPlan, sample_places
from dpfast.regression import GradientSums, ResidualScale
from dpfast.robust import RangeFreeBoxes
from dpfast.statistics import InterquartileRange, Mean, Median, Sum, TrimmedMean
from tests.cases import every
from tests.statistical import chi_square_rejects
from tests.untouchable import Untouchable

GRID, BALL = dpf.Grid(0, 4, step=1), dpf.domains.Ball(2.0)
MEDIAN = dpf.InverseSensitivity(Median(), grid=GRID, epsilon=1.0)
QUARTILES = Quantiles((0.25, 0.75), grid=GRID, epsilon=1.0)
RANGE = dpf.InverseSensitivity(InterquartileRange(), grid=GRID, epsilon=1.0)
ALL = [Resized(mechanism, epsilon=epsilon) for mechanism in (MEDIAN, QUARTILES, RANGE) for epsilon in (1.5, 4.0)]


@dataclass(frozen=True, repr=False)
class Undercharged(Resized):
    """The control: the number of records is taken to cost nothing."""

    @property
    def privacy(self):
        return dpf.Privacy(self.mechanism.epsilon, 0.0, "add-remove")


@dataclass(frozen=True, repr=False)
class ExactNumber(Resized):
    """The control: hardly any noise on the number of records."""

    @property
    def _size(self):
        return replace(super()._size, epsilon=Fraction(50))


class TestPrivacy:
    @every("mechanism, n", itertools.product(ALL, (1, 2)), ids=repr)
    def test_laws(self, mechanism, n):
        found = audit.verify(mechanism, n=n, values=4 - n, ordered=False)
        assert found.holds
        assert found.claim == mechanism.privacy

    def test_controls(self):
        assert not audit.verify(Undercharged(QUARTILES, epsilon=2.0), n=1, values=3, ordered=False).holds
        assert audit.verify(Resized(QUARTILES, epsilon=2.0), n=1, values=3, ordered=False).holds
        assert not audit.verify(ExactNumber(QUARTILES, epsilon=1.5), n=1, values=3, ordered=False).holds

    def test_the_profile(self):
        mechanism = Resized(QUARTILES, epsilon=1.25)
        assert mechanism.privacy_profile.parts == (("discrete-laplace", 0.25, 1), ("bounded-range", 1.0, 1))
        assert mechanism.privacy == dpf.Privacy(1.25, 0.0, "add-remove")
        smooth = dpf.SmoothSensitivity(Median(), grid=GRID, epsilon=1.0, delta=1e-6)
        assert Resized(smooth, epsilon=1.5).privacy == dpf.Privacy(1.5, 1e-6, "add-remove")


class TestReleases:
    @every("x", [[0.0, 1.0, 1.0, 3.0, 4.0, 4.0], [2.0], []], ids=str)
    def test_law(self, x):
        mechanism = Resized(MEDIAN, epsilon=5.0)
        law = mechanism.law(np.array(x))
        outcomes = law.outcomes()
        expected = np.exp(law.logpmf(outcomes))
        assert math.isclose(expected.sum(), 1, rel_tol=1e-9)
        for released in (
            mechanism.release(x, size=800, rng=PCG64(1)),
            np.array([mechanism(x, rng=rng) for rng in [PCG64(2)] for _ in range(800)]),
            law.value(law.sample(800, PCG64(3))),
        ):
            counts = np.bincount(released.astype(int), minlength=5)
            assert not chi_square_rejects(counts, expected)
        if len(x) == 6:
            assert chi_square_rejects(counts, np.exp(MEDIAN.law(np.array(x)).logpmf(outcomes)))

    def test_samples_are_uniform_and_rarely_filled_up(self):
        mechanism, x = Resized(MEDIAN, epsilon=1.5), 2.0 ** np.arange(5)
        plan, source = mechanism.plan(), PCG64(1)
        assert isinstance(plan, ResizedPlan)
        found = np.array([plan._sample(x, 5, 3, source).sum() for _ in range(2000)])
        counts = [np.sum(found == total) for total in map(sum, itertools.combinations(x, 3))]
        assert sum(counts) == 2000
        assert not chi_square_rejects(counts, np.full(10, 0.1))
        filled = plan._sample(x, 5, 8, source)
        assert (len(filled), int(np.isnan(filled).sum())) == (8, 3)
        beyond = [float(np.exp(mechanism._noise.log_tail(np.array([mechanism.margin + more])))[0]) for more in (1, 0)]
        assert beyond[0] <= 0.005 < beyond[1]

    def test_places_of_a_sample_are_uniform_in_uniform_order(self):
        source = PCG64(1)
        for n, size in ((4, 2), (2, 3), (1, 3), (0, 2)):
            expected = itertools.permutations([*range(n), *[-1] * max(size - n, 0)])
            orders = [order[:size] for order in expected]
            found = [tuple(sample_places(n, size, source).tolist()) for _ in range(3000)]
            assert set(found) <= set(orders)
            kinds = sorted(set(orders))
            shares = np.array([orders.count(kind) / len(orders) for kind in kinds])
            assert len(kinds) == 1 or not chi_square_rejects([found.count(kind) for kind in kinds], shares)
        size = NoisySize(Fraction(1, 2), least=3)
        assert {size.drawn(0, source) for _ in range(50)} == {3}
        assert size.of(2**70) == 10**9

    @pytest.mark.filterwarnings("ignore:n is private")
    def test_what_is_made_of_a_sample(self):
        mechanism = Resized(MEDIAN, epsilon=1.5)
        assert mechanism.size(0) == mechanism.least == 1
        assert mechanism.size(2**70) == 10**9
        assert mechanism.size(1000) == 1000 - mechanism.margin
        bounded = partial(dpf.mean, bounds="private", epsilon=1.0, neighbors="add-remove")
        assert math.isfinite(bounded([]))
        assert math.isfinite(bounded([1.0] * 30))

    @every("x", [np.arange(50), np.arange(50.0), (np.arange(50) % 5).astype(np.int8), np.arange(50) > 20], ids=str)
    def test_any_dtype_and_chunks(self, x):
        mechanism = Resized(MEDIAN, epsilon=1.5)
        for given in (x, x.tolist(), dpf.Chunks([x[:20], x[20:20], x[20:]])):
            assert mechanism(given, rng=PCG64(1)) == mechanism(x.astype(float), rng=PCG64(1))
        counted = dpf.Counted(np.array([0.0, 3.0, np.nan]), np.array([5, 80, 200]))
        assert Resized(MEDIAN, epsilon=100.0, missing="drop")(counted) in (3.0, 4.0)

    def test_an_order_that_matters_is_random(self):
        halves = dpf.InverseSensitivity(Median(), grid=GRID.with_missing("half"), epsilon=1.0)
        mechanism = Resized(halves, epsilon=1.5)
        assert not mechanism.ordered
        x = np.array([np.nan] * 30 + [2.0])
        assert mechanism(dpf.Chunks([x]), rng=PCG64(1)) == mechanism(x, rng=PCG64(1))
        source = PCG64(1)
        places = {mechanism.plan()._sample(x, 31, 31, source).tolist().index(2.0) for _ in range(200)}
        assert len(places) > 20
        with pytest.raises(ValueError, match=r"random order cannot be listed: use audit\.distinguish"):
            mechanism.law(x)
        with pytest.raises(ValueError, match="depends on the size of the sample"):
            Resized(dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=1.0), epsilon=1.5).law([1.0])

    def test_a_sum_is_of_all_records(self):
        grid, x = dpf.Grid(0, 10, step=1), np.full(2000, 6.0)
        total = dpf.GlobalSensitivity(Sum(), grid=grid, epsilon=3.0)
        found = Resized(total, epsilon=3.5).release(x, size=400, rng=PCG64(1))
        assert abs(found.mean() - 12_000) < 6

    def test_pickled(self):
        mechanism = Resized(QUARTILES, epsilon=1.5)
        assert pickle.loads(pickle.dumps(mechanism)) == mechanism
        assert mechanism.parts == QUARTILES.parts


class TestArguments:
    @every(
        "mechanism, options, error, message",
        [
            (np.median, {"epsilon": 1.0}, TypeError, "must be a dpfast.Mechanism that reads records"),
            (dpf.Selection(epsilon=1.0), {"epsilon": 2.0}, TypeError, "that reads records"),
            (MEDIAN, {"epsilon": "0.3"}, ValueError, r"epsilon=0.3 must be .* above .*, 1: .*; give epsilon=1.11$"),
            (replace(MEDIAN, epsilon="0.001"), {"epsilon": "0.001"}, ValueError, r", 0.001: .*; give epsilon=0.00149$"),
            (MEDIAN, {"epsilon": 2.0, "missing": "half"}, ValueError, "missing must be None or 'drop'"),
            (Resized(MEDIAN, epsilon=2.0), {"epsilon": 3.0}, ValueError, "must be for one record replaced"),
            (
                dpf.GlobalSensitivity(Mean(), grid=dpf.Grid(0, 1, step=2.0**-40), epsilon=1.0),
                {"epsilon": 2.0},
                ValueError,
                "use a coarser step",
            ),
        ],
        ids=str,
    )
    def test_wrong_ones(self, mechanism, options, error, message):
        with pytest.raises(error, match=message):
            Resized(mechanism, **options)

    @every(
        "mechanism",
        [
            dpf.SampleAndAggregate("exponential", bounds=(0.1, 10), epsilon=1.0, blocks=3),
            RangeFreeBoxes(step=1, width=1, epsilon=1.0, delta=0.1),
            dpf.TopK(2, ["a", "b", "c"], epsilon=1.0),
        ],
        ids=repr,
    )
    def test_what_no_sample_can_be_drawn_of(self, mechanism):
        with pytest.raises((TypeError, ValueError), match="must"):
            Resized(mechanism, epsilon=2.0)

    @every(
        "mechanism",
        [
            GradientSums("huber", [0.0] * 3, transform=np.eye(3), domain=BALL, clip=1.0, bound=1.0, epsilon=1.0),
            ResidualScale([1.0, 2.0, 3.0], 0.0, domain=BALL, labels=BALL, q=0.5, epsilon=1.0),
            dpf.TheilSen(epsilon=1.0),
            dpf.NoisyMarginals(dict.fromkeys("abcd", (0, 2)), [("a", "b")], epsilon=1.0),
            dpf.NoisyMarginals({"a": ["x", "y"]}, [("a",)], epsilon=1.0),
        ],
        ids=repr,
    )
    def test_records_that_are_not_read_as_they_are(self, mechanism):
        """Whatever the number of their columns: filled samples of codes or labels would fail, for small n only."""
        with pytest.raises(TypeError, match="must read one array of numbers or rows"):
            Resized(mechanism, epsilon=2.0)

    @every("columns", [1, 2, 7])
    def test_rows_of_any_number_of_columns(self, columns):
        box = dpf.domains.Box([GRID] * columns)
        means = Resized(dpf.NoisySums(Mean(), domain=box, epsilon=1.0, delta=1e-6), epsilon=2.0)
        assert means(np.zeros((9, columns))).shape == (columns,)

    def test_a_sample_of_a_sample_has_records(self):
        sampled = dpf.Subsampled(dpf.Subsampled(MEDIAN, 0.3), Fraction(2, 7))
        assert sampled.least_records == Resized(sampled, epsilon=2.0).least == 14
        assert [sampled.mechanism.size(sampled.size(n)) for n in (14, 13 + 1)] == [1, 1]
        assert all(0 <= Resized(sampled, epsilon=2.0)(np.zeros(n)) <= 4 for n in range(9))

    def test_labels_are_refused(self):
        moments = dpf.RegressionMoments(domain=dpf.domains.Ball(1.0), labels=dpf.domains.Ball(1.0), epsilon=1.0)
        with pytest.raises(TypeError, match="must read one array of numbers or rows"):
            Resized(moments, epsilon=2.0)((np.zeros((3, 2)), np.zeros(3)))


PAY = np.random.default_rng(0).lognormal(10.5, 0.6, 20_000)
BOUNDS = {"bounds": (0, 500_000)}
# A function, and its value of the records.
FUNCTIONS = {
    "quantiles": (lambda x, **o: dpf.quantile(x, [0.1, 0.5, 0.9], **o), lambda x: np.quantile(x, [0.1, 0.5, 0.9])),
    "iqr": (dpf.iqr, lambda x: np.subtract(*np.quantile(x, [0.75, 0.25]))),
    "iqr within bounds": (partial(dpf.iqr, **BOUNDS), lambda x: np.subtract(*np.quantile(x, [0.75, 0.25]))),
    "std": (partial(dpf.std, **BOUNDS), np.std),
    "variance": (partial(dpf.variance, **BOUNDS), np.var),
    "std within private bounds": (partial(dpf.std, bounds="private"), np.std),
    "mean within private bounds": (partial(dpf.mean, bounds="private"), np.mean),
    "sum within private bounds": (partial(dpf.sum, bounds="private"), np.sum),
    "mean within narrower bounds": (partial(dpf.mean, bounds=(0, 1e8), method="private-bounds"), np.mean),
    "smooth median": (partial(dpf.median, method="smooth-sensitivity", **BOUNDS), np.median),
    "interpolated median": (partial(dpf.median, method="interpolated", **BOUNDS), np.median),
    "trimmed mean": (lambda x, **o: dpf.trimmed_mean(x, 0.1, **BOUNDS, **o), None),
    "winsorized mean": (lambda x, **o: dpf.winsorized_mean(x, 0.1, **BOUNDS, **o), None),
    "huber": (lambda x, **o: dpf.huber(x, 20_000, **BOUNDS, **o), None),
}


class TestFunctions:
    @pytest.mark.filterwarnings("ignore:n is private")
    @every("name", FUNCTIONS)
    def test_each_takes_a_private_number_and_leaves_out_missing_records(self, name):
        function, exact = FUNCTIONS[name]
        holed = np.insert(PAY, range(0, len(PAY), 4), np.nan)
        for x, options in ((PAY, {}), (holed, {"missing": "drop"})):
            with dpf.Ledger(1, neighbors="add-remove") as ledger:
                found = function(x, epsilon=1.0, neighbors="add-remove", rng=PCG64(1), **options)
            assert (ledger.spent.epsilon, len(ledger.charges)) == (1.0, 1)
            if exact is not None:
                np.testing.assert_allclose(found, exact(PAY), rtol=0.08)
        with dpf.Ledger(0.5, neighbors="add-remove"), pytest.raises(dpf.BudgetError):
            function(Untouchable(), epsilon=1.0, neighbors="add-remove")
        if name in ("quantiles", "iqr"):  # which leave out missing records of a public number of all, too
            np.testing.assert_allclose(function(holed, epsilon=1.0, missing="drop"), exact(PAY), rtol=0.08)
            return
        with pytest.raises(ValueError, match="drop"):
            function(holed, epsilon=1.0, missing="drop")

    def test_the_choice_of_a_method_does_not_use_the_number_of_records(self):
        """A control for it: with a public number the choice may."""
        for n in (150, 20_000):
            found = []
            dpf.trimmed_mean(PAY[:n], 0.1, epsilon=1.0, neighbors="add-remove", explain=found.append, **BOUNDS)
            assert "InverseSensitivity" in found[0]
            assert str(n) not in "".join(found)

    def test_by_group_with_private_keys(self):
        selection, labels = dpf.PartitionSelection(0.5, 1e-6), np.array(["a", "b"])[np.arange(20_000) % 2]
        mechanism = Resized(dpf.InverseSensitivity(TrimmedMean(0.1), grid=dpf.Grid(0, 500_000), epsilon=0.9), epsilon=1)
        found = dpf.by_group(mechanism, PAY, labels=labels, keys="private", partitions=selection)
        assert list(found) == ["a", "b"]
        assert 35_000 < found["a"] < 45_000
        empty = dpf.by_group(mechanism, PAY, labels=labels, keys=["c"])
        assert math.isfinite(empty["c"])

    @every("statistic", ["median", "mean", "std", "variance", dpf.statistics.Quantile(0.9)], ids=str)
    def test_intervals(self, statistic):
        options = {} if statistic == "median" or not isinstance(statistic, str) else BOUNDS
        holed = np.insert(PAY, range(0, len(PAY), 4), np.nan)
        for x, more in ((PAY, {}), (holed, {"missing": "drop"})):
            with dpf.Ledger(1, neighbors="add-remove") as ledger:
                found = dpf.interval(statistic, x, epsilon=1.0, neighbors="add-remove", **options, **more)
            assert (ledger.spent.epsilon, len(ledger.charges)) == (1.0, 1)
            public = dpf.interval(statistic, PAY, epsilon=1.0, **options)
            assert found.privacy == dpf.Privacy(1.0, neighbors="add-remove")
            assert found.confidence == 0.95
            assert found.bounds == public.bounds
            assert found.low <= public.value <= found.high
            assert found.high - found.low < 2.5 * (public.high - public.low)
        empty = dpf.interval(statistic, [], epsilon=1.0, neighbors="add-remove", **options)
        assert empty.low <= empty.value <= empty.high
        selection, labels = dpf.PartitionSelection(0.5, 1e-6), np.arange(len(holed)) % 2
        keys = {"labels": labels, "keys": "private", "partitions": selection}
        groups = dpf.interval(statistic, holed, epsilon=1.0, neighbors="add-remove", missing="drop", **keys, **options)
        assert list(groups) == [0, 1]
        assert groups[1].privacy == dpf.Privacy(1.0, neighbors="add-remove")
        assert groups.privacy == dpf.Privacy(1.5, 1e-6, "add-remove")

    def test_an_interval_is_wrong_as_often_as_it_says(self):
        """Of 400 samples; the control with half of the sizes too large would be filled up, and too short."""
        rng, wrong = Generator(PCG64(4)), 0
        for _ in range(400):
            x = rng.integers(0, 1000, 400)
            found = dpf.interval("median", x, bounds=(0, 999), epsilon=2.0, neighbors="add-remove", rng=rng)
            wrong += not found.low <= 500 <= found.high
        assert wrong < 400 * 0.05 + 5 * math.sqrt(400 * 0.05 * 0.95)

    @pytest.mark.filterwarnings("ignore:n is private")
    def test_rows_covariances_and_bounds(self):
        X = np.random.default_rng(1).random((5000, 3))
        holed = X.copy()
        holed[::5, 1] = np.nan
        private = {"epsilon": 1.0, "neighbors": "add-remove"}
        for found in (
            dpf.mean(X, bounds=(0, 1), **private),
            dpf.mean(holed, bounds=[(0, 1)] * 3, missing="drop", **private),
            dpf.mean(X, radius=2.0, delta=1e-6, **private),
        ):
            np.testing.assert_allclose(found, 0.5, atol=0.03)
        matrix = dpf.covariance(X, radius=2.0, delta=1e-6, **private)
        np.testing.assert_allclose(matrix, np.eye(3) / 12, atol=0.04)
        assert dpf.mean(np.zeros((0, 3)), bounds=(0, 1), **private).shape == (3,)
        holed = np.insert(PAY, range(0, len(PAY), 4), np.nan)
        for x, more in ((PAY, {}), (holed, {"missing": "drop"}), (holed, {})):
            low, high = dpf.bounds(x, **private, **more)
            assert low <= 10_000 < 100_000 < high < 400_000

    def test_likelihood_by_sums(self):
        waits = np.random.default_rng(0).exponential(2.0, 20_000)
        holed = np.insert(waits, range(0, 20_000, 4), np.nan)
        options = {"bounds": (0.05, 5), "epsilon": 1.0, "neighbors": "add-remove"}
        for x, more in ((waits, {}), (holed, {"missing": "drop"}), (waits, {"method": "sums"})):
            assert abs(dpf.mle(x, "exponential", **options, **more) - 0.5) < 0.05
        with pytest.raises(ValueError, match="'replace-one' for blocks, not 'add-remove': use method='sums'"):
            dpf.mle(Untouchable(), "exponential", method="blocks", **options)

    def test_reproducible(self):
        options = {"epsilon": 1.0, "neighbors": "add-remove", "missing": "drop"}
        found = [dpf.quantile(PAY, [0.1, 0.9], rng=Generator(PCG64(5)), **options).tolist() for _ in range(2)]
        assert found[0] == found[1]
