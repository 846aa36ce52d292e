"""The exceptions of dpfast. Everything else is a TypeError or a ValueError, raised before data are looked at."""


class EntropyError(RuntimeError):
    """The operating system or the cipher gave no randomness; nothing was released.

    There is no fallback to a weaker source.
    """


class BudgetError(RuntimeError):
    """A `dpfast.Ledger` cannot pay for a release; nothing was released, and data were not looked at."""
