"""T37: The recorded table of outcomes on this machine, and that its comparison finds a difference."""

import copy
import functools
import os
import platform
import re
import shutil
import subprocess
import sys

import pytest

from assurance.headers import INCLUDE
from assurance.platforms import cross, limited, lock, macos, outcomes, table
from assurance.platforms.builds import ROOT
from tests.cases import every


@pytest.fixture(scope="module")
def here():
    return table.run()


def test_outcomes_are_those_recorded(here):
    recorded = table.read()
    assert table.differing(here, recorded) == []
    assert len(recorded) >= 500
    assert sum(isinstance(entry, str) for entry in recorded.values()) >= 500


def test_a_changed_entry_is_found(here):
    recorded = table.read()
    changed = copy.copy(recorded)
    exact = "release: GlobalSensitivity mean replace-one 1"
    near = "law: GlobalSensitivity mean replace-one 1"
    changed[exact] = f"{int(changed[exact], 16) ^ 1:032x}"
    changed[near] = [(float.fromhex(changed[near][0]) * (1 + 1e-9)).hex(), *changed[near][1:]]
    del changed["doubles: logs"]
    changed["another"] = "0"
    assert set(table.differing(here, changed)) == {exact, near, "doubles: logs", "another"}


def test_another_seed_or_record_is_another_outcome(here, monkeypatch):
    names = ["release: GlobalSensitivity mean replace-one 1", "noise: rounded Gaussian 3.5"]
    names += ["state: GlobalSensitivity mean replace-one 1"]
    calls = outcomes.outcomes()
    monkeypatch.setattr(outcomes, "PCG64", lambda seed: outcomes.np.random.PCG64(seed + 1))
    changed = table.run({name: calls[name] for name in names})
    assert [changed[name] == here[name] for name in names] == [False, False, True]
    record = outcomes.records(seed=2)
    record[0] += 1
    monkeypatch.setattr(outcomes, "records", lambda seed: record)
    assert table.run({names[2]: calls[names[2]]})[names[2]] != here[names[2]]


def test_near_entries_are_equal_within_the_tolerance_only():
    close = functools.partial(table.close, "law: any")
    assert close([(1.0).hex()], [(1 + 2.0**-40).hex()])
    assert close([(-0.0).hex(), "nan", "-inf"], [(0.0).hex(), "nan", "-inf"])
    for other in ((1 + 2.0**-30).hex(), "inf", "nan"):
        assert not close([(1.0).hex()], [other])
    assert not close(["inf"], ["-inf"])
    assert not close([(1.0).hex()], "0")
    assert not close("0", "1")


@every("name", lock.CONTROLS | lock.IDENTITIES)
def test_a_control_of_the_lock_changes_its_header(name):
    old, new = (lock.CONTROLS | lock.IDENTITIES)[name]
    assert new in lock.changed(old, new)
    with pytest.raises(LookupError, match="not once"):
        lock.changed("no such text", "")


@pytest.mark.parametrize(("number", "most", "kept"), [(3, 5, [0, 1, 2]), (7, 3, [0, 2, 4]), (4, 1, [0]), (0, 2, [])])
def test_tests_under_emulation_are_spread_over_a_file(number, most, kept):
    assert limited.spread(list(range(number)), most) == kept


@every(
    "names, most, kept",
    [
        ("aaaabc", 6, [0, 1, 2, 3, 4, 5]),
        ("aaaabc", 5, [0, 1, 2, 4, 5]),
        ("aaaabc", 3, [0, 4, 5]),
        ("aaaabc", 2, [0, 4]),
        ("abab", 3, [0, 1, 2]),
        ("", 2, []),
    ],
)
def test_functions_go_before_further_cases_of_one(names, most, kept):
    tests = [*enumerate(names)]
    assert [place for place, _ in limited.broad(tests, most, lambda test: test[1])] == kept


def test_a_part_has_every_third_file(tmp_path):
    for name in "abcd":
        (tmp_path / f"test_{name}.py").write_text("def test(): pass\n")
    command = ["-m", "pytest", "-p", "assurance.platforms.limited", "-v", "--part", "6/3", str(tmp_path)]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
    assert re.findall(r"test_(.)\.py::test PASSED", done.stdout) == ["a", "d"], done.stdout


