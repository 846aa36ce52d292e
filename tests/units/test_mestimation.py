"""M-estimators: laws against enumeration, the right constant, draws, extremes, parameters without bounds."""

import dataclasses
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize

import dpfast as dpf
from dpfast import psi as psis
from dpfast._kernels import _balls
from dpfast.mechanisms.mestimation import _sum_rule
from dpfast.mechanisms.score_sums import FewPieces, ScoreSums
from dpfast.prior import Cauchy, PointWeights
from dpfast.psi import IntegerTable
from tests.cases import every
from tests.reference import scores as reference
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects, kolmogorov_rejects

pytestmark = pytest.mark.kernel


def arctan(difference):
    return math.atan(difference / 3)


KNOTS, VALUES = (-4.5, -1.0, -0.5, 0.25, 3.0), (-2.0, -1.0, -1.0, 0.5, 1.0)
PSIS = [
    psis.Huber(2.0),
    psis.Huber(1000.0),
    psis.Pinball(0.5),
    psis.Pinball(0.9),
    psis.Table(KNOTS, VALUES),
    psis.Logistic(1.5),
    psis.Function(arctan),
]
PRIORS = ["uniform", Cauchy(3, 1), Cauchy(-5, 4), Cauchy(11.4, 2.7)]


def exact_psi(psi, grid):
    """psi of a difference in steps: by definition where it is rational, else by its table."""
    last = grid.size - 1
    if isinstance(psi, psis.Huber):
        return reference.huber(max(1, round(min(psi.k / grid.step, last))))
    if isinstance(psi, psis.Pinball):
        return reference.pinball(Fraction(psi.q).limit_denominator(2**20))
    if isinstance(psi, psis.Table):
        return reference.table([Fraction(knot) / Fraction(grid.step) for knot in psi.knots], psi.values)
    values = dict(zip(range(-last, last + 1), psi.table(grid)(np.arange(-last, last + 1)).tolist(), strict=True))
    return values.__getitem__


def exact_prior(prior, grid):
    if isinstance(prior, PointWeights):
        return lambda theta: Fraction(prior.weights[theta])
    return reference.uniform if prior == "uniform" else reference.cauchy(*prior.codes(grid))


def mechanism(psi=PSIS[0], grid=None, epsilon=1.0, prior="uniform"):
    return dpf.MEstimator(psi, grid=grid or dpf.Grid(0, 12, step=1), epsilon=epsilon, prior=prior)


def check_law(m, data):
    """pmf, logpmf and cdf of the law of these codes against enumeration."""
    last, psi = m.grid.size - 1, exact_psi(m.psi, m.grid)
    excess = m.reach(len(data)) * Fraction(reference.spread(psi, last)) / m.sensitivity
    expected = reference.law(psi, data, last, m.epsilon, exact_prior(m.prior, m.grid), excess)
    law, points = m.law(m.grid.decode(data)), np.arange(last + 1)
    assert law.support == (0, last)
    assert_allclose(law.pmf(points), [float(p) for p in expected], rtol=1e-12, atol=1e-300)
    assert_allclose(law.cdf(points), np.cumsum([float(p) for p in expected]), rtol=0, atol=1e-13)
    assert_array_equal(law.logpmf([-1, last + 1]), -np.inf)
    assert_array_equal(law.cdf([-1, last, last + 1]), [0, 1, 1])
    assert_array_equal(law.value(points), m.grid.decode(points))


