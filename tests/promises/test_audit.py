"""The audit certifies true guarantees and rejects false ones: every guarantee here has a control that fails."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from scipy.stats import binom, binomtest

import dpfast
from dpfast import GlobalSensitivity, Grid, InverseSensitivity, Privacy, SmoothSensitivity, audit
from dpfast.audit import events
from dpfast.laws import NestedIntervals, ScalarLaw
from dpfast.statistics import Mean, Median, Quantile, Sum, Variance
from tests.cases import every
from tests.reference.statistics import RANK_CASES, has_gaps, one_of_each
from tests.statistical import ALPHA

STATISTICS = [Median(), *(Quantile(q) for q in (0, 0.25, 0.5, 0.75, 1))]


class Table(ScalarLaw):
    """A law given point by point."""

    def __init__(self, weights, values):
        self._p, self._values = np.asarray(weights) / np.sum(weights), np.asarray(values, float)
        self.support = (0, len(values) - 1)

    def logpmf(self, k):
        with np.errstate(divide="ignore"):
            return np.log(self._p[k])

    def cdf(self, k):
        return np.cumsum(self._p)[k]

    def sample(self, size=None, rng=None):
        return Generator(rng).choice(len(self._p), size=size, p=self._p)

    def value(self, k):
        return self._values[k]


class Broken:
    """A test-tree mechanism: any law of the sorted codes, any claim."""

    def __init__(self, law, *, epsilon=1.0, delta=0.0, last=20):
        self.grid, self._law, self.privacy = Grid(0, last, step=1), law, Privacy(epsilon, delta)

    def law(self, x):
        return self._law(np.sort(np.asarray(x)), np.arange(self.grid.size))


def median_scores(x, points):
    k = (len(x) + 1) // 2
    below, up_to = np.searchsorted(x, points, "left"), np.searchsorted(x, points, "right")
    return np.maximum(0, np.maximum(below - k + 1, k - up_to))


def rank_distance(x, points):
    return np.abs(np.searchsorted(x, points, "left") - len(x) / 2)


@every("statistic", STATISTICS, ids=str)
@every(
    "n, values, epsilon",
    [*((n, values, epsilon) for n, values in ((1, 6), (2, 5), (3, 4)) for epsilon in (0.1, 1.0, 4.0)), (4, 4, 1.0)],
)
def test_certifies(statistic, epsilon, n, values):
    mechanism = InverseSensitivity(statistic, grid=Grid(0, 12, step=1), epsilon=epsilon)
    certificate = audit.verify(mechanism, n=n, values=values)
    assert certificate.holds
    assert 0 < certificate.epsilon <= epsilon + 1e-12
    assert certificate.pairs == values**n * n * (values - 1)
    assert certificate.delta <= 1e-12


@every("statistic", STATISTICS, ids=str)
def test_certifies_five_records(statistic):
    """T17: every dataset of five records over three values (four values for the median, in test_threats.py)."""
    assert audit.verify(
        InverseSensitivity(statistic, grid=Grid(0, 4, step=1), epsilon=1.0), n=5, values=3, ordered=False
    ).holds


EVERY_RANK = [*one_of_each(RANK_CASES), Quantile(0)]


def every_release(epsilon):
    """Every statistic by every mechanism that has it, with every noise and delta."""
    grid = Grid(0, 4, step=1)
    for statistic in EVERY_RANK:
        yield InverseSensitivity(statistic, grid=grid, epsilon=epsilon)
        if has_gaps(statistic):
            for delta in (0.0, 1e-2, 1e-6):
                yield SmoothSensitivity(statistic, grid=grid, epsilon=epsilon, delta=delta)
    for statistic in (Mean(), Sum(), Variance()):
        yield GlobalSensitivity(statistic, grid=grid, epsilon=epsilon)


@pytest.mark.parametrize(("n", "values", "epsilon"), [(3, 3, 1.0), (4, 2, 0.1), (4, 2, 4.0)])
def test_certifies_every_statistic_by_every_mechanism(epsilon, n, values):
    for mechanism in every_release(epsilon):
        certificate = audit.verify(mechanism, n=n, values=values)
        assert certificate.holds, mechanism
        assert certificate.claim.delta == getattr(mechanism, "delta", 0.0)


@pytest.mark.parametrize("epsilon", [0.1, 4.0])
def test_rejects_every_mechanism_at_a_third(epsilon):
    """Control: each of the same laws is refuted where the claim is epsilon / 3 and delta / 1000."""
    for mechanism in every_release(epsilon):
        claim = Privacy(epsilon / 3, mechanism.privacy.delta / 1000)
        assert not audit.verify(Claimed(mechanism, claim), n=3, values=3).holds, mechanism


class Claimed:
    """The laws of a mechanism under another claim."""

    def __init__(self, mechanism, privacy):
        self.grid, self.law, self.privacy = mechanism.grid, mechanism.law, privacy


@every("radius", [0.3, 1.0, 4.0, 100.0])
@every("statistic", [Median(), Quantile(1)], ids=str)
def test_certifies_with_radius(statistic, radius):
    grid = Grid(-1, 2, step=0.25)
    assert audit.verify(InverseSensitivity(statistic, grid=grid, epsilon=1.5, radius=radius), n=3, ordered=False).holds


def test_the_bound_is_nearly_attained():
    """The exponent epsilon / 2 is not wasteful: the loss comes close to epsilon on a fine grid."""
    last = 2**40
    mechanism = InverseSensitivity(Median(), grid=Grid(0, last, step=1), epsilon=1.0)
    loss = mechanism.law([1, 2]).logpmf(1) - mechanism.law([2, last]).logpmf(1)
    assert 1 - 1e-9 < loss <= 1 + 1e-12


def test_nan_as_a_record():
    """A missing record is the record ``missing``: laws with NaN are those without."""
    mechanism = InverseSensitivity(Median(), grid=Grid(0, 8, step=1, missing=5), epsilon=1.0)
    k = np.arange(9)
    for data in itertools.product([0.0, 5.0, 8.0], repeat=3):
        with_nan = [math.nan if value == 5 else value for value in data]
        np.testing.assert_array_equal(mechanism.law(with_nan).logpmf(k), mechanism.law(data).logpmf(k))


class Windowed:
    """The median's intervals of few levels: capped (the law of the library) or cut to weight zero beyond."""

    def __init__(self, levels, *, cut):
        self.grid, self.privacy, self._levels, self._cut = Grid(0, 12, step=1), Privacy(1.0), levels, cut

    def law(self, x):
        codes, k = np.sort(self.grid.encode(x)), (len(x) + 1) // 2
        padded = [0] * len(x) + codes.tolist() + [12] * len(x)
        middle = len(x) + k - 1
        lower = np.array([padded[middle - t] for t in range(self._levels)])
        upper = np.array([padded[middle + t] for t in range(self._levels)])
        law = NestedIntervals(lower, upper, epsilon=1.0, last=12, grid=self.grid)
        if not self._cut:
            return law
        points = np.arange(13)
        return Table(np.where(law.score(points) < self._levels, law.pmf(points), 0), self.grid.decode(points))


