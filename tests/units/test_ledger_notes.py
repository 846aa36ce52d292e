"""What is noted of charges, and sums by it."""

import json
import time

import numpy as np
import pytest

import dpfast as dpf
from dpfast import Ledger, Privacy, PrivacyProfile
from dpfast.ledger import Charge, Note
from dpfast.ledger.journal import NOTED, charge_from_json, charge_to_json
from tests.releases import MEDIAN, X

TENTH = PrivacyProfile(Privacy("1/10"))


def today():
    return time.strftime("%Y-%m-%d", time.gmtime())


def test_every_charge_has_its_day_and_what_the_blocks_around_say():
    ledger, before = Ledger(10), today()
    ledger.reserve(TENTH)
    with ledger.noting(source="payroll", purpose="draft"):
        ledger.release(MEDIAN, X)
        with ledger.noting(column="pay", purpose="report"), ledger:
            dpf.mean(X, bounds=(0, 100), epsilon=0.5)
            dpf.interval("median", X, bounds=(0, 100), epsilon=0.5)
        ledger.reserve(TENTH)
    notes = [charge.note for charge in ledger.charges]
    assert {note.day for note in notes} <= {before, today()}
    assert [(note.column, note.source, note.purpose) for note in notes] == [
        (None, None, None),
        (None, "payroll", "draft"),
        ("pay", "payroll", "report"),
        ("pay", "payroll", "report"),
        (None, "payroll", "draft"),
    ]
    assert notes[2] is notes[3]  # so that a charge needs no further memory


def test_sums_by_notes_are_those_of_the_ledger(tmp_path):
    for given in ({"epsilon": 10}, {"rho": 10}, {"epsilon": 5, "delta": 1e-6, "composition": "renyi"}):
        for path in (None, tmp_path / f"{len(given)}{sorted(given)[-1]}.json"):
            ledger = Ledger(**given, path=path)
            for column, times in (("b", 2), (None, 1), ("a", 3), ("b", 4)):
                with ledger.noting(column=column):
                    ledger.reserve(TENTH, times=times)
            if path is not None:
                ledger = Ledger.open(path)
            table = ledger.spent_by("column")
            assert table.to_columns()["column"] == ["b", "a", None]  # as first noted; those without a note last
            assert dict(table.releases) == {"b": 6, "a": 3, None: 1}
            unit = ledger.spent.unit
            sums = [privacy.amount for privacy in table.spent.values()]
            assert sum(sums) == pytest.approx(ledger.spent.amount, rel=1e-15)
            assert table["b"].amount == pytest.approx(2 * table["a"].amount, rel=1e-15)
            assert {privacy.unit for privacy in table.spent.values()} == {unit}
            [whole] = ledger.spent_by("day").spent.values()
            assert whole == ledger.spent
            assert list(ledger.spent_by("purpose").spent) == [None]
            assert f"a: {unit} = " in str(table)
            assert "without a column: " in str(table)


def test_notes_outlive_the_process_and_json():
    ledger = Ledger(1, neighbors="add-remove", per_unit=3)
    with ledger.noting(column="ä", source="s", purpose="p"):
        ledger.reserve(PrivacyProfile(Privacy(0.01, neighbors="add-remove")), times=2)
    again = Ledger.from_json(ledger.to_json())
    assert again.charges == ledger.charges
    assert [charge.note for charge in again.charges] == [charge.note for charge in ledger.charges]
    assert ledger.to_columns()["column"] == ["ä"]


def test_charges_without_notes_are_read():
    fields = charge_to_json(Charge("old", TENTH))
    assert not fields.keys() & set(NOTED)
    assert charge_from_json(fields).note == Note()
    assert charge_from_json({**fields, "day": "2026-01-31"}) == Charge("old", TENTH)


def test_a_declared_cost_is_labelled_as_the_release_of_its_mechanism():
    ledger = Ledger(2)
    ledger.release(MEDIAN, X)
    for cost, label in ((MEDIAN, {}), (Privacy(0.25), {}), (MEDIAN.privacy_profile, {}), (MEDIAN, {"label": "mine"})):
        with ledger.spend(cost, **label):
            pass
    assert [charge.label for charge in ledger.charges] == [repr(MEDIAN), repr(MEDIAN), "declared", "declared", "mine"]


@pytest.mark.parametrize("name", NOTED)
def test_notes_are_text(name):
    with pytest.raises(ValueError, match=f"not a charge: {name} must be text"):
        charge_from_json({**charge_to_json(Charge("x", TENTH)), name: 3})


def test_other_notes_are_refused():
    ledger = Ledger(1)
    with pytest.raises(TypeError, match="column must be text or None, not int"):
        ledger.noting(column=3)

    class Text(str):
        pass

    with pytest.raises(TypeError, match="purpose must be text or None, not Text"):
        ledger.noting(purpose=Text("x"))
    with pytest.raises(ValueError, match="what must be one of 'day', 'column', 'source', 'purpose'"):
        ledger.spent_by("month")
    assert ledger.spent_by("day").to_columns()["day"] == []
    assert str(ledger.spent_by("day")).endswith("(the number of records is public)")


def test_a_damaged_copy_is_refused_as_before():
    ledger = Ledger(1)
    ledger.reserve(TENTH, times=10)
    fields = json.loads(ledger.to_json())
    for change in ({"times": 11}, {"neighbors": "add-remove"}):
        damaged = {**fields, "charges": [{**fields["charges"][0], **change}]}
        with pytest.raises(ValueError, match="damaged"):
            Ledger.from_json(json.dumps(damaged))


def test_tables_note_their_columns(tmp_path):
    columns = {"pay": np.arange(100.0), "tax": np.arange(100.0)}
    ledger = Ledger(10)
    facts = {"bounds": (0, 100), "missing": "half"}
    table = dpf.Table(columns, ledger=ledger, columns={"pay": facts, "tax": facts})
    table.median("pay", epsilon=1)
    with ledger.noting(purpose="report"):
        table.interval("mean", "tax", epsilon=0.5)
        table.linear_regression(["pay"], "tax", radius=100, epsilon=0.25)
    spent = ledger.spent_by("column").spent
    assert {name: privacy.epsilon for name, privacy in spent.items()} == {"pay": 1, "tax": 0.5, "pay, tax": 0.25}
    assert ledger.spent_by("purpose")["report"].epsilon == 0.75
    file = tmp_path / "records.csv"
    file.write_text("pay\n" + "\n".join(map(str, range(100))))
    dpf.Table(str(file), ledger=ledger).median("pay", bounds=(0, 100), epsilon=1)
    assert ledger.spent_by("source")[str(file)].epsilon == 1
