"""Noise on arrays: shapes, streams, grids, input; the laws are in test_samplers.py."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64

from dpfast import Grid, noise
from dpfast._kernels import _balls, _samplers
from dpfast.random import BLOCK, streams
from tests.cases import every
from tests.reference import laws
from tests.statistical import chi_square_rejects
from tests.untouchable import Untouchable

pytestmark = pytest.mark.kernel


def staircase(scale, *size, **options):
    return noise.staircase(scale, 10, *size, **options)


def fill_staircase(source, scale, out):
    _samplers.fill_staircase(source, scale, 10, _balls.staircase_r(scale, 10), out)


KINDS = {
    "laplace": (noise.laplace, _samplers.fill_rounded_laplace, laws.rounded_laplace),
    "discrete_laplace": (noise.discrete_laplace, _samplers.fill_discrete_laplace, laws.discrete_laplace),
    "staircase": (staircase, fill_staircase, lambda z, scale: laws.staircase(z, scale, 10, 2)),
    "geometric": (noise.geometric, _samplers.fill_geometric, laws.geometric),
    "gaussian": (noise.gaussian, _samplers.fill_rounded_gaussian, laws.rounded_gaussian),
}


@every("kind", KINDS)
def test_shapes(kind):
    draw = KINDS[kind][0]
    assert isinstance(draw(3.0), int)
    for size, shape in ((0, (0,)), (3, (3,)), ((2, 3), (2, 3)), ((), ()), ((0, 4), (0, 4)), (np.int8(2), (2,))):
        x = draw(3.0, size, rng=PCG64(1))
        assert (x.shape, x.dtype) == (shape, np.int64)


@every("kind", KINDS)
def test_blocks_are_the_kernel_on_streams(kind):
    draw, fill, _ = KINDS[kind]
    n = 2 * BLOCK + 7
    expected = np.empty(n, np.int64)
    for i, source in enumerate(streams(PCG64(5), 3)):
        fill(source, 12.5, expected[i * BLOCK : (i + 1) * BLOCK])
    for workers in (1, 2, 5):
        np.testing.assert_array_equal(draw(12.5, n, rng=PCG64(5), workers=workers), expected)


@every("kind", KINDS)
@every("secure", [True, False])
def test_law_in_blocks_and_threads(kind, secure):
    draw, _, pmf = KINDS[kind]
    x = draw(Fraction(5, 2), 3 * BLOCK, rng=None if secure else PCG64(2), workers=2)
    cells = np.arange(-40, 41)
    counts = [np.count_nonzero(x == z) for z in cells]
    for scale, wrong in ((2.5, False), (2.5 * 0.9, True), (2.5 * 1.1, True)):
        p = [float(pmf(int(z), scale)) for z in cells]
        observed, expected = [*counts, x.size - sum(counts)], [*p, max(0.0, 1 - math.fsum(p))]
        assert chi_square_rejects(observed, expected) == wrong


@every(
    "scale, error",
    [
        *((scale, ValueError) for scale in (0, -1, math.nan, math.inf, 2.0**57)),
        *((scale, TypeError) for scale in ("1", True, None, 1j, np.complex128(1))),
    ],
)
def test_bad_scale(scale, error):
    for kind, (draw, *_) in KINDS.items():
        with pytest.raises(error, match="sigma must be" if kind == "gaussian" else "scale must be"):
            draw(scale)
    for name, add in (("scale", noise.add_laplace), ("sigma", noise.add_gaussian)):
        with pytest.raises(error, match=f"{name} must be"):
            add(Untouchable(), grid=Grid(0, 1, step=1), **{name: scale})


@every("options", [{"workers": 0}, {"workers": 1.0}, {"rng": 3}, {"size": -1}, {"size": (2, -1)}])
def test_bad_arguments(options):
    with pytest.raises((TypeError, ValueError), match=f"{next(iter(options))} must be"):
        noise.laplace(1.0, **options)


@pytest.mark.filterwarnings("ignore:noise of scale")
class TestAddLaplace:
    GRID = Grid(-1, 10, step=0.25, missing=3)

    def noiseless(self, values):
        return noise.add_laplace(values, scale=1e-6, grid=self.GRID, rng=PCG64(1))

    def test_values_go_through_the_door(self):
        x = [math.nan, None, math.inf, -math.inf, 0.3, -0.0, 10**400, 5e-324, 11, True]
        assert self.noiseless(x).tolist() == [3, 3, 10, -1, 0.25, 0, 10, 0, 10, 1]
        assert self.noiseless([[1, None], [2.5, 7]]).tolist() == [[1, 3], [2.5, 7]]
        assert self.noiseless(2.6) == 2.5
        assert self.noiseless(np.ma.array([5.0, 7.0], mask=[False, True])).tolist() == [5, 3]
        assert self.noiseless(np.ones((2, 3, 4), np.int8)).shape == (2, 3, 4)
        turned = np.arange(6.0).reshape(2, 3).T[::-1]
        assert self.noiseless(turned).tolist() == turned.tolist()

    @pytest.mark.host
    def test_nullable_columns(self):
        pandas = pytest.importorskip("pandas")
        assert self.noiseless(pandas.Series([1, None], dtype="Int64")).tolist() == [1, 3]

    @pytest.mark.parametrize("values", [np.array(["secret"]), np.array(["7"]), np.array([1j]), [[1], [1, 2]]])
    def test_refused(self, values):
        with pytest.raises(TypeError, match="values must hold numbers") as error:
            self.noiseless(values)
        assert "secret" not in str(error.value)

    @pytest.mark.parametrize("options", [{"workers": 0}, {"rng": 3}, {"grid": 3}])
    def test_told_before_data(self, options):
        with pytest.raises((TypeError, ValueError), match=f"{next(iter(options))} must be"):
            noise.add_laplace(Untouchable(), **{"scale": 1.0, "grid": self.GRID, **options})

    def test_law(self):
        """Integer noise of scale / step, on the rounded value, not clamped."""
        values = noise.add_laplace(np.full(200_000, 9.9), scale=2.0, grid=self.GRID, rng=PCG64(4))
        steps = values / 0.25 - 40
        assert (steps == np.rint(steps)).all()
        assert values.max() > 10
        cells = np.arange(-100, 101)
        counts = [np.count_nonzero(steps == z) for z in cells]
        for scale, wrong in ((8.0, False), (7.2, True), (8.8, True)):
            p = [float(laws.rounded_laplace(int(z), scale)) for z in cells]
            assert chi_square_rejects([*counts, values.size - sum(counts)], [*p, 1 - math.fsum(p)]) == wrong

    def test_input_is_not_modified(self):
        x = np.array([1.0, math.nan])
        x.flags.writeable = False
        self.noiseless(x)
        assert math.isnan(x[1])

    def test_largest_scale(self):
        grid = Grid(0, 4, step=1)
        values = noise.add_laplace(np.zeros(1000), scale=2.0**56, grid=grid, rng=PCG64(1))
        assert np.isfinite(values).all()
        assert np.abs(values).max() > 2.0**57

    @pytest.mark.parametrize("extreme", [2**63 - 1, 2**62 + 2**52, 2**62])
    def test_extreme_noise_neither_overflows_nor_reveals_data(self, extreme, monkeypatch):
        """Whatever the values: clamped noise on unclamped sums would put them into the low bits."""

        def fill(bit_generator, scale, out):
            out[:] = extreme * np.resize([1, -1], out.size)

        monkeypatch.setattr(noise._samplers, "fill_rounded_laplace", fill)
        grid, decoded = Grid(0, 2**52 - 1, step=1), []

        def decode(self, codes):
            decoded.append(codes.tolist())
            return np.asarray(codes, dtype=np.float64)

        monkeypatch.setattr(Grid, "decode", decode)  # before doubles forget the low bits
        every = ([0.0, 0.0], [2.0**52, 2.0**52], [3.0, 7.0], [1.0, 2.0**51 + 1])
        for values in every:
            noise.add_laplace(values, scale=1.0, grid=grid, rng=PCG64(1))
        assert decoded == [[2**62 - grid.size, grid.size - 2**62]] * len(every)

        # The control: with the noise clamped alone, the sums differ in their low bits.
        clamped = [np.clip(extreme, -(2**62), 2**62) + int(grid.encode(values)[0]) for values in every]
        assert len(set(clamped)) > 1

    def test_the_scale_is_limited_in_steps(self):
        """Not in data units: of a coarse grid more, of a fine one less."""
        coarse = Grid(0, 2.0**90, step=2.0**60)
        assert np.abs(noise.add_laplace(np.zeros(100), scale=2.0**100, grid=coarse, rng=PCG64(1))).max() > 2.0**100
        assert noise.add_laplace([2.0**61], scale=5e-324, grid=coarse) == 2.0**61
        with pytest.raises(ValueError, match=r"at most 2\*\*56 steps of 0.25, not"):
            noise.add_laplace([0], scale=2.0**55, grid=self.GRID)
        beyond = noise.add_laplace(np.zeros(9), scale=1e308, grid=Grid(0, 1e308, step=2.0**1000), rng=PCG64(1))
        assert np.isinf(beyond).any()  # and no warning

    def test_one_worker_for_each_core(self):
        x = np.linspace(0, 9, 3 * BLOCK)
        one, all_cores = (noise.add_laplace(x, scale=1.0, grid=self.GRID, rng=PCG64(1), workers=w) for w in (1, -1))
        np.testing.assert_array_equal(one, all_cores)


@pytest.mark.filterwarnings("ignore:noise of scale")
class TestAddGaussian:
    """What differs from `add_laplace`, with which it shares all but the kernel."""

    GRID = TestAddLaplace.GRID

    @pytest.mark.parametrize("options", [{"workers": 0}, {"rng": 3}, {"grid": 3}])
    def test_told_before_data(self, options):
        with pytest.raises((TypeError, ValueError), match=f"{next(iter(options))} must be"):
            noise.add_gaussian(Untouchable(), **{"sigma": 1.0, "grid": self.GRID, **options})

    def test_values_are_rounded_to_the_grid(self):
        x = [[math.nan, 0.3], [math.inf, -5]]
        assert noise.add_gaussian(x, sigma=1e-3, grid=self.GRID).tolist() == [[3, 0.25], [10, -1]]

    def test_law(self):
        """Integer noise of sigma / step, on the rounded value, not clamped."""
        values = noise.add_gaussian(np.full(200_000, 9.9), sigma=2.0, grid=self.GRID, rng=PCG64(4))
        steps = values / 0.25 - 40
        assert (steps == np.rint(steps)).all()
        assert values.max() > 10
        cells = np.arange(-50, 51)
        counts = [np.count_nonzero(steps == z) for z in cells]
        for sigma, wrong in ((8.0, False), (7.2, True), (8.8, True)):
            p = [float(laws.rounded_gaussian(int(z), sigma)) for z in cells]
            assert chi_square_rejects([*counts, values.size - sum(counts)], [*p, 1 - math.fsum(p)]) == wrong

    def test_sigma_is_limited_in_steps(self):
        coarse = Grid(0, 2.0**90, step=2.0**60)
        assert np.abs(noise.add_gaussian(np.zeros(100), sigma=2.0**100, grid=coarse, rng=PCG64(1))).max() > 2.0**100
        with pytest.raises(ValueError, match=r"sigma must be positive and at most 2\*\*56 steps of 0.25, not"):
            noise.add_gaussian([0], sigma=2.0**55, grid=self.GRID)
