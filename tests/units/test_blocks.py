"""Fits of blocks of records: the fits, the law of nested boxes, the guarantee, and the error."""

import itertools
import math
import warnings
from functools import partial

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast.domains import Ball
from dpfast.regression import BlockFits
from dpfast.regression.blocks import block_fits
from dpfast.streaming import Labelled
from tests.cases import every

COARSE = dpf.Grid(-2, 2, step=1)
ROWS = dpf.Grid(-1, 1, step=1), dpf.Grid(-2, 2, step=1)


def small(epsilon=1.0, **options):
    """Slopes through the origin of single records: the quotients y / x."""
    given = {"blocks": 3, "intercept": False, "coefficient_grid": COARSE, **options}
    return BlockFits(Ball(1.0, step=0.5), epsilon=epsilon, **given)


def normal(n, d, noise, seed=1):
    rng = np.random.default_rng(seed)
    X, slopes = rng.normal(size=(n, d)), rng.normal(size=d)
    slopes /= np.linalg.norm(slopes)
    return X, 0.3 + X @ slopes + noise * rng.normal(size=n), slopes


class TestFits:
    @every("n, d, count, intercept", [(100, 2, 7, True), (99, 3, 11, False), (40, 1, 40, True), (10, 2, 3, True)])
    def test_fits_are_of_least_squares_of_each_block(self, n, d, count, intercept):
        X, y, _ = normal(n, d, 0.5)
        ball = Ball(3.0, center=0.5)
        found = block_fits(Labelled.of((X, y)), ball, count, intercept)
        rows = ball.encode(X) * (ball.step / ball.radius)
        A = np.column_stack([rows, np.ones(n)]) if intercept else rows
        for block, fit in enumerate(found):
            own = slice(block, None, count)
            if len(A[own]) >= A.shape[1]:
                np.testing.assert_allclose(fit, np.linalg.lstsq(A[own], y[own], rcond=None)[0], rtol=1e-5, atol=1e-5)

    def test_a_record_changes_one_fit(self):
        X, y, _ = normal(60, 2, 0.5)
        before = block_fits(Labelled.of((X, y)), Ball(2.0), 7, True)
        for place, row, label in ((0, np.inf, 1.0), (23, 1e300, -np.inf), (59, np.nan, np.nan), (8, -3.0, 1e308)):
            changed, labels = X.copy(), y.copy()
            changed[place], labels[place] = row, label
            after = block_fits(Labelled.of((changed, labels)), Ball(2.0), 7, True)
            assert np.isfinite(after).all()
            assert np.flatnonzero((before != after).any(axis=1)).tolist() == [place % 7]

    def test_bad_records_never_fail(self):
        for X, y in ((np.full((50, 3), np.nan), np.full(50, np.inf)), (np.zeros((50, 3)), np.full(50, 1e308))):
            release = BlockFits(Ball(1.0), epsilon=1.0, blocks=9)((X, y))
            assert release.shape == (4,)
            assert np.isfinite(release).all()


class TestGuarantee:
    @pytest.mark.parametrize("n", [2, 3, 4])
    def test_audit_verifies_the_law(self, n):
        """Also with two records in one block."""
        certificate = dpf.audit.verify(small(), n=n, values=3 if n < 4 else 2, grids=ROWS)
        assert certificate.holds
        assert certificate.epsilon > 0.5

    def test_audit_verifies_two_coefficients(self):
        made = small(2.0, intercept=True, coefficient_grid=dpf.Grid(-1, 1, step=1))
        assert dpf.audit.verify(made, n=3, values=2, grids=ROWS).holds

    def test_audit_rejects_blocks_that_share_records(self):
        class Twice(BlockFits):
            """Every record is in two blocks."""

            def law_of(self, summary):
                return super().law_of(np.repeat(summary, 2, axis=0))

        made = Twice(Ball(1.0, step=0.5), epsilon=1.0, blocks=3, intercept=False, coefficient_grid=COARSE)
        assert not dpf.audit.verify(made, n=3, values=3, grids=ROWS).holds

    def test_law_is_by_the_depth(self):
        """Every point's score is the greatest number of fits to replace, over the coordinates."""
        rng = np.random.default_rng(3)
        made = small(1.5, coefficient_grid=dpf.Grid(-4, 4, step=1), blocks=5)
        fits = rng.integers(-4, 5, (5, 2)).astype(float)
        law = made.law_of(fits)
        points = np.array(list(itertools.product(range(-4, 5), repeat=2)))
        ordered = np.sort(fits, axis=0)
        scores = np.zeros(len(points))
        for j in range(2):
            reach = np.stack([(ordered[2 - t, j], ordered[2 + t, j]) for t in range(3)])
            own = [next((t for t, (a, b) in enumerate(reach) if a <= point <= b), 3) for point in points[:, j]]
            scores = np.maximum(scores, own)
        weights = np.exp(-0.75 * scores)
        np.testing.assert_allclose(np.exp(law.logpmf(points + 4)), weights / weights.sum(), rtol=1e-9)

    def test_charges_and_forms(self):
        X, y, _ = normal(3000, 2, 0.5)
        with dpf.Ledger(4.0) as ledger:
            wanted = dpf.linear_regression(X, 1e7 * y, radius=4.0, epsilon=4.0, rng=PCG64(1))
        assert len(ledger.charges) == 1
        assert wanted.privacy == dpf.Privacy(4.0)
        for given in (dpf.Chunks([(X[:9], 1e7 * y[:9]), (X[9:], 1e7 * y[9:])]), dpf.Chunks([(X, 1e7 * y)])):
            found = dpf.linear_regression(given, radius=4.0, epsilon=4.0, rng=PCG64(1))
            np.testing.assert_array_equal(found.coefficients, wanted.coefficients)


