"""The kernel of order statistics: windows of sorted codes for any dtype, layout, order and number of workers."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.random import PCG64
from numpy.testing import assert_array_equal

import dpfast as dpf
from dpfast import Grid
from dpfast._kernels import _scores, _select, _windows
from dpfast._kernels._sources import secret_word
from tests.cases import every
from tests.reference import select as reference
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel

GRID = {"lower": -1e9, "upper": 1e9, "step": 1.0, "missing": 3.0}
FLOATS = ["float16", "float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
LARGE = 300_000
SECRET = 0xD1B54A32D192ED03
LAYOUTS = {
    "contiguous": lambda x: x,
    "reversed view": lambda x: x[::-1],
    "every second": lambda x: x.repeat(2)[::2],
    "every second backwards": lambda x: x.repeat(2)[::-2],
    "constant view": lambda x: np.broadcast_to(x[:1], x.shape),
    "packed field": lambda x: _packed(x),
}


@pytest.fixture(autouse=True, scope="module")
def known_sample():
    """Selections look first where the orders below are made to fool them; `TestSecret` lets them look elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_select, "secret_word", lambda: SECRET)
        yield


def _packed(x):
    """The same values, unaligned."""
    records = np.empty(x.shape, dtype=[("tag", "u1"), ("value", x.dtype)])
    records["value"] = x
    return records["value"]


def assert_window(values, first, last, workers=1, **grid):
    """The kernel agrees with the slow twin bit for bit, zeros being positive, and leaves its input alone."""
    grid = GRID | grid
    before = values.copy()
    got = _select.window(values, first, last, workers=workers, **grid)
    expected = np.array(reference.window(values, first, last, **grid)) + 0.0
    assert got.dtype == np.float64
    assert got.tobytes() == expected.tobytes()
    assert values.tobytes() == before.tobytes()


def sorted_window(values, first, last):
    """NumPy's answer, for float64 without NaN."""
    return np.sort(values)[first - 1 : last]


arrays = st.sampled_from([*FLOATS, *INTEGERS]).flatmap(
    lambda dtype: hnp.arrays(
        dtype,
        st.integers(1, 200),
        elements=st.one_of(
            hnp.from_dtype(np.dtype(dtype)),
            st.sampled_from([0, 1]),
            *([st.sampled_from([-0.0, np.nan, np.inf, -np.inf])] if dtype in FLOATS else []),
        ),
    )
)


class TestSmall:
    @given(arrays, st.sampled_from(sorted(LAYOUTS)), st.integers(-5, 210), st.integers(0, 30))
    def test_equals_the_twin(self, x, layout, first, extra):
        values = LAYOUTS[layout](x)
        values.flags.writeable = False
        assert_window(values, first, first + extra)

    @given(arrays)
    def test_whole_order_and_beyond(self, x):
        assert_window(x, -3, len(x) + 3)

    @every("n", [1, 2, 7, 8, 9, 31, 33, 63, 64, 65, 100, 1000, 4096])
    def test_every_length_of_run(self, n):
        x = np.random.default_rng(n).integers(-n, n, n).astype(float)
        assert_window(x, 1, n)
        assert_window(np.sort(x)[::-1], n, n)

    @every("first, last", [(-9, -3), (-3, 0), (0, 1), (3, 4), (4, 9)])
    def test_ranks_outside(self, first, last):
        assert_window(np.array([2.0, 1.0, 3.0]), first, last)

    def test_empty(self):
        assert_window(np.empty(0), 0, 1)

    def test_missing_takes_its_rank(self):
        x = np.array([5.0, np.nan, 1.0, np.nan])
        assert_array_equal(_select.window(x, 1, 4, **GRID), [1, 3, 3, 5])
        assert_array_equal(_select.window(x, 1, 4, **(GRID | {"missing": np.inf})), [1, 5, np.inf, np.inf])

    def test_all_halves(self):
        bits = np.arange(2**16, dtype="u2").view("f2")
        finite = bits[~np.isnan(bits)]
        got = _select.window(bits, 1, len(bits), **(GRID | {"missing": np.inf}))
        assert_array_equal(got[: len(finite)], np.sort(finite.astype(float)))

    def test_unsupported_dtype(self):
        with pytest.raises(TypeError, match="complex128"):
            _select.window(np.zeros(3, complex), 1, 1, **GRID)
        with pytest.raises(TypeError, match=r"longdouble|float128"):
            _select.window(np.zeros(3, np.longdouble), 1, 1, **GRID)

    def test_no_memory(self):
        with pytest.raises(MemoryError):
            _select.window(np.ones(3), 1, 2**45, **GRID)


