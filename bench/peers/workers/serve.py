"""The loop that both sides of a comparison run, and the protocol of a worker.

A worker is a script beside this one, run by the interpreter of a peer: it imports this module and that peer, and
nothing else of the benchmarks. It reads a request from standard input, as JSON, with the name of a job, its public
numbers, a file of data sets and a file for the releases; each job is a function of the public numbers that returns a
function from the records of one data set to a release.
"""

import json
import sys
import time
import warnings

import numpy as np


def collect(release, datasets, *, rounds, seconds):
    """Releases of all data sets by rounds, until the time is over, shape (data sets, rounds, ...), and seconds of one.

    The time of one release is the median over rounds, so that a pause of the machine does not count.
    """
    found, times, end = [], [], time.perf_counter() + seconds
    while len(found) < rounds and (not found or time.perf_counter() + times[-1] < end):
        start = time.perf_counter()
        found.append([release(*arrays) for arrays in datasets])
        times.append(time.perf_counter() - start)
    return np.moveaxis(np.asarray(found, float), 0, 1), float(np.median(times)) / len(datasets)


def main(jobs, version):
    request = json.load(sys.stdin)
    warnings.simplefilter("ignore")
    stored = np.load(request["data"])
    arrays = [[stored[f"{d}_{i}"] for i in range(request["arrays"])] for d in range(request["datasets"])]
    release = jobs[request["job"]](**request["public"])
    releases, seconds = collect(release, arrays, rounds=request["rounds"], seconds=request["seconds"])
    np.save(request["releases"], releases)
    json.dump({"seconds": seconds, "version": version}, sys.stdout)
