"""The choice of a method for synthetic records of one column, and its explanation."""

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf


@pytest.mark.parametrize(("n", "method"), [(199, "perturbed"), (201, "quantiles")])
def test_the_choice_is_that_of_the_release(n, method):
    choice = dpf.explain("synthesize", 9, n=n, bounds=(0, 1000), epsilon=1.0)
    assert choice.method == method
    assert [row[0] for row in choice.table[1:]] == ["quantiles", "perturbed"]
    x, public = np.linspace(0, 1000, n), {"bounds": (0, 1000), "epsilon": 1.0}
    made = [dpf.synthesize(x, 9, method=m, rng=PCG64(1), **public) for m in ("auto", method)]
    assert np.array_equal(*made)
    texts = []
    dpf.synthesize(x, 9, explain=texts.append, rng=PCG64(1), **public)
    assert texts[0] == choice.comparison
    assert texts[1] == choice.mechanism.explanation(n)


def test_the_choice_does_not_depend_on_data():
    found = set()
    for x in (np.zeros(300), np.full(300, np.nan), np.linspace(-1e9, 1e9, 300)):
        texts = []
        dpf.synthesize(x, 5, bounds=(0, 9), epsilon=1.0, explain=texts.append)
        found.add(tuple(texts))
    assert len(found) == 1


def test_other_methods_explain_themselves():
    x, public = np.linspace(0, 9, 300), {"bounds": (0, 9), "epsilon": 1.0}
    for method, words in {
        "perturbed": "PerturbedHistogram",
        "smoothed": "SmoothedHistogram",
        "ks": "KolmogorovSmirnov",
        "series": "SeriesCoefficients",
        "tree": "marginals of 1 columns",
    }.items():
        texts = []
        rows = x[:, None] if method == "tree" else x
        dpf.synthesize(rows, 5, method=method, explain=texts.append, **public)
        assert len(texts) == 1
        assert words in texts[0], texts[0]


def test_without_bounds_and_with_several_columns():
    choice = dpf.explain(dpf.synthesize, 9, n=100, epsilon=1.0)
    assert choice.method == "quantiles"
    assert "no bounds" in choice.reason
    with pytest.raises(TypeError, match="one column"):
        dpf.explain("synthesize", 9, n=100, bounds=[(0, 1), (0, 2)], epsilon=1.0)
    with pytest.raises(ValueError, match="n must be at least 1"):
        dpf.explain("synthesize", 9, n=0, bounds=(0, 1), epsilon=1.0)
