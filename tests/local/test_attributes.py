"""Attributes: privacy of rows by enumeration, the choice, estimates, refusals, parameters."""

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from dpfast import local
from tests.cases import every
from tests.statistical import exceeds


def row_law(survey, row):
    """The exact law of the report of a row: (attribute, report), or the reports of all attributes."""
    laws = [part.law(x).pmf for part, x in zip(survey.parts, row, strict=True)]
    if survey.method == "sample":
        return [p * Fraction(1, len(laws)) for law in laws for p in law]
    return [a * b for a, b in itertools.product(*laws)]


def worst_ratio(survey):
    laws = [row_law(survey, row) for row in itertools.product(*(range(size) for size in survey.sizes))]
    assert all(sum(law) == 1 for law in laws)
    return max(max(column) / min(column) for column in zip(*laws, strict=True))


@every("method", ["sample", "split"])
@every("epsilon", [0.5, 1.0, 3.0])
def test_rows_are_private_exactly(method, epsilon):
    survey = local.Attributes([2, 4], epsilon, method)
    assert not exceeds(worst_ratio(survey), epsilon)
    assert worst_ratio(survey) > 1
    if method == "split":  # each attribute with all of epsilon
        wrong = [part.coin.ratio for part in local.Attributes([2, 4], epsilon, "sample").parts]
        assert exceeds(wrong[0] * wrong[1], epsilon)


@every("method", ["sample", "split"])
@every("sizes", [[3, 10], [2], [5, 70, 300]])
def test_estimates_are_unbiased_with_the_promised_error(method, sizes):
    source, n = Generator(PCG64(1)), 20_000
    survey = local.Attributes(sizes, 2.0, method)
    rows = source.integers(0, [max(1, size // 2) for size in sizes], (n, len(sizes)))
    reports = survey.randomize(rows, rng=source)
    assert reports.shape == (n, *survey.report.shape)
    totals = survey.aggregate(reports)
    halves = [a + b for a, b in zip(*map(survey.aggregate, np.array_split(reports, 2)), strict=True)]
    assert totals == tuple(halves)
    for j, (found, error) in enumerate(zip(survey.estimate(totals), survey.error(n, 0.6827), strict=True)):
        truth = np.bincount(rows[:, j], minlength=sizes[j]) / n
        assert np.abs(found - truth).max() < 6 * error
        if sizes[j] >= 70:
            assert 0.5 * error < np.std(found - truth) < 1.2 * error
    for found in survey.estimate(reports, project=True):
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1)


def test_the_choice_has_less_variance():
    for sizes, epsilon in (([2, 2], 0.5), ([10] * 5, 1.0), ([100] * 3, 4.0), ([4, 4], 12.0), ([2, 2], 30.0)):
        made = {name: local.Attributes(sizes, epsilon, name) for name in ("auto", "sample", "split")}
        assert made["auto"].total_variance == min(survey.total_variance for survey in made.values())
    assert local.Attributes([10] * 5, 1.0).method == "sample"
    assert local.Attributes([4, 4], 12.0).method == "split"


def test_refused_reports():
    survey = local.Attributes([3, 300], 1.0)
    reports = survey.randomize(np.zeros((100, 2), int), rng=PCG64(1))
    for place, value in ((1, 255), (0, 2)):
        hostile = reports[:1].copy()
        hostile[0, place] = value
        totals = survey.aggregate(np.concatenate([reports, hostile]))
        assert sum(total.refused for total in totals) == 1
        assert sum(total.n for total in totals) == 100
    first = reports[reports[:, 0] == 0][:1].copy()
    first[0, -1] = 1  # beyond the report of the first attribute
    assert survey.aggregate(first)[0].refused == 1


@every(
    "sizes, epsilon, method", [([], 1, "auto"), ([1], 1, "auto"), ([2], 0, "auto"), (3, 1, "auto"), ([2], 1, "fake")]
)
def test_bad_parameters(sizes, epsilon, method):
    with pytest.raises(ValueError, match="must"):
        local.Attributes(sizes, epsilon, method)


def test_the_least_epsilon_cannot_be_split():
    assert local.Attributes([3, 4], 2.0**-40).method == "sample"
    with pytest.raises(ValueError, match="at least"):
        local.Attributes([3, 4], 2.0**-40, "split")


def test_bad_arguments():
    survey = local.Attributes([3, 10], 1.0)
    reports = survey.randomize(np.zeros((50, 2)), rng=PCG64(1))
    with pytest.raises(ValueError, match="shape"):
        survey.randomize(np.zeros((5, 3)))
    with pytest.raises(ValueError, match="shape"):
        survey.aggregate(reports[:, :-1])
    with pytest.raises(TypeError, match="uint8"):
        survey.aggregate(reports.astype(int))
    with pytest.raises(ValueError, match="aggregate for each"):
        survey.estimate(survey.aggregate(reports)[:1])
    assert pickle.loads(pickle.dumps(survey)) == survey
    assert (survey.randomize(np.zeros((50, 2)), rng=PCG64(1), workers=2) == reports).all()
