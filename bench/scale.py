"""What very many records, reports, groups and users cost: ``python -m bench.scale`` prints docs/results/scale.md.

It takes ten minutes and 5 GB, and needs pyarrow. Times are those of the processor, without waiting; the long runs are
interleaved with short ones, so that both meet the same other work.
"""

import gc
import io
import math
import platform
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import parquet

import dpfast as dpf
from bench import data
from bench.pages import colophon
from bench.pages.tables import check, digits, paragraph, table
from dpfast import local
from dpfast.streaming import State

PIECE = 10**6  # records in a file of Parquet
RECORDS, FEW_RECORDS = 10**9, 10**7
BATCH = 10**5  # reports that arrive together
REPORTS, FEW_REPORTS = 10**8, 10**6
GROUPS = 10**7  # measured, because the cost of a group grows with the distance of its records in memory
USERS, FEW_USERS = 4 * 10**4, 4 * 10**3
CLUSTER, ALL_RECORDS, FAN = 1000, 10**12, 32  # cores, their records, and states that one merge takes
REPORTS_AN_HOUR, LEAVES = 10**9, 100  # and aggregators below the first one, each of which sends once a minute
ALL_USERS = 10**6
TOLERANCE = 0.2  # of the ratio of costs in a long and in a short run
_TURNS = 10  # short runs during a long one

Seconds = float
SURVEYS = {
    "64 categories": (local.Categorical(64, 1.0), lambda rng, n: rng.integers(0, 64, n)),
    "a number": (local.Interval(1.0, bounds=(0, 1)), lambda rng, n: rng.random(n)),
    "2^32 keys, hashed": (local.HashedCategorical(2**32, 1.0), lambda rng, n: rng.integers(0, 2**32, n)),
}
MECHANISMS = {
    "mean": dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=dpf.Grid(*data.BOUNDS), epsilon=1.0),
    "median": data.median_mechanism(),
}


def least(run: Callable[[], object], turns: int = 7) -> Seconds:
    """The least processor time of a call, of all threads."""
    run()
    return min(spent(run, time.process_time) for _ in range(turns))


def spent(run: Callable[[], object], clock: Callable[[], Seconds] = time.thread_time) -> Seconds:
    start = clock()
    run()
    return clock() - start


def held(run: Callable[[], object]) -> int:
    """The greatest number of bytes that Python and NumPy allocate in a call."""
    tracemalloc.start()
    kept = run()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return most


