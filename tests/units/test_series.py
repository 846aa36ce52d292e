"""Orthogonal series: table, sensitivity, exact sums, laws of neighbours, the density, rates and calculators."""

import copy
import doctest
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.random import PCG64
from numpy.testing import assert_allclose, assert_array_equal

import dpfast as dpf
from dpfast import Grid, Privacy, SeriesCoefficients, SeriesDensity
from dpfast._kernels import _samplers, _series
from dpfast.densities import basis as basis_tables
from dpfast.densities import series
from dpfast.laws import DiscreteLaplace, Independent, NoisyIntegers, ScalarLaw
from dpfast.theory import series as calculators
from dpfast.theory import series_error, series_sensitivity, series_terms
from tests.cases import every
from tests.reference import series as reference
from tests.statistical import chi_square_rejects, kolmogorov_rejects

pytestmark = pytest.mark.kernel

BASES = ("cosine", "trigonometric")
EVERY = every("basis", BASES)
SQRT2 = math.sqrt(2)


def mechanism(terms=4, grid=None, epsilon=1.0, basis="cosine"):
    return SeriesCoefficients(terms, grid=grid or Grid(0, 1), epsilon=epsilon, basis=basis)


def noisy(center, scale, most):
    return NoisyIntegers(center, noise=Independent(DiscreteLaplace(scale), center.size), most=most, decode=np.asarray)


def density_of(coefficients, basis="cosine", grid=None):
    return SeriesDensity(np.array(coefficients), grid or Grid(0, 1), 1000, Privacy(1.0), basis)


def phi(terms, basis, nodes, bits=20):
    """The table as the mechanism reads it, (terms, nodes)."""
    starts, strides = basis_tables.phases(terms, basis, nodes)
    places = (starts[:, None] + strides[:, None] * np.arange(nodes)) % (4 * nodes)
    return basis_tables.cosine_table(nodes, bits)[places].astype(np.int64)


