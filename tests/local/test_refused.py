"""Servers accept only possible reports: one more person moves an estimate no more than an honest one could."""

import math
from itertools import combinations

import numpy as np
import pytest
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast import local
from dpfast.local.responses import PRIME
from tests.cases import every

GRID = dpf.Grid(0.0, 1.0)
SUBSET = local.Categorical(100, 1.0, "subset")
CHOSEN = local.L2Ball(5, 1.0, method="directions", directions=9)
BALL = local.L2Ball(5, 1.0, radius=3.0)
CUBE = local.Hypercube(70, 8.0, method="majority")
FEW = local.Hypercube(70, 1.0, method="subset")
LAPLACE = local.Interval(1.0, bounds=(-1, 1), method="laplace")


def bits(k, words):
    """A row of so many words with the first k bits set."""
    return [(1 << min(max(k - 64 * w, 0), 64)) - 1 for w in range(words)]


def off(survey, factor):
    """A report whose norm is off."""
    report = np.zeros(survey.d)
    report[-1] = survey.scale * factor
    return report


# Each randomiser, one honest record, and impossible reports.
EVERY = {
    "binary": (local.Binary(1.0), 1, [2, 255]),
    "k-rr": (local.Categorical(5, 1.0, "k-rr"), 3, [5, 255]),
    "k-rr, 16 bits": (local.Categorical(300, 1.0, "k-rr"), 3, [300, 2**16 - 1]),
    "k-rr, 32 bits": (local.Categorical(2**17, 1.0, "k-rr"), 3, [2**17, 2**32 - 1]),
    "hadamard": (local.Categorical(5, 1.0, "hadamard"), 3, [16, 255]),
    "subset": (SUBSET, 3, [bits(k, 2) for k in (0, 1, SUBSET._method.width - 1, SUBSET._method.width + 1, 100)]),
    "subset, padding": (SUBSET, 3, [[0, 2**64 - 2 ** (64 - SUBSET._method.width)]]),
    "subset, one word": (local.Categorical(20, 1.0, "subset"), 3, [[0], [2**64 - 1], [2**20 - 1], [63 << 20]]),
    "subset, many words": (local.Categorical(1000, 1.0, "subset"), 3, [bits(k, 16) for k in (0, 268, 270, 1000)]),
    "oue": (local.Categorical(100, 1.0, "oue"), 3, [bits(101, 2), [0, 2**63]]),
    "olh": (local.Categorical(100, 1.0, "olh"), 3, [[PRIME, 0], [0, PRIME], [2**32 - 1, 2**32 - 1]]),
    "interval": (local.Interval(1.0, bounds=(-1, 1)), 0.5, [16, 255]),
    "hybrid": (local.Interval(1.0, bounds=(-1, 1), method="hybrid"), 0.5, [4096, 2**16 - 1]),
    "piecewise": (local.Interval(1.0, bounds=(-1, 1), method="piecewise"), 0.5, [4094, 2**16 - 1]),
    "laplace": (LAPLACE, 0.5, [64 * 4096 + 4097, -64 * 4096 - 1, 2**63 - 1, -(2**63)]),
    "cube": (CUBE, np.ones(70), [bits(71, 2), [0, 2**63]]),
    "cube, few": (FEW, np.ones(70), [[7, 2**FEW.k], [7, 2**63]]),
    "ball, index": (CHOSEN, np.full(5, 0.1), [9, 15, 2**64 - 1]),
    **{
        f"ball, {survey.method}": (
            survey,
            np.full(5, 0.1),
            [
                [math.nan] * 5,
                [math.inf, 0, 0, 0, 0],
                [1e300] * 5,
                [0.0] * 5,
                off(survey, 1.001),
                off(survey, 0.999),
                [-math.inf, math.inf, math.nan, 0, 0],
            ],
        )
        for survey in (BALL, local.L2Ball(5, 1.0, radius=3.0, method="privunit"))
    },
    "square wave": (local.SquareWave((0, 1), 1.0), 0.5, [1547, 2**16 - 1]),
    "density": (local.SeriesReports(6, 1.0, grid=GRID, basis="trigonometric"), 0.5, [3 << 16, 2**32 - 1]),
    "density, majority": (local.SeriesReports(6, 1.0, grid=GRID, method="majority"), 0.5, [[64], [2**63]]),
    "density, subset": (local.SeriesReports(6, 1.0, grid=GRID, method="subset"), 0.5, [[7, 64], [7, 2**63]]),
}