@pytest.mark.parametrize("levels", [1, 2])
def test_a_binding_cap_is_private_and_a_cut_is_not(levels):
    for n in (3, 4):
        assert audit.verify(Windowed(levels, cut=False), n=n).holds
        certificate = audit.verify(Windowed(levels, cut=True), n=n)
        assert not certificate.holds
        assert certificate.epsilon == math.inf


def test_the_mechanism_with_a_binding_cap(monkeypatch):
    """The public cap of the library, made small by hand: the law changes, and stays private."""
    before = InverseSensitivity(Median(), grid=Grid(0, 12, step=1), epsilon=1.0).law([6] * 5).logpmf(np.arange(13))
    monkeypatch.setattr(InverseSensitivity, "cap", lambda self, n: 2)
    mechanism = InverseSensitivity(Median(), grid=Grid(0, 12, step=1), epsilon=1.0)  # it keeps what depends on the cap
    assert not np.allclose(mechanism.law([6] * 5).logpmf(np.arange(13)), before)
    for n in (3, 5):
        assert audit.verify(mechanism, n=n, values=3, ordered=False).holds


class TestRejects:
    def test_control(self):
        """The harness itself, with the right law, is certified."""
        right = Broken(lambda x, g: Table(np.exp(-0.5 * median_scores(x, g)), g))
        assert audit.verify(right, n=3).holds

    def test_exponent_doubled(self):
        doubled = Broken(lambda x, g: Table(np.exp(-1.0 * median_scores(x, g)), g))
        certificate = audit.verify(doubled, n=3)
        assert not certificate.holds
        assert 1.2 < certificate.epsilon < 2

    def test_rank_utility_charged_half(self):
        assert audit.verify(Broken(lambda x, g: Table(np.exp(-0.5 * rank_distance(x, g)), g)), n=3).holds
        certificate = audit.verify(Broken(lambda x, g: Table(np.exp(-1.0 * rank_distance(x, g)), g)), n=3)
        assert not certificate.holds

    def test_data_dependent_output_grid(self):
        """A float beside the grid says which data were there: the codes agree, the values do not."""
        off_grid = Broken(lambda x, g: Table(np.exp(-0.5 * median_scores(x, g)), g + x[0] * 2.0**-40))
        certificate = audit.verify(off_grid, n=2)
        assert certificate.epsilon == math.inf
        assert not certificate.holds

    def test_data_dependent_support(self):
        shrunk = Broken(lambda x, g: Table(np.ones(len(g) - int(x[0] > 0)), g[: len(g) - int(x[0] > 0)]))
        assert audit.verify(shrunk, n=2).epsilon == math.inf

    def test_worst_pair_is_reported(self):
        exact = Broken(lambda x, g: Table(np.where(g == x[0], 1.0, 1e-3), g))
        certificate = audit.verify(exact, n=1, values=3)
        assert certificate.epsilon == pytest.approx(math.log(1000))
        assert certificate.worst[0] != certificate.worst[1]
        assert "NO" in str(certificate)
        assert "claimed" in str(certificate)

    @pytest.mark.parametrize("law", ["nan", "too little", "too much"])
    def test_laws_that_are_none(self, law):
        class Wrong(Table):
            def logpmf(self, k):
                shift = {"nan": np.nan, "too little": -1e-6, "too much": 1e-6}[law]
                return super().logpmf(k) + np.where(np.asarray(k) == 0, shift, 0.0)

        certificate = audit.verify(Broken(lambda x, g: Wrong(np.ones(len(g)), g)), n=1)
        assert not certificate.holds
        assert certificate.epsilon == math.inf

    def test_repeated_values_are_one_outcome(self):
        """Two codes of one value: only their sum is visible, and here it does not depend on the data."""
        split = lambda x, g: Table([0.5 if x[0] else 0.1, 0.5 if x[0] else 0.9], [3.0, 3.0])  # noqa: E731
        certificate = audit.verify(Broken(split), n=1, values=2)
        assert certificate.epsilon == pytest.approx(0, abs=1e-12)


