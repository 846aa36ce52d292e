"""A disk that is full: a small file system in memory if it can be mounted, and a limit on the size of files."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dpfast as dpf
from assurance.endurance.check import Check, Noted
from assurance.endurance.ledgers import MEDIAN, RECORDS, charges_in
from assurance.endurance.streams import replace
from dpfast.streaming import State

PAGES = 16  # of 4096 bytes


class Disk(Check):
    """Writes to a full disk raise an OSError; no charge and no saved state is lost, and no record is read uncharged."""

    faults = ("a ledger that ignores errors of the disk", "a state that is written over the one before")

    def __init__(self, folder: Path, seed: int = 0, fault: str | None = None) -> None:
        super().__init__(folder, seed, fault)
        self._small = folder / "small"
        self._small.mkdir(exist_ok=True)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={4 * PAGES}k", "none", str(self._small)]
        self.mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0

    def close(self) -> None:
        if self.mounted:
            subprocess.run(["umount", str(self._small)], check=True)
            self.mounted = False

    def step(self) -> None:
        small = self.mounted and self.random.random() < 0.5
        folder = self._small if small else self.folder
        path, state = folder / "ledger", folder / "state"
        nearly = (
            self._filled(folder, self.random.randint(1, 4)) if small else self._limited(self.random.randint(0, 3000))
        )
        with nearly:
            self._charge(path)
        self._charge_again(path)
        self._save(state, folder, small)
        path.unlink()
        state.unlink()
        self.counts["full file systems" if small else "files at their limit"] += 1

    @contextmanager
    def _filled(self, folder: Path, pages: int) -> Iterator[None]:
        """Leave this many free pages of the small file system within the block."""
        filler = folder / "filler"
        free = os.statvfs(folder).f_bavail
        filler.write_bytes(bytes(4096 * (free - pages)))
        try:
            yield
        finally:
            filler.unlink()

    @contextmanager
    def _limited(self, size: int) -> Iterator[None]:
        """Let no file grow beyond this size within the block; the last write may be cut at any byte."""
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    @contextmanager
    def _without_errors(self) -> Iterator[None]:
        """A fault: writes that fail seem to succeed."""
        write = os.write

        def ignoring(file: int, data: bytes) -> int:
            try:
                return write(file, data)
            except OSError:
                return len(data)

        os.write = ignoring
        try:
            yield
        finally:
            os.write = write

    def _charge(self, path: Path) -> None:
        """Release until the disk is full, and some times more."""
        self._read, failed, done = 0, 0, 0

        def note() -> None:
            self._read += 1

        ledger = None
        while failed < 4 and done < 1000:
            try:
                if self.fault == "a ledger that ignores errors of the disk":
                    with self._without_errors():
                        ledger = ledger or dpf.Ledger(1000.0, path=path)
                        ledger.release(MEDIAN, Noted(RECORDS, note))
                else:
                    ledger = ledger or dpf.Ledger(1000.0, path=path)
                    ledger.release(MEDIAN, Noted(RECORDS, note))
                done += 1
            except OSError:
                failed += 1
            except ValueError as error:
                self.require(False, f"a ledger on a full disk is damaged: {error}")
            charged = len(charges_in(path)) if path.exists() else 0
            self.require(done == self._read <= charged, f"{self._read} releases on a full disk, {charged} charged")
            self.require(charged <= done + failed, f"{charged} charges on a full disk, {done + failed} calls")
        self.require(failed > 0, "the disk was not full")
        self.counts["releases"] += done
        self.counts["refused writes"] += failed

    def _charge_again(self, path: Path) -> None:
        """After space was made: the ledger goes on, with all its charges."""
        before = len(charges_in(path)) if path.exists() else 0
        ledger = dpf.Ledger(1000.0, path=path)
        ledger.release(MEDIAN, RECORDS)
        self.require(len(charges_in(path)) == len(ledger.charges) == before + 1, "a ledger does not go on after space")

    def _save(self, path: Path, folder: Path, small: bool) -> None:
        """A state is saved, grows, and does not fit: the one before remains and can be continued."""
        state = MEDIAN.start()
        state.update(RECORDS)
        saved = state.to_bytes()
        replace(path, saved)
        state.update(RECORDS)
        try:
            with self._filled(folder, 0) if small else self._limited(16):
                if self.fault == "a state that is written over the one before":
                    path.write_bytes(state.to_bytes())
                else:
                    replace(path, state.to_bytes())
        except OSError:
            self.counts["refused states"] += 1
        else:
            self.require(False, "a state was saved on a full disk without an error")
        finally:
            path.with_name(f"{path.name}.part").unlink(missing_ok=True)
        self.require(path.read_bytes() == saved, "a saved state was lost on a full disk")
        self.require(State.from_bytes(saved, MEDIAN).n == len(RECORDS), "a saved state cannot be read")