def mixed(survey, x, wrong, n):
    """n honest reports, then with the wrong ones among them; and where those are."""
    honest = survey.randomize(np.broadcast_to(x, (n, *np.shape(x))), rng=PCG64(1))
    hostile = np.array(wrong, honest.dtype)
    places = np.linspace(0, n, len(hostile), dtype=int)
    return honest, np.insert(honest, places, hostile, axis=0), places + np.arange(len(hostile))


@every("name", EVERY)
@every("n", [1, 5, 70_000])
def test_what_is_never_sent_is_refused_and_counted(name, n):
    survey, x, wrong = EVERY[name]
    honest, received, _ = mixed(survey, x, wrong, n)
    total, alone = survey.aggregate(received, workers=2), survey.aggregate(honest)
    assert (alone.n, alone.refused) == (n, 0)
    assert (total.n, total.refused) == (n, len(wrong))
    np.testing.assert_allclose(total.sums, alone.sums, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(survey.estimate(received), survey.estimate(honest), rtol=1e-9, atol=1e-9)
    assert local.Aggregate.from_bytes(total.to_bytes()) == total
    assert (total + alone).refused == len(wrong)


@every("name", [name for name in EVERY if name != "k-rr, 32 bits"])  # decodes to 2**17 numbers each
def test_what_is_refused_decodes_to_nan(name):
    survey, x, wrong = EVERY[name]
    honest, received, places = mixed(survey, x, wrong, 5)
    values = survey.decode(received).reshape(len(received), -1)
    assert np.isnan(values[places]).all()
    kept = np.delete(values, places, axis=0)
    np.testing.assert_array_equal(kept, survey.decode(honest).reshape(kept.shape))
    one = survey.decode(received[places[0]])
    assert one.shape == survey.decode(honest[0]).shape
    assert np.isnan(one).all()


@every("name", EVERY)
def test_wrong_reports_travel_as_bytes_and_are_refused_then(name):
    """One person's bad bytes do not stop the server from reading the others."""
    survey, x, wrong = EVERY[name]
    hostile = np.array(wrong, survey.randomize(x).dtype)
    total = survey.aggregate(survey.from_bytes(survey.to_bytes(hostile)))
    assert total.n + total.refused == len(wrong)
    assert total.n == 0 or survey.to_bytes(hostile) != hostile.tobytes()  # packed: bytes hold no more than k bits
    with pytest.raises(ValueError, match="report"):
        survey.estimate(hostile)


@every(
    "survey",
    [
        local.Binary(1.0),
        *(local.Categorical(k, 1.0, method) for k in (2, 6) for method in ("k-rr", "hadamard", "subset", "oue")),
        *(local.Interval(1.0, bounds=(0, 1), method=m) for m in ("two-point", "codebook", "piecewise", "hybrid")),
        local.SeriesReports(2, 1.0, grid=GRID, method="one-frequency", basis="trigonometric"),
        local.SeriesReports(4, 1.0, grid=GRID, method="majority"),
    ],
    ids=lambda survey: f"{type(survey).__name__} {getattr(survey, 'method', '')}",
)
def test_valid_reports_are_the_support_of_the_law(survey):
    """Of all words: exactly the ones of positive probability."""
    kind = survey.report
    every = np.arange(min(2 ** (8 * kind.base.itemsize), 2**18), dtype=kind.base).reshape(-1, *kind.shape)
    law = survey.law(0.3)
    if isinstance(survey, local.SeriesReports) and survey.method == "majority":
        sent = np.arange(2**survey.terms, dtype=np.uint64)[:, None]
    else:
        assert min(law.pmf) > 0
        sent = law.reports
    expected = np.isin(every.reshape(-1), np.asarray(sent).reshape(-1))
    np.testing.assert_array_equal(survey.valid(every), expected)


@pytest.mark.parametrize(("k", "width"), [(9, 2), (64, 2), (65, 2), (128, 1)])
def test_every_subset_of_the_right_size_is_valid(k, width):
    survey = next(
        candidate
        for candidate in (local.Categorical(k, epsilon, "subset") for epsilon in np.geomspace(0.1, 10, 300))
        if candidate._method.width == width
    )
    rows = np.zeros((math.comb(k, width), k), np.uint8)
    for row, members in zip(rows, combinations(range(k), width), strict=True):
        row[list(members)] = 1
    octets = np.zeros((len(rows), 8 * survey.report.shape[0]), np.uint8)
    packed = np.packbits(rows, axis=1, bitorder="little")
    octets[:, : packed.shape[1]] = packed
    reports = octets.view("<u8").astype(np.uint64)
    assert survey.valid(reports).all()
    reports[:, 0] ^= np.uint64(1)
    assert not survey.valid(reports).any()


@every("method", ["halfspace", "privunit"])
@every("d", [1, 2, 3, 8, 31, 33, 1000, 100_000])
@every("radius", [2.0**-1022, 1e-160, 1.0, 1e100])
def test_no_honest_vector_is_refused(method, d, radius):
    survey = local.L2Ball(d, 2.0, radius=radius, method=method)
    n = max(2, 20_000 // d)
    x = Generator(PCG64(d)).normal(size=(n, d)) * radius
    x[0], x[1] = 0.0, math.inf
    total = survey.aggregate(survey.randomize(x, rng=PCG64(1)))
    assert (total.n, total.refused) == (n, 0)


def test_a_direction_along_the_record_is_drawn_again():
    """In the plane a record may be a direction that a seed stands for: its component across does not matter."""
    survey = local.L2Ball(2, 1.0, method="privunit")
    source = PCG64(3)
    words = np.empty(4, np.uint64)
    dpf._kernels._samplers.fill_words(source, words)
    along = local.L2Ball(2, 1.0, report="sign").decode(words[:1] | np.uint64(1))
    report = survey.randomize(along / np.linalg.norm(along), rng=PCG64(3))
    assert np.linalg.norm(report) == pytest.approx(survey.scale, rel=1e-9)
    assert survey.aggregate(report).refused == 0


@every("name", [name for name in EVERY if name != "k-rr, 32 bits"])
def test_any_bytes_are_reports_or_refused(name):
    """Garbage raises neither errors nor warnings: the estimate is the mean of the valid reports."""
    survey, x, _ = EVERY[name]
    honest = survey.randomize(np.broadcast_to(x, (2_000, *np.shape(x))), rng=PCG64(1))
    garbage = survey.from_bytes(Generator(PCG64(2)).bytes(200 * len(survey.to_bytes(honest[:1]))))
    received = np.concatenate([honest, garbage])
    total, values = survey.aggregate(received), survey.decode(received)
    assert total.n + total.refused == 2_200
    assert total.refused == np.isnan(values.reshape(2_200, -1)).any(axis=1).sum()
    np.testing.assert_allclose(survey.estimate(total), np.nanmean(values, axis=0), rtol=1e-9, atol=1e-9)


@every("report", [2, -1, 0.5, math.nan, "1", None, b"1", [1], np.array([1, 0]), {"1": 1}, 1j])
def test_a_descent_counts_invalid_reports(report):
    protocol = local.MedianDescent(bounds=(0, 1), epsilon=1.0)
    state = protocol.update(protocol.begin(), 1)
    after = protocol.update(state, report)
    assert after == state._replace(refused=1)
    again = protocol.update(after, np.int64(1))
    assert (again.users, again.refused) == (2, 1)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_gradient_descent_counts_invalid_reports(norm):
    protocol = local.GradientDescent(3, 1.0, norm=norm)
    state = protocol.begin()
    report = protocol.respond(state.theta, [0.1, 0.2, 0.3], 1.0)
    state = protocol.update(state, report)
    if norm == "l2":
        assert protocol.update(state, np.uint64(2**64 - 1)).users == 2  # any word is a sign and a seed
        return
    wrong = np.full_like(report, 2**64 - 1)
    after = protocol.update(state, wrong)
    assert (after.users, after.refused) == (1, 1)
    np.testing.assert_array_equal(after.theta, state.theta)
    np.testing.assert_array_equal(after.total, state.total)
    again = protocol.update(after, report)
    assert (again.users, again.refused) == (2, 1)


def test_everybody_is_refused():
    for survey, _, wrong in EVERY.values():
        reports = np.array(wrong, survey.randomize(np.zeros(getattr(survey, "d", ())), rng=PCG64(0)).dtype)
        total = survey.aggregate(reports)
        assert (total.n, total.refused) == (0, len(wrong))
        assert not np.any(total.sums)
        with pytest.raises(ValueError, match="report"):
            survey.estimate(total)
