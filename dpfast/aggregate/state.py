"""The state of a sample-and-aggregate release from records in chunks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels._blocks import BlockSums
from dpfast.core import checks, containers
from dpfast.streaming.wire import check_same


class Estimates(NamedTuple):
    """The number of records and the estimates of all blocks, of shape (blocks, parameters). PRIVATE."""

    n: int
    values: NDArray[np.float64]

    def estimates(self) -> Estimates:
        """Themselves."""
        return self


class BlockState:
    """Sums over the blocks of a stream of n records, as far as read. PRIVATE. See `SampleAndAggregate`.

    Parameters
    ----------
    sums : BlockSums
    mechanism : SampleAndAggregate
        The one that made the state; states of different ones do not merge.
    """

    def __init__(self, sums: BlockSums, mechanism: Any) -> None:
        self.sums, self.mechanism = sums, mechanism

    @property
    def n(self) -> int:
        """The number of records of the release, read or not."""
        return self.sums.n

    @property
    def seen(self) -> int:
        """The number of records that this state, and the states merged into it, have read."""
        return self.sums.seen

    def __repr__(self) -> str:
        return f"<BlockState of {self.seen} of {self.n} records, private>"

    def update(self, chunk: ArrayLike, *, workers: int = 1) -> None:
        """Read the next records.

        Parameters
        ----------
        chunk : array_like of shape (m,)
        workers : int
            Threads that read the data, -1 for one per core; the result does not depend on it.
        """
        threads = checks.threads(workers)
        self.sums.update(containers.vector("x", chunk), workers=threads)

    def merge(self, other: BlockState) -> None:
        """Add the other records that a state of the same mechanism and n has read."""
        if not isinstance(other, BlockState):
            raise TypeError(f"a BlockState merges with a BlockState, not with {type(other).__name__}")
        check_same(self.mechanism, other.mechanism)
        self.sums.merge(other.sums)

    def estimates(self) -> Estimates:
        """Return the estimates of the blocks; raises a ValueError before all records are read."""
        if self.seen != self.n:
            raise ValueError(f"the state has read {self.seen} of {self.n} records")
        made, corrected = self.mechanism, self.mechanism.bias_correction
        return Estimates(self.n, made.family.finish(self.sums, made.box, corrected=corrected))