class TestLaw:
    @every("prior", PRIORS, ids=str)
    @every("psi", PSIS, ids=str)
    def test_equals_enumeration(self, psi, prior):
        for grid in (dpf.Grid(0, 12, step=1), dpf.Grid(-3, 3, step=0.25)):
            m = mechanism(psi, grid, 0.7, prior)
            last = grid.size - 1
            for data in ([0], [last], [5, 6], [0, last], [4, 4, 4, 4], [0, 3, 3, 8, 9, 12], list(range(last + 1))):
                check_law(m, data)

    @given(
        st.sampled_from(PSIS),
        st.sampled_from(PRIORS),
        st.lists(st.integers(0, 40), min_size=1, max_size=12),
        st.sampled_from([1e-6, 0.1, 3.0, 50.0]),
    )
    @settings(max_examples=40)
    def test_any_data(self, psi, prior, data, epsilon):
        check_law(mechanism(psi, dpf.Grid(0, 40, step=1), epsilon, prior), data)

    @pytest.mark.parametrize("prior", ["uniform", Cauchy(30, 2)], ids=str)
    def test_capped(self, prior):
        """Where the cap bites: it is above the least magnitude, not above 0."""
        grid, data = dpf.Grid(0, 200, step=1), [100] * 900 + [110] * 1100
        m = mechanism(psis.Huber(3.0), grid, 2.0, prior)
        scores = reference.magnitudes(reference.huber(3), data, 200)
        assert m.reach(len(data)) < max(scores) - min(scores)
        check_law(m, data)

    def test_equal_records_do_not_make_it_uniform(self):
        """S jumps from -n/2 to n/2: a cap on |S| itself would leave every point the same weight."""
        law = mechanism(psis.Huber(1.0), dpf.Grid(0, 1000, step=1)).law([400] * 4000 + [401] * 4100)
        assert law.pmf(401) > 0.999

    @every("psi", [*PSIS[2:5], psis.Huber(40.0), psis.Logistic(30.0)], ids=str)
    @every("prior", ["uniform", Cauchy(3, 1)], ids=str)
    def test_selection_does_not_matter(self, psi, prior):
        """Many records, a sample and two passes: the same law as from all records, summed in Python's integers."""
        grid, theta = dpf.Grid(0, 300, step=1), np.arange(301)
        rng = np.random.default_rng(1)
        for x in (rng.normal(150, 20, 5000), np.r_[np.full(3000, 3.0), np.full(2001, 290)]):
            m = mechanism(psi, grid, 1.0, prior)
            codes, counts = np.unique(grid.encode(x), return_counts=True)
            scores = np.abs(m._table(theta[:, None] - codes).astype(object) @ counts.astype(object))
            excess = np.minimum(scores - scores.min(), m.reach(len(x)))
            logs = -m.epsilon / 2 * (excess / m.sensitivity).astype(float)
            if prior != "uniform":
                center, width = prior.codes(grid)
                logs -= np.log1p(((theta - center) / width) ** 2)
            logs -= np.logaddexp.reduce(logs)
            assert_allclose(m.law(x).logpmf(theta), logs, rtol=1e-12, atol=1e-11)

    def test_sum_rule(self):
        """Gauss's rule of a discrete uniform measure is exact up to degree 23, and the sum itself for few points."""
        lengths = np.array([0, 1, 2, 5, 12, 13, 40, 1000])
        nodes, weights = _sum_rule(lengths)
        for n, places, shares in zip(lengths.tolist(), nodes, weights, strict=True):
            for degree in (0, 1, 7, 23):
                exact = sum(Fraction(2 * j + 1, 2 * n) ** degree for j in range(n))
                assert shares @ ((places + 0.5) / max(n, 1)) ** degree == pytest.approx(float(exact), abs=1e-11)

    def test_every_difference_finds_its_knots(self):
        """Knots on, beside and between the buckets of the guide, up to the ends of the largest grid."""
        grid = Cauchy(0, 1).grid(1.0)
        last, rng = grid.size - 1, np.random.default_rng(0)
        near = [place + d for shift in (0, 5, 6, 20, 50) for place in (33 << shift, 64 << shift) for d in (-1, 0, 1)]
        knots = np.unique(rng.choice([k for k in near if k < last], 20, replace=False) * rng.choice([-1, 1], 20))
        psi = psis.Table([-last, *knots, last], np.arange(len(knots) + 2) - 7)
        m = mechanism(psi, grid)
        table = psi.table(grid)
        assert len(table.knots) > 6
        middle = grid.size // 2
        for code in (0, middle, last):
            pieces = m.law([grid.value(code)])._pieces
            for d in {*(table.knots + 1).tolist(), *table.knots.tolist(), *(table.knots - 1).tolist(), -33, -1, 0, 1}:
                if 0 <= code + d <= last:
                    assert pieces.scan(code + d, code + d + 1)[0] == table(d)


