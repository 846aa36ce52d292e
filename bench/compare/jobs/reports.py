"""Local privacy."""

import time
from collections.abc import Iterator
from functools import partial

import numpy as np

import dpfast as dpf
from bench import data
from bench.compare.clock import Floor, Job, power
from dpfast import local
from dpfast._kernels import _randomize
from dpfast.random import bit_generator


def local_vectors(size) -> Iterator[Job]:
    """Vectors of a thousand numbers randomised, and packed reports summed."""
    n = size(1000)
    lines = data.local_randomizers(n, 1000)
    bits = Floor("rng.random((n, d)) < p", lines["numpy bits"], 1.0)
    normals = Floor("rng.standard_normal((n, d))", lines["numpy normals"], 1.3)
    jobs = (("Hypercube", "majority", bits), ("Hypercube", "subset", bits), ("L2Ball", "halfspace", normals))
    for name, method, floor in jobs:
        yield Job(f"{name}, {method}, n = d = 1000", lines[method], (floor,))
    yield Job("L2Ball, halfspace, one bit, n = d = 1000", lines["sign"], (normals,))
    normals = Floor(normals.name, normals.run)
    for method in ("privunit", "directions"):
        yield Job(f"L2Ball, {method}, n = d = 1000", lines[method], (normals,))
    mechanism = local.Hypercube(1000, data.EPSILON, method="majority")
    reports = mechanism.randomize(np.zeros((size(10**5), 1000), np.float32))
    floor = Floor("np.unpackbits(reports).sum(0)", lambda: data.unpacked_sums(reports), 0.2)
    yield Job(f"Hypercube sums, {power(size(10**5))} reports", lambda: mechanism.aggregate(reports), (floor,))


def local_privacy(size) -> Iterator[Job]:
    """Local randomisers, k = 100 and 1024, against NumPy code that is neither exact nor secure."""
    x, few = data.categories(size(10**6)), data.categories(size(10**5))
    surveys = {m: local.Categorical(data.CATEGORIES, data.EPSILON, m) for m in ("k-rr", "oue", "olh")}
    floor = Floor("where(random < p, x, (x + integers) % k)", lambda: data.respond_in_numpy(x), 1.0)
    yield Job(f"k-ary randomised response, {power(x.size)}", partial(surveys["k-rr"].randomize, x), (floor,))
    floor = Floor("random((n, k)) < q", lambda: data.encode_unary_in_numpy(few), 0.5)
    yield Job(f"unary encoding (OUE), {power(few.size)}", lambda: surveys["oue"].randomize(few), (floor,))
    sets, many = local.Categorical(1024, data.EPSILON, "subset"), np.arange(few.size) % 1024
    floor = Floor("8 random bits a category", lambda: np.random.default_rng(1).bytes(1024 * many.size), None)
    yield Job(f"subset selection, k = 1024, {power(many.size)}", partial(sets.randomize, many), (floor,))
    reports = surveys["olh"].randomize(few)
    floor = Floor("NumPy hash and count, each category", lambda: data.count_hashes_in_numpy(reports), 0.5)
    yield Job(f"count of hashed reports, {power(few.size)}", lambda: surveys["olh"].aggregate(reports), (floor,))


