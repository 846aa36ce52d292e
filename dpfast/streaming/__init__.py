"""Releases from data larger than memory or spread over machines: chunks of records, and mergeable states.

A mechanism uses one of a few *readings* of the data, whose summary determines its law:

- `Sums`: exact sums of the codes and of their squares;
- `TransformedSums`: the same for functions of the records;
- `RecordCount`: the number of records;
- `Counts`: a table of counts, of the cells of a histogram or of the nodes of a series;
- `Ranks`: order statistics around public ranks, and the sum between two of them, in one to three passes;
- `Codes`: the grid code of every record, for a law that needs all of them;
- `Values`: the records themselves, for a law that reads the array; in a stream the values of their codes;
- `KeyReading`: the number of records of each distinct key;
- `Columns`: one of these for each column;
- `RowSums`: exact sums, by column, of the codes of rows in a public domain (`dpfast.domains`);
- `RowProducts`: exact sums of the products of the codes in each row;
- `LabelledProducts`: the same for rows with labels.

A record is a number, a row, or a row with a label. Records with labels, or a chunk of them, are a pair (X, y) or a
matrix whose last column has the labels; `Labelled` holds both parts.

`Mechanism.reading` makes the reading, and `Mechanism.law_of` makes the law from its summary, for arrays (`Reading.of`)
and for streams (`State`). A summary is exact and consists of integers (except `Values` of an array). It does not depend
on the chunks or the order of merging, so a release equals the release of the same records in one array, bit for bit for
the same generator.
"""

from dpfast.streaming.chunks import Chunks, known_records, records_of
from dpfast.streaming.columns import Columns, columns_between, shares
from dpfast.streaming.counted import Counted
from dpfast.streaming.keyed import KeyReading
from dpfast.streaming.labelled import Labelled, check_labels_given, labelled_or_chunks, names_of_columns
from dpfast.streaming.ranks import Order, Ordered, PresentRanks, Ranks, Selected, absent_in
from dpfast.streaming.reading import (
    Array,
    Codes,
    CodeSums,
    Counts,
    Gathered,
    PresentSum,
    PresentSums,
    Reading,
    RecordCount,
    Sums,
    Values,
    ascending,
)
from dpfast.streaming.rows import LabelledProducts, ProductSums, RowProducts, RowSums, VectorSums
from dpfast.streaming.state import Begun, State, Streamed
from dpfast.streaming.transformed import ColumnSums, TransformedSums
from dpfast.streaming.wire import Integers

__all__ = [
    "Array",
    "Begun",
    "Chunks",
    "CodeSums",
    "Codes",
    "ColumnSums",
    "Columns",
    "Counted",
    "Counts",
    "Gathered",
    "Integers",
    "KeyReading",
    "Labelled",
    "LabelledProducts",
    "Order",
    "Ordered",
    "PresentRanks",
    "PresentSum",
    "PresentSums",
    "ProductSums",
    "Ranks",
    "Reading",
    "RecordCount",
    "RowProducts",
    "RowSums",
    "Selected",
    "State",
    "Streamed",
    "Sums",
    "TransformedSums",
    "Values",
    "VectorSums",
    "absent_in",
    "ascending",
    "check_labels_given",
    "columns_between",
    "known_records",
    "labelled_or_chunks",
    "names_of_columns",
    "records_of",
    "shares",
]
