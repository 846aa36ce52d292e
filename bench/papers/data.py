"""The data files of the benchmarks: ``python -m bench.papers.data --fetch FOLDER`` and ``--check FOLDER``.

`find` returns the path of a file, or None: every benchmark then uses made-up data, and its page says so. A file is
right if it has the SHA-256 of the prepared file, or if its rows have, in any order: `--fetch` makes these rows from the
public source again, and keeps numbers only, no names of people and no titles. Files whose preparation the source does
not determine (an archive of R, a vocabulary cut at ties) cannot be fetched; they are checked only.
"""

import argparse
import csv
import gzip
import hashlib
import io
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

VARIABLE = "DPFAST_DATA"
SUBSTANCES = (
    "alcohol", "amphetamine", "amyl_nitrite", "benzos", "caffeine", "cannabis", "chocolate", "cocaine", "crack",
    "ecstasy", "heroin", "ketamine", "legal_highs", "lsd", "methadone", "mushrooms", "nicotine", "semeron_fictitious",
    "volatile",
)  # fmt: skip
CAMPUSES = ("Riverside", "Santa_Cruz", "Merced", "UCOP")
PAY = ("year", "campus", "title_code", "gross", "base", "overtime")


class WrongData(Exception):
    """A file is not the one that the benchmarks were made with, or cannot be fetched."""


@dataclass(frozen=True)
class DataFile:
    """A data file: the SHA-256 of the prepared file and of its sorted rows, its sources, and how rows are made of them.

    sources: addresses. rows: a function of the texts of the sources, returns rows of numbers. header: the names of the
    columns. ignored: columns that do not count for the second hash, because the source does not determine them.
    """

    name: str
    sha256: str
    content: str = ""
    sources: Sequence[str] = ()
    rows: Callable[[Iterable[bytes]], Iterable[Sequence[int]]] | None = None
    header: Sequence[str] = ()
    ignored: frozenset[str] = field(default_factory=frozenset)


def raw(repository: str, commit: str, path: str) -> str:
    return f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"


def consumption(texts: Iterable[bytes]) -> Iterable[list[int]]:
    """UCI "Drug consumption (quantified)": the 19 substances, CL0 (never) to CL6 (last day)."""
    [text] = texts
    for line in text.decode().splitlines():
        yield [int(cell.removeprefix("CL")) for cell in line.replace(",", " ").split()[-len(SUBSTANCES) :]]


def dollars(amount: str) -> int:
    return int(Decimal(amount.replace(",", "")).quantize(Decimal(1), ROUND_HALF_EVEN))


def pay(texts: Iterable[bytes]) -> Iterable[list[int]]:
    """Pay of the University of California: year, campus, gross, base and overtime in dollars; titles are left out."""
    for text in texts:
        for record in json.loads(text)["records"]:
            amounts = (dollars(record[f"{kind}pay"]) for kind in ("gross", "base", "overtime"))
            campus = CAMPUSES.index(record["location"].replace(" ", "_"))
            yield [int(record["year"]), campus, 0, *amounts]


FILES = (
    DataFile(
        "uc_pay_2010_2023.csv.gz",
        "11f81c2843cdc37d8f079ce5f092009e9abcfc034d0aee6dc2da4aa68333b58b",
        "a5ba89575b2f2e558161fcfd315e69f824d954aa0b3f6fe6f6a86eb8c3b98844",
        tuple(
            raw(
                "ucinvestments/UC-wages",
                "7d92b9a382524378e30d87d7ab325182499834a0",
                f"data/{campus}/wages_{year}.json",
            )
            for year in range(2010, 2024)
            for campus in CAMPUSES
        ),
        pay,
        PAY,
        frozenset({"title_code"}),
    ),
    DataFile(
        "drug_consumption_uci.csv.gz",
        "4488a63947ea98f6e899eb6f314ca750a09384588baf7e1aab5b889dc959f9d7",
        "416ec0b527dde706661c7f6db91f9067e7bb78324f8c64d3a11e457f63840382",
        (
            raw(
                "Magitoneu/drug-consumption",
                "2582099afce67ba70166da00d46acb33dd9db02a",
                "drug_consumption.data",
            ),
        ),
        consumption,
        SUBSTANCES,
    ),
    DataFile("nsduh2014_pain_relievers.csv.gz", "ee504320d9a6c5aac3a086b934b325f8f5806f6cd5b57895b7bf4dab3b8622f8"),
    DataFile("sms_spam_words.npz", "7c8349827fd73f6b0049377b64cc7abf74cd2d8c4fcd5d7a7253b0139174d123"),
    DataFile("adult.csv.gz", "94faf78a2241ddcc2d277d5be6eeba739cdd7de4ee5f465b7cfeb6993418d6fd"),
    DataFile("adult_binary.npz", "efc4f2a846d95397e8667f6a21e9460cf3272539d798c5587296ee0fb27d48b6"),
)


