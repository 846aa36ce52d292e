"""Sort the reports of ThreadSanitizer in a folder: `control.*` must show the race of racy.pyx, `tests.*` no kernel's.

A report is one of a kernel if the innermost frame of one of its two accesses is in dpfast, after the functions that the
sanitizer intercepts (memcpy and the like). Others are races of the interpreter or of a library; they are listed by
function.
"""

import re
import sys
from collections import Counter
from pathlib import Path

KERNELS = {path.stem for path in Path(__file__).parents[2].glob("src/*/_*.pyx")}
_INTERCEPTED = {"memcpy", "memmove", "memset", "memcmp", "free", "malloc", "calloc", "realloc", "strlen"}
_ACCESS = re.compile(r"(?:Atomic )?(?:[Ww]rite|[Rr]ead) of size")


def reports(folder: Path, start: str) -> list[str]:
    """The reports in the files of a folder whose names start so."""
    text = "".join(path.read_text(errors="replace") for path in sorted(folder.glob(f"{start}*")))
    return [part for part in text.split("==================") if "WARNING: ThreadSanitizer" in part]


def accesses(report: str) -> list[str]:
    """The innermost frame of each access of a report, of those that the sanitizer did not intercept."""
    found = []
    for paragraph in report.split("\n\n"):
        if _ACCESS.search(paragraph):
            frames = [line.strip() for line in paragraph.splitlines() if re.match(r" +#\d+ ", line)]
            inner = [frame for frame in frames if frame.split()[1] not in _INTERCEPTED]
            found += inner[:1]
    return found


def in_kernel(frame: str) -> bool:
    """Whether the code of a frame is in the shared object of a kernel."""
    module = re.search(r"\((\w+)\.cpython-", frame)
    return module is not None and module[1] in KERNELS


def main(folder: Path) -> int:
    control = [report for report in reports(folder, "control") if any("racy" in frame for frame in accesses(report))]
    every = reports(folder, "tests")
    kernels = [report for report in every if any(map(in_kernel, accesses(report)))]
    for report in kernels:
        print(report)
    others = Counter(
        " and ".join(sorted({frame.split()[1] for frame in accesses(report)})) or report.strip().splitlines()[0]
        for report in every
        if report not in kernels
    )
    print(f"control: {len(control)} reports of the race in racy.pyx")
    print(f"tests: {len(kernels)} reports of a kernel, {sum(others.values())} of the interpreter and libraries")
    for functions, count in others.most_common():
        print(f"  {count} {functions}")
    return int(bool(kernels) or not control)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
