"""Bins of whole numbers: one for each rating, the same for ages, booleans, tables and synthetic records."""

import itertools

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import Bins, Grid
from dpfast.densities import Cells, NoisyMarginals, PerturbedHistogram, SmoothedHistogram
from dpfast.densities.cells import even_bins, uneven
from tests.cases import every
from tests.windows import Windowed

RATINGS = np.repeat([1, 2, 3, 4, 5], [100, 200, 300, 50, 350])
FIVE = Grid(1, 5, step=1)


def exact(x, bins, **public):
    """A histogram whose noise is almost always 0."""
    return dpf.histogram(x, bins, epsilon=20.0, rng=PCG64(1), **public)


class TestEdges:
    @pytest.mark.parametrize("x", [RATINGS, RATINGS.astype(np.int8), RATINGS.astype(float)], ids=lambda x: x.dtype.name)
    def test_one_bin_for_each_rating(self, x):
        public = {"grid": FIVE} if x.dtype == float else {"bounds": (1, 5)}
        made = exact(x, 5, **public)
        assert made.edges.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
        assert made.counts.tolist() == [100, 200, 300, 50, 350]
        assert made.pdf([1, 3, 5, 0, 6]).tolist() == [0.1, 0.3, 0.35, 0, 0]
        assert dpf.histogram(x, epsilon=1.0, **public).edges.size == 6

    def test_booleans_have_two_bins(self):
        made = exact(RATINGS > 2, 2, bounds=(0, 1))
        assert (made.edges.tolist(), made.counts.tolist()) == ([-0.5, 0.5, 1.5], [300, 700])
        assert dpf.histogram(RATINGS > 2, bounds=(0, 1), epsilon=1.0).edges.tolist() == [-0.5, 0.5, 1.5]

    def test_bins_of_ages(self):
        ages = np.arange(120)
        made = exact(ages, 12, bounds=(0, 119))
        assert made.edges.tolist() == [10 * i - 0.5 for i in range(13)]
        assert made.counts.tolist() == [10] * 12

    def test_the_bins_of_floats_are_as_before(self):
        assert dpf.histogram(RATINGS / 1.0, 4, bounds=(1, 5), epsilon=1.0).edges.tolist() == [1, 2, 3, 4, 5]

    @every("size", [2, 3, 5, 12, 101])
    def test_every_point_is_in_one_bin(self, size):
        grid = Grid(-7, size - 8, step=1)
        points = np.arange(-7, size - 7)
        for bins in range(1, size + 1):
            cells = Cells((grid,), (bins,))
            counts = cells.count(points[:, None], 1)
            assert counts.sum() == size
            assert counts.max() - counts.min() <= 1
            assert np.diff(cells.edges[0]).tolist() == counts.tolist()
            places = cells.locate(points)
            assert ((cells.edges[0][places] < points) & (points < cells.edges[0][places + 1])).all()

    def test_where_halves_are_no_doubles(self):
        """Numbers of 2**52 and more keep the edges of intervals."""
        assert Cells((Grid(2.0**52 - 4, 2.0**52 - 1, step=1),), (4,)).edges[0][0] == 2.0**52 - 4.5
        assert Cells((Grid(2.0**52, 2.0**52 + 4, step=1),), (4,)).edges[0].tolist() == [2.0**52 + i for i in range(5)]
        with pytest.raises(ValueError, match="the 4 steps"):
            Cells((Grid(2.0**52, 2.0**52 + 4, step=1),), (5,))


class TestUneven:
    def test_uneven_bins_are_said(self):
        message = "5 whole numbers from 1 to 5 .* 2 bins: some have 2, others 3; use bins=1 or 5, or .* 4 or 6 of them"
        for call in (
            lambda: dpf.histogram(RATINGS, 2, bounds=(1, 5), epsilon=1.0),
            lambda: PerturbedHistogram(2, grid=FIVE, epsilon=1.0),
            lambda: SmoothedHistogram(2, k=3, grid=FIVE, epsilon=1.0),
            lambda: dpf.synthesize(RATINGS, 9, bounds=(1, 5), bins=2, epsilon=1.0),
            lambda: NoisyMarginals({"stars": Bins(2, grid=FIVE)}, [("stars",)], epsilon=1.0),
            lambda: dpf.marginals({"stars": RATINGS}, {"stars": Bins(2, bounds=(1, 5))}, epsilon=1.0),
        ):
            with pytest.warns(dpf.UtilityWarning, match=message):
                call()

    def test_the_warning_precedes_the_charge(self):
        for call in (
            lambda: dpf.histogram(RATINGS, 2, bounds=(1, 5), epsilon=1.0),
            lambda: dpf.marginals({"stars": RATINGS}, {"stars": Bins(2, bounds=(1, 5))}, epsilon=1.0),
        ):
            with dpf.Ledger(epsilon=2.0) as ledger:
                with pytest.raises(dpf.UtilityWarning, match="do not divide evenly"):
                    call()
                assert ledger.spent.epsilon == 0

    def test_more_bins_than_numbers(self):
        with pytest.raises(ValueError, match="between 1 and the 5 whole numbers within the bounds, not 6"):
            dpf.histogram(RATINGS, 6, bounds=(1, 5), epsilon=1.0)

    @every("size", [2, 3, 5, 24, 101, 1000])
    def test_automatic_bins_are_even(self, size):
        grid = Grid(0, size - 1, step=1)
        for bins in range(1, size + 1):
            found = even_bins(grid, bins, size)
            assert not uneven(grid, found)
            assert bins / 2.1 <= found <= 2.1 * bins or size < 4
            assert even_bins(grid, bins, bins) <= bins


