"""Noisy marginals: exact counts, privacy on all small tables, consistency, trees of pairs, synthetic tables."""

import itertools
import re
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64
from scipy import stats

import dpfast as dpf
from dpfast import Bins, Categories, NoisyMarginals
from dpfast._kernels import _marginals
from dpfast.densities.budgets import BudgetShare
from dpfast.densities.columns import DataColumns, column_of, columns_of
from dpfast.densities.consistency import nearest_consistent
from dpfast.densities.marginals import counted, encoded
from dpfast.densities.selected import _levels
from tests.reference import marginals as slow
from tests.statistical import ALPHA, chi_square_rejects
from tests.untouchable import Untouchable

BITS = {"a": Categories([0, 1], missing=0), "b": Categories([0, 1], missing=0)}
THREE = {**BITS, "c": Categories([0, 1, 2], missing=2)}
SETS = {"single": [("a",)], "pair": [("a", "b")], "all": [("a",), ("b",), ("a", "b")]}


def table(rows):
    """Rows of bins as a table with a column for each name."""
    columns = np.array(rows, dtype=np.int64).reshape(len(rows), -1).T
    return dict(zip("abc", columns, strict=False))


def correlated(n, rng):
    """A table in which each column depends on the one before."""
    age = rng.integers(18, 90, n)
    retired = np.where(age + rng.integers(-5, 5, n) > 65, "yes", "no")
    pay = np.where(retired == "yes", 0.0, rng.lognormal(10, 0.7, n))
    return {"age": age, "retired": retired, "pay": pay, "coin": rng.integers(0, 2, n)}


DOMAINS = {
    "age": (0, 100),
    "retired": ["yes", "no"],
    "pay": Bins([1, 10_000, 20_000, 40_000], bounds=(0, 1e6)),
    "coin": Categories([0, 1]),
}


@pytest.mark.kernel
class TestKernel:
    @pytest.mark.parametrize("n", [0, 1, 1023, 1024, 1025, 5000])
    def test_counts_are_those_of_one_record_at_a_time(self, n):
        rng = np.random.default_rng(n)
        sizes = np.array([3, 1, 7, 300], np.int32)
        codes = np.stack([rng.integers(0, size, n) for size in sizes]).astype(np.uint16)
        marginals = [[0], [3], [2, 0], [0, 3], [1, 2, 3], [3, 2, 1, 0]]
        expected = slow.counts(codes.T.tolist(), sizes.tolist(), marginals)
        for workers in (1, 3):
            out = np.full(len(expected), -1)
            _marginals.count(np.ascontiguousarray(codes), sizes, marginals, out, workers=workers)
            np.testing.assert_array_equal(out, expected)

    def test_distances_are_those_of_one_cell_at_a_time(self):
        rng = np.random.default_rng(1)
        margins = [rng.gamma(0.5, 40.0, size) for size in (3, 1, 7)]
        pairs, totals = [(0, 1), (2, 0), (1, 2)], np.array([max(margin.sum(), 1.0) for margin in margins])
        tables = [rng.integers(0, 60, (margins[a].size, margins[b].size)) for a, b in pairs]
        counts, out = np.concatenate([table.reshape(-1) for table in tables]), np.empty(3, np.int64)
        starts = np.cumsum([0, 3, 1, 7])
        _marginals.distances(counts, np.concatenate(margins), starts, totals, np.array(pairs), out)
        expected = [np.rint(np.outer(margins[a], margins[b]) / totals[a]) for a, b in pairs]
        rows = [[cell for cell in np.ndindex(table.shape) for _ in range(table[cell])] for table in tables]
        sizes = [table.shape for table in tables]
        assert out.tolist() == [slow.score(*each) for each in zip(rows, [(0, 1)] * 3, sizes, expected, strict=True)]

    def test_threads_count_the_same(self):
        rng = np.random.default_rng(1)
        sizes, marginals = np.array([5, 9], np.int32), [[0, 1], [1]]
        codes = np.stack([rng.integers(0, size, 300_000) for size in sizes]).astype(np.uint16)
        one, other = np.empty(54, np.int64), np.empty(54, np.int64)
        _marginals.count(codes, sizes, marginals, one)
        _marginals.count(codes, sizes, marginals, other, workers=4)
        np.testing.assert_array_equal(one, other)
        assert one[:45].sum() == one[45:].sum() == 300_000


