"""The expectations that ``bench.pages accuracy`` computes from exact laws, and its choice of sizes."""

import numpy as np
import pytest

import dpfast as dpf
from bench.pages.location_accuracy import Setting, center, enough, mean_absolute, mechanisms, statistics
from bench.pages.populations import Population
from bench.pages.tables import digits
from tests.cases import every

TINY = Population("tiny", "", dpf.Grid(-3, 20, step=1), 2.0, lambda u: np.rint(20 * u**2))
WIDE = Population("wide", "", dpf.Grid(-30, 200, step=2.0**-3), 2.0, lambda u: 100 * u**2)


@every("population", [TINY, WIDE], ids=lambda p: p.name)
@every("epsilon", [0.1, 1.0, 4.0])
@every("name", list(statistics(TINY)))
def test_expectations_are_the_sums_over_the_law(name, epsilon, population):
    x = population.sample(9, seed=1)
    for mechanism, m in mechanisms(name, population, epsilon):
        law = m.law(x)
        codes = np.arange(law.support[1] + 1)
        start, stop = law.value(0), law.value(law.support[1])
        values, p = start + (stop - start) / law.support[1] * codes, law.pmf(codes)
        for target in (law.value(center(law)), start, stop, 0.3 * start + 0.7 * stop):
            tolerance = 1e-9 if mechanism == "inverse" else 1e-3
            assert mean_absolute(law, target) == pytest.approx(p @ np.abs(values - target), rel=tolerance, abs=1e-12)


def test_the_center_is_the_statistic_without_noise():
    x = WIDE.grid.decode(WIDE.grid.encode(WIDE.sample(101, seed=2)))
    for name, exact in {"median": np.median(x), "mean": np.mean(x)}.items():
        for _, m in mechanisms(name, WIDE, 1.0):
            law = m.law(x)
            assert law.value(center(law)) == pytest.approx(exact, rel=1e-12)


def test_enough_records_means_enough_for_all_larger_sizes_and_all_data():
    def settings(noises):
        return [Setting(WIDE, n, 1.0, {"inverse": noise}, 1.0) for n, noise in noises]

    assert enough(settings([(100, 0.5), (1000, 2.0), (10_000, 0.5), (10**6, 0.1)]), "inverse") == "1e4"
    assert enough(settings([(100, 0.5), (100, 2.0), (1000, 0.5)]), "inverse") == "1000"
    assert enough(settings([(100, 0.5), (1000, 1.5)]), "inverse") == "-"


@every(
    "value, text",
    [
        (None, "-"),
        (0.0, "0"),
        (float("inf"), "∞"),
        (0.0123, "0.012"),
        (0.99, "0.99"),
        (1.26, "1.3"),
        (45.6, "46"),
        (1234.5, "1,230"),
        (0.000123, "1.2e-4"),
        (2.5e9, "2.5e9"),
    ],
)
def test_numbers_have_two_or_three_digits(value, text):
    assert digits(value) == text
