"""The progress of a long read, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(total: int, unit: str, wanted: bool) -> Iterator[Callable[[int], None]]:
    """Show the progress on a terminal, with a bar by tqdm if it is installed, else as a percentage.

    Yields a function to call with the total that has been read.
    """
    if not wanted or sys.stderr is None or not sys.stderr.isatty():
        yield lambda done: None
        return
    try:
        from tqdm import tqdm
    except ImportError:

        def show(done: int) -> None:
            print(f"\rreading {100 * done // max(total, 1)} %", end="", file=sys.stderr, flush=True)

        yield show
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    else:
        with tqdm(total=total, unit=unit, unit_scale=True, desc="reading", leave=False) as bar:
            yield lambda done: bar.update(done - bar.n)
