"""Data that a call must not touch before it checks public parameters or charges a ledger."""


class Untouchable:
    """Raises an error at every access to its records."""

    def __array__(self, *args, **options):
        raise AssertionError("the data were touched")

    def __len__(self):
        raise AssertionError("the data were touched")

    __iter__ = __getitem__ = __len__
