"""Rho, Renyi divergences and the curve of a Gaussian: mpmath, dp-accounting, and enumerated laws of mechanisms."""

import itertools
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.special import logsumexp

import dpfast as dpf
from dpfast import Grid, Privacy, PrivacyProfile, Selection
from dpfast._kernels import _balls
from dpfast.core import divergences
from dpfast.core.rounding import root_down, root_up
from dpfast.densities import PerturbedHistogram
from dpfast.laws import ClampedNoise, DiscreteLaplace, RoundedLaplace, Staircase
from dpfast.theory import gaussian_mu, gaussian_scale
from tests.cases import every
from tests.reference.divergences import DIGITS, exact, gaussian_delta

ROOT = Path(__file__).parents[2]
EPSILONS = (0.01, 0.5, 2.0, 8.0)
ORDERS = (1 + 2.0**-40, 1.001, 1.5, 2.0, 8.0, 64.0, 1000.0)
CASES = [("pure",), ("laplace",), ("bounded-range",), ("discrete-laplace",), ("discrete-laplace", 7)]
CASES += [("zero-sum-laplace", 2), ("zero-sum-laplace", 5)]
STAIRS = [("staircase", 1, 1), ("staircase", 3, 2), ("staircase", 10, 5), ("staircase", 11, 6)]  # r is never too small


def profile_of(family, parameter, *shape):
    return PrivacyProfile(Privacy(parameter), [(family, parameter, 1, *shape)])


@pytest.mark.parametrize("case", [*CASES, ("discrete-laplace", 50), *STAIRS], ids=str)
@every("epsilon", EPSILONS)
def test_charges_are_the_worst_pairs_rounded_up(case, epsilon):
    """At every order, and rho as the mean of the loss; none is above by more than a unit in the last place."""
    family, *shape = case
    profile = profile_of(family, epsilon, *shape)
    mean = exact(family, epsilon, shape, 1)
    assert mean <= mpf(profile.rho) <= mean * (1 + 2.0**-51)
    for order in ORDERS:
        found, divergence = profile.renyi_up(order), exact(family, epsilon, shape, order)
        assert divergence <= mpf(found) <= divergence * (1 + 2.0**-51)
    assert holds(mean, family, epsilon, shape)


def holds(rho, family, epsilon, shape):
    with mp.workdps(DIGITS):
        return all(exact(family, epsilon, shape, order) <= order * mpf(rho) for order in ORDERS)


@pytest.mark.parametrize("case", [*CASES, *STAIRS], ids=str)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_a_rho_2_percent_too_small_is_rejected(case, epsilon):
    family, *shape = case
    rho = profile_of(family, epsilon, *shape).rho
    assert holds(rho, family, epsilon, shape)
    assert not holds(0.98 * rho, family, epsilon, shape)


@pytest.mark.parametrize(
    ("family", "at_1_2_4"),
    [
        ("pure", (0.46212, 1.52319, 3.85611)),
        ("laplace", (0.36788, 1.13534, 3.01832)),
        ("bounded-range", (0.12330, 0.47447, 1.66985)),
    ],
)
def test_rho_is_that_of_the_specification(family, at_1_2_4):
    assert [profile_of(family, epsilon).rho for epsilon in (1.0, 2.0, 4.0)] == pytest.approx(at_1_2_4, abs=1e-5)


def test_the_table_of_the_proof_note():
    table = (ROOT / "docs" / "proofs" / "concentration.md").read_text().partition("**Least rho**")[2]
    (_, *epsilons), _, *rows = [row.strip("| ").split(" | ") for row in table.split("\n") if row.startswith("|")]
    assert [len(rows), len(epsilons)] == [8, 6]
    for name, *cells in rows:
        family, _, steps = name.partition(", s = ")
        shapes = [(int(steps or 1),)] * 6
        if family == "staircase":
            shapes = [
                (s, _balls.staircase_r(s / Fraction(epsilon), s))
                for (s,), epsilon in zip(shapes, epsilons, strict=True)
            ]
        found = [
            profile_of(family, float(epsilon), *shape).rho for epsilon, shape in zip(epsilons, shapes, strict=True)
        ]
        assert found == pytest.approx([float(cell) for cell in cells], rel=5e-5)


