"""The C level: compiling and running another package's Cython module, and user functions given as pointers."""

import ctypes
import ctypes.util
import importlib.util
import math
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.random import PCG64
from scipy import LowLevelCallable

import dpfast as dpf
from dpfast._kernels import _balls, _choice, _levels, _samplers, _select
from dpfast.statistics import Median
from tests.scripted import ScriptedBits

ROOT = Path(__file__).parents[2]
COMPILER = shutil.which("cc") or shutil.which("gcc")


@pytest.fixture(scope="module")
def extension(tmp_path_factory):
    """examples/extension.pyx, compiled away from the sources against the package that the tests import."""
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools")
    if COMPILER is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("downstream")
    shutil.copy(ROOT / "examples" / "extension.pyx", folder)
    path = os.pathsep.join([str(Path(dpf.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path, "CFLAGS": f"-O1 -I{np.get_include()}"}
    command = [sys.executable, "-m", "Cython.Build.Cythonize", "--inplace", "--quiet", "extension.pyx"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [built] = [path for path in folder.glob("extension.*") if path.suffix in (".so", ".pyd")]
    spec = importlib.util.spec_from_file_location("extension", built)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestExtension:
    """The same words give the same draws there as here."""

    def test_noise(self, extension):
        counts, out, expected = np.arange(1000), np.empty(1000, np.int64), np.empty(1000, np.int64)
        extension.add_noise(PCG64(1), counts, 2.5, out)
        _samplers.fill_rounded_laplace(PCG64(1), 2.5, expected)
        assert (out - counts).tolist() == expected.tolist()
        assert len(set(expected.tolist())) > 10

    def test_choice(self, extension):
        scores = np.random.default_rng(2).normal(size=(50, 3000))
        scores[0, :7] = [np.nan, np.inf, np.inf, -np.inf, 0.0, -0.0, 1.0]
        out, expected, source = np.empty(50, np.int64), np.empty(1, np.int64), PCG64(3)
        extension.best_of_each(PCG64(3), scores, 1.5, out)
        for row, index in zip(scores, out, strict=True):
            _choice.fill_choice(source, row, 1.5, None, expected)
            assert index == expected[0]

    @pytest.mark.parametrize("n", [1, 2, 9, 100, 5001])
    def test_median(self, extension, n):
        x = np.random.default_rng(n).integers(-5, 110, n).astype(float)
        grid = dpf.Grid(0, 100, step=1)
        mechanism = dpf.InverseSensitivity(Median(), grid=grid, epsilon=0.7, selection="exponential")
        reach, law = min(mechanism.cap(n), Median().breakdown(n)) - 1, mechanism.law(x)
        law.depth = 0  # the C level has scores of at least 0
        for seed in range(20):
            assert extension.median_code(PCG64(seed), x, reach, 0.7, 100) == law.sample(rng=PCG64(seed))

    def test_words_that_doubles_leave_open(self, extension, monkeypatch):
        asked = []
        for name in ("floor_exponential", "choose_exponent", "choose_level"):
            exact = getattr(_balls, name)
            monkeypatch.setattr(_balls, name, lambda *a, exact=exact, name=name: (asked.append(name), exact(*a))[1])
        out, expected = np.empty(3, np.int64), np.empty(1, np.int64)
        for word in (3, 2**40, 8):  # two say too little about a logarithm, one says enough
            extension.add_noise(ScriptedBits([word], PCG64(1)), np.zeros(1, np.int64), 2.0, out[:1])
            calls = len(asked)
            _samplers.fill_rounded_laplace(ScriptedBits([word], PCG64(1)), 2.0, expected, exact=True)
            assert out[0] == expected[0]
            assert calls == {3: 1, 2**40: 2, 8: 4}[word]
        for word in (2**63 - 1, 2**63):  # on both sides of the edge between two equal scores
            extension.best_of_each(ScriptedBits([word], PCG64(1)), np.zeros((1, 2)), 1.0, out[:1])
            assert out[0] == (word >= 2**63)
        assert asked.count("choose_exponent") == 2
        point, rest = -math.expm1(-0.35), 101 * math.exp(-0.35)  # the weights of the box of one point, and of anywhere
        edge = round(point / (point + rest) * 2**64)
        for word in (edge - 2**12, edge + 2**12):
            code = extension.median_code(ScriptedBits([word], PCG64(5)), np.array([7.0]), 0, 0.7, 100)
            _levels.fill(ScriptedBits([word], PCG64(5)), np.array([7]), np.array([7]), 0.7, 100, expected, exact=True)
            assert code == expected[0]
        assert asked.count("choose_level") == 4

    def test_gaussian(self):
        """By the address in the capsule, as from Numba: the same words, and those that doubles leave open."""
        capsule = _samplers.__pyx_capi__["draw_rounded_gaussian"]
        name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
        name.restype, name.argtypes = ctypes.c_char_p, (ctypes.py_object,)
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        kind = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.py_object, ctypes.c_double)
        draw = kind(pointer(capsule, name(capsule)))
        for script, n in (([], 500), ([1, 2**63], 1), ([2**40 + 1], 1), ([2**63 - 1], 1)):
            source, expected = ScriptedBits(script, PCG64(1)), np.empty(n, np.int64)
            got = [draw(pointer(source.capsule, b"BitGenerator"), source, 12.5) for _ in range(n)]
            again = ScriptedBits(script, PCG64(1))
            _samplers.fill_rounded_gaussian(again, 12.5, expected)
            assert got == expected.tolist()
            assert source.used == again.used
            assert len(set(got)) > 10 or n == 1

    def test_documented_functions_match_the_exported_ones(self):
        exported = {name for kernel in (_choice, _levels, _samplers, _select) for name in kernel.__pyx_capi__}
        [page] = (ROOT / "docs").rglob("c-api.md")
        documented = set(re.findall(r"^\| `(\w+)\(", page.read_text(), re.MULTILINE))
        assert documented == exported


libm = ctypes.CDLL(ctypes.util.find_library("m"))
libm.tanh.restype, libm.tanh.argtypes = ctypes.c_double, (ctypes.c_double,)
libm.pow.restype, libm.pow.argtypes = ctypes.c_double, (ctypes.c_double, ctypes.c_double)
GRID = dpf.Grid(-10, 10, step=0.25)


class TestPsi:
    def test_a_function_of_c(self):
        pointer, function = (
            dpf.MEstimator(f, grid=GRID, epsilon=1.0) for f in (LowLevelCallable(libm.tanh), math.tanh)
        )
        x = np.random.default_rng(1).normal(size=500)
        for seed in range(5):
            assert pointer(x, rng=PCG64(seed)) == function(x, rng=PCG64(seed))
        assert dpf.psi.Function(LowLevelCallable(libm.tanh)).at(0.5) == math.tanh(0.5)
        assert pointer.psi == pointer.psi
        assert isinstance(hash(pointer), int)

    def test_user_data(self):
        kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_void_p)
        scaled = kind(lambda d, scale: math.tanh(d / ctypes.cast(scale, ctypes.POINTER(ctypes.c_double))[0]))
        scale = ctypes.c_double(3.0)
        psi = LowLevelCallable(scaled, ctypes.cast(ctypes.pointer(scale), ctypes.c_void_p))
        table, expected = (dpf.psi.Function(f).table(GRID) for f in (psi, lambda d: math.tanh(d / 3.0)))
        assert table.knots.tolist() == expected.knots.tolist()
        assert table.slopes.tolist() == expected.slopes.tolist()

    def test_numba(self):
        numba = pytest.importorskip("numba")
        psi = numba.cfunc("float64(float64)")(lambda d: d / (1.0 + abs(d)))
        table = dpf.psi.Function(LowLevelCallable(psi.ctypes)).table(GRID)
        assert table.knots.tolist() == dpf.psi.Function(lambda d: d / (1.0 + abs(d))).table(GRID).knots.tolist()

    @pytest.mark.parametrize("function", [libm.pow, ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(int)])
    def test_wrong_signature(self, function):
        with pytest.raises(ValueError, match=r"function must have the signature 'double \(double\)' or .* here, not '"):
            dpf.MEstimator(LowLevelCallable(function), grid=GRID, epsilon=1.0)

    @pytest.mark.parametrize("wrong", [3, (1.0, 2.0), None])
    def test_no_function(self, wrong):
        with pytest.raises(TypeError, match=r"psi must be one of dpfast\.psi or a function"):
            dpf.MEstimator(wrong, grid=GRID, epsilon=1.0)

    def test_an_invalid_psi(self):
        libm.cos.restype, libm.cos.argtypes = ctypes.c_double, (ctypes.c_double,)
        with pytest.raises(ValueError, match="psi must not decrease"):
            dpf.psi.Function(LowLevelCallable(libm.cos)).table(GRID)


C = """
#include <math.h>
#include <time.h>
struct data { double *x; int n; volatile int seen; };

/* Records to replace so that the median of x is the candidate: those between it and the middle. */
double median_score(double c, void *user_data)
{
    struct data *data = user_data;
    int below = 0, above = 0;
    for (int i = 0; i < data->n; i++) {
        below += data->x[i] < c;
        above += data->x[i] > c;
    }
    int score = below > above ? below - (data->n - 1) / 2 : above - data->n / 2;
    return c == 99.0 ? NAN : c == 98.0 ? INFINITY : score > 0 ? score : 0;
}
double distance_from_one(int d, double *row)
{
    double most = 0;
    for (int i = 0; i < d; i++)
        most = fmax(most, fabs(row[i] - 1));
    row[0] = 1e9;
    return most;
}
double waits(double c, void *user_data)
{
    struct data *data = user_data;
    struct timespec pause = {0, 1000000};
    for (int i = 0; i < 20000 && !data->seen; i++)
        nanosleep(&pause, 0);
    return data->seen ? 0 : 1;
}
"""


class Data(ctypes.Structure):
    _fields_ = (("x", ctypes.POINTER(ctypes.c_double)), ("n", ctypes.c_int), ("seen", ctypes.c_int))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("score")
    (folder / "score.c").write_text(C)
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", "score.so", "score.c", "-lm"], cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "score.so"))
    for function in (library.median_score, library.waits):
        function.restype, function.argtypes = ctypes.c_double, (ctypes.c_double, ctypes.c_void_p)
    library.distance_from_one.restype = ctypes.c_double
    library.distance_from_one.argtypes = (ctypes.c_int, ctypes.POINTER(ctypes.c_double))
    return library


class TestScore:
    X = np.random.default_rng(0).integers(0, 90, 301).astype(float)

    def data(self):
        return Data(self.X.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), len(self.X), 0)

    def test_the_same_selection_as_by_a_python_function(self, library):
        data = self.data()
        pointer = LowLevelCallable(library.median_score, ctypes.cast(ctypes.pointer(data), ctypes.c_void_p))

        def score(c):
            below, above = int((c > self.X).sum()), int((c < self.X).sum())
            return {99: math.nan, 98: math.inf}.get(c, max(below - 150 if below > above else above - 150, 0))

        for seed in range(30):
            chosen = dpf.robust.reduce(pointer, range(100), epsilon=0.5, rng=PCG64(seed))
            assert chosen == dpf.robust.reduce(score, range(100), epsilon=0.5, rng=PCG64(seed))
            assert type(chosen) is int

    def test_rows(self, library):
        rows = np.array([[5.0, 1.0], [1.0, 1.25], [1.0, 9.0]])
        chosen = dpf.robust.reduce(LowLevelCallable(library.distance_from_one), rows, epsilon=100.0, rng=PCG64(1))
        assert chosen.tolist() == [1.0, 1.25]
        assert rows[0, 0] == 5.0

    def test_other_threads_run_meanwhile(self, library):
        data = self.data()
        pointer = LowLevelCallable(library.waits, ctypes.cast(ctypes.pointer(data), ctypes.c_void_p))
        timer = threading.Timer(0.05, setattr, (data, "seen", 1))
        timer.start()
        assert dpf.robust.reduce(pointer, [0.0, 1.0], epsilon=1.0) in (0.0, 1.0)
        timer.join()
        assert library.waits(0.0, ctypes.byref(data)) == 0  # seen in time, not after 20 s

    def test_wrong_signature(self, library):
        rows = LowLevelCallable(library.distance_from_one)
        with pytest.raises(ValueError, match=r"score must have the signature 'double \(double\)'"):
            dpf.robust.reduce(rows, [1.0], epsilon=1.0)
        with pytest.raises(ValueError, match=r"score must have the signature 'double \(int, double \*\)'"):
            dpf.robust.reduce(LowLevelCallable(libm.tanh), [[1.0]], epsilon=1.0)
        with pytest.raises(ValueError, match="no function of arrays"):
            dpf.robust.reduce(rows, [[[1.0]]], epsilon=1.0)
