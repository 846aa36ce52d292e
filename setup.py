"""Build the kernels: every ``src/x/_x.pyx`` becomes the module ``dpfast._kernels._x``.

A kernel sees the headers of its own folder and those of ``src/shared``.

``DPFAST_DEBUG=1`` builds with checks of bounds and initialisation into a directory of its own;
``DPFAST_OPTIMIZE=1`` compiles with ``-O1`` instead of ``-O3`` (`assurance.platforms`), and any other level alike;
``CFLAGS`` adds to the compiler's flags (``.ci/run nightly`` uses it for the sanitizers). Either keeps the names of
functions for profilers and stack traces; without them these names are left out, which saves a wheel 0.2 MB.

``DPFAST_UNVERIFIED=1`` builds on a platform whose builds nobody verified, for those who port dpfast to it.

Metadata and a list of sources need no C: ``build_ext`` alone makes it. An editable install compiles where ``pip install
.`` does, so that after it, and after an edit, only what changed is compiled.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from copy import copy
from importlib.util import find_spec
from pathlib import Path
from sysconfig import get_config_var, get_platform

import numpy as np
from Cython import __version__ as cython_version
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

# Where the lock of the secure generator and the recorded outcomes were checked: docs/assurance/platforms.md.
VERIFIED = ("linux-aarch64", "linux-x86_64")
PLATFORM = get_platform()
WINDOWS = PLATFORM.startswith("win")

if PLATFORM not in VERIFIED and os.environ.get("DPFAST_UNVERIFIED") != "1":
    sys.exit(
        f"dpfast is not verified on {PLATFORM}, only on {', '.join(VERIFIED)}: its releases may not be private there. "
        "To port it, set DPFAST_UNVERIFIED=1 and run its tests."
    )

DEBUG = os.environ.get("DPFAST_DEBUG") == "1"
GENERATED = Path("build/cython-debug" if DEBUG else "build/cython")  # the C that Cython makes of kernels
LEVEL = os.environ.get("DPFAST_OPTIMIZE", "1" if DEBUG else "")

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "cdivision": True,
    "embedsignature": False,
    "freethreading_compatible": True,
}

# No -ffast-math, no contraction: every machine computes the same doubles, and the proved error bounds hold.
FLAGS = [f"-O{LEVEL or 3}", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wno-unused-function", "-g0"]

STRIP = PLATFORM.startswith("linux") and not DEBUG and not os.environ.get("CFLAGS")
LINK = ["-s"] if STRIP else []

SHARED_HEADERS = [*Path().glob("src/shared/*.[chp]*"), *Path().glob("dpfast/_kernels/*.pxd")]

KERNELS = [
    Extension(
        f"dpfast._kernels.{source.stem}",
        [str(source)],
        include_dirs=[str(source.parent), "src/shared", np.get_include()],
        libraries=[] if WINDOWS else ["m"],
        depends=sorted(map(str, [*source.parent.glob("*.h"), *SHARED_HEADERS])),
        extra_compile_args=FLAGS,
        extra_link_args=[*LINK],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_25_API_VERSION")],
    )
    for source in sorted(Path().glob("src/*/_*.pyx"))
]

# What Cython puts into every kernel that looks into arrays, compiled once: half of the time and size of all.
SHARED = Extension(
    "dpfast._kernels._shared",
    ["src/shared/_shared.c"],
    extra_compile_args=[f"-O{LEVEL or 2}", "-g0"],
    extra_link_args=[*LINK],
)

# The linker puts all of the runtime library of `ziglang`, one object file, into each module: 1.2 MB of a wheel. Kernels
# call these parts of it: probes of the stack, divisions of 128 bits, copies of memory.
PARTS = ("stack_probe", "udivmod", "memcpy", "memmove")
WHOLE_RUNTIME = ("_blocks", "_grid", "_scores", "_series")  # call other parts: doubles of 128-bit integers, sines


def windows_processor(compiler):
    """Compile what chooses loops for AVX2 and AVX-512 at the first call, and return the object file."""
    made = Path("build/windows/processor.obj").absolute()
    made.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([*compiler, "-O2", "-g0", "-c", "src/shared/processor.c", "-o", str(made)], check=True)
    return str(made)


def windows_runtime(zig, options):
    """Compile the parts of the runtime library of `ziglang` that kernels call, and return the object file."""
    described = subprocess.run([*zig, "env"], capture_output=True, text=True, check=True).stdout
    library = Path(re.search(r'lib_dir"?\s*[=:]\s*"([^"]*)"', described)[1].replace("\\\\", "/"))
    folder = Path("build/windows").absolute()
    shutil.copytree(library / "compiler_rt", folder / "compiler_rt", dirs_exist_ok=True)
    imported = re.compile(r'_ = @import\("compiler_rt/(\w+)\.zig"\);')
    root = imported.sub(
        lambda found: found[0] if found[1] in PARTS else "{}", (library / "compiler_rt.zig").read_text("utf-8")
    )
    (folder / "compiler_rt.zig").write_text(root, "utf-8")
    made = folder / "runtime.obj"
    command = [*zig, "build-obj", *options, "-O", "ReleaseFast", "-fstrip", "-fno-compiler-rt"]
    subprocess.run([*command, f"-femit-bin={made}", str(folder / "compiler_rt.zig")], check=True)
    return str(made)


def recorded(path, *settings):
    """Write into a file what decides how others are made, if that changed: they are older than it then."""
    text = repr(settings)
    if not path.exists() or path.read_text("utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return str(path)


class BuildKernels(build_ext):
    """Makes C of the kernels, in a process for each processor, and compiles it. Says what to install where no compiler
    is found. On Windows it is the clang of the package `ziglang`: Microsoft's own has no integers of 128 bits.
    """

    def finalize_options(self):
        if self.editable_mode:  # setuptools names a temporary folder
            ordinary = build(self.distribution)
            ordinary.ensure_finalized()
            self.build_lib = ordinary.build_lib
        super().finalize_options()

    def make_c(self):
        """Make what is older than its sources. Alone, cythonize would make all again in each environment of pip: it
        goes by the dates of NumPy's declarations, too.
        """
        settings = recorded(GENERATED / "settings", DIRECTIVES, cython_version)
        changed = []
        for extension in self.extensions:
            made = str(GENERATED / Path(extension.sources[0]).with_suffix(".c"))
            if newer_group([settings, *extension.sources, *extension.depends], made, missing="ignore"):
                changed.append(copy(extension))
            extension.sources = [made]
        if changed:
            cythonize(
                changed,
                force=True,
                nthreads=min(os.cpu_count() or 1, len(changed)),  # Windows allows 61
                shared_utility_qualified_name=SHARED.name,
                include_path=[".", "src/shared"],  # where the .pxd files of kernels and of headers are
                compiler_directives=DIRECTIVES,
                build_dir=str(GENERATED),
                annotate=False,
            )

    def run(self):
        compiler = shlex.split(os.environ.get("CC") or get_config_var("CC") or "cc")[0]
        if os.name == "nt":
            if find_spec("ziglang") is None:
                sys.exit("dpfast is compiled by the package ziglang: pip install ziglang, or install a wheel of dpfast")
            # The target names no processor: without it the kernels would be for that of the builder alone.
            zig = [Path(sys.executable).as_posix(), "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu"]
            os.environ["CC"] = shlex.join(zig)
        elif shutil.which(compiler) is None:
            sys.exit(
                f"dpfast needs a C compiler, and there is no {compiler!r}: install one (apt install gcc, dnf install "
                "gcc, apk add gcc musl-dev, xcode-select --install), or a wheel: pip install --only-binary=dpfast "
                "dpfast"
            )
        if WINDOWS:
            command = shlex.split(os.environ.get("CC") or get_config_var("CC"))
            place = command.index("cc")
            processor, runtime = windows_processor(command), windows_runtime(command[:place], command[place + 1 :])
            for extension in self.extensions:
                extension.extra_objects = [processor]
                if extension.name.rpartition(".")[2] not in WHOLE_RUNTIME:
                    extension.extra_objects.append(runtime)
                    extension.extra_link_args.append("-rtlib=none")
        self.make_c()
        named = [os.environ.get(name) for name in ("CC", "CFLAGS", "LDFLAGS", "LDSHARED")]
        settings = recorded(Path(f"{self.build_lib}.settings"), DEBUG, FLAGS, LINK, named)
        for extension in self.extensions:
            extension.depends.append(settings)
        super().run()


class BuildWheel(bdist_wheel):
    """Sets the modes of the files in a wheel, which setuptools takes from the builder's umask."""

    def write_wheelfile(self, *arguments):
        super().write_wheelfile(*arguments)  # the last file before all are packed
        for path in Path(self.bdist_dir).rglob("*"):
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


if __name__ == "__main__":  # where processes are not forked, those that make C import this file
    setup(
        ext_modules=[*KERNELS, SHARED],
        cmdclass={"build_ext": BuildKernels, "bdist_wheel": BuildWheel},
        options={"build_ext": {"parallel": os.cpu_count()} | ({"compiler": "mingw32"} if os.name == "nt" else {})},
    )
