"""InverseSensitivity: the contract of a mechanism, parameters, extremes, and its gain over the rank utility."""

import copy
import dataclasses
import math
import os
import pickle
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64

from dpfast import Grid, InverseSensitivity, Privacy, audit, by_group
from dpfast._kernels import _levels
from dpfast.laws import NestedIntervals
from dpfast.random import SecureBitGenerator, streams
from dpfast.statistics import Median, Quantile
from tests.cases import every
from tests.statistical import chi_square_rejects
from tests.untouchable import Untouchable

pytestmark = pytest.mark.kernel

GRID = Grid(0, 100, step=1)


def mechanism(epsilon=1.0, statistic=None, grid=GRID, **options):
    return InverseSensitivity(statistic or Median(), grid=grid, epsilon=epsilon, **options)


class TestContract:
    def test_value(self):
        m = mechanism(0.5, radius=2)
        assert m == mechanism(0.5, radius=2.0)
        assert m != mechanism(0.5)
        assert len({m, mechanism(0.5, radius=2), mechanism(1.0), mechanism(1)}) == 2
        for twin in (pickle.loads(pickle.dumps(m)), copy.copy(m), copy.deepcopy(m)):
            assert twin == m
            assert twin([3, 4], rng=PCG64(1)) == m([3, 4], rng=PCG64(1))
        with pytest.raises(dataclasses.FrozenInstanceError):
            m.epsilon = 2.0
        assert dataclasses.replace(m, epsilon=2.0) == mechanism(2.0, radius=2)

    def test_a_replaced_epsilon_has_its_own_window(self):
        assert dataclasses.replace(mechanism(1.0), epsilon=0.1).cap(9) == mechanism(0.1).cap(9) != mechanism(1.0).cap(9)

    def test_repr_is_a_sentence(self):
        text = repr(mechanism(0.5, Quantile(0.9), radius=2))
        assert text == (
            "<InverseSensitivity release by permute-and-flip of the 0.9-quantile within 2.0 on 101 points from 0.0 to "
            "100.0, step 1.0: epsilon = 0.5 (pure differential privacy) for one record replaced (the number of "
            "records is public)>"
        )

    def test_privacy_map(self):
        m = mechanism(0.1)
        assert m.privacy == m.privacy_map(1) == Privacy(0.1)
        assert m.privacy_map(0) == Privacy(0)
        assert Fraction(m.privacy_map(3).epsilon) >= 3 * Fraction(0.1)
        for d_in in (-1, 1.0, True, "1"):
            with pytest.raises((TypeError, ValueError), match="d_in must be"):
                m.privacy_map(d_in)

    def test_rounds_epsilon_down(self):
        for value in (Fraction(1, 3), Fraction(1, 10), np.longdouble("0.1"), np.longdouble(1) / 3, 7, np.float32(0.1)):
            epsilon = mechanism(value).epsilon
            assert type(epsilon) is float
            assert epsilon <= value
            assert np.nextafter(epsilon, 9) > value or epsilon == value

    def test_input_is_never_modified(self):
        x = np.array([np.nan, 3.0, -0.0, np.inf, 1e300])
        for values in (x, x[::-1], np.ma.array(x, mask=[1, 0, 0, 0, 0])):
            before = np.array(values, copy=True).tobytes()
            mechanism()(values)
            mechanism().law(values)
            mechanism().release(values, size=3)
            assert np.array(values).tobytes() == before


BAD = [
    ({"epsilon": 0}, ValueError, "epsilon must be positive, not 0"),
    ({"epsilon": -1.0}, ValueError, r"epsilon must be positive, not -1\.0"),
    ({"epsilon": float("nan")}, ValueError, "epsilon must be finite, not nan"),
    ({"epsilon": float("inf")}, ValueError, "epsilon must be finite, not inf"),
    ({"epsilon": 10**400}, ValueError, "epsilon must be finite"),
    ({"epsilon": Fraction(1, 10**400)}, ValueError, "epsilon must be positive"),
    ({"epsilon": "one"}, ValueError, "epsilon must be a number, such as '0.1'"),
    ({"epsilon": True}, TypeError, "epsilon must be a real number, not bool"),
    ({"epsilon": np.bool_(True)}, TypeError, "epsilon must be a real number, not bool"),
    ({"epsilon": None}, TypeError, "epsilon must be a real number, not NoneType"),
    ({"epsilon": 1 + 0j}, TypeError, "epsilon must be a real number, not complex"),
    ({"epsilon": np.complex128(1)}, TypeError, "epsilon must be a real number, not complex128"),
    ({"epsilon": np.array(1.0)}, TypeError, "epsilon must be a real number, not ndarray"),
    ({"radius": -1}, ValueError, r"radius must be at least 0, not -1"),
    ({"radius": float("nan")}, ValueError, "radius must be finite"),
    ({"radius": "1"}, TypeError, "radius must be a real number"),
    ({"neighbors": "local"}, ValueError, "neighbors must be one of 'replace-one', 'add-remove', not 'local'"),
    ({"grid": (0, 1)}, TypeError, r"grid must be a dpfast\.Grid or FloatGrid, not tuple"),
    ({"statistic": "median"}, TypeError, r"statistic must be one of dpfast\.statistics, not str"),
]


