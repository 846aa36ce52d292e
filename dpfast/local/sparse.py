"""Sparse means of long vectors under local differential privacy."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks, containers
from dpfast.core.traps import of_epsilon, warn
from dpfast.core.types import Exact, Records
from dpfast.local.hypercube import Hypercube
from dpfast.random import RandomSource, bit_generator
from dpfast.theory.local_sparse import local_sparse_threshold

_METHODS = ("majority", "subset")


def sparse_mean(
    X: Records,
    *,
    epsilon: Exact,
    radius: float = 1.0,
    confidence: float = 0.95,
    threshold: str = "soft",
    rng: RandomSource = None,
    workers: int = 1,
) -> NDArray[np.float64]:
    """Estimate the mean of vectors in [-radius, radius]^d, if most coordinates of the mean are 0.

    Pure epsilon-local differential privacy, under any change of one person's vector. Non-interactive: all people can
    answer at the same time.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Private data, a row for each person; never modified. Numbers are clamped to [-radius, radius]; NaN counts as 0.
    epsilon : float
        At least 2**-40; rounded down to a double.
    radius : float
        Positive, in data units.
    confidence : float
        In (0, 1): probability with which the error bounds below hold.
    threshold : {"soft", "hard"}
        Thresholding of the mean z of the reports: "soft" moves each coordinate by lambda towards 0, "hard" keeps
        coordinates above lambda unchanged.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Number of threads; for a given rng the result does not depend on it.

    Returns
    -------
    ndarray of float64, shape (d,)
        Inside [-radius, radius].

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid; of the data, only shape and dtype are checked.

    Notes
    -----
    lambda is `dpfast.theory.local_sparse_threshold`, from public numbers only; the randomiser is `Hypercube` with the
    method that makes lambda smaller. With probability `confidence`, no coordinate of z is off by more than lambda. Then
    every coordinate that is 0 in the mean is exactly 0 in the estimate; every other is off by at most 2 lambda, and not
    0 if it is above 2 lambda in the mean; the squared error is at most ``4 s lambda^2``, with s nonzero coordinates in
    the mean. This holds for the mean of these n vectors, and for the mean of the distribution they are drawn from.
    "soft" minimises ``|x - z|^2 / 2 + lambda |x|_1``.
    Privacy: that of `Hypercube` (https://dpfast.readthedocs.io/en/latest/proofs/hypercube.html); the rest is
    post-processing (https://dpfast.readthedocs.io/en/latest/proofs/sparse-mean.html). Cost: that of `Hypercube`, 1 to
    2 ns for each number.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 5.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> X = np.zeros((100_000, 20), np.float32)
    >>> X[:, 3] = 0.8
    >>> estimate = local.sparse_mean(X, epsilon=1.0, confidence=1 - 1e-9)
    >>> np.flatnonzero(estimate).tolist()
    [3]
    """
    epsilon = checks.positive_down("epsilon", epsilon)
    warn(of_epsilon(epsilon))
    checks.choice("threshold", threshold, ("soft", "hard"))
    bound = partial(local_sparse_threshold, epsilon=epsilon, radius=radius, confidence=confidence)
    bound(1, 1)
    bit_generator(rng)  # reject invalid parameters before reading the data
    workers = checks.threads(workers)
    records = containers.matrix("X", X)
    n, d = checks.records(records.shape[0]), records.shape[1]
    bounds = {name: bound(n, d, method=name) for name in _METHODS}
    method = min(_METHODS, key=lambda name: bounds[name])
    people = Hypercube(d, epsilon, radius=radius, method=method)
    z = people.estimate(people.aggregate(people.randomize(records, rng=rng, workers=workers), workers=workers))
    kept = np.abs(z) > bounds[method]
    shrunk = z - np.copysign(bounds[method], z) if threshold == "soft" else z
    return np.where(kept, np.clip(shrunk, -radius, radius), 0.0)
