"""Errors of calls that look right say what to write instead."""

import datetime
import warnings

import numpy as np
import pytest
from scipy import sparse

import dpfast as dpf
from dpfast.statistics import Median
from tests.cases import every

X = np.random.default_rng(0).normal(50, 10, 1000)
MEDIAN = dpf.InverseSensitivity(Median(), grid=dpf.Grid(0, 100), epsilon=1.0)
FIND = r"dpfast\.bounds\(x, epsilon=\.\.\.\) finds bounds privately"
PASS = r"not median: pass such as dpfast\.InverseSensitivity\(dpfast\.statistics\.Median\(\)"


@every(
    "call, message",
    [
        (lambda: dpf.interval("mean", X, bounds="private", epsilon=1.0), FIND),
        (lambda: dpf.histogram(X, 3, bounds="private", epsilon=1.0), FIND),
        (lambda: dpf.density(X, bounds="private", epsilon=1.0), FIND),
        (lambda: dpf.synthesize(X, 3, bounds="private", epsilon=1.0), FIND),
        (lambda: dpf.count(np.array(["a", "b"]), epsilon=1.0), "counts text and other keys"),
        (lambda: dpf.count(X, epsilon=1.0, neighbors="replace-one"), "neighbors must be one of 'add-remove'"),
        (lambda: dpf.Chunks(X), r"use Chunks\.slices\(array\)"),
        (lambda: dpf.by_group(dpf.median, X, labels=np.zeros(1000, int)), PASS),
        (lambda: dpf.interval(dpf.median, X, epsilon=1.0), "must be a name, such as 'median'"),
        (lambda: dpf.marginals(dpf.Chunks([X]), {"a": (0, 1)}, epsilon=1.0), "x must be a whole table, not Chunks"),
        (lambda: dpf.by_group(MEDIAN, X, labels="sex"), r"pass a column, such as x\['sex'\]"),
        (lambda: dpf.by_group(MEDIAN, X, labels=np.full(1000, "a")), r"give keys=\[\.\.\.\], all public keys"),
        (lambda: dpf.median(np.full(9, np.datetime64("2020-01-01")), epsilon=1.0), "such as days since a public date"),
        (lambda: dpf.FloatGrid().sql("x"), r"use Grid\(lower, upper\)"),
        (lambda: dpf.Grid(0, 1, step=0.01), r"a power of two, such as 2\*\*-7, not 0\.01"),
        (lambda: dpf.histogram(X, [0, 50, 100], bounds=(0, 100), epsilon=1.0), r"as dpf\.Bins\(edges\)"),
        (lambda: dpf.quantile(X, 25, epsilon=1.0), "write 0.25 for 25 %"),
    ],
)
def test_the_message_has_a_remedy(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.host
def test_frames_and_what_is_not_in_memory():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame({"a": X, "b": X, "c": X})
    lazy = polars.from_pandas(frame).lazy()
    cases = [
        (lambda: dpf.median(frame, epsilon=1.0), r"pass one column, such as x\['a'\]"),
        (lambda: dpf.mean(frame, bounds={"a": (0, 1), "b": (0, 1)}, epsilon=1.0), r"pass x\[\['a', 'b'\]\]"),
        (lambda: dpf.median(lazy, epsilon=1.0), r"a lazy frame: pass x\.collect\(\)"),
        (lambda: dpf.marginals(lazy, {"a": (0, 1)}, epsilon=1.0), r"a lazy frame: pass x\.collect\(\)"),
        (lambda: dpf.median(frame["a"].astype("category"), epsilon=1.0), "convert it to numbers first"),
        (lambda: dpf.median(polars.Series([datetime.date(2020, 1, 1)] * 100), epsilon=1.0), "days since a public date"),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call, message in cases:
            with pytest.raises((TypeError, ValueError), match=message):
                call()
    import dpfast.polars

    assert dpfast.polars.Releases
    with pytest.raises(AttributeError, match=r"call dpfast\.huber with a Series"):
        lazy.select(polars.col("a").dpfast.huber(bounds=(0, 1), epsilon=1.0))


def test_sparse_arrays_name_their_dense_form():
    for matrix in (sparse.csr_matrix(np.eye(5)), sparse.coo_array(np.eye(5))):
        with pytest.raises(TypeError, match=r"a sparse array: pass [xX]\.toarray\(\)"):
            dpf.median(matrix, epsilon=1.0)


def test_words_of_other_functions_are_taken():
    assert 40 < dpf.median(X, bounds="private", epsilon=1.0) < 60
    low, high = dpf.quantile(X, [0.25, 0.75], bounds="private", epsilon=1.0)
    assert low < 50 < high
    assert abs(dpf.count(X, epsilon=1.0, neighbors="add-remove") - 1000) < 40


def test_counts_have_no_decimals_and_steps_no_empty_sentence():
    assert " 997" in repr(dpf.Estimate(1000.0, 997.0, 1003.0, 0.95, dpf.Privacy(1.0)))
    assert ".00" not in repr(dpf.Estimate(1000.0, 997.0, 1003.0, 0.95, dpf.Privacy(1.0)))
    assert "997.50" in repr(dpf.Estimate(1000.0, 997.5, 1003.0, 0.95, dpf.Privacy(1.0)))
    texts = []
    dpf.iqr(X, bounds=(0, 100), epsilon=1.0, neighbors="add-remove", explain=texts.append)
    assert "records.\n" in texts[0]
    assert ". ." not in texts[0]


def test_a_line_without_errors_has_one_column():
    line = dpf.theil_sen(X, 2 * X, epsilon=1.0)
    assert "nan" not in repr(line)
    assert "error" not in repr(line)
    assert "95 % low" in repr(dpf.theil_sen(X, 2 * X, epsilon=1.0, standard_error=True))


def test_keyed_releases_say_how_many_groups_have_few_records():
    mechanism = dpf.InverseSensitivity(Median(), grid=dpf.FloatGrid(), epsilon=1.0)
    with pytest.warns(dpf.UtilityWarning, match=r"1 of 2 groups have few records.*: 1 record is too few"):
        released = dpf.by_group(mechanism, X, labels=np.repeat(["a", "b"], [1, 999]), keys=["a", "b"])
    assert "few records in 1 of 2 groups" in repr(released)
