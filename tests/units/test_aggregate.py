"""Sample and aggregate: privacy on tiny cases, blocks by position, laws, bad input."""

import itertools
import math
import pickle
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import Grid, SampleAndAggregate, audit, families
from dpfast._kernels import _blocks
from dpfast.aggregate.laws import Windowed, WinsorizedMeanLaw
from dpfast.aggregate.noise import SumsNoise
from dpfast.families import AdditiveFamily, BlockFamily, Ranges, fitted
from dpfast.families.regression import Regression
from dpfast.families.user import family_of
from dpfast.laws import ClampedNoise
from tests.cases import every
from tests.families import THETAS, box_of, draws
from tests.statistical import chi_square_rejects


class Claiming:
    """The laws of another mechanism under a separate claim."""

    def __init__(self, mechanism, epsilon):
        self.law, self.privacy = mechanism.law, dpf.Privacy(epsilon)


def block_median(x):
    return float(np.median(x))


def bernoulli(epsilon=1.0, **options):
    return SampleAndAggregate("bernoulli", bounds=(0, 1), step=0.25, epsilon=epsilon, **{"blocks": 2, **options})


class TestPrivacy:
    """Laws of neighbours compared on every small dataset, by `audit.verify`."""

    BITS: ClassVar = {"n": 4, "values": 2, "grids": Grid(0, 1, step=1)}

    @every("epsilon", [0.1, 1.0, 4.0])
    @every("blocks", [1, 2, 4])
    def test_mean(self, epsilon, blocks):
        certificate = audit.verify(bernoulli(epsilon, blocks=blocks), **self.BITS)
        assert certificate.holds
        if blocks == 4:  # one record moves one estimate from end to end: the claim is tight
            assert certificate.epsilon == pytest.approx(epsilon, rel=1e-9)

    def test_missing_and_impossible_records(self):
        """A record outside the support is one more value it can have: here 0, left out by the geometric family."""
        mechanism = SampleAndAggregate("geometric", bounds=(0.25, 1), step=0.25, epsilon=1.0, blocks=2)
        assert audit.verify(mechanism, n=4, values=3, grids=Grid(0, 2, step=1)).holds

    def test_winsorized(self, monkeypatch):
        """The mixture over all pairs of quartiles; windows narrower than the grid occur."""
        monkeypatch.setattr("dpfast.aggregate.blocks._widening", lambda k: 0.5)
        mechanism = bernoulli(1.0, blocks=4, combine="winsorized")
        monkeypatch.setattr(SampleAndAggregate, "_winsorizes", lambda self, n, k: (True,))
        assert isinstance(mechanism.law([0, 1, 0, 1]), WinsorizedMeanLaw)
        assert audit.verify(mechanism, **self.BITS).holds
        assert not audit.verify(Claiming(bernoulli(2.0, blocks=4, combine="winsorized"), 1.0), **self.BITS).holds

    GEOMETRIC: ClassVar = {"bounds": {"rate": (0.25, 4)}, "step": 0.5, "blocks": 2, "combine": "geometric"}

    @pytest.mark.parametrize("margin", ["auto", 0, 2.0])
    def test_geometric(self, margin):
        """Logarithms of rates, clamped beyond the bounds; the release lies within them."""
        mechanism = SampleAndAggregate("exponential", epsilon=1.0, margin=margin, **self.GEOMETRIC)
        options = {"n": 4, "values": 3, "grids": Grid(0, 512, step=256)}
        certificate = audit.verify(mechanism, **options)
        assert certificate.holds
        assert certificate.epsilon == pytest.approx(1.0, rel=1e-9)  # zeros against 512: from end to end
        law = mechanism.law([0, 0, 512, 512])
        assert (np.diff(law.value(law.outcomes())) >= 0).all()
        assert [law.value(k) for k in law.support] == [0.25, 4.0]
        double = SampleAndAggregate("exponential", epsilon=2.0, margin=margin, **self.GEOMETRIC)
        assert not audit.verify(Claiming(double, 1.0), **options).holds

    def test_margins(self):
        """Means are clamped two deviations beyond their bounds: of 8 records of assumed deviation 1, in blocks of 2."""
        options = {"bounds": {"mean": (0, 3)}, "step": 0.5, "epsilon": 1.0, "blocks": 4}
        mechanism = SampleAndAggregate("normal", margin=2, **options)
        [grid] = mechanism.grids(8)
        assert (grid.lower, grid.upper) == (-1.5, 4.5)  # 2 / sqrt(2), outward to halves
        law = mechanism.law([-9, -9, -1, -1, 0, 1, 9, 9])
        assert law.noise.scale == 12
        assert law.center == 0 + 1 + 4 + 12
        assert law.value(law.center) == 0.625
        assert (law.value(0), law.value(law.support[1])) == (0.0, 3.0)
        assert audit.verify(mechanism, n=4, values=3, grids=Grid(-4, 4, step=4)).holds
        [grid] = SampleAndAggregate("normal", margin=0, **options).grids(8)
        assert (grid.lower, grid.upper) == (0.0, 3.0)
        [grid] = SampleAndAggregate("bernoulli", bounds=(0.25, 1), epsilon=1.0, blocks=2, margin=9).grids(8)
        assert (grid.lower, grid.upper) == (0.0, 1.0)  # no estimate is beyond
        certain = SampleAndAggregate(families.LogisticRegression(columns=1), bounds={"x0": (-32, 32)}, epsilon=1.0)
        [grid] = certain.grids(10**5)
        assert (grid.lower, grid.upper) == (-48.0, 48.0)  # at the ends a label has little information: a quarter

    def test_a_callable(self):
        """Whatever it does: this one fails, or returns junk, on some blocks."""
        table = {(0.0, 0.0): math.nan, (0.0, 1.0): 1e300, (1.0, 0.0): -1.0}
        mechanism = SampleAndAggregate(
            lambda block: table.get(tuple(block), "junk"), bounds=(0, 1), step=0.25, epsilon=1.0, blocks=2,
            bias_correction=False,
        )  # fmt: skip
        assert audit.verify(mechanism, **self.BITS).holds

    def test_half_the_noise_is_rejected(self):
        """Lambda off by 2."""
        certificate = audit.verify(Claiming(bernoulli(2.0, blocks=4), 1.0), **self.BITS)
        assert not certificate.holds
        assert certificate.epsilon == pytest.approx(2.0)

    def test_a_partition_by_value_is_rejected(self):
        """Sorted records: one record moves others to other blocks, and more than one estimate."""

        class Sorted(Claiming):
            def __init__(self, mechanism):
                super().__init__(mechanism, 1.0)
                self.law = lambda x: mechanism.law(np.sort(x))

        mechanism = SampleAndAggregate(
            lambda block: float(block[0] == block[1]),
            bounds=(0, 1),
            step=1,
            epsilon=1.0,
            blocks=3,
            bias_correction=False,
        )
        options = {"n": 6, "values": 3, "grids": Grid(0, 2, step=1)}
        assert audit.verify(mechanism, **options).holds
        assert not audit.verify(Sorted(mechanism), **options).holds

    def test_shuffled(self):
        certificate = audit.verify(bernoulli(blocks=2, shuffle=3), **self.BITS)
        assert certificate.holds


