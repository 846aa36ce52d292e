"""What `audit.verify` cannot check says what to pass or to use, by public names."""

import dataclasses
import re

import pytest

import dpfast as dpf
from dpfast import Grid, audit
from tests.cases import every
from tests.kinds import TookTooLong, ended_within
from tests.releases import LOCAL, MECHANISMS

GRID = Grid(0, 8, step=1)
ADVICE = r"audit\.(distinguish|lipschitz)|grids=|coarser grid"
PRIVATE = r"\b_[a-z]|<|object at|list index|not iterable"


@pytest.mark.parametrize("grids", [None, GRID, [GRID], [GRID] * 2], ids=["own", "numbers", "a column", "two columns"])
@every("mechanism", [*MECHANISMS, *LOCAL])
def test_every_mechanism_is_verified_or_says_what_to_pass(mechanism, grids):
    try:
        with ended_within(0.3):
            found = audit.verify(mechanism, n=1, values=2, grids=grids, ordered=getattr(mechanism, "ordered", False))
    except TookTooLong:
        return
    except (TypeError, ValueError) as error:
        text = str(error)
        assert re.search(ADVICE, text), text
        assert type(mechanism).__name__ in text, text
        assert not re.search(PRIVATE, text), text
    else:
        assert found.holds


@every("grid", [Grid(0, 100), Grid(-5, 10, step=2.0**-20), Grid(0, 2.0**30, step=1)], ids=repr)
def test_the_advice_on_a_fine_grid_is_verified_at_once(grid):
    median = dpf.InverseSensitivity(dpf.statistics.Median(), grid=grid, epsilon=1.0)
    with pytest.raises(ValueError, match="verify the same code on a coarser grid, ") as refused:
        audit.verify(median)
    coarser = re.search(r"(dataclasses\.replace\(.*\)), or use", str(refused.value))[1]
    mechanism = eval(coarser, {"dataclasses": dataclasses, "dpf": dpf, "mechanism": median})
    assert 500 <= mechanism.grid.size <= 1002
    assert audit.verify(mechanism, n=2, values=2).holds


def test_sums_of_records_need_no_grids():
    """Their grids are those of functions of a number, not of columns."""
    sums = dpf.SufficientStatistics("poisson", bounds=(1.0, 90.0), epsilon=1.0)
    assert audit.verify(sums, n=2, values=2).holds


def test_sums_of_functions_of_records_need_grids():
    sums = dpf.SufficientStatistics("gamma", bounds={"shape": (1, 9), "scale": (1, 3)}, epsilon=1.0)
    with pytest.raises(TypeError, match=r"give grids=.* SufficientStatistics has no grid.* use audit\.distinguish"):
        audit.verify(sums)


def test_scores_are_no_records():
    with pytest.raises(TypeError, match=r"Selection takes scores, not records: .* by audit\.lipschitz"):
        audit.verify(dpf.Selection(epsilon=1.0), grids=GRID)