def test_the_table_of_the_guide():
    """rho, and the share that it is below the usual bounds."""
    page = (ROOT / "docs" / "guides" / "ledger.md").read_text()
    rows = re.findall(r"^\| .* \| (\".*) \|$", page, re.MULTILINE)
    assert len(rows) == 3
    for row in rows:
        name, *cells = row.split(" | ")
        for epsilon, cell in zip((0.1, 1.0, 2.0, 4.0), cells, strict=True):
            rho, usual = profile_of(name.strip('"'), epsilon).rho, epsilon**2 / (8 if "bounded" in name else 2)
            shown, _, saved = cell.partition(", ")
            assert rho == pytest.approx(float(shown), abs=5e-4 if epsilon >= 1 else 5e-6)
            assert saved == f"{100 - 100 * rho / min(epsilon, usual):.0f} %"


def test_discrete_laplace_is_between_pure_and_laplace():
    for epsilon in EPSILONS:
        rhos = [profile_of("discrete-laplace", epsilon, steps).rho for steps in (1, 2, 3, 10, 1000, 2**60)]
        assert rhos == sorted(rhos, reverse=True)
        assert rhos[0] == profile_of("pure", epsilon).rho
        assert rhos[-1] == pytest.approx(profile_of("laplace", epsilon).rho, rel=1e-12)
        assert profile_of("discrete-laplace", epsilon).renyi_up(3.0) == profile_of("pure", epsilon).renyi_up(3.0)


@every("case", [*CASES, ("staircase", 10, 1), ("staircase", 10, 10)], ids=str)
def test_extremes(case):
    """Every epsilon has a certified charge, which is never above epsilon."""
    for epsilon in (0.0, 5e-324, 1e-170, 1e3, 1e300, 1.7e308):
        family, *shape = case
        profile = profile_of(family, epsilon, *shape)
        for order in (math.nextafter(1, 2), 2.0, 1e300):
            assert profile.rho <= epsilon
            assert profile.renyi_up(order) <= epsilon
            assert (profile.renyi_up(order) > 0) == (epsilon > 0)
    assert profile_of(family, 1e300, *shape).renyi_up(2.0) == 1e300


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([*CASES, *STAIRS]), st.floats(1e-6, 30.0), st.floats(0, 12), st.integers(1, 9))
def test_divergences_are_below_rho_at_every_order(case, epsilon, exponent, times):
    """And both grow with epsilon."""
    (family, *shape), order = case, 1 + 2.0 ** (exponent - 8)
    profile = PrivacyProfile(Privacy(epsilon), [(family, epsilon, times, *shape)])
    more = PrivacyProfile(Privacy(epsilon), [(family, epsilon * 1.01, times, *shape)])
    assert profile.renyi_up(order) <= profile.rho * order * (1 + 2.0**-50)
    assert profile.rho <= more.rho
    assert profile.renyi_up(order) <= more.renyi_up(order)


