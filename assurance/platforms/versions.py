"""Run a wheel with old and new versions of what it needs: ``python -m assurance.platforms.versions FOLDER``.

Each row has an environment in FOLDER with the wheel, the named versions and the newest of everything else, in which the
table of outcomes and some tests of each file run, those of other libraries too. The rows are those of
docs/assurance/platforms.md. The folder keeps the wheels, one for each Python; ``--wheel`` gives one that is built.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXTRAS = ("test", "dask", "duckdb", "opendp", "parquet", "polars", "sklearn", "plot", "completion", "examples")
COPIED = ("tests", "assurance", "bench", "docs", "examples", "src", "README.md", "CHANGELOG.md", "pyproject.toml")


@dataclass(frozen=True)
class Row:
    """An interpreter, and what pip installs beside the wheel."""

    python: str
    versions: tuple[str, ...]


# "oldest" has the oldest versions that pyproject.toml allows, and of libraries without a limit there the oldest ones
# that work with NumPy 2.0.
ROWS = {
    "oldest": Row(
        "3.11",
        (
            "numpy==2.0.0",
            "scipy==1.13.0",
            "cryptography==43.0.0",
            "python-flint==0.7.0",
            "pandas==2.2.2",
            "polars==2.0.0",
            "pyarrow==16.1.0",
            "scikit-learn==1.6.0",
            "dask[array,dataframe,distributed]==2024.8.0",
            "duckdb==1.0.0",
            "matplotlib==3.9.0",
        ),
    ),
    "between": Row("3.12", ("numpy==2.2.*", "scipy==1.15.*", "pandas==2.3.*", "pyarrow==20.*", "scikit-learn==1.7.*")),
    "newest": Row("3.13", ("pandas>=3",)),
}


def needed() -> list[str]:
    """What the wheel and its tests need, with the limits of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    return [*project["dependencies"], *(need for name in EXTRAS for need in extras[name])]


def python_of(version: str) -> str:
    """The program of an interpreter of pyenv, or on the search path, where pyenv has programs that only refuse."""
    if sys.version.startswith(version + "."):
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = max(pyenv.glob(f"{version}.*/bin/python{version}"), default=shutil.which(f"python{version}"))
    if found is None:
        sys.exit(f"Python {version} was not found")
    return str(found)


def wheel_for(python: str, folder: Path) -> Path:
    """The wheel for an interpreter, built once from a copy of the sources."""
    built = folder / f"wheel-{Path(python).name}-{run([python, '-c', 'import sys; print(sys.hexversion)']).strip()}"
    if not list(built.glob("*.whl")):
        listed = run(["git", "ls-files", "-z"], cwd=ROOT).split("\0")[:-1]
        sources = built / "sources"
        shutil.rmtree(sources, ignore_errors=True)
        for name in listed:
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, sources / name)
        run([python, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(built), str(sources)])
    return next(built.glob("*.whl"))


def run(command: list[str], **options: object) -> str:
    """What a command prints; its output is shown if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return str(done.stdout)


def check(name: str, folder: Path, options: argparse.Namespace) -> None:
    """Run a row, and print what it has and how its tests closed."""
    row, place, wheel = ROWS[name], folder / name, options.wheel and options.wheel.resolve()
    python = python_of(options.python or row.python)
    shutil.rmtree(place, ignore_errors=True)
    run([python, "-m", "venv", str(place / "venv")])
    inside = str(place / "venv/bin/python")
    pip = [inside, "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
    run([*pip, str(wheel or wheel_for(python, folder)), *needed(), *row.versions])
    tests = place / "tests-of-the-wheel"  # without the sources of the package
    for copied in COPIED:
        if (ROOT / copied).is_dir():
            shutil.copytree(ROOT / copied, tests / copied)
        else:
            shutil.copy2(ROOT / copied, tests)
    print(f"{name}: Python {options.python or row.python}, {', '.join(row.versions)}", flush=True)
    print(run([inside, "-m", "assurance.platforms.table"], cwd=tests).splitlines()[-1], flush=True)
    limited = ["-p", "assurance.platforms.limited", "--most", str(options.most), "--seconds", "60"]
    chosen = ["-q", "-n", "2", "-m", "not slow", *limited, *options.tests]
    done = subprocess.run([inside, "-m", "pytest", *chosen], cwd=tests, capture_output=True, text=True, check=False)
    print(done.stdout[-6000:] if done.returncode else done.stdout.splitlines()[-1], flush=True)
    if done.returncode:
        sys.exit(1)


def main() -> None:
    """Run the rows."""
    parser = argparse.ArgumentParser(prog="python -m assurance.platforms.versions", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=ROWS, action="append", help="a row; may be repeated")
    parser.add_argument("--wheel", type=Path, help="a wheel for the interpreter of the rows")
    parser.add_argument("--python", help="the interpreter of all rows, such as 3.11, so that one wheel is enough")
    parser.add_argument("--tests", nargs="+", default=["tests/units", "tests/local", "tests/hosts"], help="folders")
    parser.add_argument("--most", type=int, default=4, help="tests of each file")
    options = parser.parse_args()
    for name in options.only or ROWS:
        check(name, options.folder.resolve(), options)


if __name__ == "__main__":
    main()