def many_categories(size) -> Iterator[Job]:
    """Reports of a million categories counted, and many reports merged, against a plain read of the reports."""
    k, rng = size(10**6), np.random.default_rng(0)
    for method, n in (("oue", 2000), ("subset", 2000), ("hadamard", size(10**8)), ("olh", 200)):
        survey = local.Categorical(k, data.EPSILON, method)
        some = survey.randomize(rng.integers(0, k, min(n, size(10**7))))
        reports = np.tile(some, n // len(some)) if n > len(some) else some
        floors = [Floor("plain read", partial(_read_all, [reports]), None if method == "olh" else 2.0)]
        if method == "olh":
            floors.append(Floor("n k steps of 0.1 ns", n * k * 1e-10, 2.0))
        if method == "hadamard":
            near = reports & (2**13 - 1)
            floors.append(Floor("as many counts in 32 KB", partial(_counted, near, np.zeros(2**13, np.uint32))))
        run = partial(_sums, survey, reports)
        yield Job(f"{method}, {power(n)} reports, k = {power(k)}", run, tuple(floors))
        if method == "hadamard":
            parts = np.split(reports, 10)
            floors = [Floor("plain read", partial(_read_all, [reports]), 2.0), Floor("one aggregate of all", run)]
            run = partial(_merged, survey, parts)
            yield Job(f"{method}, {power(n)} reports in 10 parts, merged, k = {power(k)}", run, tuple(floors))
            aggregates = [survey.aggregate(part[:1000]) for part in parts]
            floor = Floor("plain read of their sums", partial(_read_all, [part.sums for part in aggregates]))
            yield Job(f"10 aggregates merged, k = {power(k)}", partial(sum, aggregates[1:], aggregates[0]), (floor,))


def hashed_keys(size) -> Iterator[Job]:
    """Reports about 2**30 keys, counted for each cell of 437 hash functions; one estimate; one report."""
    survey, source = local.HashedCategorical(2**30, data.EPSILON), np.random.default_rng(0)
    for n in (1, 1000, size(10**6)):
        reports = survey.randomize(source.integers(0, 2**30, n))
        cells = np.ones(survey.outcomes // 2 * 2, np.uint32)
        floor = Floor("plain read of a table of all reports", partial(_read_all, [cells]))
        yield Job(f"HashedCategorical, {power(n)} reports", partial(survey.aggregate, reports), (floor,))
    wide = local.HashedCategorical(2**30, 5.0)  # of the prime 131
    many = wide.randomize(source.integers(0, 2**30, size(10**6)))
    floor = Floor("sort of the reports", partial(np.sort, many))
    yield Job(f"HashedCategorical, epsilon = 5, {power(many.size)} reports", partial(wide.aggregate, many), (floor,))
    total, places = survey.aggregate(reports), source.integers(0, survey.buckets, survey.hashes)
    table = total.sums.reshape(survey.hashes, survey.buckets)
    floor = Floor("as many entries of a table", lambda: table[np.arange(survey.hashes), places].sum())
    yield Job("HashedCategorical, estimate of one key", lambda: survey.estimate(total, [5]), (floor,))
    floor = Floor("3 words of the generator", lambda: bit_generator(None).random_raw(3))
    yield Job("HashedCategorical, one report", lambda: survey.randomize(5), (floor,))
    hitters = local.HeavyHitters(data.EPSILON, 48)
    reports = hitters.randomize(source.integers(0, 2**48, 1000))
    cells = np.zeros(sum(oracle.outcomes for oracle in hitters.oracles), np.uint32)
    floor = Floor("plain read of a table of all reports", partial(_read_all, [cells[: cells.size // 2 * 2]]))
    yield Job("HeavyHitters, 1000 reports", partial(hitters.aggregate, reports), (floor,))


def _counted(symbols, counts):
    return _randomize.count_symbols(symbols, counts)


def _sums(survey, reports):
    return survey.aggregate(reports).sums


def _merged(survey, parts):
    first, *others = map(survey.aggregate, parts)
    return sum(others, first).sums


def _read_all(arrays):
    for array in arrays:
        array.reshape(-1).view(np.int64).max()


def descents(size) -> Iterator[Job]:
    """Local medians by private gradient descent: one long run, and many runs side by side."""
    x, public = np.random.default_rng(0).lognormal(size=size(10**6)), {"bounds": (0.0, 4.0), "epsilon": data.EPSILON}
    floor = Floor("x.size steps of 20 ns", partial(time.sleep, 20e-9 * x.size), 1.0)
    yield Job(f"local median, n = {power(x.size)}", lambda: dpf.local.median(x, **public), (floor,))
    y = x[: size(10**4)]
    floor = Floor("NumPy, a step of all runs at a time", lambda: _numpy_descent(y, 400, **public), 0.5)
    yield Job(f"local median, 400 runs, n = {power(y.size)}", lambda: dpf.local.median(y, **public, size=400), (floor,))


def _numpy_descent(x, runs, bounds, epsilon):
    """The same descent with NumPy's insecure generator and 53-bit coins: one step of all runs at a time."""
    rng, (lower, upper) = np.random.default_rng(1), bounds
    keep = 1 / (1 + np.exp(-epsilon))
    pushes = (upper - lower) * np.arange(1, len(x) + 1) ** (-2 / 3)
    theta, total = np.full(runs, (lower + upper) / 2), np.zeros(runs)
    for value, push in zip(x, pushes, strict=True):
        total += theta
        up = (theta < value) == (rng.random(runs) < keep)
        theta = np.clip(np.where(up, theta + push, theta - push), lower, upper)
    return total / len(x)


def regressions(size) -> Iterator[Job]:
    """Logistic regression by private gradient descent, one step per person."""
    X, y = data.regression(size(10**5), 20)
    rng, public = np.random.default_rng(1), {"epsilon": data.EPSILON}
    floor = Floor("2 products and d standard normals a row", lambda: data.products_and_normals_in_numpy(X, rng), 2.0)
    for norm in ("l2", "linf"):
        run = partial(local.glm, X, y, norm=norm, **public)
        yield Job(f"local glm, {norm}, n = {power(len(X))}, d = 20", run, (floor,))