class TestStaircase:
    @every("steps", [1, 2, 3, 10])
    @every("epsilon", [0.01, 1.0, 2.0, 8.0])
    def test_any_r_is_charged_at_most_as_pure_and_at_least_its_divergence(self, epsilon, steps):
        """At all orders; exactly, by its mean loss, for the r of least mean magnitude and those above it."""
        best = _balls.staircase_r(steps / Fraction(epsilon), steps)
        for r in range(1, steps + 1):
            profile = profile_of("staircase", epsilon, steps, r)
            assert profile.rho <= profile_of("pure", epsilon).rho
            assert holds(profile.rho, "staircase", epsilon, (steps, r))
            if best <= r <= (steps + 1) // 2:
                assert mpf(profile.rho) <= exact("staircase", epsilon, (steps, r), 1) * (1 + 2.0**-51)

    def test_the_mean_loss_is_not_enough_for_all_r(self):
        """The control: with r = s = 10 at epsilon = 8 the divergence of order 1.5 is above 1.5 times the mean loss."""
        assert not holds(exact("staircase", 8.0, (10, 10), 1) * 1.05, "staircase", 8.0, (10, 10))

    @every("epsilon", [0.5, 2.0, 8.0])
    @every("steps, r", [(10, 1), (10, 4), (10, 5), (10, 8), (7, 3)])
    def test_a_charge_is_that_of_the_largest_shift(self, epsilon, steps, r):
        """Of all shifts up to s, both ways, by enumeration; the charge of a smaller r is exceeded."""
        noise, z = Staircase(steps / Fraction(epsilon), steps, r), np.arange(-3000.0, 3001.0)
        shifts = [d for d in range(-steps, steps + 1) if d]
        for order in (1.001, 2.0, 30.0):
            found = [
                float(logsumexp(order * noise.logpmf(z) + (1 - order) * noise.logpmf(z - d))) / (order - 1)
                for d in shifts
            ]
            assert max(found) == pytest.approx(max(found[0], found[-1]), rel=1e-9)
            assert max(found) == pytest.approx(profile_of("staircase", epsilon, steps, r).renyi_up(order), rel=1e-8)
            if 1 < r <= steps // 2:
                assert max(found) > profile_of("staircase", epsilon, steps, r - 1).renyi_up(order)


def test_formulas_are_rounded_up():
    """To the least double that is not below, also where digits cancel; to infinity where there are none."""
    for formula, value in (
        (lambda: arb(0.25), 0.25),
        (lambda: arb(0), 0.0),
        (lambda: arb(1) / 3, math.nextafter(1 / 3, 1)),
        (lambda: -arb(1) / 3, -1 / 3),
        (lambda: (1 + arb(2) ** -2000).log() * arb(2) ** 2000, 1.0),
        (lambda: arb(10) ** -400, 5e-324),
        (lambda: arb(10) ** 400, math.inf),
        (lambda: arb("nan"), math.inf),
    ):
        assert _balls.upper(formula) == value


