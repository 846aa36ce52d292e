"""The experiments of Duchi, Jordan and Wainwright run without data files, and their helpers are right."""

import math
from fractions import Fraction

import numpy as np
import pytest

from bench.papers import data, duchi_densities, duchi_pay, duchi_shares, duchi_sparse, duchi_theory, duchi_words

CACHES = (
    duchi_shares.rows,
    duchi_pay.population,
    duchi_pay.mean_rows,
    duchi_pay.median_rows,
    duchi_words.population,
    duchi_words.rows,
)


@pytest.fixture(autouse=True)
def no_files(monkeypatch, tmp_path):
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    for cached in CACHES:
        cached.cache_clear()
    yield
    for cached in CACHES:
        cached.cache_clear()


def test_shares_of_the_hypercube_are_closer_than_those_of_laplace():
    shares, name = duchi_shares.population()
    assert shares.size == 27
    assert name == "made-up shares"
    people = duchi_shares.people_of(shares, 1000, np.random.default_rng(1))
    assert np.abs(people.mean(axis=0) - shares).max() <= 0.0005
    found = duchi_shares.rows(quick=True)
    for n in {n for n, _ in found}:
        errors = {method: found[n, method].mean(axis=0) for method in duchi_shares.METHODS}
        assert (errors["no privacy"] < errors["subset"]).all()
        assert (errors["majority"] < 0.3 * errors["Laplace"]).all()
    assert duchi_shares.compute(quick=True).agrees.startswith("yes, if")


def test_estimates_of_shares_are_unbiased():
    x = np.repeat(np.array([[0, 1, 1]], np.int8), 100_000, axis=0)
    for method in duchi_shares.METHODS:
        found = duchi_shares.estimate(x, method, np.random.default_rng(1), epsilon=1.0)
        assert np.abs(found - [0, 1, 1]).max() < 0.15


def test_medians_by_descent_are_closer_than_naive_ones(monkeypatch):
    monkeypatch.setattr(duchi_pay, "RADII", (4.0,))
    found = duchi_pay.median_rows(quick=True)
    gaps = {name: values[-1].mean() for (_, name), values in found.items()}
    assert 0 < gaps["no privacy"] < gaps["default steps"] < gaps["naive"] / 10
    assert min(values.min() for values in found.values()) > -1e-6
    assert "made-up pay" in duchi_pay.population()[1]


def test_means_with_the_best_truncation_are_closer(monkeypatch):
    monkeypatch.setattr(duchi_pay, "MOMENTS", (2.0,))
    monkeypatch.setattr(duchi_pay, "EPSILONS", (1.0,))
    errors, plain = duchi_pay.mean_rows(quick=True)
    assert plain < errors[1.0, 2.0, "best T, codebook"] < errors[1.0, 2.0, "as published"]


def test_regressions_without_privacy_are_best(monkeypatch):
    monkeypatch.setattr(duchi_words, "sizes", lambda quick: (300,))
    found = duchi_words.rows(quick=True)
    for (panel, _), shares in found.items():
        assert duchi_words.population(panel).X.shape[1] == (13 if panel == "at least 10 %" else 430)
        assert shares[math.inf, "no privacy"].mean() < min(0.4, *(shares[1.0, m].mean() for m in duchi_words.METHODS))


def test_counts_weigh_the_rows_of_a_fit():
    rng = np.random.default_rng(1)
    X, counts = rng.integers(0, 2, (50, 3)).astype(float), rng.integers(0, 4, 50)
    y = rng.random(50) < 0.5
    drawn = np.repeat(np.arange(50), counts)
    one = duchi_words.newton(X, y, counts)
    assert one == pytest.approx(duchi_words.newton(X[drawn], y[drawn], np.ones(drawn.size, int)), rel=1e-6)


def test_two_rounds_find_large_coordinates_and_ask_about_them_only():
    rng = np.random.default_rng(2)
    x = rng.choice(np.array([-1, 1], np.int8), (40_000, 20))
    x[:, 3] = 1
    estimate = duchi_sparse.two_rounds(x, rng)
    assert np.flatnonzero(estimate).tolist() == [3]
    assert estimate[3] == pytest.approx(1, abs=0.05)
    assert not duchi_sparse.two_rounds(x[:10], rng).any()


def test_the_published_cube_is_not_private_for_even_dimensions():
    for d in (1, 3, 5):
        assert duchi_theory.published_cube_loss(d, Fraction(3)) == pytest.approx(math.log(3))
    for d in (2, 4, 6):
        assert duchi_theory.published_cube_loss(d, Fraction(3)) == pytest.approx(math.log(4))


def test_densities_by_every_method():
    rows = duchi_densities.error_rows(quick=True)
    errors = {(epsilon, n, method): error for epsilon, n, method, _, error in rows}
    for epsilon, n, method in errors:
        assert errors[epsilon, n, "one-frequency"] <= errors[epsilon, n, method]
    assert duchi_densities.compute(quick=True).text.count("\n| --- |") == 3
