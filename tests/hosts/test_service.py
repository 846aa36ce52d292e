"""The example service under load, over the loopback: each charge is made exactly once."""

import asyncio
import http.client
import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import bench.service
import dpfast as dpf

pytest.importorskip("starlette")
uvicorn = pytest.importorskip("uvicorn")

FILE = Path(__file__).parents[2] / "examples" / "service.py"
_spec = importlib.util.spec_from_file_location("service", FILE)
service = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(service)

X = np.random.default_rng(0).normal(50, 10, 2000)


class Running:
    """A service in a thread of this process."""

    def __init__(self, ledger, x=X, time=None, dashboard=None):
        app = service.application(x, grid=dpf.Grid(0, 100), ledger=ledger, time=time, dashboard=dashboard)
        self.server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="none"))
        self.thread = threading.Thread(target=self.server.run)

    def __enter__(self):
        self.thread.start()
        while not self.server.started:
            assert self.thread.is_alive()
            time.sleep(0.01)
        return self.server.servers[0].sockets[0].getsockname()[1]

    def __exit__(self, *exception):
        self.server.should_exit = True
        self.thread.join()


def ask(connection, path, query=None):
    body = query if query is None or isinstance(query, (str, bytes)) else json.dumps(query)
    connection.request("GET" if query is None else "POST", path, body)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def asked(port, path, query=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        return ask(connection, path, query)
    finally:
        connection.close()


def client(port, requests, query):
    """Statuses and answers of one client, which keeps its connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        return [ask(connection, "/median", query) for _ in range(requests)]
    finally:
        connection.close()


def test_answers():
    with Running(dpf.Ledger(100.0)) as port:
        status, answer = asked(port, "/median", {"epsilon": 10})
        assert status == 200
        assert abs(answer["release"] - 50) < 2
        assert answer["privacy"].startswith("epsilon = 10 (pure differential privacy)")
        status, answer = asked(port, "/quantiles", {"epsilon": 20, "q": [0.75, 0.25]})
        assert status == 200
        assert np.abs(np.array(answer["release"]) - [56.7, 43.3]).max() < 2
        assert asked(port, "/budget") == (200, {"spent": 30.0, "remaining": 70.0, "releases": 2})


def test_health(tmp_path):
    """It spends nothing, and says so when the ledger's file is not there to be charged."""
    path = tmp_path / "budget.ledger"
    with Running(dpf.Ledger(5.0, path=path)) as port:
        assert asked(port, "/health") == (200, {"ready": True, "remaining": 5.0})
        asked(port, "/median", {"epsilon": 2})
        assert asked(port, "/health") == (200, {"ready": True, "remaining": 3.0})
        path.rename(tmp_path / "moved.ledger")
        assert asked(port, "/health") == (503, {"error": "the ledger cannot be read"})


def test_dashboard(tmp_path):
    """What another process has written, as it is then; there is none without a file."""
    file = tmp_path / "public.json"
    for numbers in ({"totals": {}}, {"totals": {"1": [2.0]}}):
        file.write_text(json.dumps(numbers))
        with Running(dpf.Ledger(1.0), dashboard=str(file)) as port:
            assert asked(port, "/dashboard") == (200, numbers)
    routes = service.application(X, grid=dpf.Grid(0, 100), ledger=dpf.Ledger(1.0)).routes
    assert "/dashboard" not in [route.path for route in routes]


@pytest.mark.parametrize(
    ("path", "query", "message"),
    [
        ("/median", {}, "the request must have 'epsilon'"),
        ("/median", {"epsilon": -1}, "epsilon must be positive, not -1"),
        ("/median", {"epsilon": "1"}, "epsilon must be a number"),
        ("/median", {"epsilon": True}, "epsilon must be a number"),
        ("/median", {"epsilon": None}, "epsilon must be a number"),
        ("/median", {"epsilon": [1]}, "epsilon must be a number"),
        ("/median", {"epsilon": {"1": 1}}, "epsilon must be a number"),
        ("/median", {"epsilon": 0}, "epsilon must be positive"),
        ("/median", {"epsilon": 1, "q": [0.5]}, "the request must have 'epsilon', and nothing else"),
        ("/median", '{"epsilon": 0.1, "epsilon": 1}', "each key once"),
        ("/median", '{"epsilon": NaN}', "epsilon must be finite"),
        ("/median", "[]", "must be a JSON object"),
        ("/median", "{", "Expecting"),
        ("/median", b"\xff", ""),
        ("/median", " " * 20_000, "at most 10000 bytes"),
        ("/quantiles", {"epsilon": 1}, "the request must have 'epsilon' and 'q'"),
        ("/quantiles", {"epsilon": 1, "q": [2]}, "between 0 and 1"),
        *(
            ("/quantiles", {"epsilon": 1, "q": q}, "q must be an array of 1 to 20 numbers")
            for q in (3, "01", "", {"0.5": 1}, {}, [], None, True, [i / 1000 for i in range(1000)])
        ),
        *(
            ("/quantiles", {"epsilon": 1, "q": [0.5, q]}, "each of q must be a number")
            for q in ("0.5", "1", True, None, [0.5], {"0.5": 1})
        ),
        ("/quantiles", {"epsilon": "1", "q": [0.5]}, "epsilon must be a number"),
        ("/quantiles", '{"epsilon": 1, "q": [NaN]}', "must be finite"),
        ("/quantiles", '{"epsilon": 1, "q": [-Infinity]}', "must be finite"),
        ("/quantiles", '{"epsilon": 1, "q": [1e400]}', "must be finite"),
        ("/quantiles", '{"epsilon": 1, "q": [1' + "0" * 400 + "]}", "too large"),
        ("/median", '{"epsilon": 1e9000000}', "must be finite"),
        ("/median", '{"epsilon": 1e-9000000}', "epsilon must be positive"),
        ("/median", '{"epsilon": 1' + "0" * 400 + "}", ""),
        ("/median", "[" * 9_000, "recursion"),
    ],
)
def test_bad_requests_are_not_charged(path, query, message):
    ledger = dpf.Ledger(1.0)
    with Running(ledger) as port:
        status, answer = asked(port, path, query)
    assert status == 400
    assert message in answer["error"]
    assert ledger.charges == ()


def test_a_body_without_an_end_is_cut_off():
    read = []

    async def endless():
        read.append(1000)
        return {"type": "http.request", "body": b" " * 1000, "more_body": True}

    async def sent(message):
        answers.append(message)

    answers = []
    app = service.application(X, grid=dpf.Grid(0, 100), ledger=dpf.Ledger(1.0))
    scope = {"type": "http", "method": "POST", "path": "/median", "headers": [], "query_string": b""}
    asyncio.run(app(scope, endless, sent))
    assert answers[0]["status"] == 400
    assert sum(read) == service.MOST + 1000


@pytest.mark.parametrize("parts", [[], [b'{"epsilon"'], [b'{"epsilon": 1}']])
def test_a_client_that_disconnects_is_not_charged(parts):
    """Without an error that the server would log."""
    coming = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    coming.append({"type": "http.disconnect"})

    async def receive():
        return coming.pop(0)

    async def send(message):
        pass

    ledger = dpf.Ledger(1.0)
    app = service.application(X, grid=dpf.Grid(0, 100), ledger=ledger)
    scope = {"type": "http", "method": "POST", "path": "/median", "headers": [], "query_string": b""}
    asyncio.run(app(scope, receive, send))
    assert ledger.charges == ()


def test_broken_connections_are_not_logged(caplog, capfd):
    ledger = dpf.Ledger(1.0)
    with Running(ledger) as port:
        for body in (b"", b'{"epsilon"', b'{"epsilon": 0.01}'):
            with socket.create_connection(("127.0.0.1", port)) as gone:
                gone.sendall(b"POST /median HTTP/1.1\r\nHost: x\r\nContent-Length: 17\r\n\r\n" + body)
        assert asked(port, "/median", {"epsilon": 0.01})[0] == 200
    assert caplog.text == ""
    assert "Traceback" not in capfd.readouterr().err


AT = dpf.timing.AnswerTime("3", stability="1e-6", epsilon="1/500", delta="1e-9", overrun="1e-9")


def test_padded_answers_are_charged_with_their_time():
    ledger = dpf.Ledger(1, "1e-6")
    with Running(ledger, time=AT) as port:
        assert asked(port, "/median", {"epsilon": 0.002}) == (
            400,
            {"error": "epsilon must be above 1/500, the cost of the time of an answer"},
        )
        answers = [asked(port, "/median", {"epsilon": 0.6}) for _ in range(2)]
        assert asked(port, "/budget")[1]["releases"] == 1
    assert [status for status, _ in answers] == [200, 403]
    mechanism = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 100), epsilon=Fraction(299, 500))
    assert answers[0][1]["privacy"] == str(AT.privacy(mechanism.privacy))
    assert [charge.profile.privacy for charge in ledger.charges] == [AT.privacy(mechanism.privacy)]
    assert 0 < ledger.spent.delta < 1e-8