class TestMechanisms:
    """Enumerated divergences between neighbours never exceed the charge, and reach it where a mechanism is worst."""

    ORDERS = (1 + 2.0**-20, 1.5, 4.0, 30.0)

    def ratios(self, pairs, profile):
        """For each order, and for rho, the largest divergence of the pairs of log masses as a share of the charge."""
        p, q = np.swapaxes([*pairs, *(pair[::-1] for pair in pairs)], 0, 1)
        shares = [np.sum(np.exp(p) * (p - q), axis=1).max() / profile.rho]
        for order in self.ORDERS[1:]:
            worst = logsumexp(order * p + (1 - order) * q, axis=1).max() / (order - 1)
            shares += [worst / profile.renyi_up(order), worst / order / profile.rho]
        return shares

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
    def test_inverse_sensitivity(self, epsilon):
        mechanism = dpf.InverseSensitivity(dpf.statistics.Median(), grid=Grid(0, 12, step=1), epsilon=epsilon)
        laws = {x: mechanism.law(np.array(x)).logpmf(np.arange(13)) for x in itertools.product((0, 3, 6, 12), repeat=3)}
        pairs = [(laws[a], laws[b]) for a, b in itertools.combinations(laws, 2) if sum(map(int.__ne__, a, b)) == 1]
        assert max(self.ratios(pairs, mechanism.privacy_profile)) <= 1 + 1e-9

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
    def test_exponential_mechanism_reaches_its_charge(self, epsilon):
        """Of k equal scores m rise and the others fall: a two-point loss, whose weight m / k may be any."""
        mechanism, k = Selection(epsilon=epsilon), 400
        equal = mechanism.law(np.zeros(k)).logpmf(np.arange(k))
        others = [mechanism.law(np.repeat([1.0, -1.0], [m, k - m])).logpmf(np.arange(k)) for m in range(1, k, 2)]
        shares = self.ratios([(equal, other) for other in others], mechanism.privacy_profile)
        assert max(shares) <= 1 + 1e-9
        assert min(shares[0], *shares[1::2]) > 0.999

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
    def test_permute_and_flip_is_charged_as_pure(self, epsilon):
        """The control: it is rejected where the rho of a bounded range is charged."""
        mechanism = Selection(epsilon=epsilon, selection="permute-and-flip")
        laws = {s: mechanism.law(np.array(s)).logpmf(np.arange(2)) for s in itertools.product(range(-3, 4), repeat=2)}
        pairs = [
            (laws[a], laws[b]) for a in laws for b in laws if max(abs(x - y) for x, y in zip(a, b, strict=True)) == 1
        ]
        assert max(self.ratios(pairs, mechanism.privacy_profile)) <= 1 + 1e-9
        assert max(self.ratios(pairs, profile_of("bounded-range", epsilon))) > 1.2

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
    def test_rounded_laplace(self, epsilon):
        """Rounding hides little where the sensitivity is many steps: with 64, the charge is nearly reached."""
        for steps, least in ((1, 0.0), (64, 0.999)):
            noise, most = RoundedLaplace(Fraction(steps) / Fraction(epsilon)), 60 * steps / epsilon
            z = np.arange(-most, most + 1).round()
            shares = self.ratios([(noise.logpmf(z), noise.logpmf(z - steps))], profile_of("laplace", epsilon))
            assert max(shares) <= 1 + 1e-9
            assert min(shares[0], *shares[1::2]) > least

    @pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
    def test_means(self, epsilon):
        mechanism = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=Grid(0, 3, step=1), epsilon=epsilon)
        laws = {x: mechanism.law(np.array(x)) for x in itertools.product(range(4), repeat=3)}
        assert all(isinstance(law, ClampedNoise) for law in laws.values())
        masses = {x: law.logpmf(law.outcomes()) for x, law in laws.items()}
        pairs = [(masses[a], masses[b]) for a, b in itertools.combinations(laws, 2) if sum(map(int.__ne__, a, b)) == 1]
        assert max(self.ratios(pairs, mechanism.privacy_profile)) <= 1 + 1e-9

    @every("steps", [1, 3, 16])
    @every("epsilon", [0.5, 1.0, 4.0])
    def test_discrete_laplace_is_exact(self, epsilon, steps):
        """The charge is reached, by a change of all steps only."""
        z, scale = np.arange(-2000, 2001), Fraction(steps) / Fraction(epsilon)
        profile = profile_of("discrete-laplace", epsilon, steps)
        laws = [DiscreteLaplace(scale).logpmf(z - center) for center in (0, steps - 1, steps)]
        shares = self.ratios([(laws[0], laws[2])], profile)
        assert max(shares) <= 1 + 1e-9
        assert min(shares[0], *shares[1::2]) > 1 - 1e-9
        assert max(self.ratios([(laws[0], laws[1])], profile)) < 1 - 1e-9

    @pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
    def test_histograms_are_exact(self, neighbors):
        mechanism = PerturbedHistogram(2, grid=Grid(0, 3, step=1), epsilon=2.0, neighbors=neighbors)
        changed = [0, 2] if neighbors == "replace-one" else [0, 0, 2]
        cells = np.stack(np.meshgrid(np.arange(-60, 61), np.arange(-60, 61)), axis=-1).reshape(-1, 2)
        balanced = neighbors == "replace-one"
        cells = cells[cells.sum(axis=1) == 2] if balanced else cells
        pair = [mechanism.law(np.array(x)).logpmf(cells) for x in ([0, 0], changed)]
        assert mechanism.privacy_profile.parts[0][0] == ("zero-sum-laplace" if balanced else "discrete-laplace")
        shares = self.ratios([pair], mechanism.privacy_profile)
        assert max(shares) <= 1 + 1e-9
        assert min(shares[0], *shares[1::2]) > 1 - 1e-9

    @pytest.mark.parametrize("epsilon", [1.0, 4.0])
    def test_histograms_of_three_cells_are_exact(self, epsilon):
        mechanism = PerturbedHistogram(3, grid=Grid(0, 2, step=1), epsilon=epsilon)
        cells = np.array(list(itertools.product(range(-80, 81), repeat=2)))
        cells = np.column_stack([cells, 2 - cells.sum(axis=1)])
        pair = [mechanism.law(np.array(x)).logpmf(cells) for x in ([0, 0], [0, 3])]
        shares = self.ratios([pair], mechanism.privacy_profile)
        assert max(shares) <= 1 + 1e-9
        assert min(shares[0], *shares[1::2]) > 1 - 1e-9
        few = PrivacyProfile(mechanism.privacy, [("zero-sum-laplace", epsilon, 1, 4)])
        assert max(self.ratios([pair], few)) > 1 + 1e-3

    def test_zero_sum_is_between_pure_and_independent_noise(self):
        for epsilon in EPSILONS:
            rhos = [profile_of("zero-sum-laplace", epsilon, k).rho for k in (2, 3, 4, 10, 64, 256, 1000)]
            assert rhos == sorted(rhos, reverse=True)
            assert rhos[0] == pytest.approx(profile_of("pure", epsilon).rho, rel=1e-14)
            assert rhos[-1] == rhos[-2] > 2 * profile_of("discrete-laplace", epsilon / 2).rho
            assert profile_of("zero-sum-laplace", epsilon).rho == rhos[0]


