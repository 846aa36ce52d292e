"""Families: sums over blocks in exact fixed point, estimates, their bias and their information."""

import itertools
import math
import pickle
import threading
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import dpfast as dpf
from dpfast import families
from dpfast._kernels import _blocks
from dpfast.families import BlockFamily, Custom, Ranges, Scipy
from dpfast.families.family import logarithms
from dpfast.families.user import family_of, named
from tests.cases import every
from tests.families import THETAS, box_of, draws
from tests.reference import blocks as reference

pytestmark = pytest.mark.kernel

LARGEST, LEAST = 1.7976931348623157e308, 5e-324
KINDS = [
    ("value", 0.0, 2.0**-20),
    ("value", 3.5, 2.0**3),
    ("square", -1.0, 2.0**-12),
    ("wide", 0.0, 4.0),
    ("log", 0.0, 1.0),
    ("log-square", 0.0, 1.0),
    ("log1m", 0.0, 1.0),
]
EXTREMES = [np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 1.0, 5e-324, 1e-300, 1e300, LARGEST, 2.0**53, 0.5]


def state_of(values, k, columns, lower=-LARGEST, upper=LARGEST, **options):
    state = _blocks.BlockSums(len(values), k, columns, lower=lower, upper=upper)
    state.update(np.asarray(values), **options)
    return state


def support_of(kind):
    return {"log1m": (LEAST, 1 - 2.0**-53), "log": (LEAST, LARGEST), "log-square": (LEAST, LARGEST)}.get(
        kind, (-LARGEST, LARGEST)
    )


