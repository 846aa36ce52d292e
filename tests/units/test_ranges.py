"""Histograms for ranges: sensitivities, laws and least squares against matrices, with controls; what is released."""

import itertools
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64, default_rng

import dpfast as dpf
from dpfast import Grid, Privacy
from dpfast.densities import Cells, RangeSums
from dpfast.densities.ranges import RectangleSums, RootSums, TreeSums, sums_for
from dpfast.laws import DiscreteLaplace
from dpfast.mechanisms.factors import SquareRoot
from tests.cases import every
from tests.statistical import chi_square_rejects
from tests.windows import Windowed

TREES = [(1, ()), (2, (2,)), (7, (2, 2, 2)), (7, (3, 3)), (10, (4, 3)), (13, (5, 2, 2))]
RELATIONS = [("replace-one", 2), ("add-remove", 1)]


def matrix(sums):
    """The exact sums as a matrix."""
    return np.array([sums.of(row) for row in np.eye(sums.size, dtype=np.int64)]).T


def least_squares(sums, total):
    """The matrix that makes estimates of the cells from the noisy sums (and n), and their covariance."""
    rows = matrix(sums).astype(float)
    if not total:
        inverse = np.linalg.inv(rows.T @ rows)
        return inverse @ rows.T, np.zeros(sums.size), inverse
    ones = np.ones((sums.size, 1))
    whole = np.linalg.inv(np.block([[rows.T @ rows, ones], [ones.T, np.zeros((1, 1))]]))
    return whole[:-1, :-1] @ rows.T, whole[:-1, -1], whole[:-1, :-1]


def all_sums():
    for size, branches in TREES:
        for total in (False, True):
            yield TreeSums(size, branches, change=2 if total else 1, epsilon=0.5), total
    for size in (1, 2, 7, 40):
        for total in (False, True):
            yield RootSums(SquareRoot(size), change=1 + total, mu=0.3), total


each = every("sums, total", all_sums(), ids=lambda x: f"{type(x).__name__} {getattr(x, 'size', x)}")


class TestLeastSquares:
    @each
    def test_estimates(self, sums, total):
        weights, of_total, _ = least_squares(sums, total)
        noisy, n = default_rng(1).normal(size=sums.length) * 10, 50
        expected = np.cumsum(weights @ noisy + of_total * n)
        np.testing.assert_allclose(sums.prefixes(noisy, n if total else None), expected, rtol=1e-8, atol=1e-8)

    @each
    def test_variances(self, sums, total):
        *_, covariance = least_squares(sums, total)
        shares = default_rng(2).random(sums.size)
        expected = shares @ covariance @ shares * sums.noise.variance
        close = {"rel": 1e-6, "abs": 1e-9 * sums.noise.variance * abs(covariance).max()}
        assert sums.variance(shares, total=total) == pytest.approx(expected, **close)
        prefixes = np.tril(np.ones((sums.size, sums.size)))
        mean = np.diag(prefixes @ covariance @ prefixes.T).mean() * sums.noise.variance
        assert sums.mean_variance(total=total) == pytest.approx(mean, rel=0.6, abs=close["abs"])

    @each
    def test_sums_are_those_of_the_cells(self, sums, total):
        counts = default_rng(3).integers(0, 50, sums.size)
        np.testing.assert_array_equal(sums.of(counts), matrix(sums) @ counts)
        assert sums.length == len(sums.of(counts))


@pytest.mark.parametrize("total", [False, True])
def test_mean_variance_of_even_blocks(total):
    for size, branches in ((64, (4, 4, 4)), (60, (5, 4, 3))):
        sums = TreeSums(size, branches, change=1, epsilon=1.0)
        *_, covariance = least_squares(sums, total)
        prefixes = np.tril(np.ones((size, size)))
        expected = np.diag(prefixes @ covariance @ prefixes.T).mean() * sums.noise.variance
        assert sums.mean_variance(total=total) == pytest.approx(expected, rel=1e-9)