def long_and_short(long: Iterator[Seconds], steps: int, short: Callable[[], Seconds], parts: int) -> float:
    """The ratio of the cost of a long run, in so many steps, to that of its `parts` short ones, made meanwhile."""
    total, few = 0.0, []
    for step, seconds in enumerate(long):
        total += seconds
        if step % (steps // _TURNS) == 0:
            few.append(short())
    return total / (parts * float(np.mean(few)))


# ---- records ----


def file_of(piece: int) -> io.BytesIO:
    """A file of Parquet in memory, with a column of doubles."""
    x, file = data.generated_chunk(piece, PIECE), io.BytesIO()
    parquet.write_table(pyarrow.table({"x": x}), file, use_dictionary=False, compression="NONE")
    return file


def column_of(file: io.BytesIO) -> pyarrow.ChunkedArray:
    with parquet.ParquetFile(file, pre_buffer=False) as opened:
        return opened.read(use_threads=False).column("x")


def read_in_pieces(mechanism: dpf.Mechanism, n: int) -> Iterator[Seconds]:
    """The time to decode and to read each piece in each pass; pieces are made on the fly and forgotten."""

    def read(state: State, file: io.BytesIO) -> None:
        for chunk in column_of(file).chunks:
            state.update(chunk)

    state = mechanism.start()
    for number in range(state.passes):
        if number:
            state.next_pass()
        for piece in range(n // PIECE):
            yield spent(partial(read, state, file_of(piece)))
    state.release()


def holds_for_records() -> float:
    """The ratio of a long to a short run, for the median, whose state grows with the records."""
    mechanism = MECHANISMS["median"]
    few = lambda: sum(read_in_pieces(mechanism, FEW_RECORDS))  # noqa: E731
    steps = RECORDS // PIECE * mechanism.start().passes
    return long_and_short(read_in_pieces(mechanism, RECORDS), steps, few, RECORDS // FEW_RECORDS)


def of_records() -> tuple[Seconds, list[tuple[str, Seconds, int, Seconds]]]:
    """The time to decode a record, and of each pass: to read a record, bytes of a state, and to add it to another."""
    file = file_of(0)
    decoding, passes = least(partial(column_of, file)) / PIECE, []
    pieces = [column_of(file_of(piece)).chunks for piece in range(FEW_RECORDS // PIECE)]
    for name, mechanism in MECHANISMS.items():
        state = mechanism.start()
        for number in range(state.passes):
            if number:
                state.next_pass()
            spare = unpacked(mechanism, state.to_bytes())
            reading = min(spent(lambda p=piece, s=spare: [s.update(chunk) for chunk in p]) for piece in pieces)
            for piece in pieces:
                for chunk in piece:
                    state.update(chunk)
            sent = state.to_bytes()
            merging = least(lambda s=state, b=sent, m=mechanism: s.to_bytes() and unpacked(m, b).merge(s))
            passes.append((f"{name}, pass {number + 1}", reading / PIECE, len(sent), merging))
    return decoding, passes


def unpacked(mechanism: dpf.Mechanism, sent: bytes) -> State:
    return State.from_bytes(sent, mechanism)


# ---- reports ----


def arriving(name: str, n: int) -> Iterator[Seconds]:
    """The time to check and to add each batch of reports, which are made on the fly."""
    survey, answers = SURVEYS[name]
    total = None

    def add(sent: bytes) -> None:
        nonlocal total
        batch = survey.aggregate(survey.from_bytes(sent))
        total = batch if total is None else total + batch

    rng = np.random.default_rng(0)
    for _ in range(n // BATCH):
        yield spent(partial(add, survey.to_bytes(survey.randomize(answers(rng, BATCH)))))


def holds_for_reports() -> float:
    name = "64 categories"
    few = lambda: sum(arriving(name, FEW_REPORTS))  # noqa: E731
    return long_and_short(arriving(name, REPORTS), REPORTS // BATCH, few, REPORTS // FEW_REPORTS)


def of_reports() -> list[tuple[str, Seconds, float, Seconds, Seconds, int, Seconds]]:
    """For each survey: to make a report, its bytes, to add one of a batch and a single one, a total's bytes, a sum."""
    rows = []
    for name, (survey, answers) in SURVEYS.items():
        records = answers(np.random.default_rng(0), BATCH)
        sent = survey.to_bytes(survey.randomize(records))
        one = survey.to_bytes(survey.randomize(records[:1]))
        total = survey.aggregate(survey.from_bytes(sent))
        add = lambda sent, survey=survey: survey.aggregate(survey.from_bytes(sent))  # noqa: E731
        making = least(partial(survey.randomize, records)) / BATCH
        batch, single = least(partial(add, sent)) / BATCH, many(partial(add, one))
        packed = total.to_bytes()
        merging = many(lambda p=packed, t=total: t + local.Aggregate.from_bytes(p))
        rows.append((name, making, len(sent) / BATCH, batch, single, len(packed), merging))
    return rows


def many(run: Callable[[], object], loops: int = 200) -> Seconds:
    """The least time of one of many short calls."""
    return least(lambda: [run() for _ in range(loops)]) / loops


# ---- groups and users ----


def grouped(groups: int) -> Callable[[], object]:
    """The medians of groups of ten records in random order."""
    x, labels = data.pay(10 * groups), data.labels(groups, 10)
    return partial(dpf.by_group, data.median_mechanism(), x, labels=labels, num_groups=groups)


def ledgers(users: int) -> list[dpf.Ledger]:
    return [dpf.Ledger("1", neighbors="local") for _ in range(users)]


def charged(kept: list[dpf.Ledger]) -> list[dpf.Ledger]:
    """A report of each user, charged to their own budget."""
    survey, answer = local.Categorical(64, 2.0**-7), np.array([3])
    for ledger in kept:
        with ledger:
            survey.randomize(answer)
    return kept


def of_users(users: int) -> tuple[Seconds, Seconds]:
    """The time to open a budget for a user, and to charge a report to it."""
    return least(partial(ledgers, users), 3) / users, min(
        spent(partial(charged, ledgers(users))) for _ in range(3)
    ) / users


# ---- the page ----


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    facts = dict(map(str.strip, line.split(":", 1)) for line in lines if ":" in line)
    numbers = f"family {facts.get('cpu family', '?')}, model {facts.get('model', '?')}"
    return f"{facts.get('model name', platform.processor())} ({numbers}), {platform.machine()}"


def size(n: int) -> str:
    """1000000 as 1e6."""
    return f"{n:.0e}".replace("e+0", "e").replace("e+", "e")


def ns(seconds: Seconds) -> str:
    return f"{digits(1e9 * seconds)} ns"


def shown(seconds: Seconds) -> str:
    for unit, name in ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{digits(seconds / unit)} {name}"
    return ns(seconds)


def amount(count: float) -> str:
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{digits(count / unit)} {name}"
    return f"{digits(count)} B"


def records_page(decoding: Seconds, passes: list[tuple[str, Seconds, int, Seconds]]) -> list[str]:
    """1e12 records on a cluster."""
    share, rows = ALL_RECORDS // CLUSTER, []
    levels = math.ceil(math.log(CLUSTER, FAN))
    for name, reading, sent, merging in passes:
        pace = 8 / (decoding + reading)
        rows.append(
            [name, shown(share * (decoding + reading)), amount(8 * ALL_RECORDS), amount(pace), amount(CLUSTER * pace),
             amount(sent), amount(CLUSTER * sent), shown(levels * FAN * merging)]
        )  # fmt: skip
    headings = ["pass", "time", "read", "a core reads in 1 s", "all read in 1 s", "a state", "states sent", "merging"]
    text = f"""{size(ALL_RECORDS)} records in files of Parquet on {CLUSTER:,} cores, {size(share)} on each, and their
    states merged by {FAN} in {levels} levels. A second pass begins with the state of the first, sent to every core. The
    release itself takes a fraction of a millisecond, once. The first thing that breaks is storage: the cores read
    faster than disks and networks deliver, so that the time of a pass is that of the bytes. A core holds one piece and
    a state."""
    return ["## A cluster\n", paragraph(text), table(headings, rows)]


def reports_page(rows: list[tuple[str, Seconds, float, Seconds, Seconds, int, Seconds]]) -> list[str]:
    """1e9 reports an hour."""
    pace, lines = REPORTS_AN_HOUR / 3600, []
    for name, making, length, batch, single, packed, merging in rows:
        cores = (digits(pace * batch), digits(pace * single), digits(LEAVES * merging / 60))
        lines.append([name, shown(making), amount(length * pace), *cores, amount(packed), amount(LEAVES * packed / 60)])
    headings = ["report", "to make one", "arrives in 1 s", "cores, batches", "cores, one by one", "cores, tree"]
    text = f"""{size(REPORTS_AN_HOUR)} reports an hour, {pace:,.0f} a second: the cores that one aggregator needs if
    reports arrive in batches of {size(BATCH)} or one by one, and the cores that the root of a tree needs, to which
    {LEAVES} aggregators send their totals every minute. The first thing that breaks is what receives the reports: a
    request for each of them. The [example service](../guides/services.md) answers some hundred requests a second; let
    servers collect batches."""
    return [f"## {size(REPORTS_AN_HOUR)} reports an hour\n", paragraph(text),
            table([*headings, "a total", "totals sent in 1 s"], lines)]  # fmt: skip


def groups_page(seconds: Seconds, memory: float) -> list[str]:
    text = f"""The medians of {size(GROUPS)} groups of ten records, by labels in random order, on one core, measured:
    {shown(GROUPS * seconds)}, {shown(seconds)} a group. `by_group` sorts the records of one machine: besides
    {amount(160 * GROUPS)} of records and labels it allocates {amount(GROUPS * memory)}, {digits(memory / 10)} bytes a
    record. The first thing that breaks is this memory: give each machine the groups of some labels."""
    return [f"## {size(GROUPS)} groups\n", paragraph(text)]


def users_page(opening: Seconds, charging: Seconds, empty: float, one: float) -> list[str]:
    text = f"""A budget for each of {size(ALL_USERS)} users is a `Ledger` for each: {shown(ALL_USERS * opening)} to open
    all of them and {amount(ALL_USERS * empty)} ({digits(empty)} bytes each); one report of each user, charged, takes
    {shown(ALL_USERS * charging)} and {amount(ALL_USERS * (one - empty))} more ({digits(one - empty)} bytes a charge,
    which stays). The first thing that breaks is memory, after some tens of charges of each user; with `path=` it is the
    disk, as each user is a file, and each charge is synced to it."""
    return [f"## A ledger of {size(ALL_USERS)} users\n", paragraph(text)]


def costs_page(
    decoding: Seconds, passes: list[tuple[str, Seconds, int, Seconds]], others: list[list[str]]
) -> list[str]:
    """The costs that the rest follows from."""
    rows = [["a record decoded from Parquet, doubles without compression", ns(decoding)]]
    for name, reading, sent, merging in passes:
        rows.append([f"a record read: {name}", ns(reading)])
        rows.append([f"a state of {amount(sent)} packed, unpacked and merged: {name}", shown(merging)])
    return ["## Costs\n", table(["step", "time of one core"], rows + others)]


def page() -> str:
    gc.disable()  # its passes over all ledgers would count as charges
    decoding, passes = of_records()
    reports = of_reports()
    medians = grouped(GROUPS)
    group, memory = spent(medians, time.process_time) / GROUPS, held(medians) / GROUPS
    del medians
    (_, few_charging), (opening, charging) = of_users(FEW_USERS), of_users(USERS)
    empty, one = held(lambda: ledgers(FEW_USERS)) / FEW_USERS, held(lambda: charged(ledgers(FEW_USERS))) / FEW_USERS
    ratios = {f"median: {size(RECORDS)} records for {size(FEW_RECORDS)}": holds_for_records()}
    ratios[f"64 categories: {size(REPORTS)} reports for {size(FEW_REPORTS)}"] = holds_for_reports()
    ratios[f"charges: {size(USERS)} users for {size(FEW_USERS)}"] = charging / few_charging
    for name, ratio in ratios.items():
        check(name, ratio, 1.0, TOLERANCE)
    others = [[f"a report added, {name}", ns(batch)] for name, _, _, batch, *_ in reports]
    others += [["a median of a group of ten records", shown(group)], ["a charge", shown(charging)]]
    intro = f"""Costs of one core of {processor()}, of which other work used a part: processor time, the least of
    several runs. What is larger than a run here is computed from them. The last table says how far that holds."""
    held_text = f"""The cost of a record, a report or a charge in a long run, divided by that in short runs, for the
    first two made meanwhile. Records are made, written as Parquet, decoded and read in pieces of {size(PIECE)}, reports
    in batches of {size(BATCH)}; only decoding and reading count. A ratio outside 1 +- {TOLERANCE} stops the command."""
    return "\n".join(
        [
            "# Scale\n",
            paragraph(intro),
            *records_page(decoding, passes),
            *reports_page(reports),
            *groups_page(group, memory),
            *users_page(opening, charging, empty, one),
            *costs_page(decoding, passes, others),
            "## Does it hold?\n",
            paragraph(held_text),
            table(["what", "ratio"], [[name, f"{ratio:.2f}"] for name, ratio in ratios.items()]),
            colophon("bench.scale"),
        ]
    )


if __name__ == "__main__":
    print(page(), end="")
