"""Builds of the kernels for another system by one compiler: clang with the headers and libraries of `ziglang`."""

import io
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from assurance.platforms.builds import copy

ZIG = "ziglang==0.17.1"


@dataclass(frozen=True)
class Target:
    """What `setup.py` asks of the Python that kernels are built for."""

    name: str  # as `sysconfig.get_platform` says there
    triple: str  # as the compiler calls it
    suffix: str  # of extension modules
    include: tuple[Path, ...]  # the headers of Python and NumPy there
    link: str = ""  # what a kernel is linked with


def compiler(folder: Path) -> list[str]:
    """The command of the compiler, which is installed into a folder once."""
    python = folder / "zig" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "zig"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--only-binary=:all:", ZIG], check=True)
    return [str(python), "-m", "ziglang", "cc"]


def environment(folder: Path) -> dict[str, str]:
    """The environment of the compiler: all that it keeps is in the folder."""
    return {f"ZIG_{which}_CACHE_DIR": str(folder / "cache") for which in ("GLOBAL", "LOCAL")}


def compile_kernels(folder: Path, target: Target) -> Path:
    """Put the sources into a folder, compile the kernels there for another system, and return the folder."""
    sources, settings = folder / f"dpfast-{target.name}", folder / "settings"
    sources.mkdir(exist_ok=True)
    settings.mkdir(exist_ok=True)
    copy(sources)
    cc = f"{' '.join(compiler(folder))} -target {target.triple}"
    names = ("CXX", "CFLAGS", "CCSHARED", "LDCXXSHARED", "LDFLAGS", "OPT", "BLDSHARED", "LIBDIR")
    variables = dict.fromkeys(names, "") | {
        "CC": cc,
        "LDSHARED": f"{cc} -shared -s {target.link}",
        "SHLIB_SUFFIX": "." + target.suffix.rpartition(".")[2],
        "EXT_SUFFIX": target.suffix,
        "AR": "ar",
        "ARFLAGS": "rcs",
        "Py_GIL_DISABLED": 0,
    }
    module = f"_sysconfigdata_{target.name.replace('-', '_').replace('.', '_')}"
    (settings / f"{module}.py").write_text(f"build_time_vars = {variables!r}\n", encoding="utf-8")
    building = environment(folder) | {
        "_PYTHON_HOST_PLATFORM": target.name,
        "_PYTHON_SYSCONFIGDATA_NAME": module,
        "PYTHONPATH": str(settings),
        "CFLAGS": " ".join(f"-I{path}" for path in target.include),
        "DPFAST_UNVERIFIED": "1",
    }
    command = [sys.executable, "setup.py", "-q", "egg_info", "build_ext", "--inplace", "--parallel", "2"]
    subprocess.run(command, cwd=sources, env=os.environ | building, check=True)
    return sources


def wheel_size(sources: Path, target: Target) -> int:
    """The bytes of the package, with the kernels of a target alone, as a wheel packs them."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path in sorted((sources / "dpfast").rglob("*")):
            if path.suffix in (".py", ".pyi", ".pxd", ".typed") or path.name.endswith(target.suffix):
                wheel.write(path, path.relative_to(sources))
    return packed.tell()
