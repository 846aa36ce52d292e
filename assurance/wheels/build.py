"""Source distributions and wheels whose bytes depend on the commit, the requirements and the compiler alone."""

import base64
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def commit_time() -> int:
    """The time of the last commit, by which all files are dated; SOURCE_DATE_EPOCH where there is no repository."""
    return int(
        os.environ.get("SOURCE_DATE_EPOCH")
        or subprocess.check_output(["git", "-C", ROOT, "log", "-1", "--format=%ct"], text=True)
    )


@dataclass(frozen=True)
class Surroundings:
    """What must not change the bytes: the folder, and what a user's shell sets."""

    folder: Path
    umask: int = 0o022
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, command: list[str], cwd: Path, **environment: str) -> None:
        home = self.folder / "home"
        home.mkdir(parents=True, exist_ok=True)
        settings = {"PATH": os.environ["PATH"], "HOME": str(home), **self.environment, **environment}
        with open(self.folder / "log", "w") as log:
            subprocess.run(command, cwd=cwd, env=settings, umask=self.umask, check=True, stdout=log, stderr=log)


def two_surroundings(folder: Path) -> tuple[Surroundings, Surroundings]:
    odd = {"TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "7", "USER": "somebody"}
    return (
        Surroundings(folder / "one", environment={"TZ": "UTC", "LC_ALL": "C", "PYTHONHASHSEED": "1"}),
        Surroundings(folder / "another one, deeper" / "two", umask=0o077, environment=odd),
    )


# ---- requirements ----


def requirements(folder: Path, names: list[str], python: str, platforms: list[str]) -> Path:
    """A folder of packages of a platform, and the wheels that they came from in `folder`/wheels."""
    site, wheels = folder / "site", folder / "wheels"
    if site.exists():
        return site
    chosen = [f"--platform={platform}" for platform in platforms] + [f"--python-version={python}"]
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "download", "--only-binary=:all:", f"--dest={wheels}", *chosen, *names], check=True)
    taken = sorted(map(str, wheels.glob("*.whl")))
    unpack = ["install", "--no-deps", "--no-index", "--no-compile", "--only-binary=:all:", f"--target={site}"]
    subprocess.run([*pip, *unpack, *chosen, *taken], check=True)
    return site


def build_requirements(folder: Path, python: str, platforms: list[str]) -> Path:
    return requirements(folder, PROJECT["build-system"]["requires"], python, platforms)


# ---- sdist ----


def tracked_files(to: Path) -> set[str]:
    """Unpack the last commit; the names of its programs."""
    with tarfile.open(fileobj=io.BytesIO(subprocess.check_output(["git", "-C", ROOT, "archive", "HEAD"]))) as archive:
        archive.extractall(to, filter="data")
        return {member.name for member in archive if member.isfile() and member.mode & 0o100}


def build_sdist(around: Surroundings, site: Path) -> Path:
    """`around.folder`/dpfast-VERSION.tar.gz: members sorted, of one date, owner and mode."""
    source, out = around.folder / "tracked", around.folder / "sdist"
    shutil.rmtree(source, ignore_errors=True)
    programs = tracked_files(source)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    build = f"from setuptools.build_meta import build_sdist; build_sdist({str(out)!r})"
    around.run([sys.executable, "-c", build], source, PYTHONPATH=str(site))
    [made] = out.glob("*.tar.gz")
    final = around.folder / made.name
    final.write_bytes(same_tar(made, programs, commit_time()))
    return final


def same_tar(path: Path, programs: set[str], date: int) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            same = tarfile.TarInfo(member.name)
            same.type, same.size, same.mtime = member.type, member.size, date
            same.mode = 0o755 if member.isdir() or member.name.partition("/")[2] in programs else 0o644
            new.addfile(same, old.extractfile(member) if member.isfile() else None)
    return gzip.compress(raw.getvalue(), 9, mtime=date)


# ---- wheels ----


