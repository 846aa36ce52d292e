"""Shuffled reports: bounds of delta against enumeration, sums in mpmath and published bounds; ledgers; the shuffle."""

import math
import pickle
from collections import Counter
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from flint import arb
from mpmath import mp
from scipy.stats import binom

import dpfast as dpf
from dpfast.core import shuffling
from dpfast.core.shuffling import Batch
from dpfast.local import Attributes, Binary, Categorical, HashedCategorical, HeavyHitters, Shuffled
from tests.cases import every
from tests.reference import shuffling as reference

GROWTH, EPSILON = 3, math.nextafter(math.log(3), 2)  # exp(EPSILON) is a little above 3
THRESHOLDS = [Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(2), Fraction(29, 10)]


def below_log(threshold):
    """A double a little below the logarithm."""
    return Fraction(max(0.0, math.log(threshold) * (1 - 2.0**-50)))


def above_log(threshold):
    return Fraction(math.log(threshold) * (1 + 2.0**-50))


class TestAgainstEnumeration:
    """T29: certified bounds against the exact delta of small batches; those of other batches are rejected."""

    @every("k, n", [(2, 2), (2, 5), (2, 8), (3, 2), (3, 4), (3, 6), (4, 3)])
    def test_response_is_between_the_bounds(self, k, n):
        matrix = reference.k_ary_response(k, GROWTH)
        for threshold in THRESHOLDS:
            worst = reference.worst_delta(matrix, n, threshold)
            assert worst <= Fraction(shuffling.delta_up(Batch(EPSILON, n, k), below_log(threshold)))
            if k > 2:
                low = math.nextafter(math.log(3), 0)
                assert Fraction(shuffling.delta_down(Batch(low, n, k), above_log(threshold))) <= worst

    @pytest.mark.parametrize("wrong", [{"n": 5}, {"k": 4}])
    def test_another_number_of_records_or_clones_is_rejected(self, wrong):
        right = Batch(EPSILON, 4, 3)
        worst = reference.worst_delta(reference.k_ary_response(3, GROWTH), 4, Fraction(1))
        assert worst <= Fraction(shuffling.delta_up(right, Fraction()))
        assert worst > Fraction(shuffling.delta_up(right._replace(**wrong), Fraction()))

    def test_any_reports(self):
        """Random matrices whose entries in a column differ by at most the growth, often by exactly that."""
        rng = np.random.default_rng(0)
        for _ in range(12):
            rows, kinds, n = int(rng.integers(2, 4)), int(rng.integers(2, 5)), int(rng.integers(2, 5))
            weights = rng.integers(1, 6, kinds) * rng.integers(1, GROWTH + 1, (rows, kinds))
            sums = weights.sum(axis=1)
            matrix = [[Fraction(int(x), int(total)) for x in row] for row, total in zip(weights, sums, strict=True)]
            growth = max(max(column) / min(column) for column in zip(*matrix, strict=True))
            if growth == 1:
                continue
            epsilon = math.log(growth) * (1 + 2.0**-50)
            for threshold in (Fraction(1), (1 + growth) / 2, (1 + 9 * growth) / 10):
                bound = shuffling.delta_up(Batch(epsilon, n), below_log(threshold))
                assert reference.worst_delta(matrix, n, threshold) <= Fraction(bound)

    def test_extremal_reports_need_all_clones(self):
        """Reports that tell a record from another by the whole growth, on few kinds: twice the clones is rejected."""
        g = 7
        matrix = [[Fraction(x, g + 2) for x in row] for row in ((g, 1, 1), (1, g, 1), (1, 1, g))]
        worst = reference.worst_delta(matrix, 4, Fraction(1))
        epsilon = math.log(g) * (1 + 2.0**-50)
        assert worst <= Fraction(shuffling.delta_up(Batch(epsilon, 4), Fraction()))
        assert worst > Fraction(shuffling.delta_up(Batch(math.log(g / 2), 4), Fraction()))


