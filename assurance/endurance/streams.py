"""Streams whose states are saved after each chunk, and resumed in another process after a kill."""

import os
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import PCG64

from assurance.endurance.check import Check, Violation, ended, forked, killed
from assurance.endurance.drawing import fingerprint
from dpfast.streaming import State
from tests.streams import ALL, records

PLACE = struct.Struct("<QQ")


def replace(path: Path, data: bytes) -> None:
    """Replace the contents of a file, or raise an OSError and leave it as it was."""
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        file.write(data)
    os.replace(part, path)


class Streams(Check):
    """A stream that SIGKILL interrupts ends in the same state, and the same release, as one that is not interrupted."""

    faults = ("a resumption that reads a chunk twice", "a state of another pass")
    most_kills = 8

    def step(self) -> None:
        number = self.random.randrange(len(ALL))
        mechanism, seed = ALL[number], self.random.getrandbits(32)
        kind = self.random.choice(["smooth", "ties"])
        x = records(mechanism, self.random.choice([150, 301, 600]), seed=seed % 16, kind=kind)
        chunks = np.array_split(x, self.random.randint(3, 9))
        try:
            whole = mechanism.start().read(chunks)
        except ValueError:  # for a number of records that the mechanism is not made for
            self.counts["refused numbers of records"] += 1
            return
        expected = fingerprint(whole.release(rng=PCG64(seed)))
        saved, result = self.folder / "state", self.folder / "release"
        saved.unlink(missing_ok=True)
        result.unlink(missing_ok=True)
        for kills in range(self.most_kills + 1):
            child = forked(lambda: self._resume(mechanism, chunks, seed, saved, result), quiet=self.fault is not None)
            last = kills == self.most_kills
            status = ended(child) if last else ended(child, self.random.uniform(0, 0.04))
            if status is None:
                status = killed(child)
            if status == 0:
                break
            self.require(status == -9 and not last, f"a resumed stream ended with status {status}: {mechanism!r}")
            self.counts["kills"] += 1
        self.counts["streams"] += 1
        self.counts["chunks"] += len(chunks) * whole.passes
        self.require(result.read_bytes() == expected, f"a resumed stream makes another release: {mechanism!r}")
        self.require(
            saved.read_bytes()[PLACE.size :] == whole.to_bytes(), f"a resumed stream has another state: {mechanism!r}"
        )

    def _resume(self, mechanism: Any, chunks: list[np.ndarray], seed: int, saved: Path, result: Path) -> None:
        """In a child process: continue after the last chunk that was saved."""
        state, at = mechanism.start(), 0
        if saved.exists():
            data = saved.read_bytes()
            number, at = PLACE.unpack(data[: PLACE.size])
            state = State.from_bytes(data[PLACE.size :], mechanism)
            if state.number != number:
                raise Violation("a state has another pass than was saved")
            if self.fault == "a resumption that reads a chunk twice":
                at = max(at - 1, 0)
            if self.fault == "a state of another pass" and state.number == state.passes:
                state = mechanism.start()
        while True:
            for i in range(at, len(chunks)):
                state.update(chunks[i])
                replace(saved, PLACE.pack(state.number, i + 1) + state.to_bytes())
                time.sleep(0.002)
            if state.number == state.passes:
                break
            state.next_pass()
            at = 0
        replace(result, fingerprint(state.release(rng=PCG64(seed))))
