"""The table and the tests of kernels on arm64, emulated: `python -m assurance.platforms.arm64 FOLDER [PYTEST...]`.

Unpacks Debian's Python for arm64 and the wheels of its dependencies into a folder, compiles the kernels with Debian's
cross compiler, and runs Python under qemu-user. Needs no privileges and leaves the system as it is. Of each file with
tests of kernels, MOST tests run, evenly spread over it, each for at most SECONDS of an emulated processor;
FOLDER/tests-*.log have all results, and list the tests that needed more. With arguments of pytest, those tests run.
"""

import os
import shutil
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from assurance.platforms.builds import ROOT, called, copy, kernel_tests

RELEASE, PACKAGES = "bookworm", ("python3", "libpython3-dev", "libstdc++6")
VERSION = "3.11"  # of Python, in that release, and of the Python that runs this
MOST, SECONDS, PARTS = 15, 20, 2  # tests of a file; for each test; processes with a part of the files each
NEEDS = {
    "qemu-aarch64-static": "qemu-user-static",
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
    "apt-get": "Debian",
}
TAGS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")


def unpack(folder: Path) -> None:
    """Python for arm64, its headers, and the wheels of everything that dpfast and its tests import."""
    environment = os.environ | {"ARCHITECTURE": "arm64"}
    command = ["bash", str(ROOT / ".ci" / "debian"), RELEASE, str(folder / "root"), *PACKAGES]
    subprocess.run(command, env=environment, check=True)
    if (folder / "site").exists():
        return
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    platforms = [part for tag in TAGS for part in ("--platform", tag)]
    command = [sys.executable, "-m", "pip", "install", "-q", "--only-binary=:all:", "--python-version", VERSION]
    subprocess.run([*command, *platforms, "--target", str(folder / "site"), *wanted], check=True)


def compile_kernels(folder: Path) -> None:
    """Compile the kernels in ``folder / "dpfast"`` as Python of the root would, by the cross compiler."""
    root, settings, sources = folder / "root", folder / "settings", folder / "dpfast"
    sources.mkdir(exist_ok=True)
    copy(sources)
    settings.mkdir(exist_ok=True)
    for path in (root / "usr" / "lib" / f"python{VERSION}").glob("_sysconfigdata_*.py"):
        shutil.copy2(path, settings)
    headers = root / "usr" / "include"
    environment = {
        "_PYTHON_HOST_PLATFORM": "linux-aarch64",
        "_PYTHON_SYSCONFIGDATA_NAME": "_sysconfigdata__linux_aarch64-linux-gnu",
        "PYTHONPATH": str(settings),
        "CFLAGS": f"-I{headers / f'python{VERSION}'} -idirafter {headers}",
    }
    command = [sys.executable, "setup.py", "-q", "egg_info", "build_ext", "--inplace", "--parallel", "2"]
    subprocess.run(command, cwd=sources, env=os.environ | environment, check=True)


def start(folder: Path) -> dict[str, str]:
    """The environment of Python under the emulator. Programs that it starts as `sys.executable` run there, too."""
    settings = folder / "start"
    settings.mkdir(exist_ok=True)
    name = str(folder / "root" / "run" / "python3")
    (settings / "sitecustomize.py").write_text(f"import sys\n\nsys.executable = {name!r}\n", encoding="utf-8")
    return {"PYTHONPATH": f"{settings}:{folder / 'site'}", "OPENBLAS_NUM_THREADS": "1"}


def run_tests(python: str, folder: Path, environment: dict[str, str], chosen: list[list[str]]) -> int:
    """Run pytest once for each list of its arguments, at the same time; the number of those that fail."""
    command = [python, "-m", "pytest", "-v", "-p", "no:cacheprovider"]

    def run(part: int) -> int:
        begin = time.perf_counter()
        log = folder / f"tests-{part}.log"
        failed, line = called([*command, *chosen[part]], folder / "dpfast", environment, log)
        print(f"{line} ({time.perf_counter() - begin:.0f} s, {log})", flush=True)
        return failed

    with ThreadPoolExecutor(len(chosen)) as pool:
        return sum(map(bool, pool.map(run, range(len(chosen)))))


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    missing = [package for program, package in NEEDS.items() if shutil.which(program) is None]
    if missing or f"{sys.version_info[0]}.{sys.version_info[1]}" != VERSION:
        print(f"install {', '.join([*missing, f'Python {VERSION}'])} to run dpfast on an emulated arm64")
        return 2
    folder, arguments = Path(sys.argv[1]).resolve(), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    unpack(folder)
    compile_kernels(folder)
    print(f"unpacked and compiled in {time.perf_counter() - begin:.0f} s", flush=True)
    python, sources, environment = str(folder / "root" / "run" / "python3"), folder / "dpfast", start(folder)
    begin = time.perf_counter()
    different, line = called([python, "-m", "assurance.platforms.table"], sources, environment)
    print(f"{line} ({time.perf_counter() - begin:.0f} s)", flush=True)
    limited = [
        "-p",
        "assurance.platforms.limited",
        f"--most={MOST}",
        f"--seconds={SECONDS}",
        "-m",
        "kernel and not slow",
    ]
    files = kernel_tests(sources)
    chosen = [arguments] if arguments else [[*limited, *files[part::PARTS]] for part in range(PARTS)]
    failed = run_tests(python, folder, environment, chosen)
    return 1 if different or failed else 0


if __name__ == "__main__":
    sys.exit(main())
