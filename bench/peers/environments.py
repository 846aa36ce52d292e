"""Environments of the peers: one folder with a virtual environment for each, of the pins beside this module."""

import json
import subprocess
import sys
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
    "mbi": "OpenDP with mbi",
}


class PeerError(Exception):
    """A job of a worker failed; the text is the end of its traceback."""


class Environments:
    """A folder of virtual environments, and the workers that run in them; None: no peer is run.

    A worker starts with its first job and stops at the end of a `with` block.
    """

    def __init__(self, folder: Path | None):
        self.folder = folder
        self._workers: dict[str, subprocess.Popen] = {}

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for worker in self._workers.values():
            worker.communicate()
        self._workers.clear()

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

    def _worker(self, name):
        if name not in self._workers:
            script = HERE / "workers" / f"{name}_jobs.py"
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
            self._workers[name] = subprocess.Popen([self.python(name), script], **pipes)
        return self._workers[name]

    def run(self, worker, jobs, datasets, *, rounds, seconds):
        """Run jobs (name, public numbers) of a peer; return its version and a result for each.

        A result is a pair, releases of shape (data sets, rounds, ...) and seconds of one release, or a `PeerError`.
        """
        process = self._worker(worker)
        with TemporaryDirectory() as folder:
            stored, released = Path(folder) / "data.npz", Path(folder) / "releases"
            np.savez(stored, **{f"{d}_{i}": x for d, arrays in enumerate(datasets) for i, x in enumerate(arrays)})
            request = {
                "jobs": jobs,
                "data": str(stored),
                "datasets": len(datasets),
                "arrays": len(datasets[0]),
                "releases": str(released),
                "rounds": rounds,
                "seconds": seconds,
            }
            try:
                print(json.dumps(request), file=process.stdin, flush=True)
                answer = json.loads(process.stdout.readline())
            except (BrokenPipeError, json.JSONDecodeError):
                return "", [PeerError(f"{worker}_jobs.py stopped: run it to see why")] * len(jobs)
            return answer["version"], [
                PeerError(each["failure"])
                if "failure" in each
                else (np.load(f"{released}_{index}.npy"), each["seconds"])
                for index, each in enumerate(answer["results"])
            ]
