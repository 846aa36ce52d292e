"""Parameters that give another value each time that they are read."""

import numpy as np


class Read:
    """Counts how often an object is converted."""

    reads = 0

    def next(self, first, later):
        self.reads += 1
        return first if self.reads == 1 else later


class Index(Read):
    """An integer."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.next(self.value, 1000 + self.value)

    __int__ = __index__


class Double(float, Read):
    """A number: what `float` gives, what arithmetic takes, and every other conversion."""

    def __float__(self):
        return self.next(float.__add__(self, 0.0), float.__add__(self, 50.0))

    def as_integer_ratio(self):
        return float(self).as_integer_ratio()


class Entries(list, Read):
    """A sequence, changed by every reading of its entries."""

    def _now(self):
        return self.next(list(super().__iter__()), [0.0, 1.0])

    def __iter__(self):
        return iter(self._now())

    def __getitem__(self, i):
        return self._now()[i]


class Array(Read):
    """An array of public numbers, or of records."""

    def __init__(self, array):
        self.array = np.asarray(array)
        self.shape, self.dtype, self.ndim = self.array.shape, self.array.dtype, self.array.ndim

    def __len__(self):
        return len(self.array)

    def __array__(self, dtype=None, copy=None):
        return self.next(self.array, self.array[: len(self.array) // 2] + 1)


class Length(list, Read):
    """A sequence whose length changes."""

    def __len__(self):
        return self.next(super().__len__(), 1)


class Text(str, Read):
    """A name that is equal to itself every other time."""

    __slots__ = ()

    def __eq__(self, other):
        Text.compared += 1
        return Text.compared % 2 == 1 and str.__eq__(self, other)

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__
    compared = 0


def changing(value):
    """Objects that stand for a parameter when they are read for the first time."""
    if isinstance(value, (bool, np.bool_)) or value is None:
        return []
    if isinstance(value, str):
        return [Text(value)]
    if isinstance(value, (int, np.integer)):
        return [Index(int(value)), Double(value)]
    if isinstance(value, float):
        return [Double(value)]
    if isinstance(value, (list, tuple)):
        return [Entries(value), Length(value), *(_inside(value) if type(value) in (list, tuple) else [])]
    if isinstance(value, np.ndarray) and value.ndim:
        return [Array(value)]
    return []


def _inside(value, most=4):
    """A short sequence with one entry that changes."""
    for i, entry in enumerate(value if len(value) <= most else ()):
        for new in changing(entry):
            yield type(value)([*value[:i], new, *value[i + 1 :]])


def reads(value):
    """How often a changing parameter, or an entry of it, was read."""
    entries = list.__iter__(value) if isinstance(value, list) else value if isinstance(value, tuple) else ()
    return max([value.reads if isinstance(value, Read) else 0, *map(reads, entries)])