class TestPrivacy:
    @every("epsilon", [0.1, 1.0, 4.0])
    @every("prior", ["uniform", Cauchy(3, 1)], ids=str)
    @every("psi", PSIS, ids=str)
    def test_certified(self, psi, prior, epsilon):
        m = mechanism(psi, epsilon=epsilon, prior=prior)
        assert dpf.audit.verify(m, n=3, values=4, ordered=False).holds

    @pytest.mark.parametrize(
        ("psi", "loss"), [(psis.Pinball(0.5), 1.951), (psis.Huber(1), 1.918), (psis.Huber(3), 1.786)]
    )
    def test_the_published_exponent_is_rejected(self, psi, loss):
        """Positive control: Proposition 3 is this mechanism at twice the epsilon, and loses nearly that."""
        grid, found, ours = dpf.Grid(0, 60, step=1), 0.0, 0.0
        for a in range(1, 60):
            for epsilon in (1.0, 2.0):
                laws = [mechanism(psi, grid, epsilon).law(x).logpmf(np.arange(61)) for x in ([a, 60.0], [0.0, a])]
                most = np.abs(laws[0] - laws[1]).max()
                found, ours = (max(found, most), ours) if epsilon == 2.0 else (found, max(ours, most))
        assert found == pytest.approx(loss, abs=5e-4)
        assert 0.8 < ours <= 1 + 1e-12

    def test_the_published_exponent_is_not_certified(self):
        class Published(dpf.MEstimator):
            @property
            def privacy(self):
                return dpf.Privacy(self.epsilon / 2)

        found = dpf.audit.verify(
            Published(psis.Pinball(0.5), grid=dpf.Grid(0, 20, step=1), epsilon=2.0), n=2, values=21
        )
        assert not found.holds
        assert found.epsilon > 1.8

    def test_any_cap_above_the_least_magnitude(self):
        """The score min(|S|, M + C) changes by at most W with one record; |S| - M alone may change by 2 W."""
        psi, last = reference.huber(2), 6
        scores = {d: reference.magnitudes(psi, d, last) for d in itertools.product(range(last + 1), repeat=3)}
        width, worst = reference.spread(psi, last), 0
        for data, i, new in itertools.product(scores, range(3), range(last + 1)):
            mine, theirs = scores[data], scores[(*data[:i], new, *data[i + 1 :])]
            for cap in (1, 3, 5):
                capped = [[min(s, min(side) + cap) for s in side] for side in (mine, theirs)]
                assert max(abs(a - b) for a, b in zip(*capped, strict=True)) <= width
            worst = max(worst, *(abs(a - min(mine) - b + min(theirs)) for a, b in zip(mine, theirs, strict=True)))
        assert worst > width

    def test_sensitivity(self):
        assert mechanism(psis.Huber(2)).sensitivity == 4
        assert mechanism(psis.Huber(8)).sensitivity == 12  # of 16: a record cannot be 8 below and 8 above at once
        assert mechanism(psis.Huber(100)).sensitivity == 12
        assert mechanism(psis.Pinball(0.25)).sensitivity == 4
        for psi in PSIS:
            m = mechanism(psi)
            by_hand = reference.spread(lambda d, m=m: int(m._table(d)), 12)
            assert m.sensitivity == by_hand


class TestWeights:
    """A weight for each point."""

    PRIOR = PointWeights([1, 5, 2, 2, 9, 1, 1, 3, 40, 2, 2, 1, 7])

    @every("psi", PSIS, ids=str)
    def test_equals_enumeration(self, psi):
        m = mechanism(psi, epsilon=0.7, prior=self.PRIOR)
        for data in ([0], [12], [5, 6], [4, 4, 4, 4], [0, 3, 3, 8, 9, 12]):
            check_law(m, data)

    def test_draws(self):
        """Those without the weights, or with their roots, are rejected."""
        psi, grid, data = psis.Huber(3.0), dpf.Grid(0, 12, step=1), [2, 5, 9, 9, 11]
        law = mechanism(psi, grid, 0.5, self.PRIOR).law(data)
        counts = np.bincount(law.sample(50_000, rng=PCG64(3)), minlength=13)
        for prior in (self.PRIOR, "uniform", PointWeights([round(10 * w**0.5) for w in self.PRIOR.weights])):
            expected = reference.law(exact_psi(psi, grid), data, 12, 0.5, exact_prior(prior, grid))
            assert chi_square_rejects(counts, expected) == (prior is not self.PRIOR)
        assert law.sample(rng=PCG64(4)) in range(13)

    def test_privacy(self):
        m = mechanism(psis.Pinball(0.5), dpf.Grid(0, 3, step=1), 0.8, PointWeights([1, 7, 2, 1]))
        assert dpf.audit.verify(m, n=3, ordered=False).holds

    def test_refusals(self):
        for weights in ([], [1, 0], [1.5], [[1]], [1, 2**21], 3):
            with pytest.raises((TypeError, ValueError)):
                PointWeights(weights)
        with pytest.raises(ValueError, match="a weight for each of the 13 points, not 2"):
            mechanism(prior=PointWeights([1, 2]))


