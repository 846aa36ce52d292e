"""Methods of robust means: whitened columns, and the choice among methods by public numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64, default_rng

import dpfast as dpf
from dpfast import Chunks, Grid, Ledger, Privacy
from dpfast.choosing import gainful
from dpfast.robust.choice import by_errors
from dpfast.robust.depth import TukeyDepth
from dpfast.robust.whitened import Whitened
from dpfast.statistics import Median, TrimmedMean
from dpfast.theory import depth_error, medians_error
from tests.cases import every
from tests.untouchable import Untouchable

GRID = Grid(-1000, 1000)


def correlated(n, d, rho, seed):
    roots = np.linalg.cholesky(np.full((d, d), rho) + (1 - rho) * np.eye(d))
    return default_rng(seed).normal(size=(n, d)) @ roots.T, np.linalg.inv(roots)


def error(release, inverse):
    return float(np.linalg.norm(inverse @ release))


def compared(n, grids, delta=0.0):
    return by_errors(Median(), n, grids, 1.0, delta)


class TestWhitened:
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_gains_for_correlated_columns(self, delta):
        found = {}
        for seed in range(8):
            x, inverse = correlated(6000, 5, 0.9, seed)
            x = x * [1, 10, 0.01, 1, 1] + [0, 300, 0, 0, -500]
            for method in ("whitened", "boxes"):
                release = dpf.robust_mean(
                    x, bounds=(-1000, 1000), epsilon=1.0, delta=delta, method=method, rng=PCG64(seed)
                )
                standard = (release - [0, 300, 0, 0, -500]) / [1, 10, 0.01, 1, 1]
                found.setdefault(method, []).append(error(standard, inverse))
        assert np.mean(found["whitened"]) < 0.85 * np.mean(found["boxes"])
        assert np.mean(found["whitened"]) < 1.3 * medians_error(6000, 5, 0.5)

    @every("epsilon", [1e-3, 0.7, 30.0])
    @every("delta", [0.0, 1e-9, 0.1])
    def test_budgets_of_the_steps_add_up(self, epsilon, delta):
        plan = Whitened((GRID,) * 30, epsilon=epsilon, delta=delta)
        parts = [step.privacy for step in plan.steps]
        total = sum(Fraction(part.epsilon) for part in parts)
        assert Fraction(epsilon) * (1 - Fraction(1, 2**50)) <= total <= Fraction(epsilon)
        assert sum(Fraction(part.delta) for part in parts) <= Fraction(delta)
        assert plan.privacy == Privacy(epsilon, delta)
        assert len(plan.privacy_profile.parts) == 4

    def test_is_charged_once(self):
        x, _ = correlated(500, 3, 0.5, 0)
        with Ledger(1.0, 1e-5) as ledger:
            dpf.robust_mean(x, bounds=(-10, 10), epsilon=1.0, delta=1e-6, method="whitened")
        [charge] = ledger.charges
        assert charge.profile.privacy == Privacy(1.0, 1e-6)

    def test_is_explained(self):
        texts = []
        dpf.robust_mean(np.zeros((9, 4)), bounds=(-1, 1), epsilon=1.0, method="whitened", explain=texts.append)
        [text] = texts
        assert text.startswith("Release of the coordinate-wise median of 4 whitened columns: epsilon = 1 (pure")
        assert "12.5 % is for locations, 12.5 % for scales, 25 % for the covariance and 50 % for a NestedBoxes" in text
        with pytest.raises(TypeError, match="explain must be True, False or a function"):
            dpf.robust_mean(np.zeros((9, 4)), bounds=(-1, 1), epsilon=1.0, method="whitened", explain=3)

    @every("fill", [0.0, 1e300, math.nan, -math.inf])
    @every("n", [1, 2, 300])
    def test_degenerate_records(self, fill, n):
        """Equal records, collinear ones, and bounds whose products overflow."""
        line = np.arange(float(n))[:, None] * [1, 1e300, -2]
        line[::3] = fill
        for bounds in ((-1.0, 99.0), (-8e307, 8e307)):
            for x in (np.full((n, 3), fill), line):
                release = dpf.robust_mean(x, bounds=bounds, epsilon=1.0, method="whitened", rng=PCG64(1))
                assert release.shape == (3,)
                assert np.all(np.abs(release / bounds[1]) <= 1 + 1e-6)

    def test_the_least_variance_is_public(self):
        plan = Whitened((GRID,) * 4, epsilon=1.0)
        assert plan.least_variance(10) == 1.0
        assert 0 < plan.least_variance(10**6) < 1e-3
        assert plan.least_variance(10**9) == 2.0**-20


class TestChoice:
    @every(
        "n, d, delta, expected",
        [
            (1000, 2, 0.0, "depth"),
            (1000, 2, 1e-6, "depth"),
            (500, 10, 0.0, "boxes"),
            (20_000, 10, 0.0, "whitened"),
            (20_000, 1, 0.0, "boxes"),
            (3000, 100, 1e-6, "columns"),
        ],
    )
    def test_methods(self, n, d, delta, expected):
        choice = compared(n, (GRID,) * d, delta)
        assert choice.method == expected
        assert f"Taken: {expected}, because" in str(choice)
        assert {row[0] for row in choice.table[1:]} == {"boxes", "columns", "depth", "whitened"}
        assert set(choice.known.rows) == set(choice.candidates)

    def test_three_columns_need_a_grid_that_is_coarse_already(self):
        assert "256 points" in compared(1000, (GRID,) * 3).limits["depth"]
        assert compared(1000, (Grid(0, 200, step=1),) * 3).method == "depth"
        assert "3,000 records" in compared(3001, (Grid(0, 200, step=1),) * 3).limits["depth"]

    def test_the_default_stays_unless_five_percent_are_gained(self):
        for gain, method in ((0.96, "boxes"), (0.94, "depth")):
            assert gainful(["boxes", "depth"], {"boxes": 1.0, "depth": gain}.__getitem__, "boxes") == method

    def test_by_noise(self):
        """Without an assumption a delta decides between boxes and columns."""
        for d, method in ((3, "boxes"), (30, "columns")):
            texts = []
            options = {"epsilon": 1.0, "delta": 1e-6, "explain": texts.append}
            dpf.robust_mean(np.zeros((50, d)), bounds=(-1, 1), **options)
            assert f"Taken: {method}, because it has less noise for {d} columns" in texts[0]

    def test_is_the_same_for_all_data(self):
        texts = set()
        for x in (np.zeros((900, 2)), np.full((900, 2), math.nan), correlated(900, 2, 0.99, 1)[0], np.eye(900, 2)):
            dpf.robust_mean(x, bounds=(-5, 5), epsilon=1.0, distribution="normal", explain=texts.add, rng=PCG64(1))
        [text] = texts
        assert "Taken: depth, because its expected error is the least" in text

    @pytest.mark.parametrize(
        ("d", "n", "least", "most"), [(2, 1000, 0.9, 1.1), pytest.param(3, 200, 0.85, 1.15, marks=pytest.mark.slow)]
    )
    def test_errors_of_depths(self, d, n, least, most):
        made = TukeyDepth(grid=Grid(-4, 4, step=2.0**-10 if d == 2 else 2.0**-4), dimension=d, epsilon=1.0)
        rng = default_rng(d)
        squares = [np.sum(made(rng.normal(size=(n, d)), rng=rng) ** 2) for _ in range(300 if d == 2 else 150)]
        assert least < math.sqrt(np.mean(squares)) / depth_error(n, d, 1.0) < most
        assert made.error(n, deviation=2.0) == 2 * depth_error(n, d, 1.0)

    @pytest.mark.parametrize("rho", [0.0, 0.9])
    def test_errors_of_medians(self, rho):
        n, d, squares = 2000, 4, []
        made = dpf.NestedBoxes(grid=GRID, epsilon=1.0)
        for seed in range(200):
            x, inverse = correlated(n, d, rho, seed)
            squares.append(error(made(x, rng=PCG64(seed)), inverse) ** 2)
        assert 0.9 < math.sqrt(np.mean(squares)) / medians_error(n, d, 1.0, correlation=rho) < 1.1


class TestParameters:
    def test_methods_without_their_options(self):
        x = np.zeros((9, 2))
        for options in ({"radius": 1.0}, {"scale": 2.0}, {"transform": np.eye(2)}):
            with pytest.raises(TypeError, match="radius, scale and transform are for"):
                dpf.robust_mean(x, bounds=(0, 1), epsilon=1.0, method="depth", **options)
        for options in ({"method": "depth"}, {"distribution": "normal"}):
            with pytest.raises(TypeError, match="statistic must be Median"):
                dpf.robust_mean(x, bounds=(0, 1), epsilon=1.0, statistic=TrimmedMean(0.1), **options)
            with pytest.raises(TypeError, match="are for bounds= or grid="):
                dpf.robust_mean(x, step=1.0, width=1.0, delta=0.1, epsilon=1.0, **options)
        with pytest.raises(ValueError, match="distribution must be"):
            dpf.robust_mean(x, bounds=(0, 1), epsilon=1.0, distribution="cauchy")
        with pytest.raises(ValueError, match="dimension must be 2 or 3, not 4"):
            dpf.robust_mean(np.zeros((9, 4)), bounds=(0, 1), epsilon=1.0, method="depth")
        for options in ({"method": "whitened"}, {"distribution": "normal"}):
            with pytest.raises(TypeError, match="give an array instead of Chunks"):
                dpf.robust_mean(Chunks([x]), bounds=(0, 1), epsilon=1.0, **options)
            with pytest.raises(ValueError, match="X must have 3 columns, like grid, not 2"):
                dpf.robust_mean(x, bounds=[(0, 1)] * 3, epsilon=1.0, **options)
        with pytest.raises(ValueError, match="missing must be a number or 'lower'"):
            dpf.robust_mean(x, bounds=(0, 1), epsilon=1.0, method="whitened", missing="half")

    def test_depth_takes_chunks_and_other_statistics_are_whitened(self):
        x, _ = correlated(400, 2, 0.5, 3)
        whole = dpf.robust_mean(x, bounds=(-8, 8), epsilon=1.0, method="depth", rng=PCG64(1))
        pieces = Chunks([x[:100], x[100:]])
        parts = dpf.robust_mean(pieces, bounds=(-8, 8), epsilon=1.0, method="depth", rng=PCG64(1))
        np.testing.assert_array_equal(whole, parts)
        options = {"bounds": (-8, 8), "epsilon": 50.0, "statistic": TrimmedMean(0.1), "method": "whitened"}
        assert np.abs(dpf.robust_mean(x, rng=PCG64(2), **options)).max() < 0.3

    def test_checks_come_before_records(self):
        with pytest.raises(ValueError, match="beyond the range of float64"):
            Whitened((Grid(-1e308, 1e308),), epsilon=1.0)
        with pytest.raises(TypeError, match="rng"):
            Whitened((GRID,) * 2, epsilon=1.0)(Untouchable(), rng="no")
