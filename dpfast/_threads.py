"""Independent tasks on threads, for kernels that release the GIL. Threads run in the context of their caller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


def each(task: Callable[[Part], Result], parts: Sequence[Part], threads: int) -> list[Result]:
    """Return ``[task(part) for part in parts]``, computed on `threads` threads; starts none for one thread or part."""
    if threads == 1 or len(parts) < 2:
        return [task(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda context, part: context.run(task, part), [copy_context() for _ in parts], parts))