def test_an_answer_that_is_not_ready_is_withheld_and_charged():
    ready = threading.Event()

    class Slow:
        """Records that are not read before the answer is due."""

        def __array__(self, dtype=None, copy=None):
            ready.wait()
            return X

    ledger = dpf.Ledger(1, "1e-6")
    with Running(ledger, x=Slow(), time=AT) as port:
        status, answer = asked(port, "/median", {"epsilon": 0.4})
        ready.set()
        assert asked(port, "/median", {"epsilon": 0.4})[0] == 200  # records that are ready
    assert status == 503
    assert answer == {"error": "the answer was not ready at its public time; it is withheld, and its budget is spent"}
    assert len(ledger.charges) == 2


def test_decimals_add_up():
    ledger = dpf.Ledger(1.0)
    with Running(ledger) as port:
        statuses = [status for status, _ in client(port, 11, '{"epsilon": 0.1}')]
    assert statuses == [200] * 10 + [403]


def test_no_spend_is_lost_or_made_twice_by_many_clients():
    ledger = dpf.Ledger(1.0)
    with Running(ledger) as port, ThreadPoolExecutor(16) as clients:
        parts = list(clients.map(lambda _: client(port, 10, '{"epsilon": 0.01}'), range(16)))
        budget = asked(port, "/budget")[1]
    answers = [answer for part in parts for answer in part]
    released = [answer["release"] for status, answer in answers if status == 200]
    refused = [answer["error"] for status, answer in answers if status == 403]
    assert (len(released), len(refused)) == (100, 60)
    assert budget["releases"] == len(ledger.charges) == 100
    assert 1 - 1e-12 < ledger.spent.epsilon <= 1
    assert len(set(released)) > 50  # draws of their own, some of which agree
    assert all("does not fit" in error for error in refused)