class TestFit:
    @every("n, d, epsilon, scale", [(20_000, 3, 1.0, 1e6), (50_000, 5, 1.0, 1.0), (30_000, 5, 2.0, 1e-3)])
    def test_error_is_the_predicted_one(self, n, d, epsilon, scale):
        """Root mean square of 8 runs within 30 %, and at most 2.2 times that of least squares."""
        errors, exact = [], []
        for seed in range(8):
            X, y, slopes = normal(n, d, 0.5, seed)
            fit = dpf.linear_regression(X, scale * y, radius=math.sqrt(d) + 3, epsilon=epsilon, rng=PCG64(seed))
            errors.append(fit.coefficients / scale - slopes)
            exact.append(np.linalg.lstsq(np.column_stack([X, np.ones(n)]), y, rcond=None)[0][:d] - slopes)
        size = math.sqrt(np.mean(np.square(errors)))
        made = BlockFits(Ball(math.sqrt(d) + 3), epsilon=epsilon)
        assert size == pytest.approx(made.error(n, d, deviation=0.5), rel=0.3)
        assert size <= 2.2 * math.sqrt(np.mean(np.square(exact)))

    def test_bounds_of_columns(self):
        X, y, slopes = normal(50_000, 2, 0.1)
        given = X * [1, 100] + [0, 1000]
        fit = dpf.linear_regression(given, 5000 * y, bounds=[(-5, 5), (500, 1500)], epsilon=2.0)
        np.testing.assert_allclose(fit.coefficients * [1, 100] / 5000, slopes, atol=0.05)
        assert fit.predict([[0.0, 1000.0]])[0] == pytest.approx(1500, abs=100)
        assert np.isnan(fit.standard_errors).all()
        assert fit.covariance is None

    def test_too_few_records(self):
        X, y, _ = normal(500, 3, 0.5)
        with pytest.warns(dpf.UtilityWarning, match="500 records are too few for fits of blocks of 3 columns"):
            dpf.linear_regression(X, y, radius=3.0, epsilon=1.0)

    def test_blocks_of_too_few_records(self):
        made = BlockFits(Ball(3.0), epsilon=2.0, blocks=50_000)
        assert not made.useful(50_000, 2)
        assert made.useful(200_001, 2)
        [trap] = made.traps_for(50_000, 2)
        assert trap.category is dpf.UtilityWarning

    def test_every_release_from_too_few_records_warns_before_the_charge(self):
        made = BlockFits(Ball(3.0), epsilon=1.0)
        for n, d in ((50, 1), (50, 2), (2_500, 4)):  # the last are enough for one column
            X, y, _ = normal(n, d, 0.5)
            table, pair = np.column_stack([X, y]), (X, y)
            forms = [pair, table, Labelled.of(pair), dpf.Chunks([pair]), (X.tolist(), y.tolist()), table.tolist()]
            calls = [partial(made, form) for form in forms] + [partial(made.release, pair, size=2)]
            for call in [*calls, partial(dpf.linear_regression, X, y, radius=3.0, epsilon=1.0)]:
                with pytest.warns(dpf.UtilityWarning, match="too few for fits of blocks") as found:
                    call()
                assert len(found) == 1
                with dpf.Ledger(9.0) as ledger, warnings.catch_warnings():
                    warnings.simplefilter("error")
                    with pytest.raises(dpf.UtilityWarning):
                        call()
                assert not ledger.charges
        assert not made.plan(2_500).traps
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made(normal(20_000, 2, 0.5)[:2])

    def test_the_errors_that_a_caller_raises_for_do_not_depend_on_a_label(self):
        X, y, _ = normal(2_000, 2, 0.5)
        made = BlockFits(Ball(4.0), epsilon=2.0)
        for label in (0.0, 5e-324, 1e-310, 3e-308, 1e300, np.nan, -np.inf):
            y[0] = label
            with np.errstate(all="raise"):
                assert np.isfinite(made((X, y), rng=PCG64(1))).all()

    def test_parameters(self):
        X, y, _ = normal(20_000, 1, 0.5)
        for options, message in (
            ({"blocks": 0}, "blocks must be"),
            ({"blocks": "many"}, "blocks must be"),
            ({"coefficient_grid": 3}, "Grid"),
            ({"intercept": 1}, "intercept must be"),
        ):
            with pytest.raises((TypeError, ValueError), match=message):
                small(**options)
        with pytest.raises(TypeError, match=r"domain must be a dpfast.domains.Ball"):
            BlockFits(1.0, epsilon=1.0)
        with pytest.raises(TypeError, match="label_bound must be given for method='sums'"):
            dpf.linear_regression(X, y, radius=1.0, epsilon=1.0, method="sums")
        with pytest.raises(ValueError, match="label_center must be 0 without label_bound"):
            dpf.linear_regression(X, y, radius=1.0, epsilon=1.0, label_center=1.0)
        with pytest.raises(ValueError, match="X has no pieces"):
            BlockFits(Ball(1.0), epsilon=1.0).values_of(dpf.Chunks([]))
