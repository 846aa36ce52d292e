"""The experiments on pay and on shares run without data files and agree with the paper."""

import numpy as np
import pytest

from bench.pages import local_densities, local_marginals, local_means


@pytest.fixture(autouse=True)
def no_files(monkeypatch, tmp_path):
    monkeypatch.setattr(local_marginals, "DATA", tmp_path)
    monkeypatch.setattr(local_means, "_PAY", tmp_path / "none")
    for rows in (local_marginals.rows, local_means.mean_rows, local_means.median_rows):
        rows.cache_clear()


def test_shares_of_the_hypercube_are_closer_than_those_of_laplace():
    errors = {}
    for name, d, n, method, mean, low, high in local_marginals.rows(quick=True):
        assert low <= mean <= high
        errors[name, d, n, method] = mean
    for name, d, n in {key[:3] for key in errors}:
        best = min(errors[name, d, n, "subset"], errors[name, d, n, "majority"])
        assert errors[name, d, n, "none"] < best < 0.6 * errors[name, d, n, "laplace"]
    assert {d for _, d, _, _ in errors} == {7, 27}


def test_estimates_of_shares_are_unbiased():
    x = np.repeat(np.array([[0, 1, 1]], np.uint8), 100_000, axis=0)
    for method in local_marginals.METHODS:
        found = local_marginals.estimate(x, method, np.random.default_rng(1))
        assert np.abs(found - [0, 1, 1]).max() < 0.15


def test_medians_by_descent_are_closer_than_naive_ones(monkeypatch):
    monkeypatch.setattr(local_means, "RADII", (4.0,))
    gaps = {name: mean for _, name, mean, *_ in local_means.median_rows(quick=True)}
    assert 0 < gaps["descent, averaging steps"] < gaps["naive"] / 10


def test_means_with_the_best_truncation_are_closer(monkeypatch):
    monkeypatch.setattr(local_means, "MOMENTS", (2.0,))
    monkeypatch.setattr(local_means, "MEAN_EPSILONS", (1.0,))
    errors = {variant: error for *_, variant, error in local_means.mean_rows(quick=True)}
    assert errors["best T, codebook"] < errors["as published"]


def test_sections_are_tables(monkeypatch):
    monkeypatch.setattr(local_means, "MOMENTS", (2.0,))
    monkeypatch.setattr(local_means, "RADII", (4.0,))
    page = local_means.section(quick=True)
    assert page.count("## ") == 2
    assert page.count("\n| --- |") == 3
    assert page.count("made-up pay") == 1
    assert local_marginals.section(quick=True).count("independent") == 4


def test_densities_by_every_method():
    rows = local_densities.error_rows(quick=True)
    errors = {(epsilon, n, method): error for epsilon, n, method, _, error in rows}
    for epsilon, n, method in errors:
        assert errors[epsilon, n, "one-frequency"] <= errors[epsilon, n, method]
    assert local_densities.section(quick=True).count("\n| --- |") == 3
