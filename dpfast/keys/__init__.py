"""Keys: the names of groups, of any type, and their exact grouping.

A *key* names the group of a record: an integer, text or bytes, or a tuple of them from several columns. A missing key
(None, NaN, null, masked) belongs to no group, and its code is -1. `read` numbers the keys of a column by their first
record, `Table` does it over several chunks, `lookup` finds the places of records in a list of public keys, and
`KeyCounts` counts the records of each key. Two keys are equal if and only if they are the same integer, the same text
or the same bytes: tables compare whole keys, not hashes.
"""

from dpfast.keys.columns import Column, Part, Several, column_of
from dpfast.keys.counts import KeyCounts, Sorted
from dpfast.keys.table import Keys, Table, lookup, public_table, read

__all__ = [
    "Column",
    "KeyCounts",
    "Keys",
    "Part",
    "Several",
    "Sorted",
    "Table",
    "column_of",
    "lookup",
    "public_table",
    "read",
]
