"""Stands in for python-flint where it has no wheels: installed as `flint`, it skips the test that calls it."""

import pytest


class Missing:
    def __init__(self, *_: object, **__: object) -> None:
        pytest.skip("python-flint has no wheel for this platform")


class Context:
    def __getattr__(self, name: str) -> object:
        pytest.skip("python-flint has no wheel for this platform")

    def __setattr__(self, name: str, value: object) -> None:
        pytest.skip("python-flint has no wheel for this platform")


acb = acb_mat = arb = arb_mat = arb_poly = fmpq = fmpz = fmpz_poly = Missing
ctx = Context()