class TestIntegers:
    """64-bit integers: clamped and rounded half to even, exactly."""

    @given(
        hnp.arrays("int64", st.integers(1, 60)) | hnp.arrays("uint64", st.integers(1, 60)),
        st.integers(0, 70),
        st.integers(-(2**53), 2**53),
        st.integers(-(2**53), 2**53),
    )
    def test_steps_and_bounds(self, x, exponent, one, other):
        step = 2**exponent
        bounds = {"lower": float(min(one, other) * step), "upper": float(max(one, other) * step), "step": float(step)}
        assert_window(x, 1, len(x), **bounds)
        assert_window(x[::-1], 1, len(x), **bounds)

    @every("dtype", ["int64", "uint64"])
    @every("exponent", [0, 1, 7, 8, 10, 11, 31, 32, 33, 52, 61, 62, 63, 64, 65, 66, 100])
    def test_extremes_and_ties(self, dtype, exponent):
        info = np.iinfo(dtype)
        step = 2**exponent
        near = [multiple * step // 2 + d for multiple in range(-9, 10) for d in (-1, 0, 1)]
        near += [end + d for end in (info.min, info.max, -(2**60), 2**60, 2**53, 2**63) for d in (-2, -1, 0, 1, 2)]
        x = np.array([v for v in near if info.min <= v <= info.max], dtype=dtype)
        bound = float(2**53 * step)
        for lower, upper in [(-bound, bound), (float(-step), float(step)), (bound / 2, bound), (-bound, -float(step))]:
            assert_window(x, 1, len(x), lower=lower, upper=upper, step=float(step))

    def test_bounds_of_sixty_bits(self):
        x = np.array([2**60 + 1, 2**60 - 1, -(2**62), 2**60 - 64, 2**60 - 192, 5], dtype="int64")
        assert_window(x, 1, 6, lower=-float(2**60), upper=float(2**60), step=128.0)

    def test_fractional_step(self):
        assert_window(np.arange(-3, 4), 1, 7, lower=-1.5, upper=0.25, step=0.25)


def stratum_width(n):
    """Records from which a selection samples one key."""
    return int(0.75 * n**0.375) + 1


def orders(n):
    """Float64 data of n records in every order that has fooled a selection."""
    rng = np.random.default_rng(n)
    x = rng.lognormal(10, 1, n)
    ascending = np.sort(x)
    sampled = np.array(_select.sample_positions(n, SECRET))
    adversarial = x + 1e9  # the bracket misses the window
    adversarial[sampled] -= 2e9
    overflowing = x.copy()  # the bracket holds all the others
    overflowing[sampled] = np.where(np.arange(len(sampled)) % 2, -1e9, 1e9)
    return {
        "random": x,
        "ascending": ascending,
        "descending": ascending[::-1].copy(),
        "organ pipe": np.concatenate([ascending[::2], ascending[1::2][::-1]]),
        "equal": np.full(n, 7.0),
        "two values": rng.integers(0, 2, n).astype(float),
        "rare value": (rng.random(n) < 1e-3).astype(float),
        "few values": rng.integers(0, 9, n).astype(float),
        "ties and tails": np.where(rng.random(n) < 0.5, 3e4, x),
        "infinite": np.where(rng.random(n) < 0.6, np.inf, -np.inf),
        "periodic": np.arange(n) % 1000 * 1.0,
        "period of the strata": np.arange(n) % stratum_width(n) * 1.0,
        "subnormal": rng.integers(-1000, 1000, n) * 5e-324,
        "adversarial": adversarial,
        "adversarial downwards": -adversarial,
        "overflowing": overflowing,
    }


ORDERS = orders(LARGE)


def windows(n):
    """First and last ranks: the ends, the middle, one rank, wide and nearly whole."""
    k = n // 2
    return [(1, 1), (n, n), (1, 40), (n - 40, n), (k, k), (k - 130, k + 130), (k - n // 20, k + n // 20), (5, n - 5)]


class TestLarge:
    @every("order", ORDERS)
    def test_orders(self, order):
        x = ORDERS[order]
        ascending = np.sort(x)
        for first, last in windows(LARGE):
            assert_array_equal(_select.window(x, first, last, **GRID), ascending[first - 1 : last])

    @pytest.mark.parametrize("n", [4097, 5000, 20_011, 99_991])
    def test_lengths(self, n):
        for x in orders(n).values():
            for first, last in windows(n):
                assert_array_equal(_select.window(x, first, last, **GRID), sorted_window(x, first, last))

    @every("layout", LAYOUTS)
    @every("dtype", [*FLOATS, *INTEGERS])
    def test_dtypes_and_layouts(self, dtype, layout):
        n = 20_000
        rng = np.random.default_rng(5)
        x = LAYOUTS[layout]((rng.integers(0, 2, n) if dtype == "bool" else rng.integers(0, 120, n)).astype(dtype))
        x.flags.writeable = False
        before = x.copy()
        for first, last in windows(n):
            assert_array_equal(_select.window(x, first, last, **GRID), np.sort(x)[first - 1 : last].astype(float))
        assert_array_equal(x, before)

    @pytest.mark.parametrize("dtype", ["int64", "uint64"])
    def test_rounded_integers(self, dtype):
        x = np.random.default_rng(6).integers(0, 2**62, 20_000).astype(dtype)
        grid = {"lower": float(2**50), "upper": float(2**61), "step": 2.0**20}
        assert_window(x, 9_900, 10_100, **grid)
        assert_window(x[::2], 1, 50, **grid)

    @every("share", [1e-4, 0.1, 0.9, 1.0])
    @every("missing", [-np.inf, 1e3, 2.2e4, np.inf])
    @pytest.mark.parametrize("order", ["random", "few values", "adversarial"])
    def test_missing(self, order, missing, share):
        x = ORDERS[order].copy()
        x[np.random.default_rng(7).random(LARGE) < share] = np.nan
        ascending = np.sort(np.where(np.isnan(x), missing, x))
        grid = GRID | {"missing": missing}
        at = int(np.searchsorted(ascending, missing))
        around = (max(at - 100, 1), min(at + 100, LARGE))
        for first, last in [*windows(LARGE), around]:
            assert_array_equal(_select.window(x, first, last, **grid), ascending[first - 1 : last])

    @every("share", [0.0, 1e-4, 0.1, 0.9, 1.0])
    @pytest.mark.parametrize("order", ["random", "few values", "adversarial"])
    def test_missing_are_counted_in_place_of_a_window(self, order, share):
        x = ORDERS[order].copy()
        x[np.random.default_rng(7).random(LARGE) < share] = np.nan
        for values in (x, x[:50], x[:900], np.repeat(x, 2)[::2], x.astype(np.float32)):
            absent, n = int(np.isnan(values).sum()), len(values)
            for first, last, workers in ((1, 1, 1), (n // 2, n // 2 + 40, 2), (n - 1, n + 5, 1)):
                found = _select.window(values, first, last, **(GRID | {"missing": np.nan}), workers=workers)
                if absent:
                    assert type(found) is int
                    assert found == absent
                else:
                    assert_array_equal(found, _select.window(values, first, last, **GRID))
        assert type(_select.window(np.arange(9), 2, 3, **(GRID | {"missing": np.nan}))) is np.ndarray

    @pytest.mark.parametrize("missing", [-1.0, 2e4, 1e9])
    def test_missing_unseen_by_the_sample(self, missing):
        """NaN everywhere except in the sample: the buffer is sized without them."""
        x = np.full(LARGE, np.nan)
        sampled = _select.sample_positions(LARGE, SECRET)
        x[sampled] = ORDERS["random"][sampled]
        ascending = np.sort(np.where(np.isnan(x), missing, x))
        for first, last in windows(LARGE):
            got = _select.window(x, first, last, **(GRID | {"missing": missing}))
            assert_array_equal(got, ascending[first - 1 : last])

    def test_outside_ranks(self):
        x = ORDERS["random"]
        got = _select.window(x, -1, LARGE + 2, **GRID)
        assert_array_equal(got, [-np.inf, -np.inf, *np.sort(x), np.inf, np.inf])
        assert_array_equal(_select.window(x, -1, 2, **GRID), [-np.inf, -np.inf, *np.sort(x)[:2]])
        assert_array_equal(_select.window(x, LARGE, LARGE + 1, **GRID), [x.max(), np.inf])

    def test_memmap(self, tmp_path):
        x = ORDERS["random"]
        x.tofile(tmp_path / "x")
        mapped = np.memmap(tmp_path / "x", dtype=float, mode="r")
        assert_array_equal(_select.window(mapped, 9, 99, **GRID), sorted_window(x, 9, 99))

    def test_zeros_are_positive(self):
        x = np.where(np.arange(LARGE) % 2, -0.0, 0.0)
        for first, last in windows(LARGE):
            assert not np.signbit(_select.window(x, first, last, **GRID)).any()


class TestSample:
    def test_positions_are_stratified(self):
        positions = np.array(_select.sample_positions(LARGE, SECRET))
        width = stratum_width(LARGE)
        assert_array_equal(positions // width, np.arange(LARGE // width))

    def test_places_in_the_strata_are_spread(self):
        """A constant place would let periodic data through the sample; all places of a stratum do occur."""
        width = stratum_width(LARGE)
        assert len(set(np.array(_select.sample_positions(LARGE, SECRET)) % width)) == width

    def test_places_depend_on_the_secret(self):
        """Each place of a stratum is equally likely, given the place in the stratum before it."""
        width, secrets = stratum_width(5000), np.random.default_rng(0).integers(0, 2**64, 20_000, np.uint64)
        found = np.array([_select.sample_positions(5000, int(secret))[7:9] for secret in secrets]) % width
        counts = np.bincount(found[:, 0] * width + found[:, 1], minlength=width**2)
        assert not chi_square_rejects(counts, np.full(width**2, width**-2.0))
        assert chi_square_rejects(
            np.bincount(found[:, 0] * width + found[:, 0], minlength=width**2), np.full(width**2, width**-2.0)
        )


RELEASES = {
    "median": lambda x, rng: dpf.median(x, bounds=(0, 100), epsilon=1.0, rng=rng),
    "trimmed mean": lambda x, rng: dpf.trimmed_mean(x, trim=0.1, bounds=(0, 100), epsilon=1.0, rng=rng),
    "quantiles": lambda x, rng: dpf.Quantiles((0.1, 0.5, 0.9), grid=Grid(0, 100), epsilon=1.0)(x, rng=rng).tolist(),
    "M-estimate": lambda x, rng: dpf.MEstimator(dpf.psi.Huber(2.0), grid=Grid(0, 100), epsilon=1.0)(x, rng=rng),
    "groups": lambda x, rng: dpf.by_group(
        dpf.InverseSensitivity(dpf.statistics.Median(), grid=Grid(0, 100), epsilon=1.0),
        x,
        labels=np.arange(len(x)) % 2,
        rng=rng,
    ).tolist(),
}


@pytest.mark.parametrize("name", RELEASES)
class TestSecret:
    """The first places of a selection are secret and drawn for each call: no order of records can slow it down."""

    X = np.random.default_rng(4).gamma(2.0, 15.0, 20_000)

    def run(self, name, word, rng=None):
        with pytest.MonkeyPatch.context() as patch:
            for kernel in (_select, _windows, _scores):
                patch.setattr(kernel, "secret_word", word)
            return RELEASES[name](self.X, rng)

    def test_of_the_secure_generator_anew_for_each_release(self, name):
        words = []

        def word():
            words.append(secret_word())
            return words[-1]

        for _ in range(3):
            before = len(words)
            self.run(name, word, PCG64(1))
            assert len(words) > before
        assert len(set(words)) == len(words)

    def test_releases_do_not_depend_on_it(self, name):
        released = [self.run(name, lambda secret=secret: secret, PCG64(1)) for secret in (0, 1, SECRET, 2**64 - 1)]
        assert all(release == released[0] for release in released)


class TestWorkers:
    N = 3 << 20  # enough for three workers

    def test_results_do_not_depend_on_workers(self):
        made = orders(self.N)
        for order in ("random", "ascending", "few values", "adversarial", "overflowing"):
            x = made[order]
            x[::17] = np.nan
            self.check(x, windows(self.N)[:: 1 if order == "random" else 3])
            for values in (x[::-1], x.astype("float32"), np.nan_to_num(x).astype("int64")):
                self.check(values, windows(self.N)[2::3])

    def check(self, values, ranks):
        for first, last in ranks:
            one, three = (_select.window(values, first, last, workers=w, **GRID).tobytes() for w in (1, 3))
            assert one == three

    def test_concurrent_calls(self):
        x = ORDERS["random"]
        expected = sorted_window(x, 1000, 1100)
        results = []

        def call():
            for _ in range(10):
                results.append(_select.window(x, 1000, 1100, **GRID))

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(results) == 40
        for result in results:
            assert_array_equal(result, expected)


CODES = Grid(-100, 1000, step=1, missing=3)


def assert_windows(values, low, high, grid=CODES, workers=1):
    """Both windows by the twin, the sum between by codes one by one; the same without the sum."""
    before = values.copy()
    got = _select.windows(values, low, high, first=grid.first, sums=True, **grid.kernel, workers=workers)
    for window, ranks in zip(got, (low, high), strict=False):
        expected = np.array(reference.window(values, *ranks, **grid.kernel)) + 0.0
        assert window.tobytes() == expected.tobytes()
    assert got[2] == reference.between(values, low[1], high[0], grid)
    plain = _select.windows(values, low, high, first=grid.first, **grid.kernel, workers=workers)
    assert plain[2] == 0
    assert all(map(np.array_equal, plain[:2], got[:2]))
    assert values.tobytes() == before.tobytes()


class TestWindows:
    """Two windows and the sum between, in one scan or three."""

    @given(arrays, st.sampled_from(sorted(LAYOUTS)), st.integers(-9, 205), *[st.integers(0, 9)] * 2, st.integers(1, 90))
    def test_small(self, x, layout, first, width, other, apart):
        high = first + width + apart
        assert_windows(LAYOUTS[layout](x), (first, first + width), (high, high + other))

    @every("dtype", ["float64", "float32", "float16", "int64", "int16", "uint64"])
    @every("layout", sorted(LAYOUTS))
    def test_one_scan(self, dtype, layout):
        x = LAYOUTS[layout](np.random.default_rng(1).integers(0, 1200, 8001).astype(dtype))
        assert_windows(x, (790, 810), (7190, 7210))
        assert_windows(x, (-20, 20), (7990, 8030))

    @pytest.mark.parametrize("ranks", [((1, 5), (7995, 8000)), ((4000, 4010), (4011, 4020)), ((-9, 0), (5, 9))])
    @pytest.mark.parametrize(
        "data",
        {
            "missing": lambda x: np.where(x < 300, np.nan, x),
            "all missing": lambda x: np.full(x.size, np.nan),
            "two values": lambda x: np.where(x < 500, 2.0, 7.0),
            "one value": lambda x: np.full(x.size, 7.0),
            "few extremes": lambda x: np.where(x < 1, -np.inf, np.where(x > 998, np.inf, 5.0)),
            "sorted": np.sort,
            "reversed": lambda x: np.sort(x)[::-1].copy(),
            "halves": lambda x: x / 2 + 0.25,
        }.items(),
        ids=lambda item: item[0],
    )
    def test_ties_ends_and_missing(self, data, ranks):
        x = data[1](np.random.default_rng(2).integers(0, 1000, 8000).astype(float))
        assert_windows(x, *ranks)
        assert_windows(x, *ranks, grid=Grid(10, 700, step=4, missing=10_000))

    @pytest.mark.parametrize("high_too", [False, True])
    def test_against_the_sample(self, high_too):
        """The sampled records are the least (or greatest), so that every bracket is wrong."""
        n = 20_000
        x = np.arange(n, dtype=float)
        places = np.array(_select.sample_positions(n, SECRET))
        x[places], x[: len(places)] = x[: len(places)].copy(), x[places].copy()
        x = n - x if high_too else x
        assert_windows(x, (1_995, 2_005), (17_995, 18_005), grid=Grid(0, n, step=0.5))

    @every("zeros", [0, 1, 4000, 4001, 5105, 5106, 6000, 9999])
    @every("n", [2000, 10_000])
    def test_sums_of_any_size(self, zeros, n):
        """The sums of both sides exceed 64 bits: the result matches Python's integers."""
        x = np.where(np.arange(n) < zeros, 0.0, 2.0**52)
        grid = Grid(0, 2**52 - 1, step=1)
        assert_windows(x, (n // 5, n // 5 + 9), (n - n // 5, n - n // 5 + 9), grid=grid)
        assert_windows(np.random.default_rng(4).permutation(x), (1, 9), (n - 9, n), grid=grid)

    def test_workers(self):
        x = np.random.default_rng(3).integers(0, 1000, 2_200_000).astype(float)
        grid = Grid(0, 1000, step=1)
        one, two = (
            _select.windows(
                x, (9, 99), (2_000_000, 2_000_009), first=grid.first, sums=True, **grid.kernel, workers=workers
            )
            for workers in (1, 2)
        )
        ordered = np.sort(x)
        assert one[2] == two[2] == int(ordered[99 : 2_000_000 - 1].sum())
        assert_array_equal(one[0], two[0])
        assert_array_equal(two[1], ordered[2_000_000 - 1 : 2_000_009])


class TestManyWindows:
    """Three windows or more, by a sort, buckets or brackets around them."""

    @every("count", [3, 15, 16])
    @every(
        "data",
        {
            "pay": lambda rng, n: rng.lognormal(10.5, 0.6, n),
            "sorted": lambda rng, n: np.sort(rng.lognormal(10.5, 0.6, n)),
            "ties": lambda rng, n: np.where(rng.random(n) < 0.3, 3e4, rng.lognormal(10.5, 0.6, n)),
            "five values": lambda rng, n: rng.integers(0, 5, n) * 1e5,
            "missing": lambda rng, n: np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(10.5, 0.6, n)),
            "infinite": lambda rng, n: rng.choice([-np.inf, 7.0, np.inf], n),
            "beyond the ends": lambda rng, n: rng.normal(0, 2e6, n),
            "float32": lambda rng, n: rng.lognormal(10.5, 0.6, n).astype(np.float32),
        }.items(),
        ids=lambda item: item[0],
    )
    def test_against_a_sort(self, data, count):
        rng, grid = np.random.default_rng(1), Grid(0, 10**6, missing=123.0)
        for n in (4_000, 20_000, 300_001):
            x = data[1](rng, n)
            middles = np.arange(1, count + 1) * n // (count + 1)
            for reach in (2, n // (9 * count)):
                firsts, lasts = middles - reach, middles + reach
                ordered = np.clip(np.sort(np.where(np.isnan(x), 123.0, x)), 0, 10**6)
                expected = np.concatenate([ordered[f - 1 : w] for f, w in zip(firsts, lasts, strict=True)])
                for workers in (1, 2):
                    found = _windows.windows(x, firsts, lasts, **grid.kernel, workers=workers)
                    assert_array_equal(grid.encode(found), grid.encode(expected))


class TestTells:
    """``missing=nan`` says whether a record is NaN, in the pass of the selection."""

    TELLS = {**GRID, "step": 2.0**-20, "missing": np.nan}  # noqa: RUF012

    @every("dtype", [np.float64, np.float32])
    @every("n", [3, 60, 900, 5_000, 300_000])
    def test_windows(self, n, dtype):
        rng = np.random.default_rng(n)
        low, high = (max(n // 4 - 3, 1), max(n // 4, 1)), (n // 2 + 1, min(n // 2 + 5, n))
        firsts, lasts = np.array([low[0], high[0]]), np.array([low[1], high[1]])
        for missing in (0, 1, n // 3, n):
            x = rng.normal(size=n).astype(dtype)
            x[rng.permutation(n)[:missing]] = np.nan
            for workers in (1, 2):
                one = _select.window(x, *low, **self.TELLS, workers=workers)
                two = _select.windows(x, low, high, first=-1e9 * 2**20, **self.TELLS, workers=workers)
                many = _windows.windows(x, firsts, lasts, **self.TELLS, workers=workers)
                if missing:
                    assert (one, two, many) == (missing, None, None)
                    continue
                ordered = np.sort(x).astype(np.float64)
                expected = [ordered[first - 1 : last] for first, last in (low, high)]
                assert_array_equal(one, expected[0])
                assert_array_equal(np.concatenate(two[:2]), np.concatenate(expected))
                assert_array_equal(many, np.concatenate(expected))

    def test_integers_and_few_points(self):
        x, ranks = np.arange(10_000), np.array([10, 5_000])
        few = {"lower": 0.0, "upper": 100.0, "step": 1.0, "missing": np.nan}
        assert_array_equal(_windows.windows(x % 7, ranks, ranks, **few), np.sort(x % 7)[ranks - 1])
        holes = np.where(x == 77, np.nan, x % 7)
        assert _windows.windows(holes, ranks, ranks, **few) is None
