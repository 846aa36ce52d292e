"""Run by `counts.py` under callgrind: dump the instructions of each call, in the order of `CASES`.

A case calls the same code with the same public parameters for several classes of secrets: draws that are small or
large, true or false answers, different records.
"""

from __future__ import annotations

import ctypes
import gc
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dpfast as dpf
from dpfast import local
from dpfast._kernels import _knorm, _randomize, _samplers
from dpfast.laws import ClampedNoise, DiscreteLaplace, RoundedGaussian, RoundedLaplace, RoundedStudent3, Staircase

WARM, ROUNDS = 12, 12
LARGE, SMALL = 2**56 + 2**40 + 1, 2**64 - 2**52 + 1  # words of draws of large and of small magnitude, both negative
CLASSES = {"small": SMALL, "middle": 2**62 + 2**51 + 1, "large": LARGE, "small positive": SMALL - 1}


class Probe:
    """The library of `probe.c`."""

    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)
        self.library.probe_words.restype = ctypes.POINTER(ctypes.c_uint64)
        self.words = np.ctypeslib.as_array(self.library.probe_words(), (64,))
        self.zero, self.dump, self.rewind = (
            getattr(self.library, f"probe_{name}") for name in ("zero", "dump", "rewind")
        )

    def script(self, pattern: Any) -> None:
        self.words[:] = np.resize(np.asarray(pattern, np.uint64), self.words.size)


class _BitGen(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("state", "next64", "next32", "next_double", "next_raw")]


class Scripted(np.random.PCG64):
    """A bit generator that hands out the words of a probe."""

    def __init__(self, probe: Probe) -> None:
        super().__init__(0)
        names = ("probe_next", "probe_next32", "probe_double", "probe_next")
        pointers = [ctypes.cast(getattr(probe.library, name), ctypes.c_void_p).value for name in names]
        self._struct = _BitGen(None, *pointers)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self._capsule = new(ctypes.addressof(self._struct), b"BitGenerator", None)

    @property
    def capsule(self) -> Any:
        return self._capsule


def draws(call: Callable[[], Any]) -> dict[str, tuple[Any, Callable[[], Any]]]:
    """A call with draws of each class; every other word is that of a small draw, for differences of two."""
    return {name: ([word, SMALL], call) for name, word in CLASSES.items()}


def cases(source: Scripted, probe: Probe) -> dict[str, dict[str, tuple[Any, Callable[[], Any]]]]:
    """For each case and class the words and the call."""
    out = np.empty(8, np.int64)
    rows = np.empty((4, 2), np.int64)
    made: dict[str, dict[str, tuple[Any, Callable[[], Any]]]] = {}
    for name, call in {
        "fill_geometric": lambda: _samplers.fill_geometric(source, 100.0, out),
        "fill_rounded_laplace": lambda: _samplers.fill_rounded_laplace(source, 100.0, out),
        "fill_rounded_gaussian": lambda: _samplers.fill_rounded_gaussian(source, 100.0, out),
        "fill_rounded_student3": lambda: _samplers.fill_rounded_student3(source, 100.0, out),
        "fill_discrete_laplace": lambda: _samplers.fill_discrete_laplace(source, 100.0, out),
        "fill_staircase": lambda: _samplers.fill_staircase(source, 100.0, 10, 5, out),
        "fill_box": lambda: _knorm.fill_box(source, [100.0, 100.0], rows),
    }.items():
        made[name] = draws(call)

    coins = {"truth": 0, "lie": 2**64 - 1}
    symbols, bits = np.empty(4, np.uint8), np.zeros((4, 2), np.uint64)
    lines = np.empty((4, 2), np.uint32)
    place = 0x9E3779B97F4A7C15  # a word that no uniform draw rejects
    for record in (0, 99):
        x = np.full(4, record, np.uint32)
        for coin, word in coins.items():
            name = f"record {record}, {coin}"
            calls = {
                "fill_windows": ([word, place], lambda x=x: _randomize.fill_windows(source, x, 1, 100, 2**63, symbols)),
                "fill_rows": ([word, place], lambda x=x: _randomize.fill_rows(source, x, 127, 2**63, symbols)),
                "fill_subsets": (
                    [word, *(place + i * 2**60 & 2**64 - 1 for i in range(7))],
                    lambda x=x: (bits.fill(0), _randomize.fill_subsets(source, x, 7, 100, 2**63, bits)),
                ),
                "fill_lines": ([word, place, place], lambda x=x: _randomize.fill_lines(source, x, 2**31, 2**63, lines)),
                "fill_unary": ([place + 7], lambda x=x: _randomize.fill_unary(source, x, 2**62, 100, bits)),
            }
            for kernel, pair in calls.items():
                made.setdefault(kernel, {})[name] = pair

    for noise in (
        RoundedLaplace(100.0), DiscreteLaplace(100.0), RoundedGaussian(100.0), RoundedStudent3(100.0),
        Staircase(100.0, 10),
    ):  # fmt: skip
        law = ClampedNoise(noise, center=5_000, last=10_000, decode=float)
        made[f"a release by {type(noise).__name__}"] = draws(lambda law=law: law.sample(rng=source))
    made["noise.laplace, one draw"] = draws(lambda: dpf.noise.laplace(100.0, rng=source))
    x = np.linspace(0.0, 100.0, 64)
    mean = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=dpf.Grid(0, 100), epsilon=1.0)
    made["mean, draws"] = draws(lambda: mean.release(x, rng=source))
    made["mean, records"] = {
        name: (2**63 + 1, lambda values=values: mean.release(values, rng=source))
        for name, values in {
            "zeros": np.zeros(64), "middle": x, "ends": np.resize([0.0, 100.0], 64), "beyond": np.full(64, 1e300),
            "nan": np.full(64, np.nan),
        }.items()
    }  # fmt: skip
    survey = local.Categorical(100, epsilon=1.0, method="k-rr")
    made["k-rr, records"] = {
        str(record): (2**62 + 2**40, lambda record=record: survey.randomize([record], rng=np.random.Generator(source)))
        for record in (0, 50, 99)
    }
    made["control: trials until success"] = {
        str(trials): ([2**64 - 1] * trials + [0], lambda: probe.library.probe_trials(ctypes.c_uint64(2**62)))
        for trials in (1, 3, 9)
    }
    return made


def main() -> None:
    probe = Probe(sys.argv[1])
    source = Scripted(probe)
    made = cases(source, probe)
    gc.disable()
    order, shuffler = [], random.Random(0)  # allocations must not keep step with the classes
    probe.library.probe_start()
    for case, classes in made.items():
        for turn in range(WARM + ROUNDS):
            for name, (words, call) in shuffler.sample(sorted(classes.items()), len(classes)):
                probe.script(words)
                probe.rewind()
                if turn < WARM:
                    call()
                    continue
                probe.zero()
                call()
                probe.dump()
                order.append((case, name))
    Path(sys.argv[2]).write_text(json.dumps(order))


if __name__ == "__main__":
    main()
