"""Build the release files for Linux twice, compare, audit and describe them, and run them where there is no compiler.

`python -m assurance.wheels FOLDER` needs root's rights on Debian for x86-64, pip with a package index, gcc,
debootstrap and the packages of the extra `wheels`. arm64 needs gcc-aarch64-linux-gnu, qemu-user-static and
busybox-static; musl needs musl-tools and busybox-static. docs/assurance/wheels.md
"""

import argparse
import importlib.util
import re
import shutil
import sys
import zipfile
from pathlib import Path

MISSING = [name for name in ("auditwheel", "cyclonedx", "packageurl") if importlib.util.find_spec(name) is None]
if MISSING:
    sys.exit("install the packages of the extra `wheels`: pip install 'dpfast[wheels]'")

from assurance.wheels import audit, roots, sbom  # noqa: E402
from assurance.wheels.build import (  # noqa: E402
    PROJECT,
    Target,
    build_requirements,
    build_sdist,
    build_wheel,
    c_sources,
    commit_time,
    finish,
    sha256,
    two_surroundings,
    unpacked,
)

PARTS = ("manylinux", "arm64", "musllinux")
TOOLS = {"arm64": ("aarch64-linux-gnu-gcc", "qemu-aarch64-static", "busybox"), "musllinux": ("musl-gcc", "busybox")}
EMULATED = " -p assurance.platforms.limited --seconds 20"  # as python -m assurance.platforms.arm64 has it
TABLE = "python -m assurance.platforms.table"


