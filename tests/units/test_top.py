"""The most frequent keys: laws of all small tables, slightly wrong ones, the choice of the method."""

import functools
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import TopK
from dpfast.core import traps
from dpfast.mechanisms import orders
from dpfast.mechanisms.orders import JointKeys
from tests.cases import every
from tests.statistical import chi_square_rejects
from tests.untouchable import Untouchable

POINTS = dpf.Grid(0, 2, step=1)
CITIES = np.repeat(["Oslo", "Rome", "Lima", "Bern"], [40, 30, 20, 10])


class OfNumbers(TopK):
    """Keys that are numbers, which the audit compares."""

    releases_numbers = True


class TestPrivacy:
    @every("k, neighbors", [(1, "add-remove"), (2, "replace-one"), (3, "add-remove")])
    def test_peeling(self, k, neighbors):
        mechanism = OfNumbers(k, range(3), epsilon=0.8, method="peeling", neighbors=neighbors)
        assert dpf.audit.verify(mechanism, n=4, values=3, grids=POINTS, ordered=False).holds

    @every("k, neighbors", itertools.product((1, 2, 3), ("add-remove", "replace-one")))
    def test_joint(self, k, neighbors):
        mechanism = OfNumbers(k, range(3), epsilon=0.8, method="joint", neighbors=neighbors)
        assert dpf.audit.verify(mechanism, n=4, values=3, grids=POINTS, ordered=False).holds

    @pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
    def test_joint_controls(self, neighbors, monkeypatch):
        """Without the half of the rate."""
        monkeypatch.setattr(OfNumbers, "_joint_epsilon", 1.6, raising=False)
        mechanism = OfNumbers(2, range(3), epsilon=0.8, method="joint", neighbors=neighbors)
        assert not dpf.audit.verify(mechanism, n=4, values=3, grids=POINTS, ordered=False).holds

    @every("k, counts", [(1, [4, 0, 3]), (2, [5, 5, 1, 0]), (3, [2, 7, 7, 0]), (4, [3, 3, 3, 3]), (2, [0, 0, 0])])
    def test_the_law_of_joint_selections(self, k, counts):
        """By its definition, of all orders."""
        law = JointKeys(np.array(counts), k, epsilon=0.7, decode=None)
        best = sorted(counts, reverse=True)
        orders = law.outcomes()
        missed = [max(best[j] - counts[place] for j, place in enumerate(order)) for order in orders.tolist()]
        weights = np.exp(-0.35 * np.array(missed))
        assert np.allclose(np.exp(law.logpmf(orders)), weights / weights.sum(), rtol=1e-9)
        places = law.sample(5000, rng=PCG64(3))
        seen = [int((places == order).all(axis=-1).sum()) for order in orders]
        assert not chi_square_rejects(seen, weights / weights.sum())
        assert law.logpmf([[0] * k])[0] == -math.inf or k == 1

    @every("k, neighbors, scale", [(2, "replace-one", 1.0), (2, "add-remove", 0.4)])
    def test_controls(self, k, neighbors, scale, monkeypatch):
        """All of epsilon for each key; and monotone scores for replaced records, of which two counts change."""
        mechanism = OfNumbers(k, range(3), epsilon=0.8, method="peeling", neighbors=neighbors)
        wrong = dpf.Selection(epsilon=scale * 1.2, monotone=True, selection="permute-and-flip", neighbors=neighbors)
        mechanism.__dict__["_selection"] = wrong
        assert not dpf.audit.verify(mechanism, n=3, values=3, grids=POINTS, ordered=False).holds

    @every("neighbors, contributions", [("replace-one", 1), ("add-remove", 1), ("add-remove", 3)])
    def test_counts(self, neighbors, contributions):
        """The loss of discrete Laplace noise is the l1 distance of the counts, divided by the scale."""
        mechanism = TopK(2, range(3), epsilon=0.8, method="counts", neighbors=neighbors, contributions=contributions)
        distances = set()
        for rest in itertools.product(range(4), repeat=2):  # 3 is not a key
            for a in itertools.product(range(4), repeat=contributions):
                other = [[*rest, b] for b in range(4)] if neighbors == "replace-one" else [rest]
                center = mechanism.law([*rest, *a]).center
                distances |= {int(np.abs(center - mechanism.law(list(b)).center).sum()) for b in other}
        assert max(distances) == {"replace-one": 2, "add-remove": contributions}[neighbors]
        assert mechanism.law([0]).noise.noise.scale == max(distances) / Fraction(0.8)

    def test_units_of_different_keys(self):
        """One with records of all keys changes each count by 1; with records of one key, by their number."""
        for k, method in [(1, "peeling"), (1, "joint"), (2, "joint")]:
            self.check_units(k, method)

    def check_units(self, k, method):
        different = TopK(k, range(3), epsilon=0.8, method=method, contributions=3, per_key=1)
        same = TopK(k, range(3), epsilon=0.8, method=method, contributions=3)
        orders = list(itertools.permutations(range(3), k))

        multisets = list(itertools.combinations_with_replacement(range(3), 3))

        @functools.cache
        def logs(mechanism, x):
            return mechanism.law(list(x)).logpmf(orders)

        def loss(mechanism, unit):
            pairs = [(logs(mechanism, rest), logs(mechanism, (*rest, *unit))) for rest in multisets]
            return max(np.abs(one - other).max() for one, other in pairs)

        for unit in multisets:
            assert loss(same, unit) <= 0.8 + 1e-12
        for size in range(4):
            for unit in itertools.combinations(range(3), size):
                assert loss(different, unit) <= 0.8 + 1e-12
        assert loss(different, (0, 0, 0)) > 0.85  # the control: the promise is broken

    def test_guarantees(self):
        keys = range(10)
        assert TopK(3, keys, epsilon=0.9, method="peeling").privacy_profile.parts[0][2] == 3
        assert TopK(3, keys, epsilon=0.9, method="joint").privacy_profile.parts == (("bounded-range", 0.9, 1),)
        assert TopK(3, keys, epsilon=0.9).privacy_profile.parts == (("discrete-laplace", 0.9, 1),)
        replaced = TopK(3, keys, epsilon=0.5, neighbors="replace-one", method="counts")
        assert replaced.privacy_profile.parts == (("discrete-laplace", 0.25, 2),)
        units = TopK(3, keys, epsilon=0.5, contributions=4)
        assert units.privacy.per_unit == 4
        assert units.privacy_profile.parts == (("pure", 0.5, 1),)