@every("size, gain", [(64, 1.05), (256, 1.12), (1000, 1.05)])
def test_trees_for_a_private_number(size, gain):
    """Next to the best with blocks of all cells, and equal numbers of parts: 13 % less error for 256 cells."""
    chosen = sums_for((size,), epsilon=1.0, delta=0.0, neighbors="add-remove", noise="auto")

    def error(sums):
        *_, covariance = least_squares(sums, total=False)
        return math.sqrt(covariance.cumsum(axis=0).cumsum(axis=1).diagonal().mean() * sums.noise.variance)

    others = []
    for kinds in (1, 2, 3, 4):
        parts = round(size ** (1 / kinds))
        *_, last = TreeSums(size, (parts,) * (kinds - 1), change=1, epsilon=1.0).sizes
        others.append(error(TreeSums(size, (*[parts] * (kinds - 1), last, 1), change=1, epsilon=1.0)))
    assert error(chosen) * gain < min(others)


def test_products_of_many_cells_are_exact():
    sums = RootSums(SquareRoot(5000), change=1, mu=1.0)
    counts = default_rng(4).integers(0, 2**40, 5000)
    assert sums.of(counts)[-1] == sum(int(a) * int(b) for a, b in zip(counts, sums.factor.column[::-1], strict=True))


@pytest.mark.parametrize("size", [1, 16, 5000])
def test_sums_of_very_many_records_are_clamped(size):
    """A sum beyond 64 bits would have the other sign, or raise an error, for one record more."""
    sums = RootSums(SquareRoot(size), change=1, mu=1.0)
    for n in (2**48 - 1, 2**48, 2**49, 2**51 - 1, 2**51, 2**52):
        counts = np.zeros(size, np.int64)
        for place, records in ((0, n - n // 3), (size // 2, n // 3)):
            counts[place] += records
        places = np.flatnonzero(counts).tolist()
        exact = [sum(int(counts[j]) * int(sums.factor.column[i - j]) for j in places if j <= i) for i in range(size)]
        assert sums.of(counts).tolist() == [min(value, 2**61) for value in exact]


@pytest.mark.parametrize(("neighbors", "change"), RELATIONS)
class TestPrivacy:
    def test_scale_of_a_tree(self, neighbors, change):
        """The largest l1 change of the sums by one record, over all pairs of cells, times 1 / scale is epsilon."""
        for size in (2, 3, 5, 9, 30):
            sums = sums_for((size,), epsilon=0.7, delta=0.0, neighbors=neighbors, noise="auto")
            columns = matrix(sums).T
            pairs = [(a, b) for a, b in itertools.product(range(size), repeat=2) if a != b]
            most = max(abs(columns[a] - columns[b]).sum() if change == 2 else abs(columns[a]).sum() for a, b in pairs)
            assert Fraction(sums.noise.scale) * Fraction(0.7) == sums.levels * change
            assert most == sums.levels * change

    def test_scale_of_the_root(self, neighbors, change):
        sums = sums_for((30,), epsilon=0.7, delta=1e-6, neighbors=neighbors, noise="gaussian")
        columns = matrix(sums).T.astype(object)
        pairs = itertools.combinations(range(30), 2)
        differences = [columns[a] - columns[b] for a, b in pairs] if change == 2 else list(columns)
        most = max(int(difference @ difference) for difference in differences)
        mu = dpf.theory.gaussian_mu(0.7, 1e-6)
        assert math.sqrt(most) / sums.noise.scale == pytest.approx(mu, rel=1e-12)
        # Controls: the norm of one column is too small for two, and so is the distance of the first from the last.
        ends = columns[0] - columns[-1]
        assert most > max(columns[0] @ columns[0], ends @ ends) * 1.01 or change == 1

    def test_law(self, neighbors, change):
        """The log-ratios of neighbours, on a window, are at most epsilon, which some attain."""
        epsilon, bins = 1.0, 4
        mechanism = RangeSums(bins, grid=Grid(0, 3, step=1), epsilon=epsilon, neighbors=neighbors)
        data = [(0,), (3,)] if change == 2 else [(), (3,)]
        first, second = (mechanism.law(np.array(x, float)) for x in data)
        moves = [(-9, 0, 1, 9)] * mechanism.sums.length
        window = np.array(list(itertools.product(*moves))) if mechanism.sums.length < 8 else None
        assert window is not None
        ratios = first.logpmf(window) - second.logpmf(window)
        assert abs(ratios).max() == pytest.approx(epsilon, abs=1e-9)

    def test_control_noise_for_one_kind_of_block_is_too_small(self, neighbors, change):
        sums = RangeSums(100, grid=Grid(0, 99, step=1), epsilon=1.0, neighbors=neighbors).sums
        assert sums.levels > 1
        columns = matrix(sums).T
        most = abs(columns[0] - columns[99]).sum() if change == 2 else columns[0].sum()
        wrong = DiscreteLaplace(change / Fraction(1))
        loss = most * (wrong.logpmf(np.array([0.0])) - wrong.logpmf(np.array([1.0])))[0]
        assert loss > 1 + 1e-9


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_certificate(neighbors):
    """On a window that leaves out less than 1e-9 of every law; the second loses 2 epsilon under replacement."""
    mechanism = RangeSums(2, grid=Grid(0, 3, step=1), epsilon=1.0, neighbors="replace-one")
    if neighbors == "add-remove":
        sums = TreeSums(2, (2,), change=1, epsilon=1.0)  # too little noise for a replaced record
        mechanism.__dict__["sums"] = sums
    certificate = dpf.audit.verify(Windowed(mechanism, 46))
    assert certificate.holds == (neighbors == "replace-one")
    assert certificate.epsilon == pytest.approx(1 if certificate.holds else 2, abs=1e-9)


def test_samples_have_the_law():
    mechanism = RangeSums(3, grid=Grid(0, 2, step=1), epsilon=1.0)
    noisy = mechanism.release([0, 0, 2], size=50_000, rng=PCG64(1))
    scale, z = float(mechanism.sums.noise.scale), np.arange(-60, 61)
    for column, exact in enumerate([2, 0, 1]):
        found = np.bincount(np.clip(noisy[:, column] - exact, -60, 60) + 60, minlength=121)
        for factor, wrong in ((1.0, False), (0.9, True), (1.1, True)):
            s = scale * factor
            p = math.tanh(0.5 / s) * np.exp(-np.abs(z) / s)
            assert chi_square_rejects(found, p / p.sum()) == wrong


class TestReleased:
    X = default_rng(5).lognormal(10.5, 0.8, 5000)
    BOUNDS = (0.0, 300_000.0)

    def released(self, **options):
        options = {"epsilon": 1.0, "bounds": self.BOUNDS, "workload": "ranges", "rng": PCG64(7), **options}
        return dpf.histogram(self.X, 512, **options)

    def test_ranges_are_near(self):
        for options in ({}, {"delta": 1e-6, "noise": "gaussian"}, {"neighbors": "add-remove"}):
            histogram = self.released(**options)
            for low, high in ((0, 300_000), (20_000, 60_000), (35_000, 36_000), (100_000, 250_000)):
                exact = np.count_nonzero((low <= self.X) & (high >= self.X))
                assert abs(histogram.range(low, high) - exact) < 8 * histogram.standard_error(low, high) + 40
            assert histogram.weights.min() >= 0
            assert np.all(np.diff(histogram.cdf(np.linspace(0, 300_000, 99))) >= 0)

    def test_errors_are_less_than_those_of_cells(self):
        ranges, cells = self.released(), self.released(workload="cells")
        assert ranges.standard_error(20_000, 200_000) < 0.6 * cells.standard_error(20_000, 200_000)

    def test_standard_errors_are_those_of_many_releases(self):
        mechanism = RangeSums(64, grid=Grid(0, 64), epsilon=1.0)
        sums, x = mechanism.sums, np.full(500, 20.0)
        noisy = mechanism.release(x, size=4000, rng=PCG64(3)).astype(float)
        found = np.array([sums.prefixes(row, 500) for row in noisy])
        histogram = mechanism(x, rng=PCG64(1))
        assert histogram.standard_error(10, 30) == pytest.approx((found[:, 29] - found[:, 9]).std(), rel=0.05)

    def test_a_known_total_has_no_error(self):
        histogram = self.released()
        assert histogram.standard_error() == pytest.approx(0.0, abs=1e-6)
        assert histogram.range(-math.inf, math.inf) == pytest.approx(5000)
        assert self.released(neighbors="add-remove").standard_error() > 1

    def test_whole_numbers(self):
        ages = default_rng(6).integers(0, 100, 10_000)
        histogram = dpf.histogram(ages, bounds=(0, 99), epsilon=5.0, workload="ranges", rng=PCG64(1))
        assert histogram.cells == Cells((Grid(0, 99, step=1),), (100,))
        assert histogram.range(10, 19) == pytest.approx(np.count_nonzero((ages >= 10) & (ages <= 19)), abs=60)
        assert histogram.range(7, 7) == pytest.approx(float(histogram.weights[7]))
        assert histogram.standard_error(7, 7) == pytest.approx(histogram.standard_error(6.5, 7.5))

    def test_intervals_hold(self):
        exact = np.histogram(self.X, 512, self.BOUNDS)[0]
        low, high = np.moveaxis(self.released().interval(0.95), -1, 0)
        assert np.mean((low <= exact) & (exact <= high)) > 0.95

    def test_pickles(self):
        histogram = self.released()
        copy = pickle.loads(pickle.dumps(histogram))
        assert copy.range(1, 50_000) == histogram.range(1, 50_000)
        assert copy.standard_error(1, 50_000) == histogram.standard_error(1, 50_000)

    @pytest.mark.host
    def test_a_plot(self):
        pytest.importorskip("matplotlib").use("Agg")
        assert self.released().plot() is not None


PAIRS = [
    (
        (
            TreeSums(5, (2, 3), change=1, epsilon=1.0),
            TreeSums(4, (4,), change=1, epsilon=1.0),
        ),
        {},
    ),
    (
        (TreeSums(1, (), change=1, epsilon=1.0), TreeSums(6, (3, 2), change=1, epsilon=1.0)),
        {},
    ),
    ((RootSums(SquareRoot(5, 8), change=1, mu=1.0), RootSums(SquareRoot(3, 8), change=1, mu=1.0)), {"mu": 0.5}),
]


def product_matrix(sums, shape):
    """The exact sums of two columns as a matrix."""
    return np.array([sums.of(cell.reshape(shape)) for cell in np.eye(math.prod(shape), dtype=np.int64)]).T


class TestTwoColumns:
    """Products: sensitivities over all pairs of cells, least squares against matrices, and what is released."""

    @every("axes, budget", PAIRS)
    @every("change", [1, 2])
    def test_sensitivity(self, axes, budget, change):
        sums = RectangleSums(axes, change=change, **(budget or {"epsilon": 0.7}))
        columns = product_matrix(sums, [axis.size for axis in axes]).T.astype(object)
        pairs = itertools.combinations(range(len(columns)), 2)
        changes = list(columns) if change == 1 else [columns[a] - columns[b] for a, b in pairs]
        if budget:
            most = max(int(each @ each) for each in changes)
            square = Fraction(sums.noise.scale) ** 2 * Fraction(0.5) ** 2
            assert most <= square < most * (1 + Fraction(1, 10**9))
            # The control is the norm of one axis.
            assert square > 1.3 * axes[0].factor.square() * 2**16 or len(columns) == 1
        else:
            most = max(int(abs(each).sum()) for each in changes)
            assert most <= sums.levels * change
            assert sums.noise.scale == sums.levels * change / Fraction(0.7)
            assert most > axes[1].levels * change or axes[0].levels == 1

    @every("axes, budget", PAIRS)
    @every("total", [False, True])
    def test_least_squares(self, axes, budget, total):
        sums = RectangleSums(axes, change=1, **(budget or {"epsilon": 0.7}))
        shape = [axis.size for axis in axes]
        rows, ones = product_matrix(sums, shape).astype(float), np.ones((math.prod(shape), 1))
        normal = np.linalg.inv(rows.T @ rows)
        noisy, n = default_rng(1).normal(size=sums.length) * 10, 50
        cells, covariance = normal @ rows.T @ noisy, normal
        if total:
            along = normal @ ones
            cells = cells + along[:, 0] * (n - cells.sum()) / along.sum()
            covariance = normal - along @ along.T / along.sum()
        expected = np.cumsum(np.cumsum(cells.reshape(shape), axis=0), axis=1)
        np.testing.assert_allclose(sums.prefixes(noisy, n if total else None), expected, rtol=1e-8, atol=1e-7)
        shares = [default_rng(2).random(size) for size in shape]
        weights = np.outer(*shares).reshape(-1)
        variance = weights @ covariance @ weights * sums.noise.variance
        assert sums.variance(shares, total=total) == pytest.approx(variance, rel=1e-6)

    def test_law(self):
        """The log-ratios of neighbours, in all sums together."""
        grids = (Grid(0, 2, step=1), Grid(0, 1, step=1))
        mechanism = RangeSums((3, 2), grid=grids, epsilon=1.0)
        laws = [mechanism.law(np.array([row, [0, 1]], float)) for row in ([0, 0], [2, 1])]
        distance = np.abs(laws[0].center - laws[1].center).sum()
        assert 0 < distance / float(mechanism.sums.noise.scale) <= 1.0
        wrong = replace(mechanism, epsilon=1.1)
        assert distance / float(wrong.sums.noise.scale) <= 1.1

    @pytest.mark.parametrize(
        "options", [{}, {"delta": 1e-6, "noise": "gaussian"}, {"neighbors": "add-remove"}], ids=str
    )
    def test_rectangles(self, options):
        """Errors of released rectangles are those that are stated."""
        rng = default_rng(3)
        x = rng.normal([20, 50], [5, 12], (3000, 2))
        exact = np.sum((x[:, 0] < 25) & (x[:, 1] >= 32) & (x[:, 1] < 64))
        errors, counts = [], []
        for seed in range(100):
            made = dpf.histogram(
                x, (16, 32), bounds=[(0, 40), (0, 128)], epsilon=1.0, workload="ranges", rng=PCG64(seed), **options
            )
            low, high = (0, 32), (np.nextafter(25, 0), np.nextafter(64, 0))
            errors.append(made.range(low, high) - exact)
            counts.append(int(made.counts.sum()))
        stated = made.standard_error(low, high)
        assert abs(np.std(errors) / stated - 1) < 0.3
        assert abs(np.mean(errors)) < 5 * stated / math.sqrt(100)
        assert ("neighbors" in options) or set(counts) == {3000}
        assert made.standard_error() == pytest.approx(0.0, abs=1e-6) or "neighbors" in options
        assert made.weights.min() >= 0
        assert pickle.loads(pickle.dumps(made)).range(low, high) == made.range(low, high)
        assert made.sample(5, rng=PCG64(1)).shape == (5, 2)

    def test_many_cells(self):
        """A quarter of a plane of 2**18 cells, where cells of independent noise add up to thousands."""
        x = default_rng(4).uniform(0, 1, (20_000, 2))
        made = dpf.histogram(x, 512, bounds=(0, 1), epsilon=1.0, delta=1e-6, workload="ranges", rng=PCG64(1))
        exact = np.sum((x < 0.5).all(axis=1))
        error = made.standard_error((0, 0), (0.5, 0.5))
        assert abs(made.range((0, 0), (0.5, 0.5)) - exact) < 5 * error
        cells = dpf.histogram(x, 512, bounds=(0, 1), epsilon=1.0, delta=1e-6, rng=PCG64(1))
        assert error < 0.5 * 256 * math.sqrt(cells._noise(len(cells.cells)).variance)

    def test_refusals(self):
        made = dpf.histogram(np.ones((300, 2)), 4, bounds=(0, 1), epsilon=1.0, workload="ranges")
        for low, high in [(0, 1), ((0, 0), 1), ((0, 0, 0), (1, 1, 1))]:
            with pytest.raises(ValueError, match="must be a pair of numbers"):
                made.range(low, high)
        with pytest.raises(ValueError, match="one column"):
            made.cdf(0.5)


class TestOfCells:
    """`range` and `standard_error` of a histogram of independent cells."""

    def test_errors_by_the_noise(self):
        x = np.arange(200.0)
        for options, variance in (({}, 8), ({"neighbors": "add-remove"}, 2)):
            histogram = dpf.histogram(x, 100, bounds=(0, 200), epsilon=1.0, rng=PCG64(1), **options)
            assert histogram.standard_error(0, 20) == pytest.approx(math.sqrt(10 * variance), rel=0.1)
            assert histogram.standard_error(0, 1) == pytest.approx(math.sqrt(variance) / 2, rel=0.1)

    def test_noise_of_sum_zero(self):
        histogram = dpf.histogram(np.arange(200.0), 4, bounds=(0, 200), epsilon=1.0, rng=PCG64(1))
        assert histogram.standard_error() == pytest.approx(0.0, abs=1e-9)
        assert histogram.standard_error(0, 50) == pytest.approx(histogram.standard_error(50, 200), rel=1e-9)


class TestParameters:
    def test_bad_parameters(self):
        grid = Grid(0, 8, step=1)
        for options, match in (
            ({"noise": "gaussian"}, "delta must be positive"),
            ({"noise": "none"}, "noise must be"),
            ({"neighbors": "both"}, "neighbors must be"),
            ({"epsilon": 2.0**-60}, "use a larger epsilon"),
            ({"grid": (grid,) * 3, "bins": (2, 2, 2)}, "one grid or two"),
            ({"bins": 10}, "bins"),
            ({"grid": Grid(0, 2), "bins": 2**20 + 1}, r"at most 2\*\*20 cells"),
        ):
            with pytest.raises(ValueError, match=match):
                RangeSums(**{"bins": 4, "grid": grid, "epsilon": 1.0, **options})
        with pytest.raises(ValueError, match="workload must be"):
            dpf.histogram([1.0], 2, bounds=(0, 1), epsilon=1.0, workload="range")
        with pytest.raises(ValueError, match="consistency must be 'auto'"):
            dpf.histogram([1.0], 2, bounds=(0, 1), epsilon=1.0, workload="ranges", consistency="clip")
        with pytest.raises(ValueError, match="bins must be"):
            dpf.histogram([1.0], "many", bounds=(0, 1), epsilon=1.0, workload="ranges")

    def test_guarantees(self):
        made = RangeSums(100, grid=Grid(0, 100), epsilon=1.0, delta=1e-6)
        assert made.privacy in (Privacy(1.0), Privacy(1.0, 1e-6))
        gaussian = replace(made, noise="gaussian")
        assert gaussian.privacy == Privacy(1.0, 1e-6)
        assert gaussian.privacy_profile.mu == pytest.approx(dpf.theory.gaussian_mu(1.0, 1e-6))
        pure = replace(made, delta=0.0)
        [(family, part, times)] = pure.privacy_profile.parts
        assert (family, times * part) == ("discrete-laplace", pytest.approx(1.0))