def test_two_processes_share_a_ledger(tmp_path):
    path = tmp_path / "x.ledger"
    (tmp_path / "x.csv").write_text("pay\n" + "\n".join(map(str, X)) + "\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        other = free.getsockname()[1]
    command = [sys.executable, str(FILE), str(tmp_path / "x.csv"), "--column", "pay", "--bounds", "0", "100"]
    command += ["--epsilon", "1", "--delta", "0", "--at-once", "--ledger", str(path), "--port", str(other)]
    environment = os.environ | {"PYTHONPATH": str(Path(dpf.__file__).parents[1])}
    process = subprocess.Popen(command, env=environment)
    try:
        for _ in range(600):
            try:
                asked(other, "/budget")
                break
            except OSError:
                assert process.poll() is None
                time.sleep(0.1)
        with Running(dpf.Ledger(1.0, path=path)) as port, ThreadPoolExecutor(8) as clients:
            parts = list(clients.map(lambda i: client((port, other)[i % 2], 10, '{"epsilon": 0.02}'), range(8)))
            seen = asked(port, "/budget")[1], asked(other, "/budget")[1]
    finally:
        process.kill()
        process.wait()
    statuses = [status for part in parts for status, _ in part]
    assert statuses.count(200) == 50
    assert statuses.count(403) == 30
    assert seen[0] == seen[1]
    assert seen[0]["releases"] == 50
    assert len(dpf.Ledger(1.0, path=path).charges) == 50  # and after both


def test_a_file_needs_a_column_bounds_and_a_budget(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["service.py", "pay.csv", "--column", "pay", "--epsilon", "1"])
    with pytest.raises(SystemExit):
        service.main()
    assert "a file, --column, --bounds and --epsilon go together" in capsys.readouterr().err


def test_the_load_is_reported(capsys):
    bench.service.main(["--clients", "4", "--requests", "5", "--records", "100"])  # fails if the ledger counts others
    pattern = r"4 clients, 20 medians .*: \d+ a second; p50 [\d.]+ ms, p99 [\d.]+ ms, longest [\d.]+ ms"
    assert re.match(pattern, capsys.readouterr().out)
