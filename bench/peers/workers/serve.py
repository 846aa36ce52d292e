"""The loop that both sides of a comparison run, and the protocol of a worker.

A worker is a script beside this one, run by the interpreter of a peer: it imports this module and that peer, and
nothing else of the benchmarks. It reads requests from standard input, as JSON, with names of jobs and their public
numbers, a file of data sets and a place for the releases; each job is a function of the public numbers that returns a
function from the records of one data set to a release.
"""

import json
import sys
import time
import traceback
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


def main(functions, version):
    """Answer one request a line until standard input ends; what a library prints goes to standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps({"version": version, "results": list(_results(functions, request))}), file=answers, flush=True)


def _results(functions, request):
    stored = np.load(request["data"])
    datasets = [[stored[f"{d}_{i}"] for i in range(request["arrays"])] for d in range(request["datasets"])]
    for index, (job, public) in enumerate(request["jobs"]):
        try:
            limits = {"rounds": request["rounds"], "seconds": request["seconds"]}
            releases, seconds = collect(functions[job](**public), datasets, **limits)
        except Exception:
            yield {"failure": traceback.format_exc().strip()[-400:]}
        else:
            np.save(f"{request['releases']}_{index}.npy", releases)
            yield {"seconds": seconds}