@dataclass(frozen=True)
class Target:
    """A platform and how to compile for it. `python` runs the build; the rest describes the wheel."""

    name: str
    python: str
    compiler: str
    version: str = "3.11"
    machine: str = "x86_64"
    flags: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    path: tuple[str, ...] = ()  # before the requirements on PYTHONPATH

    @property
    def platforms(self) -> list[str]:
        """Platform tags of the wheels that run there."""
        if "musl" in self.name:
            return [f"musllinux_1_{minor}_{self.machine}" for minor in (2, 1)]
        return [f"manylinux_2_{minor}_{self.machine}" for minor in (28, 27, 26, 24, 17)] + [
            f"manylinux2014_{self.machine}"
        ]


def unpacked(around: Surroundings, target: Target) -> Path:
    """The sdist from which a wheel was built."""
    [source] = (around.folder / target.name / "source").iterdir()
    return source


def build_wheel(around: Surroundings, target: Target, sdist: Path, site: Path) -> Path:
    """The wheel as setuptools makes it from the unpacked sdist, without a network; `finish` makes it publishable."""
    source, out = around.folder / target.name / "source", around.folder / target.name / "built"
    shutil.rmtree(source.parent, ignore_errors=True)
    out.mkdir(parents=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(source, filter="data")
    source = unpacked(around, target)
    around.run(
        [
            "unshare",
            "--net",
            target.python,
            "-c",
            f"from setuptools.build_meta import build_wheel; build_wheel({str(out)!r})",
        ],
        source,
        SOURCE_DATE_EPOCH=str(commit_time()),
        CC=f"{target.compiler} {target.flags}".strip(),  # Python's own CFLAGS follow
        LDSHARED=f"{target.compiler} -shared -s",  # no path of this machine in the libraries, no table of symbols
        PYTHONPATH=os.pathsep.join([*target.path, str(site)]),
        PYTHONNOUSERSITE="1",
        **target.environment,
    )
    [wheel] = out.glob("*.whl")
    return wheel


def c_sources(around: Surroundings, target: Target) -> dict[str, str]:
    """The SHA-256 of each C file that was compiled, by its name in the unpacked sdist."""
    source = unpacked(around, target)
    files = [*source.glob("build/cython/src/*/*.c"), *source.glob("src/*/*.[hp]*")]
    return {str(path.relative_to(source)): sha256(path) for path in sorted(files)}


def finish(wheel: Path, platform: str, sbom: bytes, folder: Path) -> Path:
    """The wheel to publish: tagged for `platform`, with its SBOM, members sorted, of one date and mode."""
    date = time.gmtime(commit_time())[:6]
    with zipfile.ZipFile(wheel) as old:
        members = {info.filename: old.read(info) for info in old.infolist() if not info.is_dir()}
    [about] = [name.partition("/")[0] for name in members if name.endswith(".dist-info/WHEEL")]
    python = wheel.stem.split("-")[2:4]
    lines = [line for line in members[f"{about}/WHEEL"].decode().splitlines() if line and not line.startswith("Tag:")]
    members[f"{about}/WHEEL"] = "\n".join([*lines, f"Tag: {'-'.join(python)}-{platform}", ""]).encode()
    members[f"{about}/sboms/dpfast.cdx.json"] = sbom
    del members[f"{about}/RECORD"]
    record = [f"{name},sha256={digest(data)},{len(data)}" for name, data in sorted(members.items())]
    members[f"{about}/RECORD"] = "\n".join([*record, f"{about}/RECORD,,", ""]).encode()
    final = folder / f"{'-'.join(wheel.stem.split('-')[:2])}-{'-'.join(python)}-{platform}.whl"
    with zipfile.ZipFile(final, "w") as new:
        for name in sorted(members, key=lambda name: (name.startswith(about), name.endswith("/RECORD"), name)):
            info = zipfile.ZipInfo(name, date)
            info.create_system, info.compress_type = 3, zipfile.ZIP_DEFLATED
            info.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
            new.writestr(info, members[name], compresslevel=9)
    return final


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
