"""The targets: how each is built and run, and the faults that its fuzzer must find."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from assurance.headers import FOLDERS

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
BUILD = ROOT / "build" / "fuzz"
FLAGS = ["-g", "-O1", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=undefined", "-Wno-unused-function"]
LIMITS = ["-timeout=60", "-print_final_stats=1", "-verbosity=1"]
MEMORY = {"C": ["-rss_limit_mb=2048"], "Python": ["-rss_limit_mb=0", "-runs=500000"]}  # Atheris leaks 3 kB a run


class Fault(NamedTuple):
    """A change of a source file, by which a promise of its target does not hold."""

    name: str
    file: str
    before: str
    after: str

    def text(self) -> str:
        """The file with the fault."""
        source = (ROOT / self.file).read_text()
        if source.count(self.before) != 1:
            raise ValueError(f"{self.file} must have {self.before!r} once, to be changed for a control")
        return source.replace(self.before, self.after)


class Target(NamedTuple):
    """A fuzzer: of C code in ``targets/NAME.c``, or of Python code in `readers`."""

    name: str
    language: str
    longest: int
    faults: tuple[Fault, ...]

    @property
    def corpus(self) -> Path:
        return HERE / "corpus" / self.name


TARGETS = (
    Target(
        "csv",
        "C",
        300,
        (
            Fault("a load beyond the end", "src/csv/csv.h", "end - p >= CSV_STEP; p", "end - p >= CSV_STEP - 1; p"),
            Fault("a power beyond the table", "src/csv/csv.h", "exponent > 27)", "exponent > 28)"),
            Fault("a quote after the start of a cell", "src/csv/csv.h", "if (p[-1] == delimiter)", "if (p[-1] != '1')"),
        ),
    ),
    Target(
        "keys",
        "C",
        600,
        (
            Fault(
                "a table that is full",
                "src/keys/keys.h",
                "table->size + more <= table->room",
                "table->size <= table->room",
            ),
            Fault("two bytes for U+0800 to U+0FFF", "src/keys/keys.h", "point < 0x800 ?", "point < 0x1000 ?"),
        ),
    ),
    Target(
        "levels",
        "C",
        160,
        (Fault("a rank below the first", "src/groups/groups.h", "low < 1 ? 0 :", "low < 0 ? 0 :"),),
    ),
    Target(
        "state",
        "Python",
        1200,
        (
            Fault(
                "an index that is not checked",
                "dpfast/streaming/wire.py",
                "np.any((places < 0) | (places >= node.size)) or ",
                "",
            ),
        ),
    ),
    Target(
        "reports",
        "Python",
        400,
        (
            Fault(
                "a report beyond the last one",
                "dpfast/local/interval.py",
                "np.asarray(reports < self.size)",
                "np.asarray(reports <= self.size)",
            ),
        ),
    ),
    Target(
        "tables",
        "Python",
        300,
        (
            Fault(
                "a third quote in a quotation",
                "dpfast/tables/text.py",
                """.replace(b'""', b'"')""",
                """.replace(b'""', b'"', 2)""",
            ),
        ),
    ),
    Target(
        "labels",
        "Python",
        300,
        (Fault("integers below 64 bits", "dpfast/keys/numbers.py", "(past - 1 + number)", "(past + number)"),),
    ),
    Target(
        "ledger",
        "Python",
        2000,
        (
            Fault(
                "a field that is missing",
                "dpfast/ledger/journal.py",
                "missing := _NEEDED - fields.keys()",
                "missing := []",
            ),
        ),
    ),
)


SEEDS = {
    "csv": (
        b'\0\3\7a,b\n1.5e3,-2\r\n123456789012345678e27,"x,""y"\n9007199254740993e-27, .5 \n',
        b'\5\1\4\n;\n1;"',
    ),
    "keys": (
        b"\4\2\0\0a\0\0\0\x01\x08\0\0\0\0\1\0a\0\0\0\0\0\x11\0\0\0\0\0",
        b"\2\3\2\xffabcabdabc",
        b"\0\0\0\0\3abc\4abcd\3abc",
        b"\5\0\0\xff\1\2\3\4",
    ),
}


class Outcome(NamedTuple):
    """What a fuzzer did; `found` is the path of an input that breaks a promise, or None."""

    executions: int
    edges: int
    kept: int
    found: Path | None
    report: str


def missing() -> str | None:
    """One sentence on what must be installed, or None."""
    if shutil.which("clang") is None:
        return "assurance.fuzz needs clang with libFuzzer: install the packages clang and libclang-rt-14-dev"
    try:
        import atheris  # noqa: F401
    except ImportError:
        return "assurance.fuzz needs Atheris: pip install '.[fuzz]'"
    return None


def program(target: Target, fault: Fault | None = None) -> tuple[Path, Path]:
    """Build the target, with a fault if one is given: the program, and the folder to run it in."""
    place = BUILD / target.name / ("sound" if fault is None else fault.name.replace(" ", "-"))
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    made = place / "run"
    if target.language == "Python":
        if fault is not None:
            _tree(place, fault)
        module = [sys.executable, "-W", "ignore", "-m", "assurance.fuzz.drive", target.name]
        made.write_text(f'#!/bin/sh\nexec {shlex.join(module)} "$0" "$@"\n')
        made.chmod(0o755)
        return made, ROOT if fault is None else place
    if fault is not None:
        (place / Path(fault.file).name).write_text(fault.text())
    folders = [place, *FOLDERS, HERE / "targets", Path(sysconfig.get_paths()["include"]), Path(np.get_include())]
    source = HERE / "targets" / f"{target.name}.c"
    build = ["clang", *FLAGS, *(f"-I{folder}" for folder in folders), str(source), "-o", str(made), "-lm"]
    subprocess.run(build, check=True)
    return made, ROOT


def _tree(place: Path, fault: Fault) -> None:
    """Links to all files that the target imports, with the changed file in its place."""
    for package in ("dpfast", "assurance", "tests"):
        shutil.copytree(
            ROOT / package, place / package, copy_function=os.symlink, ignore=shutil.ignore_patterns("__pycache__")
        )
    changed = place / fault.file
    changed.unlink()
    changed.write_text(fault.text())


def fuzz(target: Target, seconds: float, fault: Fault | None = None, seed: int = 1) -> Outcome:
    """Run a target from its corpus for some seconds, or until it finds an input that breaks a promise."""
    run, folder = program(target, fault)
    work = BUILD / target.name / ("work" if fault is None else f"work-{fault.name.replace(' ', '-')}")
    if fault is not None:
        shutil.rmtree(work, ignore_errors=True)
    (work / "corpus").mkdir(parents=True, exist_ok=True)
    words = _words(target)
    (work / "words").write_text("".join(f'"{word}"\n' for word in words))
    for old in _artifacts(work):
        old.unlink()
    options = [
        *LIMITS,
        *MEMORY[target.language],
        f"-max_len={target.longest}",
        f"-artifact_prefix={work}/",
        *([f"-dict={work / 'words'}"] if words else []),
        str(work / "corpus"),
        str(target.corpus),
    ]
    end, executions = time.monotonic() + seconds, 0
    while True:
        left = max(1, int(end - time.monotonic()))
        outcome = _session(target, [str(run), f"-max_total_time={left}", f"-seed={seed}", *options], folder, work)
        executions += outcome.executions
        seed += 1
        if outcome.found or time.monotonic() + 1 > end:
            return outcome._replace(executions=executions)


def _session(target: Target, command: list[str], folder: Path, work: Path) -> Outcome:
    environment = {
        **os.environ,
        "ASAN_OPTIONS": "quarantine_size_mb=1:malloc_context_size=5:detect_leaks=1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace")
    text = done.stdout + done.stderr
    found = next(iter(_artifacts(work)), None)
    if done.returncode and found is None:
        raise RuntimeError(f"the fuzzer of {target.name} did not run:\n{text[-3000:]}")
    executions = re.findall(r"stat::number_of_executed_units:\s*(\d+)", text) or re.findall(r"^#(\d+)\s", text, re.M)
    states = re.findall(r"cov: (\d+) ft: \d+ corp: (\d+)/", text)
    edges, kept = map(int, states[-1]) if states else (0, 0)
    return Outcome(int(executions[-1]) if executions else 0, edges, kept, found if done.returncode else None, text)


def _artifacts(work: Path) -> list[Path]:
    kinds = ("crash-*", "timeout-*", "oom-*", "leak-*")
    return sorted(path for kind in kinds for path in work.glob(kind))


def _words(target: Target) -> list[str]:
    """The dictionary of libFuzzer."""
    if target.language == "C":
        return []
    from assurance.fuzz.readers import READERS

    return [word.replace('"', '\\"') if "\\x" not in word else word for word in READERS[target.name].words]


def _seeds(target: Target) -> Iterable[bytes]:
    """Inputs to begin with."""
    if target.language == "C":
        return SEEDS.get(target.name, ())
    from assurance.fuzz.readers import READERS

    return READERS[target.name].seeds()


def minimise(target: Target, most: int = 30_000) -> int:
    """Replace the corpus by inputs that cover what it, the seeds and the last run cover; its size in bytes."""
    run, folder = program(target)
    work = BUILD / target.name / "work"
    merged, seeds = BUILD / target.name / "merged", BUILD / target.name / "seeds"
    for made in (merged, seeds):
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
    for i, data in enumerate(_seeds(target)):
        (seeds / str(i)).write_bytes(data)
    target.corpus.mkdir(parents=True, exist_ok=True)
    (work / "corpus").mkdir(parents=True, exist_ok=True)
    sources = [str(seeds), str(target.corpus), str(work / "corpus")]
    options = ["-merge=1", f"-max_len={target.longest}", str(merged), *sources]
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([str(run), *options], cwd=folder, env=environment, capture_output=True, check=True)
    shutil.rmtree(target.corpus)
    target.corpus.mkdir()
    size = 0
    for path in sorted(merged.iterdir(), key=lambda path: (path.stat().st_size, path.name)):
        if size + path.stat().st_size <= most:
            size += path.stat().st_size
            shutil.copy(path, target.corpus / path.name)
    return size
