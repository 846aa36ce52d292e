"""Files of a release: their bytes depend on their content alone, and kernels need little of libm."""

import base64
import hashlib
import io
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from assurance.wheels import build

ROOT = Path(__file__).parents[2]
# Functions of libm with exact results, on which all libm agree; and the files that call others, to choose candidates
# that certified comparisons then test, widths of windows, and points of a released curve. More would tie releases to
# one libm, and exp, log, pow and hypot would also tie wheels to a new glibc.
EXACT = {"ceil", "fabs", "floor", "fmax", "fmin", "frexp", "ilogb", "ldexp", "nextafter", "sqrt"}
ELSEWHERE = {"cbrt": {"draws.h"}, "tan": {"draws.h"}, "cos": {"series.h"}, "sin": {"series.h"}}
INEXACT = """
acos acosh asin asinh atan atan2 atanh cosh erf erfc exp exp2 expm1 fmod hypot lgamma log log10 log1p log2 pow remainder
sinh tanh tgamma
"""
LIBM = EXACT | set(ELSEWHERE) | set(INEXACT.split())


def calls_of_libm(text):
    code = re.sub(r'/\*.*?\*/|//[^\n]*|#[^\n]*|""".*?"""', "", text, flags=re.DOTALL)
    return {name for name in re.findall(r"(?<![\w.])(\w+)\(", code) if name in LIBM}


def test_kernels_call_exact_functions_of_libm_only():
    sources = sorted((ROOT / "src").glob("*/*.[hp]*"))
    others = {(path.name, name) for path in sources for name in calls_of_libm(path.read_text()) - EXACT}
    assert {(file, name) for file, name in others if file not in ELSEWHERE.get(name, ())} == set()
    assert len(sources) > 70


def test_a_call_of_libm_is_found():
    assert calls_of_libm("/* exp(x) */ y = dpfast_exp(x) + fits_log(2) * pow(x, 3); // log(x)") == {"pow"}


FILES = {"a/b.py": b"a = 1\n", "dpfast/k.so": b"\x7fELF", "dpfast-0.1.0.dist-info/METADATA": b"Name: dpfast\n"}
ABOUT = {"dpfast-0.1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: cp311-cp311-linux_x86_64\n"}
RECORD = "dpfast-0.1.0.dist-info/RECORD"


@pytest.fixture(autouse=True)
def a_date(monkeypatch):
    """Sources may be tested without their repository."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


def made_wheel(folder, files, date, mode, order):
    folder.mkdir()
    path = folder / "dpfast-0.1.0-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted([*files, RECORD], reverse=order):
            info = zipfile.ZipInfo(name, date)
            info.external_attr = mode << 16
            archive.writestr(info, files.get(name, b"stale"))
    return build.finish(path, "manylinux_2_17_x86_64", b"{}\n", folder)


def two_wheels(tmp_path, second):
    first = made_wheel(tmp_path / "1", FILES | ABOUT, (2020, 1, 1, 0, 0, 0), 0o100644, False)
    return first, made_wheel(tmp_path / "2", second, (2021, 2, 3, 4, 5, 6), 0o100600, True)


def test_bytes_of_a_wheel_do_not_depend_on_dates_modes_and_order(tmp_path):
    first, second = two_wheels(tmp_path, FILES | ABOUT)
    assert first.name == "dpfast-0.1.0-cp311-cp311-manylinux_2_17_x86_64.whl"
    assert build.sha256(first) == build.sha256(second)


def test_bytes_of_a_wheel_depend_on_each_file(tmp_path):
    first, second = two_wheels(tmp_path, FILES | ABOUT | {"a/b.py": b"a = 2\n"})
    assert build.sha256(first) != build.sha256(second)


def test_the_record_of_a_wheel_lists_each_file_with_its_hash(tmp_path):
    path, _ = two_wheels(tmp_path, FILES | ABOUT)
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    rows = dict(row.split(",", 1) for row in contents[RECORD].decode().splitlines())
    assert rows.pop(RECORD) == ","
    del contents[RECORD]
    for name, data in contents.items():
        text = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        assert rows.pop(name) == f"sha256={text},{len(data)}"
    assert rows == {}
    assert b"Tag: cp311-cp311-manylinux_2_17_x86_64" in contents["dpfast-0.1.0.dist-info/WHEEL"]
    assert contents["dpfast-0.1.0.dist-info/sboms/dpfast.cdx.json"] == b"{}\n"


@pytest.mark.host
def test_modes_in_a_wheel_of_setuptools_do_not_depend_on_the_umask(tmp_path):
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools.command.bdist_wheel")
    made = tmp_path / "made" / "dpfast" / "_kernels"  # in the place of compiled files
    made.mkdir(parents=True)
    for path, mode in ((made.parent / "a.py", 0o600), (made / "k.so", 0o700)):
        path.touch(mode)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "setup.cfg").write_text("[build]\nbuild_lib = made\n")
    command = [sys.executable, "setup.py", "-q", "bdist_wheel", "--skip-build", "--dist-dir", "out"]
    subprocess.run(command, cwd=tmp_path, umask=0o077, check=True)
    [wheel] = (tmp_path / "out").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
    assert modes.pop("dpfast/_kernels/k.so") == 0o100755
    assert modes.pop(RECORD) == 0o100664  # by setuptools itself
    assert len(modes) > 4
    assert set(modes.values()) == {0o100644}


@pytest.mark.host
def test_metadata_need_no_c(tmp_path):
    """pip asks for them two or three times for each installation."""
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools.command.bdist_wheel")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    subprocess.run([sys.executable, "setup.py", "-q", "egg_info"], cwd=tmp_path, check=True)
    assert (tmp_path / "dpfast.egg-info" / "SOURCES.txt").exists()
    assert not (tmp_path / "build").exists()


def made_sdist(path, mode, owner, date, order):
    with tarfile.open(path, "w:gz") as archive:
        for name, data in sorted({"d/.ci/run": b"run", "d/a.py": b"a"}.items(), reverse=order):
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.uname, member.mtime = len(data), mode, owner, date
            archive.addfile(member, io.BytesIO(data))
    return build.same_tar(path, {".ci/run"}, 1_700_000_000)


def test_bytes_of_an_sdist_do_not_depend_on_dates_modes_and_owners(tmp_path):
    one = made_sdist(tmp_path / "one.tar.gz", 0o644, "a", 1.5, False)
    two = made_sdist(tmp_path / "two.tar.gz", 0o700, "b", 7, True)
    assert one == two
    assert (tmp_path / "one.tar.gz").read_bytes() != (tmp_path / "two.tar.gz").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(one)) as archive:
        assert {member.name: (member.mode, member.mtime) for member in archive} == {
            "d/.ci/run": (0o755, 1_700_000_000),
            "d/a.py": (0o644, 1_700_000_000),
        }