class TestT22:
    """T22: changing one record changes the estimate of one block, the one of its place; failures stay alone."""

    RECORDS = (math.nan, math.inf, -math.inf, 0.0, -1.0, 1e300, 5e-324, 0.5, 3.0, 2.0**60)

    @every("name, theta", THETAS, ids=lambda value: value if isinstance(value, str) else "")
    def test_one_estimate(self, name, theta):
        n, k = 777, 31
        x = np.asarray(draws(name, theta, n, np.random.default_rng(0)), dtype=float)
        x[::50] = np.nan
        rng = np.random.default_rng(1)
        for corrected in (False, True):
            before = self.estimates(name, theta, x, k, corrected)
            for record in self.RECORDS:
                i = int(rng.integers(n))
                changed = x.copy()
                changed[i] = record
                after = self.estimates(name, theta, changed, k, corrected)
                others = np.arange(k) != i * k // n
                assert before[others].tobytes() == after[others].tobytes()

    def estimates(self, name, theta, x, k, corrected):
        """And their logarithms, where they are averaged."""
        family, box = family_of(name), box_of(theta)
        logs = replace(box, logs=tuple(parameter for parameter in box.names if parameter in family.logarithmic))
        both = [family.estimates((x,), k, box, corrected=corrected, workers=1) for box in (box, logs)]
        return np.concatenate(both, axis=1)

    FITTED: ClassVar = [
        ("weibull", ("shape", "scale"), 777, 31),
        ("laplace", ("location", "scale"), 777, 31),
        ("laplace", ("location", "scale"), 4100 * 9, 9),  # the size where a series follows the table
        ("negativebinomial", ("r", "p", "mean"), 777, 31),
        (families.LinearRegression(2), ("intercept", "x1", "sd"), 777, 31),
        (families.LinearRegression(2), ("sd",), 400 * 65, 65),
        (families.LogisticRegression(2), ("x0",), 777, 11),
    ]

    @every("family, names, n, k", FITTED, ids=lambda value: str(value)[:16])
    def test_one_fit(self, family, names, n, k):
        """The same of families fitted record by record, whose corrections depend on how many records a block has."""
        rng, family = np.random.default_rng(2), family_of(family)
        logs = tuple(name for name in names if name in family.logarithmic)
        box = Ranges(names, (0.01,) * len(names), (100.0,) * len(names), logs)
        data = np.floor(rng.gamma(2.0, 3.0, (n, 3 if isinstance(family, Regression) else 1)))
        data += rng.random(data.shape) / 8
        data[rng.random(n) < 0.1, 0] = np.nan  # blocks of many sizes

        def estimates(values, corrected):
            parts = (values[:, 0],) if values.shape[1] == 1 else (values[:, :2], values[:, 2])
            return family.estimates(parts, k, box, corrected=corrected, workers=1)

        for corrected in (False, True):
            before = estimates(data, corrected)
            assert np.isfinite(before).mean() > 0.9
            for record in self.RECORDS:
                i = int(rng.integers(n))
                changed = data.copy()
                changed[i, rng.integers(data.shape[1])] = record
                others = np.arange(k) != i * k // n
                assert before[others].tobytes() == estimates(changed, corrected)[others].tobytes()

    @pytest.mark.parametrize("correction", [fitted.deviation, lambda m: _blocks.normal_corrections(m + 1.0)])
    def test_a_correction_is_of_one_block(self, correction):
        """A function of the number of records alone: neither its place in a vector nor its neighbours matter."""
        counts = np.random.default_rng(0).integers(2, 2 * 10**4, 300)
        alone = np.array([correction(counts[i : i + 1])[0] for i in range(300)])
        for start in range(9):
            assert correction(counts[start:]).tobytes() == alone[start:].tobytes()

    def test_a_callable(self):
        x = np.random.default_rng(0).normal(size=400)
        family, box = (
            family_of(lambda block: 1 / block.std() if block.max() < 4 else None),
            Ranges(("parameter",), (0,), (9,)),
        )
        before = family.estimates((x,), 20, box, corrected=True, workers=1)
        x[37] = 5
        after = family.estimates((x,), 20, box, corrected=True, workers=1)
        assert np.flatnonzero(before != after).tolist() == [1]
        assert np.isnan(after[1, 0])

    def test_the_control(self):
        """By sorted value: one record changes many blocks."""
        x = np.random.default_rng(0).normal(size=400)
        y = x.copy()
        y[0] = 100
        box = Ranges(("mean",), (-9,), (9,))
        before, after = (
            families.Normal().estimates((np.sort(values),), 20, box, corrected=True, workers=1) for values in (x, y)
        )
        assert (before != after).sum() > 5

    def test_a_shuffle_is_public(self):
        """The permutation depends on the seed and n only; with it sorted data give accurate releases."""
        x = np.sort(np.random.default_rng(0).exponential(size=20_000))
        mechanism = SampleAndAggregate("exponential", bounds=(0.1, 10), epsilon=10.0, blocks=200, shuffle=1)
        assert mechanism(x) == pytest.approx(1.0, abs=0.1)
        plain = SampleAndAggregate("exponential", bounds=(0.1, 10), epsilon=10.0, blocks=200)
        assert plain(x) > 1.3


