"""Systems without a compiler, in which wheels run: Debian's by debootstrap, and one of musl and Python alone.

They need root's rights and some Debian, whose mirror they use.
"""

import os
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path

from assurance.wheels.build import PROJECT, ROOT, Target, requirements

KEY = "signed-by=/usr/share/keyrings/debian-archive-keyring.gpg"
COMPILERS = ("cc", "gcc", "clang", "tcc", "c++", "g++", "ld", "as", "zig")
MODULES_LEFT_OUT = (
    "_tkinter _curses _curses_panel readline _ssl _hashlib _sqlite3 _dbm _gdbm nis ossaudiodev _uuid _bz2 _lzma "
    "_crypt spwd"
)


def sh(script: str, cwd: Path | None = None, **environment: str) -> None:
    subprocess.run(["bash", "-euc", script], cwd=cwd, env={**os.environ, **environment}, check=True)


def mirror() -> str:
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    found = subprocess.check_output(command, text=True).split()
    return next(uri for uri in sorted(found) if uri.endswith("/debian/"))


def debian_sources(folder: Path, *packages: str) -> None:
    """Unpack the upstream sources of packages, each as NAME/RELEASE, without Debian's patches."""
    apt = folder / "apt"
    for part in ("lists/partial", "archives/partial", "sources.list.d", "preferences.d"):
        (apt / part).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    releases = sorted({package.partition("/")[2] for package in packages})
    (apt / "sources.list").write_text("".join(f"deb-src [{KEY}] {mirror()} {release} main\n" for release in releases))
    options = f"-qq -o Dir::Etc={apt} -o Dir::State={apt} -o Dir::State::status={apt}/status -o Dir::Cache={apt}"
    options += " -o APT::Sandbox::User=root -o Debug::NoLocking=1"
    sh(f"apt-get {options} update; apt-get {options} source --tar-only {' '.join(packages)}", folder)
    sh("for tar in *.orig.tar.*; do tar xf $tar; done", folder)


def debootstrap(root: Path, release: str, packages: list[str], *options: str) -> None:
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", *options, release]
    subprocess.run([*command, str(root), mirror()], check=True, stdout=subprocess.DEVNULL)


# ---- roots ----


def old_glibc(folder: Path) -> Path:
    """Debian 11 with glibc 2.31, and Python 3.11 compiled in a copy of it, at /opt/python."""
    root, workshop, sources = folder / "root", folder / "workshop", folder / "sources"
    if (root / "opt/python/bin/python3.11").exists():
        return root
    folder.mkdir(parents=True, exist_ok=True)
    debootstrap(root, "bullseye", ["libffi7", "zlib1g"])
    sh(f"cp -a {root} {workshop}")
    sources.mkdir(exist_ok=True)
    debian_sources(sources, "python3.11/bookworm")
    shutil.copytree(sources / "Python-3.11.2", workshop / "Python", symlinks=True)
    compile_python = (
        "apt-get -qq update; apt-get -qq install -y --no-install-recommends gcc libc6-dev make libffi-dev zlib1g-dev;"
        "cd /Python; ./configure -q --prefix=/opt/python --without-ensurepip --disable-test-modules OPT='-O1 -DNDEBUG';"
        "make -s -j2; make -s install"
    )
    sh(f'chroot {workshop} sh -euc "{compile_python}" >{folder}/log 2>&1; cp -a {workshop}/opt/python {root}/opt')
    return root


def arm64(root: Path) -> Path:
    """Python 3.11 of Debian 12 for arm64 and its libraries, and, to start it, a shell and qemu-user for x86-64.

    The kernel need not know that arm64 programs run under qemu: /opt/python starts it, and is `sys.executable`.
    """
    sh(f"{ROOT}/.ci/debian bookworm {root} python3 libpython3-dev libstdc++6", ARCHITECTURE="arm64")
    start(root, "cp $(command -v qemu-aarch64-static) opt")
    python = root / "opt/python"
    python.write_text('#!/bin/sh\nexec /opt/qemu-aarch64-static -0 /opt/python /usr/bin/python3.11 "$@"\n')
    python.chmod(0o755)
    return root


def start(root: Path, script: str) -> None:
    """Folders, devices and a shell, then a script in the root, for a root that no installer made."""
    for part in ("lib", "bin", "dev", "proc", "tmp", "etc", "opt"):
        (root / part).mkdir(parents=True, exist_ok=True)
    sh(
        "cp $(command -v busybox) bin/busybox; ln -sf busybox bin/sh; cp -a /dev/null /dev/zero /dev/urandom dev;"
        + script,
        root,
    )


