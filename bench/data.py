"""The data of all benchmarks: lognormal pay clipped to public bounds, in several orders and types."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import dpfast as dpf
from dpfast import local

BOUNDS = (0.0, 1e6)
EPSILON = 1.0


def pay(n):
    """Lognormal pay clipped to `BOUNDS`, in random order."""
    x = np.random.default_rng(0).lognormal(10.5, 0.6, n)
    return np.clip(x, *BOUNDS, out=x)


def labels(groups, size):
    """Labels of groups of one size, in random order."""
    return np.random.default_rng(0).permutation(np.repeat(np.arange(groups), size))


def user_psi(difference):
    """The psi of a user: a smooth Huber's."""
    return difference / (20_000.0 + abs(difference))


def median_mechanism(neighbors="replace-one", **grid):
    public = {"grid": dpf.Grid(*BOUNDS, **grid), "epsilon": EPSILON}
    return dpf.InverseSensitivity(dpf.statistics.Median(), neighbors=neighbors, **public)


def deciles_mechanism():
    return dpf.Quantiles(np.arange(1, 10) / 10, grid=dpf.Grid(*BOUNDS), epsilon=EPSILON)


def generated_chunk(start, size):
    """A chunk of the generated stream."""
    return np.random.Generator(np.random.SFC64(start)).random(size) * BOUNDS[1]


def mapped_chunk(path, start, size):
    """A chunk of a file of float64."""
    return np.memmap(path, np.float64, "r", offset=8 * start, shape=(size,))


CHUNK = 2**18


def streams(n, folder):
    """n records in chunks: generated for each pass, and from a file, mapped into memory, in a folder."""

    def generated():
        for start in range(0, n, CHUNK):
            yield generated_chunk(start, min(CHUNK, n - start))

    return {"generated": dpf.Chunks(generated), "memmap": _mapped(Path(folder) / "pay", n, _drawn)}


def two_values(n, folder):
    """n records in chunks of a mapped file, random ones, and the same as one of two values."""
    files = {"random": _drawn, "two values": lambda start, size: np.where(_drawn(start, size) < 36_000.0, 2e4, 5e4)}
    return {name: _mapped(Path(folder) / name, n, drawn) for name, drawn in files.items()}


def _drawn(start, size):
    return np.random.Generator(np.random.SFC64(start)).standard_exponential(size) * 4e4


def _mapped(path, n, drawn):
    """The chunks of a file of n records, each written as drawn(start, size)."""
    with path.open("wb") as file:
        for start in range(0, n, CHUNK):
            drawn(start, min(CHUNK, n - start)).tofile(file)
    return dpf.Chunks.slices(np.memmap(path, np.float64, "r"), CHUNK)


def organ_pipe(x):
    """First increasing, then decreasing."""
    x = np.sort(x)
    return np.concatenate([x[::2], x[1::2][::-1]])


ORDERS: dict[str, Callable] = {
    "sorted": np.sort,
    "reversed": lambda x: np.sort(x)[::-1].copy(),
    "organ pipe": organ_pipe,
    "all equal": lambda x: np.full_like(x, 36_000.0),
    "two values": lambda x: np.where(x < 36_000.0, 20_000.0, 50_000.0),
}


def with_missing(x, share=0.01):
    """A copy in which a share of the values is NaN."""
    x = x.copy()
    x[np.random.default_rng(1).random(x.size) < share] = np.nan
    return x


TYPES: dict[str, Callable] = {
    "float32": lambda x: x.astype(np.float32),
    "int64": lambda x: x.astype(np.int64),
    "int32": lambda x: x.astype(np.int32),
    "stride 2": lambda x: np.repeat(x, 2)[::2],
    "1 % NaN": with_missing,
}


def encode_in_numpy(grid, x):
    """`Grid.encode` in NumPy."""
    x = np.where(np.isnan(x), grid.missing, x)
    return np.rint(np.clip(x, grid.lower, grid.upper) / grid.step).astype(np.int64) - grid.first


def encode_floats_in_numpy(grid, x):
    """`FloatGrid.encode` in NumPy, for resolution 0."""
    bits = np.abs(np.clip(np.where(np.isnan(x), grid.missing, x), grid.lower, grid.upper)).view(np.int64)
    shift = 53 - grid.digits
    index = (bits + (2 ** (shift - 1) - 1) + (bits >> shift & 1)) >> shift
    return np.where(x < 0, -index, index) - grid.first


def beta(n):
    """Values in [0, 1] with a smooth density."""
    return np.random.default_rng(0).beta(2, 3, n)


def cosine_means_in_numpy(x, terms):
    """The coefficients of a cosine series without noise."""
    return [np.sqrt(2) * np.cos(np.pi * j * x).mean() for j in range(1, terms + 1)]


CATEGORIES = 100


def categories(n):
    """Uniform categories 0..`CATEGORIES` - 1."""
    return np.random.default_rng(3).integers(0, CATEGORIES, n)


_reproducible = np.random.default_rng(4)


def respond_in_numpy(x, k=CATEGORIES, epsilon=EPSILON):
    """k-ary randomised response in NumPy, with a probability rounded to a double."""
    p = np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    return np.where(_reproducible.random(x.size) < p, x, (x + _reproducible.integers(1, k, x.size)) % k)


def encode_unary_in_numpy(x, k=CATEGORIES, epsilon=EPSILON):
    """Unary encoding in NumPy."""
    bits = _reproducible.random((x.size, k)) < 1 / (np.exp(epsilon) + 1)
    bits[np.arange(x.size), x] = _reproducible.random(x.size) < 0.5
    return bits


def count_hashes_in_numpy(reports, k=CATEGORIES):
    """For each category, the number of seeds whose hash is below an edge; the cheapest hash, one category at a time."""
    seed, offset = (reports[:, i].astype(np.uint64) for i in (0, 1))
    edge = np.uint64(2**30)
    return np.array([np.count_nonzero((seed * np.uint64(v) + offset) & np.uint64(2**32 - 1) < edge) for v in range(k)])


def local_randomizers(n, d):
    """Calls that randomise n vectors of d numbers, and NumPy calls that draw as many random numbers."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1.0, 1.0, (n, d)) / np.sqrt(d)
    p = (1 + x) / 2
    mechanisms = {
        "majority": local.Hypercube(d, EPSILON, method="majority"),
        "subset": local.Hypercube(d, EPSILON, method="subset"),
        "halfspace": local.L2Ball(d, EPSILON),
        "sign": local.L2Ball(d, EPSILON, report="sign"),
        "privunit": local.L2Ball(d, EPSILON, method="privunit"),
        "directions": local.L2Ball(d, EPSILON, method="directions"),
    }
    lines = {name: partial(mechanism.randomize, x) for name, mechanism in mechanisms.items()}
    return lines | {"numpy bits": lambda: rng.random((n, d)) < p, "numpy normals": lambda: rng.standard_normal((n, d))}


def unpacked_sums(reports):
    """The number of ones of each bit, unpacked to one byte per bit."""
    return np.unpackbits(reports.view(np.uint8), axis=1, bitorder="little").sum(0)


def regression(n, d):
    """Rows of the unit sphere, and labels of a logistic model."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, rng.random(n) < 1 / (1 + np.exp(-3 * X[:, 0]))


def products_and_normals_in_numpy(X, rng):
    """Two dot products per row, and as many standard normals as there are numbers."""
    theta = np.ones(X.shape[1])
    normals = rng.standard_normal(X.shape)
    return np.einsum("ij,j->i", X, theta), np.einsum("ij,ij->i", X, normals)
