"""Accounting: profiles, Renyi divergences and plans, against exact compositions."""

import itertools
import math
import re
import sys
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy.special import logsumexp

import dpfast as dpf
from dpfast import BudgetError, Grid, Ledger, Privacy, PrivacyProfile
from dpfast.core.divergences import bounded_range_delta_up
from dpfast.densities import PerturbedHistogram
from tests.cases import every
from tests.releases import GRID, MEAN, MECHANISMS, MEDIAN, X
from tests.untouchable import Untouchable

ROOT = Path(__file__).parents[2]

# The rows of the table of the page on ledgers.
[PAGE] = (ROOT / "docs").rglob("ledger.md")
FIT = re.findall(r"^\| m.*1/10+ .*$", PAGE.read_text(), re.MULTILINE)


def divergence(logp, logq, order):
    return float(logsumexp(order * logp + (1 - order) * logq)) / (order - 1)


def hockey_stick(logp, logq, epsilon):
    return float(np.maximum(np.exp(logp) - np.exp(epsilon + logq), 0.0).sum())


class TestProfiles:
    @every("mechanism", MECHANISMS, ids=repr)
    def test_are_those_of_the_mechanism(self, mechanism):
        profile = mechanism.privacy_profile
        assert profile.privacy == mechanism.privacy
        if profile.failure < profile.privacy.delta:  # delta is that of the parts
            [(family, parameter, times)] = profile.parts
            target = Fraction(mechanism.privacy.epsilon)
            if family == "gaussian":
                delta = Privacy(mu=profile.mu).delta_up(target)
            else:
                delta = bounded_range_delta_up(parameter, times, target)
            assert 0.999 * profile.privacy.delta < delta <= profile.privacy.delta
            return
        total = sum(Fraction(epsilon) * times for _, epsilon, times, *_ in profile.parts)
        whole = Fraction(mechanism.privacy.epsilon)
        assert total >= whole or len(profile.parts) > 1  # shares of several parts are rounded down
        assert abs(total - whole) <= whole / 2**50

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
    def test_bound_the_exact_laws(self, epsilon):
        """On all neighbours among small datasets."""
        grid = Grid(0, 40, step=1)
        mechanisms = [
            dpf.InverseSensitivity(dpf.statistics.Median(), grid=grid, epsilon=epsilon),
            dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=grid, epsilon=epsilon),
            dpf.Quantiles((0.5,), grid=grid, epsilon=epsilon),
            dpf.Selection(epsilon=epsilon),
            dpf.Selection(epsilon=epsilon, selection="permute-and-flip"),
            dpf.MEstimator(dpf.psi.Huber(5.0), grid=grid, epsilon=epsilon),
        ]
        orders = (1.1, 2.0, 8.0, 50.0)
        for mechanism in mechanisms:
            bounds = [mechanism.privacy_profile.renyi_up(order) for order in orders]
            scores = isinstance(mechanism, dpf.Selection)
            vectors = isinstance(mechanism, dpf.Quantiles)
            laws = {}
            for dataset in itertools.product([0, 1] if scores else [0.0, 20.0, 40.0], repeat=3):
                law = mechanism.law(np.array(dataset))
                laws[dataset] = law.logpmf(np.arange(grid.size)[:, None] if vectors else law.outcomes())
            for a, b in itertools.permutations(laws, 2):
                if scores or sum(x != y for x, y in zip(a, b, strict=True)) == 1:
                    for order, bound in zip(orders, bounds, strict=True):
                        assert divergence(laws[a], laws[b], order) <= bound * (1 + 1e-9)

    def test_one_that_is_charged_too_little_is_seen(self):
        """The control: permute-and-flip has more than the divergence of a bounded range."""
        mechanism = dpf.Selection(epsilon=0.1, selection="permute-and-flip")
        claimed = PrivacyProfile(Privacy(0.1), (("bounded-range", 0.1, 1),)).renyi_up(2.0)
        p, q = (mechanism.law(s).logpmf(np.arange(4)) for s in ([1, 0, 0, 0], [0, 1, 1, 1]))
        assert divergence(p, q, 2.0) > 1.2 * claimed
        assert divergence(p, q, 2.0) <= mechanism.privacy_profile.renyi_up(2.0)

    def test_rho(self):
        """Below epsilon**2 / 8 and epsilon**2 / 2; values and orders in test_divergences.py."""
        assert 0.999 * 0.25**2 / 8 < MEDIAN.privacy_profile.rho < 0.25**2 / 8
        assert MEAN.privacy_profile.rho == pytest.approx(0.25 + math.expm1(-0.25), rel=1e-5)  # 100 steps
        assert PerturbedHistogram(101, grid=GRID, epsilon=1.0).privacy_profile.rho == pytest.approx(math.tanh(0.25))
        assert PrivacyProfile(Privacy(8.0)).rho == pytest.approx(8 * math.tanh(4), rel=1e-14)
        assert dpf.Selection(epsilon=1.0).rho == dpf.Selection(epsilon=1.0).privacy_profile.rho < 0.125

    def test_wrong_parts(self):
        for parts, message in [
            (((1, 2),), "of the form"),
            ((("odd", 1.0, 1),), "family must be"),
            ((("pure", math.nan, 1),), "at least 0"),
            ((("pure", 1.0, -1),), "of the form"),
            ((("discrete-laplace", 1.0, 1, 0),), "of the form"),
            ((("discrete-laplace", 1.0, 1, 1, 1),), "of the form"),
            ((("laplace", 1.0, 1, 2),), "have no steps"),
            ((("staircase", 1.0, 1, 10),), "of the form"),
            ((("staircase", 1.0, 1, 10, 0),), "of the form"),
            ((("staircase", 1.0, 1, 10, 11),), "of the form"),
            ((("gaussian", math.inf, 1),), "at least 0"),
        ]:
            with pytest.raises(ValueError, match=message):
                PrivacyProfile(Privacy(1.0), parts)
        with pytest.raises(TypeError):
            PrivacyProfile(1.0)
        for parts in ((), [("pure", 1.0, 1)], [("gaussian", 1.0, 1)]):
            with pytest.raises(ValueError, match="epsilon must be finite in a profile"):
                PrivacyProfile(Privacy(math.inf, 0.1), parts)
        with pytest.raises(ValueError, match="order must be above 1"):
            MEDIAN.privacy_profile.renyi_up(1.0)
        with pytest.raises(ValueError, match="order must be above 1 and a double"):
            MEDIAN.privacy_profile.renyi_up(10**400)

    def test_orders_are_rounded_up(self):
        """The divergence increases with the order."""
        profile = PrivacyProfile(Privacy(rho=1.0))
        assert profile.renyi_up(1 + Fraction(1, 2**60)) == math.nextafter(1, 2)
        assert profile.renyi_up(2 + Fraction(1, 2**60)) == math.nextafter(2, 3)
        assert profile.renyi_up(2) == profile.renyi_up("2") == 2.0

    @pytest.mark.parametrize("none", [("gaussian", 1.0, 0), ("gaussian", 0.0, 1), ("concentrated", 1.0, 0)])
    def test_parts_that_are_not_made_leave_the_failure(self, none):
        """A delta is one of a curve only if a part has a curve."""
        failing = PrivacyProfile(Privacy(1.0, 1e-3), [("pure", 1.0, 1), none])
        assert failing.failure == 1e-3
        assert not dpf.Ledger(rho=1.0).affords(failing)
        assert PrivacyProfile(Privacy(1.0, 1e-3), [("pure", 1.0, 1), (none[0], 1.0, 1)]).failure == 0


