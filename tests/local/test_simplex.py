"""Projection of frequencies onto the simplex, alone and as an option of `estimate`."""

import dataclasses

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from dpfast import local
from dpfast.local.randomizer import Aggregate
from tests.cases import every
from tests.reference.local import bayesian_update, shrinkage, simplex


@every("k", [1, 2, 5, 40])
@every("weighted", [False, True])
def test_it_is_the_nearest_point(k, weighted):
    rng = np.random.default_rng(k)
    for spread in (0.01, 1.0, 1e4):
        values = rng.normal(1 / k, spread, k)
        variances = rng.uniform(0.1, 3.0, k) if weighted else None
        result = local.project(values, variances=variances)
        assert (result >= 0).all()
        assert result.sum() == pytest.approx(1, abs=1e-12 * max(1, spread))
        weights = np.ones(k) if variances is None else variances
        np.testing.assert_allclose(result, simplex(values.tolist(), weights.tolist()), atol=1e-11 * max(1, spread))
        best = ((result - values) ** 2 / weights).sum()
        for other in rng.dirichlet(np.full(k, 0.3), 50):
            assert best <= ((other - values) ** 2 / weights).sum() * (1 + 1e-9)


def test_points_of_the_simplex_stay():
    for frequencies in ([1.0], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5], [0.5, 0.5]):
        assert local.project(frequencies).tolist() == frequencies


def test_large_numbers():
    for frequencies, point in (
        ([1e17, 1.0, 1.0], [1, 0, 0]),
        ([1e300, 1e300, -1e300], [0.5, 0.5, 0]),
        ([-1e308, -1e308, 1e308], [0, 0, 1]),
    ):
        assert local.project(frequencies).tolist() == point


@every(
    "frequencies, variances",
    [([], None), ([np.nan, 1], None), ([np.inf], None), ([0.5, 0.5], [1]), ([0.5, 0.5], [1, 0]), ([1.0], [np.inf])],
)
def test_bad_arguments(frequencies, variances):
    with pytest.raises(ValueError, match="must be"):
        local.project(frequencies, variances=variances)


@pytest.mark.parametrize(("n", "gain"), [(1000, 3.5), (10_000, 1.5)])
def test_mean_square_error_of_the_option(n, gain):
    """At k = 64 the projection is several times more accurate, and never farther from the truth."""
    survey, source = local.Categorical(64, 1.0), Generator(PCG64(1))
    plain = projected = 0.0
    for weights in (np.ones(64), 1 / np.arange(1, 65)):
        for _ in range(20):
            x = source.choice(64, n, p=weights / weights.sum())
            total = survey.aggregate(survey.randomize(x, rng=source))
            truth = np.bincount(x, minlength=64) / n
            errors = [((survey.estimate(total, project=p) - truth) ** 2).sum() for p in (False, "l2")]
            assert errors[1] <= errors[0]
            plain, projected = plain + errors[0], projected + errors[1]
    assert plain > gain * projected


METHODS = ("k-rr", "subset", "oue", "olh", "hadamard")
RULES = ("stein", "l2", "likelihood")