class TestDelta:
    @staticmethod
    def leak(chance):
        """Randomised response that reports the truth with this chance, without noise."""
        return lambda x, g: Table([1 - chance, chance * (x[0] == 0), chance * (x[0] != 0)], [0.5, 0.0, 20.0])

    @pytest.mark.parametrize(("delta", "holds"), [(0.01, True), (0.0099, False)])
    def test_hockey_stick(self, delta, holds):
        certificate = audit.verify(Broken(self.leak(0.01), delta=delta), n=1, values=2)
        assert certificate.holds == holds
        assert certificate.delta == pytest.approx(0.01, rel=1e-12)


class Rows:
    """A test-tree mechanism on rows of two bits: randomised response on their exclusive or, or a failure."""

    grids = (Grid(0, 1, step=1),) * 2

    def __init__(self, *, epsilon=1.0, failure=0.1, tells=False, delta=0.0):
        self.privacy = Privacy(1.0, delta)
        self._epsilon, self._failure, self._tells = epsilon, failure, tells

    def law(self, x):
        truth = int(x[0, 0] + x[0, 1]) % 2
        failure = self._failure * (truth if self._tells else 1)
        p = (1 - failure) / (1 + math.exp(-self._epsilon))
        probabilities = [failure, *((p, 1 - failure - p) if truth == 0 else (1 - failure - p, p))]
        return TableOfRows([[math.nan, math.nan], [0.0, 1.0], [-0.0, 2.0]], probabilities)


