"""Many short cases in one test: a test of each would take longer to set up and to report than to run."""

import functools
import inspect
from contextlib import ExitStack

import pytest

FAULTS = (Exception, pytest.fail.Exception)
Named = type(pytest.param())


def every(names, cases, ids=repr):
    """Run a test on each case, as `pytest.mark.parametrize` does, but within one test.

    All cases run, then the failures are raised together, each with a note of its case. Each case has its own folder
    `tmp_path` and its own `monkeypatch`. The test is skipped if all of its cases are. Cases have no marks.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = [values_of(case, len(names)) for case in cases]
    if not cases:
        raise ValueError(f"no cases of {', '.join(names)}")

    def decorate(test):
        @functools.wraps(test)
        def run(*args, **fixtures):
            failures, skips = [], []
            for number, (label, case) in enumerate(cases):
                values = dict(zip(names, case, strict=True))
                with ExitStack() as stack:
                    try:
                        test(*args, **own(fixtures, number, stack), **values)
                    except pytest.skip.Exception as skip:
                        skips.append(skip)
                    except FAULTS as error:
                        error.add_note(f"case {number}: {label or ', '.join(str(ids(value)) for value in case)}")
                        failures.append(error)
            raise_all(failures, len(cases))
            if len(skips) == len(cases):
                raise skips[0]

        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in names]
        assert len(kept) == len(signature.parameters) - len(names), (names, signature)
        run.__signature__ = signature.replace(parameters=kept)
        return run

    return decorate


def values_of(case, width):
    """The name of a case, None unless `pytest.param` gives one, and its values, of as many names as the width."""
    if not isinstance(case, Named):
        return None, case if width > 1 else (case,)
    if case.marks:
        raise ValueError(f"a case of several in one test has no marks: {case}")
    return case.id, case.values


def own(fixtures, number, stack):
    """The fixtures of a case: a folder and patches of its own."""
    fixtures = dict(fixtures)
    if "tmp_path" in fixtures:
        fixtures["tmp_path"] = fixtures["tmp_path"] / str(number)
        fixtures["tmp_path"].mkdir()
    if "monkeypatch" in fixtures:
        fixtures["monkeypatch"] = stack.enter_context(fixtures["monkeypatch"].context())
    return fixtures


def raise_all(failures, cases):
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {cases} cases fail", failures)