class TestPrivacy:
    @pytest.mark.parametrize(("bins", "epsilon", "reach"), [(2, 1.0, 46), (3, 3.0, 18)])
    def test_a_bin_for_each_number(self, bins, epsilon, reach):
        mechanism = PerturbedHistogram(bins, grid=Grid(0, bins - 1, step=1), epsilon=epsilon)
        certificate = dpf.audit.verify(Windowed(mechanism, reach), n=2)
        assert certificate.holds
        assert abs(certificate.epsilon - epsilon) < 1e-12

    def test_control_the_noise_of_an_added_record(self):
        mechanism = PerturbedHistogram(2, grid=Grid(0, 1, step=1), epsilon=1.0, neighbors="add-remove")
        certificate = dpf.audit.verify(Windowed(mechanism, 46), n=2)
        assert not certificate.holds
        assert abs(certificate.epsilon - 2) < 1e-12

    def test_certificate_of_smoothed_histograms(self):
        mechanism = SmoothedHistogram(3, k=2, grid=Grid(0, 2, step=1), epsilon=0.5)
        certificate = dpf.audit.verify(mechanism, n=2)
        assert certificate.holds
        assert abs(certificate.epsilon - 0.5) < 1e-9
        outcomes = np.array(list(itertools.product(range(3), repeat=2)))
        assert abs(np.exp(mechanism.law([0, 2]).logpmf(outcomes)).sum() - 1) < 1e-12


