"""The corpora of the fuzzers keep the promises, and the controls can be made; the fuzzers run by assurance.fuzz."""

import shutil
import subprocess
import sysconfig

import numpy as np
import pytest

from assurance.fuzz import readers
from assurance.fuzz.targets import HERE, ROOT, TARGETS
from assurance.headers import FOLDERS
from dpfast.streaming import wire
from tests.cases import every

DRIVER = """
#include <stdio.h>
#include <stdint.h>
#include <stddef.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int main(int count, char **paths)
{
    static uint8_t data[65536];
    for (int i = 1; i < count; i++) {
        FILE *file = fopen(paths[i], "rb");
        const size_t size = fread(data, 1, sizeof data, file);
        fclose(file);
        LLVMFuzzerTestOneInput(data, size);
    }
    return 0;
}
"""
PYTHON = [target for target in TARGETS if target.language == "Python"]
C = [target for target in TARGETS if target.language == "C"]


def inputs(target):
    return sorted(path for path in target.corpus.iterdir())


def test_corpora_are_small():
    sizes = [path.stat().st_size for target in TARGETS for path in inputs(target)]
    assert sum(sizes) < 300_000
    assert all(inputs(target) for target in TARGETS)


@pytest.mark.parametrize("target", PYTHON, ids=lambda target: target.name)
def test_inputs_keep_the_promises(target):
    for path in inputs(target):
        readers.run(target.name, path.read_bytes())
    for data in readers.READERS[target.name].seeds():
        readers.run(target.name, data)


def test_a_fault_breaks_a_promise(monkeypatch):
    """A state whose counts lose their last one in the bytes."""
    described = wire._described

    def lossy(node, blobs):
        return described(node[:-1] if isinstance(node, np.ndarray) else node, blobs)

    monkeypatch.setattr(wire, "_described", lossy)
    seeds = list(readers.READERS["state"].seeds())
    with pytest.raises((readers.Broken, ValueError)):
        any(readers.run("state", data) for data in seeds)


@every("target", TARGETS, ids=lambda target: target.name)
def test_faults_change_the_sources_of_today(target):
    assert target.faults
    for fault in target.faults:
        assert fault.text() != (ROOT / fault.file).read_text()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
class TestC:
    """The inputs of the targets in C, by any compiler, and a fault that they find."""

    def run(self, target, folder, fault=None):
        (folder / "driver.c").write_text(DRIVER)
        if fault is not None:
            (folder / fault.file.rpartition("/")[2]).write_text(fault.text())
        places = [folder, *FOLDERS, HERE / "targets", sysconfig.get_paths()["include"], np.get_include()]
        sources = [folder / "driver.c", HERE / "targets" / f"{target.name}.c"]
        build = ["cc", "-O1", *(f"-I{place}" for place in places), *sources, "-o", folder / "run", "-lm"]
        subprocess.run(build, check=True)
        return subprocess.run([folder / "run", *inputs(target)], check=False).returncode

    @pytest.mark.parametrize("target", C, ids=lambda target: target.name)
    def test_inputs_keep_the_promises(self, target, tmp_path):
        assert self.run(target, tmp_path) == 0

    def test_a_fault_is_found(self, tmp_path):
        [csv] = [target for target in C if target.name == "csv"]
        [quote] = [fault for fault in csv.faults if fault.name == "a quote after the start of a cell"]
        assert self.run(csv, tmp_path, quote) != 0
