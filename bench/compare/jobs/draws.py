"""Noise, words of the generator, and selections."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.random import PCG64, Generator

import dpfast as dpf
from bench import data
from bench.compare.clock import Floor, Job, power
from bench.peers import installed
from dpfast.random import SecureBitGenerator


def noise(size) -> Iterator[Job]:
    """Exact noise of the secure generator, against NumPy's noise, which is neither exact nor secure."""
    n, rng = size(10**6), np.random.default_rng(1)
    for scale, name in ((1.0, "1"), (1e3, "1e3"), (2.0**20, "2**20")):
        floor = Floor("Generator.laplace", lambda s=scale: rng.laplace(0.0, s, n), 0.75)
        others = installed.laplaces(scale, 1000) if scale == 1e3 else {}
        run = lambda s=scale: dpf.noise.laplace(s, n)  # noqa: E731
        yield Job(f"rounded Laplace, scale {name}, {power(n)} draws", run, (floor,), others)
    for sigma, name in ((1.0, "1"), (1e3, "1e3"), (2.0**30, "2**30")):
        floor = Floor("Generator.standard_normal", lambda: rng.standard_normal(n), 1.0)
        run = lambda s=sigma: dpf.noise.gaussian(s, n)  # noqa: E731
        yield Job(f"rounded Gaussian, sigma {name}, {power(n)} draws", run, (floor,))
    for name, draw in (("box", dpf.noise.box), ("ball", dpf.noise.ball)):
        floor = Floor("Generator.standard_normal", lambda: rng.standard_normal((n // 100, 100)))
        run = lambda draw=draw: draw(np.full(100, 1e3), n // 100)  # noqa: E731
        yield Job(f"noise by the norm of a {name}, scale 1e3, {power(n)} coordinates, d = 100", run, (floor,))
    scale, p = 1e3, -math.expm1(-1e-3)
    floor = Floor("difference of 2 Generator.geometric", lambda: rng.geometric(p, n) - rng.geometric(p, n))
    run = lambda: dpf.noise.discrete_laplace(scale, n)  # noqa: E731
    yield Job(f"discrete Laplace, scale 1e3, {power(n)} draws", run, (floor,))
    floor = Floor("Generator.geometric", lambda: rng.geometric(p, n))
    yield Job(f"geometric, scale 1e3, {power(n)} draws", lambda: dpf.noise.geometric(scale, n), (floor,))
    few, names = size(10**5), ("laplace", "geometric", "discrete_laplace", "gaussian")
    draws = {name: getattr(dpf.noise, name) for name in names}
    draws["staircase"] = lambda scale, n: dpf.noise.staircase(scale, 10, n)
    for name, draw in draws.items():
        floor = Floor("the same of scale 1e3", partial(draw, 1e3, few), 4.0)
        for scale in (1e12, 1e15):
            yield Job(f"{name}, scale {scale:.0e}, {power(few)} draws", partial(draw, scale, few), (floor,))
    for name in names:
        floor = Floor("Generator.laplace, one", lambda: rng.laplace(0.0, 1e3))
        yield Job(f"{name}, one draw", partial(draws[name], 1e3), (floor,))


def random(size) -> Iterator[Job]:
    """The secure generator against PCG64, which is not secure."""
    secure, pcg = SecureBitGenerator(), PCG64(1)
    ours, theirs = Generator(secure), Generator(pcg)
    for n in (size(10**6), size(10**7)):
        floor = Floor("PCG64.random_raw", lambda n=n: pcg.random_raw(n), 1.0)
        yield Job(f"secure words, n = {power(n)}", lambda n=n: secure.random_raw(n), (floor,))
        floor = Floor("Generator(PCG64).random", lambda n=n: theirs.random(n), 1.5)
        yield Job(f"secure Generator.random, n = {power(n)}", lambda n=n: ours.random(n), (floor,))


def selection(size) -> Iterator[Job]:
    """One exact selection from many candidates, and from a few, against Gumbel noise in NumPy, which is not exact."""
    rng = np.random.default_rng(1)
    for n, limit in ((size(10**6), 2.0), (10, None)):
        scores = rng.normal(0.0, 10.0, n)
        floor = Floor(
            "(scores + rng.gumbel(size=n)).argmax()", lambda s=scores: (s + rng.gumbel(size=s.size)).argmax(), limit
        )
        for name, method in (("select", "exponential"), ("permute-and-flip", "permute-and-flip")):
            run = partial(dpf.select, scores, epsilon=data.EPSILON, selection=method)
            yield Job(f"{name}, {n:,} candidates", run, (floor,))
