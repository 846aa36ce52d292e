"""Runs CBMC on a harness, and on the header with the change that the harness must reject."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from assurance.headers import FOLDERS, HEADERS, ROOT
from assurance.kernels.case import ALWAYS, HERE, Case, Edit

BUILD = ROOT / "build" / "kernels"
_FAILED = re.compile(r"^\[(\S+)\] (?:file \S+ )?(?:line \d+ )?(.*): FAILURE$", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """The verdict of CBMC: whether all properties hold, how many there are, and the first that fails."""

    holds: bool
    properties: int
    failed: tuple[str, ...]
    seconds: float  # of one processor
    error: str = ""  # no verdict


def find(path: str | None) -> str | None:
    """The CBMC to run: the given one, that of the search path, or that which .ci/debian unpacked."""
    if path:
        return shutil.which(path)
    return shutil.which("cbmc") or shutil.which(str(ROOT / "build" / "trixie" / "run" / "cbmc"))


def headers(folder: Path, edits: tuple[Edit, ...]) -> list[Path]:
    """The folders of the headers: those of src, or a copy of all with the edits."""
    if not edits:
        return FOLDERS
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in HEADERS.values():
        text = path.read_text()
        for edit in edits:
            if edit.header == path.name:
                text = edit.of(text)
        (folder / path.name).write_text(text)
    return [folder]


def run(cbmc: str, case: Case, deep: bool, control: bool, limit: float, solver: str | None) -> Outcome:
    """Check one harness. Raises LookupError if the text of a change is not in the source."""
    edits = case.shrunk + ((case.control,) if control else ())
    folders = headers(BUILD / f"{case.name}{'-control' if control else ''}", edits)
    size, unwind = case.deep if deep and case.deep and not control else (case.size, case.unwind)
    command = [cbmc, str(case.source), "--function", f"check_{case.name}", "--unwind", str(unwind)]
    command += ["--unwinding-assertions", "--drop-unused-functions", "--object-bits", "12", f"-DSIZE={size}"]
    command += [f"-I{folder}" for folder in (*folders, HERE, np.get_include())]
    command += [f"--{check}-check" for check in ALWAYS + case.checks]
    if case.loops:
        command += ["--unwindset", ",".join(case.loops)]
    if solver:
        command += ["--external-sat-solver", solver]
    return _timed(command, limit)


def _timed(command: list[str], limit: float) -> Outcome:
    """The outcome of a run of at most `limit` seconds of a processor."""
    BUILD.mkdir(parents=True, exist_ok=True)

    def limited() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))

    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=BUILD, preexec_fn=limited
    ) as process:
        output = process.stdout.read() if process.stdout else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = usage.ru_utime + usage.ru_stime
    failed = tuple(f"{match[1]}: {match[2]}" for match in _FAILED.finditer(output))
    properties = output.count(": SUCCESS\n") + len(failed)
    if process.returncode == 0 and "VERIFICATION SUCCESSFUL" in output and properties:
        return Outcome(True, properties, (), seconds)
    if process.returncode == 10 and failed:
        return Outcome(False, properties, failed, seconds)
    reason = f"no verdict within {limit:g} s" if process.returncode < 0 else "\n".join(output.splitlines()[-15:])
    return Outcome(False, properties, failed, seconds, reason or "no output")
