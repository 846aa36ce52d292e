"""Keys: the names of groups, of any type, and their exact grouping.

A *key* names the group of a record: a number, text or bytes, another cell that `dpfast.keys.cells.cell_bytes` lists,
such as a date or a UUID, or a tuple of them, also from several columns. A missing key
(None, NaN, null, masked) belongs to no group, and its code is -1. `read` numbers the keys of a column by their first
record, `KeyTable` does it over several chunks, `lookup` finds the places of records in a list of public keys, and
`KeyCounts` counts the records of each key. Two keys are equal if and only if they are equal numbers, or of the same
type with the same value: tables compare whole keys, not hashes.
"""

from dpfast.keys.columns import KeyColumn, Part, Several, column_of
from dpfast.keys.counts import KeyCounts, Sorted
from dpfast.keys.table import Keys, KeyTable, lookup, public_table, read

__all__ = [
    "KeyColumn",
    "KeyCounts",
    "KeyTable",
    "Keys",
    "Part",
    "Several",
    "Sorted",
    "column_of",
    "lookup",
    "public_table",
    "read",
]