class TestGaussian:
    @every(
        "epsilon, delta, scale",
        [
            (0.1, 1e-6, 36.30469043),
            (0.5, 1e-6, 8.057618481),
            (1.0, 1e-6, 4.224678889),
            (1.0, 1e-9, 5.495266157),
            (4.0, 1e-9, 1.487803677),
        ],
    )
    def test_scales_are_those_of_the_specification(self, epsilon, delta, scale):
        found, mu = gaussian_scale(epsilon, delta), gaussian_mu(epsilon, delta)
        assert found == pytest.approx(scale, rel=1e-9)
        assert Fraction(found) * Fraction(mu) >= 1
        assert gaussian_delta(mu, epsilon) <= delta < gaussian_delta(mu * (1 + 1e-14), epsilon)

    @given(st.floats(1e-3, 20.0), st.floats(0.0, 30.0))
    def test_delta_is_rounded_up(self, mu, epsilon):
        found, wanted = Privacy(mu=mu).delta_up(epsilon), gaussian_delta(mu, epsilon)
        assert wanted <= mpf(found) <= max(wanted * (1 + 2.0**-51), mpf(5e-324))

    @pytest.mark.parametrize("delta", [1e-300, 1e-12, 0.5, 1 - 1e-9])
    @pytest.mark.parametrize("epsilon", [1e-9, 0.3, 50.0, 1e5])
    def test_mu_and_epsilon_are_inverse(self, epsilon, delta):
        mu = gaussian_mu(epsilon, delta)
        assert Privacy(mu=mu).delta_up(epsilon) <= delta < Privacy(mu=mu * (1 + 1e-12)).delta_up(epsilon)
        assert Privacy(mu=mu).epsilon_up(delta) <= epsilon
        assert Privacy(mu=mu * (1 + 1e-9)).epsilon_up(delta) > epsilon

    def test_beyond_all_bounds_it_stays_private(self):
        """Where exp(epsilon) takes millions of bits, mu is that of epsilon = 2**20."""
        assert gaussian_mu(1e300, 1e-6) == gaussian_mu(2.0**20, 1e-6)
        assert Privacy(mu=1e300).delta_up(1.0) == 1.0
        assert 0 < Privacy(mu=1e-300).delta_up(1.0) <= 5e-324
        assert Privacy(mu=0.0).delta_up(0.0) == 0.0

    def test_parts_compose_exactly(self):
        parts = [("gaussian", 0.3, 4), ("gaussian", 0.4, 4)]
        profile = PrivacyProfile(Privacy(5.0, 1e-6), parts)
        assert profile.mu_squared == 4 * Fraction(0.3) ** 2 + 4 * Fraction(0.4) ** 2
        assert Fraction(profile.mu) ** 2 >= profile.mu_squared > Fraction(math.nextafter(profile.mu, 0)) ** 2
        assert Fraction(profile.rho) >= profile.mu_squared / 2 > Fraction(math.nextafter(profile.rho, 0))
        assert profile.renyi_up(3.0) == pytest.approx(1.5 * profile.mu**2, rel=1e-15)
        assert profile.failure == 0.0
        mixed = PrivacyProfile(Privacy(5.0, 1e-6), [*parts, ("pure", 0.1, 1)])
        assert mixed.mu is None
        assert mixed.failure == 0.0
        assert PrivacyProfile(Privacy(1.0)).mu is PrivacyProfile(Privacy(1.0, 1e-6)).mu is None
        assert PrivacyProfile(Privacy(mu=0.7)).mu == 0.7

    def test_wrong_parameters(self):
        for function in (gaussian_mu, gaussian_scale):
            for epsilon, delta in ((0, 1e-6), (-1, 1e-6), (math.inf, 1e-6), (1, 0), (1, 1), (1, math.nan)):
                with pytest.raises(ValueError, match=r"epsilon must|delta must"):
                    function(epsilon, delta)

    @settings(max_examples=300)
    @given(st.fractions(min_value=0) | st.floats(0, allow_infinity=False, allow_nan=False).map(Fraction))
    def test_roots(self, x):
        assert Fraction(root_down(x)) ** 2 <= x <= Fraction(root_up(x)) ** 2
        assert root_up(x) - root_down(x) <= 3 * math.ulp(root_up(x))
        assert root_down(x**2) <= x <= root_up(x**2)
        if Fraction(float(x)) == x:
            assert root_down(x**2) == root_up(x**2) == float(x)


