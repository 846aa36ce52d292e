"""The response time of the example service with many clients: ``python -m bench.service [--clients 16] [--file]``.

The service runs in a separate process on the loopback interface; clients keep their connections and request medians one
after the other. With ``--file`` every charge is on disk before the release.
"""

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import dpfast as dpf
from bench import data

ROOT = Path(__file__).parents[1]


def client(port, requests):
    """The seconds that each answer to one client takes."""
    connection, seconds = http.client.HTTPConnection("127.0.0.1", port, timeout=60), []
    for _ in range(requests):
        start = time.perf_counter()
        connection.request("POST", "/median", '{"epsilon": 1e-6}')
        response = connection.getresponse()
        response.read()
        seconds.append(time.perf_counter() - start)
        assert response.status == 200
    connection.close()
    return seconds


def serve(folder, port, *, n, file):
    """A process that serves n records."""
    np.savetxt(folder / "pay.csv", data.pay(n), header="pay", comments="")
    command = [sys.executable, str(ROOT / "examples" / "service.py"), str(folder / "pay.csv"), "--column", "pay"]
    command += ["--bounds", "0", "1000000", "--epsilon", "1", "--at-once", "--port", str(port)]
    command += ["--ledger", str(folder / "pay.ledger")] if file else []
    return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(Path(dpf.__file__).parents[1])})


def wait_for(process, port):
    """Wait until the service listens."""
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"the service ended by itself, with status {process.returncode}")


def releases(port):
    """The number of releases that the service has charged."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/budget")
    count = json.loads(connection.getresponse().read())["releases"]
    connection.close()
    return count


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.service", description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--requests", type=int, default=250, help="per client")
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--file", action="store_true", help="keep the ledger in a file")
    options = parser.parse_args(arguments)
    with socket.socket() as free, tempfile.TemporaryDirectory() as name:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()  # for the service
        process = serve(Path(name), port, n=options.records, file=options.file)
        try:
            wait_for(process, port)
            client(port, 10)
            before = releases(port)
            start = time.perf_counter()
            with ThreadPoolExecutor(options.clients) as clients:
                parts = list(clients.map(client, [port] * options.clients, [options.requests] * options.clients))
            total = time.perf_counter() - start
            charged = releases(port) - before
        finally:
            process.kill()
            process.wait()
    seconds = np.concatenate(parts)
    assert charged == seconds.size, f"{seconds.size} answers, {charged} charges"
    middle, late, last = 1000 * np.quantile(seconds, [0.5, 0.99, 1.0])
    kept = "a file" if options.file else "memory"
    print(
        f"{options.clients} clients, {seconds.size} medians of {options.records} records, ledger in {kept}: "
        f"{seconds.size / total:.0f} a second; p50 {middle:.1f} ms, p99 {late:.1f} ms, longest {last:.1f} ms"
    )


if __name__ == "__main__":
    main()