class TestTable:
    @every("nodes", [2, 3, 101, 1000, 2**14])
    def test_is_the_rounded_cosine(self, nodes):
        """Within 2**-10 of half a unit everywhere, as the slack of the sensitivity allows."""
        table = basis_tables.cosine_table(nodes, 20)
        assert table.shape == (4 * nodes,)
        with mp.workdps(30):
            for q in range(0, 4 * nodes, max(1, nodes // 500)):
                assert abs(int(table[q]) - mp.ldexp(mp.cospi(mpf(q) / (2 * nodes)), 20)) <= 0.5 + 2.0**-10

    @EVERY
    @pytest.mark.parametrize("nodes", [2, 3, 7, 16])
    def test_holds_the_basis(self, nodes, basis):
        terms = nodes - 1
        expected = [[reference.rounded(j, basis, i, nodes, 20) for i in range(nodes)] for j in range(1, terms + 1)]
        assert_array_equal(phi(terms, basis, nodes), expected)

    @EVERY
    def test_is_orthonormal(self, basis):
        values = phi(12, basis, 2**14) / 2**20
        assert_allclose(2 * values @ values.T / 2**14, np.eye(12), atol=1e-6)
        assert_allclose(values.mean(axis=1), 0, atol=1e-6)

    def test_cannot_be_written(self):
        with pytest.raises(ValueError, match="read-only"):
            basis_tables.cosine_table(16, 20)[0] = 0


class TestSensitivity:
    @EVERY
    @pytest.mark.parametrize(("terms", "nodes"), [(1, 2), (1, 5), (2, 5), (3, 4), (4, 9), (6, 12)])
    def test_of_few_nodes_is_exact(self, terms, nodes, basis):
        assert series._sensitivity(terms, basis, nodes, 20) == reference.sensitivity(terms, basis, nodes, 20)

    @EVERY
    @pytest.mark.parametrize("terms", [1, 2, 3, 4, 5, 8, 13, 20, 50])
    def test_of_many_nodes_bounds_every_pair_tightly(self, terms, basis, monkeypatch):
        """The branch for many nodes, on 256 of them, against all pairs: within 1.5 % and 5.5 %."""
        exact = series._sensitivity(terms, basis, 256, 20)
        monkeypatch.setattr(series, "_COARSE", 0)
        bound = series._sensitivity.__wrapped__(terms, basis, 256, 20)
        assert exact <= bound <= (1.015 if basis == "cosine" else 1.055) * exact

    def test_control(self):
        """The published c0 m is below the largest change for every number of terms."""
        for terms in (1, 2, 4, 8):
            assert terms << 20 < reference.sensitivity(terms, "cosine", 32, 20)

    def test_of_a_constant_is_one(self):
        """On two points, the first function of the trigonometric basis has the same value."""
        m = SeriesCoefficients(1, grid=Grid(0, 1, step=1), epsilon=1.0, basis="trigonometric")
        assert (m.sensitivity, m.scale) == (1, 1)
        assert np.isfinite(m([0, 1, 1])).all()

    @EVERY
    @pytest.mark.parametrize("terms", [1, 2, 3, 4, 7, 8, 20, 40])
    def test_is_the_continuous_one(self, terms, basis):
        expected = series_sensitivity(terms, basis=basis)
        assert_allclose(SQRT2 * series._sensitivity(terms, basis, 2**14, 20) / 2**20, expected, rtol=5e-5)

    def test_specified_values(self):
        """Numerical suprema, computed independently."""
        cosine = {1: 2.8284, 2: 4.4194, 4: 7.8058, 8: 14.6628, 20: 35.3014, 40: 69.7232}
        trigonometric = {1: 2.8284, 2: 4.0, 4: 6.8374, 8: 12.4315, 20: 29.113, 40: 56.8745}
        squared = {1: 2.8284, 2: 3.2077, 4: 4.2349, 8: 5.7948, 20: 8.987, 40: 12.6491}
        periodic = {1: 2.8284, 2: 2.8284, 4: 3.5355, 8: 4.6987, 20: 7.1549, 40: 9.9924}
        for terms, value in cosine.items():
            assert value - 1e-4 <= series_sensitivity(terms) <= value * (1 + 3e-5)
            assert_allclose(series_sensitivity(terms, norm=2), squared[terms], rtol=2e-5)
        for terms, value in trigonometric.items():
            assert value - 1e-4 <= series_sensitivity(terms, basis="trigonometric") <= 1.046 * value
            assert_allclose(series_sensitivity(terms, basis="trigonometric", norm=2), periodic[terms], rtol=2e-5)


class TestSums:
    @EVERY
    @pytest.mark.parametrize(("size", "step"), [(4, 1.0), (9, 1.0), (2**20, 2.0**-10), (20_001, 1.0)])
    def test_equal_the_twin(self, size, step, basis):
        grid = Grid(0, (size - 1) * step, step=step)
        codes = [0, size - 1, size // 3, size // 2, size // 3]
        law = mechanism(3, grid, basis=basis).law(grid.decode(codes))
        nodes = min(size, 2**14)
        assert law.center.tolist() == reference.sums(codes, 3, basis, nodes, size, 20)

    @EVERY
    def test_are_the_sums_of_the_basis(self, basis):
        x = np.random.default_rng(1).beta(2, 3, 100_000)
        m = mechanism(6, basis=basis)
        law = m.law(x)
        j = np.arange(1, 7)
        angles = np.pi * np.outer(x, j if basis == "cosine" else j + j % 2)
        values = np.cos(angles) if basis == "cosine" else np.where(j % 2, np.cos(angles), np.sin(angles))
        assert_allclose(law.value(law.center), SQRT2 * values.mean(axis=0), atol=2e-6)

    @every("size", [2, 3, 2**14, 2**14 + 1, 2**32, 2**52])
    def test_every_code_has_a_node(self, size):
        nodes = min(size, 2**14)
        codes = np.unique(np.clip([0, 1, size // 2 - 1, size // 2, size - 2, size - 1], 0, size - 1))
        counts = np.zeros(nodes, np.int64)
        _series.add_counts(codes, (nodes << 63) // size, counts)
        assert_array_equal(np.repeat(np.arange(nodes), counts), [reference.node(int(c), nodes, size) for c in codes])
        assert (counts[0] > 0, counts[-1] > 0) == (True, True)

    @EVERY
    def test_order_dtype_stride_and_workers_do_not_matter(self, basis):
        x = np.random.default_rng(2).integers(0, 100, 200_001)
        m = mechanism(5, Grid(0, 99, step=1), basis=basis)
        center = m.law(x).center
        frozen = x.astype(np.float64)
        frozen.flags.writeable = False
        for y in (x[::-1], np.sort(x), x.astype(np.float32), x.astype(np.uint8), x.repeat(2)[::2], frozen):
            for workers in (1, 2, 3):
                assert_array_equal(m.law(y, workers=workers).center, center)
        assert_array_equal(x, np.random.default_rng(2).integers(0, 100, 200_001))

    def test_missing_and_outside(self):
        m = mechanism(3, Grid(0, 1, missing=0.5))
        special = m.law([np.nan, np.inf, -np.inf, -5.0, 1e300, -0.0, 5e-324]).center
        assert_array_equal(special, m.law([0.5, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]).center)
        assert_array_equal(special, m.law(np.array([0.5, 1, 0, 0, 1, 0, 0], np.float16)).center)


class Flat(ScalarLaw):
    """A vector law with every coordinate clamped to +-radius and numbered outcomes, for the audit to enumerate."""

    def __init__(self, law, radius):
        self.side = 2 * radius + 1
        self.support = (0, self.side**law.center.size - 1)
        self.center, self.radius, self.rate = law.center, radius, float(1 / law.noise.noise.scale)

    def logpmf(self, k):
        digits = np.stack(np.unravel_index(np.asarray(k), (self.side,) * self.center.size), axis=-1) - self.radius
        z = digits - self.center
        inside = math.log(math.tanh(self.rate / 2)) - self.rate * np.abs(z)
        # P(Z >= z) = e^(-z / s) / (1 + e^(-1 / s)), z >= 0: the atoms at the ends, which lie beyond every center.
        atom = -self.rate * np.abs(z) - math.log1p(math.exp(-self.rate))
        return np.where(np.abs(digits) == self.radius, atom, inside).sum(axis=-1)

    def value(self, k):
        return np.asarray(k, dtype=np.float64)

    def cdf(self, k):
        return np.cumsum(self.pmf(np.arange(self.support[1] + 1)))[k]

    def sample(self, size=None, rng=None):
        raise NotImplementedError


class Clamped:
    """The mechanism followed by clamping, which does not lessen its loss: for `audit.verify`."""

    def __init__(self, inner, radius):
        self.grid, self.privacy, self._inner, self._radius = inner.grid, inner.privacy, inner, radius

    def law(self, x):
        return Flat(self._inner.law(x), self._radius)


class TestPrivacy:
    @pytest.fixture(autouse=True)
    def coarse(self, monkeypatch):
        """A table of multiples of 1/4, so that all outputs can be listed."""
        monkeypatch.setattr(series, "BITS", 2)

    @EVERY
    @pytest.mark.parametrize("epsilon", [1e-3, 0.5, 2.0, 20.0])
    @pytest.mark.parametrize(("terms", "n", "radius"), [(1, 1, 6), (1, 3, 14), (2, 2, 9), (3, 1, 5)])
    def test_certified_and_tight(self, terms, n, radius, epsilon, basis):
        m = mechanism(terms, Grid(0, 3, step=1), epsilon, basis)
        certificate = dpf.audit.verify(Clamped(m, radius), n=n, values=4)
        assert certificate.holds
        assert certificate.epsilon == pytest.approx(epsilon, rel=1e-9)

    @EVERY
    def test_the_published_scale_is_rejected(self, basis, monkeypatch):
        """Laplace noise of scale c0 m / (n epsilon): twice the loss for one term, on records at both ends."""
        monkeypatch.setattr(SeriesCoefficients, "sensitivity", property(lambda self: self.terms << 2))
        grid = Grid(0, 63, step=1)
        certificate = dpf.audit.verify(Clamped(mechanism(1, grid, 0.5, basis), 14), n=2, values=3)
        assert not certificate.holds
        assert certificate.epsilon == pytest.approx(1.0, rel=1e-9)

    @EVERY
    @pytest.mark.parametrize("terms", [1, 2])
    def test_less_noise_is_rejected(self, terms, basis, monkeypatch):
        right = SeriesCoefficients.sensitivity.fget
        monkeypatch.setattr(SeriesCoefficients, "sensitivity", property(lambda self: right(self) * Fraction(9, 10)))
        m = mechanism(terms, Grid(0, 3, step=1), 1.0, basis)
        assert not dpf.audit.verify(Clamped(m, 9), n=2, values=4).holds


class TestLaw:
    @EVERY
    def test_loss_of_every_pair_of_codes(self, basis):
        """Of the real table, exact: sum |difference| / scale, reached beyond both centers, at most epsilon."""
        for terms, size in ((1, 8), (3, 8), (5, 16)):
            m = mechanism(terms, Grid(0, size - 1, step=1), 0.7, basis)
            worst = Fraction(0)
            for a, b in itertools.combinations(range(size), 2):
                one, other = (m.law([0.0, code]).center.tolist() for code in (a, b))
                k = [2**40 if y < x else -(2**40) for x, y in zip(one, other, strict=True)]
                loss = reference.log_ratio(one, other, m.scale, k)
                assert_allclose(m.law([0.0, a]).logpmf(k) - m.law([0.0, b]).logpmf(k), float(loss), atol=1e-6)
                worst = max(worst, loss)
            assert worst == Fraction(0.7)

    def test_logpmf(self):
        law = noisy(np.array([3, -5]), Fraction(7, 2), most=2**61)
        grid = np.array(list(itertools.product(range(-150, 150), repeat=2)))
        assert_allclose(math.fsum(np.exp(law.logpmf(grid))), 1, rtol=1e-12)
        with mp.workdps(30):
            expected = 2 * mp.log(mp.tanh(mpf(1) / 7)) - mpf(2) / 7 * (4 + 1)
        assert_allclose(law.logpmf([7, -4]), float(expected), rtol=1e-14)

    def test_draws_fit_and_would_not_at_another_scale(self):
        law = noisy(np.array([3, -5]), Fraction(3), most=2**61)
        draws = law.sample(100_000, PCG64(1))
        assert draws.shape == (100_000, 2)
        k = np.arange(-40, 41)
        for column, center in enumerate(law.center):
            counts = np.array([np.count_nonzero(draws[:, column] == center + z) for z in k])
            for factor in (Fraction(9, 10), Fraction(1), Fraction(11, 10)):
                p = math.tanh(1 / (6 * factor)) * np.exp(-np.abs(k) / float(3 * factor))
                observed, expected = [*counts, 100_000 - counts.sum()], [*p, max(0.0, 1 - p.sum())]
                assert chi_square_rejects(observed, expected) == (factor != 1)
        assert abs(np.corrcoef(draws.T)[0, 1]) < 0.02

    @every(
        "most, clamp",
        [(2**63 - 1, 2**61), (2**62, 2**61), (2**61 + 2**60, 2**61), (2**63 - 1, 2**62), (2**62 + 2**60, 2**62)],
    )
    def test_extreme_noise_neither_overflows_nor_reveals_data(self, most, clamp, monkeypatch):
        """Whatever the sums: clamped noise on unclamped sums would put them into the low bits."""

        def fill(bit_generator, scale, out):
            out[:] = most * np.resize([1, -1], out.size)

        monkeypatch.setattr(_samplers, "fill_discrete_laplace", fill)
        for center in ([2**61 - 1, 1 - 2**61], [0, 0], [3, -7], [-(2**59), 2**59]):
            law = noisy(np.array(center), Fraction(2**56), most=clamp)
            assert law.sample(4, PCG64(1)).tolist() == [[clamp, -clamp]] * 4

    def test_released_coefficients(self):
        """Multiples of sqrt(2) / (n 2**20), a public number; shapes from public arguments only."""
        m = mechanism(3)
        for x in ([0.1] * 7, [np.nan] * 7):
            assert m(x).shape == (3,)
            values = m.release(x, size=(2, 4), rng=PCG64(1))
            assert (values.shape, values.dtype) == ((2, 4, 3), np.float64)
            units = values / (SQRT2 / (7 * 2**20))
            assert_allclose(units, np.rint(units), rtol=1e-12)

    def test_noise_has_the_stated_size(self):
        m = mechanism(8, epsilon=0.5)
        values = m.release(np.full(1000, 0.3), size=4000, rng=PCG64(2))
        expected = 2 * (series_sensitivity(8) / (1000 * 0.5)) ** 2
        assert_allclose(values.var(axis=0), expected, rtol=0.2)


class TestMechanism:
    def test_is_a_value(self):
        m = mechanism(3, epsilon=0.5)
        assert m.privacy == m.privacy_map(1) == Privacy(0.5)
        assert m.privacy_map(2) == Privacy(1.0)
        for twin in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m)):
            assert twin == m
            assert hash(twin) == hash(m)
            assert_array_equal(twin([0.3, 0.4], rng=PCG64(1)), m([0.3, 0.4], rng=PCG64(1)))
        assert "of 3 cosine coefficients of records on" in repr(m)

    @every("epsilon", [1e-6, 1e-3, 20.0])
    @every("x", [[0.3], [0.5] * 100, [np.nan]])
    def test_small_and_equal_data(self, x, epsilon):
        for terms in (1, 50):
            assert np.isfinite(mechanism(terms, epsilon=epsilon)(x, rng=PCG64(1))).all()

    def test_bad_parameters(self):
        grid = Grid(0, 9, step=1)
        with pytest.raises(ValueError, match="terms must be at most 9 on 10 grid points, not 10"):
            mechanism(10, grid)
        with pytest.raises(ValueError, match="terms must be at most 1024"):
            mechanism(1025)
        with pytest.raises(ValueError, match="terms must be at least 1"):
            mechanism(0)
        with pytest.raises(TypeError, match=r"grid must be a dpfast\.Grid"):
            mechanism(2, (0, 1))
        with pytest.raises(ValueError, match="basis must be 'cosine' or 'trigonometric', not 'haar'"):
            mechanism(2, basis="haar")
        with pytest.raises(ValueError, match="epsilon must be positive"):
            mechanism(2, epsilon=0)
        with pytest.raises(ValueError, match="epsilon=1e-12 needs noise of more than"):
            mechanism(2, epsilon=1e-12)
        with pytest.raises(ValueError, match="x is empty"):
            mechanism(2)([])

    def test_error(self):
        m = mechanism(8, Grid(0, 10))
        assert_allclose(m.error(1000), series_error(8, 1000, epsilon=1.0) / 10, rtol=1e-9)


EXAMPLES = {
    "one mode": ("cosine", [-0.4, -0.3, 0.2, 0.05]),
    "negative in places": ("cosine", [0.9, 0.2, -0.8, 0.3, 0.4]),
    "mostly noise": ("cosine", list(np.random.default_rng(1).normal(0, 30, 50))),
    "hardly a term": ("cosine", [1e-9]),
    "touches zero": ("cosine", [1 / SQRT2]),
    "periodic": ("trigonometric", [0.3, -0.4, 0.1]),
    "periodic, negative": ("trigonometric", [0.9, -0.7, 0.5, 0.6]),
}
EXAMPLE = every("name", EXAMPLES)


class TestDensity:
    @EXAMPLE
    def test_pdf_and_cdf_equal_the_twin(self, name):
        basis, coefficients = EXAMPLES[name]
        d = density_of(coefficients, basis, Grid(-2, 6, step=2.0**-29))
        u, cdf = reference.positive_part(coefficients, basis, 200)
        x = -2 + 8 * np.array(u)
        scale = 1 + np.abs(coefficients).sum()
        assert_allclose(d.cdf(x), cdf, atol=2e-3 if name == "mostly noise" else 2e-4)
        heights = np.maximum([float(reference.series(coefficients, basis, t)) for t in u[::20]], 0)
        assert_allclose(d.pdf(x[::20]) * 8 * d._positive.total, heights, atol=1e-12 * scale + 3e-8 * scale)

    @EXAMPLE
    def test_cdf_is_the_integral_of_pdf(self, name):
        """Gauss-Legendre on every piece between zeros, where the density is a trigonometric polynomial."""
        basis, coefficients = EXAMPLES[name]
        d = density_of(coefficients, basis)
        nodes, weights = np.polynomial.legendre.leggauss(20)
        edges = np.union1d(np.linspace(0, 1, 201), d._positive.knots)
        x = (edges[:-1, None] + edges[1:, None]) / 2 + np.diff(edges)[:, None] / 2 * nodes
        lower, width = -(2.0**-32), 1 + 2.0**-31
        masses = (d.pdf(lower + width * x) @ weights) * np.diff(edges) / 2 * width
        assert_allclose(np.cumsum(masses), d.cdf(lower + width * edges[1:]), atol=1e-12)
        assert d.cdf(lower - 1) == 0
        assert d.cdf(2.0) == 1.0

    @EXAMPLE
    def test_quantiles_invert_the_cdf(self, name):
        d = density_of(EXAMPLES[name][1], EXAMPLES[name][0])
        p = np.linspace(0.001, 0.999, 333)
        x = d.quantile(p)
        assert_allclose(d.cdf(x), p, atol=1e-12)
        assert (np.diff(x) >= 0).all()
        assert (d.cdf(x - 1e-9) <= p).all()
        assert d.quantile(0.0) == 0.0
        assert 0 < d.quantile(1.0) <= 1.0
        assert np.isnan(d.quantile([-0.1, 1.1, np.nan])).all()

    @EXAMPLE
    def test_draws_follow_the_cdf(self, name):
        """On a coarse grid each point has the mass of its cell; rejected for a density 10 % off."""
        basis, coefficients = EXAMPLES[name]
        grid = Grid(-3, 96, step=1)
        d = density_of(coefficients, basis, grid)
        draws = d.sample(200_000, PCG64(3))
        counts = np.bincount(np.rint(draws - grid.lower).astype(int), minlength=grid.size)
        edges = grid.lower - 0.5 + np.arange(grid.size + 1)
        masses = np.diff(d.cdf(edges))
        assert not chi_square_rejects(counts, masses)
        tilted = masses * (1 + 0.1 * np.sign(np.arange(grid.size) - grid.size / 2))
        assert chi_square_rejects(counts, tilted / tilted.sum())

    def test_fine_draws_follow_the_cdf(self):
        d = density_of([0.9, 0.2, -0.8, 0.3, 0.4])
        draws = d.sample(100_000, PCG64(4))
        assert not kolmogorov_rejects(draws, d.cdf)
        assert kolmogorov_rejects(draws**1.1, d.cdf)
        assert_array_equal(draws, Grid(0, 1).decode(Grid(0, 1).encode(draws)))

    def test_the_envelope_holds(self):
        for basis, coefficients in EXAMPLES.values():
            d = density_of(coefficients, basis)
            envelope, squeeze = d._envelope["envelope"], d._envelope["squeeze"]
            cells = envelope.size
            u = (np.arange(cells)[:, None] + np.linspace(0, 1, 9)) / cells
            q = np.maximum(d._series(u.reshape(-1)).reshape(u.shape), 0)
            assert (q <= envelope[:, None]).all()
            assert (q >= (squeeze * envelope)[:, None] * (1 - 1e-12)).all()

    def test_cells_are_drawn_in_proportion_to_the_envelope(self):
        for basis, coefficients in EXAMPLES.values():
            d = density_of(coefficients, basis)
            envelope = d._envelope["envelope"]
            weights = envelope / envelope.max() * 2**40
            assert_allclose(weights, np.rint(weights), atol=1e-3)

    def test_is_a_value(self):
        d = density_of([0.3, -0.2])
        d.sample(10)
        twin = pickle.loads(pickle.dumps(d))
        assert_array_equal(twin.coefficients, d.coefficients)
        assert_array_equal(twin.sample(100, PCG64(1)), d.sample(100, PCG64(1)))
        assert len(pickle.dumps(d)) < 1000
        with pytest.raises(ValueError, match="read-only"):
            d.coefficients[0] = 0
        with pytest.raises(AttributeError):
            d.n = 3
        assert repr(d).startswith("<SeriesDensity of 2 cosine terms from 0.0 to 1.0, n = 1000: epsilon = 1 ")

    def test_bounds_too_wide(self):
        with pytest.raises(ValueError, match="densities over inf data units"):
            density_of([0.3], grid=Grid(-1.5e308, 1.5e308))

    def test_shapes(self):
        d = density_of([0.3, -0.2])
        for method in (d.pdf, d.cdf, d.quantile):
            assert type(method(0.5)) is float
            assert method([[0.5, 0.2]]).shape == (1, 2)
            assert method([]).shape == (0,)
        assert d.sample(0).shape == (0,)
        assert (d.pdf(-1), d.pdf(2), math.isnan(d.pdf(np.nan))) == (0, 0, True)
        with pytest.raises(ValueError, match="k must be at least 0"):
            d.sample(-1)

    def test_integers_have_cells(self):
        """Equal counts of all integers are the uniform density, without a term."""
        m = mechanism(5, Grid(0, 9, step=1))
        assert np.abs(m.law(np.repeat(np.arange(10), 3)).center).max() <= 15
        assert_allclose(density_of([0.0], grid=Grid(0, 9, step=1)).pdf([0, 4.5, 9]), 0.1)

    @pytest.mark.host
    def test_plot(self):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        from matplotlib.figure import Figure

        ax = Figure().add_subplot()
        assert density_of([0.3]).plot(ax) is ax
        assert len(ax.lines) == 1

    def test_informative(self):
        x = np.full(100, 0.5)
        assert dpf.density(x, bounds=(0, 1), epsilon=1.0, terms=3).informative
        assert not dpf.density(x, bounds=(0, 1), epsilon=0.01, terms=3).informative


class TestFunction:
    def test_is_the_mechanism(self):
        x = np.random.default_rng(5).beta(2, 3, 5000)
        d = dpf.density(x, bounds=(0, 1), epsilon=0.5, terms=6, rng=PCG64(1))
        assert_array_equal(d.coefficients, mechanism(6, epsilon=0.5)(x, rng=PCG64(1)))
        assert_array_equal(
            d.coefficients, dpf.density(x, grid=Grid(0, 1), epsilon=0.5, terms=6, rng=PCG64(1), workers=2).coefficients
        )
        assert (d.n, d.privacy) == (5000, Privacy(0.5))
        ages = dpf.density(np.arange(100), bounds=(0, 99), epsilon=1.0, terms=2)
        assert ages.grid == Grid(0, 99, step=1)

    def test_automatic_terms_depend_on_public_numbers(self):
        for x in (np.zeros(1000), np.full(1000, np.nan), np.random.default_rng(1).random(1000)):
            assert dpf.density(x, bounds=(0, 1), epsilon=0.3).coefficients.size == series_terms(1000, epsilon=0.3)
        assert dpf.density(np.zeros(10**4, bool), bounds=(0, 1), epsilon=1.0).coefficients.size == 1

    @pytest.mark.parametrize("epsilon", [1e-3, 20.0])
    def test_extremes(self, epsilon):
        for x in ([0.5], [np.nan, np.inf], np.full(50, 0.25, np.float32)):
            d = dpf.density(x, bounds=(0, 1), epsilon=epsilon, terms=20)
            draws = d.sample(1000)
            assert ((draws >= 0) & (draws <= 1)).all()
            assert d.cdf(1.1) == 1

    def test_bad_parameters(self):
        with pytest.raises(TypeError, match="give either bounds"):
            dpf.density([0.5], epsilon=1.0)
        with pytest.raises(ValueError, match="terms must be an integer or 'auto', not 'many'"):
            dpf.density([0.5], bounds=(0, 1), epsilon=1.0, terms="many")
        with pytest.raises(ValueError, match="smoothness must be strictly between"):
            dpf.density([0.5], bounds=(0, 1), epsilon=1.0, smoothness=0.5)
        with pytest.raises(ValueError, match="basis must be 'cosine' or 'trigonometric'"):
            dpf.density([0.5], bounds=(0, 1), epsilon=1.0, basis="sine")
        with pytest.raises(TypeError, match="rng must be None"):
            dpf.density([0.5], bounds=(0, 1), epsilon=1.0, rng=1)

    def test_the_error_matches_the_prediction(self):
        """Of the series, by Parseval, on a density of the ellipsoid; the bound holds and is met within a third."""
        beta = 0.25 * np.arange(1, 61) ** -2.6
        true = density_of(beta)
        rng = np.random.default_rng(6)
        roughness = math.sqrt(np.sum(np.arange(1, 61) ** 4.0 * beta**2))
        for n, terms, epsilon in ((2000, 6, 0.3), (20_000, 10, 5.0)):
            m = mechanism(terms, epsilon=epsilon)
            errors = [np.sum((m(true.sample(n, rng), rng=rng) - beta[:terms]) ** 2) for _ in range(200)]
            found = np.mean(errors) + np.sum(beta[terms:] ** 2)
            bound = m.error(n, smoothness=2, roughness=roughness)
            assert 0.66 * bound < found < 1.1 * bound


@pytest.mark.parametrize("module", [series, calculators], ids=lambda module: module.__name__)
def test_examples_run(module):
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_bounds_too_near_for_densities_are_refused_before_the_charge():
    with dpf.Ledger(epsilon=2.0) as ledger:
        with pytest.raises(ValueError, match="use another unit"):
            dpf.density(np.ones(100), bounds=(0, 1e-300), epsilon=1.0)
        assert not ledger.charges
