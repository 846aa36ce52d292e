"""Builds of the kernels for one vector width, compiler or level of optimisation each, in folders of their own."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "platforms"
# Above the baseline of NumPy: without these, its loops are those of x86-64-v2.
NUMPY_FEATURES = "X86_V3,X86_V4,AVX512_ICL,AVX512_SPR,AVX2,FMA3,AVX512F,AVX512CD,AVX512_SKX,AVX512_CLX,AVX512_CNL"


@dataclass(frozen=True)
class Build:
    """A name, the environment of the build and of the run, and a program that runs Python, such as an emulator."""

    name: str
    building: dict[str, str] = field(default_factory=dict)
    running: dict[str, str] = field(default_factory=dict)
    runner: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # programs
    tests: bool = True  # the tests of kernels, beside the table

    @property
    def folder(self) -> Path:
        """A folder for builds of one kind; builds that only run otherwise share it."""
        return FOLDER / (re.sub(r"\W+", "-", " ".join(self.building.values())).strip("-") or "default")

    def missing(self) -> list[str]:
        """The programs that are not installed."""
        return [program for program in self.needs if shutil.which(program) is None]


def one_width(target: str) -> dict[str, str]:
    """The environment that compiles for one vector width instead of three."""
    attribute = f'__attribute__((target("{target}")))' if target else ""
    return {"CFLAGS": f"'-DDPFAST_CLONES={attribute}' -DDPFAST_AVX512={int(target == 'avx512f')}"}


CHECKS = "-fsanitize=float-cast-overflow -fno-sanitize-recover=all -funsigned-char"
BUILDS = (
    Build("gcc -O3"),
    Build("gcc -O3, NumPy without AVX2", running={"NPY_DISABLE_CPU_FEATURES": NUMPY_FEATURES}, tests=False),
    Build(
        "gcc -O3, emulated processor without AVX-512",
        runner=("qemu-x86_64-static", "-cpu", "max"),
        needs=("qemu-x86_64-static",),
        tests=False,
    ),
    Build(
        "gcc -O3, emulated processor without AVX2",
        running={"OPENBLAS_CORETYPE": "Nehalem"},  # OpenBLAS takes its loops by the model of the processor
        runner=("qemu-x86_64-static", "-cpu", "max,-avx2"),
        needs=("qemu-x86_64-static",),
        tests=False,
    ),
    Build("gcc -O3, SSE2 alone", one_width("")),
    Build("gcc -O3, AVX2 alone", one_width("avx2")),
    Build("gcc -O3, AVX-512 alone", one_width("avx512f")),
    Build("gcc -O1", {"DPFAST_OPTIMIZE": "1"}),
    Build("clang -O3", {"CC": "clang"}, needs=("clang",)),
    Build("clang -O1", {"CC": "clang", "DPFAST_OPTIMIZE": "1"}, needs=("clang",)),
    Build("gcc -O1, casts checked, unsigned char", {"CFLAGS": CHECKS, "DPFAST_OPTIMIZE": "1"}),
)


def kernel_tests(root: Path = ROOT) -> list[str]:
    """The files with tests of kernels."""
    return sorted(
        str(path.relative_to(root))
        for path in root.glob("tests/*/test_*.py")
        if "mark.kernel" in path.read_text(encoding="utf-8")
    )


def copy(folder: Path) -> None:
    """Put the sources, and what Cython has made of them already, into a folder."""
    names = subprocess.check_output(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, text=True)
    generated = [path.relative_to(ROOT) for path in (ROOT / "build" / "cython").rglob("*")]
    for name in [*names.rstrip("\0").split("\0"), *generated]:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def make(build: Build, environment: dict[str, str] | None = None) -> None:
    """Build the kernels in the folder of a build, once for its sources."""
    copy(build.folder)
    command = [sys.executable, "setup.py", "-q", "egg_info", "build_ext", "--inplace", "--parallel", "2"]
    subprocess.run(command, cwd=build.folder, env=os.environ | build.building | (environment or {}), check=True)


def called(
    command: Sequence[str], folder: Path, environment: dict[str, str], log: Path | None = None
) -> tuple[int, str]:
    """The status of a command, and the last line that it prints; `log` gets all of what it prints, as it runs."""
    path = log or folder / "build" / "called.log"
    path.parent.mkdir(exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        done = subprocess.run(command, cwd=folder, env=os.environ | environment, stdout=file, stderr=file)
    printed = path.read_text(encoding="utf-8").strip().splitlines()
    if done.returncode:
        print("\n".join(printed[-60:]), flush=True)
    return done.returncode, printed[-1] if printed else ""
