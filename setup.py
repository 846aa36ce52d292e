"""Build the kernels: every ``src/x/_x.pyx`` becomes the module ``dpfast._kernels._x``.

A kernel sees the headers of its own folder and those of ``src/shared``.

``DPFAST_DEBUG=1`` builds with checks of bounds and initialisation into a directory of its own;
``DPFAST_OPTIMIZE=1`` compiles with ``-O1`` instead of ``-O3`` (`assurance.platforms`), and any other level alike;
``CFLAGS`` adds to the compiler's flags (``.ci/run nightly`` uses it for the sanitizers).

``DPFAST_UNVERIFIED=1`` builds on a platform whose builds nobody verified, for those who port dpfast to it.
"""

import os
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from sysconfig import get_config_var, get_platform

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

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

SHARED_HEADERS = [*Path().glob("src/shared/*.[hp]*"), *Path().glob("dpfast/_kernels/*.pxd")]

KERNELS = [
    Extension(
        f"dpfast._kernels.{source.stem}",
        [str(source)],
        include_dirs=[str(source.parent), "src/shared", np.get_include()],
        libraries=[] if WINDOWS else ["m"],
        depends=sorted(map(str, [*source.parent.glob("*.h"), *SHARED_HEADERS])),
        extra_compile_args=FLAGS,
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_25_API_VERSION")],
    )
    for source in sorted(Path().glob("src/*/_*.pyx"))
]

# What Cython puts into every kernel that looks into arrays, compiled once: half of the time and size of all.
SHARED = Extension("dpfast._kernels._shared", ["src/shared/_shared.c"], extra_compile_args=[f"-O{LEVEL or 2}", "-g0"])


class BuildKernels(build_ext):
    """Says what to install where no compiler is found. On Windows it is the clang of the package `ziglang`: Microsoft's
    own has no integers of 128 bits.
    """

    def run(self):
        compiler = shlex.split(os.environ.get("CC") or get_config_var("CC") or "cc")[0]
        if os.name == "nt":
            if find_spec("ziglang") is None:
                sys.exit("dpfast is compiled by the package ziglang: pip install ziglang, or install a wheel of dpfast")
            os.environ["CC"] = shlex.join([Path(sys.executable).as_posix(), "-m", "ziglang", "cc"])
        elif shutil.which(compiler) is None:
            sys.exit(
                f"dpfast needs a C compiler, and there is no {compiler!r}: install one (apt install gcc, dnf install "
                "gcc, apk add gcc musl-dev, xcode-select --install), or a wheel: pip install --only-binary=dpfast "
                "dpfast"
            )
        super().run()


setup(
    ext_modules=cythonize(
        [*KERNELS, SHARED],
        shared_utility_qualified_name=SHARED.name,
        include_path=[".", "src/shared"],  # where the .pxd files of kernels and of headers are
        compiler_directives=DIRECTIVES,
        build_dir="build/cython-debug" if DEBUG else "build/cython",
        annotate=False,
    ),
    cmdclass={"build_ext": BuildKernels},
    options={"build_ext": {"parallel": os.cpu_count()} | ({"compiler": "mingw32"} if os.name == "nt" else {})},
)
