"""What a finished wheel or sdist must not contain, and which platforms a wheel serves."""

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from elftools.elf.elffile import ELFFile

from assurance.wheels.build import digest


def verdict(wheel: Path) -> dict:
    """What auditwheel finds: the oldest platform that the symbols allow, and the symbols."""
    command = [sys.executable, "-m", "auditwheel", "show", "--json", str(wheel)]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def _private(folder: Path) -> list[bytes]:
    return [f"{path}/".encode() for path in (folder, Path.home(), sys.prefix)]


def paths_in_tar(path: Path, folder: Path) -> list[str]:
    """Members that contain a path of this machine."""
    with tarfile.open(path) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        return [m.name for m in members if _any(_private(folder), archive.extractfile(m).read())]


def paths_in_wheel(path: Path, folder: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return [name for name in archive.namelist() if _any(_private(folder), archive.read(name))]


def _any(needles: list[bytes], data: bytes) -> bool:
    return any(needle in data for needle in needles)


def run_paths(path: Path) -> list[str]:
    """Libraries with a RPATH or RUNPATH."""
    found = []
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".so"):
                with archive.open(name) as file:
                    dynamic = ELFFile(file).get_section_by_name(".dynamic")
                    tags = {tag.entry.d_tag for tag in dynamic.iter_tags()}
                if tags & {"DT_RPATH", "DT_RUNPATH"}:
                    found.append(name)
    return found


def record_holds(path: Path) -> bool:
    """Whether RECORD lists exactly the files of the wheel, with their hashes and sizes."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        [record] = [name for name in names if name.endswith(".dist-info/RECORD")]
        rows = [row.rsplit(",", 2) for row in archive.read(record).decode().splitlines()]
        right = [[name, f"sha256={digest(archive.read(name))}", str(archive.getinfo(name).file_size)] for name in names]
    return sorted(rows) == sorted([*(row for row in right if row[0] != record), [record, "", ""]])


# ---- positive controls ----


def controls(folder: Path) -> list[tuple[str, bool]]:
    """Faulty wheels, each with whether its check rejects it."""
    work = folder / "controls"
    work.mkdir(parents=True, exist_ok=True)
    (work / "new.c").write_text("#include <math.h>\ndouble f(double x) { return exp(x); }\n")
    library = work / "new.cpython-311-x86_64-linux-gnu.so"
    command = ["gcc", "-shared", "-fPIC", "-fno-math-errno", f"-Wl,-rpath,{work}", "-o", library, work / "new.c", "-lm"]
    subprocess.run(command, check=True)
    wheel = work / "new-1-cp311-cp311-linux_x86_64.whl"
    about = "new-1.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(library, library.name)
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\n"
        )
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: new\nVersion: 1\n")
        archive.writestr(f"{about}/RECORD", f"{library.name},sha256={digest(b'')},0\n{about}/RECORD,,\n")
    return [
        ("auditwheel sees a call of exp of glibc 2.29", verdict(wheel)["overall_tag"] != "manylinux_2_17_x86_64"),
        ("a folder to search is found", run_paths(wheel) == [library.name]),
        ("a path of this machine is found", paths_in_wheel(wheel, folder) == [library.name]),
        ("a wrong RECORD is found", not record_holds(wheel)),
    ]
