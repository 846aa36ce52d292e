"""A test of many cases runs all of them, names those that fail, and gives each its own folder and patches."""

import os

import pytest

from tests.cases import every

SEEN = set()


def test_all_cases_run_and_failures_are_named():
    seen = []

    @every("x, y", [(1, 1), (2, 1), (3, 3), (4, 0)])
    def equal(x, y):
        seen.append(x)
        assert x == y

    with pytest.raises(BaseExceptionGroup, match="2 of 4 cases fail") as caught:
        equal()
    assert seen == [1, 2, 3, 4]
    assert [error.__notes__ for error in caught.value.exceptions] == [["case 1: 2, 1"], ["case 3: 4, 0"]]


def test_one_failure_is_raised_as_it_is():
    @every("message", ["here", "there"], ids=str.upper)
    def raising(message):
        with pytest.raises(ValueError, match="not here"):
            raise ValueError(f"not {message}")

    with pytest.raises(AssertionError) as caught:
        raising()
    assert caught.value.__notes__ == ["case 1: THERE"]

    @every("number", [1])
    def warning(number):
        with pytest.warns(UserWarning, match="never"):
            pass

    with pytest.raises(pytest.fail.Exception):
        warning()


@every("a", [1, 2])
@pytest.mark.parametrize("c", [5])
@every("b", [3, 4])
def test_decorators_add_up(a, b, c, tmp_path, monkeypatch):
    assert list(tmp_path.iterdir()) == []
    assert "DPFAST_CASE" not in os.environ
    (tmp_path / "file").touch()
    monkeypatch.setenv("DPFAST_CASE", "1")
    SEEN.add((a, b, c))
    if (a, b) == (2, 4):
        assert len(SEEN) == 4


def test_skips():
    @every("x", [1, 2])
    def one(x):
        if x == 1:
            pytest.skip("no library")

    @every("x", [1, 2])
    def both(x):
        pytest.skip("no library")

    one()
    with pytest.raises(pytest.skip.Exception):
        both()


def test_named_cases():
    seen = []

    @every("x, y", [pytest.param(1, 2, id="first"), (3, 4)])
    def failing(x, y):
        seen.append((x, y))
        raise LookupError

    with pytest.raises(BaseExceptionGroup) as caught:
        failing()
    assert seen == [(1, 2), (3, 4)]
    assert [error.__notes__ for error in caught.value.exceptions] == [["case 0: first"], ["case 1: 3, 4"]]


def test_misuse_is_refused():
    with pytest.raises(ValueError, match="has no marks"):
        every("x", [pytest.param(1, marks=pytest.mark.slow)])
    with pytest.raises(ValueError, match="no cases of x"):
        every("x", [])
    with pytest.raises(AssertionError):
        every("y", [1])(lambda x: None)
    with pytest.raises(ValueError, match="zip"):
        every("x, y", [(1,)])(lambda x, y: None)()