def merged(matrix):
    """The same reports after those that tell nothing apart are merged, which changes no divergence."""
    columns = Counter(zip(*matrix, strict=True))
    return [list(row) for row in zip(*([p * count for p in column] for column, count in columns.items()), strict=True)]


def laws(survey, records):
    """The exact probabilities of all reports, a row for each record."""
    return [list(survey.law(x).pmf) for x in range(records)]


SUPPORTED = [
    HashedCategorical(3, 1.0),
    HashedCategorical(4, 2.5),
    Categorical(4, 0.5, method="subset"),
    Categorical(5, 1.0, method="subset"),
    Categorical(3, 1.0, method="hadamard"),
    Categorical(3, 1.0, method="k-rr"),
]


class TestSupport:
    """T29: reports that support a record or not, such as hashed ones: k = 1 / share, which need not be an integer."""

    @every("survey", SUPPORTED)
    def test_laws_have_this_form(self, survey):
        """Two probabilities, of a ratio of e^epsilon at most; the share of the larger one."""
        for row in laws(survey, survey.k):
            high, low = max(row), min(row)
            assert set(row) == {high, low}
            assert Fraction(row.count(high), len(row)) == survey.share
            assert high / low <= survey.coin.ratio

    @pytest.mark.parametrize("survey", SUPPORTED, ids=repr)
    @pytest.mark.parametrize("n", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
    def test_exact_batches_are_below_the_bound(self, survey, n):
        matrix = merged(laws(survey, min(survey.k, 3)))
        batch = Shuffled(survey, n=n, delta=1e-6)
        for threshold in (Fraction(1), Fraction(5, 4), Fraction(3, 2)):
            worst = reference.worst_delta(matrix, n, threshold)
            assert 0 < worst <= Fraction(batch.delta_up(below_log(threshold)))

    @every("kinds, width", [(6, 2), (7, 2), (5, 2), (7, 3), (5, 1)])
    def test_windows_against_enumeration(self, kinds, width):
        """Disjoint windows of the reports, and windows with common reports, which are no worse."""
        rows = [[(x * shift + i) % kinds for i in range(width)] for shift in (width, 1) for x in range(2)]
        low = Fraction(1, width * GROWTH + kinds - width)
        matrix = [[low * (GROWTH if y in row else 1) for y in range(kinds)] for row in rows]
        apart, common = matrix[:2], matrix[2:]
        k = kinds / width
        for n in (2, 4):
            for threshold in THRESHOLDS:
                worst = [reference.worst_delta(merged(rows), n, threshold) for rows in (apart, common)]
                bound = Fraction(shuffling.delta_up(Batch(EPSILON, n, k), below_log(threshold)))
                assert worst[1] <= worst[0] <= bound

    def test_a_larger_k_is_rejected(self):
        """Windows of two of five reports, disjoint, with k = 2.5: k = 4 and k = 5 do not cover them."""
        low = Fraction(1, 2 * GROWTH + 3)
        matrix = [[low * (GROWTH if y in row else 1) for y in range(5)] for row in ((0, 1), (2, 3))]
        worst = reference.worst_delta(matrix, 4, Fraction(1))
        assert worst <= Fraction(shuffling.delta_up(Batch(EPSILON, 4, 2.5), Fraction()))
        for k in (4, 5):
            assert worst > Fraction(shuffling.delta_up(Batch(EPSILON, 4, k), Fraction()))

    @pytest.mark.parametrize(("k", "n"), [(2.5, 200), (3.5, 1000), (8.5, 1000)])
    def test_between_the_neighbouring_integers(self, k, n):
        below, at, above = (shuffling.delta_up(Batch(1.0, n, b), Fraction(0.2)) for b in (int(k), k, int(k) + 1))
        assert above < at < below

    @pytest.mark.parametrize(("kinds", "width"), [(6, 2), (7, 3), (5, 2)])
    def test_records_rounded_at_random_to_windows(self, kinds, width):
        """Mixtures of two neighbouring windows, as of an `Interval`, are no worse than windows."""
        low = Fraction(1, width * GROWTH + kinds - width)
        windows = [
            [low * (GROWTH if s <= y < s + width else 1) for y in range(kinds)] for s in range(kinds - width + 1)
        ]
        mixed = [windows[0], windows[-1]]
        for part in (Fraction(1, 3), Fraction(3, 4)):
            mixed.append([(1 - part) * a + part * b for a, b in zip(windows[0], windows[1], strict=True)])
        for threshold in THRESHOLDS[::2]:
            worst = reference.worst_delta(merged(mixed), 3, threshold)
            bound = Fraction(shuffling.delta_up(Batch(EPSILON, 3, kinds / width), below_log(threshold)))
            assert worst <= bound

    @pytest.mark.parametrize(
        ("survey", "records"),
        [
            (dpf.local.Interval(2.0, bounds=(-1, 1)), (-1.0, 0.0, 1.0)),
            (dpf.local.Interval(3.0, bounds=(-1, 1)), (-1.0, 1.0)),
            pytest.param(dpf.local.Interval(2.0, bounds=(-1, 1), method="hybrid"), (-1.0, 1.0), marks=pytest.mark.slow),
            (dpf.local.Hypercube(2, 2.0, method="subset"), ([1.0, 1.0], [-1.0, -1.0], [0.3, -1.0])),
            (dpf.local.Hypercube(3, 2.0, method="majority"), ([1.0, 1.0, 1.0], [-1.0, -1.0, -1.0])),
        ],
        ids=repr,
    )
    def test_numbers_and_vectors_are_below_the_bound(self, survey, records):
        found = [survey.law(x) for x in records]
        logs = [law.logpmf(law.outcomes()) for law in found]
        matrix = [[Fraction(float(p)) / Fraction(math.fsum(np.exp(row))) for p in np.exp(row)] for row in logs]
        batch = Shuffled(survey, n=3, delta=1e-6)
        assert batch._batch.k == pytest.approx(float(1 / survey.share), rel=1e-15)
        for threshold in (Fraction(1), Fraction(3, 2), Fraction(3)):
            worst = reference.worst_delta(merged(matrix), 3, threshold)
            assert 0 < worst <= Fraction(batch.delta_up(below_log(threshold))) * (1 + Fraction(1, 10**12))

    def test_twice_the_directions_of_a_subset_is_rejected(self):
        """Two signs of four: half of the share leaves out clones."""
        law = dpf.local.Hypercube(2, 2.0, method="subset")
        rows = [np.exp(law.law(x).logs) for x in ([1.0, 1.0], [-1.0, -1.0])]
        worst = reference.worst_delta(merged([[Fraction(float(p)) for p in row] for row in rows]), 4, Fraction(1))
        k = int(1 / law.share)
        assert worst <= Fraction(shuffling.delta_up(Batch(2.0, 4, k), Fraction()))
        assert worst > Fraction(shuffling.delta_up(Batch(2.0, 4, 4 * k), Fraction()))

    @pytest.mark.parametrize(
        ("epsilon", "most"),
        [
            (2.0, (0.75, 0.76, 0.97, 0.9, 0.87, 0.9)),
            pytest.param(4.0, (0.72, 0.68, 0.99, 0.89, 0.92, 0.89), marks=pytest.mark.slow),
        ],
    )
    def test_what_gains(self, epsilon, most):
        """Epsilon relative to that of any reports, at n = 1e5 and delta 1e-8."""
        surveys = (
            HashedCategorical(2**40, epsilon),
            Categorical(64, epsilon, method="subset"),
            dpf.local.Interval(epsilon, bounds=(0, 1)),
            dpf.local.Hypercube(100, epsilon),
            dpf.local.L2Ball(100, epsilon, method="directions"),
            dpf.local.SeriesReports(4, epsilon, grid=dpf.Grid(0, 1)),
        )
        general = Shuffled(epsilon, n=100_000, delta=1e-8).privacy.epsilon
        for survey, limit in zip(surveys, most, strict=True):
            assert 0.6 < Shuffled(survey, n=100_000, delta=1e-8).privacy.epsilon / general < limit

    def test_hashed_reports_gain(self):
        """1.19 times less epsilon than the bound for any reports at epsilon 1, 1.35 times at 2, 1.41 times at 4."""
        for epsilon, gain in ((1.0, 1.19), (2.0, 1.35), (4.0, 1.41)):
            hashed = Shuffled(HashedCategorical(2**40, epsilon), n=100_000, delta=1e-8)
            general = Shuffled(epsilon, n=100_000, delta=1e-8)
            assert general.privacy.epsilon / hashed.privacy.epsilon == pytest.approx(gain, abs=0.01)
            assert hashed.epsilon_down(1e-8) == 0.0
        assert Shuffled(HeavyHitters(4.0, 32), n=100_000, delta=1e-8).privacy == hashed.privacy

    @every("k", [2, 16, 64, 1000, 10**6, 2**40])
    def test_whatever_randomizer_for_returns(self, k):
        survey = dpf.local.randomizer_for(k, 1.0)
        batch = Shuffled(survey, n=10_000, delta=1e-6)
        assert batch.privacy.epsilon <= Shuffled(1.0, n=10_000, delta=1e-6).privacy.epsilon
        assert pickle.loads(pickle.dumps(batch)) == batch
        ledger = dpf.Ledger(1.0, 1e-4)
        with ledger, ledger.spend(batch):
            reports = batch.shuffle(survey.randomize(np.zeros(10_000, int)))
        assert survey.aggregate(reports).n == 10_000
        assert dpf.Ledger.from_json(ledger.to_json()).charges == ledger.charges

    def test_other_reports_of_one_person(self):
        for survey in (Attributes((3, 4), 1.0), Categorical(100, 1.0, method="oue")):
            general = Shuffled(1.0, n=10_000, delta=1e-6)
            assert Shuffled(survey, n=10_000, delta=1e-6).privacy == general.privacy

    @pytest.mark.parametrize(
        "protocol",
        [
            dpf.local.MedianDescent(bounds=(0, 1), epsilon=1.0),
            dpf.local.GradientDescent(2, 1.0),
        ],
        ids=lambda protocol: type(protocol).__name__,
    )
    def test_protocols_are_refused(self, protocol):
        with pytest.raises(ValueError, match=r"cannot be shuffled, .* use a randomiser with `randomize`"):
            Shuffled(protocol, n=10, delta=1e-6)


class TestNumbers:
    @pytest.mark.parametrize(
        ("n", "epsilon", "target", "k"),
        [(200, 1.0, 0.3, 2), (200, 1.0, 0.3, 4), (1000, 1.0, 0.18, 2), (1000, 1.0, 0.18, 4), (1000, 3.0, 0.54, 64)],
    )
    def test_sums_in_doubles(self, n, epsilon, target, k):
        found = shuffling.delta_up(Batch(epsilon, n, k), Fraction(target))
        exact = reference.by_categories(n, epsilon, target, k)
        assert exact * (1 - 1e-7) <= found <= exact * (1 + (1e-7 if k == 2 else 0.12))
        if k > 2:
            assert 0.8 * exact < shuffling.delta_down(Batch(epsilon, n, k), Fraction(target)) < exact

    @every("trials", [1, 7, 100, 1_500, 1_000_000])
    def test_tails_are_within_their_errors(self, trials):
        """P(X >= k) and E[(X - k)_+] at the last step of a recurrence, against sums of exact integers or SciPy."""
        steps = np.arange(min(trials, 400))
        first = trials - steps.size + 1
        k = (first + steps) // 2 + 1 + int(math.sqrt(trials))
        k = np.minimum(k, first + steps)
        tails, means, tail_errors, mean_errors = shuffling._tails(first, k)
        at = steps.size - 1
        if trials <= 1_500:
            ways = [math.comb(trials, j) for j in range(int(k[at]), trials + 1)]
            tail = Fraction(sum(ways), 2**trials)
            mean = Fraction(sum(i * way for i, way in enumerate(ways)), 2**trials)
            assert abs(Fraction(tails[at]) - tail) <= Fraction(tail_errors[at]) <= tail / 10**9
            assert abs(Fraction(means[at]) - mean) <= Fraction(mean_errors[at]) <= max(mean, tail) / 10**7
        else:
            assert tails[at] == pytest.approx(binom.sf(k[at] - 1, trials, 0.5), rel=1e-9)

    def test_large_batches(self):
        """At n = 1e6 the normal approximation; delta decreases in n."""
        found = shuffling.delta_up(Batch(1.0, 10**6), Fraction(0.005))
        E = math.e
        deviation, mean = math.sqrt(4 / (E + 1)) * (E - 1) / math.sqrt(2), math.expm1(0.005) * 1000
        z = mean / deviation
        normal = deviation / 1000 * (math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) - z * math.erfc(z / 2**0.5) / 2)
        assert found == pytest.approx(normal, rel=0.1)
        deltas = [shuffling.delta_up(Batch(1.0, n), Fraction(1e-4)) for n in (10**7, 10**8)]
        assert deltas[0] > deltas[1]

    @pytest.mark.slow
    def test_the_largest_batches(self):
        deltas = [shuffling.delta_up(Batch(1.0, n), Fraction(1e-5)) for n in (10**9, 2**34, 2**40)]
        assert deltas[0] > deltas[1] == deltas[2] > 0

    def test_against_published_bounds(self):
        """Theorem 3.1 of Feldman, McMillan and Talwar 2021, and its numerical form with clones of exp(-epsilon0)."""
        for n, epsilon0 in ((10**4, 1.0), (10**5, 2.0), (10**6, 4.0)):
            ours = shuffling.epsilon_up(Batch(epsilon0, n), 1e-6)
            growth, log = math.exp(epsilon0), math.log(4e6)
            theorem = math.log1p((growth - 1) / (growth + 1) * (8 * math.sqrt(growth * log / n) + 8 * growth / n))
            assert 0 < ours < theorem / 3

    @pytest.mark.parametrize("batch", [Batch(1.0, 50), Batch(4.0, 5000), Batch(2.0, 300, 8)])
    def test_epsilon_is_the_crossing(self, batch):
        epsilon = shuffling.epsilon_up(batch, 1e-5)
        assert shuffling.delta_up(batch, Fraction(epsilon)) <= 1e-5
        assert shuffling.delta_up(batch, Fraction(epsilon) * (1 - Fraction(1, 2**20))) > 1e-5
        if batch.k > 2:
            assert 0.9 * epsilon < shuffling.epsilon_down(batch, 1e-5) <= epsilon

    def test_extremes(self):
        assert shuffling.delta_up(Batch(1.0, 1), Fraction()) == pytest.approx(math.tanh(0.5), rel=1e-12)
        assert shuffling.delta_up(Batch(500.0, 10**6), Fraction()) == pytest.approx(1.0)
        assert shuffling.delta_up(Batch(1.0, 10**6), Fraction(1)) == 0.0
        assert 0 < shuffling.delta_up(Batch(2.0**-40, 1000), Fraction()) < 2.0**-40
        assert 0 < shuffling.delta_up(Batch(1.0, 10**6, 2**31), Fraction(1, 1000)) < 1e-6
        assert 0 < shuffling.delta_up(Batch(1.0, 10**6), Fraction(1, 2)) < 1e-300


