"""The harnesses: functions `check_NAME` in C, and beside each C file the list of them, with their controls."""

import importlib
import pkgutil

from assurance.kernels.case import Case


def all_cases() -> list[Case]:
    """The cases of all modules of this package, in the order of the modules."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return [case for name in names for case in importlib.import_module(f"{__name__}.{name}").CASES]
