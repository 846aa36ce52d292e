"""The errors of files and of columns; messages have the names of columns, which are public, and no other data."""

from collections.abc import Sequence
from difflib import get_close_matches

_MOST_NAMES, _LONGEST_NAME = 40, 60
_COMPARED = 1000
IN_THE_HEADER = " in the header"


class TableError(Exception):
    """A table that cannot be read. Messages never contain data."""


def no_column(name: str, known: Sequence[str], where: str = "") -> TableError:
    """Return the error of a column that is not among those that are known, or is there several times."""
    if name in known:
        return TableError(f"several columns{where} are named {name!r}: rename all but one")
    near = get_close_matches(name, [each for each in known[:_COMPARED] if len(each) <= _LONGEST_NAME], n=1, cutoff=0.6)
    meant = f"did you mean {near[0]!r}? " if near else ""
    return TableError(f"no column {name!r}{where}: {meant}{listed(known)}")


def listed(names: Sequence[str]) -> str:
    """Return the names of the columns of a table as the end of a message."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"it has {', '.join(repr(name[:_LONGEST_NAME]) for name in names[:_MOST_NAMES])}{more}"