class TestDivergences:
    @pytest.mark.parametrize(("n", "epsilon"), [(2, 1.0), (10, 1.0), (40, 2.0)])
    def test_renyi_and_rho(self, n, epsilon):
        profile = dpf.PrivacyProfile(dpf.Privacy(epsilon), [("shuffled", epsilon, 1, n)])
        least = 0
        for order in (1.01, 1.5, 4.0, 6.0, 8.0, 12.0, 40.0):
            exact = reference.renyi(n, epsilon, order)
            assert exact <= profile.renyi_up(order) <= exact * 1.01
            least = max(least, exact / order)
        assert least <= profile.rho <= 1.03 * least
        assert profile.rho < dpf.PrivacyProfile(dpf.Privacy(epsilon)).rho

    def test_curve_is_convex_and_above(self):
        batch = Batch(2.0, 500)
        epsilons, logarithms, _ = shuffling.curve(batch)
        t, delta = np.exp(epsilons), np.exp(logarithms)
        assert (np.diff(np.diff(delta) / np.diff(t)) >= -1e-12).all()
        for epsilon in np.linspace(0.001, 1.9, 7):
            exact = shuffling.delta_up(batch, Fraction(float(epsilon)))
            assert np.interp(math.exp(epsilon), t, delta) >= exact * (1 - 1e-9)
        order = arb(2)
        assert shuffling.renyi(batch, order) > 0