def folder() -> Path:
    """The folder of the data files, which are not part of the repository."""
    return Path(os.environ.get(VARIABLE, Path(__file__).resolve().parents[3] / "shared" / "data"))


def find(name: str) -> Path | None:
    """The file of this name in the folder of the data files, or None."""
    path = folder() / name
    return path if path.exists() else None


def content_hash(file: DataFile, path: Path) -> str:
    """The SHA-256 of the sorted rows of a compressed table, without the ignored columns."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as table:
        rows = list(csv.reader(table))
    if not rows or tuple(rows[0]) != tuple(file.header):
        raise WrongData(f"{path}: the columns are not {', '.join(file.header)}")
    kept = [i for i, name in enumerate(file.header) if name not in file.ignored]
    lines = sorted(",".join(row[i] for i in kept) for row in rows[1:])
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def check(file: DataFile, path: Path) -> str:
    """Say how a file was recognised; raises `WrongData` if it is not right."""
    if hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256:
        return "the prepared file"
    if file.content:
        try:
            if content_hash(file, path) == file.content:
                return "the rows of the prepared file"
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise WrongData(f"{path}: not a compressed table ({error})") from None
    raise WrongData(f"{path}: SHA-256 does not match; remove the file, or fetch it again")


def download(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return bytes(answer.read())
    except (urllib.error.URLError, OSError) as error:
        raise WrongData(
            f"{address}: cannot be read ({error}); without network, copy the file into the folder"
        ) from None


def fetch(file: DataFile, folder: Path, read: Callable[[str], bytes] = download) -> str:
    """Make a file from its sources and check it; the file appears only if it is right."""
    path = folder / file.name
    if path.exists():
        return f"is there: {check(file, path)}"
    if file.rows is None:
        raise WrongData(f"{path}: cannot be made from a public source by this script; made-up data are used instead")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(file.header)
    writer.writerows(file.rows(map(read, file.sources)))
    new = path.with_suffix(".new")
    new.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    try:
        found = check(file, new)
    except WrongData:
        new.unlink()
        raise WrongData(f"{path}: the source has changed: SHA-256 of its rows does not match") from None
    new.rename(path)
    return f"fetched: {found}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each file; return 1 if a file is wrong or could not be fetched."""
    parser = argparse.ArgumentParser(prog="python -m bench.papers.data", description="Data files of the benchmarks.")
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--fetch", type=Path, metavar="FOLDER", help="make missing files from their sources")
    group.add_argument("--check", type=Path, metavar="FOLDER", help="compare files with their SHA-256")
    parser.add_argument("--only", action="append", choices=[file.name for file in FILES], help="may be repeated")
    options = parser.parse_args(arguments)
    failed = False
    for file in FILES:
        if options.only and file.name not in options.only:
            continue
        try:
            if options.fetch:
                options.fetch.mkdir(parents=True, exist_ok=True)
                print(f"{file.name} {fetch(file, options.fetch)}", flush=True)
            elif (options.check / file.name).exists():
                print(f"{file.name} is right: {check(file, options.check / file.name)}", flush=True)
            else:
                print(f"{file.name} is missing: made-up data are used instead", flush=True)
        except WrongData as error:
            failed = True
            print(error, file=sys.stderr, flush=True)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