def musl_compiler(folder: Path) -> Path:
    """musl-gcc, which also finds the headers of the kernel, and names the platform as Alpine's compiler does."""
    headers, script = folder / "kernel-headers", folder / "musl-cc"
    headers.mkdir(parents=True, exist_ok=True)
    for name in ("linux", "asm-generic", "x86_64-linux-gnu/asm"):
        link = headers / name.rpartition("/")[2]
        if not link.is_symlink():
            link.symlink_to(Path("/usr/include") / name)
    script.write_text(
        "#!/bin/sh\n"
        'case "$*" in *-print-multiarch*) echo x86_64-linux-musl; exit ;; esac\n'
        f'exec musl-gcc -idirafter "{headers}" "$@"\n'
    )
    script.chmod(0o755)
    return script


def musl_python(folder: Path) -> Path:
    """Python 3.11, zlib and libffi compiled against musl; the prefix of all of them."""
    prefix, sources = folder / "prefix", folder / "sources"
    if (prefix / "bin/python3.11").exists():
        return prefix
    sources.mkdir(parents=True, exist_ok=True)
    debian_sources(sources, "python3.11/bookworm", "zlib/bookworm", "libffi/bookworm")
    (sources / "Python-3.11.2/Modules/Setup.local").write_text(f"*disabled*\n{MODULES_LEFT_OUT}\n")
    steps = (
        ("zlib-*", f"./configure --static --prefix={prefix}", "-O2 -fPIC"),
        ("libffi-*", f"./configure --disable-shared --with-pic --prefix={prefix} --disable-docs "
         "--disable-multi-os-directory", "-O2"),
        ("Python-*", f"./configure --prefix={prefix} --without-ensurepip --disable-test-modules OPT='-O1 -DNDEBUG' "
         f"CPPFLAGS=-I{prefix}/include LDFLAGS=-L{prefix}/lib", ""),
    )  # fmt: skip
    for name, configure, flags in steps:
        [source] = sources.glob(name)
        sh(f"({configure}; make -j2; make install) >log 2>&1", source, CC=str(musl_compiler(folder)), CFLAGS=flags)
    return prefix


def musl(folder: Path, prefix: Path) -> Path:
    """A root with musl, a shell of busybox, and the prefix, at the same path: glibc is not there.

    Wheels of NumPy need musl 1.2.4 or later, which Debian 12 does not have.
    """
    root, newer = folder / "root", folder / "trixie"
    sh(f"{ROOT}/.ci/debian trixie {newer} musl")
    [loader] = newer.rglob("ld-musl-x86_64.so.1")
    start(
        root,
        f"cp -L {loader} lib; ln -sf ../lib/ld-musl-x86_64.so.1 lib/libc.musl-x86_64.so.1;"
        f"echo '{prefix}/lib:/lib' >etc/ld-musl-x86_64.path; mkdir -p {root}{prefix};"
        f"cp -au {prefix}/bin {prefix}/lib {root}{prefix}",
    )
    return root


# ---- a run ----


@dataclass(frozen=True)
class Run:
    """A root, its Python, and where the packages of the test are."""

    root: Path
    python: str

    def __post_init__(self) -> None:
        folders = [self.root / part for part in ("bin", "usr/bin", "usr/local/bin")]
        found = [path for folder in folders for name in COMPILERS if os.path.lexists(path := folder / name)]
        if found:
            raise RuntimeError(f"the root has a compiler: {found[0]}")

    def __call__(self, command: str) -> None:
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/site", "HOME": "/tmp", "LC_ALL": "C.UTF-8"}
        script = f"cd /checkout && {command.replace('python ', self.python + ' ')}"
        subprocess.run([shutil.which("chroot"), self.root, "/bin/sh", "-euc", script], env=environment, check=True)


def prepare(run: Run, folder: Path, target: Target, wheel: Path, sdist: Path, built: tuple[Path, ...] = ()) -> None:
    """The wheel, its requirements and the tests of the unpacked sdist, but not its package, in the root."""
    needs = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["test"]]
    if built:
        needs = [need for need in needs if not need.startswith("python-flint")]
    site = requirements(folder / target.name / "to-test", needs, target.version, target.platforms)
    shutil.rmtree(run.root / "site", ignore_errors=True)
    for packages in (site, *built):
        shutil.copytree(packages, run.root / "site", symlinks=True, dirs_exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(run.root / "site")
    checkout = run.root / "checkout"
    shutil.rmtree(checkout, ignore_errors=True)
    checkout.mkdir()
    for name in ("tests", "assurance"):
        shutil.copytree(sdist / name, checkout / name)
    shutil.copy(sdist / "pyproject.toml", checkout)
