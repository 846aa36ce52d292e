"""Exceptions and warnings. All other errors are a TypeError or a ValueError, raised before data are read."""


class EntropyError(RuntimeError):
    """Raised if the operating system or the cipher provided no randomness. No value was released.

    There is no fallback to a weaker source.
    """


class BudgetError(RuntimeError):
    """Raised if a release does not fit the budget of a `dpfast.Ledger`. No value was released and no data were read."""


class PrivacyWarning(UserWarning):
    """Public parameters hardly protect anyone, such as an epsilon above 20. It never depends on data."""


class UtilityWarning(UserWarning):
    """Public parameters make a release inaccurate, as a coarse grid or too few records do. It never depends on data."""