class TestConcentrated:
    @pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 5.0])
    def test_delta_is_near_the_least_and_above_the_gaussian(self, rho):
        """Every order gives a valid delta: the one that is used is within 1e-9 of the best of many."""
        for epsilon in (0.0, 0.1, 1.0, 5.0):
            found = Privacy(rho=rho).delta_up(epsilon)
            orders = 1 + np.exp(np.linspace(-20, 20, 40_001))
            logs = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
            with mp.workdps(30):
                bounds = [
                    mp.exp((a - 1) * (a * rho - epsilon)) * (1 - 1 / a) ** a / (a - 1)
                    for a in map(mpf, orders[np.argsort(logs)[:5]].tolist())
                ]
                assert found <= min(1, min(bounds)) * (1 + mpf(10) ** -9) + mpf(5e-324)
            assert found >= gaussian_delta(math.sqrt(2 * rho), epsilon) * (1 - 1e-12)

    @pytest.mark.parametrize("rho", [5e-324, 0.5, 1.7e308, "1e-400"])
    def test_epsilons_beyond_doubles(self, rho):
        for epsilon in ("1e400", 10**400):
            assert Privacy(rho=rho).delta_up(epsilon) == 5e-324

    def test_events_that_are_set_aside(self):
        aside = Privacy(rho=0.1, delta=0.25)
        assert aside.delta_up(2.0) == pytest.approx(0.25 + 0.75 * Privacy(rho=0.1).delta_up(2.0), rel=1e-15)
        assert aside.epsilon_up(0.2) == math.inf
        assert Privacy(rho=0.1).epsilon_up(0.0) == math.inf
        assert Privacy(rho=0.0).epsilon_up(0.0) == 0.0
        epsilon = aside.epsilon_up(0.3)
        assert aside.delta_up(epsilon) <= 0.3 < aside.delta_up(math.nextafter(epsilon, 0))

    def test_pure(self):
        for bound, epsilon in ((1.0, 0.0), (1.0, 0.5), (3.0, 2.9), (800.0, 700.0)):
            with mp.workdps(30):
                wanted = (mp.exp(bound) - mp.exp(mpf(epsilon))) / (1 + mp.exp(bound))
            assert wanted <= Privacy(bound).delta_up(epsilon) <= wanted * (1 + 2.0**-51)
        assert Privacy(1.0, 0.125).delta_up(1.0) == 0.125
        assert Privacy("1/3").epsilon_up(0.0) == math.nextafter(1 / 3, 1)  # rounded up
        assert Privacy(math.inf).delta_up(1.0) == 1.0