class TestLaw:
    def test_mean_by_hand(self):
        """Estimates 0.25 and 1 on the grid of quarters: their sum in codes, and noise of scale 4 / epsilon."""
        law = bernoulli(0.5).law([0, 0, 1, 0, 1, 1, 1, 1])
        assert isinstance(law, ClampedNoise)
        assert law.center == 5
        assert law.support == (0, 8)
        assert law.noise.scale == Fraction(8)
        assert [law.value(k) for k in (0, 5, 8)] == [0.0, 0.625, 1.0]

    @pytest.mark.parametrize("which", ["mean", "winsorized"])
    def test_sampling(self, which, monkeypatch):
        monkeypatch.setattr(SampleAndAggregate, "_winsorizes", lambda self, n, k: (which == "winsorized",))
        law = bernoulli(2.0, blocks=4).law([0, 1, 1, 1, 0, 0, 1, 1])
        first, last = law.support
        points = np.arange(first, last + 1)
        counts = np.bincount(law.sample(1500, PCG64(1)), minlength=last + 1)
        assert not chi_square_rejects(counts, law.pmf(points))
        assert math.fsum(law.pmf(points)) == pytest.approx(1)
        assert law.cdf(points) == pytest.approx(np.cumsum(law.pmf(points)))
        for epsilon in (1.0, 4.0):
            other = bernoulli(epsilon, blocks=4).law([0, 1, 1, 1, 0, 0, 1, 1])
            assert chi_square_rejects(np.bincount(other.sample(60_000 if which == "mean" else 2000, PCG64(2)),
                                                  minlength=last + 1), law.pmf(points))  # fmt: skip

    def test_winsorized_window(self):
        codes = np.array([3, 4, 4, 5, 9])
        column = Windowed(codes, Grid(0, 15, step=1), 1.5, Fraction(1, 2))
        assert column.window(4, 6) == (2, 8)
        assert column.window(4, 4) == (3, 5)  # at least one code each way
        assert column.window(0, 15) == (0, 15)
        law = WinsorizedMeanLaw(column, SumsNoise("k-norm", 1, Fraction(1, 2), 0.0), float)
        assert law.given([(3, 5)]).center == 3 + 4 + 4 + 5 + 5
        assert law.given([(3, 5)]).noise.scale == 4  # (5 - 3) / (1/2)

    @every("combine", ["mean", "winsorized"])
    @every("bounds, step", [((0.001, 50.1), None), ((0.1, 0.7), 16.0), ((1 / 3, 1e9 / 7), None), ((0.3, 0.3001), 0.25)])
    def test_releases_lie_within_the_bounds(self, combine, bounds, step, monkeypatch):
        """The grid is widened beyond them: estimates at its ends, and noise as large as the range."""
        monkeypatch.setattr(SampleAndAggregate, "_winsorizes", lambda self, n, k: (combine == "winsorized",))
        mechanism = SampleAndAggregate(
            "exponential", bounds={"mean": bounds}, epsilon=0.5, blocks=3, combine=combine, step=step
        )
        [grid] = mechanism.grids(60)
        assert grid.lower < bounds[0]
        assert grid.upper > bounds[1]
        laws = [mechanism.law(np.full(60, value)) for value in (1e-9, 1e12)]
        ends = [law.value(end) for law in laws for end in law.support]
        assert ends == [*bounds, *bounds]
        values = [mechanism(np.full(60, value), rng=PCG64(seed)) for seed in range(6) for value in (1e-9, 1e12)]
        assert all(bounds[0] <= value <= bounds[1] for value in values)

    def test_too_many_pairs(self):
        column = Windowed(np.array([1, 2, 3]), Grid(0, 1000, step=1), 1.5, Fraction(1, 2))
        law = WinsorizedMeanLaw(column, SumsNoise("k-norm", 1, Fraction(1, 2), 0.0), float)
        with pytest.raises(ValueError, match="at most 90 points, not 1001"):
            law.pmf([0])

    def test_streams(self):
        x = np.random.default_rng(0).gamma(2.0, 3.0, 10_000)
        mechanism = SampleAndAggregate("gamma", bounds={"shape": (0.1, 10), "rate": (0.01, 10)}, epsilon=1.0)
        whole = mechanism.law(x, workers=2)
        left, right = mechanism.block_sums(10_000), mechanism.block_sums(10_000, position=3_333)
        for chunk in np.array_split(x[:3_333], 7):
            left.update(chunk)
        right.update(x[3_333:])
        left.merge(pickle.loads(pickle.dumps(right)))
        streamed = mechanism.law_of(left)
        assert streamed.center.tolist() == whole.center.tolist()
        np.testing.assert_array_equal(mechanism.finish(left, rng=PCG64(5)), mechanism(x, rng=PCG64(5)))
        with pytest.raises(ValueError, match="the state has read 6667 of 10000 records"):
            mechanism.finish(right)

    @pytest.mark.parametrize("cuts", [[], [0, 1, 9_999], list(range(0, 10_000, 37))])
    def test_chunks_are_as_one_array(self, cuts):
        x = np.random.default_rng(0).gamma(2.0, 3.0, 10_000)
        mechanism = SampleAndAggregate("gamma", bounds={"shape": (0.1, 10), "rate": (0.01, 10)}, epsilon=1.0)
        chunks = dpf.Chunks(np.split(x, cuts))
        np.testing.assert_array_equal(mechanism(chunks, rng=PCG64(5), workers=2), mechanism(x, rng=PCG64(5)))

    @every("cuts", [[0, 7, 7, 999], list(range(0, 1000, 13))])
    @every("options", [{"family": block_median}, {"family": "weibull"}, {"family": "normal", "shuffle": 3}])
    def test_chunks_of_families_that_need_whole_blocks(self, cuts, options):
        x = np.random.default_rng(0).beta(2.0, 3.0, 1000)
        bounds = {"weibull": {"shape": (0.1, 10)}, "normal": {"mean": (0, 1)}}.get(options["family"], (0, 1))
        mechanism = SampleAndAggregate(bounds=bounds, epsilon=1.0, blocks=20, **options)
        pieces = np.split(x, cuts)
        assert mechanism(dpf.Chunks(pieces), rng=PCG64(5)) == mechanism(x, rng=PCG64(5))
        with pytest.raises(ValueError, match="x is empty"):
            mechanism(dpf.Chunks([]))

    def test_chunks_of_a_regression(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(2000, 1))
        y = X[:, 0] + rng.normal(size=2000)
        family = families.LinearRegression(1)
        mechanism = SampleAndAggregate(family, bounds={"x0": (-3, 3)}, epsilon=1.0, blocks=20)
        pairs = [(X[:700], y[:700]), (X[700:700], y[700:700]), (X[700:], y[700:])]
        assert mechanism(dpf.Chunks(pairs), rng=PCG64(5)) == mechanism((X, y), rng=PCG64(5))

    def test_chunks_keep_their_order(self):
        x = np.sort(np.random.default_rng(0).exponential(1.0, 10_000))
        mechanism = SampleAndAggregate("exponential", bounds=(0.1, 10), epsilon=1.0)
        there, back = dpf.Chunks([x[:3333], x[3333:]]), dpf.Chunks([x[3333:], x[:3332], x[3332:3333]])
        assert mechanism.law(there).center != mechanism.law(back).center

    def test_a_state_needs_the_number_of_records(self):
        with pytest.raises(TypeError, match=r"use block_sums\(n\)"):
            SampleAndAggregate("poisson", bounds=(0, 1), epsilon=1.0).start()

    def test_whatever_chunks_a_state_is_given(self):
        """Lists, foreign byte orders, strides and -1 for all cores: as a call takes them."""
        x = np.random.default_rng(0).exponential(size=600_000)
        mechanism = SampleAndAggregate("exponential", bounds=(0.1, 10), epsilon=1.0, blocks=50)
        state = mechanism.block_sums(x.size)
        state.update(x[:5].tolist())
        state.update(x[5:1000].astype(">f8"))
        state.update(np.stack([x[1000:2000], x[:1000]], axis=1)[:, 0])
        state.update(x[2000:], workers=-1)
        assert mechanism.law_of(state).center == mechanism.law(x).center
        assert repr(state) == "<BlockState of 600000 of 600000 records, private>"

    def test_no_chunks(self):
        state = SampleAndAggregate("poisson", bounds=(0, 1), epsilon=1.0, blocks=2).block_sums(100)
        for wrong in (np.float64(3.0), np.array(3.0), np.zeros((3, 2))):
            with pytest.raises(ValueError, match="x must be one-dimensional, not of shape"):
                state.update(wrong)
        with pytest.raises(ValueError, match="workers must be"):
            state.update(np.zeros(3), workers=0)
        with pytest.raises(TypeError, match="merges with a BlockState, not with int"):
            state.merge(3)
        assert state.seen == 0

    def test_streams_are_of_sums(self):
        with pytest.raises(TypeError, match="needs whole blocks"):
            SampleAndAggregate(np.median, bounds=(0, 1), epsilon=1.0).block_sums(100)
        with pytest.raises(TypeError, match="cannot be shuffled"):
            SampleAndAggregate("poisson", bounds=(0, 1), epsilon=1.0, shuffle=1).block_sums(100)


