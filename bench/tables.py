"""Synthetic records: ``python -m bench.tables`` writes docs/results/tables.md and .svg (`pages`), in a few minutes."""

from bench import pages
from bench.pages import synthetic_columns

SECTIONS = {
    "tables": synthetic_columns.tables,
    "classifiers": synthetic_columns.classifiers,
    "column": synthetic_columns.one_column,
}


def main(arguments=None):
    pages.write(
        "tables",
        "Synthetic records: distances from the data",
        SECTIONS,
        figure=synthetic_columns.figure,
        caption="Distance of the pairs of synthetic tables against epsilon",
        arguments=arguments,
    )


if __name__ == "__main__":
    main()