class TestReleased:
    def test_functions_of_ratings(self):
        made = exact(RATINGS, 5, bounds=(1, 5))
        x = [0.9, 1, 1.5, 2, 3, 3.99, 4, 5, 9, np.nan]
        np.testing.assert_allclose(made.cdf(x), [0, 0.1, 0.1, 0.3, 0.6, 0.6, 0.65, 1, 1, np.nan])
        np.testing.assert_array_equal(
            made.quantile([0, 0.05, 0.1, 0.11, 0.3, 0.31, 0.6, 0.66, 1, 2]), [1, 1, 1, 2, 2, 3, 3, 5, 5, np.nan]
        )
        draws = made.sample(100_000, PCG64(2))
        np.testing.assert_allclose(
            np.bincount(draws.astype(int), minlength=6)[1:] / 1e5, made.weights / 1000, atol=0.01
        )
        assert set(draws) == {1.0, 2.0, 3.0, 4.0, 5.0}

    def test_the_quantile_is_the_least_number_that_the_cdf_reaches(self):
        made = dpf.histogram(np.arange(100) ** 2 // 99, 10, bounds=(0, 99), epsilon=1.0, rng=PCG64(1))
        q = np.concatenate([np.linspace(1e-9, 1, 1001), made.cdf(np.arange(100))])
        found = made.quantile(q)
        assert (found == np.rint(found)).all()
        assert (made.cdf(found) >= q).all()
        low = made.edges[np.flatnonzero(made.weights)[0]]
        assert ((made.cdf(found - 1) < q) | (found - 1 < low)).all()

    @pytest.mark.host
    def test_bars_stand_at_the_numbers(self):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        from matplotlib.figure import Figure

        ax = exact(RATINGS, 5, bounds=(1, 5)).plot(Figure().subplots())
        [lines] = ax.collections
        assert [segment[0][0] for segment in lines.get_segments()] == [1, 2, 3, 4, 5]
        assert {tick % 1 for tick in ax.get_xticks()} == {0}


class TestTables:
    def test_bins_of_a_table(self):
        table = {"stars": RATINGS, "good": RATINGS > 2}
        made = dpf.marginals(table, {"stars": (1, 5), "good": (0, 1)}, epsilon=20.0, rng=PCG64(1))
        assert made.columns["stars"].labels == ("1", "2", "3", "4", "5")
        assert made.columns["good"].labels == ("0", "1")
        assert made.columns["stars"].edges.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
        assert made.counts["stars", "good"].tolist() == [[100, 0], [200, 0], [0, 300], [0, 50], [0, 350]]

    def test_labels_name_the_numbers(self):
        assert Bins(4, grid=Grid(0, 99, step=1)).labels == ("0 to 24", "25 to 49", "50 to 74", "75 to 99")
        assert Bins([18, 65], grid=Grid(0, 100, step=1)).labels == ("0 to 17", "18 to 64", "65 to 100")

    def test_edges_at_halves_lie_between_the_numbers(self):
        made = Bins([1.5, 2.5, 3.5], grid=FIVE)
        assert made.labels == ("1", "2", "3", "4 to 5")
        assert made.encode("x", RATINGS).tolist() == np.minimum(RATINGS - 1, 3).tolist()

    @pytest.mark.parametrize("options", [{"bins": 5}, {"bins": 5, "method": "smoothed"}, {"method": "perturbed"}, {}])
    def test_synthetic_records_are_whole_numbers(self, options):
        made = dpf.synthesize(RATINGS, 500, bounds=(1, 5), epsilon=1.0, **options)
        assert set(made.tolist()) <= {1, 2, 3, 4, 5}

    def test_synthetic_tables_keep_the_points_of_each_bin(self):
        table = {"age": np.arange(1000) % 100, "good": np.arange(1000) % 100 >= 50}
        made = dpf.synthesize(table, 2000, columns={"age": Bins(10, bounds=(0, 99)), "good": (0, 1)}, epsilon=20.0)
        assert set(made["age"].tolist()) == set(range(100))
        assert set(made["good"].tolist()) == {0, 1}
        assert np.mean((made["age"] >= 50) == made["good"]) > 0.95


class TestWeights:
    @staticmethod
    def errors(cells, n, epsilon, consistency, records):
        """Root mean square errors of prefix sums and of single cells, in records, over ten releases."""
        rng, squares = np.random.default_rng(1), []
        for _ in range(10):
            x = records(rng, n)
            made = dpf.histogram(x, cells, bounds=(0, 1), epsilon=epsilon, consistency=consistency, rng=rng)
            errors = made.weights * (n / made.weights.sum()) - np.bincount((x * cells).astype(int), minlength=cells)
            squares.append((np.mean(np.cumsum(errors) ** 2), np.mean(errors**2)))
        return np.sqrt(np.mean(squares, axis=0))

    @staticmethod
    def skewed(rng, n):
        return np.minimum(rng.lognormal(10, 1, n) / 1e6, 1 - 2**-20)

    def test_prefix_sums_of_many_cells(self):
        before = self.errors(4096, 5000, 0.5, "clip", self.skewed)
        after = self.errors(4096, 5000, 0.5, "auto", self.skewed)
        assert before[0] > 1500
        assert after[0] < 150  # a fifteenth
        assert after[1] < before[1]

    @pytest.mark.parametrize("cells", [2, 5, 10, 64])
    def test_few_cells_do_not_get_worse(self, cells):
        for records in (self.skewed, lambda rng, n: rng.random(n), lambda rng, n: rng.choice([0.1, 0.55], n)):
            clipped, projected = (self.errors(cells, 500, 0.5, rule, records) for rule in ("clip", "auto"))
            assert (projected <= 1.05 * clipped).all()

    @every("neighbors", ["replace-one", "add-remove"])
    @every("consistency", ["auto", "simplex", "halves"])
    @every("bins", [1, 3, 64, 65, 1000, (7, 30)])
    def test_weights_sum_to_n_or_to_the_counts(self, bins, consistency, neighbors):
        x = np.random.default_rng(1).random((300, 1 if isinstance(bins, int) else 2))
        options = {"bounds": (0, 1), "epsilon": 0.3, "consistency": consistency, "neighbors": neighbors}
        for seed in range(5):
            made = dpf.histogram(x, bins, rng=PCG64(seed), **options)
            assert made.weights.min() >= 0
            assert made.weights.sum() == (300 if neighbors == "replace-one" else max(made.counts.sum(), 1))

    def test_noiseless_counts_stay(self):
        for cells in (5, 64, 65, 1000):
            made = dpf.histogram(np.arange(1000) / 1000, cells, bounds=(0, 1), epsilon=20.0, neighbors="add-remove")
            assert np.abs(made.weights - np.maximum(made.counts, 0)).max() <= 1
