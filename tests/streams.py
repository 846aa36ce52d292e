"""Every central mechanism that reads streams, on grids that take one, two and three passes, and its states."""

import numpy as np

import dpfast as dpf
from dpfast.regression import BlockFits
from dpfast.statistics import Huber, Mean, Median, TrimmedMean
from dpfast.streaming import State
from tests.central import OPTIONS, central, takes_rows
from tests.reference.statistics import one_of_each

PCG = np.random.PCG64
INTEGERS = dpf.Grid(0, 100, step=1)  # one pass
DEFAULT = dpf.Grid(-10, 100)  # two
FINE = dpf.Grid(-(2.0**20), 2.0**20, step=2.0**-30)  # three
GRIDS = {1: INTEGERS, 2: DEFAULT, 3: FINE}
# Blocks, pairs and samples are positions, and order matters: tests/units/test_aggregate.py, test_theil_sen.py,
# test_subsampled.py, test_resized.py, test_blocks.py.
BY_POSITION = {dpf.Resized, dpf.SampleAndAggregate, dpf.Subsampled, dpf.TheilSen, BlockFits}
STREAMED = set(OPTIONS) - BY_POSITION


def mechanisms(grid):
    """Every central mechanism, with every statistic it takes."""
    found = {}
    for mechanism in central(grid, 5.0, kinds=STREAMED, statistics=one_of_each()):
        statistic = getattr(mechanism, "statistic", None)
        if isinstance(statistic, Mean) and isinstance(mechanism, dpf.InverseSensitivity) and grid is FINE:
            continue  # n codes of it are beyond 64 bits in the larger tests
        found.setdefault((type(mechanism), statistic, mechanism.privacy.neighbors), mechanism)
    yield from found.values()
    yield from central(dpf.FloatGrid(), 5.0, kinds={dpf.InverseSensitivity, dpf.Quantiles}, statistics=[Median()])
    yield dpf.NestedBoxes(TrimmedMean(0.1), grid=(grid, INTEGERS), scale=(1.0, 2.0), epsilon=4.0)
    yield dpf.NestedBoxes(Huber(3.0), grid=grid, transform=((1.0, 1.0), (0.0, 1.0)), epsilon=4.0)


def once():
    """The mechanisms of all grids, each once: not all depend on the grid.

    What reads codes of `DEFAULT` in one pass does so with the few of `INTEGERS` and with the many of `FINE`.
    """
    found = [mechanism for grid in GRIDS.values() for mechanism in mechanisms(grid)]
    return list(dict.fromkeys(m for m in found if getattr(m, "grid", None) != DEFAULT or m.start().passes > 1))


ALL = once()


def name(mechanism):
    if not isinstance(mechanism, dpf.Mechanism):
        return str(mechanism)
    statistic = getattr(mechanism, "statistic", "")
    return f"{type(mechanism).__name__}-{statistic}-{mechanism.start().passes}".replace(" ", "-")


def records(mechanism, n, seed=0, kind="smooth"):
    x = np.random.default_rng(seed).normal(30, 8, n)
    if kind == "ties":
        x = np.where(np.arange(n) % 3 > 0, 12.25, np.round(x))
        x[::7] = np.nan
    return np.stack([x, 2 * x[::-1]], axis=1) if takes_rows(mechanism) else x


def states(mechanism, chunks, state=None):
    """A state for each chunk, all in one pass."""
    blank = mechanism.start() if state is None else state
    made = []
    for chunk in chunks:
        made.append(State.from_bytes(blank.to_bytes(), mechanism))
        made[-1].update(chunk)
    return made
