"""The instructions of calls, counted by callgrind, and the environment that they depend on."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from assurance.speed.worker import EMPTY

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "speed"
RECORD = Path(__file__).with_name("counts.json")

Counts = dict[str, int]


def compiler(tree: Path = ROOT) -> str:
    """What compiled the kernels of a tree, as it signed them."""
    [kernel] = (tree / "dpfast" / "_kernels").glob(f"_select.{sys.implementation.cache_tag}*.so")
    signed = sorted(set(re.findall(rb"(?:GCC: \(|clang version )[ -~]+", kernel.read_bytes())))
    return "; ".join(text.decode() for text in signed) or "unknown"


def environment() -> dict[str, str]:
    """What may change the counts without a change of the sources.

    callgrind shows programs a processor with AVX2 at most, whose caches and other features are always the same.
    """
    found = {
        "machine": platform.machine(),
        "AVX2": str("avx2" in Path("/proc/cpuinfo").read_text()),
        "compiler of the kernels": compiler(),
        "Python": f"{platform.python_version()}, {platform.python_compiler()}",
        "libc": " ".join(platform.libc_ver()),
        "valgrind": subprocess.run(
            ["valgrind", "--version"], check=True, capture_output=True, text=True
        ).stdout.strip(),
    }
    for name in ("numpy", "cryptography", "Cython"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def counted(tree: Path = ROOT) -> Counts:
    """The least number of instructions of each call of the kernels and modules in a tree, less those of no call."""
    folder = FOLDER / "dumps"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    probe, order = folder / "probe.so", folder / "order.json"
    source = str(ROOT / "assurance" / "timing" / "probe.c")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", source, "-o", str(probe)], check=True)
    worker = [sys.executable, str(Path(__file__).with_name("worker.py")), str(probe), str(order)]
    callgrind = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder / 'dump'}"]
    clean = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "HOME") if name in os.environ}
    clean |= {"PYTHONPATH": str(tree), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}
    clean |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([*callgrind, *worker], check=True, cwd=tree, env=clean)
    found: Counts = {}
    for number, name in enumerate(json.loads(order.read_text()), 1):
        total = re.search(r"^(?:summary|totals): (\d+)", (folder / f"dump.{number}").read_text(), re.MULTILINE)
        assert total is not None
        found[name] = min(int(total[1]), found.get(name, 2**63))
    shutil.rmtree(folder)
    nothing = found.pop(EMPTY)
    return {name: count - nothing for name, count in found.items()}
