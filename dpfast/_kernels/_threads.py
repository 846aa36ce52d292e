"""Independent tasks on threads, for kernels that release the GIL. Threads run in the context of their caller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


_TASKS = 16  # for each thread: more of them cost more than they even out


def each(task: Callable[[Part], Result], parts: Sequence[Part], threads: int) -> list[Result]:
    """Return ``[task(part) for part in parts]``, computed on `threads` threads; starts none for one thread or part."""
    if threads == 1 or len(parts) < 2:
        return [task(part) for part in parts]
    step = -(-len(parts) // (_TASKS * threads))

    def some(context: Context, first: int) -> list[Result]:
        return context.run(lambda: [task(part) for part in parts[first : first + step]])

    firsts = range(0, len(parts), step)
    with ThreadPoolExecutor(threads) as pool:
        return [result for found in pool.map(some, [copy_context() for _ in firsts], firsts) for result in found]
