"""Measurements in OpenDP: releases, guarantees and refusals."""

import math
import threading
from fractions import Fraction

import numpy as np
import pytest

import dpfast as dpf
from tests.statistical import chi_square_rejects

dp = pytest.importorskip("opendp.prelude")
adapter = pytest.importorskip("dpfast.opendp")
dp.enable_features("contrib", "honest-but-curious")

X = np.random.default_rng(0).normal(50, 10, 1000)
ROWS = np.random.default_rng(1).normal(5, 1, (1000, 3))
BOUNDS = {"bounds": (0, 100)}
CHANGE, SYMMETRIC = dp.change_one_distance(), dp.symmetric_distance()
SIZED = adapter.array_domain(1000)

SCALARS = {
    "mean": (adapter.make_mean, {}, 50),
    "median": (adapter.make_median, {}, 50),
    "quantile": (adapter.make_quantile, {"q": 0.9}, 62.8),
    "trimmed": (adapter.make_trimmed_mean, {"trim": 0.1}, 50),
}


@pytest.mark.parametrize("name", SCALARS)
def test_scalars(name):
    make, options, expected = SCALARS[name]
    measurement = make(SIZED, CHANGE, 2.0, **options, **BOUNDS)
    release = measurement(X)
    assert type(release) is float
    assert abs(release - expected) < 5
    assert [measurement.map(d) for d in (0, 1, 7)] == [0.0, 2.0, 14.0]
    assert measurement.check(1, 2.0)
    assert not measurement.check(1, math.nextafter(2.0, 0.0))


def test_vectors():
    release = adapter.make_quantiles(SIZED, CHANGE, 2.0, qs=[0.25, 0.75], **BOUNDS)(X)
    assert np.abs(release - np.quantile(X, [0.25, 0.75])).max() < 5
    for domain in (adapter.array_domain(1000, columns=3), dp.numpy.array2_domain(num_columns=3, size=1000, T=float)):
        robust = adapter.make_robust_mean(domain, CHANGE, 2.0, bounds=(0, 10))
        assert np.abs(robust(ROWS) - 5).max() < 1
        grids = [dpf.Grid(0, 10), dpf.Grid(0, 20), dpf.Grid(0, 30)]
        assert adapter.make_robust_mean(domain, CHANGE, 2.0, grid=grids)(ROWS).shape == (3,)
    histogram = adapter.make_histogram(SIZED, SYMMETRIC, 2.0, bins=10, **BOUNDS)
    assert abs(histogram(X).counts.sum() - 1000) < 50
    assert [histogram.map(d) for d in range(4)] == [0.0, 0.0, 2.0, 2.0]


def test_scores_are_not_records():
    with pytest.raises(TypeError, match="takes scores"):
        adapter.make_measurement(SIZED, CHANGE, dpf.Selection(epsilon=1.0))


def test_what_depends_on_the_order_of_records_takes_hamming_distance_only():
    """The other distances ignore order: at distance 0 the releases have another law."""
    mechanism = dpf.SampleAndAggregate("exponential", bounds=(0.001, 1.0), epsilon=1.0, blocks=4)
    as_they_come, sorted_records = (mechanism.law(x) for x in (X, np.sort(X)))
    assert as_they_come.center != sorted_records.center
    assert mechanism.ordered
    for metric in (CHANGE, SYMMETRIC, dp.insert_delete_distance()):
        with pytest.raises(ValueError, match="input_metric must be one of HammingDistance, not"):
            adapter.make_measurement(SIZED, metric, mechanism)
    measurement = adapter.make_measurement(SIZED, dp.hamming_distance(), mechanism)
    assert measurement.map(2) == 2.0
    assert isinstance(measurement(X), float)