class TestLedger:
    @pytest.mark.host
    def test_plan_of_two_batches_covers_enumeration(self):
        pytest.importorskip("dp_accounting")
        matrix = reference.k_ary_response(3, GROWTH)
        batch = Shuffled(Categorical(3, EPSILON, method="k-rr"), n=3, delta=0.01)
        for threshold in (Fraction(3, 2), Fraction(3)):
            epsilon = float(below_log(threshold))
            worst = float(reference.worst_composed(matrix, 3, threshold))
            dpf.Ledger(epsilon, worst * 1.3 + 1e-6, plan=[batch] * 2)
            with pytest.raises(dpf.BudgetError, match="the plan needs delta"):
                dpf.Ledger(epsilon, worst * 0.999, plan=[batch] * 2)

    @pytest.mark.host
    def test_a_plan_of_batches(self):
        pytest.importorskip("dp_accounting")
        batch = Shuffled(2.0, n=100_000, delta=1e-8)
        plan = dpf.Ledger(3.5 * batch.privacy.epsilon, 1e-6, plan=[batch] * 12)
        with plan, plan.spend(batch):
            Binary(2.0).randomize([0, 1])
        assert len(plan.charges) == 1
        assert dpf.Ledger.from_json(plan.to_json()).charges == plan.charges

    def test_each_composition(self):
        batch = Shuffled(2.0, n=100_000, delta=1e-8)
        epsilon = batch.privacy.epsilon
        basic = dpf.Ledger(3.5 * epsilon, 1e-6)
        renyi = dpf.Ledger(3.5 * epsilon, 1e-6, composition="renyi")
        assert [ledger.affords(batch, times=4) for ledger in (basic, renyi)] == [False, True]
        assert batch.privacy_profile.rho < dpf.PrivacyProfile(dpf.Privacy(epsilon)).rho
        concentrated = dpf.Ledger(rho=1e-3)
        assert concentrated.affords(batch, times=10)
        local = dpf.Ledger(5.0, neighbors="local")
        with pytest.raises(ValueError, match="neighbors must be 'local'"):
            local.affords(batch)

    def test_parts(self):
        privacy = dpf.Privacy(1.0)
        assert dpf.PrivacyProfile(privacy, [("shuffled", 1.0, 1, 7)]).parts == (("shuffled", 1.0, 1, 7, 2),)
        for shape in ((), (0,), (7, 1), (7, math.inf), (7, 2, 2)):
            with pytest.raises(ValueError, match="parts must be"):
                dpf.PrivacyProfile(privacy, [("shuffled", 1.0, 1, *shape)])
        rational = dpf.PrivacyProfile(privacy, [("shuffled", 1.0, 1, 7, Fraction(7, 3))]).parts[0][4]
        assert Fraction(7, 3) * (1 - Fraction(1, 2**50)) < Fraction(rational) < Fraction(7, 3)
        whole = dpf.PrivacyProfile(privacy, [("shuffled", 1.0, 1, 7, 3.0)]).parts[0][4]
        assert isinstance(whole, int)