@every("options, error, message", BAD)
def test_bad_parameters(options, error, message):
    with pytest.raises(error, match=message):
        mechanism(**options)


@every("q", [-0.1, 1.1, float("nan"), "0.5", None, [0.5]])
def test_bad_q(q):
    with pytest.raises((TypeError, ValueError), match="q must be"):
        Quantile(q)


@every("use", ["__call__", "release", "law"])
@every(
    "options, error",
    [
        ({"workers": 0}, ValueError),
        ({"workers": -2}, ValueError),
        ({"workers": 1.5}, TypeError),
        ({"workers": "2"}, TypeError),
        ({"workers": True}, TypeError),
        ({"rng": 5}, TypeError),
        ({"size": -1}, ValueError),
        ({"size": 1.5}, TypeError),
        ({"size": 3, "rng": "secure"}, TypeError),
    ],
)
def test_arguments_are_told_before_data_are_looked_at(use, options, error):
    allowed = {"__call__": {"rng", "workers"}, "release": {"rng", "workers", "size"}, "law": {"workers"}}[use]
    if set(options) <= allowed:
        with pytest.raises(error, match="|".join(f"{name} must be" for name in options)):
            getattr(mechanism(), use)(Untouchable(), **options)


def test_positive_control_of_untouchable():
    with pytest.raises(AssertionError, match="touched"):
        mechanism()(Untouchable())


@pytest.mark.parametrize(
    ("x", "message"), [([], "x is empty"), (np.zeros((2, 2)), "one-dimensional"), (3.0, "one-dimensional")]
)
def test_bad_shapes(x, message):
    for use in (mechanism(), mechanism().law, mechanism().release):
        with pytest.raises(ValueError, match=message):
            use(x)


@every("q, n, rank", [(0, 9, 1), (1, 9, 9), (0.5, 4, 2), (0.5, 5, 3), (0.1, 1, 1), (1 / 3, 3, 1)])
def test_ranks(q, n, rank):
    assert Quantile(q).rank(n) == rank == max(1, int(np.ceil(q * n)))
    assert [Median().rank(n) for n in (1, 2, 3, 4, 5)] == [1, 1, 2, 2, 3]


@every("epsilon", [5e-324, 1e-300, 1e-10, 1e3, 1e300])
@every("grid", [GRID, Grid(0, 1, step=1), Grid(0, 1e6), Grid(-(2.0**51), 2.0**51 - 1, step=1)])
@every("n", [1, 2, 1001])
def test_extreme_parameters(epsilon, grid, n):
    m = mechanism(epsilon, grid=grid)
    x = np.full(n, grid.upper)
    value = m(x, rng=PCG64(1))
    assert grid.lower <= value <= grid.upper
    assert value % grid.step == 0
    law = m.law(x)
    assert law.cdf(grid.size - 1) == 1
    if epsilon > 100:
        assert value == grid.upper
        assert law.pmf(grid.size - 1) == 1
    elif epsilon < 1e-9:
        of_first, of_all = law.weights(np.array([0, 0]), np.array([0, grid.size - 1])).tolist()
        assert law.pmf(0) == pytest.approx(of_first / of_all, rel=1e-4)


def test_tiny_epsilon_is_uniform():

    draws = mechanism(1e-300).release(np.full(50, 100.0), size=200_000, rng=PCG64(3))
    assert not chi_square_rejects(np.bincount(draws.astype(int), minlength=101), [1 / 101] * 101)


def rank_utility(x, grid, epsilon):
    """The usual exponential mechanism for the median: utility -|#{x < g} - n / 2|. Control only."""
    points = grid.decode(np.arange(grid.size))
    utility = -np.abs(np.searchsorted(np.sort(x), points, side="left") - len(x) / 2)
    weights = np.exp(epsilon / 2 * (utility - utility.max()))
    return weights / weights.sum()


def test_ties_do_not_drown():
    """100 equal values: the score finds them; the rank utility is the same at every other point."""
    x = np.full(100, 37.0)
    assert mechanism(1.0).law(x).pmf(37) > 0.999999
    assert rank_utility(x, GRID, 1.0)[37] == pytest.approx(0.0099, abs=1e-4)
    assert mechanism(1.0)(x, rng=PCG64(0)) == 37