class TableOfRows:
    def __init__(self, values, probabilities):
        self._values, self._p = np.array(values), np.array(probabilities)

    def outcomes(self):
        return np.arange(len(self._p))[::-1]

    def logpmf(self, k):
        with np.errstate(divide="ignore"):
            return np.log(self._p[k])

    def value(self, k):
        return self._values[k]


class TestVectors:
    def test_rows_and_failures(self):
        certificate = audit.verify(Rows(), n=2, values=2)
        assert (certificate.holds, certificate.pairs) == (True, 16 * 6)
        assert certificate.epsilon == pytest.approx(1.0)
        assert certificate.worst[0] == ((0.0, 0.0), (0.0, 0.0))
        assert not audit.verify(Rows(epsilon=1.01), n=2, values=2).holds

    def test_a_revealing_failure_is_an_outcome(self):
        assert not audit.verify(Rows(tells=True), n=1, values=2).holds
        assert audit.verify(Rows(tells=True, delta=0.1), n=1, values=2).delta == pytest.approx(0.1)

    def test_rows_are_compared_by_value(self):
        """Other supports and orders; the two zeros are one value, all NaN are."""

        class Shuffled(Rows):
            def law(self, x):
                law = super().law(x)
                order = [2, 0, 1] if x[0, 0] else [1, 2, 0]
                values = law._values[order]
                values[values == 0] = 0.0 if x[0, 0] else -0.0
                return TableOfRows(values, law._p[order])

        assert audit.verify(Shuffled(), n=1, values=2).epsilon == pytest.approx(1.0)

    def test_unordered(self):
        """Every neighbouring pair of multisets, once each way."""
        median = InverseSensitivity(Median(), grid=Grid(0, 6, step=1), epsilon=1.0)
        all_of_them, some = (audit.verify(median, n=4, values=3, ordered=ordered) for ordered in (True, False))
        assert some.epsilon == pytest.approx(all_of_them.epsilon, rel=1e-14)
        assert (all_of_them.pairs, some.pairs) == (81 * 8, 15 * 2 * 2)

    def test_grids(self):
        wide = InverseSensitivity(Median(), grid=Grid(0, 100, step=1), epsilon=1.0)
        near = audit.verify(wide, n=2, values=2, grids=Grid(50, 51, step=1))
        assert near.holds
        assert near.worst[0][0] in (50.0, 51.0)

    def test_a_law_that_cannot_be_listed(self):
        totals = dpfast.NoisySums(
            dpfast.statistics.Sum(), domain=dpfast.domains.Box([Grid(0, 3, step=1)] * 2), epsilon=1.0
        )
        with pytest.raises(TypeError, match=r"the outcomes of this law cannot be listed, .* use audit\.distinguish"):
            audit.verify(totals, grids=[Grid(0, 3, step=1)] * 2)

    @every(
        "made, error, message",
        [
            (dpfast.SampleAndAggregate("normal", bounds=(0, 1), epsilon=1.0), TypeError, "give grids=, .* has no grid"),
            (dpfast.local.Categorical, TypeError, "not a class: call Categorical with its parameters"),
            (
                dpfast.local.HashedCategorical(2**40, 1.0),
                ValueError,
                r"at most 2\*\*16 reports.*use audit\.distinguish",
            ),
            (dpfast.local.HashedCategorical(2**60, 1.0), ValueError, "at most 2\\*\\*52 keys"),
            (dpfast.local.Categorical(3, 1.0, "olh"), ValueError, r"at most 2\*\*16 reports.*use audit\.distinguish"),
            (dpfast.local.Attributes((3, 4), 1.0), TypeError, r"no exact law to verify: use audit\.distinguish"),
            (dpfast.local.L2Ball(2, 1.0), TypeError, r"no exact law to verify: use audit\.distinguish"),
        ],
        ids=lambda part: type(part).__name__ if isinstance(part, dpfast.local.randomizer.LocalMechanism) else "",
    )
    def test_what_cannot_be_listed_says_what_to_use(self, made, error, message):
        with pytest.raises(error, match=message):
            audit.verify(made)

    def test_hashed_keys(self):
        assert audit.verify(dpfast.local.HashedCategorical(20, 1.0), values=20).epsilon == pytest.approx(1.0)

    def test_joint_quantiles(self):
        for stages in (1, 2):
            joint = dpfast.Quantiles([0.5, 0.2], grid=Grid(0, 3, step=1), epsilon=1.0, stages=stages)
            assert audit.verify(joint, n=3, values=4).holds

    def test_a_mechanism_without_a_grid(self):
        moments = dpfast.SecondMoments(domain=dpfast.domains.Ball(2.0, step=1.0), epsilon=1.0)
        with pytest.raises(TypeError, match="give grids=, the grids of the records: SecondMoments has no grid"):
            audit.verify(moments)


