"""The command line: ``dpfast COMMAND``; ``dpfast --help`` lists the commands.

Exit codes: 0 released; 2 bad arguments, file or ledger, and nothing is released (one line on standard error, without
data); 3 the release could not be written, but its epsilon is spent; 4 it does not fit the budget of the ledger, and
nothing is released; 130 interrupted; 1 ``verify`` found that the mechanism violates its guarantee.

The command line and the schema of a Parquet file, which are public, decide how a column is read; its cells do not. Each
answer states the value that replaces non-numeric cells.
"""

from dpfast.cli.program import main

__all__ = ["main"]
