"""Whether memory, file descriptors and threads of a process stay the same over time."""

import ctypes
import gc
import os
import statistics
import sys
from typing import NamedTuple

PAGE = os.sysconf("SC_PAGE_SIZE")
# What may be added between the first and the last quarter of the samples.
BOUNDS = {"resident bytes": 4 * 2**20, "blocks of Python": 5000, "file descriptors": 0, "threads": 0}


class Sample(NamedTuple):
    """The resources of this process, after a garbage collection."""

    resident: int
    blocks: int
    files: int
    threads: int


def sample() -> Sample:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * PAGE
    files, threads = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    return Sample(resident, sys.getallocatedblocks(), files, threads)


def growth(samples: list[Sample]) -> dict[str, float]:
    """The median of the last quarter of the samples less that of the first quarter, of each resource."""
    quarter = max(len(samples) // 4, 1)
    columns = zip(BOUNDS, zip(*samples[:quarter], strict=True), zip(*samples[-quarter:], strict=True), strict=True)
    return {name: statistics.median(last) - statistics.median(first) for name, first, last in columns}


def grown(samples: list[Sample]) -> set[str]:
    """The resources that grew by more than their bound."""
    return {name for name, amount in growth(samples).items() if amount > BOUNDS[name]}
