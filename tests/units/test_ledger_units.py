"""Budgets of rho and mu: what they charge, refuse, keep in files and imply, and Gaussian parts in other budgets."""

import itertools
import json
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

import dpfast as dpf
from dpfast import BudgetError, Ledger, Privacy, PrivacyProfile
from dpfast.densities import PerturbedHistogram
from dpfast.laws import Staircase
from dpfast.ledger import Charge
from dpfast.theory import gaussian_mu
from tests.cases import every
from tests.forks import in_child, needs_fork
from tests.reference.divergences import gaussian_delta, zero_sum_masses
from tests.releases import GRID, MEAN, MECHANISMS, MEDIAN, X
from tests.untouchable import Untouchable

SMOOTH = dpf.SmoothSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=0.25, delta=1e-6)
BUDGETS = {"rho": {"rho": 0.5}, "mu": {"mu": 1.0}}
RENYI = {"epsilon": 1.0, "delta": 1e-6, "composition": "renyi"}
# Ten of these are a fifth more than the budget.
COSTS = {"rho": Privacy(rho=0.0625), "mu": Privacy(mu=math.sqrt(0.125))}


class TestRho:
    @every("mechanism", MECHANISMS, ids=repr)
    def test_every_mechanism_is_charged_the_rho_of_its_profile(self, mechanism):
        ledger = Ledger(rho=1e6, delta=0.5, neighbors=mechanism.privacy.neighbors)
        for times in (1, 2):
            ledger.reserve(mechanism.privacy_profile, times=times)
        profile = mechanism.privacy_profile
        spent = Privacy(rho=3 * profile.rho, delta=3 * profile.failure, neighbors=mechanism.privacy.neighbors)
        assert ledger.spent.rho == pytest.approx(spent.rho, rel=1e-15)
        assert Fraction(ledger.spent.rho) >= 3 * profile.exact_rho
        assert (ledger.spent.delta, ledger.spent.unit) == (spent.delta, "rho")

    def test_releases(self):
        ledger = Ledger(rho=4 * MEAN.privacy_profile.rho)
        with ledger:
            MEAN(X)
            MEAN.release(X, size=2)
        ledger.release(MEAN, X)
        assert ledger.remaining == Privacy(rho=0.0)
        with (
            ledger,
            pytest.raises(BudgetError, match=r"a release of rho = 0\.0078\d+ does not fit: rho = 0\.0 is left$"),
        ):
            MEDIAN(Untouchable())
        assert ledger.charges[-1] == Charge(repr(MEAN), MEAN.privacy_profile)
        assert repr(ledger).startswith("<Ledger of rho = 0.115")

    def test_deltas_are_set_aside(self):
        ledger = Ledger(rho=1.0, delta=1e-6)
        ledger.release(SMOOTH, X)
        assert ledger.remaining.delta == 0
        with pytest.raises(BudgetError, match=r"delta = 1e-06 does not fit: rho = 0\.96"):
            ledger.release(SMOOTH, Untouchable())
        ledger.release(MEDIAN, X)
        with pytest.raises(BudgetError, match="does not fit"):
            Ledger(rho=1.0).release(SMOOTH, Untouchable())

    def test_gaussian_and_concentrated_parts(self):
        ledger = Ledger(rho=1.0)
        ledger.reserve(PrivacyProfile(Privacy(mu=0.5)))
        ledger.reserve(PrivacyProfile(Privacy(1.0, 1e-6), [("gaussian", 0.5, 2)]))
        ledger.reserve(PrivacyProfile(Privacy(rho=0.25)))
        assert ledger.spent == Privacy(rho=0.625)
        assert ledger.affords(Privacy(rho=0.375))
        assert not ledger.affords(Privacy(rho=math.nextafter(0.375, 1)))

    @settings(deadline=None)
    @given(st.lists(st.floats(1e-300, 4.0), max_size=20), st.floats(1e-3, 10.0))
    def test_sums_never_exceed_the_budget(self, costs, budget):
        ledger, total = Ledger(rho=budget), Fraction()
        for epsilon in costs:
            profile = PrivacyProfile(Privacy(epsilon))
            fits = total + Fraction(profile.rho) <= Fraction(budget)
            assert ledger.affords(profile) == fits
            if fits:
                ledger.reserve(profile)
                total += Fraction(profile.rho)
        assert Fraction(ledger.spent.rho) >= total
        assert Fraction(ledger.remaining.rho) <= Fraction(budget) - total

    def test_it_admits_more_than_the_untight_rho(self):
        """Laplace noise of epsilon = 2: 1.135 where epsilon**2 / 2 is 2."""
        mean = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=GRID, epsilon=2.0, noise="discrete-laplace")
        assert Ledger(rho=8.0).affords(mean, times=7)
        assert not Ledger(rho=8.0).affords(mean, times=8)