class TestDomains:
    @pytest.mark.parametrize(
        "domain",
        [
            SIZED,
            adapter.array_domain(1000, dtype=None),
            dp.numpy.arrayd_domain(shape=(1000,), T="f64"),
            dp.vector_domain(dp.atom_domain(T=float), size=1000),
        ],
        ids=str,
    )
    def test_one_dimension(self, domain):
        measurement = adapter.make_median(domain, CHANGE, 2.0, **BOUNDS)
        assert abs(measurement(X.tolist() if "Vector" in str(domain) else X) - 50) < 5

    def test_lists_hold_missing_records(self):
        domain = dp.vector_domain(dp.atom_domain(T=float, nan=True), size=3)
        grid = dpf.Grid(0, 10, step=1, missing=7)
        assert adapter.make_median(domain, CHANGE, 500.0, grid=grid)([math.nan] * 3) == 7

    def test_missing_records_are_left_out_without_bounds(self):
        domain = dp.vector_domain(dp.atom_domain(T=float, nan=True), size=4000)
        x = [math.nan, 40.0, 50.0, 60.0] * 1000
        assert adapter.make_median(domain, CHANGE, 2.0)(x) == 50.0

    @pytest.mark.parametrize("dtype", [np.float64, np.int16])
    def test_masked_records_are_missing(self, dtype):
        masked = np.ma.array(np.full(1000, 90, dtype), mask=np.arange(1000) < 900)
        grid = dpf.Grid(0, 100, step=1, missing=7)
        for domain in (adapter.array_domain(1000, dtype=dtype), adapter.array_domain(1000, dtype=None)):
            assert adapter.make_median(domain, CHANGE, 2.0, grid=grid)(masked) == 7
            assert adapter.make_median(domain, CHANGE, 2.0, grid=grid)(masked.data) == 90
        rows = np.ma.array(np.full((1000, 3), 9.0), mask=np.arange(3000).reshape(1000, 3) % 10 > 0)
        for domain in (
            adapter.array_domain(1000, columns=3),
            dp.numpy.array2_domain(num_columns=3, size=1000, T=float),
        ):
            assert (adapter.make_robust_mean(domain, CHANGE, 5.0, bounds=(0, 10))(rows) < 1).all()

    def test_integers(self):
        domain = adapter.array_domain(1000, dtype=np.int16)
        median = adapter.make_median(domain, CHANGE, 0.01, **BOUNDS)
        assert all(median(X.astype(np.int16)).is_integer() for _ in range(20))

    @pytest.mark.parametrize(
        "x",
        [
            X[:999],
            np.append(X, 0.0),
            X.astype(np.float32),
            X[None],
            X.astype(object),
            X.astype(str),
            "secret",
            None,
            X.tolist()[:-1],
        ],
        ids=lambda x: f"{type(x).__name__}{getattr(x, 'shape', '')}{getattr(x, 'dtype', '')}",
    )
    def test_data_that_are_not_in_the_domain(self, x):
        measurement = adapter.make_median(SIZED, CHANGE, 1.0, **BOUNDS)
        with pytest.raises((dp.OpenDPException, TypeError)) as caught:
            measurement(x)
        if isinstance(caught.value, dp.OpenDPException):
            assert "not in the input domain: they must be an array of n=1000, dtype=float64" in str(caught.value)
        for secret in ("999", "1001", "secret", repr(X[0])):
            assert secret not in str(caught.value)

    def test_equal_by_parameters(self):
        assert str(adapter.array_domain(5)) == str(adapter.array_domain(5))
        assert str(adapter.array_domain(5)) != str(adapter.array_domain(6))
        assert SIZED.member(X)
        assert not SIZED.member(X[1:])

    @pytest.mark.parametrize(
        ("domain", "metric", "error", "message"),
        [
            (adapter.array_domain(), CHANGE, ValueError, "must have a size"),
            (dp.vector_domain(dp.atom_domain(T=float)), CHANGE, ValueError, "must have a size"),
            (dp.atom_domain(T=float), CHANGE, TypeError, "input_domain must be an array_domain"),
            (dp.user_domain("other", lambda x: True), CHANGE, TypeError, "input_domain must be an array_domain"),
            (SIZED, dp.absolute_distance(T=float), ValueError, "input_metric must be one of ChangeOneDistance"),
        ],
    )
    def test_spaces_without_the_public_parameters(self, domain, metric, error, message):
        with pytest.raises(error, match=message):
            adapter.make_median(domain, metric, 1.0, **BOUNDS)

    @pytest.mark.parametrize("options", [{}, {"bounds": (0, 1), "grid": dpf.Grid(0, 1)}])
    def test_bounds_are_required(self, options):
        with pytest.raises(TypeError, match="give either bounds"):
            adapter.make_mean(SIZED, CHANGE, 1.0, **options)

    def test_quantiles_need_no_bounds(self):
        with pytest.raises(TypeError, match="give either bounds"):
            adapter.make_median(SIZED, CHANGE, 1.0, bounds=(0, 1), grid=dpf.Grid(0, 1))
        median, exact = adapter.make_median(SIZED, CHANGE, 1e4), np.sort(X)[(len(X) + 1) // 2 - 1]
        assert median(X) == pytest.approx(exact, rel=1e-6)
        assert adapter.make_quantiles(SIZED, CHANGE, 1e4, qs=[0.5])(X) == pytest.approx([exact], rel=1e-6)
        integers = adapter.array_domain(len(X), dtype=np.int64)
        assert adapter.make_quantile(integers, CHANGE, 1e-3, q=0.5)(X.astype(np.int64)) % 1 == 0

    def test_wrong_parameters(self):
        with pytest.raises(TypeError, match="n must be an integer"):
            adapter.array_domain(1.5)
        with pytest.raises(TypeError, match="dtype must be numeric"):
            adapter.array_domain(5, dtype=str)
        with pytest.raises(TypeError, match=r"mechanism must be a dpfast\.Mechanism"):
            adapter.make_measurement(SIZED, CHANGE, dpf.median)
        with pytest.raises(ValueError, match="epsilon must be positive"):
            adapter.make_median(SIZED, CHANGE, 0.0, **BOUNDS)


class TestMaps:
    METRICS = (CHANGE, dp.hamming_distance(), SYMMETRIC, dp.insert_delete_distance())

    @pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 1e-300, 700.0])
    @pytest.mark.parametrize("metric", METRICS, ids=str)
    def test_rounded_up_and_monotone(self, metric, epsilon):
        measurement = adapter.make_median(SIZED, metric, epsilon, **BOUNDS)
        pairs = "Symmetric" in str(metric) or "Insert" in str(metric)
        losses = [measurement.map(d) for d in (0, 1, 2, 3, 10, 1000, 2**31, 2**32 - 1)]
        assert losses == sorted(losses)
        for d, loss in zip((0, 1, 2, 3, 10, 1000, 2**31, 2**32 - 1), losses, strict=True):
            exact = (d // 2 if pairs else d) * Fraction(epsilon)
            assert Fraction(loss) >= exact
            assert loss == 0 or Fraction(math.nextafter(loss, 0.0)) < exact

    def test_add_remove(self):
        for domain in (adapter.array_domain(), SIZED):
            histogram = adapter.make_histogram(domain, SYMMETRIC, 1.0, bins=4, neighbors="add-remove", **BOUNDS)
            assert [histogram.map(d) for d in range(4)] == [0.0, 1.0, 2.0, 3.0]
        histogram = adapter.make_histogram(adapter.array_domain(), CHANGE, 1.0, bins=4, **BOUNDS)
        assert [histogram.map(d) for d in range(3)] == [0.0, 2.0, 4.0]
        assert histogram(X[:17]).counts.shape == histogram(X[:0]).counts.shape == (4,)

    def test_approximate(self):
        grid = dpf.Grid(0, 100)
        smooth = dpf.SmoothSensitivity(dpf.statistics.Median(), grid=grid, epsilon=1.0, delta=1e-6)
        measurement = adapter.make_measurement(SIZED, CHANGE, smooth)
        assert "Approximate" in str(measurement.output_measure.type)
        for d in (0, 1, 3):
            guarantee = smooth.privacy_map(d)
            assert measurement.map(d) == (guarantee.epsilon, guarantee.delta)
        assert 0 <= measurement(X) <= 100

    def test_local_randomisers_are_refused(self):
        local = dpf.local.Interval(1.0, bounds=(0, 1))
        with pytest.raises((TypeError, ValueError), match=r"mechanism must be|is for one record"):
            adapter.make_measurement(SIZED, CHANGE, local)


class TestOpenDP:
    def test_context(self):
        adapter.register()
        adapter.register()
        context = dp.Context.compositor(
            data=X,
            privacy_unit=dp.unit_of(changes=1),
            privacy_loss=dp.loss_of(epsilon=2.0),
            split_evenly_over=2,
            domain=SIZED,
        )
        query = context.query().dpfast_quantile(q=0.5, bounds=(0, 100))
        assert query.param() == 1.0  # from half of the budget
        for _ in range(2):
            assert abs(context.query().dpfast_mean(1.0, bounds=(0, 100)).release() - 50) < 10
        with pytest.raises(ValueError, match="allowance has been exhausted"):
            context.query()

    def test_composition(self):
        parts = [adapter.make_median(SIZED, CHANGE, epsilon, **BOUNDS) for epsilon in (0.5, 0.25)]
        both = dp.c.make_composition(parts)
        assert both.map(2) == 1.5
        assert len(both(X)) == 2

    def test_threads(self):
        measurement, out = adapter.make_median(SIZED, CHANGE, 0.01, **BOUNDS), []
        threads = [threading.Thread(target=lambda: out.append([measurement(X) for _ in range(50)])) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({value for part in out for value in part}) > 390  # of 400 on 2**32 points: no two threads alike

    def test_the_law_is_that_of_the_mechanism(self):
        x, grid = np.array([0.0, 1.0, 3.0]), dpf.Grid(0, 4, step=1)
        measurement = adapter.make_median(adapter.array_domain(3), CHANGE, 1.0, grid=grid)
        counts = np.bincount([int(measurement(x)) for _ in range(4000)], minlength=5)
        law = dpf.InverseSensitivity(dpf.statistics.Median(), grid=grid, epsilon=1.0).law(x)
        assert not chi_square_rejects(counts, law.pmf(np.arange(5)))
        other = dpf.InverseSensitivity(dpf.statistics.Median(), grid=grid, epsilon=2.0).law(x)
        assert chi_square_rejects(counts, other.pmf(np.arange(5)))