class TestInput:
    CONSTANTS = (math.nan, math.inf, -math.inf, 0.0, -1.0, 1.0, 1e308, 2.0**62)

    @every("constant", CONSTANTS)
    def test_constant_data(self, constant):
        """Every family answers, inside its bounds."""
        for name, theta in THETAS:
            box = box_of(theta)
            bounds = dict(zip(box.names, zip(box.lower, box.upper, strict=True), strict=True))
            mechanism = SampleAndAggregate(name, bounds=bounds, epsilon=1.0)
            released = np.atleast_1d(mechanism(np.full(50, constant), rng=PCG64(0)))
            for value, low, high in zip(released, box.lower, box.upper, strict=True):
                assert low <= value <= high

    def test_no_estimate_is_the_middle(self):
        """NaN everywhere, or a callable that always fails; the middle is geometric where bounds are positive."""
        for family, bounds, middle in [("exponential", (0.25, 4), 1.0), (lambda block: 1 / 0, (-2, 4), 1.0)]:
            law = SampleAndAggregate(family, bounds=bounds, epsilon=1.0, blocks=3).law(np.full(60, math.nan))
            assert law.value(law.center) == pytest.approx(middle, abs=1e-8)

    def test_infinite_estimates_go_to_a_bound(self):
        law = SampleAndAggregate("exponential", bounds=(0.25, 4), epsilon=1.0, blocks=3).law(np.zeros(60))
        assert law.value(law.center) == 4.0

    def test_huge_counts(self):
        law = SampleAndAggregate("poisson", bounds=(0, 1e6), epsilon=1.0, blocks=3).law(np.full(60, 2**63 - 1))
        assert law.value(law.center) == 1e6

    def test_too_few_records(self):
        mechanism = SampleAndAggregate("poisson", bounds=(0, 9), epsilon=1.0)
        with pytest.raises(ValueError, match='blocks="auto" needs at least 40 records, two blocks of 20, not 39'):
            mechanism(np.zeros(39))
        assert 0 <= mechanism(np.zeros(40)) <= 9
        with pytest.raises(ValueError, match="blocks=3 need at least 3 records, not 2"):
            SampleAndAggregate("poisson", bounds=(0, 9), epsilon=1.0, blocks=3)([1, 2])
        with pytest.raises(ValueError, match="x is empty"):
            mechanism([])

    def test_one_block(self):
        x = np.random.default_rng(0).exponential(size=1000)
        law = SampleAndAggregate("exponential", bounds=(0.1, 10), epsilon=1.0, blocks=1, step=2.0**-10).law(x)
        assert law.value(law.center) == pytest.approx(999 / x.sum(), abs=2.0**-10)

    @every(
        "options, error, message",
        [
            ({"bounds": None}, TypeError, "bounds are required"),
            ({"bounds": (1, 1)}, ValueError, "lower must be below upper in bounds"),
            ({"bounds": (-1, 1)}, ValueError, r"the bounds of shape must lie in \[0, "),
            ({"bounds": {"mode": (0, 1)}}, ValueError, "Gamma has the parameters shape, rate, scale, not 'mode'"),
            ({"bounds": {}}, ValueError, "bounds must name at least one parameter"),
            ({"bounds": {"shape": 3}}, TypeError, "bounds of shape must be a pair"),
            ({"bounds": (0, math.inf)}, ValueError, "must be finite"),
            ({"epsilon": 0}, ValueError, "epsilon must be positive"),
            ({"blocks": 0}, ValueError, "blocks must be at least 1"),
            ({"blocks": "many"}, ValueError, "blocks must be a number or 'auto'"),
            ({"blocks": 2**31}, ValueError, "blocks must be at most"),
            ({"combine": "median"}, ValueError, "combine must be one of"),
            ({"guess": "best"}, ValueError, "guess must be one of 'worst', not 'best'"),
            ({"margin": "wide"}, ValueError, "margin must be a number or 'auto', not 'wide'"),
            ({"margin": -1}, ValueError, "margin must be at least 0"),
            ({"bias_correction": 1}, TypeError, "bias_correction must be True or False"),
            ({"guess": 3}, TypeError, "guess must be a mapping"),
            ({"shuffle": 0.5}, TypeError, "shuffle must be an integer"),
            ({"epsilon": 1e-30}, ValueError, "use a coarser step"),
        ],
    )
    def test_parameters(self, options, error, message):
        with pytest.raises(error, match=message):
            SampleAndAggregate("gamma", **{"bounds": (0.1, 10), "epsilon": 1.0, **options})

    @pytest.mark.parametrize(
        ("family", "options"),
        [
            ("normal", {"bounds": {"variance": (1e-160, 1e160)}, "combine": "mean"}),
            ("normal", {"bounds": {"sd": (1e159, 1e160)}}),
            ("poisson", {"bounds": (0, 1e160)}),
            ("gamma", {"bounds": {"rate": (1, 2)}, "guess": {"shape": 1e-300}}),
            ("geometric", {"bounds": (0.1, 1.0), "guess": {"p": 1}, "combine": "winsorized"}),
            ("negativebinomial", {"bounds": (0, 1e8)}),
            ("negativebinomial", {"bounds": {"p": (0.1, 1.0)}, "guess": {"p": 1, "mean": 3}}),
            (families.PoissonRegression(1), {"bounds": {"x0": (1, 1000)}, "guess": {"intercept": 1e4}}),
        ],
    )
    @pytest.mark.filterwarnings("error")
    def test_extreme_bounds(self, family, options):
        """A ValueError says so when the mechanism is made, with the guess; giving the number of blocks helps."""
        with pytest.raises(ValueError, match="too extreme to compute an error at") as caught:
            SampleAndAggregate(family, epsilon=1.0, **options)
        assert all(repr(name) in str(caught.value) for name in options.get("guess", {}))
        mechanism = SampleAndAggregate(family, epsilon=1.0, **{**options, "blocks": 3, "combine": "mean"})
        assert mechanism.block_count(100) == 3

    def test_more_extreme_bounds(self):
        """Those that no number of blocks helps, and of which nothing else is named."""
        most = np.finfo(float).max
        for family, bounds, epsilon in [
            ("laplace", {"location": (-most, most)}, 1.0),  # the width overflows
            ("poisson", {"mean": (1e100, 1e200)}, 1e-250),  # the noise overflows
            ("beta", {"a": (1, most)}, 1.0),  # the information is lost in differences
        ]:
            with pytest.raises(ValueError, match=r"the bounds .* are too extreme"):
                SampleAndAggregate(family, bounds=bounds, epsilon=epsilon)

    def test_bounds_whose_logarithms_are_the_same_double(self):
        mechanism = SampleAndAggregate("exponential", bounds=(1e16, 1e16 + 2), epsilon=1.0)
        assert not mechanism.box.logs
        assert 1e16 <= mechanism(np.ones(100)) <= 1e16 + 2

    def test_sample_size_sums_once(self):
        """The sums over the distribution, with as many terms as the bounds allow, are computed once for each theta."""
        mechanism = SampleAndAggregate("negativebinomial", bounds=(1, 1000), epsilon=1.0)
        fitted._binomial.cache_clear()
        assert mechanism.sample_size(5.0, theta=30.0) > 100
        assert fitted._binomial.cache_info().misses == 6  # the guess, theta, and a step to each side of them

    def test_extreme_theta(self):
        mechanism = SampleAndAggregate("gamma", bounds={"shape": (0.1, 10)}, epsilon=1.0, blocks=10)
        for theta in (1e-300, 0.0, 1e300):
            with pytest.raises(ValueError, match=r"theta \{'shape': .*too extreme"):
                mechanism.error(1000, theta)
        with pytest.raises(ValueError, match=r"theta \{'p': 1\.0\} are too extreme"):
            SampleAndAggregate("geometric", bounds=(0.1, 1), epsilon=1.0, blocks=10).error(1000, 1)

    def test_unknown_names(self):
        message = "Gamma has the parameters shape, rate, scale, not 'foo'"
        with pytest.raises(ValueError, match=message):
            SampleAndAggregate("gamma", bounds=(0.1, 10), epsilon=1.0, guess={"foo": 3})
        with pytest.raises(ValueError, match=message):
            SampleAndAggregate("gamma", bounds=(0.1, 10), epsilon=1.0).error(1000, {"shape": 2, "foo": 3})

    def test_mechanism_is_a_value(self):
        mechanism = SampleAndAggregate("gamma", bounds={"shape": (0.1, 10)}, epsilon=1.0, guess={"shape": 2})
        assert pickle.loads(pickle.dumps(mechanism)) == mechanism
        assert hash(mechanism) == hash(SampleAndAggregate(
            families.Gamma(), bounds={"shape": (0.1, 10)}, epsilon=1.0, guess={"shape": 2.0}))  # fmt: skip
        assert mechanism.privacy_map(3) == dpf.Privacy(3.0)
        assert "shape in [0.1, 10.0]" in repr(mechanism)
        x = np.random.default_rng(0).gamma(2, size=1000)
        x.flags.writeable = False
        before = x.copy()
        assert mechanism(x, rng=PCG64(1)) == dpf.mle(
            x, "gamma", bounds={"shape": (0.1, 10)}, epsilon=1.0, guess={"shape": 2}, rng=PCG64(1), workers=2
        )
        assert (x == before).all()

    def test_own_families(self):
        """A family of sums and one of whole blocks, written by a user."""

        class Rayleigh(AdditiveFamily):
            names = ("scale",)
            support = (0.0, 1e300)

            def columns(self, box):
                return (families.RecordSum("square", step=2.0**-20),)

            def estimate(self, count, sums, box, *, corrected):
                [total, deviations] = sums
                return [np.sqrt((deviations + total**2 / count) / (2 * count))]

        class Middle(BlockFamily):
            names = ("location",)

            def fit(self, *data, offsets, box, corrected):
                return np.array([[np.median(data[0][a:b])] for a, b in itertools.pairwise(offsets)])

        x = np.random.default_rng(0).rayleigh(2.0, 20_000)
        assert dpf.mle(x, Rayleigh(), bounds=(0, 10), epsilon=10.0) == pytest.approx(2.0, abs=0.1)
        assert dpf.mle(x, Middle(), bounds=(0, 10), epsilon=10.0) == pytest.approx(2 * math.sqrt(math.log(4)), abs=0.1)


def test_noise_far_beyond_the_bounds_of_a_geometric_mean_does_not_warn():
    mechanism = SampleAndAggregate("exponential", bounds=(1e-3, 1e3), blocks=2, combine="geometric", epsilon=1e-6)
    for x in (np.zeros(7), np.ones(7), np.full(7, np.nan)):
        assert set(mechanism.release(x, size=100, rng=PCG64(1))) == {1e-3, 1e3}


def test_offsets_of_blocks():
    """`fit` is given the blocks that the sums use."""
    assert _blocks.offsets(10, 3).tolist() == [0, 4, 7, 10]