class TestMu:
    def test_squares_add_up_exactly(self):
        ledger = Ledger(mu=1.0)
        ledger.reserve(PrivacyProfile(Privacy(mu=0.5)), times=3)
        assert (ledger.spent, ledger.remaining) == (Privacy(mu=math.nextafter(math.sqrt(0.75), 1)), Privacy(mu=0.5))
        with pytest.raises(BudgetError, match=r"2 releases of mu = 0\.5 do not fit: mu = 0\.5 is left$"):
            ledger.reserve(PrivacyProfile(Privacy(mu=0.5)), times=2)
        with pytest.raises(BudgetError, match=r"give mus, deltas and budgets as strings, mu='0\.1'"):
            ledger.reserve(PrivacyProfile(Privacy(mu=0.5), [("gaussian", 0.3, 1), ("gaussian", 0.4, 1)]))
        ledger.reserve(PrivacyProfile(Privacy(mu=0.5), [("gaussian", "0.3", 1), ("gaussian", "0.4", 1)]))
        assert ledger.remaining.mu == 0
        assert not ledger.affords(Privacy(mu=1e-300))

    @pytest.mark.parametrize("unit", BUDGETS)
    def test_exact_numbers(self, unit, tmp_path):
        """As many tenths as fit; ten floats of 0.1 are more than a rho of 1, a hundred more than a mu of 1."""
        most = {"rho": 10, "mu": 100}[unit]
        ledger = Ledger(**{unit: "1"}, path=tmp_path / "ledger")
        assert not ledger.affords(Privacy(**{unit: 0.1}), times=most)
        ledger.reserve(PrivacyProfile(Privacy(**{unit: "0.1"})), times=most)
        assert ledger.remaining.amount == 0
        again = Ledger(**{unit: 1.0}, path=tmp_path / "ledger")
        assert again.charges == ledger.charges
        assert Ledger.from_json(again.to_json()).remaining.amount == 0

    @settings(deadline=None)
    @given(st.lists(st.floats(1e-300, 2.0), max_size=20), st.floats(1e-3, 10.0))
    def test_sums_never_exceed_the_budget(self, costs, budget):
        ledger, total = Ledger(mu=budget), Fraction()
        for mu in costs:
            fits = total + Fraction(mu) ** 2 <= Fraction(budget) ** 2
            assert ledger.affords(Privacy(mu=mu)) == fits
            if fits:
                ledger.reserve(PrivacyProfile(Privacy(mu=mu)))
                total += Fraction(mu) ** 2
        assert Fraction(ledger.spent.mu) ** 2 >= total
        assert Fraction(ledger.remaining.mu) ** 2 <= Fraction(budget) ** 2 - total

    @pytest.mark.parametrize("mechanism", [MEDIAN, MEAN, SMOOTH], ids=repr)
    def test_what_is_not_gaussian_is_refused(self, mechanism):
        ledger = Ledger(mu=100.0)
        assert not ledger.affords(mechanism)
        with ledger, pytest.raises(BudgetError, match=r"epsilon = 0\.25.*It is not Gaussian and has no mu"):
            mechanism(Untouchable())
        with pytest.raises(BudgetError, match=r"a release of rho = 0\.5 does not fit.*no mu"):
            ledger.reserve(PrivacyProfile(Privacy(rho=0.5)))
        assert ledger.charges == ()
        mechanism.release(X, size=0)

    def test_delta_of_the_total_is_exact(self):
        mu = gaussian_mu(1.0, 1e-6)
        ledger = Ledger(mu=mu)
        ledger.reserve(PrivacyProfile(Privacy(mu=mu / 4)), times=16)
        assert ledger.spent.delta_up(1.0) == ledger.privacy.delta_up(1.0) <= 1e-6
        assert gaussian_delta(mu, 1.0) == pytest.approx(1e-6, rel=1e-12)
        assert not ledger.affords(Privacy(mu=mu / 1000))
        rho = Ledger(rho=mu**2 / 2)
        assert rho.privacy.delta_up(1.0) > 4e-6  # what is lost where only rho is known