class TestColumns:
    def test_categories(self):
        column = Categories(["x", "y"])
        assert (column.size, column.labels) == (3, ("x", "y", None))
        np.testing.assert_array_equal(column.encode("v", ["y", None, "x", "unlisted"]), [1, 2, 0, 2])
        np.testing.assert_array_equal(Categories(["x", "y"], missing="y").encode("v", ["q", "x"]), [1, 0])
        assert Categories([1, 0]).draw(np.array([0, 2, 1]), np.random.default_rng(1)).tolist() == [1, None, 0]

    @pytest.mark.parametrize(
        "values",
        [[], ["a", "a"], ["a", None], "ab", 5, range(2**16)],
        ids=["empty", "same", "none", "text", "one", "many"],
    )
    def test_wrong_categories(self, values):
        with pytest.raises((TypeError, ValueError)):
            Categories(values)

    def test_bins(self):
        even = Bins(4, grid=dpf.Grid(0, 8, step=1))
        np.testing.assert_array_equal(even.encode("v", [-5, 0, 1, 2, 7, 8, 99, np.nan]), [0, 0, 0, 1, 3, 3, 3, 0])
        edges = Bins([0, 1000], grid=dpf.FloatGrid())
        np.testing.assert_array_equal(edges.encode("v", [-1e300, -1.0, 0.0, 999.0, 1e300]), [0, 0, 1, 1, 2])
        for column in (even, edges):
            bins = np.arange(column.size).repeat(50)
            np.testing.assert_array_equal(column.encode("v", column.draw(bins, np.random.default_rng(1))), bins)

    @pytest.mark.parametrize(
        "make",
        [
            lambda: Bins(10, grid=dpf.Grid(0, 8, step=1)),
            lambda: Bins(9, grid=dpf.Grid(0, 4, step=0.5)),
            lambda: Bins([3, 3], bounds=(0, 8)),
            lambda: Bins([3], bounds=(5, 8)),
            lambda: Bins(3, bounds=(0, 1), grid=dpf.Grid(0, 1)),
            lambda: Bins(3, grid=dpf.Grid(0, 1, missing="half")),
            lambda: Bins(0, bounds=(0, 1)),
            lambda: columns_of({"a": 3}),
            lambda: columns_of({}),
            lambda: columns_of([("a", (0, 1)), ("a", (0, 1))]),
        ],
    )
    def test_wrong_bins(self, make):
        with pytest.raises((TypeError, ValueError)):
            make()

    def test_tables(self):
        rows = np.arange(6.0).reshape(3, 2)
        named = np.zeros(3, dtype=[("u", float), ("v", int)])
        named["v"] = [1, 3, 5]
        for x, name in ((rows, 1), (rows.tolist(), 1), (named, "v"), ({"v": [1, 3, 5]}, "v")):
            names = [0, 1] if name == 1 else [name]
            assert list(DataColumns(x, names)[name]) == [1, 3, 5]
        for x in ({"u": [1]}, named, rows, [1, 2]):
            with pytest.raises((TypeError, ValueError)):
                DataColumns(x, ["w"])
        with pytest.raises(ValueError, match="equally long"):
            DataColumns({"u": [1], "v": [1, 2]}, ["u", "v"])

    @pytest.mark.parametrize("given", [[0, 100], np.array([0, 100]), [0.0, 1.0], [np.int64(1), 2]])
    def test_two_numbers_in_a_list_are_refused(self, given):
        """They are bounds to some users, and categories to others."""
        message = re.escape(
            f"two numbers in a list may be bounds or categories: write the tuple ({given[0]}, {given[1]}) for bounds, "
            f"or dpf.Categories([{given[0]}, {given[1]}]) for two categories"
        )
        for call in (
            lambda: column_of(given),
            lambda: dpf.synthesize({"age": [7] * 50}, 5, columns={"age": given}, epsilon=1.0),
            lambda: dpf.marginals({"age": [7] * 50}, {"age": given}, epsilon=1.0),
        ):
            with pytest.raises(TypeError, match=message):
                call()

    @pytest.mark.parametrize("given", [["a", "b"], [False, True], [b"a", 1], [0], [0, 1, 2], range(2), ["a", 1]])
    def test_other_lists_are_categories(self, given):
        assert isinstance(column_of(given), Categories)

    @pytest.mark.parametrize("bounds", [{0: (0, 1), 1: (0, 2)}, {0: 1, 5: 2}, {0, 100}, frozenset((0, 100))])
    def test_bounds_without_an_order_are_refused(self, bounds):
        """A mapping unpacks into its keys, and a set in any order."""
        x = np.ones((50, 2))
        for call in (
            lambda: dpf.Bins(3, bounds=bounds),
            lambda: dpf.histogram(x, 3, bounds=bounds, epsilon=1.0),
            lambda: dpf.synthesize(x, 3, bounds=bounds, epsilon=1.0),
            lambda: dpf.mean(x[:, 0], bounds=bounds, epsilon=1.0),
            lambda: dpf.median(x[:, 0], bounds=bounds, epsilon=1.0),
        ):
            with pytest.raises((TypeError, ValueError), match=r"bounds must be a pair \(lower, upper\)"):
                call()

    @pytest.mark.host
    @pytest.mark.parametrize("library", ["pandas", "pyarrow"])
    def test_frames_with_a_name_twice_are_refused(self, library):
        module = pytest.importorskip(library)
        columns = [np.arange(50.0)] * 6
        if library == "pandas":
            frame = module.DataFrame(dict(enumerate(columns))).set_axis(list("aabcde"), axis=1)
        else:
            frame = module.table(columns, names=list("aabcde"))
        message = "several columns of x are named 'a': rename all but one"
        for call in (
            lambda: DataColumns(frame, ["b", "a"]),
            lambda: dpf.marginals(frame, {"a": (0, 50), "b": (0, 50)}, epsilon=1.0),
            lambda: dpf.synthesize(frame, 3, columns={"a": (0, 50)}, epsilon=1.0),
            lambda: dpf.synthesize(frame, 3, bounds=(0, 50), epsilon=1.0),
        ):
            with pytest.raises(ValueError, match=message):
                call()
        assert len(dpf.synthesize(frame, 3, columns={"b": (0, 50)}, epsilon=1.0)) == 3

    @pytest.mark.host
    def test_names_of_pandas_that_are_equal_as_text_are_refused(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({1: [1.0] * 9, "1": [2.0] * 9})
        for name in (1, "1"):
            with pytest.raises(ValueError, match="several columns of x are named '1'"):
                DataColumns(frame, [name])


def near(a, b, neighbors):
    """Whether two datasets differ in one record: in its place, or in the last one."""
    if neighbors == "replace-one":
        return sum(x != y for x, y in zip(a, b, strict=True)) == 1
    return abs(len(a) - len(b)) == 1 and a[: len(b)] == b[: len(a)]


class TestPrivacy:
    @staticmethod
    def largest_loss(mechanism, n, neighbors):
        """The largest log-ratio of two neighbours on a window of outcomes, beyond which it is constant."""
        every = list(itertools.product(range(2), repeat=2))
        datasets = [
            rows
            for m in ((n,) if neighbors == "replace-one" else (n - 1, n))
            for rows in itertools.product(every, repeat=m)
        ]
        laws = {rows: mechanism.law(table(rows) if rows else {"a": [], "b": []}) for rows in datasets}
        cells = sum(mechanism.sizes)
        corners = np.array(list(itertools.product((-9, 0, 1, 9), repeat=min(cells, 6))))
        window = np.concatenate([corners, np.zeros((len(corners), cells - corners.shape[1]), int)], axis=1)
        window = np.concatenate([window, np.roll(window, 2, axis=1)])
        logs = {rows: law.logpmf(window) for rows, law in laws.items()}
        pairs = [(a, b) for a in datasets for b in datasets if near(a, b, neighbors)]
        return max((logs[a] - logs[b]).max() for a, b in pairs)

    @pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
    @pytest.mark.parametrize("weights", [None, (1.0, 0.5, 2.0)])
    def test_pure_loss_on_every_small_table(self, neighbors, weights):
        """The loss is epsilon exactly; that of the noise for added records is twice as large under replacement."""
        mechanism = NoisyMarginals(BITS, SETS["all"], epsilon=1.0, neighbors=neighbors, weights=weights)
        assert abs(self.largest_loss(mechanism, 2, neighbors) - 1) < 1e-9
        if neighbors == "add-remove":
            assert abs(self.largest_loss(mechanism, 2, "replace-one") - 2) < 1e-9

    @pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
    @pytest.mark.parametrize("weights", [None, (1.0, 0.1, 3.0)])
    @pytest.mark.parametrize("options", [{"epsilon": 0.7, "delta": 1e-3}, {"mu": 0.3}])
    def test_gaussian_noise_on_every_small_table(self, neighbors, weights, options):
        """The distance of neighbours in units of the noise is at most mu, in rationals, and close to it."""
        mechanism = NoisyMarginals(BITS, SETS["all"], neighbors=neighbors, weights=weights, **options)
        assert mechanism.gaussian_mu is not None
        variances = np.repeat(
            np.array([Fraction(noise.law.scale) ** 2 for noise in mechanism.noises], object), mechanism.sizes
        )
        every = list(itertools.product(range(2), repeat=2))
        one = {
            row: counted(mechanism.columns, mechanism.marginals, encoded(mechanism.columns, table([row])), 1)
            for row in every
        }
        replaced = [one[a] - one[b] for a in every for b in every]
        changes = replaced if neighbors == "replace-one" else list(one.values())
        most = max(sum(Fraction(int(c)) ** 2 / v for c, v in zip(change, variances, strict=True)) for change in changes)
        assert most <= Fraction(mechanism.gaussian_mu) ** 2
        assert most > Fraction(mechanism.gaussian_mu) ** 2 * (1 - Fraction(1, 10**12))
        fewer = NoisyMarginals(
            BITS, SETS["pair"], neighbors=neighbors, mu=mechanism.gaussian_mu
        )  # the noise of one marginal
        assert sum(2 / Fraction(fewer.noises[0].law.scale) ** 2 for _ in SETS["all"]) > Fraction(fewer.gaussian_mu) ** 2

    def test_noise_of_each_marginal(self):
        mechanism = NoisyMarginals(BITS, SETS["all"], epsilon=1.0, delta=1e-5, weights=[1, 2, 4])
        drawn = mechanism.release(table([(0, 1)] * 5), size=20_000, rng=PCG64(1))
        assert drawn.shape == (20_000, 8)
        for noise, column, exact in zip(mechanism.noises, (0, 3, 5), (5, 5, 5), strict=True):
            z = drawn[:, column] - exact
            for factor, wrong in ((1.0, False), (0.9, True), (1.1, True)):
                law = stats.chi2(len(z))
                statistic = (z**2).sum() / (factor**2 * noise.law.variance)
                assert (min(law.cdf(statistic), law.sf(statistic)) < ALPHA) == wrong

    def test_laplace_noise_by_weight(self):
        mechanism = NoisyMarginals(BITS, SETS["all"], epsilon=1.0, weights=[1, 1, 2])
        assert [noise.law.scale for noise in mechanism.noises] == [8, 8, 4]
        drawn = mechanism.release(table([(0, 1)] * 5), size=20_000, rng=PCG64(1))
        z = np.arange(-60, 61)
        found = np.bincount(np.clip(drawn[:, 5] - 5, -60, 60) + 60, minlength=121)
        for scale, wrong in ((4.0, False), (3.6, True), (4.4, True)):
            weights = np.exp(-np.abs(z) / scale)
            assert chi_square_rejects(found, weights / weights.sum()) == wrong

    def test_scores_change_by_two_or_one(self):
        """By brute force over all tables of three records and all integers of independent columns up to 3."""
        every = list(itertools.product(range(2), repeat=2))
        changes = {"replace-one": set(), "add-remove": set()}
        for independent in itertools.product(range(3), repeat=4):
            fixed = np.reshape(independent, (2, 2))
            scores = {
                rows: slow.score(rows, (0, 1), (2, 2), fixed)
                for n in (2, 3)
                for rows in itertools.combinations_with_replacement(every, n)
            }
            for rows in itertools.combinations_with_replacement(every, 2):
                more = [scores[tuple(sorted((*rows, row)))] for row in every]
                changes["add-remove"] |= {abs(score - scores[rows]) for score in more}
                changes["replace-one"] |= {abs(a - b) for a in more for b in more}
        assert (max(changes["replace-one"]), max(changes["add-remove"])) == (2, 1)

    def test_shares_of_a_budget_compose_to_it(self):
        for budget in (
            BudgetShare("replace-one", epsilon=Fraction(0.7)),
            BudgetShare("replace-one", mu_squared=Fraction(0.3) ** 2),
        ):
            shares = [budget.share(part).options for part in (Fraction(3, 20), Fraction(1, 10), Fraction(3, 4))]
            if "mu" in shares[0]:
                assert sum(Fraction(share["mu"]) ** 2 for share in shares) <= budget.mu_squared
            else:
                assert sum(Fraction(share["epsilon"]) for share in shares) <= budget.epsilon

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    @pytest.mark.parametrize("domain", [(0, 1e6), Bins()], ids=["bounds", "private"])
    @pytest.mark.parametrize("pairs", ["tree", "adaptive", "all", [("age", "pay")]])
    def test_one_charge(self, delta, domain, pairs):
        x = correlated(2000, np.random.default_rng(1))
        ledger = dpf.Ledger(rho=10.0)
        with ledger:
            released = dpf.marginals(x, {**DOMAINS, "pay": domain}, pairs, epsilon=1.0, delta=delta, rng=PCG64(1))
        [charge] = ledger.charges
        assert charge.times == 1
        assert released.privacy.epsilon == 1.0
        assert released.privacy.delta == (delta if isinstance(pairs, str) else 0.0)
        with pytest.raises(dpf.BudgetError), dpf.Ledger(0.5, delta=1e-9):
            dpf.marginals(x, {**DOMAINS, "pay": domain}, pairs, epsilon=1.0, delta=delta)

    @pytest.mark.parametrize(
        "change",
        [
            {"epsilon": 0.0},
            {"delta": 1.5},
            {"pairs": "forest"},
            {"pairs": [("a", "z")]},
            {"pairs": [("a", "a")]},
            {"pairs": []},
            {"pairs": [("a", "b"), ("b", "a")]},
            {"neighbors": "local"},
            {"rng": 3},
            {"workers": 0},
            {"columns": {"a": Bins()}, "neighbors": "add-remove"},
            {"columns": {"a": [1, 1]}},
        ],
    )
    def test_wrong_parameters_are_rejected_before_reading(self, change):
        options = {"columns": BITS, "epsilon": 1.0, **change}
        with pytest.raises((TypeError, ValueError)):
            dpf.marginals(Untouchable(), **options)

    @pytest.mark.parametrize(
        ("change", "error"),
        [
            ({"mu": 1.0}, TypeError),
            ({"epsilon": 1e-18}, ValueError),
            ({"weights": [1.0]}, ValueError),
            ({"weights": [1.0, 0.0]}, ValueError),
            ({"marginals": [("a", 5)]}, ValueError),
            ({"marginals": "ab"}, TypeError),
            ({"columns": {"a": Bins(), "b": Categories([0, 1])}}, ValueError),
            ({"columns": {"a": range(5000), "b": range(5000)}, "marginals": [("a", "b"), ("a",)]}, ValueError),
        ],
    )
    def test_wrong_mechanisms(self, change, error):
        options = {"columns": BITS, "marginals": [("a", "b"), ("a",)], "epsilon": 1.0, **change}
        with pytest.raises(error):
            NoisyMarginals(**options)


VARIANCES = {("a", "b"): 4.0, ("b", "c"): 1.0, ("a",): 9.0, ("a", "b", "c"): 100.0, ("c", "b"): 2.0}


SOME = [[("a", "b")], [("a", "b"), ("b", "c")], [("a", "b"), ("b", "c"), ("a",), ("a", "b", "c")], [("a",), ("c", "b")]]


@pytest.mark.kernel
class TestConsistency:
    def noisy(self, names, records):
        rng = np.random.default_rng(3)
        full = rng.integers(0, 30, (2, 3, 2)) + records
        tables = {}
        for key in names:
            exact = full.sum(axis=tuple(i for i, name in enumerate("abc") if name not in key))
            exact = np.transpose(exact, np.argsort(np.argsort(key)))
            tables[key] = exact + rng.normal(0, VARIANCES[key] ** 0.5, exact.shape)
        return tables, float(full.sum())

    @pytest.mark.parametrize("known", [True, False])
    @pytest.mark.parametrize("names", SOME)
    def test_least_squares_is_that_of_the_kkt_equations(self, names, known):
        tables, total = self.noisy(names, 1000)
        total = total if known else None
        found, expected = nearest_consistent(tables, VARIANCES, total), slow.equal_margins(tables, VARIANCES, total)
        for key in names:
            np.testing.assert_allclose(found[key], expected[key], atol=1e-8)

    @pytest.mark.parametrize("known", [True, False])
    @pytest.mark.parametrize("names", SOME)
    def test_nearest_tables_are_those_of_plain_projections(self, names, known):
        """The control: the nearest tables by equal variances are others."""
        tables, total = self.noisy(names, -14)
        total = 40.0 if known else None
        found, expected = nearest_consistent(tables, VARIANCES, total), slow.nearest(tables, VARIANCES, total, 5000)
        assert min(table.min() for table in tables.values()) < 0
        for key in names:
            np.testing.assert_allclose(found[key], expected[key], atol=1e-6)
        if ("b", "c") in names:
            even = nearest_consistent(tables, dict.fromkeys(names, 1.0), total)
            assert max(np.abs(even[key] - expected[key]).max() for key in names) > 1e-2

    def test_no_counts_decide_what_errors_of_floats_raise(self):
        """Counts of any size and variances of any noise give finite tables, whatever errors a caller raises for."""
        for scale, n in itertools.product((1e-3, 1.0, 2.0**60), (1.0, 1e9, None)):
            tables = {
                ("a", "b"): scale * np.array([[-3.0, 4], [5, -6], [2, 9]]),
                ("b",): -scale * np.ones(2),
                ("c",): np.zeros(4),
            }
            for variances in itertools.product((1e-12, 2.0**112), repeat=3):
                named = dict(zip(tables, variances, strict=True))
                found = nearest_consistent(tables, named, n)
                with np.errstate(all="raise"):
                    again = nearest_consistent(tables, named, n)
                for key, table in found.items():
                    assert np.isfinite(table).all()
                    assert table.min() >= 0
                    np.testing.assert_array_equal(table, again[key])

    def test_columns_of_one_bin_and_tables_without_common_columns(self):
        tables = {("a", "b"): np.array([[3.0, -1.0]]), ("a",): np.array([4.0]), ("c",): np.array([[5.0, 1.0]])[0]}
        found = nearest_consistent(tables, dict.fromkeys(tables, 1.0), None)
        np.testing.assert_allclose([table.sum() for table in found.values()], found["a",][0])
        assert found["a", "b"].tolist()[0][1] == 0

    def test_nearest_nonnegative_tables(self):
        """Against a general solver of quadratic programs with constraints."""
        from scipy.optimize import minimize

        tables = {("b", "a"): np.array([[-3.0, 4], [5, -6], [2, 9]]), ("b",): np.array([2.0, -4, 9])}
        variances = {("b", "a"): 2.0, ("b",): 1.0}
        found = nearest_consistent(tables, variances, 10.0)
        assert min(table.min() for table in found.values()) >= 0
        np.testing.assert_allclose(found["b", "a"].sum(axis=1), found["b",], atol=1e-6)
        assert abs(found["b",].sum() - 10) < 1e-6

        def distance(x):
            both, one = x.reshape(3, 2), x.reshape(3, 2).sum(axis=1)
            return ((both - tables["b", "a"]) ** 2).sum() / 2 + ((one - tables["b",]) ** 2).sum()

        constraint = {"type": "eq", "fun": lambda x: x.sum() - 10}
        best = minimize(distance, np.full(6, 10 / 6), bounds=[(0, None)] * 6, constraints=[constraint], tol=1e-12)
        np.testing.assert_allclose(found["b", "a"].reshape(-1), best.x, atol=1e-3)

    def test_less_error_than_the_counts(self):
        x = correlated(5000, np.random.default_rng(1))
        released = dpf.marginals(x, DOMAINS, "all", epsilon=1.0, rng=PCG64(2))
        columns = tuple(released.columns.items())
        mechanism = NoisyMarginals(columns, list(released.counts), epsilon=1.0)
        true = counted(columns, mechanism.marginals, encoded(mechanism.columns, x), 1)
        errors = [
            np.abs(np.concatenate([tables[key].reshape(-1) for key in mechanism.marginals]) - true).mean()
            for tables in (released.counts, released.consistent())
        ]
        assert errors[1] < 0.6 * errors[0]


class TestTrees:
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    @pytest.mark.parametrize("pairs", ["tree", "adaptive"])
    def test_dependent_columns_are_paired(self, pairs, delta):
        x = correlated(20_000, np.random.default_rng(1))
        released = dpf.marginals(x, DOMAINS, pairs, epsilon=2.0, delta=delta, rng=PCG64(4))
        pairs = {frozenset(names) for names in released.counts if len(names) == 2}
        assert {frozenset(("age", "retired")), frozenset(("retired", "pay"))} <= pairs
        assert {("age",), ("retired",), ("pay",), ("coin",)} <= set(released.counts)

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_pairs_that_noise_would_hide_stay_apart(self, delta):
        rng = np.random.default_rng(1)
        x = {name: rng.integers(0, 10, 1000) for name in "abcde"}
        released = dpf.marginals(x, {name: range(10) for name in x}, "tree", epsilon=1.0, delta=delta, rng=PCG64(3))
        assert list(released.counts) == [(name,) for name in x]
        assert np.isfinite(released.sample(10, PCG64(1))["e"].astype(float)).sum() > 0

    def test_sampled_records_follow_the_pairs(self):
        x = correlated(20_000, np.random.default_rng(1))
        released = dpf.marginals(x, DOMAINS, [("age", "retired"), ("retired", "pay")], epsilon=5.0, rng=PCG64(3))
        drawn, tables = released.sample(50_000, PCG64(4)), released.consistent()
        mechanism = NoisyMarginals(tuple(released.columns.items()), list(released.counts), epsilon=1.0)
        counts = np.split(
            counted(mechanism.columns, mechanism.marginals, encoded(mechanism.columns, drawn), 1),
            np.cumsum(mechanism.sizes)[:-1],
        )
        for names, found in zip(mechanism.marginals, counts, strict=True):
            expected = tables[names].reshape(-1) * (50_000 / 20_000)
            assert np.abs(found - expected).max() < 5 + found.size  # rounding in each row; independent draws: about 150
        assert set(np.unique(drawn["coin"].astype(str))) == {"0", "1", "None"}

    def test_tables_without_weight(self):
        released = dpf.Marginals(
            dict(columns_of(BITS)), {("a", "b"): np.full((2, 2), -5)}, {("a", "b"): 1.0}, None, dpf.Privacy(1.0)
        )
        drawn = released.sample(100, PCG64(1))
        assert sorted(np.unique(drawn["a"])) == [0, 1]


class TestSynthesis:
    def test_a_table_of_many_columns(self):
        rng = np.random.default_rng(1)
        z = rng.normal(size=(20_000, 1))
        X = 50 + 10 * z + 3 * rng.normal(size=(20_000, 7))
        twins = dpf.synthesize(X, 10_000, bounds=(0, 100), bins=12, epsilon=2.0, delta=1e-6, rng=PCG64(1))
        assert twins.shape == (10_000, 7)
        assert np.abs(twins.mean(axis=0) - X.mean(axis=0)).max() < 1.5
        assert np.corrcoef(twins.T)[np.triu_indices(7, 1)].max() > 0.7
        with pytest.raises(ValueError, match="1 to 4 columns"):
            dpf.synthesize(X, 10, bounds=(0, 100), epsilon=1.0, method="perturbed")

    def test_a_list_of_rows_is_an_array(self):
        rows, options = np.random.default_rng(2).uniform(0, 100, (200, 5)), {"bounds": (0, 100), "epsilon": 1.0}
        expected = dpf.synthesize(rows, 9, rng=PCG64(1), **options)
        assert expected.shape == (9, 5)
        for x in (rows.tolist(), list(rows)):
            np.testing.assert_array_equal(dpf.synthesize(x, 9, rng=PCG64(1), **options), expected)

    def test_kinds_of_tables(self):
        x = correlated(500, np.random.default_rng(1))
        twins = dpf.synthesize(x, 7, columns=DOMAINS, epsilon=1.0, rng=PCG64(1))
        assert list(twins) == list(DOMAINS)
        assert {len(column) for column in twins.values()} == {7}
        assert (twins["age"].dtype, twins["pay"].dtype, twins["coin"].dtype) == (np.int64, np.float64, object)
        named = np.zeros(500, dtype=[("age", int), ("coin", int)])
        rows = dpf.synthesize(
            named, 7, columns={"age": (0, 100), "coin": Categories([0, 1])}, epsilon=1.0, rng=PCG64(1)
        )
        assert (rows.dtype.names, rows.shape) == (("age", "coin"), (7,))

    @pytest.mark.host
    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    def test_frames(self, library):
        module = pytest.importorskip(library)
        x = correlated(500, np.random.default_rng(1))
        make = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[library]
        frame = getattr(module, make)(x)
        twins = dpf.synthesize(frame, 7, columns=DOMAINS, epsilon=1.0, rng=PCG64(1))
        assert type(twins) is type(frame)
        expected = dpf.synthesize(x, 7, columns=DOMAINS, epsilon=1.0, rng=PCG64(1))
        for name, column in expected.items():
            assert list(twins[name].to_pylist() if library == "pyarrow" else twins[name]) == column.tolist()
        with pytest.raises(ValueError, match="no column 'sex'"):
            dpf.synthesize(frame, 7, columns={"sex": Categories([0, 1])}, epsilon=1.0)

    @pytest.mark.host
    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    def test_types_of_columns_do_not_depend_on_the_draws(self, library):
        """Also if all draws are missing."""
        module = pytest.importorskip(library)
        frame = getattr(module, {"pyarrow": "table"}.get(library, "DataFrame"))({"a": [7] * 99, "b": ["z"] * 99})
        found, draws = set(), set()
        for seed in range(12):
            twin = dpf.synthesize(frame, 1, columns={"a": [0], "b": ["x"]}, epsilon=0.01, rng=PCG64(seed))
            types = twin.schema.types if library == "pyarrow" else list(twin.dtypes)
            found.add(tuple(map(str, types)))
            draws.add(str(twin["b"]))
        assert len(found) == 1
        assert len(draws) == 2

    @pytest.mark.parametrize(
        "options",
        [
            {"method": "perturbed"},
            {"bounds": (0, 1)},
            {"bins": 3},
            {"columns": None, "bounds": (0, 1), "delta": 1e-6, "method": "perturbed"},
            {"columns": None, "bounds": [(0, 1)] * 2, "method": "tree"},
            {"pairs": [("a", "b"), ("b", "z")], "columns": THREE},
        ],
    )
    def test_wrong_arguments(self, options):
        with pytest.raises((TypeError, ValueError)):
            dpf.synthesize(table([(0, 1, 1)] * 9), 3, **{"columns": BITS, "epsilon": 1.0, **options})

    def test_measurements_for_mbi(self):
        released = dpf.marginals(correlated(500, np.random.default_rng(1)), DOMAINS, epsilon=1.0, rng=PCG64(1))
        assert released.sizes == {"age": 10, "retired": 3, "pay": 5, "coin": 3}
        for vector, names, deviation in released.measurements():
            np.testing.assert_array_equal(vector, released.counts[names].reshape(-1))
            assert deviation == released.deviations[names]

    @pytest.mark.host
    @pytest.mark.filterwarnings("ignore")  # of mbi and jax
    def test_mbi_takes_the_measurements(self):
        mbi = pytest.importorskip("mbi")
        x = correlated(20_000, np.random.default_rng(1))
        released = dpf.marginals(x, DOMAINS, epsilon=2.0, rng=PCG64(1))
        domain = mbi.Domain.fromdict(released.sizes)
        measurements = [mbi.LinearMeasurement(*each) for each in released.measurements()]
        first = not hasattr(mbi.estimation, "MirrorDescent")  # mbi 1.1, which opendp[mbi] pins
        estimate = mbi.estimation.mirror_descent if first else mbi.estimation.MirrorDescent().estimate
        model = estimate(domain, measurements, iters=1000)
        for names, table in released.consistent().items():
            # Mirror descent is slow where counts have much noise: 47 records after these steps, 26 after 5,000.
            near = 2 * released.deviations[names]
            np.testing.assert_allclose(np.asarray(model.project(names).values), table, atol=near)


def test_edges_of_tied_records_are_near_them():
    """The control: as many edges with 50 records over epsilon beyond the outermost ones leave the ties together."""
    years, n, epsilon = np.repeat(np.arange(1952.0, 2012.0, 5.0), 142), 12 * 142, 0.4
    levels = _levels(Bins(30, grid=dpf.FloatGrid()), n, epsilon)
    assert levels[0] * n * epsilon >= 20 + 10 * len(levels)
    tail = 50 / (n * epsilon)
    former = (tail, *(level for level in np.arange(1, 15) / 15 if tail < level < 1 - tail), 1 - tail)
    far = {}
    for qs in (levels, former):
        released = dpf.Quantiles(qs, grid=dpf.FloatGrid(), epsilon=epsilon).release(years, size=60, rng=PCG64(1))
        far[qs] = np.mean(np.any(np.abs(released - 1980) > 200, axis=1))
    assert far[levels] == 0
    assert far[former] > 0.5


@pytest.mark.parametrize(("n", "edges"), [(1000, 1), (1001, 2), (10_000, 9), (100_000, 31)])
def test_the_number_of_edges_is_public(n, edges):
    assert len(_levels(Bins(64, grid=dpf.FloatGrid()), n, 0.1)) == edges


def test_tables_add_up_if_their_noise_does_before_negative_counts_are_raised():
    """Nothing moves in the first sweep, which is not the end."""
    noisy = {("a",): np.array([7.0, -3.0, 6.0])}
    found = nearest_consistent(noisy, {("a",): 1.0}, 10.0)["a",]
    assert found.sum() == pytest.approx(10.0)
    assert found.tolist() == pytest.approx([5.5, 0.0, 4.5])
