"""A small HTTP service that answers private quantiles of one column until its budget is spent.

    pip install '.[examples]'
    python examples/service.py                  # made-up pay, budget 1
    python examples/service.py pay.csv --column pay --bounds 0 1000000 --epsilon 1 --ledger pay.ledger

    curl -X POST localhost:8000/median -d '{"epsilon": 0.01}'
    curl -X POST localhost:8000/quantiles -d '{"epsilon": 0.05, "q": [0.25, 0.75]}'
    curl localhost:8000/budget
    curl localhost:8000/health

With --dashboard, GET /dashboard has the public numbers that examples/dashboard.py writes.

Every release is charged to the ledger before the data are read. With a file, the budget outlives the process, and
several processes may share it. The status is 200 for an answer, 403 if the release does not fit into the budget, 400
for an invalid request, which spend no budget, and 503 for an answer that was not ready in time, which is withheld and
has spent its budget. A request has exactly the keys above, each once, and its numbers are JSON numbers, not text or
booleans. Error messages contain only the request and public numbers. A charged release is spent even if the client has
disconnected.

Answers come at a public time plus a random delay (`dpfast.timing.AnswerTime`), so that the run time does not show the
data. The epsilon of a request is for the release and its time together: 0.002 of it are for the time. With --at-once,
answers come when they are ready, and their time is outside the guarantee.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import uvicorn
from numpy.typing import NDArray
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

import dpfast as dpf
from dpfast.tables import read_column
from dpfast.timing import AnswerTime

MOST = 10_000  # bytes per request
MOST_QUANTILES = 20  # per answer: its run time grows as the square of their number

# Measure stability and overruns on your machine, under load: docs/assurance/timing.md.
TIME = AnswerTime("0.25", stability="1e-4", epsilon="1/500", delta="1e-9", overrun="1e-9")


def application(
    x: NDArray[Any],
    *,
    grid: dpf.Grid,
    ledger: dpf.Ledger,
    time: AnswerTime | None = None,
    dashboard: str | None = None,
) -> Starlette:
    """Return the service for private records x, with public bounds and a budget. Without `time` it answers at once.

    `dashboard` is a file of public numbers, which another process writes.
    """

    def left(epsilon: Any) -> Any:
        """Return what is left of an epsilon for the release."""
        given = number("epsilon", epsilon)
        if time is None or not math.isfinite(given):
            return given
        if given <= time.epsilon:
            raise ValueError(f"epsilon must be above {time.epsilon}, the cost of the time of an answer")
        return Fraction(given) - time.epsilon

    def median(query: dict[str, Any]) -> dpf.Mechanism:
        [epsilon] = values(query, "epsilon")
        return dpf.InverseSensitivity(dpf.statistics.Median(), grid=grid, epsilon=left(epsilon))

    def quantiles(query: dict[str, Any]) -> dpf.Mechanism:
        epsilon, q = values(query, "epsilon", "q")
        if not isinstance(q, list) or not 1 <= len(q) <= MOST_QUANTILES:
            raise ValueError(f"q must be an array of 1 to {MOST_QUANTILES} numbers")
        levels = [float(number("each of q", level)) for level in q]
        return dpf.Quantiles(levels, grid=grid, epsilon=left(epsilon))

    def answers(mechanism_of: Callable[[dict[str, Any]], dpf.Mechanism]) -> Callable[..., Any]:
        async def endpoint(request: Request) -> Response:
            body = bytearray()
            try:
                async for part in request.stream():
                    body += part
                    if len(body) > MOST:
                        return refusal(400, f"a request must have at most {MOST} bytes")
            except ClientDisconnect:  # the request is incomplete; no budget is spent
                return Response(status_code=400)
            try:
                mechanism = mechanism_of(parsed(body))
            except (TypeError, ValueError, OverflowError, RecursionError) as error:
                return refusal(400, str(error))
            try:
                if time is None:
                    return await run_in_threadpool(answer, mechanism, mechanism)  # mechanisms release the GIL
                return await time.run(lambda: answer(mechanism, time.privacy(mechanism.privacy)))
            except dpf.errors.BudgetError as error:
                return refusal(403, str(error))
            except TimeoutError as error:
                return refusal(503, str(error))

        return endpoint

    def answer(mechanism: dpf.Mechanism, cost: dpf.Mechanism | dpf.Privacy) -> JSONResponse:
        with ledger.spend(cost, label=type(mechanism).__name__):
            release = mechanism.release(x)
        privacy = cost if isinstance(cost, dpf.Privacy) else cost.privacy
        return JSONResponse({"release": np.asarray(release).tolist(), "privacy": str(privacy)})

    def budget(request: Request) -> JSONResponse:
        spent, left = ledger.spent, ledger.remaining
        return JSONResponse({"spent": spent.epsilon, "remaining": left.epsilon, "releases": len(ledger.charges)})

    def health(request: Request) -> JSONResponse:
        try:
            left = ledger.remaining
        except (OSError, ValueError):
            return refusal(503, "the ledger cannot be read")
        return JSONResponse({"ready": True, "remaining": left.epsilon})

    for mechanism in (median({"epsilon": 1}), quantiles({"epsilon": 1, "q": [0.25, 0.75]})):
        mechanism(np.full(1000, grid.lower))  # made-up records; this prepares what the first release would
    routes = [
        Route("/median", answers(median), methods=["POST"]),
        Route("/quantiles", answers(quantiles), methods=["POST"]),
        Route("/budget", budget),
        Route("/health", health),
    ]
    if dashboard is not None:
        routes.append(Route("/dashboard", lambda request: FileResponse(dashboard, media_type="application/json")))
    return Starlette(routes=routes)


def parsed(body: bytearray) -> dict[str, Any]:
    """Parse a request. Decimals are exact: ten releases of 0.1 fit into a budget of 1."""
    query = json.loads(body, parse_float=exact, object_pairs_hook=unique)
    if not isinstance(query, dict):
        raise ValueError("the request must be a JSON object")
    return query


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a dict of pairs with distinct keys; a repeated key would be ambiguous."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("the request must have each key once")
    return made


def values(query: dict[str, Any], *keys: str) -> list[Any]:
    """Return the values of these keys; the query must not have others."""
    if set(query) != set(keys):
        raise ValueError(f"the request must have {' and '.join(map(repr, keys))}, and nothing else")
    return [query[key] for key in keys]


def number(name: str, value: Any) -> int | float | Fraction:
    """Return a JSON number; Python would also accept text and booleans."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        raise TypeError(f"{name} must be a number")
    return value


