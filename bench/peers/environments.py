"""Environments of the peers: one folder with a virtual environment for each, of the pins beside this module."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

HERE = Path(__file__).resolve().parent
# The worker of each peer, which names its pins and its environment too, and the name in the tables.
PEERS = {
    "opendp": "OpenDP",
    "diffprivlib": "diffprivlib",
    "pydp": "python-dp",
    "pure_ldp": "pure-ldp",
    "multi_freq": "multi-freq-ldpy",
    "dp_accounting": "dp-accounting",
}


class PeerError(Exception):
    """A worker failed; the text is the end of what it printed."""


@dataclass(frozen=True)
class Environments:
    """A folder of virtual environments; None: no peer is run."""

    folder: Path | None

    def create(self):
        """Make what is missing, with pip."""
        for worker in PEERS:
            if self.python(worker) is None:
                home = self.folder / worker
                subprocess.run([sys.executable, "-m", "venv", home], check=True)
                pins = HERE / "pins" / f"{worker}.txt"
                subprocess.run([home / "bin" / "python", "-m", "pip", "install", "-q", "-r", pins], check=True)

    def python(self, worker):
        """The interpreter of a peer; None if it is not there."""
        if self.folder is None:
            return None
        found = self.folder / worker / "bin" / "python"
        return found if found.exists() else None

    def absent(self):
        return [name for worker, name in PEERS.items() if self.python(worker) is None]

    def run(self, worker, job, public, datasets, *, rounds, seconds):
        """Releases, shape (data sets, rounds, ...), seconds of one release, and the version of the peer."""
        with TemporaryDirectory() as folder:
            stored, released = Path(folder) / "data.npz", Path(folder) / "releases.npy"
            np.savez(stored, **{f"{d}_{i}": x for d, arrays in enumerate(datasets) for i, x in enumerate(arrays)})
            request = {
                "job": job,
                "public": public,
                "data": str(stored),
                "datasets": len(datasets),
                "arrays": len(datasets[0]),
                "releases": str(released),
                "rounds": rounds,
                "seconds": seconds,
            }
            script = HERE / "workers" / f"{worker}_jobs.py"
            done = subprocess.run(
                [self.python(worker), script], input=json.dumps(request), capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise PeerError(f"{worker}, {job}: {done.stderr.strip()[-400:]}")
            answer = json.loads(done.stdout.strip().splitlines()[-1])
            return np.load(released), answer["seconds"], answer["version"]
