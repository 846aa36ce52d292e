"""Build and compare every vector width and compiler: `python -m assurance.platforms [--only NAME] [--table]`."""

import argparse
import platform
import subprocess
import sys
import time

from assurance.platforms.builds import BUILDS, Build, called, kernel_tests, make


def checked(build: Build, tests: bool) -> tuple[bool, str]:
    """Whether the table and the tests of kernels agree on a build, and its row of the table of platforms."""
    begin = time.perf_counter()
    try:
        make(build)
    except subprocess.CalledProcessError:
        return False, f"| {build.name} | does not compile | | |"
    python = [*build.runner, sys.executable]
    status, line = called([*python, "-W", "ignore", "-m", "assurance.platforms.table"], build.folder, build.running)
    identical = line.partition(": ")[2] if status == 0 else f"NO: {line}"
    failed, ran = 0, ""
    if build.tests and tests:
        command = [*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "kernel and not slow"]
        failed, ran = called([*command, *kernel_tests(build.folder)], build.folder, build.running)
    seconds = time.perf_counter() - begin
    return not status and not failed, f"| {build.name} | {ran.strip('= ')} | {identical} | {seconds:.0f} s |"


def versions() -> str:
    """The processor and the compilers."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")
    found = [model, f"Python {platform.python_version()}", " ".join(platform.libc_ver())]
    for compiler in ("gcc", "clang"):
        try:
            found.append(subprocess.check_output([compiler, "--version"], text=True).splitlines()[0])
        except FileNotFoundError:
            found.append(f"{compiler} is not installed")
    return ", ".join(found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m assurance.platforms", description=__doc__.partition(":")[0])
    parser.add_argument("--only", help="builds whose names contain this text")
    parser.add_argument("--table", action="store_true", help="compare the table alone, without the tests of kernels")
    options = parser.parse_args()
    chosen = [build for build in BUILDS if options.only is None or options.only in build.name]
    good = bool(chosen)
    print(versions(), "| build | kernel tests | outcomes as recorded | time |", "| --- | --- | --- | --- |", sep="\n")
    for build in chosen:
        if build.missing():
            print(f"| {build.name} | install {', '.join(build.missing())} to run this build | | |", flush=True)
            good = False
            continue
        passed, row = checked(build, tests=not options.table)
        print(row, flush=True)
        good = good and passed
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