def test_limits():
    wide = InverseSensitivity(Median(), grid=Grid(0, 2**20, step=1), epsilon=1.0)
    with pytest.raises(ValueError, match=r"at most 2\*\*20 points, not 1048577"):
        audit.verify(wide)
    small = InverseSensitivity(Median(), grid=Grid(0, 1, step=1), epsilon=1.0)
    assert audit.verify(small, n=1, values=7).pairs == 2
    for options, message in (({"n": 0}, "n must be at least 1"), ({"values": 1}, "values must be at least 2")):
        with pytest.raises(ValueError, match=message):
            audit.verify(small, **options)
    with pytest.raises(TypeError, match="n must be an integer"):
        audit.verify(small, n=2.0)


class RandomisedResponse:
    def __init__(self, epsilon, claim=1.0):
        self._truth, self.privacy = 1 / (1 + math.exp(-epsilon)), Privacy(claim)

    def release(self, x, size, rng):
        return np.where(Generator(rng).random(size) < self._truth, x[0], 1 - x[0]).astype(float)


class Noise:
    """x[0] + noise(generator, size), claimed epsilon 1 for records 0 and 1."""

    def __init__(self, noise):
        self._noise, self.privacy = noise, Privacy(1.0)

    def release(self, x, size, rng):
        return x[0] + self._noise(Generator(rng), size)


