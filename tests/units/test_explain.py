"""The text of ``explain=``: before data are read, from public numbers, at no cost."""

import numpy as np
import pytest

import dpfast as dpf
from tests.untouchable import Untouchable


class Sized(Untouchable):
    """Records of which only the number may be read."""

    def __len__(self):
        return 1000


EXPLAINED = {
    "mean": (
        lambda x, **o: dpf.mean(x, bounds=(0, 100), epsilon=0.5, missing=50, **o),
        ["count as 50.", "of scale 0.2 "],
    ),
    "median": (lambda x, **o: dpf.median(x, epsilon=0.5, **o), ["count as -1.79", "about 4 ranks", "is 500"]),
    "quantile": (
        lambda x, **o: dpf.quantile(x, [0.1, 0.9], bounds=(0, 1), epsilon=1.0, **o),
        ["the lower bound", "ranks"],
    ),
    "iqr": (lambda x, **o: dpf.iqr(x, epsilon=1.0, **o), ["0.25 to 0.75"]),
    "trimmed_mean": (lambda x, **o: dpf.trimmed_mean(x, 0.1, bounds=(0, 100), epsilon=1.0, **o), ["error(n, ...)"]),
    "winsorized_mean": (lambda x, **o: dpf.winsorized_mean(x, 0.1, bounds=(0, 100), epsilon=1.0, **o), ["Winsor"]),
    "huber": (lambda x, **o: dpf.huber(x, 3.0, bounds=(0, 100), epsilon=1.0, **o), ["Huber"]),
    "sum": (
        lambda x, **o: dpf.sum(x, bounds=(0, 100), epsilon=0.5, neighbors="add-remove", missing="drop", **o),
        ["are left out", "of scale 200."],
    ),
    "count": (lambda x, **o: dpf.count(x, epsilon=0.5, missing="drop", **o), ["are not counted", "of scale 2."]),
    "count all": (lambda x, **o: dpf.count(x, epsilon=0.5, **o), ["are counted"]),
    "variance": (lambda x, **o: dpf.variance(x, bounds=(0, 1), epsilon=1.0, **o), ["of scale 0.000999 "]),
    "std": (lambda x, **o: dpf.std(x, bounds=(0, 1), epsilon=1.0, missing="half", **o), ["as 1 at odd ones"]),
    "mean, private bounds": (
        lambda x, **o: dpf.mean(x, bounds="private", epsilon=1.0, missing=3.0, **o),
        ["count as 3, clamped to the bounds that are found"],
    ),
    "bounds": (lambda x, **o: dpf.bounds(x, epsilon=1.0, **o), ["do not move the bounds"]),
    "m_estimate": (
        lambda x, **o: dpf.m_estimate(x, dpf.psi.Huber(5.0), bounds=(0, 100), epsilon=1.0, **o),
        ["Huber's psi"],
    ),
    "robust_mean": (lambda x, **o: dpf.robust_mean(x, bounds=(0, 100), epsilon=1.0, **o), ["NestedBoxes"]),
}


class Explained(Exception):
    """Ends a call after its explanation."""


@pytest.mark.parametrize("function", EXPLAINED)
def test_an_explanation_comes_before_the_data_are_read_and_costs_nothing(function):
    release, parts = EXPLAINED[function]
    texts = []

    def stop(text):
        texts.append(text)
        raise Explained

    with dpf.Ledger(epsilon=0.01) as ledger, pytest.raises(Explained):
        release(Sized(), explain=stop)
    assert ledger.spent == dpf.Privacy(0.0)
    [text] = texts
    for part in ["epsilon = ", *parts]:
        assert part in text, text
    assert text.count("\n") <= (7 if text.startswith("method") else 2)  # a comparison of mechanisms comes first
    with pytest.raises(TypeError, match="explain must be True, False or a function of a text, not str"):
        release(Sized(), explain="yes")


def test_explanations_of_arrays(capsys):
    X = np.random.default_rng(0).normal(50, 10, (500, 2))
    for function in (dpf.mean, dpf.covariance):
        assert function(X, radius=100.0, epsilon=1.0, explain=True).shape[0] == 2
        assert "A row with NaN or an infinity counts as the center of the ball" in capsys.readouterr().out
    dpf.mle(X[:, 0], "exponential", bounds=(0.001, 1.0), epsilon=1.0, method="blocks", explain=True)
    assert "outside the support of the family, are left out of their public block" in capsys.readouterr().out
    dpf.histogram(X, 3, bounds=(0, 100), epsilon=1.0, missing="half", explain=True)
    assert "as 100 at odd ones" in capsys.readouterr().out
    dpf.density(X[:, 0], bounds=(0, 100), epsilon=1.0, explain=True)
    assert "SeriesCoefficients" in capsys.readouterr().out
    dpf.mean(dpf.Chunks(lambda: iter([X[:, 0]])), bounds=(0, 100), epsilon=1.0, explain=True)
    assert "error(n, ...)" in capsys.readouterr().out
    dpf.mean(X[:, 0], bounds=(0, 100), epsilon=1.0, neighbors="add-remove", explain=True)
    assert capsys.readouterr().out.count("\n") == 2  # no error is known
    with pytest.raises(ValueError, match="x must be one-dimensional"):
        dpf.median(np.array(1.0), epsilon=1.0, explain=lambda text: None)
    dpf.mean(X[:, 0], bounds=(0, 100), epsilon=1.0)
    assert capsys.readouterr().out == ""