class TestReleases:
    @pytest.mark.parametrize("method", ["counts", "peeling", "joint"])
    def test_order(self, method):
        with pytest.warns(dpf.PrivacyWarning):
            mechanism = TopK(3, ["Bern", "Lima", "Oslo", "Rome"], epsilon=50.0, method=method)
        assert mechanism(CITIES).tolist() == ["Oslo", "Rome", "Lima"]
        assert mechanism(dpf.Chunks([CITIES[:30], CITIES[30:]])).tolist() == ["Oslo", "Rome", "Lima"]
        assert mechanism.release(CITIES, size=2).tolist() == [["Oslo", "Rome", "Lima"]] * 2
        assert pickle.loads(pickle.dumps(mechanism)) == mechanism

    @pytest.mark.parametrize("method", ["counts", "peeling", "joint"])
    def test_law(self, method):
        mechanism, x = TopK(2, range(3), epsilon=1.0, method=method), [0, 0, 1, 2, 2, 2]
        released = mechanism.release(x, size=10_000, rng=PCG64(1))
        pairs = list(itertools.permutations(range(3), 2))
        counts = [sum(tuple(pair) == other for pair in released) for other in pairs]
        if method != "counts":
            law = np.exp(mechanism.law(x).logpmf(pairs))
            wrong = np.exp(TopK(2, range(3), epsilon=1.2, method=method).law(x).logpmf(pairs))
        else:
            law, wrong = (self.law_of_counts([2, 1, 3], epsilon, pairs) for epsilon in (1.0, 1.2))
        assert math.isclose(sum(law), 1, rel_tol=1e-9)
        assert not chi_square_rejects(counts, law)
        assert chi_square_rejects(counts, wrong)

    def law_of_counts(self, counts, epsilon, pairs):
        z = np.arange(-60, 61)
        mass = np.exp(-epsilon * np.abs(z)) * np.tanh(epsilon / 2)
        noisy = np.stack(np.meshgrid(*[z] * 3, indexing="ij"), axis=-1) + np.array(counts)
        order = np.argsort(-noisy, axis=-1, kind="stable")
        weights = mass[:, None, None] * mass[:, None] * mass
        return [weights[(order[..., :2] == pair).all(axis=-1)].sum() for pair in pairs]

    def test_function(self, capsys):
        dpf.top_k(CITIES, 2, keys=["Oslo", "Rome"], epsilon=1.0, explain=True)
        assert (
            "With probability 0.95, no key has 7.33 records less than the one whose place it has."
            in capsys.readouterr().out
        )
        assert dpf.top_k(CITIES, 2, keys=["Bern", "Lima", "Oslo", "Rome"], epsilon=15.0) == ["Oslo", "Rome"]
        assert dpf.top_k(CITIES, 9, keys="private", epsilon=15.0, delta=1e-6) == ["Oslo", "Rome", "Lima", "Bern"]
        two = (CITIES, np.ones(len(CITIES), int))
        assert dpf.top_k(two, 1, keys="private", epsilon=15.0, delta=1e-6) == [("Oslo", 1)]
        assert dpf.top_k([5] * 40 + [7], 2, keys="private", epsilon=1.0, delta=1e-6, rng=PCG64(1)) == [5]
        assert dpf.top_k([], 2, keys="private", epsilon=1.0, delta=1e-6) == []

    def test_one_charge(self):
        for options in ({"keys": [1, 2, 3]}, {"keys": "private", "delta": 1e-6}):
            with dpf.Ledger(1.0, 1e-6, neighbors="add-remove") as ledger:
                dpf.top_k([1, 2, 2], 2, epsilon=1.0, **options)
                with pytest.raises(dpf.BudgetError):
                    dpf.top_k(Untouchable(), 2, epsilon=1.0, **options)
            assert len(ledger.charges) == 1

    def test_the_method_is_chosen_by_public_numbers(self):
        keys = range(100)
        assert TopK(1, keys, epsilon=1.0).method == "peeling"
        assert TopK(2, keys, epsilon=1.0).method == "counts"
        assert TopK(3, keys, epsilon=1.0, contributions=20, per_key=1).method == "peeling"
        assert TopK(3, keys, epsilon=1.0, contributions=20).method == "counts"
        assert TopK(10, keys, epsilon=1.0, contributions=20, per_key=1).method == "joint"
        assert TopK(10, keys, epsilon=1e-5, contributions=20, per_key=1).method != "joint"  # too many boxes
        best = TopK(5, keys, epsilon=1.0)
        other = TopK(5, keys, epsilon=1.0, method="peeling")
        assert best.error() < other.error() / 2

    def test_the_best_for_typical_counts(self):
        """The least error for these counts, in 18 settings, of the predictions that the next test checks."""
        settings, found = itertools.product((1, 8, 25), (1, 5, 25), ((0.1, 2e4), (1.0, 5e5))), set()
        for k, units, (epsilon, n) in settings:
            typical = n / np.arange(1.0, 101.0)
            mechanism = TopK(k, range(100), epsilon=epsilon, contributions=units, per_key=1, typical=typical)
            missed = mechanism._missed(np.array(mechanism.typical))
            assert missed[mechanism.method] == min(missed.values())
            found.add(mechanism.method)
        assert found >= {"counts", "joint"}
        options = {"epsilon": 1.0, "typical": [5.0, 9.0]}
        assert TopK(1, range(3), **options) == TopK(1, range(3), **{**options, "typical": (9, 5, 0)})

    def test_the_aim_decides(self):
        """For counts of Zipf's law: the mean by peeling, the greatest by joint selection."""
        typical = 30_000 / np.arange(1, 1001) ** 0.9 / 21
        options = {"epsilon": 0.3, "contributions": 1000, "per_key": 1, "typical": typical}
        assert TopK(20, range(1000), **options).method == "joint"
        assert TopK(20, range(1000), aim="mean", **options).method == "peeling"

    @every("method, aim", itertools.product(("counts", "peeling", "joint"), ("greatest", "mean")))
    def test_typical_errors_are_those_of_the_laws(self, method, aim):
        """What is predicted in doubles, against releases."""
        counts = np.array([40, 37, 30, 28, 20, 19, 18, 10, 5, 0])
        options = {"epsilon": 0.4, "contributions": 3, "per_key": 1, "method": method, "typical": counts, "aim": aim}
        mechanism = TopK(3, range(10), **options)
        released = mechanism.release(np.repeat(range(10), counts), size=2000, rng=PCG64(5))
        differences = counts[:3] - counts[released.astype(int)]
        missed = differences.max(axis=1) if aim == "greatest" else np.abs(differences).mean(axis=1)
        predicted = mechanism._missed(np.array(mechanism.typical))[method]
        assert abs(missed.mean() - predicted) < 6 * missed.std() * math.sqrt(1 / 2000 + 1 / 400)

    @pytest.mark.parametrize("method", ["counts", "peeling", "joint"])
    def test_errors(self, method):
        """No other order than stated happens more often than stated."""
        mechanism = TopK(2, range(5), epsilon=1.0, method=method)
        away = int(mechanism.error(confidence=0.9)) + 1
        x = np.repeat(range(5), [0, 0, 2 * away, 0, away])
        released = mechanism.release(x, size=2000, rng=PCG64(2))
        assert np.mean([pair.tolist() != [2, 4] for pair in released]) < 0.13

    def test_errors_above_the_cap_are_infinite(self, monkeypatch):
        """Where memory limits the missed records that count, by enumeration; without a limit the bound holds."""
        x = np.repeat(range(4), [200, 0, 0, 1])

        def missed(mechanism, records):
            """The probability that so many records are missed, and one more."""
            law, counts = mechanism.law(x), np.array([200, 0, 0, 1])
            orders = law.outcomes()
            found = np.max(np.sort(counts)[::-1][:2] - counts[orders], axis=1)
            return np.exp(law.logpmf(orders))[found > records].sum()

        mechanism = TopK(2, range(4), epsilon=0.1, method="joint")
        bound = mechanism.error(confidence=0.9)
        assert missed(mechanism, bound) <= 0.1
        monkeypatch.setattr(orders, "_MOST_SIDES", 40)
        assert mechanism.error(confidence=0.9) == math.inf
        assert missed(mechanism, bound) > 0.3  # the control is the bound without a limit
        assert "nothing can be said" in mechanism._explained_error(None)
        small = TopK(2, range(4), epsilon=2.0, method="joint")
        assert missed(small, small.error(confidence=0.9)) <= 0.1
        [trap] = traps.of_order(math.inf, 100)
        assert "any keys may be released" in trap.text

    @every(
        "options, error, match",
        [
            ({"k": 0}, ValueError, "k must be at least 1"),
            ({"k": 4}, ValueError, "k must be at most the number of keys"),
            ({"keys": "secret"}, ValueError, "keys must be"),
            ({"keys": 5}, TypeError, "keys must be a sequence"),
            ({"keys": [1, 1, 2]}, ValueError, "distinct|differ|twice|several|duplicate"),
            ({"keys": []}, ValueError, "at least one key"),
            ({"keys": "private"}, ValueError, "delta must be positive"),
            ({"delta": 1e-6}, ValueError, "delta must be 0 for public keys"),
            ({"epsilon": -1.0}, ValueError, "epsilon must be positive"),
            ({"contributions": 2, "neighbors": "replace-one"}, ValueError, "contributions above 1"),
            ({"per_key": 2}, ValueError, "per_key must be 1"),
            ({"typical": [1.0] * 4}, ValueError, "typical must be finite"),
            ({"typical": [-1.0]}, ValueError, "typical must be finite"),
            ({"typical": []}, ValueError, "typical must be finite"),
            ({"aim": "most"}, ValueError, "aim must be one of 'greatest', 'mean'"),
            ({"typical": [1.0], "keys": "private", "delta": 1e-6}, TypeError, "typical and aim must be left out"),
        ],
        ids=str,
    )
    def test_bad_parameters(self, options, error, match):
        given = {"k": 2, "keys": [1, 2, 3], "epsilon": 1.0, **options}
        with pytest.raises(error, match=match):
            dpf.top_k(Untouchable(), given.pop("k"), **given)


def test_keys_of_changing_numbers_are_read_as_they_are():
    """A float of a subclass becomes a plain one, whatever its class makes of it later."""

    class Odd(float):
        def __float__(self):
            return 7.0

    mechanism = TopK(1, (Odd(2.0), 1), epsilon=1.0)
    assert [type(key) for key in mechanism.keys] == [float, int]
    assert mechanism.keys == (2.0, 1)