class TestShuffled:
    def test_guarantees(self):
        batch = Shuffled(Categorical(16, 2.0, method="k-rr"), n=10_000, delta=1e-6)
        assert batch.privacy.neighbors == "replace-one"
        assert (
            batch.privacy.epsilon < Shuffled(Categorical(16, 2.0, method="oue"), n=10_000, delta=1e-6).privacy.epsilon
        )
        assert batch.epsilon_down(1e-6) < batch.privacy.epsilon < 1.01 * batch.epsilon_down(1e-6)
        assert batch.delta_down(0.05) < batch.delta_up(0.05)
        assert Shuffled(Binary(2.0), n=10_000, delta=1e-6).privacy == Shuffled(2.0, n=10_000, delta=1e-6).privacy
        assert Shuffled(2.0, n=1, delta=1e-6).privacy.epsilon == pytest.approx(2.0, abs=1e-4)
        assert pickle.loads(pickle.dumps(batch)) == batch

    @every(
        "options, error, message",
        [
            ({"randomizer": "1"}, ValueError, None),
            ({"randomizer": -1.0}, ValueError, "must be positive and finite"),
            ({"randomizer": math.inf}, ValueError, None),
            ({"randomizer": None}, TypeError, None),
            ({"n": 0}, ValueError, "n must be"),
            ({"n": 2.5}, TypeError, None),
            ({"delta": 0.0}, ValueError, "delta must be positive"),
            ({"delta": 1.0}, ValueError, "delta"),
        ],
    )
    def test_bad_parameters(self, options, error, message):
        if options == {"randomizer": "1"}:
            assert Shuffled("1", n=9, delta=1e-6).randomizer == 1.0
            return
        randomizer = options.pop("randomizer", 1.0)
        with pytest.raises(error, match=message):
            Shuffled(randomizer, **{"n": 9, "delta": 1e-6, **options})

    def test_negative_epsilon(self):
        with pytest.raises(ValueError, match="epsilon must be at least 0"):
            Shuffled(1.0, n=9, delta=1e-6).delta_up(-1.0)

    def test_every_order_is_as_likely(self):
        batch, rng = Shuffled(1.0, n=3, delta=1e-6), np.random.default_rng(1)
        seen = Counter(tuple(batch.shuffle(np.arange(3), rng=rng).tolist()) for _ in range(6000))
        assert set(seen) == set(permutations(range(3)))
        assert sum((count - 1000) ** 2 / 1000 for count in seen.values()) < 55  # 5 degrees of freedom, 1e-10
        rows = batch.shuffle(np.arange(6).reshape(3, 2))
        assert sorted(rows[:, 0]) == [0, 2, 4]
        assert (rows[:, 1] == rows[:, 0] + 1).all()
        with pytest.raises(ValueError, match="n = 3 rows"):
            batch.shuffle(np.arange(4))

    def test_published_precision_of_mpmath(self):
        """The sum for n = 30 in 40 digits."""
        with mp.workdps(40):
            n, E, e = 30, mp.e**2, mp.e**0.5
            p, total = 1 / (E + 1), mp.mpf(0)
            for first in range(n + 1):
                for second in range(n + 1 - first):
                    ways = math.comb(n, first) * math.comb(n - first, second)
                    chance = ways * p ** (first + second) * (1 - 2 * p) ** (n - first - second)
                    total += chance * max(0, (E - e) * first + (1 - E * e) * second)
        found = shuffling.delta_up(Batch(2.0, n), Fraction(1, 2))
        assert total / n <= found <= total / n * (1 + 1e-10)
