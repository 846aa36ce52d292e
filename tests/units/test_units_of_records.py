"""T27, guarantees for units of several records: `Privacy.for_units`, that of profiles, `Ledger(per_unit=)`."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dpfast as dpf
from dpfast import BudgetError, Ledger, Privacy, PrivacyProfile
from dpfast.core.rounding import up
from dpfast.theory import gaussian_mu
from tests.cases import every
from tests.releases import MECHANISMS
from tests.untouchable import Untouchable

ADD = "add-remove"
GRID = dpf.Grid(0, 10, step=1)
SUM = dpf.GlobalSensitivity(dpf.statistics.Sum(), grid=GRID, epsilon=0.5, neighbors=ADD)
PRIVATE_N = [mechanism for mechanism in MECHANISMS if mechanism.privacy.neighbors == ADD]


class TestPrivacy:
    @pytest.mark.parametrize(
        ("one", "three"),
        [
            (Privacy(0.5, neighbors=ADD), Privacy(1.5, neighbors=ADD)),
            (Privacy(rho=0.5, neighbors=ADD), Privacy(rho=4.5, neighbors=ADD)),
            (Privacy(mu=0.5, neighbors=ADD), Privacy(mu=1.5, neighbors=ADD)),
            (Privacy(0.0, 1e-6, ADD), Privacy(0.0, 3e-6, ADD)),
        ],
    )
    def test_is_that_of_the_group(self, one, three):
        units = one.for_units(3)
        assert units == three == one.group_up(3)
        assert (units.records, units.per_unit) == (1, 3)
        assert units.for_units(3) is units.for_units(2) is units

    def test_words(self):
        one = Privacy(0.5, 1e-6, ADD)
        assert str(one.for_units(3)).endswith(" for one unit of at most 3 records added or removed")
        assert str(one.for_units(1)) == (
            "epsilon = 0.5, delta = 1e-06 for one unit of at most 1 record added or removed"
        )
        assert str(one.for_units(3).group_up(2)).endswith(" for 2 units of at most 3 records added or removed")
        assert one.for_units(3).group_up(2).epsilon == 3.0
        assert repr(Privacy(1.0, neighbors=ADD, per_unit=2)).endswith("records=1, per_unit=2)")
        assert Privacy(1.0, neighbors=ADD, per_unit=2).group_up(0).per_unit == 2

    def test_refusals(self):
        advice = r"neighbors must be 'add-remove' for units, not 'replace-one': .* give the mechanism neighbors="
        for make in (
            Privacy(1.0).for_units,
            lambda k: Privacy(1.0, per_unit=k),
            PrivacyProfile(Privacy(1.0)).for_units,
        ):
            with pytest.raises(ValueError, match=advice):
                make(2)
        with pytest.raises(
            ValueError, match="per_unit must be at most 2, the records of a unit in this guarantee, not 3"
        ):
            Privacy(1.0, neighbors=ADD, per_unit=2).for_units(3)
        with pytest.raises(ValueError, match="records must be 1 for a guarantee of units, not 2"):
            Privacy(1.0, neighbors=ADD).group_up(2).for_units(3)
        with pytest.raises(ValueError, match="per_unit must be at least 1, not 0"):
            Privacy(1.0, neighbors=ADD).for_units(0)


def discrete_laplace(scale, shift, reach=400):
    z = np.arange(-reach, reach + 1)
    p = np.exp(-np.abs(z - shift) / scale)
    return p / p.sum()


def hockey_stick(p, q, t):
    return np.maximum(p - math.exp(t) * q, 0).sum()


class TestProfile:
    @pytest.mark.parametrize(
        ("part", "grouped"),
        [
            (("pure", 0.5, 1), ("pure", 1.5, 1)),
            (("bounded-range", 0.5, 1), ("bounded-range", 1.5, 1)),
            (("laplace", 0.5, 1), ("laplace", 1.5, 1)),
            (("discrete-laplace", 0.5, 1, 4), ("discrete-laplace", 1.5, 1, 12)),
        ],
    )
    def test_one_part_keeps_its_family(self, part, grouped):
        profile = PrivacyProfile(Privacy(0.5, neighbors=ADD), (part,)).for_units(3)
        assert profile == PrivacyProfile(Privacy(1.5, neighbors=ADD), (grouped,))
        assert profile.for_units(3) is profile

    def test_discrete_laplace_noise_of_three_records(self):
        """The curve of the profile is that of one shift by three sensitivities, and bounds that of three shifts."""
        epsilon, steps, k = 0.5, 2, 3
        profile = PrivacyProfile(Privacy(epsilon, neighbors=ADD), (("discrete-laplace", epsilon, 1, steps),)).for_units(
            k
        )
        [(family, parameter, _, shift)] = profile.parts
        assert (family, parameter, shift) == ("discrete-laplace", k * epsilon, k * steps)
        scale = shift / parameter
        joint = discrete_laplace(scale, 0), discrete_laplace(scale, shift)
        single = discrete_laplace(scale, 0, 60), discrete_laplace(scale, steps, 60)
        separate = [np.prod(np.meshgrid(p, p, p), axis=0).ravel() for p in single]
        for t in (0.0, 0.4, 0.9, 1.3, 1.5):
            assert hockey_stick(*separate, t) <= hockey_stick(*joint, t) + 1e-12
        assert hockey_stick(*joint, 1.3) > 0  # and it is not that of fewer records
        assert hockey_stick(*joint, 0.9) > hockey_stick(discrete_laplace(scale, 0), discrete_laplace(scale, 4), 0.9)

    @every(
        "parts",
        [
            (("pure", 0.01, 50),),
            (("discrete-laplace", 0.25, 2),),
            (("staircase", 0.5, 1, 9, 2),),
            (("zero-sum-laplace", 0.5, 1, 5),),
            (("bounded-range", 0.25, 1), ("pure", 0.25, 1)),
        ],
    )
    @every("k", [2, 5, 200])
    def test_other_parts_become_one_of_least_rho(self, parts, k):
        one = PrivacyProfile(Privacy(0.5, neighbors=ADD), parts)
        profile = one.for_units(k)
        assert profile.privacy == Privacy(k * 0.5, neighbors=ADD)
        pure = PrivacyProfile(Privacy(k * 0.5, neighbors=ADD))
        assert profile.rho == min(pure.rho, PrivacyProfile(Privacy(rho=k**2 * one.exact_rho)).rho)
        assert len(profile.parts) == 1

    @pytest.mark.parametrize("times", [1, 4])
    def test_gaussian_parts(self, times):
        epsilon, delta = 1.0, 1e-6
        mu = gaussian_mu(epsilon, delta) / math.sqrt(times)
        one = PrivacyProfile(Privacy(epsilon, delta, ADD), (("gaussian", mu, times),))
        profile = one.for_units(3)
        assert profile.mu_squared == times * Fraction(profile.parts[0][1]) ** 2
        assert profile.parts[0][1] == pytest.approx(3 * mu, rel=1e-15)
        assert profile.privacy.epsilon == 3.0
        assert profile.privacy.delta <= Privacy(mu=profile.mu).delta_up(3.0) * (1 + 1e-12)
        assert profile.privacy.delta < Privacy(epsilon, delta, ADD).group_up(3).delta
        assert profile.failure == 0

    def test_failures_are_those_of_the_group(self):
        one = PrivacyProfile(Privacy(0.5, 1e-6, ADD), (("bounded-range", 0.5, 1),))
        assert one.for_units(4) == PrivacyProfile(Privacy(0.5, 1e-6, ADD).group_up(4))
        with pytest.raises(ValueError, match="delta must be 0 for the group guarantee of rho"):
            PrivacyProfile(Privacy(rho=0.5, delta=1e-6, neighbors=ADD)).for_units(2)


BUDGETS = [
    {"epsilon": 100.0, "delta": 0.5},
    {"rho": 1e4, "delta": 0.5},
    {"epsilon": 50.0, "delta": 0.5, "composition": "renyi"},
]


class TestLedger:
    @pytest.mark.parametrize("mechanism", PRIVATE_N, ids=repr)
    @pytest.mark.parametrize("budget", BUDGETS, ids=["epsilon", "rho", "renyi"])
    def test_charges_every_mechanism_for_units(self, mechanism, budget):
        ledger = Ledger(**budget, neighbors=ADD, per_unit=3)
        ledger.reserve(mechanism.privacy_profile)
        [charge] = ledger.charges
        assert charge.profile == mechanism.privacy_profile.for_units(3)
        assert charge.profile.privacy.epsilon >= mechanism.privacy_map(3).epsilon * (1 - 1e-15)
        assert charge.profile.privacy.per_unit == 3

    def test_releases(self):
        ledger = Ledger(3.0, neighbors=ADD, per_unit=3)
        with ledger:
            SUM([1, 2, 3])
        assert str(ledger.spent) == str(SUM.privacy.for_units(3))
        assert str(ledger.remaining).endswith("for one unit of at most 3 records added or removed")
        assert "for one unit of at most 3 records added or removed" in repr(ledger)
        assert ledger.affords(SUM)
        assert not ledger.affords(SUM, times=2)
        larger = dpf.GlobalSensitivity(dpf.statistics.Sum(), grid=GRID, epsilon=0.75, neighbors=ADD)
        message = r"a release of epsilon = 2.25 for a unit of at most 3 records does not fit: epsilon = 1.5 is left"
        with ledger, pytest.raises(BudgetError, match=message):
            larger(Untouchable())
        with ledger.spend(Privacy(0.25, neighbors=ADD)):
            pass
        assert ledger.remaining.epsilon == 0.75

    def test_of_gaussian_releases(self):
        ledger = Ledger(mu=1.0, neighbors=ADD, per_unit=2)
        ledger.reserve(PrivacyProfile(Privacy(mu=0.5, neighbors=ADD)))
        assert ledger.remaining.mu == 0

    def test_a_guarantee_for_such_units_is_charged_as_it_is(self):
        ledger = Ledger(1.0, 1e-6, neighbors=ADD, per_unit=3)
        ledger.reserve(PrivacyProfile(Privacy(0.5, 1e-6, ADD, per_unit=4)))
        assert ledger.remaining == Privacy(0.5, 0.0, ADD)
        with pytest.raises(ValueError, match="per_unit must be at most 2"):
            ledger.reserve(PrivacyProfile(Privacy(0.5, 0.0, ADD, per_unit=2)))

    def test_refuses_replaced_records_before_reading_them(self):
        ledger = Ledger(1.0, neighbors=ADD, per_unit=3)
        with ledger, pytest.raises(ValueError, match="give the mechanism neighbors='add-remove'"):
            dpf.median(Untouchable(), bounds=(0, 1), epsilon=0.1)
        assert ledger.charges == ()
        with pytest.raises(ValueError, match="neighbors must be 'add-remove' for units, not 'replace-one'"):
            Ledger(1.0, per_unit=3)

    @pytest.mark.host
    def test_plans(self):
        pytest.importorskip("dp_accounting")
        plan = [SUM, Privacy(0.25, neighbors=ADD)]
        with pytest.raises(BudgetError):
            Ledger(0.75, neighbors=ADD, per_unit=2, plan=plan)
        ledger = Ledger(1.5, neighbors=ADD, per_unit=2, plan=plan)
        with ledger:
            SUM([1])
        assert Ledger.from_json(ledger.to_json()).charges == ledger.charges
        assert ledger.remaining == Privacy(0.5, neighbors=ADD)

    def test_files_and_json(self, tmp_path):
        path = tmp_path / "ledger"
        for expected in (1.0, 0.0):
            ledger = Ledger(2.0, neighbors=ADD, per_unit=2, path=path)
            ledger.release(SUM, [1, 2])
            assert ledger.remaining.epsilon == expected
        copied = Ledger.from_json(ledger.to_json())
        assert copied.charges == ledger.charges
        assert [charge.profile.privacy.per_unit for charge in copied.charges] == [2, 2]
        assert copied.privacy.per_unit == 2
        with pytest.raises(ValueError, match="has per_unit = 2, not None"):
            Ledger(2.0, neighbors=ADD, path=path)

    def test_end_to_end(self):
        """Persons with many visits: the median is charged for a person."""
        person = np.repeat(np.arange(200), 10)
        minutes = np.full(2000, 30)
        kept = dpf.bound_contributions(person, minutes, per_unit=2)
        ledger = Ledger(4.0, neighbors=ADD, per_unit=2)
        with ledger:
            middle = dpf.median(kept, bounds=(0, 60), epsilon=1.0, neighbors=ADD)
        assert len(kept) == 400
        assert middle == pytest.approx(30, abs=1)
        assert ledger.remaining.epsilon == 2.0


def test_the_budget_holds_for_any_order_of_charges():
    for order in itertools.permutations([0.25, 0.5, 0.125]):
        ledger = Ledger(7 / 4, neighbors=ADD, per_unit=2)
        for epsilon in order:
            ledger.reserve(PrivacyProfile(Privacy(epsilon, neighbors=ADD)))
        assert ledger.remaining.epsilon == 0


def renyi(law, other, order):
    """The Renyi divergence of two laws of integers, from their probabilities on the range of both."""
    k = np.arange(1, 860)  # the rest has e**-20 of the probability
    p, q = law.logpmf(k), other.logpmf(k)
    assert np.isfinite([p, q]).all()
    return float(np.log(np.exp(order * p + (1 - order) * q).sum()) / (order - 1))


class TestGroups:
    """A unit with at most one record in each group."""

    ONE = (
        PrivacyProfile(Privacy(0.5, neighbors=ADD)),
        PrivacyProfile(Privacy(rho=0.1, neighbors=ADD)),
        PrivacyProfile(Privacy(mu=0.25, neighbors=ADD)),
        PrivacyProfile(Privacy(0.5, 1e-6, ADD), (("bounded-range", 0.5, 1),)),
        PrivacyProfile(Privacy(rho=0.1, delta=1e-6, neighbors=ADD)),
    )

    @every("one", ONE)
    @every("k", [1, 2, 25])
    def test_releases_compose(self, one, k):
        units = one.for_units(k, per_key=1)
        assert (units.privacy.per_unit, units.privacy.records, units.privacy.neighbors) == (k, 1, ADD)
        assert units.exact_rho == k * one.exact_rho
        assert Fraction(units.failure) >= k * Fraction(one.failure)
        grown = k * Fraction(one.privacy.amount) ** (2 if one.privacy.unit == "mu" else 1)
        stated = Fraction(units.privacy.amount) ** (2 if one.privacy.unit == "mu" else 1)
        assert grown <= stated <= grown * (1 + Fraction(1, 2**40))
        assert k * Fraction(one.privacy.delta) <= units.privacy.delta <= k * one.privacy.delta * (1 + 1e-12)
        assert units.for_units(k, per_key=1) is units

    def test_delta_of_gaussian_parts(self):
        mu = gaussian_mu(1.0, 1e-6)
        one = PrivacyProfile(Privacy(1.0, 1e-6, ADD), (("gaussian", mu, 1),))
        units = one.for_units(4, per_key=1)
        assert units.mu == pytest.approx(2 * mu)
        assert units.privacy.delta <= Privacy(mu=units.mu).delta_up(4.0) * (1 + 1e-12) < 4e-6

    def test_refusals(self):
        with pytest.raises(ValueError, match="per_key must be 1 or None, not 2"):
            self.ONE[0].for_units(4, per_key=2)
        with pytest.raises(ValueError, match="neighbors must be 'add-remove' for units"):
            PrivacyProfile(Privacy(1.0)).for_units(4, per_key=1)
        with pytest.raises(ValueError, match="neighbors must be 'add-remove' for units"):
            dpf.by_group(
                dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=GRID, epsilon=1.0),
                [1.0],
                labels=["a"],
                keys=["a"],
                contributions=2,
                per_key=1,
            )

    def test_the_divergence_is_that_of_the_groups_and_no_more(self):
        """Two records of a unit in two groups have at most the stated rho; in one group, against `per_key`, more."""
        law, order = [SUM.law([10.0] * (40 + m)) for m in range(3)], 8.0
        allowed = SUM.privacy_profile.for_units(2, per_key=1)
        apart = 2 * renyi(law[1], law[0], order)
        assert apart <= order * allowed.rho
        assert apart <= allowed.renyi_up(order) * (1 + 1e-9)
        together = renyi(law[2], law[0], order)
        assert together > allowed.renyi_up(order)
        assert together <= SUM.privacy_profile.for_units(2).renyi_up(order) * (1 + 1e-9)

    def test_by_group_states_and_charges_it(self):
        rng = np.random.default_rng(0)
        person, place, value = rng.integers(0, 300, 5000), rng.integers(0, 40, 5000), rng.integers(0, 11, 5000)
        kept = dpf.bound_contributions(person, np.arange(5000), keys=place, per_unit=9, per_key=1)
        groups = {"labels": place[kept], "keys": list(range(40))}
        ledger = Ledger(rho=100.0, neighbors=ADD, per_unit=9)
        with ledger:
            released = dpf.by_group(SUM, value[kept], **groups, contributions=9, per_key=1)
        assert released.privacy == SUM.privacy_profile.for_units(9, per_key=1).privacy
        assert "for one unit of at most 9 records" in str(released.privacy)
        assert ledger.spent.rho == up(9 * SUM.privacy_profile.exact_rho)
        with ledger:
            together = dpf.by_group(SUM, value[kept], **groups, contributions=9)
        assert together.privacy == SUM.privacy.for_units(9)
        assert ledger.spent.rho > 4 * 9 * SUM.privacy_profile.rho
        with ledger, pytest.raises(ValueError, match="per_unit must be at most 3"):
            dpf.by_group(SUM, value[kept], **groups, contributions=3, per_key=1)

    def test_private_keys(self):
        selection = dpf.PartitionSelection(1.0, 1e-6, contributions=2, per_key=1)
        released = dpf.by_group(
            SUM, np.ones(400), labels=["a"] * 400, keys="private", partitions=selection, contributions=2, per_key=1
        )
        assert released.privacy == Privacy(2.0, 1e-6, ADD)
        assert released.privacy.per_unit == 2