class TestDraws:
    CASES = (
        (psis.Huber(3.0), "uniform", 0.3, [2, 5, 9, 9, 17]),
        (psis.Pinball(0.5), Cauchy(15, 2), 1.0, [2, 5, 9, 9, 17]),
        (psis.Table(KNOTS, VALUES), Cauchy(0, 3), 0.5, [2, 5, 9, 9, 17] * 2),
        (psis.Logistic(2.0), "uniform", 1.0, [0, 1, 1, 19]),
    )

    @pytest.mark.parametrize(("psi", "prior", "epsilon", "data"), CASES)
    def test_law(self, psi, prior, epsilon, data):
        """Chi-square against the enumerated law; rejected for epsilon x 0.7 and x 1.3."""
        grid = dpf.Grid(0, 19, step=1)
        draws = mechanism(psi, grid, epsilon, prior).law(data).sample(100_000, rng=PCG64(3))
        counts = np.bincount(draws, minlength=20)
        for factor in (0.7, 1.0, 1.3):
            expected = reference.law(exact_psi(psi, grid), data, 19, epsilon * factor, exact_prior(prior, grid))
            assert chi_square_rejects(counts, expected) == (factor != 1.0)

    @pytest.mark.parametrize("prior", ["uniform", Cauchy(0, 1000)], ids=str)
    def test_law_on_a_fine_grid(self, prior):
        x = np.random.default_rng(1).standard_t(3, 300)
        m = mechanism(psis.Huber(1.0), dpf.Grid(-1000, 1000), 0.5, prior)
        sample = m.law(x).sample(20_000, rng=PCG64(4))
        assert not kolmogorov_rejects(sample, m.law(x).cdf)
        for factor in (0.8, 1.25):
            assert kolmogorov_rejects(sample, dataclasses.replace(m, epsilon=0.5 * factor).law(x).cdf)

    @pytest.mark.parametrize(("psi", "prior", "epsilon", "data"), CASES)
    def test_exact_arithmetic_gives_the_same_draws(self, psi, prior, epsilon, data):
        for grid in (dpf.Grid(0, 19, step=1), dpf.Grid(0, 1e6)):
            pieces = mechanism(psi, grid, epsilon, prior).law(data)._pieces
            sources, draws = [ScriptedBits(rest=PCG64(5)) for _ in range(2)], np.empty((2, 60), np.int64)
            for source, out, exact in zip(sources, draws, (False, True), strict=True):
                pieces.fill(source, out, exact=exact)
            assert_array_equal(draws[0], draws[1])
            assert sources[0].used == sources[1].used

    def test_an_open_choice_asks_for_more_words(self):
        """Two pieces of equal weight share the words at 1/2: U = 1/2 exactly is the second's."""
        assert _balls.choose_piece(2**63, iter([1]).__next__, [(1, 5, 7), (1, 5, 7)], Fraction(1, 3)) == 1
        assert _balls.choose_piece(2**63 - 1, iter([5]).__next__, [(1, 5, 7), (1, 5, 7)], Fraction(1, 3)) == 0
        assert _balls.choose_piece(2**63, iter([]).__next__, [(3, 0, 1), (1, 0, 1)], Fraction(1, 3)) == 0

    def test_workers_order_and_types_do_not_matter(self):
        x = np.random.default_rng(1).lognormal(5, 1, 600_000).round()
        m = mechanism(psis.Huber(50.0), dpf.Grid(0, 10_000, step=1))
        expected = m(x, rng=PCG64(1))
        for values in (x[::-1], np.sort(x), x.astype(np.int64), x.astype("f4"), np.repeat(x, 2)[::2]):
            assert m(values, rng=PCG64(1)) == expected
        assert m(x, rng=PCG64(1), workers=2) == expected