def test_seven_records():
    """By hand: the median is 50, and each replaced record reaches one record further on either side."""
    x = [10.0, 46.0, 49.0, 50.0, 52.0, 56.0, 97.0]
    law = mechanism(1.0, selection="exponential").law(x)
    shells = [(50, 50), (49, 52), (46, 56), (10, 97), (0, 100)]
    scores = [next(t for t, (first, last) in enumerate(shells) if first <= g <= last) for g in range(101)]
    weights = np.exp(-0.5 * np.array(scores))
    np.testing.assert_allclose(law.pmf(np.arange(101)), weights / weights.sum(), rtol=1e-13)


@every("radius", [0.0, 0.4, 0.6, 3.0, 1e9, 1e308])
def test_radius(radius):
    m = mechanism(1.0, radius=radius)
    steps = min(round(radius), 100)
    scores = m.law([40.0, 50.0, 60.0]).score(np.arange(101))
    exact = mechanism(1.0).law([40.0, 50.0, 60.0]).score(np.arange(101))
    assert scores.tolist() == [exact[max(g - steps, 0) : g + steps + 1].min() for g in range(101)]


LAYOUTS = {
    "list": lambda x: x.tolist(),
    "float32": lambda x: x.astype(np.float32),
    "float16": lambda x: x.astype(np.float16),
    "int8": lambda x: x.astype(np.int8),
    "uint64": lambda x: x.astype(np.uint64),
    "big-endian": lambda x: x.astype(">f8"),
    "strided": lambda x: np.repeat(x, 3)[1::3],
    "reversed": lambda x: x[::-1].copy()[::-1],
    "column": lambda x: np.stack([x, -x], axis=1)[:, 0],
    "masked": lambda x: np.ma.array(x),
    "shuffled": lambda x: np.random.default_rng(8).permutation(x),
}


@every("layout", LAYOUTS)
def test_layouts_do_not_matter(layout):
    x = np.random.default_rng(0).integers(0, 101, 5001).astype(np.float64)
    assert mechanism()(LAYOUTS[layout](x), rng=PCG64(5)) == mechanism()(x, rng=PCG64(5))


def test_read_only_and_memmap(tmp_path):
    x = np.random.default_rng(0).integers(0, 101, 5001).astype(np.float64)
    expected = mechanism()(x, rng=PCG64(5))
    x.tofile(tmp_path / "x")
    assert mechanism()(np.memmap(tmp_path / "x", dtype=np.float64, mode="r"), rng=PCG64(5)) == expected
    x.flags.writeable = False
    assert mechanism()(x, rng=PCG64(5)) == expected


def test_workers_do_not_matter():
    x = np.random.default_rng(0).normal(50, 20, 2**22)
    results = {mechanism(0.01, Quantile(0.3))(x, rng=PCG64(5), workers=workers) for workers in (1, 2, 3, 16)}
    laws = [mechanism(0.01, Quantile(0.3)).law(x, workers=workers) for workers in (1, 3)]
    assert len(results) == 1
    np.testing.assert_array_equal(laws[0].lower, laws[1].lower)