@pytest.mark.host
class TestDpAccounting:
    """dp-accounting agrees to 1e-6 where it has the event."""

    @every("epsilon", [0.01, 0.3, 1.0, 4.0, 8.0])
    def test_renyi(self, epsilon):
        dpa, rdp = pytest.importorskip("dp_accounting"), pytest.importorskip("dp_accounting.rdp")
        events = {
            "laplace": dpa.LaplaceDpEvent(1 / epsilon),
            "pure": dpa.RandomizedResponseDpEvent(2 / (1 + math.exp(epsilon)), 2),
            "gaussian": dpa.GaussianDpEvent(1 / epsilon),
        }
        for order, (family, event) in itertools.product((1.05, 1.5, 4.0, 64.0, 1000.0), events.items()):
            relation = "REPLACE_ONE" if family == "pure" else "ADD_OR_REMOVE_ONE"
            accountant = rdp.RdpAccountant([order], dpa.NeighboringRelation[relation])
            theirs = accountant.compose(event).get_epsilon(1e-6)
            mine, _ = rdp.compute_epsilon([order], [profile_of_any(family, epsilon).renyi_up(order)], 1e-6)
            assert mine == pytest.approx(theirs, rel=1e-6)

    @pytest.mark.parametrize("steps", [1, 3, 40])
    def test_discrete_laplace(self, steps):
        mechanisms = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")
        for epsilon, order in itertools.product((0.3, 1.0, 4.0), (1.05, 2.0, 20.0)):
            theirs = mechanisms.DiscreteLaplacePrivacyLoss(
                epsilon / steps, sensitivity=steps, adjacency_type=mechanisms.AdjacencyType.ADD
            )
            z = np.arange(-4000, 4001)
            losses = np.array([theirs.privacy_loss(x) for x in z.tolist()])
            masses = np.tanh(epsilon / steps / 2) * np.exp(-epsilon / steps * np.abs(z))
            divergence = logsumexp((order - 1) * losses, b=masses) / (order - 1)
            profile = profile_of("discrete-laplace", epsilon, steps)
            assert profile.renyi_up(order) == pytest.approx(divergence, rel=1e-6)
            assert profile.rho == pytest.approx(float(masses @ losses), rel=1e-6)

    @pytest.mark.parametrize("mu", [0.05, 0.5, 2.0])
    def test_gaussian_delta(self, mu):
        mechanisms = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")
        theirs = mechanisms.GaussianPrivacyLoss(1 / mu)
        for epsilon in (0.0, mu**2, 3 * mu):
            assert Privacy(mu=mu).delta_up(epsilon) == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=1e-6)


def profile_of_any(family, parameter):
    """Of a Gaussian by its mu, of others by their epsilon."""
    return PrivacyProfile(Privacy(mu=parameter)) if family == "gaussian" else profile_of(family, parameter)


@every("epsilon", [2.0**-60, 0.01, 1.0, 8.0, 700.0, 1e9])
@every("delta", [1e-300, 1e-9, 0.001, 0.5, 1 - 1e-9])
def test_the_greatest_mu_does_not_depend_on_where_the_search_begins(epsilon, delta, monkeypatch):
    """Balls decide that the next double is too large; the beginning only spares most of their work."""

    def found():
        decided.clear()
        divergences.gaussian_mu_down.cache_clear()
        return divergences.gaussian_mu_down(epsilon, delta), len(decided)

    decided, delta_up = [], divergences.gaussian_delta_up
    monkeypatch.setattr(divergences, "gaussian_delta_up", lambda *given: decided.append(given) or delta_up(*given))
    mu, few = found()
    assert delta_up(Fraction(mu) ** 2, Fraction(epsilon)) <= delta
    assert delta_up(Fraction(math.nextafter(mu, math.inf)) ** 2, Fraction(epsilon)) > delta
    monkeypatch.setattr(divergences, "_near_mu", lambda *given: 1.0)
    anywhere, many = found()
    assert anywhere == mu
    if 0.01 <= epsilon <= 8 and 1e-9 <= delta <= 0.001:
        assert 2 * few < many