class TestFewPieces:
    """Single draws from very many pieces: the same law, from exact sums at few points."""

    @pytest.mark.parametrize("psi", PSIS)
    @pytest.mark.parametrize("last", [40, 2**45])
    def test_sums_are_exact(self, psi, last):
        source, grid = np.random.default_rng(3), dpf.Grid(0, float(last), step=1)
        codes, table = source.integers(0, last, 300, endpoint=True), psi.table(grid)
        codes[:50], codes[50:60] = codes[50], last
        sums = ScoreSums(codes, table)
        for theta in (0, 1, 17, last // 3, int(codes[50]), last):
            assert sums.at(theta) == sum(table(theta - codes).tolist())

    @every(
        "prior, epsilon, data",
        [
            ("uniform", 0.5, [3, 4, 4, 8, 11, 12]),
            (PRIORS[3], 0.5, [3, 4, 4, 8, 11, 12]),
            ("uniform", 20.0, [3, 4, 9, 9]),
            (PRIORS[1], 20.0, [3, 4, 9, 9]),
            (PRIORS[2], 3.0, [0] * 5),
            (PRIORS[3], 3.0, [12] * 4),
            (PRIORS[1], 8.0, [0] * 4 + [12] * 4),
        ],
        ids=str,
    )
    def test_law(self, prior, epsilon, data):
        m = mechanism(psis.Huber(2.0), dpf.Grid(0, 12, step=1), epsilon, prior)
        pmf, few, source = m.law(np.array(data, float)).pmf(np.arange(13)), self.few(m, data), PCG64(5)
        assert not chi_square_rejects(np.bincount([few.draw(source) for _ in range(2500)], minlength=13), pmf)

    def test_a_wrong_rate_is_rejected(self):
        """So many draws reject the laws of 0.9 and 1.1 of the rate with a probability of 99.9 % at this threshold."""
        data, source = [0, 0, 1, 3, 4, 4, 6, 8, 11, 12], PCG64(5)
        made = {factor: mechanism(psis.Huber(2.0), dpf.Grid(0, 12, step=1), 3.0 * factor) for factor in (1, 0.9, 1.1)}
        few = self.few(made[1], data)
        counts = np.bincount([few.draw(source) for _ in range(13_000)], minlength=13)
        for factor, m in made.items():
            assert chi_square_rejects(counts, m.law(np.array(data, float)).pmf(np.arange(13))) == (factor != 1)

    @staticmethod
    def few(m, data):
        sums = ScoreSums(m.grid.encode(np.array(data, float)), m._table)
        rate = Fraction(m.epsilon) / (2 * m.sensitivity)
        prior = {"center": m._center, "width": m._width}
        return FewPieces(sums.at, reach=m.reach(len(data)), rate=rate, last=m.grid.size - 1, **prior)

    @pytest.mark.parametrize("prior", PRIORS[:2])
    def test_bounds_hold_and_are_few(self, prior):
        grid = dpf.Grid(0, 1e6)
        m = mechanism(psis.Logistic(1e4), grid, 1e-3, prior)
        data = np.random.default_rng(1).lognormal(10.5, 0.6, 20_000)
        few = self.few(m, data)
        assert len(few._pieces) < 300
        parts = sorted((min(p.near, p.near + p.side * (p.length - 1)), p.length) for p in few._pieces)
        assert [low + length for low, length in parts] == [low for low, _ in parts[1:]] + [grid.size]
        assert parts[0][0] == 0
        for piece in few._pieces:
            inside = [few._excess(piece.near + piece.side * (piece.length - 1) * i // 7) for i in range(8)]
            assert inside == sorted(inside)
            assert (inside[0], inside[-1]) == (piece.excess, piece.last)

    @pytest.mark.parametrize("psi", [psis.Logistic(1e4), psis.Huber(1e4)])
    def test_releases_of_many_bends_are_those_of_few_pieces(self, psi):
        """A release takes this road by public numbers; the order of records and threads do not matter."""
        x = np.random.default_rng(1).lognormal(10.5, 0.6, 20_000)
        m = mechanism(psi, dpf.Grid(0, 1e6), 1e-3)
        code = self.few(m, x).draw(PCG64(7))
        assert m(x, rng=PCG64(7)) == m(x[::-1].copy(), rng=PCG64(7), workers=2) == m.grid.value(code)
        sharp = mechanism(psi, dpf.Grid(0, 1e6), 10.0)
        assert sharp.law(x)._few is None

    def test_draws_agree_with_those_of_all_pieces(self):
        x = np.random.default_rng(1).lognormal(10.5, 0.6, 3000)
        m = mechanism(psis.Logistic(1e4), dpf.Grid(0, 1e6), 2e-3)
        law, few, source = m.law(x), self.few(m, x), PCG64(3)
        draws = np.array([few.draw(source) for _ in range(1500)])
        assert not kolmogorov_rejects(draws, law.cdf)
        assert kolmogorov_rejects(draws, mechanism(psis.Logistic(1e4), dpf.Grid(0, 1e6), 4e-3).law(x).cdf)


class TestExtremes:
    @every("epsilon", [1e-6, 50.0])
    @every("prior", ["uniform", Cauchy(0, 1)], ids=str)
    @every("psi", PSIS, ids=str)
    def test_hard_data(self, psi, prior, epsilon):
        for grid in (dpf.Grid(0, 1, step=1), dpf.Grid(-1e9, 1e9), dpf.Grid(-(2.0**51), 2.0**51 - 1, step=1)):
            m = mechanism(psi, grid, epsilon, prior)
            for x in (
                [3.0],
                [grid.lower, grid.upper],
                [grid.upper] * 50,
                [math.nan, math.inf, -math.inf],
                [1e300, -0.0],
            ):
                values = m.release(x, size=20, rng=PCG64(1))
                assert np.all((values >= grid.lower) & (values <= grid.upper))
                assert m.law(x).cdf(grid.size - 1) == 1

    def test_large_epsilon_gives_the_m_estimate(self):
        x = np.random.default_rng(1).normal(40, 10, 1001).round()
        grid = dpf.Grid(0, 100, step=1)
        assert mechanism(psis.Pinball(0.5), grid, 1e3)(x) in (np.median(x) - 1, np.median(x))
        assert abs(mechanism(psis.Huber(1000.0), dpf.Grid(0, 100), 1e6)(x) - x.mean()) < 1e-3

    def test_input_is_never_modified(self):
        x = np.array([np.nan, 3.0, -0.0, np.inf, 1e300])
        x.flags.writeable = False
        before = x.tobytes()
        mechanism()(x)
        assert x.tobytes() == before

    def test_no_records(self):
        with pytest.raises(ValueError, match="empty"):
            mechanism()([])


class TestWithoutBounds:
    PRIOR = Cauchy(0.0, 10.0)

    @pytest.mark.parametrize("center", [0.0, 1e4, -1e8])
    def test_finds_the_data_wherever_they_are(self, center):
        x = np.random.default_rng(1).normal(center, 1, 2000)
        for psi in (psis.Huber(1.0), psis.Logistic(0.6)):
            release = dpf.m_estimate(x, psi, step=2.0**-20, prior=self.PRIOR, epsilon=1.0, rng=PCG64(2))
            assert abs(release - x.mean()) < 0.2

    def test_law(self):
        """The release in the middle against a direct sum; the tails against the integral of the prior."""
        x = np.array([3.0, 4.0, 4.5, 90.0])
        m = mechanism(psis.Huber(2.0), self.PRIOR.grid(1.0), 0.5, self.PRIOR)
        law, middle = m.law(x), 2**51 - 1
        table = reference.huber(2)
        theta = np.arange(-20_000, 20_001)
        sums = np.array([abs(sum(table(int(t) - int(code)) for code in (3, 4, 4, 90))) for t in theta])
        weights = np.exp(-0.5 / 8 * sums) / (100.0 + theta**2)
        tail = math.exp(-0.5) * 2 * math.atan(10 / 20_000.5) / 10
        expected = weights / (math.fsum(weights) + tail)
        assert_allclose(law.pmf(middle + theta), expected, rtol=1e-9)
        assert_allclose(law.cdf([middle - 20_001]), [tail / 2 / (math.fsum(weights) + tail)], rtol=1e-8)

    def test_tails_against_the_digamma_function(self):
        """Sum of 1 / (h^2 + j^2) over j = a..b is Im(digamma(a + ih) - digamma(b + 1 + ih)) / h."""
        from scipy.special import digamma

        prior, n = Cauchy(0, 7), 2
        m = mechanism(psis.Pinball(0.5), prior.grid(1.0), 1.0, prior)
        law, middle = m.law([0.0] * n), 2**51 - 1
        for a, b in ((1, 50), (50, 10**6), (10**6, 10**6 + 10**9)):
            exact = (digamma(a + 7j) - digamma(b + 1 + 7j)).imag / 7
            ratio = (law.cdf(middle + b) - law.cdf(middle + a - 1)) / law.pmf(middle + a) / exact * (1 / (49 + a * a))
            assert ratio == pytest.approx(1, rel=1e-7)

    def test_certified_where_the_grid_is_the_prior_s(self):
        m = mechanism(psis.Huber(2.0), dpf.Grid(-500, 500, step=1), 1.0, Cauchy(0, 2))
        assert dpf.audit.verify(m, n=2, values=9).holds

    def test_missing_go_to_the_center(self):
        grid = Cauchy(12.0, 3.0).grid(0.25)
        assert grid.missing == 12.0
        assert grid.size == 2**52 - 1
        assert grid.decode(grid.encode([math.nan]))[0] == 12.0

    def test_parameters(self):
        with pytest.raises(TypeError, match="needs prior="):
            dpf.m_estimate([1.0], psis.Huber(1), step=1.0, epsilon=1.0)
        for options in ({}, {"bounds": (0, 1), "step": 1.0}, {"bounds": (0, 1), "grid": dpf.Grid(0, 1)}):
            with pytest.raises(TypeError, match="give one of bounds"):
                dpf.m_estimate([1.0], psis.Huber(1), epsilon=1.0, prior=self.PRIOR, **options)
        with pytest.raises(ValueError, match=r"2\*\*53 steps"):
            Cauchy(1e300, 1.0).codes(dpf.Grid(0, 1))
        with pytest.raises(ValueError, match="from 0"):
            Cauchy(1e300, 1.0).grid(1.0)


class TestPsi:
    @pytest.mark.parametrize(
        "grid", [dpf.Grid(0, 12, step=1), dpf.Grid(-1e6, 1e6), Cauchy(0, 1).grid(2.0**-20)], ids=str
    )
    def test_tables_match_their_definition(self, grid):
        last = min(grid.size - 1, 10**15)
        d = np.unique(np.r_[-last, 0, last, (np.geomspace(1, last, 4000)).astype(np.int64)])
        d = np.unique(np.r_[d, -d])
        for psi, error in ((psis.Table(KNOTS, VALUES), 2.0**-20), (psis.Logistic(1.5), 2.0**-12)):
            table = psi.table(grid)
            exact = (
                psis.Logistic(1.5).at if error > 1e-4 else lambda x: float(reference.table(KNOTS, VALUES)(Fraction(x)))
            )
            values = np.array([exact(float(x)) for x in d * grid.step])
            scaled = table(d) / float(table.values[-1] - table.values[0])
            assert np.abs(scaled - values / (values[-1] - values[0])).max() < error
            assert np.all(np.diff(table(d)) >= 0)
            assert len(table.knots) < 250

    def test_few_knots(self):
        huber = psis.Table([-2, 0, 2, 50], [-1, 0, 1, 1]).table(dpf.Grid(0, 100, step=1))
        assert huber.knots.tolist() == [-2, 2]
        assert IntegerTable.of([-9, -1, 3, 7], -4, [0, 1, 0]).knots.tolist() == [-1, 3]
        assert mechanism(psis.Table([-2, 2], [-1, 1])).law([1, 5]).pmf(4) == mechanism().law([1, 5]).pmf(4)

    def test_user_functions_never_get_data(self):
        seen = []

        def watched(d):
            seen.append(d)
            return math.tanh(d)

        m = mechanism(watched)
        assert isinstance(m.psi, psis.Function)
        assert set(seen) == set(range(-12, 13))
        count = len(seen)
        m([3, 4])
        assert len(seen) == count

    @every(
        "psi, error, message",
        [
            (math.cos, ValueError, "must not decrease"),
            (lambda d: -d, ValueError, "must not decrease"),
            (lambda d: 0.0, ValueError, "not be 0 throughout"),
            (lambda d: 2 + math.tanh(d), ValueError, "from at most 0 to at least 0"),
            (lambda d: math.nan, ValueError, "each value of psi must be finite"),
            (lambda d: "1", TypeError, "each value of psi must be a real number"),
            (psis.Table([50, 60], [-1, 1]), ValueError, "from at most 0 to at least 0"),
            ("huber", TypeError, r"one of dpfast\.psi or a function"),
            (psis.Huber, TypeError, r"one of dpfast\.psi or a function"),
        ],
    )
    def test_is_checked_when_the_mechanism_is_built(self, psi, error, message):
        with pytest.raises(error, match=message):
            mechanism(psi)

    @every(
        "make, error, message",
        [
            (lambda: psis.Huber(0), ValueError, "k must be positive"),
            (lambda: psis.Pinball(1.5), ValueError, "q must be between 0 and 1"),
            (lambda: psis.Logistic(-1), ValueError, "scale must be positive"),
            (lambda: psis.Table([0, 0], [-1, 1]), ValueError, "strictly ascending"),
            (lambda: psis.Table([0, 1], [1, -1]), ValueError, "must not decrease"),
            (lambda: psis.Table([0], [1]), ValueError, "the same length, at least 2"),
            (lambda: psis.Table(3, [1]), TypeError, "knots must be a sequence"),
            (lambda: psis.Function(3), TypeError, "function must be callable"),
            (lambda: Cauchy(0, 0), ValueError, "width must be positive"),
            (lambda: Cauchy(math.inf, 1), ValueError, "center must be finite"),
            (lambda: mechanism(prior="cauchy"), ValueError, "prior must be 'uniform'"),
            (lambda: mechanism(prior=3), TypeError, "prior must be 'uniform'"),
            (lambda: mechanism(epsilon=0), ValueError, "epsilon must be positive"),
            (lambda: mechanism(grid=(0, 1)), TypeError, "grid must be a dpfast.Grid"),
        ],
    )
    def test_bad_parameters(self, make, error, message):
        with pytest.raises(error, match=message):
            make()


class TestTheory:
    @pytest.mark.parametrize("prior", ["uniform", Cauchy(0, 1)], ids=str)
    def test_the_sample_size_suffices(self, prior):
        """Normal data, Huber's psi with corner 1: Psi' = P(|X| < 1), changed by 2 d and by at most 0.484 t."""
        options = {"width": 20.0} if prior == "uniform" else {"location": 0.0}
        n = dpf.theory.m_estimator_sample_size(
            0.1,
            epsilon=1.0,
            confidence=0.95,
            bound=1.0,
            derivative=0.6827,
            distribution_radius=1.0,
            parameter_radius=1.0,
            distribution_lipschitz=2.0,
            parameter_lipschitz=0.484,
            plug_in_sample_size=200,
            **options,
        )
        assert 1500 < n < 3500
        grid = dpf.Grid(-10, 10, step=2.0**-12)
        for seed in range(5):
            x = np.random.default_rng(seed).standard_normal(n)
            root = optimize.brentq(lambda theta, x=x: np.clip(theta - x, -1, 1).sum(), -10, 10)
            law = mechanism(psis.Huber(1.0), grid, 1.0, prior).law(x)
            low, high = (int(grid.encode([root + shift])[0]) for shift in (-0.1, 0.1))
            assert law.cdf(low) + 1 - law.cdf(high) < 0.05
            few = mechanism(psis.Huber(1.0), grid, 1.0, prior).law(x[: n // 50])
            assert few.cdf(low) + 1 - few.cdf(high) > 0.05


class TestMechanism:
    def test_value(self):
        for psi in PSIS:
            m = mechanism(psi, prior=Cauchy(3, 1))
            assert m == pickle.loads(pickle.dumps(m)) == mechanism(psi, prior=Cauchy(3.0, 1.0))
            assert hash(m) == hash(pickle.loads(pickle.dumps(m)))
            assert m([3, 4], rng=PCG64(1)) == pickle.loads(pickle.dumps(m))([3, 4], rng=PCG64(1))
            assert dataclasses.replace(m, epsilon=2.0) == mechanism(psi, epsilon=2.0, prior=Cauchy(3, 1))
            assert m != mechanism(psi)

    def test_statement(self):
        m = mechanism(prior=Cauchy(3, 1))
        assert "a Cauchy prior around 3, width 1" in repr(m)
        assert m.privacy == dpf.Privacy(1.0)
        assert m.privacy_map(2).epsilon == 2.0

    def test_release(self):
        m = mechanism()
        assert m.release([1, 2, 3], size=(2, 3), rng=PCG64(1)).shape == (2, 3)
        assert isinstance(m([1, 2, 3]), float)
        assert m([1, 2, 3], rng=PCG64(1)) == dpf.m_estimate([1, 2, 3], m.psi, grid=m.grid, epsilon=1.0, rng=PCG64(1))
        x = np.array([1, 2, 3])
        assert dpf.m_estimate(x, m.psi, bounds=(0, 12), epsilon=1.0, rng=PCG64(1)) == m(x, rng=PCG64(1))
