"""Cliques of tables: junction trees, models that fit noisy counts, draws by whole cells, selection in rounds."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64
from scipy import stats
from scipy.optimize import minimize

import dpfast as dpf
from dpfast import Categories
from dpfast._kernels import _marginals
from dpfast.core.divergences import range_of_mu_down
from dpfast.densities import adaptive, graphical
from dpfast.densities.adaptive import Rounds
from dpfast.densities.budgets import BudgetShare
from dpfast.densities.graphical import Noisy, fitted
from dpfast.densities.junctions import CellCounts, Junctions, cells_of, graph
from dpfast.densities.marginals import encoded
from dpfast.errors import BudgetError
from tests.reference import graphical as slow
from tests.statistical import ALPHA, chi_square_rejects

SIZES = (3, 4, 2, 5, 3, 2)
SETS = [(0, 1), (1, 2), (2, 3), (1, 3, 4), (4, 5), (0,)]


def noisy_counts(sizes, sets, seed=1, variance=4.0):
    rng = np.random.default_rng(seed)
    full = rng.gamma(0.5, 20.0, sizes)
    counts = {
        places: Noisy(
            slow.margin(full, places) + rng.normal(0, variance**0.5, len(slow.margin(full, places))), variance
        )
        for places in sets
    }
    return counts, full.sum()


class TestJunctions:
    @pytest.mark.parametrize("seed", range(20))
    def test_running_intersection(self, seed):
        """The cliques of each column are connected, each set is in a clique, and no clique is in another."""
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 9))
        sizes = tuple(int(size) for size in rng.integers(1, 6, d))
        sets = [tuple(sorted(rng.choice(d, min(d, int(rng.integers(1, 4))), replace=False).tolist())) for _ in range(d)]
        tree = Junctions.of(sizes, sets)
        assert all(tree.has(places) for places in sets)
        assert len(tree.edges) == len(tree.cliques) - 1
        assert not any(set(a) < set(b) for a in tree.cliques for b in tree.cliques)
        for place in range(d):
            holding = [i for i, clique in enumerate(tree.cliques) if place in clique]
            joined = [edge for edge in tree.edges if place in edge.shared]
            assert len(joined) == len(holding) - 1
        assert tree.cells == cells_of(CellCounts(sizes), graph(d, sets))

    def test_columns_of_one_bin_have_no_axis(self):
        tree = Junctions.of((1, 3) * 16, [(0, 2, 4), (1, 3), tuple(range(0, 32, 2))])
        clique = tuple(range(0, 32, 2))
        assert tree.axes(clique, clique[::2]).tolist() == [[1], [0]]
        assert tree.axes((0, 1, 2, 3), (1, 2)).tolist() == [[3, 3], [1, 0]]

    def test_a_circle_is_cut(self):
        tree = Junctions.of((2, 2, 2, 2), [(0, 1), (1, 2), (2, 3), (0, 3)])
        assert sorted(map(len, tree.cliques)) == [3, 3]


@pytest.mark.kernel
class TestModel:
    def test_tables_and_pairs_are_margins_of_one_table(self):
        noisy, total = noisy_counts(SIZES, SETS)
        model = fitted(Junctions.of(SIZES, SETS), noisy, total, sweeps=300, tolerance=1e-9)
        joint = slow.joint(SIZES, model.potentials, total)
        for places, table in zip(model.junctions.cliques, model.tables, strict=True):
            np.testing.assert_allclose(table, slow.margin(joint, places), rtol=1e-6)
        pairs = model.pairs()
        assert set(pairs) == set(itertools.combinations(range(6), 2))
        for places, table in pairs.items():
            np.testing.assert_allclose(table, slow.margin(joint, places), rtol=1e-6)

    def test_pairs_across_three_shared_columns(self):
        sizes, sets = (2, 3, 2, 3, 2, 2), [(0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5)]
        noisy, total = noisy_counts(sizes, sets)
        model = fitted(Junctions.of(sizes, sets), noisy, total, sweeps=100, tolerance=1e-9)
        joint = slow.joint(sizes, model.potentials, total)
        for places, table in model.pairs().items():
            np.testing.assert_allclose(table, slow.margin(joint, places), rtol=1e-6)

    def test_the_fit_minimises_its_objective(self):
        """Against a general solver over all tables of three columns; a fit of other weights is worse."""
        sizes, sets = (2, 3, 2), [(0, 1), (1, 2), (0,)]
        noisy, total = noisy_counts(sizes, sets)
        noisy[0,] = Noisy(noisy[0,].counts, 1.0)
        model = fitted(Junctions.of(sizes, sets), noisy, total, sweeps=3000, tolerance=0.0)
        found = slow.objective(slow.joint(sizes, model.potentials, total), noisy, graphical._ENTROPY)

        def value(logs):
            table = np.exp(logs - logs.max()).reshape(sizes)
            return slow.objective(total * table / table.sum(), noisy, graphical._ENTROPY)

        best = minimize(value, np.zeros(12), tol=1e-14, options={"maxiter": 10_000})
        assert abs(found - best.fun) < 1e-4 * abs(best.fun)
        other = fitted(
            Junctions.of(sizes, sets),
            {places: Noisy(each.counts, 4.0) for places, each in noisy.items()},
            total,
            sweeps=3000,
            tolerance=0.0,
        )
        assert slow.objective(slow.joint(sizes, other.potentials, total), noisy, graphical._ENTROPY) > found + 1e-2

    @pytest.mark.parametrize("variance", [1e-12, 1.0, 1e12])
    def test_extreme_noise(self, variance):
        for counts in (np.zeros(12), np.full(12, -1e9), np.arange(12) * 1e9):
            noisy = {(0, 1): Noisy(counts, variance), (1, 2): Noisy(counts[::-1][:8].copy(), 4.0)}
            model = fitted(Junctions.of((3, 4, 2), noisy), noisy, 100.0, sweeps=50, tolerance=0.0)
            for table in model.tables:
                assert np.isfinite(table).all()
                assert abs(table.sum() - 100) < 1e-6

    def test_two_releases_are_one_of_less_variance(self):
        both = Noisy(np.array([3.0]), 1.0).and_also(Noisy(np.array([6.0]), 2.0))
        assert abs(both.counts[0] - 4) < 1e-12
        assert abs(both.variance - 2 / 3) < 1e-12


@pytest.mark.kernel
class TestDraws:
    def test_cells_get_their_share_up_to_one(self):
        noisy, total = noisy_counts(SIZES, SETS)
        model = fitted(Junctions.of(SIZES, SETS), noisy, total, sweeps=50, tolerance=0.0)
        k = 20_000
        bins = model.draw(k, PCG64(1))
        first = model.junctions.cliques[0]
        found = np.bincount(np.ravel_multi_index(bins[list(first)], model.junctions.shape(first)), minlength=0)
        assert np.abs(found - model.tables[0] * k / model.tables[0].sum()).max() < 1

    def test_columns_in_no_clique_together_are_as_in_the_model(self):
        noisy, total = noisy_counts(SIZES, SETS)
        model = fitted(Junctions.of(SIZES, SETS), noisy, total, sweeps=50, tolerance=0.0)
        k = 100_000
        bins = model.draw(k, PCG64(3))
        wrong = np.sort(bins, axis=1)  # the control: records in the order of their cells
        for places, table in model.pairs().items():
            expected = table * k / table.sum()
            cells = [np.ravel_multi_index(x[list(places)], model.junctions.shape(places)) for x in (bins, wrong)]
            far = [
                np.abs((np.bincount(each, minlength=len(table)) - expected) / np.sqrt(expected + 1)).max()
                for each in cells
            ]
            assert far[0] < 7
            assert far[1] > 7

    def test_rows_without_weight_have_equal_shares(self):
        weights, given = np.array([[0.0, 0, 0], [0, 2, 0]]), np.array([0, 1, 0, 0, 1, 0, 0, 0], np.uint32)
        _marginals.draw(PCG64(1), weights, given)
        assert given[[1, 4]].tolist() == [1, 1]
        assert np.bincount(given[[0, 2, 3, 5, 6, 7]]).tolist() == [2, 2, 2]

    @pytest.mark.parametrize("records", [16, 20_000])
    def test_arrangements_are_equally_likely(self, records):
        """In one bucket, and in several: the first three records of a row, whose cells are drawn without replacement.

        The control: the law with replacement.
        """
        weights, draws = np.array([[1.0, 2.0, 1.0], [0.0, 0.0, 1.0]]), 8_000 if records == 16 else 2_000
        source, found = PCG64(7), np.zeros((3, 3, 3), np.int64)
        places = np.arange(0, records, 2)
        for _ in range(draws):
            given = np.zeros(records, np.uint32)
            given[1::2] = 1
            _marginals.draw(source, weights, given)
            assert (given[1::2] == 2).all()
            own = given[places]
            found[tuple(own[:3])] += 1
            assert np.bincount(own).tolist() == [records // 8, records // 4, records // 8]
        n = records // 2
        shares = np.array([n / 4, n / 2, n / 4])
        law, other = np.empty((3, 3, 3)), np.multiply.outer(np.multiply.outer(shares, shares), shares) / n**3
        for cells in np.ndindex(law.shape):
            left, p = shares.copy(), 1.0
            for cell in cells:
                p *= left[cell] / left.sum()
                left[cell] -= 1
            law[cells] = p
        possible = law > 0
        assert found[~possible].sum() == 0
        assert not chi_square_rejects(found[possible], law[possible])
        if records == 16:
            assert chi_square_rejects(found[possible], other[possible] / other[possible].sum())

    def test_buckets_are_used_up_in_random_order(self):
        """Neighbours in a long row are as alike as far records: the variance of the counts of windows is that of draws
        without replacement. The control: records in the order of their cells, and in buckets of equal counts.
        """
        records, window, source = 2**18, 2**10, PCG64(3)
        given = np.zeros(records, np.uint32)
        _marginals.draw(source, np.array([[1.0, 3.0]]), given)
        assert given.sum() == 3 * records // 4

        def deviation(cells):
            counts = cells.reshape(-1, window).sum(axis=1)
            return ((counts - window * 0.75) ** 2).sum() / (window * 0.75 * 0.25 * (1 - window / records))

        low, high = stats.chi2.ppf([ALPHA, 1 - ALPHA], records // window - 1)
        assert low < deviation(given) < high
        assert deviation(np.sort(given)) > high
        assert deviation(np.tile([0, 1, 1, 1], records // 4)) < low


def two_point_mu(p, q):
    """The least mu for two outcomes, of probability p and 1 - p, or q and 1 - q."""
    return stats.norm.ppf(p) + stats.norm.isf(q)


class TestPrivacy:
    @pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 3.0])
    def test_the_range_of_a_selection_costs_mu(self, mu):
        """Over all pairs of laws on two outcomes of this range; a range that is a percent larger costs more."""
        for factor, holds in ((1.0, True), (1.01, False)):
            epsilon = factor * range_of_mu_down(Fraction(mu) ** 2)
            t = np.linspace(0, epsilon, 2003)[1:-1]
            p = np.expm1(t - epsilon) / np.expm1(-epsilon)
            most = two_point_mu(p, p * np.exp(-t)).max()
            assert (most <= mu * (1 + 1e-9)) == holds
            assert most > mu * 0.999

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
    def test_selections_are_below_the_gaussian_curve(self, epsilon):
        """Trade-off functions of random scores and neighbours, by all tests that order outcomes by their losses."""
        rng, mu = np.random.default_rng(1), 2 * stats.norm.ppf(1 / (1 + math.exp(-epsilon / 2)))
        selection = dpf.Selection(epsilon=epsilon, sensitivity=2)
        for _ in range(50):
            scores = rng.integers(-5, 5, 6)
            p, q = (selection.law(x).pmf(np.arange(6)) for x in (scores, scores + rng.integers(-2, 3, 6)))
            order = np.argsort(q / p)
            level, power = np.cumsum(q[order]), np.cumsum(p[order])
            assert np.all(power <= stats.norm.cdf(stats.norm.ppf(np.minimum(level, 1)) + mu) + 1e-12)

    @pytest.mark.parametrize(("neighbors", "changed"), [("replace-one", 2), ("add-remove", 1)])
    def test_scores_of_half_the_sensitivity_lose_more(self, neighbors, changed):
        """All tables of two records of two bits, given the same counts before; the control halves the sensitivity."""
        every = list(itertools.product(range(2), repeat=2))
        expected = {(0,): np.array([1.0, 1.0]), (0, 1): np.array([1.0, 0, 0, 1.0])}
        rows = {n: list(itertools.product(every, repeat=n)) for n in (1, 2)}

        def scores(records):
            one = np.bincount([a for a, _ in records], minlength=2)
            both = np.bincount([2 * a + b for a, b in records], minlength=4)
            return [int(np.abs(x - e).sum()) for x, e in ((one, expected[0,]), (both, expected[0, 1]))]

        near = [(a, b) for a in rows[2] for b in rows[2] if sum(x != y for x, y in zip(a, b, strict=True)) == 1]
        if neighbors == "add-remove":
            near = [pair for a in rows[2] for pair in ((a, a[:1]), (a[:1], a))]
        for sensitivity, holds in ((changed, True), (Fraction(changed, 2), False)):
            selection = dpf.Selection(epsilon=1.0, sensitivity=sensitivity)
            laws = {a: selection.law(scores(a)).logpmf([0, 1]) for n in rows for a in rows[n]}
            losses = [laws[a] - laws[b] for a, b in near]
            assert (max(np.ptp(loss) for loss in losses) <= 1 + 1e-12) == holds

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("gaussian", [True, False])
    def test_parts_compose_to_the_budget(self, seed, gaussian, monkeypatch):
        """All mechanisms that a release draws from: together they have at most the budget, and nearly all of it."""
        spent, selections = [], []
        counting, selecting = Rounds._mechanism, Rounds._selected

        def mechanism(self, sets, part):
            made = counting(self, sets, part)
            spent.append((sets, Fraction(made.mu) ** 2 if gaussian else Fraction(made.epsilon)))
            return made

        def selected(self, *arguments):
            spent.pop()  # the noise of the next counts, only read
            found = []
            original = adaptive.Selection

            def selection(**options):
                found.append(Fraction(options["epsilon"]))
                assert options["sensitivity"] == 2
                return original(**options)

            with monkeypatch.context() as patch:
                patch.setattr(adaptive, "Selection", selection)
                chosen = selecting(self, *arguments)
            selections.extend(found)
            return chosen

        monkeypatch.setattr(Rounds, "_mechanism", mechanism)
        monkeypatch.setattr(Rounds, "_selected", selected)
        budget = (
            BudgetShare("replace-one", mu_squared=Fraction(0.3) ** 2)
            if gaussian
            else BudgetShare("replace-one", epsilon=Fraction(0.7))
        )
        rng = np.random.default_rng(seed)
        a = rng.integers(0, 3, 3000)
        x = {"a": a, "b": (a + (rng.random(3000) < 0.2)) % 3, "c": rng.integers(0, 2, 3000)}
        columns = tuple((name, Categories(range(3))) for name in x)
        rounds = Rounds(columns, budget, PCG64(seed), 1)
        rounds.release(encoded(columns, x))
        spent.pop()  # the guarantee of the whole
        counts = sum((part for _, part in spent), Fraction())
        if gaussian:
            total = counts + sum(
                (Fraction(2 * stats.norm.ppf(1 / (1 + math.exp(-float(e) / 2)))) ** 2 for e in selections), Fraction()
            )
        else:
            total = counts + sum(selections)
        whole = budget.mu_squared or budget.epsilon
        assert 0.999 * whole < total <= whole * (1 + Fraction(1, 10**9))
        assert len(selections) == len(spent) - 1 <= rounds.most_rounds


class TestRounds:
    def test_dependence_of_three_columns_on_a_circle(self):
        """A tree cannot have all three pairs; rounds can."""
        rng = np.random.default_rng(1)
        a, b = rng.integers(0, 2, (2, 20_000))
        noise = rng.random((2, 20_000)) < 0.1
        x = {"a": a, "b": np.where(noise[0], b, a), "c": np.where(noise[1], b, a)}
        domains = {name: Categories([0, 1], missing=0) for name in x}
        pairs = {
            way: sum(len(names) == 2 for names in dpf.marginals(x, domains, way, epsilon=2.0, rng=PCG64(1)).counts)
            for way in ("tree", "adaptive")
        }
        assert pairs == {"tree": 2, "adaptive": 3}

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    @pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
    def test_pairs_are_closer_than_those_of_a_tree(self, delta, neighbors):
        rng = np.random.default_rng(1)
        z = rng.normal(size=(20_000, 1))
        x = dict(zip("abcde", np.clip(z + rng.normal(size=(20_000, 5)), -3, 3).T, strict=True))
        domains = {name: dpf.Bins(6, bounds=(-3, 3)) for name in x}
        far = {}
        for way in ("tree", "adaptive"):
            released = dpf.marginals(x, domains, way, epsilon=2.0, delta=delta, neighbors=neighbors, rng=PCG64(1))
            twins = released.sample(20_000, PCG64(2))
            far[way] = np.abs(np.corrcoef(list(twins.values())) - np.corrcoef(list(x.values()))).mean()
        assert far["adaptive"] < far["tree"] / 2

    def test_the_limit_of_cells_holds_whatever_is_selected(self, monkeypatch):
        monkeypatch.setattr(adaptive, "MODEL_CELLS", 130)
        rng = np.random.default_rng(1)
        a = rng.integers(0, 5, 5000)
        x = {name: (a + (rng.random(5000) < 0.1)) % 5 for name in "abcdef"}
        released = dpf.marginals(x, {name: range(5) for name in x}, "adaptive", epsilon=3.0, rng=PCG64(1))
        places = {name: place for place, name in enumerate(x)}
        sets = [tuple(sorted(places[name] for name in names)) for names in released.counts]
        assert Junctions.of([6] * 6, sets).cells <= 130

    def test_marginals_of_a_large_circle_are_refused_before_the_charge(self):
        x = {name: np.zeros(50, int) for name in "abcd"}
        domains = {name: range(100) for name in x}
        circle = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("a", "c"), ("b", "d")]
        with dpf.Ledger(5.0) as ledger, pytest.raises(ValueError, match=r"junction tree has at most 2\*\*24 cells"):
            dpf.synthesize(x, 5, columns=domains, pairs=circle, epsilon=1.0)
        assert not ledger.charges
        released = dpf.marginals(x, domains, circle, epsilon=1.0, rng=PCG64(1))
        with pytest.raises(ValueError, match="junction tree"):
            released.sample(5)

    def test_error_states_of_callers_raise_nothing(self):
        noisy = {(0, 1): Noisy(np.arange(12) * 1e9, 1e-9), (1, 2): Noisy(np.full(8, -1e9), 1e-9)}
        with np.errstate(all="raise"):
            model = fitted(Junctions.of((3, 4, 2), noisy), noisy, 100.0, sweeps=50, tolerance=0.0)
            assert all(np.isfinite(table).all() for table in model.pairs().values())
            model.draw(100, PCG64(1))

    @pytest.mark.parametrize(
        ("n", "d", "way"), [(5000, 3, "rounds"), (4999, 3, "tree"), (5000, 32, "rounds"), (5000, 33, "tree")]
    )
    def test_the_choice_is_by_public_numbers(self, n, d, way):
        texts = []
        x = {i: np.arange(n) % 2 for i in range(d)}
        options = {"epsilon": 1.0, "explain": texts.append}
        with pytest.raises(BudgetError), dpf.Ledger(0.5):
            dpf.marginals(x, {i: Categories([0, 1]) for i in x}, **options)
        assert way in texts[0]
        assert (f"At most {4 * d} rounds, in models of at most 262,144 cells" in texts[0]) == (way == "rounds")
