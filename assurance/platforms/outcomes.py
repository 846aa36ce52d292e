"""The outcomes that the table records: calls of all mechanisms, functions, randomisers and kernels with fixed seeds.

Records are integers and dyadic fractions made by integer arithmetic, so that no platform computes others.
"""

import dataclasses
import struct
import warnings
from fractions import Fraction

import numpy as np
from numpy.random import PCG64

import dpfast as dpf
from dpfast import local, noise
from dpfast._kernels import _bins, _blocks, _csv, _fits, _knorm, _samplers, _select, _stream
from tests.central import central, shaped
from tests.outcomes import ESTIMATORS, FUNCTIONS, ROWS_OF

GRID = dpf.Grid(0, 100, step=1)
FINE = dpf.Grid(-10, 100, step=2.0**-20)
EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 1e-300, -1e300, 1.7976931348623157e308, 2.0**31, 2.0**53]
EXTREMES += [-(2.0**53), 2.0**63, -(2.0**63), 2.0**64, 0.5, 1.5, 99.99999999999999, np.inf, -np.inf, np.nan]


def words(n, seed):
    """n pseudorandom words by integer arithmetic alone: Weyl steps through the finaliser of splitmix64."""
    with np.errstate(over="ignore"):
        z = (np.arange(1, n + 1, dtype=np.uint64) + np.uint64(seed << 32)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def dyadic(n, seed, lower=-16, upper=128, bits=20):
    """n numbers of [lower, upper) in steps of 2**-bits."""
    return lower + (words(n, seed) % np.uint64((upper - lower) << bits)).astype(np.float64) / 2.0**bits


def records(n=200, seed=1):
    """Numbers in, at the edge of and outside the bounds of the grids, with ties, missing ones and extremes."""
    x = dyadic(n, seed)
    x[: n // 4] = np.floor(x[: n // 4])
    x[n // 4 : n // 4 + len(EXTREMES)] = EXTREMES
    return x


def packed(value):
    """The bytes of a value, the same for equal values on every platform; one pattern for all NaN."""
    if value is None or isinstance(value, (bool, int, str, Fraction)):
        return f"{type(value).__name__} {value};".encode()
    if isinstance(value, bytes):
        return b"bytes %d;" % len(value) + value
    if isinstance(value, float):
        return b"float;" + struct.pack("<d", np.nan if value != value else value)
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.dtype.kind == "O":
            return packed(array.tolist())
        if array.dtype.kind == "f":
            array = np.where(np.isnan(array), np.asarray(np.nan, array.dtype), array)
        little = array.astype(array.dtype.newbyteorder("<"))
        return f"{little.dtype.str} {array.shape};".encode() + little.tobytes()
    if isinstance(value, dict):
        return b"dict;" + b"".join(packed(key) + packed(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return b"sequence %d;" % len(value) + b"".join(map(packed, value))
    if dataclasses.is_dataclass(value):
        return type(value).__name__.encode() + packed([getattr(value, f.name) for f in dataclasses.fields(value)])
    return type(value).__name__.encode() + packed(vars(value))


def mechanisms():
    """Every central mechanism with its options, statistics and relations of neighbours, by a unique name."""
    count = {}
    for mechanism in central(GRID, 0.75):
        name = f"{type(mechanism).__name__} {getattr(mechanism, 'statistic', '')} {mechanism.privacy.neighbors}"
        name = " ".join(name.split())
        count[name] = count.get(name, 0) + 1
        yield f"{name} {count[name]}", mechanism


def fine(mechanism):
    """The same mechanism on a grid that takes several passes; None for one without such a grid."""
    try:
        return dataclasses.replace(mechanism, grid=FINE)
    except (TypeError, ValueError):
        return None


def release(mechanism):
    """Three releases by the exact law."""
    return mechanism.release(shaped(mechanism, records()), size=3, rng=PCG64(3))


def draws(mechanism):
    """The integers of three releases, before they are converted to values."""
    law = mechanism.law(shaped(mechanism, records()))
    return [np.asarray(law.sample(3, rng=PCG64(3))), getattr(law, "support", None)]


def state(mechanism):
    """The bytes of a state after all passes over two chunks."""
    x = shaped(mechanism, records(seed=2))
    try:
        return mechanism.start().read([x[:70], x[70:]]).to_bytes()
    except (TypeError, ValueError) as error:  # a mechanism for arrays alone
        return str(error)


def listed(mechanism):
    """Log-probabilities of the law at places spread over its outcomes; None if they cannot be listed."""
    law = mechanism.law(shaped(mechanism, records()))
    try:
        support = law.outcomes()
    except (TypeError, ValueError):
        return None
    return law.logpmf(support[:: max(1, len(support) // 6)][:8])


def central_outcomes():
    for name, mechanism in mechanisms():
        if "0-quantile" in name and "RangeFree" in name:
            continue  # there is no such release
        yield f"release: {name}", lambda mechanism=mechanism: release(mechanism)
        yield f"state: {name}", lambda mechanism=mechanism: state(mechanism)
        if isinstance(mechanism, (dpf.Covariance, dpf.SufficientStatistics)):  # converted by LAPACK or SciPy
            yield f"draws: {name}", lambda mechanism=mechanism: draws(mechanism)
        if name.endswith(" 1"):
            yield f"law: {name}", lambda mechanism=mechanism: listed(mechanism)
            finer = fine(mechanism)
            if finer is not None:
                yield f"release on a fine grid: {name}", lambda finer=finer: release(finer)
                yield f"state on a fine grid: {name}", lambda finer=finer: state(finer)


def function_outcomes():
    for name, call in FUNCTIONS.items():
        if name in ESTIMATORS or name.startswith("glm, "):
            continue  # needs scikit-learn; takes further steps in a basis of eigenvectors, which LAPACK chooses
        columns = ROWS_OF.get(name, 0)
        x = records(480)
        if "Categorical" in name or "Hitters" in name or "Attributes" in name:
            x = (words(480, 4) % np.uint64(3)).astype(np.int64)
        x = x.reshape(-1, columns) if columns else x
        yield f"function: {name}", lambda call=call, x=x: call(x, PCG64(5), 1.0)


# ---- samplers ----

SCALES = [5e-324, 1e-9, 0.1, 1.0, 3.5, 1e6, 2.0**52 + 1, 2.0**56]


def filled(kernel, *arguments, shape=1000, dtype=np.int64):
    out = np.zeros(shape, dtype)
    kernel(PCG64(7), *arguments, out)
    return out


def sampler_outcomes():
    kernels = {
        "rounded Laplace": _samplers.fill_rounded_laplace,
        "discrete Laplace": _samplers.fill_discrete_laplace,
        "rounded Gaussian": _samplers.fill_rounded_gaussian,
        "rounded Student": _samplers.fill_rounded_student3,
        "geometric": _samplers.fill_geometric,
    }
    for name, kernel in kernels.items():
        for scale in SCALES:
            size = 100 if scale > 1e9 else 1000
            yield f"noise: {name} {scale:.17g}", lambda k=kernel, s=scale, n=size: filled(k, s, shape=n)
    yield "noise: Laplace 10/3", lambda: filled(_samplers.fill_rounded_laplace, Fraction(10, 3))
    for variance in (1, Fraction(1, 7), 10**9):
        yield f"noise: discrete Gaussian {variance}", lambda v=variance: filled(_samplers.fill_discrete_gaussian, v)
    yield "noise: staircase", lambda: filled(_samplers.fill_staircase, 3.5, 7, 2)
    for gamma in (0.0, 5e-324, 1e-3, 0.5, 1.0, 40.0, 700.0, 1e300):
        yield (
            f"noise: coin exp(-{gamma:.17g})",
            lambda gamma=gamma: filled(_samplers.fill_bernoulli_exp, gamma, dtype=np.uint8),
        )
    for last in (0, 1, 99, 2**32, 2**63, 2**64 - 1):
        yield (
            f"noise: uniform to {last}",
            lambda last=last: filled(_samplers.fill_uniform, last, dtype=np.uint64),
        )
    scales = np.array([1.0, 2.5, 1e6])
    for kernel in (_knorm.fill_box, _knorm.fill_ball, _knorm.fill_lattice_box):
        yield (
            f"noise: {kernel.__name__}",
            lambda kernel=kernel: filled(kernel, scales, shape=(300, 3)),
        )
    yield "noise: noise.laplace, blocks", lambda: noise.laplace(3.5, 2**16 + 5, rng=PCG64(8))[-50:]
    yield "noise: noise.gaussian, blocks", lambda: noise.gaussian(3.5, 2**16 + 5, rng=PCG64(8))[-50:]


# ---- local reports ----


def surveys():
    """Randomisers and what they take: numbers, categories, bits or rows."""
    for epsilon in (0.1, 1.0, 6.0):
        yield local.Binary(epsilon), "bits"
        for method in ("k-rr", "subset", "oue", "olh", "hadamard"):
            yield local.Categorical(12, epsilon, method), "categories"
        for objective in ("worst", "average"):
            yield local.Interval(epsilon, bounds=(0, 100), objective=objective), "numbers"
        for method in ("majority", "subset"):
            yield local.Hypercube(5, epsilon, radius=100.0, method=method), "rows"
        for method in ("halfspace", "privunit"):
            yield local.L2Ball(5, epsilon, radius=100.0, method=method), "rows"
        yield local.SquareWave((0, 100), epsilon), "numbers"
        for basis in ("cosine", "trigonometric"):
            yield local.SeriesReports(4, epsilon, grid=GRID, basis=basis), "numbers"


def local_outcomes():
    given = {
        "bits": (words(200, 9) & np.uint64(1)).astype(np.int64),
        "categories": (words(200, 9) % np.uint64(12)).astype(np.int64),
        "numbers": records(),
        "rows": records(1000).reshape(200, 5),
    }

    def answers(survey, x):
        reports = survey.randomize(x, rng=PCG64(11))
        return reports, survey.to_bytes(reports), survey.aggregate(reports).to_bytes()

    for survey, kind in surveys():
        label = "reports in doubles" if getattr(survey, "method", None) == "privunit" else "reports"
        yield f"{label}: {survey!r}", lambda survey=survey, kind=kind: answers(survey, given[kind])
    chosen = local.L2Ball(5, 1.0, radius=100.0, method="directions")  # sums take its scale, from SciPy's beta function
    yield f"reports: {chosen!r}", lambda: chosen.randomize(given["rows"], rng=PCG64(11))


# ---- encoded records and kernels ----


def typed(dtype):
    """The extremes as records of a type, by saturation for integers."""
    if np.dtype(dtype).kind == "f":
        with np.errstate(all="ignore"):
            return np.array(EXTREMES).astype(dtype)
    if dtype is np.bool_:
        return np.arange(20) % 3 == 0
    info = np.iinfo(dtype)
    return np.array([info.min, info.min + 1, 0, 1, 3, 99, 100, info.max - 1, info.max] * 5, dtype)


TYPES = (np.float64, np.float32, np.float16, np.int64, np.uint64, np.int32, np.uint32, np.int16, np.uint8, np.int8)
GRIDS = {
    "of integers": GRID,
    "of 2**-20": FINE,
    "of the least step": dpf.Grid(0, 2.0**-1060, step=2.0**-1074),
    "of great numbers": dpf.Grid(-(2.0**60), 2.0**60, step=2.0**10),
    "next to zero": dpf.Grid(0, 1),
    "of floats": dpf.FloatGrid(missing="lower"),
    "of few digits": dpf.FloatGrid(3, resolution=0.25, missing="lower"),
}


def kernel_outcomes():
    for label, grid in GRIDS.items():
        for dtype in (*TYPES, np.bool_):
            yield f"codes: {np.dtype(dtype).name}, grid {label}", lambda g=grid, t=dtype: g.encode(typed(t))
        yield f"values: grid {label}", lambda grid=grid: grid.decode(np.arange(0, grid.size, grid.size // 50))
        x = np.concatenate([records(6000), records(100, 3)])  # above 4096 other loops run
        first = getattr(grid, "first", None)
        yield f"window: grid {label}", lambda g=grid, x=x: _select.window(x, 2900, 3100, **g.kernel)
        yield (
            f"window of float32: grid {label}",
            lambda g=grid, x=x: _select.window(x.astype(np.float32), -3, 9, **g.kernel),
        )
        if isinstance(grid, dpf.Grid):
            yield (
                f"moments: grid {label}",
                lambda g=grid, f=first, x=x: _select.moments(x[:4100], first=f, squares=g.size < 2**30, **g.kernel),
            )
    y = np.ldexp((words(3000, 13) >> np.uint64(11)).astype(np.float64), -(words(3000, 14) % np.uint64(80)).astype(int))
    yield "doubles: exp(-y)", lambda: _samplers.exp_negs(y[y < 800])
    yield "doubles: 1 - exp(-y)", lambda: _samplers.one_minus_exp_negs(y[(y > 0) & (y < 800)])
    yield "doubles: -log of words", lambda: _samplers.neg_log_words(words(3000, 15))
    yield "doubles: normal quantiles of words", lambda: _samplers.normal_of_words(words(3000, 16))
    yield "doubles: Student tails", lambda: _samplers.student_tails(y[y > 0])
    yield "doubles: polygammas", lambda: _blocks.polygammas(y[(y > 0) & (y < 1e6)])
    yield "doubles: logs", lambda: _blocks.logs(y[y > 0])
    yield "doubles: gamma shapes", lambda: _blocks.gamma_shapes(np.arange(1.0, 9.0), np.arange(8) / 4 - 0.5)
    yield "doubles: gamma of words", lambda: _knorm.gamma_of_words(words(5, 17))
    yield "doubles: places of a sample", lambda: _select.sample_positions(6000, 2**63 + 5)
    yield "kernel: CSV", csv
    yield "kernel: cells", cells
    yield "kernel: counts of a stream", stream
    yield (
        "kernel: labels",
        lambda: dpf.by_group(
            dpf.InverseSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=1.0, neighbors="add-remove"),
            records(),
            labels=[("a", "b", "\u00fc")[int(word % np.uint64(3))] for word in words(200, 18)],
            keys=["b", "a", "c"],
            rng=PCG64(19),
        ),
    )


def fitted(kernel, *columns, width, **options):
    """Estimates of three blocks of records, and how many records each uses."""
    out, counts = np.zeros((3, width)), np.zeros(3, np.int64)
    kernel(*columns, np.array([0, 90, 200, len(columns[0])]), out, counts, **options)
    return out, counts


def fit_outcomes():
    positive, rows = dyadic(500, 21, 0, 64), dyadic(1500, 22, -2, 2).reshape(500, 3)
    whole = np.floor(positive)
    for scale in (1.0, 2.0**-900, 2.0**900):
        yield f"fit: Weibull, scale {scale:.3g}", lambda s=scale: fitted(_fits.weibull, positive * s, width=2)
        yield f"fit: Laplace, scale {scale:.3g}", lambda s=scale: fitted(_fits.laplace, positive * s, width=2)
    for times in (1.0, 2.0**40):
        for correct in (False, True):
            yield (
                f"fit: negative binomial, times {times:.3g}, corrected {correct}",
                lambda t=times, c=correct: fitted(_fits.negative_binomial, whole * t, width=3, correct=c),
            )
    responses = {"linear": positive, "logistic": np.floor(rows[:, 0] + positive / 32) % 2, "poisson": whole % 5}
    for model, y in responses.items():
        for correct in (False, True):
            options = {"width": 4 + (model == "linear"), "model": model, "intercept": True, "correct": correct}
            yield (
                f"fit: {model} regression, corrected {correct}",
                lambda y=y, options=options: fitted(_fits.regression, rows, y, **options),
            )


def csv():
    data = b"".join(b"%d.%de%d,x\n" % (w % 1000, w % 997, w % 611 - 305) for w in map(int, words(400, 20)))
    data += b"nan,x\n-inf,x\n1e400,x\n-0.0,x\n0x1,x\n\xff,x\n"
    text = np.frombuffer(b"#" + data + b"#", np.uint8)
    places = np.zeros((500, 1, 2), np.int64)
    count, _ = _csv.rows(text, 1, 1 + len(data), ord(","), True, np.array([0], np.int64), places)
    out, hard = np.zeros(count), np.zeros(count, np.int64)
    left = _csv.numbers(text, 1, places[:count], 0, out, hard)
    return count, left, hard[:left], out


def cells():
    axes = dpf.Bins(13, bounds=(0, 100))
    axis = _bins.Axis(np.arange(1, 13) * 8.0, width=100.0, lower=0.0, upper=100.0, step=0.0, missing=50.0)
    x = records(5000)[:, None]
    out, counts = np.zeros(len(x), np.int32), np.zeros(13, np.int64)
    _bins.locate(x, [axis], out)
    _bins.count(x, [axis], counts)
    return repr(axes), out, counts


def stream():
    counts = np.zeros(1024, np.uint32)
    _stream.count(records(5000), counts, 17, first=FINE.first, **FINE.kernel)
    return counts


def outcomes():
    """All calls by name; each returns its outcome."""
    parts = central_outcomes, function_outcomes, sampler_outcomes, local_outcomes, kernel_outcomes, fit_outcomes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: call for part in parts for name, call in part()}


def computed(call):
    """The outcome of a call, without the warnings of the library and of NumPy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()
