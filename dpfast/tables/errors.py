"""The error of files."""


class TableError(Exception):
    """A file or column that cannot be read; the message is one line without data."""
