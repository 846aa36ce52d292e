"""Columns of delimited text by the standard library, for dpfast._kernels._csv and dpfast.tables."""

import csv
import io


def rows(data: bytes, delimiter: str = ",") -> list[list[str]]:
    """The rows of a file in UTF-8; a blank line is an empty row."""
    lines = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", errors="surrogateescape", newline="")
    return list(csv.reader(lines, delimiter=delimiter))


def cells(found: list[list[str]], column: int) -> list[str]:
    """The cells of a column, empty where a row is too short."""
    return [row[column] if column < len(row) else "" for row in found]


def number(cell: str) -> float:
    """What float() reads in a cell, NaN where it raises."""
    try:
        return float(cell)
    except ValueError:
        return float("nan")