@pytest.mark.host
@every(
    "platform, allowed",
    [("macosx-14.0-arm64", ""), ("win-amd64", ""), ("linux-ppc64le", ""), ("linux-x86_64", ""), ("linux-ppc64le", "1")],
)
def test_setup_refuses_platforms_that_nobody_verified(platform, allowed):
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools")
    environment = os.environ | {"_PYTHON_HOST_PLATFORM": platform, "DPFAST_UNVERIFIED": allowed}
    command = [sys.executable, "setup.py", "--version"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if allowed or platform == "linux-x86_64":
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 1
        assert f"not verified on {platform}, only on linux-aarch64, linux-x86_64" in done.stderr


# Of threads that are alive at the same time; elsewhere with a thread pointer that reads 0, as on macOS on arm64.
THREADS = """
#define _GNU_SOURCE
#include <stdio.h>
#ifdef OTHER
#undef __linux__
#define __APPLE__
#define __builtin_thread_pointer() ((void *)0)
#endif
#include "secure.h"
static pthread_barrier_t all;
static uint64_t seen[4];
static void *record(void *place) { *(uint64_t *)place = secure_thread(); pthread_barrier_wait(&all); return place; }
int main(void) {
    pthread_t threads[4];
    pthread_barrier_init(&all, NULL, 4);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, record, &seen[i]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) printf("%lu\\n", (unsigned long)seen[i]);
    return secure_watch_forks();
}
"""


@pytest.mark.parametrize("options", [[], ["-DOTHER"]], ids=["here", "elsewhere"])
def test_threads_have_different_identities(tmp_path, options):
    """Not 0, which is no thread, where the register of the processor reads 0 in all threads, too."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    (tmp_path / "threads.c").write_text(THREADS)
    program = tmp_path / "threads"
    command = ["gcc", "-pthread", *options, *INCLUDE, "-o", program, tmp_path / "threads.c"]
    subprocess.run(command, check=True)
    seen = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    assert len(set(seen)) == 4
    assert "0" not in seen


def test_systems_without_a_verified_identity_of_threads_are_refused(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    (tmp_path / "other.c").write_text('#include <stdint.h>\n#undef __linux__\n#include "secure.h"\n')
    command = ["gcc", "-fsyntax-only", *INCLUDE, tmp_path / "other.c"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "no verified identity of threads on this system" in done.stderr


# What Windows' builds find of the processor, next to what gcc finds.
PROCESSOR = """
#include <stdio.h>
#define __cpu_model own_model
#define __cpu_features2 own_features2
#define __cpu_indicator_init own_init
#include "processor.c"
#define SAME(feature, bit) (!(own_model.features[0] >> bit & 1) == !__builtin_cpu_supports(feature))
int main(void) {
    __builtin_cpu_init();
    printf("%x", own_model.features[0]);
    return !(SAME("popcnt", POPCNT) && SAME("avx2", AVX2) && SAME("avx512f", AVX512F));
}
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="of x86-64")
def test_features_of_the_processor_are_those_that_gcc_finds(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    (tmp_path / "features.c").write_text(PROCESSOR)
    program = tmp_path / "features"
    subprocess.run(["gcc", *INCLUDE, "-o", program, tmp_path / "features.c"], check=True)
    assert subprocess.run([program]).returncode == 0


def test_a_wheel_is_as_large_as_the_modules_of_its_target(tmp_path):
    target = cross.Target("any", "any", ".there.pyd", ())
    (tmp_path / "dpfast").mkdir()
    for name in ("_one.there.pyd", "_one.here.so", "one.c"):
        (tmp_path / "dpfast" / name).write_bytes(os.urandom(10_000))
    assert 10_000 < cross.wheel_size(tmp_path, target) < 11_000


@pytest.mark.host
def test_a_missing_compiler_is_named(tmp_path):
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools")
    command = [sys.executable, "setup.py", "-q", "build_ext", "--build-temp", tmp_path, "--build-lib", tmp_path]
    environment = os.environ | {"CC": "no-such-compiler -O2"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "dpfast needs a C compiler, and there is no 'no-such-compiler'" in done.stderr


@pytest.mark.parametrize(("fault", "found"), [("", ""), ("unlocked", "charges in the file, at least")])
def test_a_ledger_of_several_processes(tmp_path, fault, found):
    """Spawned, not forked, and one of them killed; without the lock, charges are lost."""
    command = [sys.executable, "-m", "assurance.platforms.shared_ledger", tmp_path, fault]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == bool(fault), done.stdout + done.stderr
    assert found in done.stdout or "damaged" in done.stdout or "not a ledger" in done.stdout
    assert "TypeError" not in done.stdout  # the fault is found, not a mistake in it


@every(
    "code, reads",
    [
        ("       4: 40 d0 3b d5   mrs     x0, TPIDR_EL0", True),
        ("       4: 60 d0 3b d5   mrs     x0, TPIDRRO_EL0", True),
        ("       0: 64 48 8b 04 25 00 00 00 00    movq    %fs:0, %rax", True),
        ("       0: 65 48 8b 00                   movq    %gs:(%rax), %rax", True),
        ("       8: 00 00 00 94   bl      _pthread_self", False),
        ("       0: 48 8b 04 25 00 00 00 00       movq    8(%rsi), %rax", False),
    ],
)
def test_reads_of_the_register_of_the_thread_are_noticed(code, reads):
    assert (macos.REGISTERS.search(code) is not None) == reads