def exact(text: str) -> Fraction | float:
    """Return a decimal as a fraction, if it is in the range of doubles; otherwise a short exponent could fill the
    memory.
    """
    rounded = float(text)
    if not math.isfinite(rounded):
        raise ValueError("numbers must be finite")
    return Fraction(text) if rounded else 0.0


def refusal(status: int, reason: str) -> JSONResponse:
    """Return an error without a release."""
    return JSONResponse({"error": reason}, status_code=status)


def payroll() -> NDArray[np.float64]:
    """Made-up pay of a million people; the same at each start, as a ledger in a file requires."""
    return np.random.default_rng(1).lognormal(10.8, 0.55, 1_000_000)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", help="CSV or Parquet, with --column, --bounds and --epsilon; or made-up pay")
    parser.add_argument("--column")
    parser.add_argument("--bounds", nargs=2, type=float, metavar=("LOWER", "UPPER"))
    parser.add_argument("--epsilon", type=Fraction, help="budget for all answers together")
    parser.add_argument(
        "--delta", type=Fraction, default=Fraction(1, 10**6), help="budget; default: 1e-6, for the times of answers"
    )
    parser.add_argument("--at-once", action="store_true", help="answer when ready: times are outside the guarantee")
    parser.add_argument("--ledger", help="file that keeps the budget; default: memory of this process")
    parser.add_argument("--dashboard", help="file of public numbers, for GET /dashboard: see examples/dashboard.py")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    given = [options.file, options.column, options.bounds, options.epsilon]
    if given.count(None) not in (0, len(given)):
        parser.error("a file, --column, --bounds and --epsilon go together")
    app = application(
        payroll() if options.file is None else read_column(options.file, options.column),
        grid=dpf.Grid(*(options.bounds or (0, 1_000_000))),
        ledger=dpf.Ledger(1 if options.epsilon is None else options.epsilon, options.delta, path=options.ledger),
        time=None if options.at_once else TIME,
        dashboard=options.dashboard,
    )
    print(f"http://localhost:{options.port}: POST /median, POST /quantiles, GET /budget, GET /health", flush=True)
    uvicorn.run(app, port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