class Failures:
    """Prints each check, and keeps those that failed."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, name: str, holds: bool, seen: object = "") -> None:
        print(f"{'ok  ' if holds else 'FAIL'} {name}{f': {seen}' if seen else ''}", flush=True)
        if not holds:
            self.names.append(name)

    def runs(self, name: str, run: object, command: str) -> None:
        try:
            run(command)
        except Exception as error:
            self(name, False, error)
        else:
            self(name, True)


def host() -> Target:
    return Target("manylinux", sys.executable, "gcc", f"3.{sys.version_info.minor}")


def sdist(folder: Path, check: Failures) -> Path:
    site = build_requirements(folder / "build-with", host().version, host().platforms)
    one, two = (build_sdist(around, site) for around in two_surroundings(folder))
    raw = [sha256(path.parent / "sdist" / path.name) for path in (one, two)]
    check("control: setuptools alone makes two different sdists", raw[0] != raw[1])
    check("sdist: the same bytes twice", sha256(one) == sha256(two), sha256(one))
    check("sdist: no path of this machine", not audit.paths_in_tar(one, folder))
    shutil.copy(one, folder)
    return folder / one.name


def test_command() -> str:
    command = re.sub(r"\s*\\?\n\s*", " ", PROJECT["tool"]["cibuildwheel"]["test-command"]).strip()
    return f"{command} -p no:cacheprovider -m 'not slow'"


def wheel(folder: Path, check: Failures, target: Target, source: Path, site: Path, policy: str, twice: bool) -> Path:
    """The finished wheel of a target, checked."""
    final = folder / "wheels"
    final.mkdir(exist_ok=True)
    made = []
    for around in two_surroundings(folder)[: 1 + twice]:
        built = build_wheel(around, target, source, site)
        parts = c_sources(around, target)
        described = sbom.describe(
            PROJECT["project"], site.parent / "wheels", target.compiler, parts, source, commit_time()
        )
        made.append(finish(built, policy, described, around.folder))
    seen = audit.verdict(made[0])
    check(f"{target.name}: auditwheel agrees with the tag", seen["overall_tag"] == policy, seen["versioned_symbols"])
    if twice:
        check(f"{target.name}: the same bytes twice", sha256(made[0]) == sha256(made[1]), sha256(made[0]))
    check(f"{target.name}: no path of this machine", not audit.paths_in_wheel(made[0], folder))
    check(f"{target.name}: the libraries name no folder to search", not audit.run_paths(made[0]))
    check(f"{target.name}: RECORD lists each file with its hash", audit.record_holds(made[0]))
    with zipfile.ZipFile(made[0]) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".cdx.json")]
        document = archive.read(name)
    check(f"{target.name}: the SBOM is valid CycloneDX 1.6", not sbom.errors(document))
    broken = document.replace(b'"type": "library"', b'"type": "book"', 1)
    check(f"control: {target.name}: a wrong SBOM is found", bool(sbom.errors(broken)))
    (final / f"{made[0].stem}.cdx.json").write_bytes(document)
    return Path(shutil.copy(made[0], final))


def try_out(folder: Path, check: Failures, target: Target, made: Path, run: roots.Run, *without: Path) -> None:
    """Run the wheel with the tests of the sdist that it was built from, where neither compiler nor sources are."""
    roots.prepare(run, folder, target, made, unpacked(two_surroundings(folder)[0], target), without)
    check.runs(f"{target.name}: demo", run, "python -m dpfast demo >/dev/null")
    check.runs(f"{target.name}: tests", run, test_command() + (EMULATED if target.name == "arm64" else ""))
    table = "python -m assurance.wheels.table" if without else TABLE
    check.runs(f"{target.name}: the recorded table of outcomes", run, table)


def manylinux(folder: Path, check: Failures, source: Path, options: argparse.Namespace) -> None:
    target = host()
    site = build_requirements(folder / "build-with", target.version, target.platforms)
    made = wheel(folder, check, target, source, site, "manylinux_2_17_x86_64", twice=True)
    if target.version == "3.11":
        run = roots.Run(roots.old_glibc(folder / "old-glibc"), "/opt/python/bin/python3.11")
        try_out(folder, check, target, made, run)
    else:
        print("     not run: the root with an old glibc has Python 3.11")


def cross(name: str, compiler: str, machine: str, settings: Path, data: Path, *includes: Path) -> Target:
    """A target whose Python does not run here: this Python reads the settings of that one from `data`."""
    settings.mkdir(parents=True, exist_ok=True)
    shutil.copy(data, settings)
    environment = {"_PYTHON_HOST_PLATFORM": f"linux-{machine}", "_PYTHON_SYSCONFIGDATA_NAME": data.stem}
    flags = " ".join(f"-I{include}" for include in includes)
    return Target(name, sys.executable, compiler, "3.11", machine, flags, environment, (str(settings),))


def arm64(folder: Path, check: Failures, source: Path, options: argparse.Namespace) -> None:
    root = roots.arm64(options.arm_root or folder / "arm64-root")
    include, data = root / "usr/include", "usr/lib/python3.11/_sysconfigdata__linux_aarch64-linux-gnu.py"
    settings = folder / "arm64-settings"
    target = cross("arm64", "aarch64-linux-gnu-gcc", "aarch64", settings, root / data, include / "python3.11", include)
    site = build_requirements(folder / "build-with", "3.11", host().platforms)
    made = wheel(folder, check, target, source, site, "manylinux_2_17_aarch64", twice=options.twice)
    try_out(folder, check, target, made, roots.Run(root, "/opt/python"))


def musllinux(folder: Path, check: Failures, source: Path, options: argparse.Namespace) -> None:
    prefix = options.musl_prefix or roots.musl_python(folder / "musl")
    data = prefix / "lib/python3.11/_sysconfigdata__linux_x86_64-linux-musl.py"
    compiler = roots.musl_compiler(folder / "musl")
    settings = folder / "musl-settings"
    target = cross("musllinux", str(compiler), "x86_64", settings, data, prefix / "include/python3.11")
    site = build_requirements(folder / "build-with", "3.11", host().platforms)
    made = wheel(folder, check, target, source, site, "musllinux_1_2_x86_64", twice=options.twice)
    run = roots.Run(roots.musl(folder / "musl", prefix), str(prefix / "bin/python3.11"))
    stand_in = folder / "musl/no-flint"
    stand_in.mkdir(exist_ok=True)
    shutil.copy(Path(__file__).with_name("no_flint.py"), stand_in / "flint.py")
    try_out(folder, check, target, made, run, stand_in)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m assurance.wheels", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="for everything that is built; roots in it are used again")
    parser.add_argument("--only", help=f"some of {','.join(PARTS)}, separated by commas")
    parser.add_argument("--sdist", type=Path, help="build from this sdist of the last commit instead of making one")
    parser.add_argument("--wheel", type=Path, help="check this wheel of this machine instead of building others")
    parser.add_argument("--arm-root", type=Path, help="an arm64 root with Python 3.11 that exists already")
    parser.add_argument("--musl-prefix", type=Path, help="the prefix of a Python 3.11 for musl that exists already")
    parser.add_argument("--twice", action="store_true", help="also build for arm64 and musl twice")
    options = parser.parse_args()
    parts = options.only.split(",") if options.only else list(PARTS)
    if unknown := set(parts) - set(PARTS):
        parser.error(f"unknown part: {', '.join(sorted(unknown))}")
    folder, check = options.folder.resolve(), Failures()
    folder.mkdir(parents=True, exist_ok=True)
    for name, rejected in audit.controls(folder):
        check(f"control: {name}", rejected)
    source = options.sdist or sdist(folder, check)
    if options.wheel:
        seen = audit.verdict(options.wheel)
        check(
            "the wheel needs no symbol above glibc 2.17",
            seen["overall_tag"] == "manylinux_2_17_x86_64",
            seen["overall_tag"],
        )
        parts = []
    for part in parts:
        lacking = [tool for tool in TOOLS.get(part, ()) if shutil.which(tool) is None]
        if lacking:
            check(part, False, f"install the Debian package of {', '.join(lacking)}")
        else:
            globals()[part](folder, check, source, options)
    print(f"{len(check.names)} failures" if check.names else "all checks passed")
    return 1 if check.names else 0


if __name__ == "__main__":
    sys.exit(main())
