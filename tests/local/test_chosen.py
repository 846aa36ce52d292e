"""The choice of a randomiser of categories by error and length."""

import math

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import local
from dpfast.local.chosen import report_choice
from tests.cases import every

CASES = [(2, 0.5), (4, 1.0), (16, 1.0), (64, 1.0), (64, 4.0), (1000, 1.0), (1000, 6.0), (10**6, 1.0), (2**40, 2.0)]


def error(made):
    """The root mean square of the error of a frequency from one report, by the definition of support."""
    p, q = made.support
    return math.sqrt((p * (1 - p) + (made.k - 1) * q * (1 - q)) / made.k / (p - q) ** 2)


@every("k, epsilon", CASES)
@every("bits", [None, 8, 32, 64])
def test_the_least_error_or_a_shorter_report_within_two_percent(k, epsilon, bits):
    choice = report_choice(k, epsilon=epsilon, bits=bits) if bits is None or bits >= 32 or k < 200 else None
    if choice is None:
        with pytest.raises(ValueError, match="bits must be at least"):
            local.randomizer_for(k, epsilon, bits=bits)
        return
    lengths = {
        name: 8 * len(made.to_bytes(made.randomize(np.zeros(8, np.int64)))) // 8
        for name, made in choice.candidates.items()
    }
    short = {name: made for name, made in choice.candidates.items() if bits is None or lengths[name] <= bits}
    least = min(map(error, short.values()))
    assert lengths[choice.method] == min(lengths[name] for name in short if error(short[name]) <= 1.02 * least)
    assert error(choice.mechanism) <= 1.02 * least
    assert local.randomizer_for(k, epsilon, bits=bits) == choice.mechanism


def test_the_errors_of_the_table_are_those_of_estimates():
    x = np.arange(2000) % 16
    choice = dpf.explain(local.randomizer_for, 16, epsilon=1.0, n=2000)
    assert [row[0] for row in choice.table[1:]] == ["k-rr", "subset", "oue", "olh", "hadamard", "hashed"]
    for row in choice.table[1:]:
        made, squares = choice.candidates[row[0]], []
        for seed in range(60):
            reports = made.randomize(x, rng=PCG64(seed))
            keys = {"keys": np.arange(16)} if row[0] == "hashed" else {}
            squares.append(np.mean((made.estimate(reports, **keys) - 1 / 16) ** 2))
        assert 0.9 < math.sqrt(np.mean(squares)) / float(row[1]) < 1.1


def test_explain():
    text = str(dpf.explain("randomizer_for", 1000, epsilon=1.0, bits=64, n=100))
    assert "oue" in text
    assert "1,000             too long" in text
    assert "Taken: hashed, because its error is the least of reports of at most 64 bits, or within 2 %" in text
    assert "<table>" in dpf.explain(local.randomizer_for, 4, epsilon=1.0)._repr_html_()
    with pytest.raises(TypeError, match="bounds"):
        dpf.explain(local.randomizer_for, 4, epsilon=1.0, bounds=(0, 1))
    with pytest.raises(TypeError, match="bits is for randomisers"):
        dpf.explain("mean", n=9, bounds=(0, 1), epsilon=1.0, bits=8)


@pytest.mark.parametrize(
    ("k", "options", "message"),
    [(1, {}, "k must be at least 2"), (2**65, {}, "at most 2\\*\\*64"), (9, {"bits": 0}, "bits must be at least 1")],
)
def test_bad_parameters(k, options, message):
    with pytest.raises(ValueError, match=message):
        local.randomizer_for(k, 1.0, **options)
    with pytest.raises(ValueError, match="epsilon"):
        local.randomizer_for(9, 0.0)
