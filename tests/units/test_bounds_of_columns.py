"""One convention for the bounds of several columns: a pair, one pair for each column, or a mapping by name."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64
from numpy.testing import assert_array_equal

import dpfast as dpf
from dpfast.core import checks
from tests.untouchable import Untouchable

pytestmark = pytest.mark.kernel

RNG = np.random.default_rng(0)
X = RNG.uniform([0, 0, -5], [1, 9, 5], (300, 3))
Y = RNG.uniform(-1, 1, 300)
PAIRS = [(0, 1), (0, 9), (-5, 5)]
FUNCTIONS = {
    "mean": lambda x, bounds: dpf.mean(x, bounds=bounds, epsilon=1.0, rng=PCG64(1)),
    "sum": lambda x, bounds: dpf.sum(x, bounds=bounds, epsilon=1.0, rng=PCG64(1)),
    "robust_mean": lambda x, bounds: dpf.robust_mean(x, bounds=bounds, epsilon=1.0, rng=PCG64(1)),
    "histogram": lambda x, bounds: dpf.histogram(x, 2, bounds=bounds, epsilon=1.0, rng=PCG64(1)).counts,
    "synthesize": lambda x, bounds: np.asarray(
        dpf.synthesize(x, 5, bounds=bounds, bins=2, method="perturbed", epsilon=1.0, rng=PCG64(1))
    ),
    "synthesize by a tree": lambda x, bounds: np.asarray(
        dpf.synthesize(x, 5, bounds=bounds, method="tree", epsilon=1.0, rng=PCG64(1))
    ),
    "linear_regression": lambda x, bounds: (
        dpf.linear_regression(x, Y, bounds=bounds, label_bound=1.0, epsilon=1.0, rng=PCG64(1)).coefficients
    ),
    "glm": lambda x, bounds: dpf.glm(x, Y > 0, bounds=bounds, epsilon=1.0, rng=PCG64(1)).coefficients,
}


@pytest.fixture(params=FUNCTIONS)
def release(request):
    return FUNCTIONS[request.param]


def test_all_forms_of_pairs(release):
    wanted = release(X, PAIRS)
    for bounds in (
        tuple(PAIRS),
        [list(pair) for pair in PAIRS],
        [np.array(pair) for pair in PAIRS],
        np.array(PAIRS),
        np.array(PAIRS, np.float32),
        [(Fraction(low), Fraction(high)) for low, high in PAIRS],
        np.column_stack([[0, 0, -5], [1, 9, 5]]),
        list(zip([0, 0, -5], [1, 9, 5], strict=True)),
    ):
        assert_array_equal(release(X, bounds), wanted)
    assert_array_equal(release(X, (-5, 9)), release(X, [(-5, 9)] * 3))


def test_two_pairs_are_those_of_two_columns(release):
    assert_array_equal(release(X[:, :2], ((0, 1), (0, 9))), release(X[:, :2], np.array([[0, 1], [0, 9]])))
    assert not np.array_equal(release(X[:, :2], ((0, 1), (0, 9))), release(X[:, :2], ((0, 9), (0, 1))))


@pytest.mark.host
@pytest.mark.filterwarnings("ignore:a missing cell counts as the lower bound")
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_names_of_frames(release, library):
    module = pytest.importorskip(library)
    columns = {"share": X[:, 0], "grade": X[:, 1], "change": X[:, 2]}
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    wanted = release(X, PAIRS)
    named = {"change": (-5, 5), "share": [0, 1], "grade": np.array([0, 9])}
    assert_array_equal(release(frame, named), wanted)
    assert_array_equal(release(frame, PAIRS), wanted)
    for other in ({"share": (0, 1)}, {**named, "pay": (0, 1)}, {"Share": (0, 1), "grade": (0, 9), "change": (-5, 5)}):
        with pytest.raises(ValueError, match="bounds must name each column once, share, grade, change, not"):
            release(frame, other)


@pytest.mark.host
@pytest.mark.filterwarnings("ignore:a missing cell counts as the lower bound")
def test_names_in_chunks():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    named = dict(zip("abc", PAIRS, strict=True))
    pieces = dpf.Chunks([frame[:100], frame[100:]])
    for name in ("mean", "sum", "robust_mean", "histogram"):
        assert_array_equal(FUNCTIONS[name](pieces, named), FUNCTIONS[name](X, PAIRS))
    for records in (
        dpf.Chunks([(frame[:100], Y[:100]), (frame[100:], Y[100:])]),
        dpf.Chunks([frame.assign(y=Y)]),
    ):
        options = {"label_bound": 1.0, "epsilon": 1.0}
        fit, wanted = (
            dpf.linear_regression(*given, bounds=bounds, rng=PCG64(1), **options)
            for given, bounds in (((records,), named), ((X, Y), PAIRS))
        )
        assert_array_equal(fit.coefficients, wanted.coefficients)
    numbered = frame.set_axis([1, 2, 3], axis=1)
    bounds = dict(zip((1, 2, 3), PAIRS, strict=True))
    assert_array_equal(FUNCTIONS["mean"](numbered, bounds), FUNCTIONS["mean"](X, PAIRS))


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (([0, 0, -5], [1, 9, 5]), r"one pair for each column: .* write list\(zip\(lowers, uppers\)\)"),
        (np.array([[0, 0, -5], [1, 9, 5]]), r"write list\(zip\(lowers, uppers\)\)"),
        ((0, [1, 9, 5]), r"write list\(zip\(lowers, uppers\)\)"),
        (([0], [1]), r"write list\(zip\(lowers, uppers\)\)"),
        (([0, 0], [1, 9]), r"lower must be below upper in bounds of column 0, .* list\(zip\(lowers, uppers\)\)"),
        ([(0, 1), (9, 0), (-5, 5)], "lower must be below upper in bounds of column 1, not lower=9, upper=0"),
        ([(0, 1), (0, 9, 1), (-5, 5)], "one pair for each column"),
        ([(0, 1), 3, (-5, 5)], "one pair for each column"),
        ((0, 1, 2), r"bounds must be a pair \(lower, upper\), .* not 3 numbers"),
        ([], "not 0 numbers"),
        (3.0, "one pair for each column.* not 3.0"),
        ("private", "not 'private'"),
        ({0, 1}, "one pair for each column"),
        (zip([0], [1], strict=True), "one pair for each column"),
        (np.array(3.0), "one pair for each column"),
        ({"a": (0, 1)}, r"bounds by name need a frame, .*\[\(lower, upper\), ...\]"),
        ([(0, 1)] * 2, "2"),
        ([(0, 1)] * 4, "4"),
    ],
)
def test_anything_else_is_refused(release, bounds, message):
    with pytest.raises(ValueError, match=message):
        release(X, bounds)


def test_ends_are_numbers(release):
    for bounds in ([((0, 1), (0, 1))], [("a", 1), (0, 9), (-5, 5)], [(0, 1), (None, 9), (-5, 5)], (False, True)):
        with pytest.raises(TypeError, match=r"the lower end of bounds.* must be a real number"):
            release(X, bounds)


def test_bounds_are_read_once():
    """A sequence whose numbers change between two readings."""

    class Changing(list):
        reads = 0

        def __iter__(self):
            self.reads += 1
            return iter([0.0, 1.0] if self.reads == 1 else [0.0, 100.0])

    assert checks.bounds_of([Changing([0, 1]), Changing([0, 1])]) == ((0.0, 1.0), (0.0, 1.0))
    assert checks.bounds_of({"a": Changing([0, 1])}, lambda: ["a"]) == ((0.0, 1.0),)


def test_no_record_is_read_for_bad_bounds():
    for call in (
        lambda x, bounds: dpf.robust_mean(x, bounds=bounds, epsilon=1.0),
        lambda x, bounds: dpf.linear_regression(x, x, bounds=bounds, label_bound=1.0, epsilon=1.0),
        lambda x, bounds: dpf.glm(x, x, bounds=bounds, epsilon=1.0),
        lambda x, bounds: dpf.histogram(x, 2, bounds=bounds, epsilon=1.0),
    ):
        with dpf.Ledger(1.0) as ledger, pytest.raises(ValueError, match="one pair for each column"):
            call(Untouchable(), (0, 1, 2))
        assert not ledger.charges


@pytest.mark.parametrize("method", ["blocks", "sums"])
def test_parameters(method):
    x = np.random.default_rng(0).beta(2, 3, 2000)
    options = {"epsilon": 5.0, "method": method}
    named, listed = (
        dpf.mle(x, "beta", bounds=bounds, rng=PCG64(1), **options)
        for bounds in ({"a": (0.5, 9), "b": (0.5, 9)}, (("a", (0.5, 9)), ("b", [0.5, 9])))
    )
    assert_array_equal(named, listed)
    assert dpf.SampleAndAggregate("normal", bounds=[(0, 5), (0.1, 3)], epsilon=1.0).box.names == ("mean", "sd")
    with pytest.raises(ValueError, match="bounds must be one pair, or one for each parameter, a, not 3; a mapping"):
        dpf.mle(x, "beta", bounds=[(0.5, 9)] * 3, **options)
    assert_array_equal(named, dpf.mle(x, "beta", bounds=[(0.5, 9), (0.5, 9)], rng=PCG64(1), **options))


def test_coefficients_of_a_regression():
    rows, labels = X[:, :2], Y > 0
    mechanism = dpf.SampleAndAggregate(
        dpf.families.LogisticRegression(2), bounds=[(-1, 1), (-2, 2), (-3, 3)], epsilon=1.0
    )
    assert [pair for _, pair in mechanism.bounds] == [(-1, 1), (-2, 2), (-3, 3)]
    assert mechanism == dpf.SampleAndAggregate(
        dpf.families.LogisticRegression(2), bounds=dict(mechanism.bounds), epsilon=1.0
    )
    assert mechanism((rows, labels)).shape == (3,)
