"""Means with a private number of records: the law on pairs of a sum and a count, certified on all small data sets."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import GlobalSensitivity, Grid, Privacy
from dpfast.laws import SumAndCount
from dpfast.laws.vectors import VectorNoise
from dpfast.statistics import Count, Mean, Sum
from dpfast.streaming import CodeSums
from tests.cases import every

GRID = Grid(0, 2, step=1)
EPSILON = 2.0


def mean(grid=GRID, epsilon=EPSILON):
    return GlobalSensitivity(Mean(), grid=grid, epsilon=epsilon, neighbors="add-remove")


def pairs(h, reach):
    """All pairs that are possible, |c| up to `reach`."""
    s, c = np.meshgrid(np.arange(-(reach + 2) * h, (reach + 2) * h + 1), np.arange(-reach, reach + 1))
    z = np.stack([s, c], axis=-1).reshape(-1, 2)
    return z[(z[:, 0] - h * z[:, 1]) % 2 == 0]


class Weighted(VectorNoise):
    """Noise with ``P(z)`` proportional to ``exp(-norm(z))`` on given pairs."""

    def __init__(self, norm, z):
        super().__init__(2)
        self.norm = norm
        self.log_sum = math.log(math.fsum(np.exp(-norm(z.T))))

    def logpmf(self, z):
        return -self.norm(np.moveaxis(z, -1, 0)) - self.log_sum

    def fill(self, source, out):
        raise AssertionError


@dataclass
class Claimed:
    """A mechanism on a window of noisy pairs, which leaves out less than 1e-9; `norm` and `shift` make a control."""

    mechanism: GlobalSensitivity
    reach: int
    norm: object = None
    shift: int = 0  # of the codes from the centre
    floats: bool = False  # whether the means are compared, not the pairs

    @property
    def grid(self):
        return self.mechanism.grid

    @property
    def privacy(self):
        return self.mechanism.privacy

    def law(self, x):
        law, h = self.mechanism.law(x), self.grid.size - 1
        law.center = law.center + np.array([self.shift * len(x), 0])
        if self.norm is not None:
            law.noise = Weighted(self.norm, pairs(h, 3 * self.reach))
        window = pairs(h, self.reach)
        law.outcomes = lambda: window
        if not self.floats:
            law.value = lambda found: found
        return law


class TestLaw:
    @every("size", [2, 3, 4])
    @every("floats", [False, True])
    def test_certificate(self, size, floats):
        mechanism = mean(Grid(1, size, step=1))
        certificate = dpf.audit.verify(Claimed(mechanism, 20, floats=floats), n=2, values=size)
        assert certificate.holds
        if not floats:
            assert certificate.epsilon == pytest.approx(EPSILON, abs=1e-12)

    def test_the_control_holds_with_the_right_norm(self):
        claimed = Claimed(mean(), 20, norm=lambda z: EPSILON * np.maximum(np.abs(z[0]) / 2, np.abs(z[1])))
        assert dpf.audit.verify(claimed, n=2, values=3).holds

    @every(
        "norm, shift",
        [
            (lambda z: EPSILON * np.maximum(np.abs(z[0]) / 1, np.abs(z[1])), 0),  # half of the width, minus 1
            (lambda z: EPSILON * (np.abs(z[0]) / 2 + np.abs(z[1])), 0),  # the count beside the sum, both at epsilon
            (None, 2),  # a sum that is not centred
        ],
    )
    @every("floats", [False, True])
    def test_controls_are_rejected(self, norm, shift, floats):
        certificate = dpf.audit.verify(Claimed(mean(), 20, norm, shift, floats), n=2, values=3)
        assert not certificate.holds
        assert certificate.epsilon > EPSILON + 0.01

    def test_noise_of_the_count_2_percent_too_small_is_rejected(self):
        claimed = Claimed(mean(), 20, norm=lambda z: EPSILON * np.maximum(np.abs(z[0]) / 2, np.abs(z[1]) * 1.02))
        certificate = dpf.audit.verify(claimed, n=2, values=3)
        assert not certificate.holds
        assert certificate.epsilon == pytest.approx(EPSILON * 1.02, abs=1e-12)

    def test_centers(self):
        x = np.random.default_rng(1).normal(0, 1, 100)
        grid = Grid(-1, 2, step=2.0**-10)
        law = mean(grid).law(x)
        assert law.center.tolist() == [2 * int(grid.encode(x).sum()) - 100 * (grid.size - 1), 100]
        assert isinstance(law.noise, SumAndCount)
        assert (law.noise.half_width, law.noise.epsilon) == (grid.size - 1, 2)
        assert mean(grid).law(np.array([])).center.tolist() == [0, 0]
        assert mean().privacy == Privacy(EPSILON, 0.0, "add-remove")
        assert mean().privacy_profile.parts == (("pure", EPSILON, 1),)

    @pytest.mark.parametrize("grid", [Grid(0, 5, step=1), Grid(0, 4, step=1), Grid(0, 2.0**50, step=1)])
    def test_what_is_clamped(self, grid):
        """Sums beyond 2**61 half steps: one more record still changes the pair by at most (h, 1), on the lattice."""
        h, mechanism = grid.size - 1, mean(grid)
        for n in (2**61 // h - 2, 2**61 // h - 1, 2**61 // h, 2**61 // h + 5, 2**61 - 2, 2**61 - 1, 2**61 + 3):
            for codes in (0, n * h, n * h // 2, n * h - h // 2):
                center = mechanism.law_of(CodeSums(n, codes, 0)).center.astype(object)
                assert np.abs(center).max() < 2**61
                assert (center[0] - h * center[1]) % 2 == 0
                for more in (0, h // 2, h):
                    other = mechanism.law_of(CodeSums(n + 1, codes + more, 0)).center.astype(object)
                    assert abs(other[0] - center[0]) <= h
                    assert abs(other[1] - center[1]) <= 1


class TestReleases:
    def test_quotients(self):
        mechanism = mean(Grid(-3, 5, step=0.5))  # h = 16
        decode = mechanism.law(np.array([])).value
        found = decode(np.array([[0, 4], [7, 1], [16, 1], [400, 3], [-400, 3], [5, 0], [5, -3], [-(2**62), 2**62]]))
        assert found.tolist() == [1, 2.75, 5, 5, -3, 1, 1, 0.75]
        assert type(decode(np.array([1, 1]))) is float
        assert decode(np.zeros((2, 3, 2), int)).shape == (2, 3)

    @every("x", [[], [3.0], [math.nan] * 5, [1e308] * 1000])
    @every("epsilon", [1e-6, 1.0, 1e9])
    def test_every_release_is_a_float_within_the_bounds(self, x, epsilon):
        for seed in range(5):
            released = dpf.mean(np.array(x), bounds=(-1, 7), epsilon=epsilon, neighbors="add-remove", rng=PCG64(seed))
            assert type(released) is float
            assert -1 <= released <= 7

    def test_bounds_at_the_ends_of_doubles(self):
        grid = Grid(-(2.0**1023), 2.0**1023, step=2.0**1000)
        for x in ([], [2.0**1023], [-(2.0**1023)] * 3):
            released = mean(grid, 1e3).release(np.array(x), size=50, rng=PCG64(1))
            assert np.isfinite(released).all()
        assert np.abs(released).max() <= 2.0**1023

    def test_much_epsilon_gives_the_mean(self):
        x = np.random.default_rng(1).integers(0, 40, 500)
        released = dpf.mean(x, bounds=(0, 50), epsilon=1e4, neighbors="add-remove")
        assert released == pytest.approx(x.mean(), abs=1e-12)
        assert dpf.sum(x, bounds=(0, 50), epsilon=1e4, neighbors="add-remove") == x.sum()

    @pytest.mark.parametrize(("bounds", "gain", "today"), [((0, 100), 1.3, 2.8), ((-100, 100), 1.3, 1.3)])
    def test_error_against_a_split_budget(self, bounds, gain, today):
        """Root mean squares: of a centred sum and a count at epsilon / 2 each, and of `Sum` and `Count` as they are."""
        rng, n, m = np.random.default_rng(1), 500, 20_000
        grid = Grid(*bounds, step=1)
        x = rng.normal(60, 10, n).clip(0, 100).round()
        h = grid.size - 1

        def error(means):
            return math.sqrt(np.mean((means.clip(*bounds) - x.mean()) ** 2))

        one = error(mean(grid, 1.0).release(x, size=m, rng=rng))
        middle = sum(bounds) / 2
        noise = [dpf.noise.discrete_laplace(scale, m, rng=rng) for scale in (2.0 * h, 2.0)]
        split = error(middle + ((x - middle).sum() + noise[0] / 2) / (n + noise[1]))
        parts = [
            GlobalSensitivity(statistic, grid=grid, epsilon=0.5, neighbors="add-remove").release(x, size=m, rng=rng)
            for statistic in (Sum(), Count())
        ]
        assert split > gain * one
        assert error(parts[0] / parts[1]) > today * one

    def test_groups_keep_their_sizes_private(self):
        x, labels = np.arange(300.0) % 7, np.arange(300) % 3
        released = dpf.by_group(mean(Grid(0, 6, step=1), 50.0), x, labels=labels, num_groups=5, rng=PCG64(1))
        assert released.shape == (5,)
        np.testing.assert_allclose(released[:3], [x[labels == g].mean() for g in range(3)], atol=0.1)

    def test_bad_parameters(self):
        for options, message in (
            ({"neighbors": "local"}, "neighbors must be one of"),
            ({"delta": 0.1, "method": "global-sensitivity"}, "delta must be 0"),
            ({"epsilon": 1e-9}, "use a coarser step"),
        ):
            with pytest.raises(ValueError, match=message):
                dpf.mean([1.0], **{"bounds": (0, 1), "epsilon": 1.0, "neighbors": "add-remove", **options})
        with pytest.raises(ValueError, match="noise must be 'auto' for the mean"):
            GlobalSensitivity(Mean(), grid=GRID, epsilon=1.0, neighbors="add-remove", noise="staircase")
        with pytest.raises(TypeError, match="no error is known"):
            mean().error(100, deviation=1.0)


def test_sums_of_all_orders_are_one_law():
    """The law depends on the pair only."""
    laws = [mean().law(np.array(x)).center.tolist() for x in itertools.permutations([0.0, 1.0, 2.0])]
    assert laws == [[0, 3]] * 6