class TestBlockSums:
    @every("column", KINDS, ids=lambda column: f"{column[0]} {column[2]:g}")
    @every("n, k", [(1, 1), (7, 3), (200, 7), (700, 1), (601, 601)])
    def test_reference(self, column, n, k):
        """Bit for bit; a logarithm may be rounded the other way where it is half a step from both."""
        rng = np.random.default_rng(n)
        x = rng.uniform(size=n) * 10.0 ** rng.integers(-8, 9, n)
        x = np.where(rng.uniform(size=n) < 0.5, -x, x) if column[0] in ("value", "square", "wide") else x
        x[: len(EXTREMES)] = EXTREMES[:n]
        if column[0] == "log1m":
            x = np.where(x > 1, 1 / np.maximum(x, 1), x)
        lower, upper = support_of(column[0])
        got = state_of(x, k, [column], lower, upper).integers()
        want = reference.sums(x.tolist(), k, [column], lower, upper)
        if not column[0].startswith("log"):
            assert got == want
            return
        for mine, exact in zip(got, want, strict=True):
            assert mine[0] == exact[0]
            assert abs(mine[1] - exact[1]) <= mine[0]
            assert abs(mine[2] - exact[2]) <= mine[0] * 2**48

    def test_positions(self):
        for n in range(1, 40):
            for k in range(1, n + 1):
                offsets = _blocks.offsets(n, k)
                starts = [block[0] for block in reference.members(n, k)]
                assert offsets.tolist() == [*starts, n]

    def test_partition_is_of_positions(self):
        """n and k near the limits: the same block for the first and the last record of every block."""
        for n, k in [(2**40 + 3, 1000), (10**7, 166_407), (2**31, 2**20 + 1)]:
            offsets = _blocks.offsets(n, k).tolist()
            assert offsets[0] == 0
            assert offsets[-1] == n
            for j in (0, 1, k // 3, k - 1):
                assert reference.block_of(offsets[j], k, n) == j
                assert reference.block_of(offsets[j + 1] - 1, k, n) == j

    @given(st.data())
    def test_chunks_and_merges(self, data):
        """Any chunks, states that start anywhere, and threads: the same integers."""
        n = data.draw(st.integers(1, 300))
        k = data.draw(st.integers(1, n))
        rng = np.random.default_rng(n * k)
        x = rng.normal(size=n) * 1e3
        cuts = sorted({0, n, *data.draw(st.lists(st.integers(0, n), max_size=4))})
        columns = [("square", 0.0, 2.0**-12), ("wide", 1.0, 1.0)]
        whole = state_of(x, k, columns)
        states = []
        for a, b in itertools.pairwise(cuts):
            state = _blocks.BlockSums(n, k, columns, lower=-LARGEST, upper=LARGEST, start=a)
            middle = (a + b) // 2
            state.update(x[a:middle])
            state = pickle.loads(pickle.dumps(state))
            state.update(x[middle:b])
            states.append(state)
        states = data.draw(st.permutations(states))
        for other in states[1:]:
            states[0].merge(other)
        assert states[0].integers() == whole.integers()
        assert states[0].seen == n

    def test_workers(self):
        x = np.random.default_rng(0).exponential(size=600_000)
        for columns in ([("value", 0.0, 2.0**-20)], [("wide", 0.0, 1.0), ("log", 0.0, 1.0)]):
            one = state_of(x, 777, columns, LEAST)
            assert state_of(x, 777, columns, LEAST, workers=3).integers() == one.integers()

    @every("dtype", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"])
    def test_dtypes_and_strides(self, dtype):
        x = np.random.default_rng(0).integers(0, 2, 999).astype(dtype)
        want = state_of(x.astype(np.float64), 13, [("value", 0.0, 1.0)]).integers()
        strided = np.zeros(2 * 999, dtype)[::2]
        strided[:] = x
        x.flags.writeable = False
        for values in (x, strided, np.ascontiguousarray(x[::-1])[::-1]):
            assert state_of(values, 13, [("value", 0.0, 1.0)]).integers() == want

    def test_gil_is_released(self):
        """While a thread sums, this one runs; a busy machine may need several attempts to show it."""
        x = np.random.default_rng(0).exponential(size=2_000_000)

        def ticks():
            done = threading.Event()
            thread = threading.Thread(target=lambda: (state_of(x, 100, [("log-square", 0.0, 1.0)], LEAST), done.set()))
            thread.start()
            count = 0
            while not done.wait(1e-4):
                count += 1
            thread.join()
            return count

        assert any(ticks() >= 5 for _ in range(100))

    def test_far_from_zero(self):
        """Deviations of records at 2**40 steps from the center are exact."""
        x = 2.0**28 + np.random.default_rng(0).normal(size=5000)
        _, _, deviations = state_of(x, 3, [("square", 0.0, 2.0**-12)]).totals()
        codes = np.array([int(code) for code in np.rint(x * 2.0**12)], dtype=object)
        for block, got in zip(reference.members(5000, 3), deviations, strict=True):
            mine = codes[block]
            exact = sum(c * c for c in mine) - Fraction(sum(mine) ** 2, len(mine))
            assert got * 2.0**24 == pytest.approx(float(exact), rel=1e-12)

    def test_refused(self):
        state = _blocks.BlockSums(10, 2, [("value", 0.0, 1.0)], lower=0.0, upper=1.0)
        with pytest.raises(ValueError, match="a state of 10 records cannot take 11 more after 0"):
            state.update(np.zeros(11))
        for shape in ((), (3, 2)):
            with pytest.raises(ValueError, match="records must be one-dimensional, not of shape"):
                state.update(np.zeros(shape))
        with pytest.raises(TypeError, match=r"records must be in native byte order, not of dtype [<>]f8"):
            state.update(np.zeros(3, np.dtype(np.float64).newbyteorder("S")))
        with pytest.raises(TypeError, match="no keys are defined for records of dtype complex128"):
            state.update(np.zeros(3, complex))
        with pytest.raises(ValueError, match="do not merge"):
            state.merge(_blocks.BlockSums(10, 3, [("value", 0.0, 1.0)], lower=0.0, upper=1.0))
        with pytest.raises(ValueError, match="1 <= blocks <= n"):
            _blocks.BlockSums(3, 4, [("value", 0.0, 1.0)], lower=0.0, upper=1.0)


class TestFunctions:
    def test_logarithm(self):
        rng = np.random.default_rng(0)
        x = np.concatenate([10.0 ** rng.uniform(-307, 308, 2000), 1 + rng.uniform(-1, 1, 2000) * 2.0**-20])
        for value, got in zip(x, _blocks.logs(x), strict=True):
            exact = mpmath.log(mpmath.mpf(value))
            assert abs(got - exact) <= 2.0**-50 * (abs(exact) + 1)

    def test_polygammas(self):
        x = 10.0 ** np.random.default_rng(0).uniform(-4, 6, 300)
        with mpmath.workdps(40):
            for value, *got in zip(x, *_blocks.polygammas(x), strict=True):
                k = mpmath.mpf(value)
                exact = mpmath.log(k) - mpmath.digamma(k), mpmath.psi(1, k) - 1 / k, -mpmath.psi(2, k) - 1 / k**2
                scale = 1, 1 / k, 1 / k**2
                for mine, theirs, unit in zip(got, exact, scale, strict=True):
                    assert abs(mine - theirs) <= 1e-12 * (abs(theirs) + unit)
        assert np.isnan(_blocks.polygammas(np.array([0.0, -1.0, np.nan, np.inf]))).all()

    def test_gamma_shape(self):
        k = 10.0 ** np.random.default_rng(0).uniform(-2, 3, 100)
        mean_log = scipy.special.digamma(k)
        got = _blocks.gamma_shapes(k, mean_log)
        for mean, log, mine in zip(k, mean_log, got, strict=True):
            s = mpmath.log(mpmath.mpf(mean)) - mpmath.mpf(log)
            assert abs(reference.shape_equation(mine) - s) <= 1e-12 * s + 1e-15 * (1 + abs(log))
        bad = _blocks.gamma_shapes(np.array([1.0, 1.0, np.nan, 0.0]), np.array([0.0, 0.5, 0.0, -1.0]))
        assert np.isnan(bad).all()

    def test_normal_correction(self):
        m = np.array([2.0, 3, 5, 20, 33, 34, 100, 1e6])
        exact = [float(reference.normal_correction(int(size))) for size in m]
        assert _blocks.normal_corrections(m) == pytest.approx(exact, rel=1e-8)


class TestEstimates:
    @pytest.mark.slow
    @pytest.mark.parametrize(("name", "theta"), THETAS, ids=lambda value: value if isinstance(value, str) else "")
    def test_bias_and_information(self, name, theta):
        """Blocks of 24: raw bias as stated, to its next order; corrected, |bias| b**2 is bounded; variance 1/(b I)."""
        family, box, b, k = family_of(name), box_of(theta), 24, 60_000
        x = draws(name, theta, k * b, np.random.default_rng(7))
        raw, corrected = (family.estimates((x,), k, box, corrected=c, workers=1) for c in (False, True))
        known = family.reference(box, theta)
        assert np.isfinite(corrected).all()
        for i, (parameter, value) in enumerate(theta.items()):
            b1, (v2, _) = family.bias(parameter, known), family.second_order(parameter, known)
            noise = 6 * corrected[:, i].std() / k**0.5
            second = 5 * value / b**2
            assert abs(raw[:, i].mean() - value - b1 / b) < noise + 9 * abs(b1) / b**2 + second
            assert abs(corrected[:, i].mean() - value) < noise + second
            if b1:  # the control: uncorrected estimates fail the same test
                assert abs(raw[:, i].mean() - value) > noise + second
            times = corrected[:, i].var() * b * family.information(parameter, known)
            assert 0.95 < times < 1.15 + 2 * v2 * family.information(parameter, known) / b

    LOGARITHMS = (
        ("exponential", "rate", 0.5, lambda rng, n: rng.exponential(2.0, n)),
        ("exponential", "mean", 2.0, lambda rng, n: rng.exponential(2.0, n)),
        ("normal", "sd", 2.0, lambda rng, n: rng.normal(5.0, 2.0, n)),
        ("normal", "variance", 4.0, lambda rng, n: rng.normal(5.0, 2.0, n)),
        ("lognormal", "sigma", 0.5, lambda rng, n: rng.lognormal(1.0, 0.5, n)),
        ("pareto", "shape", 3.0, lambda rng, n: 1 + rng.pareto(3.0, n)),
        ("gamma", "shape", 0.1, lambda rng, n: rng.gamma(0.1, 2.0, n)),
        ("gamma", "shape", 0.7, lambda rng, n: rng.gamma(0.7, 2.0, n)),
        ("gamma", "shape", 30.0, lambda rng, n: rng.gamma(30.0, 2.0, n)),
        ("weibull", "shape", 1.5, lambda rng, n: 2 * rng.weibull(1.5, n)),
        ("laplace", "scale", 0.5, lambda rng, n: rng.laplace(7.0, 0.5, n)),
        (families.LinearRegression(2), "sd", 2.0, lambda rng, n: (rng.normal(size=(n, 2)), rng.normal(3, 2.0, n))),
    )

    @pytest.mark.parametrize(("family", "name", "value", "draw"), LOGARITHMS)
    def test_logarithms(self, family, name, value, draw):
        """Their bias is removed to the second order, and their variance is as stated; the raw ones fail."""
        family, b, k = family_of(family), 24, 40_000
        data = draw(np.random.default_rng(9), k * b)
        data = data if isinstance(data, tuple) else (data,)
        box = Ranges((name,), (value / 50,), (value * 50,), (name,))
        raw, logs = (
            family.estimates(data, k, box, corrected=c, workers=1)[:, 0] - np.log(value) for c in (False, True)
        )
        assert np.isfinite(logs).all()
        theta = family.reference(box, {name: value})
        v2, b2 = family.log_second_order(name, theta)
        noise, second = 6 * logs.std() / k**0.5, (b2 + 0.1) / b**2
        assert abs(logs.mean()) < noise + second
        if name != "mean" and not isinstance(family, families.LinearRegression):
            assert abs(raw.mean()) > noise + second
        relative = family.information(name, theta) * value**2
        assert logs.var() == pytest.approx((1 / relative + v2 / b) / b, rel=0.05)

    def test_logarithms_of_junk(self):
        """The least normal number and below act as 0; the others match a scalar loop."""
        x = np.array([0.0, -1.0, 5e-324, 2.0**-1022, 1.0, LARGEST, np.inf, np.nan])
        logs = logarithms(x)
        assert logs[:3].tolist() == [-np.inf] * 3
        np.testing.assert_allclose(logs[3:6], np.log(x[3:6]), rtol=1e-15)
        assert logs[6] == np.inf
        assert np.isnan(logs[7])
        gamma = families.Gamma()
        box = Ranges(("shape",), (0.1,), (10.0,), ("shape",))
        assert gamma.averaged("shape", np.array([0.0, np.inf]), np.array([9.0, 9.0]), box, corrected=True).tolist() == [
            -np.inf,
            np.inf,
        ]

    @every("name, theta", THETAS, ids=lambda value: value if isinstance(value, str) else "")
    def test_is_the_maximum(self, name, theta):
        """The uncorrected estimate has a likelihood no less than its surroundings."""
        logpdf = {
            "bernoulli": lambda x, p: scipy.stats.bernoulli.logpmf(x, p),
            "poisson": lambda x, mean: scipy.stats.poisson.logpmf(x, mean),
            "geometric": lambda x, p: scipy.stats.geom.logpmf(x, p),
            "exponential": lambda x, rate: scipy.stats.expon.logpdf(x, scale=1 / rate),
            "normal": lambda x, mean, sd: scipy.stats.norm.logpdf(x, mean, sd),
            "lognormal": lambda x, mu, sigma: scipy.stats.lognorm.logpdf(x, sigma, scale=np.exp(mu)),
            "pareto": lambda x, shape: scipy.stats.pareto.logpdf(x, shape),
            "gamma": lambda x, shape, scale: scipy.stats.gamma.logpdf(x, shape, scale=scale),
            "beta": lambda x, a, b: scipy.stats.beta.logpdf(x, a, b),
        }[name]
        names = list(logpdf.__code__.co_varnames)[1:]
        x = draws(name, theta, 200, np.random.default_rng(5))
        box = box_of({key: theta[key] for key in names})
        [estimate] = family_of(name).estimates((x,), 1, box, corrected=False, workers=1).tolist()
        best = logpdf(x, *estimate).sum()
        for i, factor in itertools.product(range(len(names)), (0.98, 0.999, 1.001, 1.02)):
            moved = [value * (factor if i == j else 1) for j, value in enumerate(estimate)]
            assert logpdf(x, *moved).sum() < best

    def test_normal_far_away(self):
        """Timestamps: the deviation of records at 1.7e9 is right, and with a given center also at 1e15."""
        noise = np.random.default_rng(0).normal(size=1000)
        box = Ranges(("sd",), (0.1,), (5.0,))
        for center, family in ((1.7e9, families.Normal()), (2.0**50, families.Normal(center=2.0**50))):
            x = center + noise
            [[sd]] = family.estimates((x,), 1, box, corrected=False, workers=1)
            assert sd == pytest.approx((x - center).std(), rel=1e-6)

    @pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
    def test_gamma_of_any_scale(self, scale):
        x = np.random.default_rng(0).gamma(2.0, scale, 1000)
        box = Ranges(("shape",), (0.1,), (10.0,))
        [[shape]] = families.Gamma().estimates((x,), 1, box, corrected=False, workers=1)
        assert shape == pytest.approx(scipy.stats.gamma.fit(x / scale, floc=0)[0], rel=1e-5)

    def test_outside_the_support(self):
        """What cannot be is left out; a block without enough records has no estimate."""
        for name, theta in THETAS:
            family, box = family_of(name), box_of(theta)
            x = np.asarray(draws(name, theta, 300, np.random.default_rng(1)), dtype=float)
            bad = np.array([np.nan, np.inf, -np.inf] * 10)
            mixed = np.insert(x, np.arange(0, 300, 10), bad)
            want = family.estimates((x,), 1, box, corrected=True, workers=1)
            got = family.estimates((mixed,), 1, box, corrected=True, workers=1)
            np.testing.assert_array_equal(got, want)
            nothing = family.estimates((np.full(40, np.nan),), 2, box, corrected=True, workers=1)
            assert np.isnan(nothing).all()

    @pytest.mark.parametrize("constant", [0.0, 1.0, 2.0**-1074, 1e308])
    def test_constant_records(self, constant):
        """No warning and no exception: the result is a number, an infinity or NaN."""
        for name, theta in THETAS:
            for corrected in (False, True):
                x = np.full(60, constant)
                estimates = family_of(name).estimates((x,), 3, box_of(theta), corrected=corrected, workers=1)
                assert estimates.shape == (3, len(theta))
                np.testing.assert_array_equal(estimates[0], estimates[2])

    def test_huge_counts(self):
        box = Ranges(("mean",), (0.0,), (1e12,))
        x = np.array([2**40] * 10 + [2**62] * 10)
        [[low], [high]] = families.Poisson().estimates((x,), 2, box, corrected=True, workers=1)
        assert low == 2**40
        assert high == pytest.approx(2**51 - 1, rel=1e-15)


class TestBlockFamily:
    class Broken(BlockFamily):
        """Fails where a block holds a number above 100."""

        names = ("location",)

        def fit(self, *data, offsets, box, corrected):
            [x] = data
            if (x[offsets[0] : offsets[-1]] > 100).any():
                raise ZeroDivisionError
            return np.array([[x[a:b].mean()] for a, b in itertools.pairwise(offsets)])

    BOX = Ranges(("location",), (0.0,), (10.0,))

    class BrokenTogether(Broken):
        many = True

    @pytest.mark.parametrize("workers", [1, 3])
    @pytest.mark.parametrize("family", [Broken(), BrokenTogether()], ids=["one", "many"])
    def test_one_failure_is_alone(self, family, workers):
        x = np.arange(40.0)
        x[13] = 1000
        got = family.estimates((x,), 8, self.BOX, corrected=True, workers=workers)[:, 0]
        assert np.isnan(got[2])
        assert np.delete(got, 2).tolist() == [2, 7, 17, 22, 27, 32, 37]

    class Slip(BlockFamily):
        """Ignores the blocks: by default it gets one block, and with `many` its result has a wrong shape."""

        names = ("location",)

        def fit(self, *data, offsets, box, corrected):
            return self.result(data[0])

        def result(self, x):
            return [[x.mean()]]

    @pytest.mark.parametrize("workers", [1, 3])
    def test_a_slip_cannot_mix_blocks(self, workers):
        x = np.arange(40.0)
        got = self.Slip().estimates((x,), 8, self.BOX, corrected=True, workers=workers)[:, 0]
        assert got.tolist() == [2, 7, 12, 17, 22, 27, 32, 37]

    @every("many", [False, True])
    @every("result", [lambda x: x.mean(), lambda x: [x.mean()], lambda x: [[[x.mean()]]]])
    def test_estimates_of_a_wrong_shape_are_refused(self, result, many):
        """Results are not broadcast: one number would stand for all blocks."""
        family = type("Wrong", (self.Slip,), {"many": many, "result": lambda self, x: result(x)})()
        assert np.isnan(family.estimates((np.arange(40.0),), 8, self.BOX, corrected=True, workers=1)).all()

    def test_a_fit_sees_its_blocks_only(self):
        """With `many`, it gets the records of its thread, and it cannot write to those of the caller."""
        seen = []

        class Looks(BlockFamily):
            names = ("location",)

            def fit(self, *data, offsets, box, corrected):
                seen.append((data[0].tolist(), offsets.tolist()))
                data[0][:] = 0

        class LooksTogether(Looks):
            many = True

        x = np.arange(6.0)
        assert np.isnan(Looks().estimates((x,), 3, self.BOX, corrected=True, workers=1)).all()
        made_up = seen[:-3]  # where there is a ledger
        assert seen[-3:] == [([0.0, 1.0], [0, 2]), ([2.0, 3.0], [0, 2]), ([4.0, 5.0], [0, 2])]
        assert len(made_up) < 2
        seen.clear()
        LooksTogether().estimates((np.insert(x, 0, np.nan),), 2, self.BOX, corrected=True, workers=1)
        assert (x.tolist(), [0, 3, 6]) in seen[:2]
        assert x.tolist() == [0, 1, 2, 3, 4, 5]

    def test_missing_records(self):
        x = np.array([1.0, np.nan, 3, np.inf, np.nan, np.nan, 5, 7])
        got = self.Broken().estimates((x,), 2, self.BOX, corrected=True, workers=1)[:, 0]
        assert got.tolist() == [2, 6]
        got = self.Broken().estimates((x,), 4, self.BOX, corrected=True, workers=1)[:, 0]
        assert np.isnan(got[:3]).all()  # fewer than two records each
        assert got[3] == 6


class TestCustom:
    BOX = Ranges(("parameter",), (0.0,), (10.0,))

    def estimates(self, function, x, k, **options):
        corrected = options.pop("corrected", False)
        return Custom(function, **options).estimates((x,), k, self.BOX, corrected=corrected, workers=2)[:, 0]

    def test_junk(self):
        x = np.arange(24.0)

        def odd(block):
            if block[0] == 0:
                raise RuntimeError("no")
            if block[0] == 4:
                return "word"
            if block[0] == 8:
                return [1.0, 2.0]
            if block[0] == 12:
                return None
            if block[0] == 16:
                block[:] = -1  # its copy
                return np.log(-1.0)
            return block.mean()

        got = self.estimates(odd, x, 6)
        assert np.isnan(got[:5]).all()
        assert got[5] == 21.5
        assert x.tolist() == list(range(24))

    def test_jackknife(self):
        """Of 4 records it makes the variance n-1 version of the plug-in variance, exactly."""
        x = np.random.default_rng(0).normal(size=12)
        got = self.estimates(np.var, x, 3, corrected=True)
        assert got == pytest.approx([np.var(x[a : a + 4], ddof=1) for a in (0, 4, 8)], rel=1e-12)
        raw = self.estimates(np.var, x, 3, corrected=True, jackknife=False)
        assert raw == pytest.approx([np.var(x[a : a + 4]) for a in (0, 4, 8)], rel=1e-12)
        by_hand = [4 * np.var(x) - sum(3 / 4 * np.var(np.delete(x, np.arange(j, 12, 4))) for j in range(4))]
        assert self.estimates(np.var, x, 1, corrected=True) == pytest.approx(by_hand, rel=1e-12)

    @pytest.mark.parametrize("b", [2, 3, 5, 63, *(pytest.param(b, marks=pytest.mark.slow) for b in (4, 6, 7, 20))])
    def test_the_jackknife_removes_what_is_inverse_to_the_number_of_records(self, b):
        """Also where the groups that are left out differ in size; what does not depend on it remains."""
        x, calls = np.random.default_rng(b).normal(size=3 * b), []

        def estimator(block):
            calls.append(block.size)
            return 5 + 7 / block.size

        assert self.estimates(estimator, x, 3, corrected=True) == pytest.approx([5.0] * 3, rel=1e-12)
        assert len(calls) - 3 * (1 + min(b, 4)) in (0, 1)  # one more on made-up records, where there is a ledger
        assert self.estimates(np.mean, x, 3, corrected=True) == pytest.approx(x.reshape(3, b).mean(axis=1), rel=1e-12)
        squares = [np.mean(self.estimates(np.var, np.random.default_rng(i).normal(size=3 * b), 3, corrected=True))
                   for i in range(200)]  # fmt: skip
        assert abs(np.mean(squares) - 1) < 6 * np.std(squares) / math.sqrt(200)

    @pytest.mark.slow
    def test_bias(self):
        """Of the rate of exponential blocks of 20: 1/19 raw, far less by the jackknife."""
        x = np.random.default_rng(0).exponential(size=20 * 4000)
        rate = lambda block: 1 / block.mean()  # noqa: E731
        raw, better = (self.estimates(rate, x, 4000, corrected=c) for c in (False, True))
        assert 0.04 < raw.mean() - 1 < 0.065
        assert abs(better.mean() - 1) < 6 * better.std() / 4000**0.5
        assert raw.mean() - 1 > 6 * raw.std() / 4000**0.5  # the control

    def test_scipy(self):
        x = scipy.stats.weibull_min.rvs(2.0, scale=3.0, size=200, random_state=1)
        family = Scipy(scipy.stats.weibull_min)
        assert family.names == ("c", "loc", "scale")
        box = Ranges(("scale", "c"), (0.0, 0.0), (10.0, 10.0))
        got = family.estimates((x,), 2, box, corrected=True, workers=1)
        c, _, scale = scipy.stats.weibull_min.fit(x[:100])
        assert got[0].tolist() == [scale, c]


class TestNames:
    def test_every_name(self):
        for name in named():
            family = family_of(name)
            assert type(family).__name__.lower() == name
            assert pickle.loads(pickle.dumps(family)) == family
            assert hash(family) == hash(family_of(name))
            assert family.default == family.names[:1]

    def test_scipy_names(self):
        for theirs, ours in [("gamma", families.Gamma), ("norm", families.Normal), ("expon", families.Exponential)]:
            assert isinstance(family_of(getattr(scipy.stats, theirs)), ours)
        assert isinstance(family_of(scipy.stats.gumbel_r), Scipy)

    def test_refused(self):
        with pytest.raises(ValueError, match="family must be one of 'bernoulli'"):
            family_of("gauss")
        with pytest.raises(TypeError, match="must be an instance, Gamma"):
            family_of(families.Gamma)
        with pytest.raises(TypeError, match="must be a name, a family or a callable, not int"):
            family_of(3)
        with pytest.raises(ValueError, match="minimum must be positive"):
            families.Pareto(0.0)


@pytest.mark.parametrize(
    "estimate", [lambda sums: np.array([sums.max()]), lambda sums: sums.max(), lambda sums: sums[1:]]
)
def test_an_estimate_is_one_number_for_each_block(estimate):
    """Another shape could be broadcast: one record would change all blocks."""

    class Mixed(families.AdditiveFamily):
        names = ("location",)

        def columns(self, box):
            return (families.RecordSum("value", step=2.0**-20),)

        def estimate(self, count, sums, box, *, corrected):
            return [estimate(sums[0])]

    mechanism = dpf.SampleAndAggregate(Mixed(), bounds={"location": (0, 9)}, epsilon=1.0, blocks=10)
    with pytest.raises(ValueError, match=r"Mixed\.estimate must give one number for each block"):
        mechanism(np.arange(1000.0))


def test_estimates_are_copied():
    """Blocks without an estimate are NaN in a new array, for any result of a family."""
    kept = np.arange(10)
    kept.setflags(write=False)

    class Constant(families.AdditiveFamily):
        names = ("location",)

        def columns(self, box):
            return (families.RecordSum("value"),)

        def estimate(self, count, sums, box, *, corrected):
            return [kept]

    x = np.zeros(1000)
    x[:200] = math.nan
    box = families.Ranges(("location",), (0.0,), (9.0,))
    got = Constant().estimates((x,), 10, box, corrected=True, workers=1)[:, 0]
    np.testing.assert_array_equal(got, [math.nan, math.nan, *range(2, 10)])