def response_pair(epsilon):
    return (1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon)))


def binomial_delta(epsilon, times, target):
    """The exact hockey-stick divergence of `times` randomised responses."""
    p, q = response_pair(epsilon)
    total = 0.0
    for k in range(times + 1):
        weight = math.comb(times, k)
        total += weight * max(0.0, p**k * q ** (times - k) - math.exp(target) * q**k * p ** (times - k))
    return total


class TestRenyi:
    def test_what_it_admits_is_private(self):
        """The number of randomised responses it lets pass keeps the budget, exactly; a tenth more would not be far."""
        for cost in (0.01, 0.05, 0.2):
            ledger, times = Ledger(1.0, 1e-6, composition="renyi"), 0
            while ledger.affords(Privacy(cost)):
                ledger.reserve(PrivacyProfile(Privacy(cost)))
                times += 1
            assert binomial_delta(cost, times, 1.0) <= 1e-6

    def test_it_is_tighter_for_many_small_releases(self):
        small = dpf.InverseSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=0.01, selection="exponential")
        ledger = Ledger(1.0, 1e-6, composition="renyi")
        assert ledger.affords(small, times=1500)
        assert not Ledger(1.0, 1e-6).affords(small, times=101)
        assert not ledger.affords(Privacy(0.01), times=1500)  # four times as dear where only epsilon is known

    def test_deltas_have_their_half(self):
        ledger = Ledger(1.0, 1e-6, composition="renyi")
        assert ledger.affords(Privacy(1e-3, 5e-7))
        assert not ledger.affords(Privacy(1e-3, 5.1e-7))
        assert ledger.remaining.delta == 5e-7

    def test_remaining_fits(self):
        ledger = Ledger(1.0, 1e-6, composition="renyi")
        left = ledger.remaining.epsilon
        assert ledger.affords(Privacy(left))
        assert not ledger.affords(Privacy(left * (1 + 1e-9)))
        ledger.reserve(PrivacyProfile(Privacy(left)))
        assert ledger.remaining.epsilon < 1e-4

    @pytest.mark.host
    @pytest.mark.parametrize("row", [row.strip("|").split("|") for row in FIT], ids=str)
    def test_the_table_of_the_guide(self, row):
        """As many releases as it says fit, and not one more; a plan as dp-accounting has it."""
        assert len(FIT) == 4
        statistic = dpf.statistics.Mean() if "mean" in row[0] else dpf.statistics.Median()
        kind = dpf.GlobalSensitivity if "mean" in row[0] else dpf.InverseSensitivity
        mechanism = kind(statistic, grid=dpf.Grid(0, 100), epsilon=Fraction(row[1]))
        for composition, most in (("basic", int(row[2])), ("renyi", int(row[3]))):
            ledger = dpf.Ledger(1.0, 1e-6, composition=composition)
            assert ledger.affords(mechanism, times=most)
            assert not ledger.affords(mechanism, times=most + 1)
        pytest.importorskip("dp_accounting")
        most = int(row[4])
        dpf.Ledger(1.0, 1e-6, plan=[mechanism] * most)
        with pytest.raises(dpf.BudgetError):
            dpf.Ledger(1.0, 1e-6, plan=[mechanism] * (most + max(2, most // 100)))

    @pytest.mark.host
    def test_the_conversion_is_that_of_dp_accounting(self):
        rdp = pytest.importorskip("dp_accounting.rdp")
        ledger = Ledger(1.0, 1e-6, composition="renyi")
        account = ledger._account
        epsilon, _ = rdp.compute_epsilon([account.order], [float(account._divergences.rest()[0])], 5e-7)
        assert epsilon == pytest.approx(1.0, rel=1e-6)


@pytest.mark.host
class TestPlans:
    def test_a_plan_within_the_basic_sums_needs_no_library(self):
        ledger = Ledger(0.5, plan=[MEDIAN, MEAN])
        with pytest.raises(BudgetError, match="release 1 of the plan"):
            ledger.release(MEAN, Untouchable())
        assert ledger.remaining == MEDIAN.privacy
        ledger.release(MEDIAN, X)
        ledger.release(MEAN, X)
        with pytest.raises(BudgetError, match="all 2 releases of the plan were made"):
            ledger.release(MEAN, Untouchable())
        assert ledger.remaining.epsilon == 0
        again = Ledger.from_json(ledger.to_json())
        assert again.charges == ledger.charges

    def test_sizes_take_several_places(self):
        ledger = Ledger(1.0, plan=[MEDIAN] * 3 + [MEAN])
        ledger.release(MEDIAN, X, size=3)
        ledger.release(MEAN, X)

    def test_without_the_library_it_says_so(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
        with pytest.raises(ImportError, match="pip install dp-accounting"):
            Ledger(0.4, 1e-3, plan=[MEDIAN, MEAN])

    def test_losses_of_randomised_response(self):
        pytest.importorskip("dp_accounting")
        profile = PrivacyProfile(Privacy(0.1))
        for times in (20, 60):
            exact = binomial_delta(0.1, times, 1.0)
            Ledger(1.0, exact * 1.02 + 1e-12, plan=[profile] * times)
            with pytest.raises(BudgetError, match="the plan needs delta"):
                Ledger(1.0, exact * 0.98, plan=[profile] * times)

    def test_bounded_range_costs_less_and_bounds_the_exact_law(self):
        pytest.importorskip("dp_accounting")
        from dpfast.ledger.accounts import planned_delta

        mechanism = dpf.InverseSensitivity(
            dpf.statistics.Median(), grid=Grid(0, 30, step=1), epsilon=1.0, selection="exponential"
        )
        single = mechanism.privacy_profile
        for target in (0.3, 0.9):
            curve = planned_delta([single], target)
            assert curve == pytest.approx((math.exp(0.5) - math.exp(target / 2)) ** 2 / math.expm1(1.0), rel=1e-2)
            for a, b in [([0, 30, 30], [0, 0, 30]), ([0, 0, 30], [0, 30, 30])]:
                p, q = (mechanism.law(x).logpmf(np.arange(31)) for x in (a, b))
                assert hockey_stick(p, q, target) <= curve
        assert planned_delta([single] * 20, 6.0) < 0.2 * planned_delta([PrivacyProfile(Privacy(1.0))] * 20, 6.0)
        laplace = PrivacyProfile(Privacy(1.0), (("laplace", 1.0, 1),))
        assert planned_delta([laplace], 0.5) == pytest.approx(1 - math.exp(-0.25), rel=1e-3)

    def test_plans_of_several_kinds(self):
        """Against the exact losses of two families of randomised response, and never cheaper than one of them alone."""
        pytest.importorskip("dp_accounting")
        from dpfast.ledger.accounts import planned_delta

        pure = [PrivacyProfile(Privacy(0.3))] * 4 + [PrivacyProfile(Privacy(0.01))] * 3
        large, small = response_pair(0.3), response_pair(0.01)
        exact = 0.0
        for signs in itertools.product([0, 1], repeat=7):
            p = math.prod((large if i < 4 else small)[sign] for i, sign in enumerate(signs))
            q = math.prod((large if i < 4 else small)[1 - sign] for i, sign in enumerate(signs))
            exact += max(0.0, p - math.exp(0.7) * q)
        found = planned_delta(pure, 0.7)
        assert exact <= found <= exact * 1.01 + 1e-9
        mixed = [MEDIAN.privacy_profile] * 5 + [MEAN.privacy_profile] * 5 + [PrivacyProfile(Privacy(1e-7, 1e-9))]
        assert planned_delta(mixed[:5], 0.9) <= planned_delta(mixed, 0.9) <= planned_delta(mixed, 0.8)
        ledger = Ledger(2.0, 1e-3, plan=mixed)
        for mechanism in [MEDIAN] * 5 + [MEAN] * 5:
            ledger.release(mechanism, X)

    def test_a_plan_in_a_file(self, tmp_path):
        path = tmp_path / "ledger"
        Ledger(0.5, plan=[MEDIAN, MEAN], path=path).release(MEDIAN, X)
        with pytest.raises(ValueError, match="plan"):
            Ledger(0.5, plan=[MEAN, MEDIAN], path=path)
        ledger = Ledger(0.5, plan=[MEDIAN, MEAN], path=path)
        ledger.release(MEAN, X)
        assert not ledger.affords(MEAN)


@pytest.mark.host
class TestCurve:
    """delta(epsilon) of profiles and ledgers, and their events, against exact laws and an accountant."""

    PAIR = PrivacyProfile(Privacy(0.5), (("pure", 0.25, 2),))

    def test_curve_of_a_pure_part_is_that_of_randomised_response(self):
        profile = PrivacyProfile(Privacy(1.0))
        assert profile.delta(1.0) == 0.0
        assert profile.delta(0.5) == pytest.approx((math.e - math.exp(0.5)) / (1 + math.e), rel=1e-9)

    def test_curve_of_two_parts_bounds_their_exact_composition(self):
        p = np.outer(response_pair(0.25), response_pair(0.25)).ravel()
        for target in (0.1, 0.3, 0.45):
            exact = np.maximum(0.0, p - math.exp(target) * p[::-1]).sum()
            assert exact <= self.PAIR.delta(target) <= Privacy(0.5).delta_up(target)

    def test_curve_with_a_failure(self):
        profile = PrivacyProfile(Privacy(1.0, 1e-3), (("pure", 1.0, 1),))
        assert profile.delta(1.0) == 1e-3
        assert profile.delta(0.5) >= 1e-3 + PrivacyProfile(Privacy(1.0)).delta(0.5) * (1 - 1e-3) - 1e-12

    def test_curve_of_rho_is_that_of_its_guarantee(self):
        assert PrivacyProfile(Privacy(rho=0.1)).delta(1.0) == Privacy(rho=0.1).delta_up(1.0)

    @pytest.mark.parametrize("profile", [PrivacyProfile(Privacy(1.0)), PrivacyProfile(Privacy(mu=0.5))])
    def test_epsilon_is_not_negative(self, profile):
        with pytest.raises(ValueError, match="epsilon must be at least 0"):
            profile.delta(-0.1)

    def test_ledger_composes_its_charges(self):
        ledger = Ledger(rho=1.0)
        assert ledger.delta(0.0) == 0.0
        ledger.reserve(PrivacyProfile(Privacy(mu=0.3)), times=4)
        assert ledger.delta(1.0) == PrivacyProfile(Privacy(mu=0.6)).delta(1.0)
        ledger.reserve(PrivacyProfile(Privacy(0.25)))
        assert ledger.delta(1.0) > PrivacyProfile(Privacy(mu=0.6)).delta(1.0)
        assert ledger.delta(1.25) <= PrivacyProfile(Privacy(mu=0.6)).delta(1.0)
        with pytest.raises(ValueError, match="epsilon must be at least 0"):
            ledger.delta(-1.0)

    @pytest.mark.host
    @every("family", ["pure", "laplace", "discrete-laplace", "gaussian", "bounded-range"])
    def test_accountants_bound_at_least_as_much_by_the_event(self, family):
        pld = pytest.importorskip("dp_accounting.pld")
        from dp_accounting import NeighboringRelation

        stated = Privacy(mu=1.5) if family == "gaussian" else Privacy(1.5)
        profile = PrivacyProfile(stated, ((family, 0.5, 3),))
        replaces = family in ("pure", "bounded-range")
        relation = NeighboringRelation.REPLACE_ONE if replaces else NeighboringRelation.ADD_OR_REMOVE_ONE
        accountant = pld.PLDAccountant(relation).compose(profile.dp_event())
        for epsilon in (0.1, 0.6, 1.2):
            assert accountant.get_delta(epsilon) >= profile.delta(epsilon) * (1 - 1e-2) - 1e-9

    @pytest.mark.host
    @every(("epsilon", "steps"), [(0.1, 1001), (0.5, 1001), (3.0, 1001), (30.0, 1001), (0.5, 4001), (0.5, 3355443200)])
    def test_discrete_noise_of_many_steps_has_the_event_of_continuous_noise_that_dominates_it(self, epsilon, steps):
        """By the exact curve at all losses of the discrete noise; the control: Laplace of the same epsilon does not."""
        pytest.importorskip("dp_accounting")
        event = PrivacyProfile(Privacy(epsilon), (("discrete-laplace", epsilon, 1, steps),)).dp_event()
        assert type(event).__name__ == "LaplaceDpEvent"
        with mpmath.workdps(60):
            h, continuous = mpmath.mpf(epsilon) / steps, 1 / mpmath.mpf(event.noise_multiplier)
            worse = 0
            for j in {*range(1, 30), *(steps * k // 997 for k in range(1, 997)), *range(steps - 30, steps)}:
                t = h * (steps - 2 * j + 1)  # P(Z < j) - exp(t) P(Z < j - steps), at a tie of the two
                low, high = mpmath.exp(-h * j), mpmath.exp(-h * (steps - j + 1))
                exact = 1 - (low + mpmath.exp(t) * high) / (1 + mpmath.exp(-h))
                assert exact <= 1 - mpmath.exp((t - continuous) / 2)
                worse += exact > 1 - mpmath.exp((t - mpmath.mpf(epsilon)) / 2)
        assert worse > 900

    @pytest.mark.host
    def test_events(self):
        pytest.importorskip("dp_accounting")
        from dp_accounting import dp_event

        assert Privacy(mu=0.5).dp_event() == dp_event.GaussianDpEvent(2.0)
        assert Privacy(rho=0.5).dp_event() == dp_event.ZCDpEvent(0.5)
        assert isinstance(Privacy(0.5).dp_event(), dp_event.RandomizedResponseDpEvent)
        assert isinstance(Privacy(800.0).dp_event(), dp_event.NonPrivateDpEvent)
        ledger = Ledger(2.0, 1e-3)
        assert ledger.dp_event() == dp_event.NoOpDpEvent()
        ledger.reserve(PrivacyProfile(Privacy(0.5)), times=2)
        response = Privacy(0.5).dp_event()
        assert ledger.dp_event() == dp_event.ComposedDpEvent([response, response])
        ledger.reserve(PrivacyProfile(Privacy(0.25), (("laplace", 0.25, 1),)))
        assert len(ledger.dp_event().events) == 3
        noise = PrivacyProfile(Privacy(0.5), (("laplace", 0.25, 2),))
        assert noise.dp_event() == dp_event.SelfComposedDpEvent(dp_event.LaplaceDpEvent(4.0), 2)
        ledger.reserve(PrivacyProfile(Privacy(0.25, 1e-6)))
        with pytest.raises(ValueError, match="failure must be 0"):
            ledger.dp_event()