class TestDistinguish:
    def test_is_a_lower_bound(self):
        """At confidence 0.9, of 60 runs on randomised response as few as 6 are expected above the truth."""
        bounds = [
            audit.distinguish(RandomisedResponse(1.0), [0], [1], trials=1000, confidence=0.9, rng=PCG64(seed))
            for seed in range(60)
        ]
        above = sum(bound > 1.0 for bound in bounds)
        assert above <= binom.isf(ALPHA, 60, 0.1)
        assert sum(bound > 0.6 for bound in bounds) > 30, "and it is not the trivial bound"

    @pytest.mark.slow
    def test_the_choice_of_the_event_costs_no_confidence(self):
        """Equal laws of many values: hundreds of events are tried, one is counted, on draws it was not chosen by."""
        same = Noise(lambda rng, size: rng.laplace(size=size))
        bounds = [audit.distinguish(same, [0.5], [0.5], trials=1000, confidence=0.5, rng=PCG64(s)) for s in range(150)]
        assert sum(bound > 0 for bound in bounds) <= binom.isf(ALPHA, 150, 0.5)

    @every("mine, theirs", [(30, 10), (100, 0), (0, 100), (100, 100), (57, 56)])
    @every("confidence", [0.5, 0.9, 0.99])
    def test_bound_is_clopper_and_pearson(self, mine, theirs, confidence):
        """Half of the risk for each of the two probabilities; delta off the first."""
        lower = binomtest(mine, 100).proportion_ci(confidence, "exact").low
        upper = binomtest(theirs, 100).proportion_ci(confidence, "exact").high
        for delta in (0.0, 0.1):
            expected = math.log((lower - delta) / upper) if lower > delta else -math.inf
            got = float(events.log_ratio_down(mine, theirs, 100, delta, confidence))
            assert got == pytest.approx(expected, abs=1e-9)

    def test_is_near_the_truth(self):
        assert 0.85 < audit.distinguish(RandomisedResponse(1.0), [0], [1], trials=20_000, rng=PCG64(1)) <= 1

    def test_equal_data(self):
        assert audit.distinguish(RandomisedResponse(1.0), [0], [0], trials=5000, rng=PCG64(1)) < 0.1

    def test_right_mechanisms_are_not_refuted(self):
        mechanism = InverseSensitivity(Median(), grid=Grid(0, 4, step=1), epsilon=1.0)
        bound = audit.distinguish(mechanism, [0, 0, 4], [0, 4, 4], trials=50_000, rng=PCG64(1))
        assert 0.2 < bound <= 1

    @pytest.mark.parametrize(
        "noise",
        [
            lambda rng, size: np.rint(rng.laplace(scale=0.5, size=size)),
            lambda rng, size: rng.integers(0, 4, size).astype(float),
            lambda rng, size: rng.laplace(scale=1.0, size=size),
        ],
        ids=["half the noise", "bounded noise", "numpy Laplace on floats (T16)"],
    )
    def test_controls_are_refuted(self, noise):
        assert audit.distinguish(Noise(noise), [0.0], [1.0], trials=40_000, rng=PCG64(1)) > 1.05

    def test_a_forgotten_factor_two_is_refuted(self):
        assert audit.distinguish(RandomisedResponse(2.0), [0], [1], trials=20_000, rng=PCG64(1)) > 1.5

    def test_delta_is_allowed_for(self):
        class Sometimes(RandomisedResponse):
            def release(self, x, size, rng):
                return np.where(Generator(rng).random(size) < 0.05, x[0] + 10.0, 0.0)

        mechanism = Sometimes(1.0)
        assert audit.distinguish(mechanism, [0], [1], trials=20_000, rng=PCG64(1)) > 3
        mechanism.privacy = Privacy(1.0, 0.06)
        assert audit.distinguish(mechanism, [0], [1], trials=20_000, rng=PCG64(1)) == 0

    @every("options", [{"trials": 3}, {"trials": 2.5}, {"confidence": 1}, {"confidence": 0}, {"events": "all"}])
    def test_bad_arguments(self, options):
        with pytest.raises((TypeError, ValueError), match=f"{next(iter(options))} must be"):
            audit.distinguish(RandomisedResponse(1.0), [0], [1], **{"trials": 100, **options})


class Several:
    """Several numbers of x[0] and of noise, claimed epsilon 1 for records 0 and 1."""

    def __init__(self, numbers):
        self._numbers, self.privacy = numbers, Privacy(1.0)

    def release(self, x, size, rng):
        return np.stack(self._numbers(x[0], Generator(rng), size), axis=1)


def discrete_laplace(rng, scale, size):
    return (rng.geometric(-math.expm1(-1 / scale), size) - rng.geometric(-math.expm1(-1 / scale), size)).astype(float)


