"""HeavyHitters: privacy of the mixture over levels, keys and strings, what is found, refusals, parameters."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from dpfast import local
from tests.cases import every
from tests.statistical import chi_square_rejects, exceeds


def test_the_report_is_a_level_and_a_report_of_its_oracle():
    """The exact law is the mixture over levels: its ratio is that of one oracle."""
    survey = local.HeavyHitters(1.0, 3, radix=50, cells=256)
    assert survey.levels == (2, 3)
    pmfs = []
    for x in (0, 7, 124_999):
        pmf = []
        for digits, oracle in zip(survey.levels, survey.oracles, strict=True):
            law = oracle.law(x // 50 ** (3 - digits))
            pmf += [p * Fraction(1, len(survey.levels)) for p in law.pmf]
        assert sum(pmf) == 1
        pmfs.append(pmf)
    ratio = max(max(column) / min(column) for column in zip(*pmfs, strict=True))
    assert ratio == survey.oracles[0].coin.ratio
    assert not exceeds(ratio, 1.0)
    assert exceeds(ratio**2, 1.0)  # a person who reports about two levels
    counts = np.bincount(survey.randomize(np.full(400_000, 7), rng=PCG64(1)), minlength=len(pmfs[0]))
    assert not chi_square_rejects(counts, pmfs[1])
    assert chi_square_rejects(counts, pmfs[2])


@pytest.mark.parametrize(
    ("length", "radix"),
    [pytest.param(48, 2, marks=pytest.mark.slow), pytest.param(12, 16, marks=pytest.mark.slow), (3, 1000), (10, 2)],
)
def test_it_finds_the_frequent_keys(length, radix):
    source, n = Generator(PCG64(1)), 200_000
    size = min(radix**length, 2**62)
    frequent = source.integers(0, size, 3)
    x = source.integers(0, size, n) if size > 2**20 else source.integers(0, size // 2, n)
    for key, share in zip(frequent, (0.1, 0.2, 0.3), strict=True):
        x[source.random(n) < share] = key
    survey = local.HeavyHitters(2.0, length, radix=radix)
    reports = survey.randomize(x, rng=source)
    found = survey.estimate(reports)
    truth = {int(key): np.mean(x == key) for key in frequent}
    assert set(truth) <= set(found.keys.tolist())
    assert len(found.keys) <= 4
    assert (np.diff(found.frequencies) <= 0).all()
    for key, estimate, error in zip(found.keys.tolist(), found.frequencies, found.standard_errors, strict=True):
        assert abs(estimate - truth.get(key, np.mean(x == key))) < 6 * error
    assert found.frequencies.min() > found.threshold
    halves = [survey.aggregate(part) for part in np.array_split(reports, 2)]
    merged = survey.estimate([a + b for a, b in zip(*halves, strict=True)])
    assert merged.keys.tolist() == found.keys.tolist()


def test_nothing_is_found_where_nothing_is_frequent():
    x = np.random.default_rng(1).integers(0, 2**60, 50_000)
    survey = local.HeavyHitters(1.0, 60)
    found = survey.estimate(survey.randomize(x, rng=PCG64(1)))
    assert found.keys.size == found.frequencies.size == 0


def test_keys_that_always_share_a_cell():
    """Their collisions are a singular matrix."""
    survey = local.HeavyHitters(5.0, 12, cells=2**8)
    found = survey.estimate(survey.randomize(np.repeat([4000, 777, 5], [6000, 4000, 2000]), rng=PCG64(1)))
    assert found.frequencies.size
    assert np.isfinite(found.frequencies).all()
    assert (np.diff(found.frequencies) <= 0).all()


def test_strings():
    survey = local.HeavyHitters(3.0, 6, alphabet="abcdefgh ")
    source = Generator(PCG64(2))
    words = source.choice(["bad", "a bag", "", "head"], 60_000, p=[0.4, 0.3, 0.1, 0.2])
    found = survey.estimate(survey.randomize(words, rng=source))
    assert found.keys == ["bad", "a bag", "head", ""]
    for item in (None, np.nan, "toolong", "xyz", 7):
        assert survey._keys([item]).tolist() == [0]
    for word in ("", "a", "hhhhhh", " a"):
        assert survey._string(int(survey._keys([word])[0])) == word


def test_refused_reports():
    survey = local.HeavyHitters(1.0, 32)
    reports = survey.randomize(np.arange(1000), rng=PCG64(1))
    top = survey._offsets[-1]
    hostile = np.append(reports, np.array([top, np.iinfo(reports.dtype).max], reports.dtype))
    totals = survey.aggregate(hostile)
    assert sum(total.refused for total in totals) == 2
    assert sum(total.n for total in totals) == 1000


@every(
    "args, options",
    [
        ((1.0, 65), {}),
        ((1.0, 0), {}),
        ((1.0, 9), {"radix": 256}),
        ((1.0, 2), {"radix": 2**17}),
        ((1.0, 2), {"alphabet": "aa"}),
        ((1.0, 2), {"alphabet": ""}),
        ((1.0, 14), {"alphabet": "abcdefghijklmnopqrstuvwxyz"}),
        ((0.0, 8), {}),
    ],
)
def test_bad_parameters(args, options):
    with pytest.raises(ValueError, match="must"):
        local.HeavyHitters(*args, **options)


def test_bad_reports():
    survey = local.HeavyHitters(1.0, 32)
    reports = survey.randomize(np.arange(100), rng=PCG64(1))
    with pytest.raises(ValueError, match="report of each level"):
        survey.estimate(reports[:1])
    with pytest.raises(ValueError, match="aggregate for each"):
        survey.estimate(survey.aggregate(reports)[:1])
    with pytest.raises(ValueError, match="shape"):
        survey.aggregate(reports[:, None])
    with pytest.raises(TypeError, match="array of"):
        survey.aggregate(reports.astype(float))
    assert pickle.loads(pickle.dumps(survey)) == survey