def counted(k, n, generator):
    """Numbers of reports that support each category: ordinary, uneven, tied, all zero and all n ones."""
    yield generator.binomial(n, 0.4, k)
    yield generator.integers(0, n + 1, k)
    yield np.where(np.arange(k) == 0, n, 0)
    yield from (np.full(k, n // 2), np.zeros(k), np.full(k, n), np.where(np.arange(k) == 0, 1, 0))


@every("method", METHODS)
@every("k", [2, 3])
def test_the_likelihood_is_the_largest(method, k):
    """Compared with all points of a grid on the simplex and with the other rules."""
    survey, generator, n = local.Categorical(k, 0.7, method), Generator(PCG64(k)), 30
    p, q = map(float, survey.support)
    steps = np.arange(201) / 200
    grid = np.stack([g.reshape(-1) for g in np.meshgrid(*[steps] * (k - 1))], axis=1)
    grid = np.column_stack([grid, 1 - grid.sum(axis=1)])
    grid = grid[grid[:, -1] >= 0]
    for counts in counted(k, n, generator):
        found = {r: survey.estimate(Aggregate(n, counts.astype(np.int64), 0), project=r) for r in RULES}
        height = {r: counts @ np.log(q + (p - q) * f) for r, f in found.items()}
        heights = np.log(q + (p - q) * grid) @ counts
        assert height["likelihood"] >= max(heights.max(), *height.values()) - 1e-9


def test_other_rules_do_not_maximise_the_likelihood():
    survey = local.Categorical(3, 2.0, "oue")
    p, q = map(float, survey.support)
    total = Aggregate(100, np.array([50, 13, 2]), 0)
    best, nearest = (survey.estimate(total, project=r) for r in ("likelihood", "l2"))
    assert total.sums @ np.log(q + (p - q) * best) > total.sums @ np.log(q + (p - q) * nearest) + 1e-3


@every("method", METHODS)
@every("k, epsilon", [(2, 4.0), (5, 1.0), (40, 0.3), (40, 3.0)])
def test_iterative_bayesian_updates_stay_at_the_likeliest(method, k, epsilon):
    """An update from the result does not move it, and an update from elsewhere never lowers the likelihood."""
    survey, generator, n = local.Categorical(k, epsilon, method), Generator(PCG64(k)), 500
    p, q = map(float, survey.support)
    for counts in counted(k, n, generator):
        total = Aggregate(n, counts.astype(np.int64), 0)
        result = survey.estimate(total, project="likelihood")
        if counts.any():
            np.testing.assert_allclose(bayesian_update(result, counts, p, q), result, rtol=0, atol=1e-12)
            start = generator.dirichlet(np.ones(k))
            moved = np.array(bayesian_update(start, counts, p, q))
            heights = [counts @ np.log(q + (p - q) * f) for f in (start, moved, result)]
            assert min(np.diff(heights)) >= -1e-9
        else:
            np.testing.assert_allclose(result, 1 / k, rtol=1e-12)


@every("method", METHODS)
@every("k", [2, 4, 50])
@every("epsilon", [2.0**-20, 0.5, 5.0])
@every("n", [1, 1000])
def test_every_rule_gives_a_point_of_the_simplex(method, k, epsilon, n):
    survey, generator = local.Categorical(k, epsilon, method), Generator(PCG64(n))
    for counts in counted(k, n, generator):
        total = Aggregate(n, counts.astype(np.int64), 0)
        for rule in RULES:
            found = survey.estimate(total, project=rule)
            assert (found.shape, found.dtype) == ((k,), np.float64)
            assert found.min() >= 0
            assert found.sum() == pytest.approx(1, abs=1e-12 * max(1, np.abs(survey.estimate(total)).max()))
        np.testing.assert_array_equal(survey.estimate(total, project=True), survey.estimate(total, project="stein"))


def test_stein_shrinks_the_projection():
    """The fraction is that of the slow twin; it is 1 where at most three entries are positive, and 0 for pure noise."""
    survey, generator, fractions = local.Categorical(12, 1.0), Generator(PCG64(3)), []
    for x in (np.arange(20_000) % 12, np.arange(20_000) % 6, np.arange(2000) % 12, np.zeros(1000)):
        total = survey.aggregate(survey.randomize(x, rng=generator))
        plain, nearest, found = (survey.estimate(total, project=r) for r in (False, "l2", "stein"))
        fraction = shrinkage(plain.tolist(), nearest.tolist(), survey.total_variance / 12 / total.n)
        np.testing.assert_allclose(found, 1 / 12 + fraction * (nearest - 1 / 12), atol=1e-12)
        fractions.append(fraction)
    assert fractions[-1] == pytest.approx(1)
    assert min(fractions) < 0.5
    even = survey.estimate(Aggregate(1200, np.full(12, round(1200 * survey.support[1])), 0), project=True)
    np.testing.assert_allclose(even, 1 / 12, rtol=1e-12)


@pytest.mark.parametrize(
    ("weights", "most"), [(np.ones(64), 0.5), (1 / np.arange(1, 65), 0.95), (np.arange(64) == 0, 1.02)]
)
def test_stein_is_more_accurate_than_the_projection(weights, most):
    """Root mean square error relative to "l2", for even frequencies, Zipf's law and one category."""
    survey, source, errors = local.Categorical(64, 1.0), Generator(PCG64(2)), np.zeros(2)
    for _ in range(20):
        x = source.choice(64, 1000, p=weights / weights.sum())
        total, truth = survey.aggregate(survey.randomize(x, rng=source)), np.bincount(x, minlength=64) / 1000
        errors += [((survey.estimate(total, project=r) - truth) ** 2).sum() for r in ("stein", "l2")]
    assert errors[0] <= most**2 * errors[1]


@every("survey", [local.Categorical(4, 1.0), local.Binary(1.0), local.Attributes([2, 3], 1.0)])
@every("project", ["ibu", None, 1, 0.5])
def test_a_bad_rule_is_rejected(survey, project):
    rows = np.zeros((20, 2)) if isinstance(survey, local.Attributes) else np.zeros(20)
    reports = survey.randomize(rows, rng=PCG64(1))
    with pytest.raises(ValueError, match="project must be one of 'stein', 'l2', 'likelihood'"):
        survey.estimate(reports, project=project)


def test_hashed_categories_have_one_rule():
    survey = local.HashedCategorical(100, 1.0)
    reports = survey.randomize(np.arange(100), rng=PCG64(1))
    found = [survey.estimate(reports, project=rule) for rule in (True, "l2")]
    np.testing.assert_array_equal(*found)
    with pytest.raises(ValueError, match="project must be one of 'l2'"):
        survey.estimate(reports, project="stein")


@every("rule", [True, False, *RULES])
def test_there_must_be_a_report(rule):
    for survey in (local.Categorical(4, 1.0), local.Binary(1.0)):
        with pytest.raises(ValueError, match="at least one report"):
            survey.estimate(survey.randomize(np.zeros(0)), project=rule)


def test_binary_is_clipped():
    survey = local.Binary(0.5)
    for bit in (0, 1):
        reports = np.full(100, bit, np.uint8)
        assert abs(survey.estimate(reports) - bit) > 1
        for rule in (True, *RULES):
            assert survey.estimate(reports, project=rule) == bit


def test_attributes_pass_the_rule_on():
    survey = local.Attributes([3, 50], 1.0)
    totals = survey.aggregate(survey.randomize(np.zeros((200, 2)), rng=PCG64(1)))
    for rule in RULES:
        for part, total, found in zip(survey.parts, totals, survey.estimate(totals, project=rule), strict=True):
            own = dataclasses.replace(total, parameters=None)  # of the survey, not of one of its parts
            np.testing.assert_array_equal(found, part.estimate(own, project=rule))