class TestUnits:
    @pytest.mark.parametrize("unit", BUDGETS)
    def test_round_trip(self, unit):
        ledger = Ledger(**BUDGETS[unit])
        with ledger.spend(COSTS[unit], times=3, label="mine"):
            pass
        fields = json.loads(ledger.to_json())
        assert (fields["dpfast-ledger"], fields[unit], "epsilon" in fields) == (1, BUDGETS[unit][unit], False)
        again = Ledger.from_json(ledger.to_json())
        assert (again.charges, again.spent, again.remaining) == (ledger.charges, ledger.spent, ledger.remaining)
        assert again.to_json() == ledger.to_json()
        with pytest.raises(ValueError, match="damaged"):
            Ledger.from_json(ledger.to_json().replace('"times": 3', '"times": 30'))
        with pytest.raises(ValueError, match="not a ledger"):
            Ledger.from_json(ledger.to_json().replace(f'"{unit}": {BUDGETS[unit][unit]}, "delta"', '"delta"'))

    def test_steps_are_kept(self):
        ledger = Ledger(rho=1.0)
        parts = (("discrete-laplace", 0.25, 1, 8), ("discrete-laplace", 0.25, 1), ("staircase", 0.125, 1, 10, 5))
        ledger.reserve(PrivacyProfile(Privacy(0.625), parts))
        again = Ledger.from_json(ledger.to_json())
        assert again.charges == ledger.charges
        assert again.charges[0].profile.parts == parts

    @pytest.mark.parametrize("unit", BUDGETS)
    def test_files(self, unit, tmp_path):
        path = tmp_path / "ledger"
        ledger = Ledger(**BUDGETS[unit], path=path)
        ledger.reserve(PrivacyProfile(COSTS[unit]), times=5)
        again, copied = Ledger(**BUDGETS[unit], path=path), pickle.loads(pickle.dumps(ledger))
        assert again.charges == copied.charges == ledger.charges
        copied.reserve(PrivacyProfile(COSTS[unit]))
        for other in (ledger, again):
            assert other.spent == copied.spent
            assert not other.affords(COSTS[unit], times=3)
        other = {"rho": {"mu": 1.0}, "mu": {"rho": 0.5}}[unit]
        for wrong in (other, {"epsilon": 1.0}, {unit: 2.0}):
            with pytest.raises(ValueError, match=r"the ledger .* has"):
                Ledger(**wrong, path=path)
        assert len(Ledger(**BUDGETS[unit], path=path).charges) == 2

    @pytest.mark.parametrize("unit", BUDGETS)
    @pytest.mark.parametrize("in_file", [False, True])
    def test_threads_lose_and_double_nothing(self, unit, in_file, tmp_path):
        """Eight fit, of 64."""
        path = tmp_path / "ledger" if in_file else None
        ledger = Ledger(**BUDGETS[unit], path=path)
        least = COSTS[unit] if unit == "rho" else Privacy(mu=math.nextafter(COSTS[unit].mu, 0))

        def spend(i):
            mine = Ledger(**BUDGETS[unit], path=path) if in_file and i % 2 else ledger
            try:
                mine.reserve(PrivacyProfile(least))
            except BudgetError:
                return 0
            return 1

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(spend, range(64))) == 8
        assert len(ledger.charges) == 8

    @needs_fork
    @pytest.mark.parametrize("unit", BUDGETS)
    def test_fork(self, unit, tmp_path):
        in_memory, in_file = Ledger(**BUDGETS[unit]), Ledger(**BUDGETS[unit], path=tmp_path / "ledger")
        in_file.reserve(PrivacyProfile(COSTS[unit]), times=2)

        def spend():
            with pytest.raises(BudgetError):
                in_memory.reserve(PrivacyProfile(COSTS[unit]))
            in_file.reserve(PrivacyProfile(COSTS[unit]), times=5)

        assert in_child(spend) == 0
        assert not in_file.affords(COSTS[unit], times=2)
        assert sum(charge.times for charge in in_file.charges) == 7

    def test_a_file_of_an_earlier_dpfast_opens(self, tmp_path):
        path = tmp_path / "ledger"
        path.write_text(
            '{"dpfast-ledger": 1, "epsilon": 1.0, "delta": 1e-06, "neighbors": "replace-one", "composition": "renyi"}\n'
            '{"label": "a histogram", "times": 1, "epsilon": 0.25, "delta": 0.0, "neighbors": "replace-one",'
            ' "parts": [["pure", 0.125, 2]]}\n'
        )
        ledger = Ledger(1.0, 1e-6, composition="renyi", path=path)
        ledger.release(PerturbedHistogram(3, grid=GRID, epsilon=0.25), X)
        assert ledger.spent.epsilon == 0.5
        assert [charge.profile.parts for charge in ledger.charges] == [
            (("pure", 0.125, 2),),
            (("zero-sum-laplace", 0.25, 1, 3),),
        ]

    @every(
        "arguments, error, message",
        [
            ({}, TypeError, "epsilon, rho or mu must be given"),
            ({"epsilon": 1.0, "rho": 1.0}, TypeError, "only one of epsilon, rho and mu"),
            ({"rho": 1.0, "mu": 1.0}, TypeError, "only one of epsilon, rho and mu"),
            ({"rho": 0.0}, ValueError, "rho must be positive"),
            ({"mu": math.inf}, ValueError, "mu must be finite"),
            ({"mu": "much"}, ValueError, "mu must be a number"),
            ({"mu": 1.0, "delta": 1e-6}, ValueError, "delta must be 0 with mu"),
            ({"rho": 1.0, "composition": "renyi", "delta": 1e-6}, ValueError, "left out with rho"),
            ({"mu": 1.0, "plan": []}, ValueError, "left out with mu"),
        ],
    )
    def test_wrong_parameters(self, arguments, error, message):
        with pytest.raises(error, match=message):
            Ledger(**arguments)

    @every("budget", [*BUDGETS.values(), {"epsilon": 1.0}, RENYI])
    @every("cost", [{"mu": 1e300}, {"rho": 1.7e308}, {"mu": 1.7e308}])
    @every("times", [pytest.param(1, id="1"), pytest.param(3, id="3"), pytest.param(10**400, id="10**400")])
    def test_costs_beyond_doubles_are_refused(self, budget, cost, times):
        """Also sums, squares and divergences that only rationals can state."""
        ledger, profile = Ledger(**budget), PrivacyProfile(Privacy(**cost))
        assert ledger.affords(profile, times=0)
        assert not ledger.affords(profile, times=times)
        with pytest.raises(BudgetError, match="fit: "):
            ledger.reserve(profile, times=times)
        ledger.reserve(profile, times=0)
        assert ledger.remaining == Ledger(**budget).remaining

    @every("amount", [0.05, 1.0, 1.7e308])
    @every("budget", [{"mu": 1}, {"rho": 1}, {"epsilon": 1, "delta": 1e-6}, RENYI])
    def test_what_remains_fits(self, budget, amount):
        unit = next(iter(budget))
        ledger = Ledger(**{**budget, unit: amount})
        assert ledger.affords(ledger.remaining)
        assert not ledger.affords(Privacy(**{unit: float(ledger.remaining.amount) * (1 + 1e-12)}))
        ledger.reserve(PrivacyProfile(Privacy(**{unit: amount / 8})))
        assert 0 < ledger.remaining.amount < amount
        assert ledger.affords(ledger.remaining)

    def test_times_beyond_doubles(self):
        """Of tiny costs they fit; the sum of the infinite epsilons is infinite."""
        ledger, profile = Ledger(**RENYI), PrivacyProfile(Privacy(mu="1e-400"))
        for _ in range(2):
            ledger.reserve(profile, times=10**310)
        assert [charge.times for charge in ledger.charges] == [10**310] * 2
        assert ledger.spent.epsilon == math.inf
        assert 0 < ledger.remaining.epsilon < Ledger(**RENYI).remaining.epsilon

    def test_neighbors_do_not_add_up(self):
        with pytest.raises(ValueError, match="do not add up"):
            Ledger(mu=1.0).affords(Privacy(mu=0.5, neighbors="local"))
        with pytest.raises(ValueError, match="do not add up: give the release neighbors='add-remove'"):
            Ledger(mu=1.0, neighbors="add-remove").affords(Privacy(mu=0.5))

    def test_a_replaced_record_is_one_removed_and_one_added(self, tmp_path):
        gaussian = PrivacyProfile(Privacy(mu=0.5, neighbors="add-remove"))
        assert gaussian.for_replaced() == PrivacyProfile(Privacy(mu=1.0), [("gaussian", 1.0, 1)])
        ledger = Ledger(mu=1.0)
        assert ledger.affords(gaussian)
        assert not ledger.affords(gaussian, times=2)
        count = dpf.GlobalSensitivity(dpf.statistics.Count(), grid=dpf.Grid(0, 1), epsilon=0.25, neighbors="add-remove")
        path = tmp_path / "ledger"
        with Ledger(0.75, path=path) as ledger:
            count([1.0])
            dpf.median([1.0], bounds=(0, 2), epsilon=0.125)
            with pytest.raises(dpf.BudgetError, match="one removed and one added, which costs twice the epsilon"):
                count([1.0])
        for found in (ledger, Ledger(0.75, path=path), Ledger.from_json(ledger.to_json())):
            assert found.charges[0].label == f"{count!r}, charged for one record replaced"
            assert found.charges[0].profile.parts == (("discrete-laplace", 0.5, 1, 2),)
            assert found.charges[0].profile.privacy == Privacy(0.5)
            assert found.spent == Privacy(0.625)
        with Ledger(0.5, plan=[count]) as planned:
            count([1.0])
        assert planned.spent == Privacy(0.5)
        assert count.privacy_map(2).epsilon == 0.5

    def test_the_charge_for_a_replaced_record_is_needed(self):
        """By all small data sets: two epsilon hold, and less does not: the control."""
        count = dpf.GlobalSensitivity(
            dpf.statistics.Count((0.5, 1.5)), grid=dpf.Grid(0, 1, step=1), epsilon=0.5, neighbors="add-remove"
        )
        total = dpf.GlobalSensitivity(
            dpf.statistics.Sum(), grid=dpf.Grid(-1, 1, step=1), epsilon=0.5, neighbors="add-remove"
        )

        def loss(mechanism, x, y):
            laws = [mechanism.law(data) for data in (x, y)]
            codes = max(laws[0].center - 20, 0) + np.arange(40)
            return float(np.abs(laws[0].logpmf(codes) - laws[1].logpmf(codes)).max())

        assert math.isclose(loss(total, [-1.0], [1.0]), total.privacy_profile.for_replaced().privacy.epsilon)
        assert loss(count, [0.0], [1.0]) <= count.privacy_profile.for_replaced().privacy.epsilon

    def test_what_cannot_be_charged(self):
        # A replaced record may leave a unit for another, and change both.
        of_units = Privacy(0.5, 1e-6, neighbors="add-remove", per_unit=3)
        for stated in (Privacy(0.5), Privacy(0.5, neighbors="add-remove", records=2), of_units):
            with pytest.raises(ValueError, match="neighbors must be 'add-remove' for one record"):
                PrivacyProfile(stated).for_replaced()
        with pytest.raises(ValueError, match="group guarantee of rho"):
            Ledger(rho=1.0, delta=0.1).affords(Privacy(rho=0.1, delta=0.01, neighbors="add-remove"))