class TestLearnedEvents:
    """Events on all numbers of a release together, learned from draws that the bound does not use."""

    @staticmethod
    def bound(mechanism, events="learned", x=0.0, y=1.0, trials=100_000):
        return audit.distinguish(mechanism, [x], [y], trials=trials, confidence=1 - ALPHA, events=events, rng=PCG64(1))

    def test_a_budget_that_is_spent_twice(self):
        """No single number shows more than epsilon; half of it for each of the two is right."""
        twice = Several(lambda x, rng, size: [x + discrete_laplace(rng, 1.0, size) for _ in range(2)])
        shared = Several(lambda x, rng, size: [x + discrete_laplace(rng, 2.0, size) for _ in range(2)])
        assert self.bound(twice, "listed") <= 1
        assert self.bound(twice) > 1.5
        assert 0.7 < self.bound(shared) <= 1

    def test_noise_that_is_used_twice(self):
        def numbers(x, rng, size):
            noise = discrete_laplace(rng, 10.0, size)
            return [noise, x + noise]

        assert self.bound(Several(numbers), "listed") <= 1
        assert self.bound(Several(numbers)) > 5

    def test_a_parity_of_two_bits(self):
        def numbers(x, rng, size):
            bit = rng.integers(0, 2, size)
            return [bit.astype(float), np.zeros(size), (bit ^ int(x)).astype(float)]

        assert self.bound(Several(numbers), "listed") <= 1
        assert self.bound(Several(numbers)) > 5

    @pytest.mark.parametrize("value", [math.nan, math.inf, -0.0])
    def test_values_without_an_order(self, value):
        same = Several(lambda x, rng, size: [np.full(size, value), rng.random(size), np.full(size, math.nan)])
        differs = Several(lambda x, rng, size: [np.full(size, value if x else 1.0), rng.random(size)])
        assert self.bound(same) == 0
        assert self.bound(differs) > 5

    def test_is_a_lower_bound(self):
        """At confidence 0.5, the learned score does not raise the share of bounds above the truth."""
        shared = Several(lambda x, rng, size: [x + discrete_laplace(rng, 2.0, size) for _ in range(2)])
        bounds = [
            audit.distinguish(shared, [0], [1], trials=1000, confidence=0.5, events="learned", rng=PCG64(seed))
            for seed in range(60)
        ]
        assert sum(bound > 1 for bound in bounds) <= binom.isf(ALPHA, 60, 0.5)

    def test_four_trials(self):
        assert self.bound(RandomisedResponse(1.0), trials=4, y=1) == 0


class TestPowerBound:
    @pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
    def test_randomised_response_attains_it(self, epsilon):
        """The best test at every level: random between the two outcomes (Neyman and Pearson)."""
        truth = 1 / (1 + math.exp(-epsilon))
        for level in np.linspace(0, 1, 41):
            power = level / (1 - truth) * truth
            if level > 1 - truth:
                power = truth + (level - 1 + truth) / truth * (1 - truth)
            assert audit.power_bound(level, epsilon) == pytest.approx(power, abs=1e-14)

    def test_edges(self):
        assert audit.power_bound(0, 5.0) == 0
        assert audit.power_bound(1, 0.3) == 1
        assert audit.power_bound(0.3, 0) == pytest.approx(0.3)
        assert audit.power_bound(1e-300, 1e308) == 1
        assert audit.power_bound(1e-320, 720.0) == pytest.approx(1e-320 * math.exp(700) * math.exp(20), rel=1e-3)
        assert audit.power_bound(0, 1e308) == 0
        assert audit.power_bound(Fraction(1, 20), 1) == pytest.approx(0.05 * math.e)
        for wrong in ({"level": -0.1}, {"level": 1.1}, {"level": math.nan}, {"epsilon": -1}, {"epsilon": math.inf}):
            with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
                audit.power_bound(**{"level": 0.5, "epsilon": 1.0, **wrong})


def test_public_names():
    assert dpfast.audit is audit


def test_a_table_too_large_is_refused():
    mechanism = InverseSensitivity(Median(), grid=Grid(0, 2**18 - 1, step=1), epsilon=1.0)
    with pytest.raises(ValueError, match=r"262144 points for each of 1024 datasets"):
        audit.verify(mechanism, n=5, values=4)
