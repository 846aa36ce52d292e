"""Columns of CSV and Parquet files, at once or in chunks: numbers as float64, NaN where unreadable, or texts.

Messages never contain data.
"""

from dpfast.tables.errors import IN_THE_HEADER, TableError, no_column
from dpfast.tables.files import (
    IN_MEMORY,
    WantedColumn,
    blocks,
    column_names,
    is_long,
    open_column,
    read_column,
    record_count,
    schema_type,
)
from dpfast.tables.format import Format, check_encoding

__all__ = [
    "IN_MEMORY",
    "IN_THE_HEADER",
    "Format",
    "TableError",
    "WantedColumn",
    "blocks",
    "check_encoding",
    "column_names",
    "is_long",
    "no_column",
    "open_column",
    "read_column",
    "record_count",
    "schema_type",
]
