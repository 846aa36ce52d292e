"""The data files of the benchmarks: made from their sources, recognised by their hashes, refused otherwise."""

import gzip
import hashlib
import json
import urllib.error
from dataclasses import replace

import pytest

from bench.papers import data

CONSUMPTION = b"1 0.49788 -0.31685 " + b"CL5 CL2 CL0 CL2 CL6 CL0 CL5 CL0 CL0 CL0 CL0 CL0 CL0 CL0 CL0 CL0 CL2 CL0 CL0\n"
WAGES = json.dumps(
    {
        "records": [
            {
                "year": "2010",
                "location": place,
                "grosspay": gross,
                "basepay": "4,499.99",
                "overtimepay": "170.50",
                "lastname": "SOMEBODY",
                "title": "ASSISTANT I",
            }
            for place, gross in (("UCOP", "5,274.50"), ("Santa Cruz", "-226.00"))
        ]
    }
).encode()


def made(rows, header, *, ignored=()):
    """A file whose content hash is that of the given rows."""
    kept = [i for i, name in enumerate(header) if name not in ignored]
    lines = sorted(",".join(str(row[i]) for i in kept) for row in rows)
    content = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return data.DataFile(
        "table.csv.gz", "0" * 64, content, ("https://a/1",), data.consumption, header, frozenset(ignored)
    )


SUBSTANCES = made([[5, 2, 0, 2, 6, 0, 5, *[0] * 9, 2, 0, 0]], data.SUBSTANCES)


def test_rows_of_sources():
    assert list(data.consumption([CONSUMPTION])) == [[5, 2, 0, 2, 6, 0, 5, *[0] * 9, 2, 0, 0]]
    assert list(data.pay([WAGES])) == [[2010, 3, 0, 5274, 4500, 170], [2010, 1, 0, -226, 4500, 170]]


def test_a_file_that_is_fetched_is_right_and_holds_numbers_only(tmp_path):
    assert data.fetch(SUBSTANCES, tmp_path, lambda address: CONSUMPTION) == "fetched: the rows of the prepared file"
    assert data.fetch(SUBSTANCES, tmp_path).startswith("is there")
    text = gzip.decompress((tmp_path / "table.csv.gz").read_bytes()).decode()
    assert text == ",".join(data.SUBSTANCES) + "\n5,2,0,2,6,0,5,0,0,0,0,0,0,0,0,0,2,0,0\n"
    wages = replace(made(list(data.pay([WAGES])), data.PAY, ignored={"title_code"}), rows=data.pay, name="pay.csv.gz")
    data.fetch(wages, tmp_path, lambda address: WAGES)
    assert b"SOMEBODY" not in gzip.decompress((tmp_path / "pay.csv.gz").read_bytes())


def test_a_source_that_has_changed_is_refused(tmp_path):
    with pytest.raises(data.WrongData, match="the source has changed"):
        data.fetch(SUBSTANCES, tmp_path, lambda address: CONSUMPTION.replace(b"CL5", b"CL4", 1))
    assert list(tmp_path.iterdir()) == []


def test_rows_count_in_any_order_and_every_number_counts(tmp_path):
    rows = [[i, *[0] * 18] for i in range(5)]
    file, path = made(rows, data.SUBSTANCES), tmp_path / "table.csv.gz"
    for order, right in ((rows[::-1], True), ([*rows[:-1], [3, *[0] * 18]], False)):
        lines = "\n".join(",".join(map(str, row)) for row in (data.SUBSTANCES, *order))
        path.write_bytes(gzip.compress(lines.encode()))
        if right:
            assert data.check(file, path) == "the rows of the prepared file"
        else:
            with pytest.raises(data.WrongData, match="SHA-256 does not match"):
                data.check(file, path)


def test_files_as_they_are_and_damaged_files(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(b"not compressed")
    assert data.check(data.DataFile("x", hashlib.sha256(b"not compressed").hexdigest()), path) == "the prepared file"
    with pytest.raises(data.WrongData, match="not a compressed table"):
        data.check(SUBSTANCES, path)
    path.write_bytes(gzip.compress(b"other,columns\n1,2\n"))
    with pytest.raises(data.WrongData, match="the columns are not"):
        data.check(SUBSTANCES, path)


def test_without_network_the_command_fails_with_a_message(tmp_path, monkeypatch, capsys):
    def refuse(address, timeout):
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    assert data.main(["--fetch", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "cannot be read" in error
    assert "copy the file into the folder" in error
    assert "cannot be made from a public source" in error
    assert list(tmp_path.iterdir()) == []


def test_check_reports_missing_and_wrong_files(tmp_path, capsys):
    assert data.main(["--check", str(tmp_path)]) == 0
    assert "made-up data are used instead" in capsys.readouterr().out
    (tmp_path / data.FILES[0].name).write_bytes(b"wrong")
    assert data.main(["--check", str(tmp_path), "--only", data.FILES[0].name]) == 1


def test_find_reads_the_folder_at_each_call(tmp_path, monkeypatch):
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    assert data.find("x.csv") is None
    (tmp_path / "x.csv").touch()
    assert data.find("x.csv") == tmp_path / "x.csv"
