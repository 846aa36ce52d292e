"""The state of a sample-and-aggregate release that reads its records in chunks."""

from __future__ import annotations

from numpy.typing import ArrayLike

from dpfast import _checks, _containers
from dpfast._kernels._blocks import BlockSums


class BlockState:
    """What has been read of a stream of n records, in sums over its blocks. PRIVATE. See `SampleAndAggregate`.

    Parameters
    ----------
    sums : BlockSums
    """

    def __init__(self, sums: BlockSums) -> None:
        self.sums = sums

    @property
    def n(self) -> int:
        """All records of the release, read or not."""
        return self.sums.n

    @property
    def seen(self) -> int:
        """How many records this state, and those merged into it, have read."""
        return self.sums.seen

    def __repr__(self) -> str:
        return f"<BlockState of {self.seen} of {self.n} records, private>"

    def update(self, chunk: ArrayLike, *, workers: int = 1) -> None:
        """Read the next records.

        Parameters
        ----------
        chunk : array_like of shape (m,)
        workers : int
            Threads, -1 for one per core; the result does not depend on it.
        """
        threads = _checks.threads(workers)
        self.sums.update(_containers.vector("x", chunk), workers=threads)

    def merge(self, other: BlockState) -> None:
        """Add what a state of the same mechanism and n has read of other records."""
        if not isinstance(other, BlockState):
            raise TypeError(f"a state of blocks is merged with another, not with {type(other).__name__}")
        self.sums.merge(other.sums)
