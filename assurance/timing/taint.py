"""Branches and addresses that depend on secret words or records, found by memcheck: the idea of ctgrind.

`taint.c` calls the headers of `src/` with secrets marked as undefined. memcheck then reports each branch and each
address that depends on one, with its line; every report must be in `expected.py`.
"""

from __future__ import annotations

import ast
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple

import numpy as np

from assurance.headers import HEADERS, INCLUDE
from assurance.timing.expected import CONTROLS, EXPECTED, REASONS

ROOT = Path(__file__).parents[2]
SOURCE = Path(__file__).with_name("taint.c")
KINDS = {"UninitCondition": "branch", "UninitValue": "address"}


class Report(NamedTuple):
    """A line of a header whose control flow, or whose addresses, depend on a secret."""

    case: str
    kind: str  # "branch" or "address"
    file: str
    text: str


def flags() -> list[str]:
    """The compiler flags of the kernels, from setup.py, with line numbers."""
    tree = ast.parse((ROOT / "setup.py").read_text())
    [value] = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "FLAGS"
    ]
    given = eval(compile(ast.Expression(value), "setup.py", "eval"), {"LEVEL": None})  # as without DPFAST_DEBUG
    return [flag for flag in given if flag != "-g0"] + ["-g"]


def compiled(source: Path, target: Path, compiler: str = "gcc") -> Path:
    """Compile a driver with the flags of the kernels."""
    target.parent.mkdir(parents=True, exist_ok=True)
    include = [*INCLUDE, f"-I{np.get_include()}"]
    subprocess.run([compiler, *flags(), *include, str(source), "-o", str(target), "-lm"], check=True)
    return target


def reports(program: Path) -> dict[Report, int]:
    """What memcheck reports of a compiled driver, and how often, in the order of the cases."""
    output = program.with_suffix(".xml")
    command = ["valgrind", "-q", "--xml=yes", f"--xml-file={output}", "--error-limit=no", "--num-callers=40"]
    subprocess.run([*command, str(program)], check=True, stdout=subprocess.DEVNULL)
    root = ElementTree.parse(output).getroot()
    counts = {
        pair.findtext("unique"): int(pair.findtext("count") or 0)
        for group in root.findall("errorcounts")
        for pair in group.findall("pair")
    }
    found: dict[Report, int] = {}
    for error in root.findall("error"):
        report = located(error)
        found[report] = found.get(report, 0) + counts[error.findtext("unique")]
    return found


def located(error: ElementTree.Element) -> Report:
    """The innermost line of a header or of the driver, and the case that reached it."""
    stack = error.find("stack")
    assert stack is not None
    frames = [(frame.findtext("fn") or "", frame.findtext("file") or "", frame) for frame in stack.findall("frame")]
    [case] = {name for name, _, _ in frames if name.startswith("case_")}
    file, frame = next((file, frame) for _, file, frame in frames if source_of(file).is_file())
    text = source_of(file).read_text().splitlines()[int(frame.findtext("line") or 0) - 1].strip()
    return Report(case.removeprefix("case_"), KINDS[error.findtext("kind") or ""], file, text)


def source_of(file: str) -> Path:
    return SOURCE if file == SOURCE.name else HEADERS.get(file, Path(file))


def cases() -> list[str]:
    """The names of all cases of the driver, in order."""
    return [part.split(")")[0] for part in SOURCE.read_text().split("RUN(")[2:]]


def reason(report: Report) -> str | None:
    """The expected reason of a report, None if there is none."""
    for kind, file, text, why in EXPECTED.get(report.case, []):
        if (report.kind, report.file) == (kind, file) and report.text.startswith(text):
            return why
    return None


def check() -> list[str]:
    """Print the dependences of each case; the failures."""
    found = reports(compiled(SOURCE, ROOT / "build" / "timing" / "taint"))
    failures = []
    print("taint: branches and addresses that depend on secrets, by memcheck")
    for case in cases():
        mine = {report: count for report, count in found.items() if report.case == case}
        if case in CONTROLS:
            kinds = {report.kind for report in mine}
            print(f"  {case:22} {', '.join(sorted(kinds)) or 'none'}, as it must be")
            if kinds != CONTROLS[case]:
                failures.append(f"taint: {case} has {kinds or 'no reports'}, not {CONTROLS[case]}")
            continue
        reasons: dict[str, int] = {}
        for report, count in mine.items():
            why = reason(report)
            if why is None:
                failures.append(f"taint: {case}: a {report.kind} in {report.file}: {report.text}")
            else:
                reasons[why] = reasons.get(why, 0) + count
        print(f"  {case:22} {'; '.join(f'{REASONS[why]}: {why} ({n})' for why, n in reasons.items()) or 'none'}")
    return failures