def test_threads():
    """One mechanism and the default source in four threads; reproducible streams stay their own."""
    x = np.random.default_rng(0).normal(50, 20, 5000)
    m = mechanism(0.1)
    expected = [m(x, rng=PCG64(seed)) for seed in range(100)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda seed: m(x, rng=PCG64(seed)), range(100))) == expected
        drawn = list(pool.map(lambda _: m(x), range(200)))
        shared = SecureBitGenerator()
        drawn += list(pool.map(lambda _: m(x, rng=shared), range(200)))
    assert len(set(drawn)) > 1
    assert all(0 <= value <= 100 for value in drawn)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork():
    """A child's releases are its own, also after the parent has drawn."""
    script = """
        import os, dpfast as dpf
        m = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 1), epsilon=1e-9, measure="uniform")
        m([0.5])
        read, write = os.pipe()
        for child in range(2):
            if os.fork() == 0:
                os.write(write, f"{m([0.5])!r}\\n".encode())
                os._exit(0)
            os.wait()
        print(m([0.5]), os.read(read, 1000).decode())
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
    assert len(set(done.stdout.split())) == 3


@every("epsilon", [Fraction(1, 3), Decimal("0.1"), np.longdouble(1) / 3, np.float32(0.1), 2])
def test_epsilon_is_rounded_down(epsilon):
    kept = InverseSensitivity(Median(), grid=Grid(0, 1), epsilon=epsilon).epsilon
    exact = Fraction(*epsilon.as_integer_ratio())
    assert Fraction(kept) <= exact < Fraction(math.nextafter(kept, math.inf))


class TestDepth:
    """The statistic has the score -depth if replacing `depth` records cannot move it."""

    def test_equal_records_are_as_deep_as_they_are_many(self):
        for n, depth in [(1, 0), (2, 0), (3, 1), (101, 50)]:
            law = mechanism(0.2, selection="exponential").law(np.full(n, 40.0))
            assert law.depth == depth
            assert law.logpmf(40) - law.logpmf([39, 41]).max() == pytest.approx(0.1 * (2 * depth + 1))
        assert mechanism(2.0).law(np.full(10**4, 40.0)).depth == mechanism(2.0).cap(1) - 1
        assert mechanism(0.2).law(np.arange(101.0)).depth == 0
        assert mechanism(0.2, neighbors="add-remove").law(np.full(101, 40.0)).depth == 100

    @pytest.mark.parametrize("epsilon", [0.1, 1.0])
    @pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
    @pytest.mark.parametrize("selection", ["exponential", "permute-and-flip"])
    def test_all_paths_draw_the_same(self, epsilon, neighbors, selection):
        x = np.random.default_rng(1).binomial(100, 0.4, 300).astype(float)
        m = mechanism(epsilon, neighbors=neighbors, selection=selection)
        law = m.law(x)
        assert law.depth > 3
        fill = {"exponential": _levels.fill, "permute-and-flip": _levels.fill_flips}[selection]
        fast, slow = np.empty(500, np.int64), np.empty(500, np.int64)
        for out, exact in ((fast, False), (slow, True)):
            fill(PCG64(4), law.lower, law.upper, epsilon, 100, out, None, law.depth, exact=exact)
        np.testing.assert_array_equal(fast, slow)
        groups = by_group(m, np.tile(x, 8), offsets=np.arange(9) * 300, rng=PCG64(6))
        [source] = streams(PCG64(6), 1)
        assert groups.tolist() == [m(x, rng=source) for _ in range(8)]
        assert m(x, rng=PCG64(7)) == law.value(law.sample(rng=PCG64(7)))
        shallow = type(law)(law.lower, law.upper, epsilon=epsilon, last=100, grid=GRID, depth=law.depth // 2)
        counts = np.bincount(law.sample(20_000, PCG64(8)), minlength=101)
        assert not chi_square_rejects(counts, law.pmf(np.arange(101)))
        assert epsilon == 1.0 or chi_square_rejects(counts, shallow.pmf(np.arange(101)))  # at 1 all are nearly certain

    def test_ties_are_found_with_less_noise(self):
        x = np.random.default_rng(1).binomial(100, 0.4, 1000).astype(float)
        law = mechanism(0.3).law(x)
        shallow = NestedIntervals(law.lower, law.upper, epsilon=0.3, last=100, grid=GRID)
        noise, before = (
            np.dot(each.pmf(np.arange(101)), np.abs(np.arange(101) - np.median(x))) for each in (law, shallow)
        )
        assert noise < 0.7 * before

    def test_audited_with_ties(self):
        for m in (mechanism(1.0), mechanism(1.0, neighbors="add-remove"), mechanism(1.0, radius=2.0)):
            assert audit.verify(dataclasses.replace(m, grid=Grid(0, 8, step=1)), n=5, values=3, ordered=False).holds

    def test_too_deep_is_rejected(self):
        """The controls: twice the depth, and depth where a record moves all scores in one direction."""
        grid = Grid(0, 8, step=1)
        assert not audit.verify(TwiceAsDeep(Median(), grid=grid, epsilon=1.0), n=5, values=3, ordered=False).holds
        least = {"grid": grid, "epsilon": 1.0, "neighbors": "add-remove"}
        assert audit.verify(InverseSensitivity(Quantile(0.0), **least), n=4, values=3, ordered=False).holds
        assert not audit.verify(DeepMinimum(Quantile(0.0), **least), n=4, values=3, ordered=False).holds


class TwiceAsDeep(InverseSensitivity):
    def law_of(self, summary):
        law = super().law_of(summary)
        law = NestedIntervals(
            law.lower, law.upper, epsilon=1.0, last=8, grid=law.grid, depth=2 * law.depth if law.depth else 0
        )
        return law


class DeepMinimum(InverseSensitivity):
    def law_of(self, summary):
        law = super().law_of(summary)
        depth = max(int(np.cumprod(law.lower == law.upper).sum()) - 1, 0)
        return NestedIntervals(law.lower, law.upper, epsilon=law.epsilon, last=8, grid=law.grid, depth=depth)
