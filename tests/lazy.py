"""Containers that release when they are read, as lazy pipelines do."""

from functools import partial

import numpy as np
from numpy.random import PCG64

import dpfast as dpf
from dpfast import BudgetError, local, noise
from tests.releases import GRID, MEDIAN, X, in_thread

EPSILON = 2.0**-10  # of a release inside a container: it tells these charges from others
_INNER = {
    "replace-one": partial(dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=GRID, epsilon=EPSILON), X),
    "add-remove": partial(
        dpf.GlobalSensitivity(dpf.statistics.Count(), grid=GRID, epsilon=EPSILON, neighbors="add-remove"), X
    ),
    "local": partial(local.Binary(EPSILON).randomize, np.zeros(4, np.int64)),
}
LAW = MEDIAN.law(X)
FREE = [lambda: MEDIAN.law(X), LAW.sample, lambda: MEDIAN.plan(len(X)).draw(X, PCG64()), lambda: noise.laplace(1.0)]


class Inside:
    """Releases while records are read; counts the releases that were made."""

    def __init__(self, neighbors="replace-one"):
        self.release, self.made, self.free = _INNER[neighbors], 0, 0

    def __call__(self, *args):
        self.release()
        self.made += 1
        for call in FREE:
            try:
                call()
            except BudgetError:
                continue
            self.free += 1
        return args[-1] if args else None

    def in_a_thread(self):
        """A thread without the context may be refused, or be charged; it does not release for nothing."""
        try:
            in_thread(self.release)
        except BudgetError:
            return
        self.free += 1

    def charged(self, ledger):
        """Check that the ledger has a charge for each release that was made inside."""
        charges = [charge.times for charge in ledger.charges if charge.profile.privacy.epsilon == EPSILON]
        assert sum(charges) == self.made
        assert not self.free


class Sequence(list):
    """A list of which reading the entries releases."""

    def __init__(self, array, inside):
        super().__init__(array.tolist())
        self.inside = inside

    def __iter__(self):
        self.inside()
        return super().__iter__()


class Mapped(Sequence):
    """The same, without a frame of Python between the reading and the release."""

    def __iter__(self):
        return map(self.inside, list.__iter__(self))


class Threaded(Sequence):
    """A list whose reading starts a thread that releases."""

    def __iter__(self):
        self.inside.in_a_thread()
        return list.__iter__(self)


class Lazy:
    """An array that is computed when it is read."""

    def __init__(self, array, inside):
        self.array, self.inside = array, inside
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __len__(self):
        return len(self.array)

    def __array__(self, dtype=None, copy=None):
        self.inside()
        return self.array if dtype is None else self.array.astype(dtype)


class Computed(Lazy):
    """The same, computed in a thread."""

    def __array__(self, dtype=None, copy=None):
        self.inside.in_a_thread()
        return self.array


def chunks(array, inside):
    """Pieces that release when they are made, and when they are read."""
    return dpf.Chunks(partial(map, partial(_piece, inside), np.array_split(array, 2)))


def _piece(inside, array):
    inside()
    return Lazy(array, inside)


CONTAINERS = {
    "sequence": Sequence,
    "mapped": Mapped,
    "threaded": Threaded,
    "lazy": Lazy,
    "computed": Computed,
    "chunks": chunks,
}


def swapped(value, container, least=20):
    """A copy of an argument in which containers stand for arrays of records."""
    if isinstance(value, np.ndarray) and value.ndim and len(value) >= least:
        return container(value)
    if isinstance(value, dict):
        return {key: swapped(item, container) for key, item in value.items()}
    return value
