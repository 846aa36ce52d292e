"""The search for the least sufficient number."""

import pytest

from dpfast.core.least import least
from tests.cases import every


def test_finds_every_threshold_and_asks_only_of_numbers_from_one():
    for threshold in range(1, 300):
        asked = []
        assert least(lambda n, t=threshold, asked=asked: asked.append(n) or n >= t) == threshold
        assert min(asked) >= 1
        assert len(asked) <= 2 * threshold.bit_length() + 1


@every("threshold", [1, 2, 199, 1000, 123_456, 10**9 + 7])
def test_an_inexact_search_is_enough_and_within_one_in_200(threshold):
    asked = []
    found = least(lambda n: asked.append(n) or n >= threshold, exact=False)
    assert threshold <= found <= threshold * 201 / 200 + 1
    assert len(asked) <= threshold.bit_length() + 10


@pytest.mark.parametrize("exact", [True, False])
def test_gives_up_beyond_the_greatest(exact):
    assert least(lambda n: n >= 64, most=64, too_many="too many") == 64
    with pytest.raises(ValueError, match="too many"):
        least(lambda n: n >= 65, most=64, too_many="too many", exact=exact)
