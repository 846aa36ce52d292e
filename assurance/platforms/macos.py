"""The kernels built for macOS, and how they tell threads apart: `python -m assurance.platforms.macos FOLDER`.

Compiles and links all kernels for arm64 and x86-64 by clang of `ziglang`, with the headers of this Python and of NumPy
for macOS, and disassembles the lock of the keystream: it must call `pthread_self` and read no register of the thread,
which on arm64 is 0 in all threads. A control that reads the register must be found. Nothing runs: that takes a Mac.
"""

import re
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from assurance.platforms import cross
from assurance.platforms.windows import pip

NUMPY = "numpy>=2.0"
# The name of the platform, the compiler's, and the tag of NumPy's wheel.
TARGETS = (
    ("macosx-11.0-arm64", "aarch64-macos.11.0", "macosx_11_0_arm64"),
    ("macosx-10.15-x86_64", "x86_64-macos.10.15", "macosx_10_15_x86_64"),
)
SUFFIX = f".cpython-{sys.version_info[0]}{sys.version_info[1]}-darwin.so"
# Reads of what points to the thread: the registers of arm64, and the first word of a segment of x86-64.
REGISTERS = re.compile(r"\bmrs\b.*tpidr|%[fg]s:(0x0\b|0\b|,|\()", re.IGNORECASE)
CONTROL = "void *thread(void) { return __builtin_thread_pointer(); }\n"


def disassembled(path: Path) -> str:
    return subprocess.run(["llvm-objdump", "-d", path], capture_output=True, text=True, check=True).stdout


def imported(path: Path) -> set[str]:
    """The functions that a module takes from others."""
    listed = subprocess.run(["llvm-nm", "-u", path], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in listed.splitlines() if line.split()}


def control_is_found(folder: Path) -> bool:
    """Whether a function that reads the register of arm64 is noticed."""
    source, made = folder / "control.c", folder / "control.o"
    source.write_text(CONTROL, encoding="ascii")
    command = [*cross.compiler(folder), "-target", "aarch64-macos.11.0", "-O2", "-c", str(source), "-o", str(made)]
    subprocess.run(command, env=cross.environment(folder), check=True)
    return REGISTERS.search(disassembled(made)) is not None


def headers(folder: Path, tag: str) -> tuple[Path, ...]:
    """The headers of this Python, whose types have the same sizes there, and of NumPy for macOS."""
    site = folder / f"site-{tag}"
    if not site.exists():
        where = ["--platform", tag, "--platform", tag.replace("10_15", "10_9"), "--target", str(site)]
        pip("install", "--no-deps", "--only-binary=:all:", *where, NUMPY)
    return Path(sysconfig.get_path("include")), site / "numpy" / "_core" / "include"


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    cross.compiler(folder)
    good = control_is_found(folder)
    print(f"control, a read of the register of the thread: {'found' if good else 'NOT FOUND'}", flush=True)
    for name, triple, tag in TARGETS:
        begin = time.perf_counter()
        target = cross.Target(name, triple, SUFFIX, headers(folder, tag), "-Wl,-undefined,dynamic_lookup")
        sources = cross.compile_kernels(folder, target)
        made = sorted((sources / "dpfast" / "_kernels").glob(f"*{SUFFIX}"))
        [secure] = (path for path in made if path.name.startswith("_secure."))
        calls, reads = "_pthread_self" in imported(secure), REGISTERS.search(disassembled(secure)) is not None
        complete = len(made) == len(list(sources.glob("src/*/_*.pyx"))) + 1
        good = good and calls and not reads and complete
        print(
            f"{name}: {len(made)} modules, {sum(path.stat().st_size for path in made) / 2**20:.1f} MB; the lock "
            f"{'calls' if calls else 'DOES NOT CALL'} pthread_self and {'READS' if reads else 'reads no'} register of "
            f"the thread ({time.perf_counter() - begin:.0f} s)",
            flush=True,
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