@pytest.mark.host
class TestGaussianPartsElsewhere:
    def test_sums_of_epsilons(self):
        """The (epsilon, delta) that the profile states; without one it does not fit."""
        stated = PrivacyProfile(Privacy(0.5, 1e-6), [("gaussian", gaussian_mu(0.5, 1e-6), 1)])
        ledger = Ledger(1.0, 2e-6)
        ledger.reserve(stated, times=2)
        assert ledger.remaining == Privacy(0.0)
        ledger = Ledger(10.0, 1e-3)
        assert not ledger.affords(Privacy(mu=1e-3))
        ledger.reserve(PrivacyProfile(Privacy(mu=1e-3)), times=0)
        with pytest.raises(BudgetError, match=r"mu = 0\.001 does not fit: epsilon = 10\.0.*infinite at delta 0"):
            ledger.reserve(PrivacyProfile(Privacy(mu=1e-3)))

    def test_renyi(self):
        """Its delta is of the composition, not of an event set aside; what is admitted is private."""
        ledger = Ledger(1.0, 1e-6, composition="renyi")
        profile = PrivacyProfile(Privacy(0.5, 1e-3), [("gaussian", 0.05, 1)])
        times = max(times for times in range(1, 30) if ledger.affords(profile, times=times))
        ledger.reserve(profile, times=times)
        mu = 0.05 * math.sqrt(times)
        assert 0.7 * gaussian_mu(1.0, 1e-6) < mu < gaussian_mu(1.0, 1e-6)
        assert ledger.remaining.delta == 5e-7
        unstated = Ledger(1.0, 1e-6, composition="renyi")
        unstated.reserve(PrivacyProfile(Privacy(mu=0.05)))
        assert unstated.spent.epsilon == math.inf
        assert Ledger.from_json(unstated.to_json()).charges == unstated.charges

    def test_a_plan_of_gaussians_is_exact(self):
        mu = gaussian_mu(1.0, 1e-6)
        plan = [PrivacyProfile(Privacy(mu=mu / 4))] * 16
        ledger = Ledger(1.0, 1e-6, plan=plan)
        assert ledger.remaining == Privacy(mu=mu / 4)
        ledger.reserve(plan[0], times=16)
        assert ledger.remaining == Privacy(0.0)
        with pytest.raises(BudgetError, match="the plan needs delta"):
            Ledger(1.0, 1e-6, plan=[*plan, PrivacyProfile(Privacy(mu=mu / 50))])
        with pytest.raises(BudgetError, match="the plan needs delta"):
            Ledger(1.0, plan=[PrivacyProfile(Privacy(mu=1e-3))])

    @every(
        "several",
        [
            *([("discrete-laplace", s)] for s in (1, 2, 8, 2010)),
            *([("staircase", *stairs)] for stairs in ((1, 1), (3, 1), (10, 5), (10, 10))),
            [("discrete-laplace", s) for s in (1, 2, 8)],
            [("staircase", 10, 5), ("discrete-laplace", 2), ("staircase", 3, 2)],
        ],
    )
    @every("mu", [0.0, 0.2])
    def test_plans_of_several_families(self, several, mu):
        """Against the sum, over all losses by integer noise, of the delta of a Gaussian at what is left."""
        pytest.importorskip("dp_accounting")
        rate, epsilon, exact = 0.3, 0.25 * len(several), 0.0
        for outcomes in itertools.product(*(losses(family, rate, *shape) for family, *shape in several)):
            mass, left = math.prod(mass for mass, _ in outcomes), epsilon - sum(loss for _, loss in outcomes)
            exact += mass * float(gaussian_delta(mu, left) if mu else max(0.0, -math.expm1(left)))
        plan = [PrivacyProfile(Privacy(rate), [(family, rate, 1, *shape)]) for family, *shape in several]
        plan += [PrivacyProfile(Privacy(mu=mu / 2))] * 4
        Ledger(epsilon, exact * 1.01 + 1e-12, plan=plan)
        with pytest.raises(BudgetError, match="the plan needs delta"):
            Ledger(epsilon, exact * 0.99, plan=plan)

    @pytest.mark.parametrize("k", [2, 3, 64])
    def test_plans_of_histograms(self, k):
        """Two of them, against the sum over their three losses; charged as pure they would need more for k > 2."""
        pytest.importorskip("dp_accounting")
        rate, epsilon = 0.3, 0.25
        losses = list(zip(map(float, zero_sum_masses(mpf(rate), k)), (rate, 0.0, -rate), strict=True))
        exact = sum(p * q * max(0.0, -math.expm1(epsilon - a - b)) for p, a in losses for q, b in losses)
        plan = [PrivacyProfile(Privacy(rate), [("zero-sum-laplace", rate, 1, k)])] * 2
        Ledger(epsilon, exact * 1.01, plan=plan)
        with pytest.raises(BudgetError, match="the plan needs delta"):
            Ledger(epsilon, exact * 0.99, plan=plan)

    @pytest.mark.parametrize("least", [("gaussian", 5e-324, 1), ("gaussian", "1e-400", 1), ("laplace", 5e-324, 1)])
    def test_plans_with_a_cost_near_zero(self, least):
        """It adds almost nothing to a delta of 0.0256 at 0.05, that of randomised response."""
        pytest.importorskip("dp_accounting")
        plan = [PrivacyProfile(Privacy(0.1, 1e-6), [("gaussian", 1e-9, 1)])]
        plan += [PrivacyProfile(Privacy(0.1)), PrivacyProfile(Privacy(0.1, 1e-6 * (least[0] == "gaussian")), [least])]
        Ledger(0.05, 0.02561, plan=plan)
        with pytest.raises(BudgetError, match=r"the plan needs delta = 0\.0256 at epsilon = 0\.05"):
            Ledger(0.05, 0.0256, plan=plan)

    def test_plans_of_large_costs(self):
        """Buckets widen with the losses: memory for a few millions, and a delta within 1 % of the exact one."""
        pytest.importorskip("dp_accounting")
        truth, plan = 1 / (1 + math.exp(-0.1)), [PrivacyProfile(Privacy(mu=20.0)), PrivacyProfile(Privacy(0.1))]
        exact = truth * float(gaussian_delta(20.0, 329.9)) + (1 - truth) * float(gaussian_delta(20.0, 330.1))
        assert exact == pytest.approx(3.02e-11, rel=0.01)
        with pytest.raises(BudgetError, match=r"the plan needs delta = 3\.02e-11 at"):
            Ledger(330.0, exact * 0.99, plan=plan)
        for large in (("gaussian", 1e200, 1), ("gaussian", 1e4, 1), ("bounded-range", 1e300, 1)):
            with pytest.raises(BudgetError, match="the plan needs delta = 1 at"):
                Ledger(330.0, 0.9, plan=[*plan, PrivacyProfile(Privacy(1.0), [large])])
        with pytest.raises(BudgetError, match="the plan needs delta"):
            Ledger(330.0, 0.9, plan=[PrivacyProfile(Privacy(800.0), [("bounded-range", 800.0, 1)])])

    def test_a_plan_needs_distributions(self):
        with pytest.raises(ValueError, match="distributions of losses, which parts stated in rho do not have"):
            Ledger(1.0, 1e-6, plan=[PrivacyProfile(Privacy(rho=1e-3))])


def losses(family, epsilon, steps, *r):
    """Masses and losses of noise against its shift by so many steps."""
    if family == "staircase":
        z = np.arange(-100 * steps, 101 * steps).astype(float)
        noise = Staircase(steps / Fraction(epsilon), steps, *r)
        levels = np.round((noise.logpmf(z) - noise.logpmf(z - steps)) / epsilon)
        return [(math.fsum(np.exp(noise.logpmf(z[levels == i]))), i * epsilon) for i in (-1, 0, 1)]
    rate = epsilon / steps
    tail = 1 / (1 + math.exp(-rate))  # P(Z <= 0)
    inside = [(math.tanh(rate / 2) * math.exp(-rate * z), epsilon - 2 * rate * z) for z in range(1, steps)]
    return [(tail, epsilon), *inside, (tail * math.exp(-epsilon), -epsilon)]
