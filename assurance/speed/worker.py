"""Run by `counts.py` under callgrind as a script: dump the instructions of each call, in the order of `cases`.

It imports nothing of this folder, so that it can count the calls of another tree of the sources.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import itertools
import json
import os
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

WARM, ROUNDS = 6, 10
EMPTY = "nothing"
CONTROLS = {  # slower versions, and the calls that they must not pass for
    "control: a median, and the sum of 50 numbers": "median, built",
    "control: codes of 6 % more records": "codes of records, n = 1e5",
}

_requests = itertools.count()


def bytes_in_order(size: int) -> bytes:
    """Instead of the randomness of the operating system: other bytes at each request, the same in each run."""
    return hashlib.shake_128(str(next(_requests)).encode()).digest(size)


def table() -> ModuleType:
    """`bench.calls` of this tree, whichever tree dpfast is from."""
    spec = spec_from_file_location("calls", Path(__file__).parents[2] / "bench" / "calls.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["calls"] = module  # where its dataclass looks for its module
    spec.loader.exec_module(module)
    return module


def cases() -> dict[str, Callable[[], Any]]:
    """The calls to count, of nothing and of slower versions among them."""
    calls = table()
    small = {name: call.run for name, call in calls.small().items()}
    return {EMPTY: lambda: None, **small, **calls.kernels(), **calls.controls()}


def main() -> None:
    os.urandom = bytes_in_order  # type: ignore[assignment]  # before the first import of dpfast: keys and seeds of tables
    probe = ctypes.CDLL(sys.argv[1])
    zero, dump = probe.probe_zero, probe.probe_dump
    made = cases()
    gc.collect()
    gc.freeze()
    gc.disable()
    order: list[str] = []
    probe.probe_start()
    for name, call in made.items():
        for _ in range(WARM):
            call()
        for _ in range(ROUNDS):
            zero()
            call()
            dump()
            order.append(name)
    Path(sys.argv[2]).write_text(json.dumps(order))


if __name__ == "__main__":
    main()
