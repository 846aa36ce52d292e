"""Tukey depth: depths and points of polytopes by their definitions, draws against laws, guarantees with controls."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64, default_rng

from dpfast import Chunks, Grid, Privacy, audit
from dpfast._kernels import _depth
from dpfast.laws import DepthLaw, depth
from dpfast.robust import TukeyDepth
from tests.cases import every
from tests.reference import depth as reference
from tests.statistical import chi_square_rejects
from tests.threads import in_threads
from tests.untouchable import Untouchable

pytestmark = pytest.mark.kernel

SMALL = Grid(0, 3, step=1)


def law(records, sizes, epsilon=1.0, floor=0, levels=3):
    return DepthLaw(np.array(records), sizes, epsilon=epsilon, floor=floor, levels=levels, decode=lambda k: k)


class TestDepths:
    @pytest.mark.parametrize(("d", "codes", "cases"), [(2, 4, 1500), (3, 2, 400), (3, 3, 150)])
    def test_are_those_of_all_half_spaces(self, d, codes, cases):
        """Also for ties and records on a line, and the normal has as many records on its side."""
        rng, normals, normal = default_rng(d), reference.normals(codes, d), np.empty(d, np.int64)
        for _ in range(cases):
            records, point = rng.integers(0, codes, (rng.integers(1, 9), d)), rng.integers(0, codes, d)
            kernel = _depth.Depths(records)
            found = kernel.at(point, normal)
            assert found == reference.depth(records, point, normals)
            if np.any(records != point):
                assert np.count_nonzero((records - point) @ normal >= 0) == found
                assert math.gcd(*normal.tolist()) == 1
            enough = int(rng.integers(0, 6))
            least = kernel.at(point, normal, enough)
            assert least == found or found <= least < enough

    def test_of_the_greatest_codes(self):
        """In integers of any length, among them nearly parallel vectors, whose keys are equal doubles."""
        rng, last, normal = default_rng(1), 2**28 - 1, np.empty(2, np.int64)
        for _ in range(200):
            corners = rng.choice([0, 1, 2, last - 2, last - 1, last], (20, 2))
            slope = last - rng.integers(0, 3, (20, 2)) - rng.integers(0, 2**27, (20, 1))
            records = np.concatenate([corners, slope])[rng.permutation(40)[:25]]
            point = records[0] if rng.random() < 0.5 else rng.choice([0, last], 2)
            found = _depth.Depths(records).at(point, normal)
            assert found == reference.planar_depth(records.tolist(), point.tolist())
            sides = [
                sum(a * (b - c) for a, b, c in zip(normal.tolist(), x, point.tolist(), strict=True))
                for x in records.tolist()
            ]
            assert sum(side >= 0 for side in sides) == found

    def test_three_codes_are_those_of_a_sheared_space(self):
        rng, normal = default_rng(2), np.empty(3, np.int64)
        shear = np.array([[12, 5, 0], [0, 1, 25], [3, 0, 36]])
        for _ in range(60):
            records, point = rng.integers(0, 5, (15, 3)), rng.integers(0, 5, 3)
            expected = _depth.Depths(records).at(point, normal)
            records, point = records @ shear, point @ shear
            assert records.max() < 2**8
            assert _depth.Depths(records).at(point, normal) == expected
            assert np.count_nonzero((records - point) @ normal >= 0) == expected

    def test_rejects_other_shapes(self):
        records = np.zeros((3, 2), np.int64)
        for shape in ((3, 1), (3, 4), (0, 2)):
            with pytest.raises(ValueError, match="records must have two or three codes each"):
                _depth.Depths(np.zeros(shape, np.int64))
        with pytest.raises(ValueError, match="another number of codes"):
            _depth.Depths(records).at(np.zeros(3, np.int64), np.zeros(3, np.int64))
        with pytest.raises(ValueError, match="another number of codes"):
            _depth.Depths(records).fill(np.zeros((1, 3), np.int64), np.zeros(1, np.int64))


def ordered(rows):
    """The lines and their limits as the kernel takes them."""
    above = sorted((row for row in rows if row[1] > 0), key=lambda row: Fraction(row[0], row[1]))
    below = sorted((row for row in rows if row[1] < 0), key=lambda row: Fraction(row[0], -row[1]))
    table = np.array([*above, *below, *(row for row in rows if row[1] == 0)])
    return np.ascontiguousarray(table[:, :3]), np.ascontiguousarray(table[:, 3]), len(above), len(below)


class TestPolytopes:
    def test_points_are_those_of_the_inequalities(self):
        rng = default_rng(3)
        for _ in range(60):
            extra = np.column_stack([rng.integers(-5, 6, (6, 3)), rng.integers(-10, 40, 6)])[: rng.integers(0, 7)]
            lines, limits, above, below = ordered([(0, 1, 0, 12), (0, -1, 0, 9), *map(tuple, extra.tolist())])
            last = 7, int(rng.integers(0, 4))
            expected, out, point = (
                reference.points_inside(lines, limits, last),
                np.empty(1, np.int64),
                np.empty(3, np.int64),
            )
            polytopes = _depth.Polytopes(lines, above, below, last)
            polytopes.counts(limits[None], out)
            assert out[0] == len(expected)
            found = []
            for index in range(len(expected)):
                polytopes.point(limits, index, point)
                found.append(tuple(point.tolist()))
            assert found == sorted(expected, key=lambda p: (p[2], p[0], p[1]))
            with pytest.raises(ValueError, match="an index beyond the points"):
                polytopes.point(limits, len(expected), point)

    def test_calls_of_several_threads_at_once(self):
        """Each takes long enough to overlap with the others, and has limits of its own."""
        extra = np.column_stack([default_rng(5).integers(-5, 6, (60, 3)), np.full(60, 900)])
        lines, limits, above, below = ordered([(0, 1, 0, 200), (0, -1, 0, 200), *map(tuple, extra.tolist())])
        polytopes = _depth.Polytopes(lines, above, below, (200, 200))

        def job(i):
            counts, points = np.empty(20, np.int64), np.empty((20, 3), np.int64)
            polytopes.counts(np.tile(limits + 20 * i, (20, 1)), counts)
            for point in points:
                polytopes.point(limits + 20 * i, int(counts[0]) - 1, point)
            return counts.tolist(), points.tolist()

        expected = [job(i) for i in range(8)]
        assert len({counts[0] for counts, _ in expected}) == 8
        assert in_threads(job) == expected

    @pytest.mark.parametrize(("bits", "reach"), [(30, 58), (45, 56)])
    def test_of_long_integers(self, bits, reach):
        """Coefficients and limits as long as they may be, few columns, each counted in integers of any length."""
        rng, some = default_rng(bits), 0
        for _ in range(200):
            a, b = rng.integers(-(2**bits), 2**bits, 6), rng.integers(-(2**bits), 2**bits, 6)
            lines = [(0, 1, 0, 2**28), (0, -1, 0, 2**28)]
            lines += [
                (x, y, 0, int(rng.integers(0, 2**reach >> int(rng.integers(0, 30)))))
                for x, y in zip(a.tolist(), b.tolist(), strict=True)
            ]
            table, limits, above, below = ordered(lines)
            out = np.empty(1, np.int64)
            _depth.Polytopes(table, above, below, (40, 0)).counts(limits[None], out)
            expected = 0
            for x in range(41):
                rows = [(y, c - z * x) for z, y, _, c in lines]
                low = max(-(rest // -y) for y, rest in rows if y < 0)
                high = min(rest // y for y, rest in rows if y > 0)
                expected += max(0, high - low + 1)
            assert out[0] == expected
            some += 0 < expected < 41 * 2**28
        assert some > 50


class TestDraws:
    @pytest.mark.parametrize(("d", "codes"), [(2, 4), (3, 3)])
    @pytest.mark.parametrize(
        ("n", "epsilon", "floor"), [(1, 1.0, 0), (5, 2.0, 0), (9, 1.5, 1), (30, 0.3, 3), (30, 30.0, 3)]
    )
    def test_follow_the_law_of_the_definition(self, d, codes, n, epsilon, floor):
        records = default_rng(n).integers(0, codes, (n, d))
        if n == 30:
            records[:, 1] = records[:, 0]
        made = law(records, (codes,) * d, epsilon, floor)
        expected = reference.law(records, (codes,) * d, epsilon, floor, reference.normals(codes, d))
        p = np.array(list(expected.values()))
        np.testing.assert_allclose(np.exp(made.logpmf(np.array(list(expected)))), p, rtol=1e-12)
        k = made.sample(3000, PCG64(1))
        assert not chi_square_rejects(np.bincount(np.ravel_multi_index(k.T, (codes,) * d), minlength=codes**d), p)

    @pytest.mark.parametrize("kind", ["any", "line", "equal"])
    def test_totals_on_large_grids(self, kind, monkeypatch):
        """By counts of the points of each depth, where all points are too many to be listed."""
        records = default_rng(4).integers(0, 40, (19, 2))
        if kind != "any":
            records = records[:, :1] * [1, 2] % [40, 100] if kind == "line" else np.full((19, 2), 7)
        totals = []
        for most in (0, 256):
            monkeypatch.setattr(depth, "_MOST_RECORDS", most)
            monkeypatch.setattr(depth, "_LISTED", 2**20 if most == 0 else 0)
            totals += [law(records, (60, 100), epsilon, floor)._log_total for epsilon in (0.1, 5.0) for floor in (0, 3)]
        np.testing.assert_allclose(totals[:4], totals[4:], rtol=1e-12, atol=1e-14)

    def test_scales_differ(self):
        records, sizes = default_rng(0).integers(0, 12, (9, 2)), (12, 12)
        made = law(records, sizes, 2.0)
        p = np.exp(made.logpmf(made.outcomes()))
        assert math.fsum(p) == pytest.approx(1, abs=1e-13)
        counts = np.bincount(np.ravel_multi_index(made.sample(20_000, PCG64(3)).T, sizes), minlength=144)
        assert not chi_square_rejects(counts, p)
        for factor in (0.9, 1.1):
            wrong = np.exp(factor * made.logpmf(made.outcomes()))
            assert chi_square_rejects(counts, wrong / wrong.sum())

    def test_any_envelope_gives_the_same_law(self, monkeypatch):
        """With few normals, far levels and a new envelope after each rejected proposal."""
        monkeypatch.setattr(depth, "_starting_normals", lambda records: np.array([[1, 0], [0, 1], [-1, 0], [0, -1]]))
        monkeypatch.setattr(depth, "_SPREAD", 1)
        monkeypatch.setattr(depth, "_WASTED", 1)
        records = np.repeat(np.arange(12), 2).reshape(-1, 2)[:, ::-1] % [12, 7]
        p = None
        for levels in (1, 30):
            counts = np.zeros(144, int)
            for seed in range(30):
                made = law(records, (12, 12), 1.0, levels=levels)
                p = np.exp(made.logpmf(made.outcomes()))
                np.add.at(counts, np.ravel_multi_index(made.sample(100, PCG64(seed)).T, (12, 12)), 1)
            assert not chi_square_rejects(counts, p)

    @pytest.mark.parametrize("epsilon", [1e-300, 1e-18, 2.0**-55, 1e308])
    def test_extreme_epsilon(self, epsilon):
        """Uniform, or the deepest points, on a grid of 2**28 by 2**28 points."""
        mechanism = TukeyDepth(grid=Grid(-(2**27), 2**27 - 1, step=1), epsilon=epsilon)
        x = default_rng(0).integers(-(2**27), 2**27, (201, 2))
        release = mechanism(x, rng=PCG64(1))
        assert np.all(np.abs(release) <= 2**27)
        if epsilon > 1:
            made = mechanism.law(x)
            deepest = int(made.depth((release + 2**27).astype(np.int64)))
            around = np.array([(i, j) for i in (-1000, 0, 1000) for j in (-1000, 0, 1000)])
            assert deepest == made.depth((release + 2**27).astype(np.int64) + around).max() >= 67

    def test_slack_at_a_small_epsilon(self, monkeypatch):
        """The two ways to draw a geometric number have the same law up to n."""
        rate, n = 0.125, 6
        expected = np.exp(-rate * np.arange(n + 1))
        expected = -np.diff(np.append(expected, 0.0))
        found = np.empty((2, n + 1), int)
        for i, limit in enumerate((Fraction(1, 2**56), Fraction(1))):
            monkeypatch.setattr(depth, "_LEAST_RATE", limit)
            source = PCG64(i)
            draws = [min(depth._slack(source, 2 * rate, n), n) for _ in range(20_000)]
            found[i] = np.bincount(draws, minlength=n + 1)
            assert not chi_square_rejects(found[i], expected)


class Halved(TukeyDepth):
    """A control: the exponent epsilon * depth, which is for a score that changes in one direction only."""

    @property
    def privacy(self):
        return Privacy(self.epsilon / 2)


class CountedTwice(TukeyDepth):
    """A control: records equal to the point count on both sides of its line, so that one changes a score by 2."""

    def law_of(self, summary):
        made = super().law_of(summary)
        points = made.outcomes()
        ties = np.array([np.count_nonzero(np.all(summary == point, axis=1)) for point in points])
        logs = self.epsilon / 2 * (made.depth(points) + ties)
        made.logpmf = lambda k: logs - np.log(np.exp(logs).sum())
        return made


class TestPrivacy:
    """T12: all data sets of a few records, with wrong scores that are rejected."""

    @every("epsilon", [0.1, 1.0, 4.0])
    @every("n, d, values", [(1, 2, 3), (2, 2, 3), (3, 2, 3), (5, 2, 2), (2, 3, 2), (4, 3, 2)])
    def test_holds_for_all_data(self, epsilon, n, d, values):
        grids = [Grid(0, 2, step=1)] * d
        made = TukeyDepth(grid=grids, dimension=d, epsilon=epsilon)
        certificate = audit.verify(made, n=n, values=values, grids=grids, ordered=False)
        assert certificate.holds
        assert certificate.epsilon > 0.3 * epsilon

    @pytest.mark.parametrize("wrong", [Halved, CountedTwice])
    @pytest.mark.parametrize("d", [2, 3])
    def test_the_audit_rejects_a_wrong_score(self, wrong, d):
        grids = [Grid(0, 2, step=1)] * d
        made = wrong(grid=grids, dimension=d, epsilon=1.0)
        assert not audit.verify(made, n=2, values=2, grids=grids, ordered=False).holds

    @pytest.mark.parametrize("d", [2, 3])
    def test_the_floor_is_below_the_greatest_depth(self, d):
        """Some grid point has a depth of n / 2**d: for all sets of records at the corners of a square or a cube."""
        grids, corners = [Grid(0, 1, step=1)] * d, list(itertools.product((0, 1), repeat=d))
        for n in (1, 4, 8):
            for records in itertools.islice(itertools.combinations_with_replacement(corners, n), 0, None, d**3):
                made = TukeyDepth(grid=grids, dimension=d, epsilon=1.0).law(np.array(records))
                assert made.depth(made.outcomes()).max() >= -(-n // 2**d) > made.floor

    def test_floor_and_cap(self):
        made = TukeyDepth(grid=SMALL, epsilon=20.0)
        assert made.cap == 1 + math.ceil(2 / 20 * (math.log(16) + 42)) == 6
        assert [made.floor(n) for n in (1, 24, 25, 100)] == [0, 0, 1, 19]
        x = default_rng(0).integers(0, 4, (100, 2))
        exact = made.law(x)
        assert exact.floor == 19
        p = np.exp(exact.logpmf(exact.outcomes()))
        assert np.count_nonzero(np.isclose(p, p.min(), rtol=1e-9)) > 1


class TestMechanism:
    def test_types_of_records_and_streams(self):
        x = default_rng(0).normal(1, 1, (500, 2))
        made = TukeyDepth(grid=(Grid(-8, 8), Grid(-4, 4)), epsilon=2.0)
        expected = made(x, rng=PCG64(5))
        assert expected.shape == (2,)
        assert expected.dtype == np.float64
        for form in (x.tolist(), np.asfortranarray(x), Chunks([x[:100], x[100:]]), x[::-1][::-1]):
            np.testing.assert_array_equal(made(form, rng=PCG64(5)), expected)
        state, other = made.start(), made.start()
        state.update(x[:77])
        other.update(x[77:])
        state.merge(other)
        np.testing.assert_array_equal(state.release(rng=PCG64(5)), expected)
        assert made.release(x, size=3, rng=PCG64(1)).shape == (3, 2)

    @every("d", [2, 3])
    @every("fill", [0.0, 1e300, math.nan, -math.inf])
    def test_degenerate_records(self, d, fill):
        """All equal, on a line, missing, a single one."""
        made = TukeyDepth(grid=Grid(-100, 100, step=1), dimension=d, epsilon=1.0)
        line = np.arange(50.0)[:, None] * np.array([1, 2, -1])[:d]
        line[::7] = fill
        for x in (np.full((50, d), fill), np.full((1, d), fill), line):
            release = made(x, rng=PCG64(2))
            assert release.shape == (d,)
            assert np.isfinite(release).all()

    def test_grids_are_made_coarser(self):
        assert TukeyDepth(grid=Grid(-1000, 1000), epsilon=1.0).grid == Grid(-1000, 1000, step=2.0**-17)
        assert TukeyDepth(grid=Grid(-1000, 1000), dimension=3, epsilon=1.0).grid == Grid(-1000, 1000, step=8.0)
        assert TukeyDepth(grid=SMALL, epsilon=1.0).grid is SMALL
        for size in (255, 256, 257, 511, 512, 513, 2**20):
            grid = Grid(0, size - 1, step=1, missing=2.0)
            [coarse] = {*TukeyDepth(grid=(grid,) * 3, dimension=3, epsilon=1.0).grid}
            assert coarse.size <= 256
            assert coarse.size >= 128 or grid == coarse
            assert coarse.missing == 2.0

    def test_parameters(self):
        for options in ({"dimension": 1}, {"dimension": 4}, {"epsilon": 0.0}, {"grid": (SMALL,) * 3}):
            with pytest.raises(ValueError, match=r"(dimension|epsilon|grid) must be .*"):
                TukeyDepth(**{"grid": SMALL, "epsilon": 1.0, **options})
        for options in ({"grid": 3}, {"grid": ()}, {"grid": [1, 2]}, {"dimension": 2.5}):
            with pytest.raises(TypeError):
                TukeyDepth(**{"grid": SMALL, "epsilon": 1.0, **options})
        with pytest.raises(ValueError, match="X must have 2 columns, not 3"):
            TukeyDepth(grid=SMALL, epsilon=1.0)(np.zeros((4, 3)))
        with pytest.raises(ValueError, match="missing='drop'"):
            TukeyDepth(grid=Grid(0, 3, step=1, missing="drop"), epsilon=1.0)
        for shape in ((257, 2), (3, 3)):
            with pytest.raises(ValueError, match="at most 2\\*\\*20 points"):
                TukeyDepth(grid=Grid(0, 2000), dimension=shape[1], epsilon=1.0).law(np.zeros(shape)).logpmf(
                    [[0] * shape[1]]
                )

    def test_checks_come_before_records(self):
        with pytest.raises(TypeError, match="rng"):
            TukeyDepth(grid=SMALL, epsilon=1.0)(Untouchable(), rng="no")
