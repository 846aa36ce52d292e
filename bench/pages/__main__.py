"""The command ``python -m bench.pages NAME``: write a page of docs/results, and its figure.

``--quick`` uses small sizes and prints the sections, as a smoke test; ``--only`` prints one section; ``--output``
writes to another folder. With fixed seeds every run writes the same page: "efficiency" in about half an hour, most of
it for the coverages, "accuracy" in ten minutes, the others in a few. It fails if a figure exceeds its limit. Columns of
other libraries that are not installed are left out: ``pip install diffprivlib 'opendp[scikit-learn]'``.
"""

import argparse
from pathlib import Path

from bench.pages import (
    Page,
    accuracy_method,
    coverage,
    depth_accuracy,
    likelihood_accuracy,
    likelihood_methods,
    line_accuracy,
    linear_accuracy,
    location_accuracy,
    noise_errors,
    noise_scales,
    peer_accuracy,
    quantile_accuracy,
    regression_texts,
    robust_accuracy,
    synthetic_columns,
    write,
)

PAGES = {
    "accuracy": Page(
        "Accuracy",
        {
            "answer": location_accuracy.answer,
            "center": location_accuracy.center_of_symmetry,
            "smooth": location_accuracy.smooth,
            "peers": peer_accuracy.section,
            "quantiles": quantile_accuracy.section,
            "robust": robust_accuracy.section,
            "method": accuracy_method.method,
            "everything": location_accuracy.everything,
        },
        location_accuracy.figure,
        "Noise of the median and the trimmed mean against n",
    ),
    "efficiency": Page(
        "Private maximum likelihood: how close to the best estimator",
        {
            "families": likelihood_accuracy.families,
            "methods": likelihood_methods.section,
            "coverage": coverage.section,
            "ends": likelihood_accuracy.ends,
            "wide": likelihood_accuracy.wide_ranges,
            "regression": likelihood_accuracy.regression,
        },
        likelihood_accuracy.figure,
        "Excess of the mean squared error over that of the best estimator without privacy, by theory",
    ),
    "noise": Page(
        "Noise at equal guarantees",
        {"columns": noise_errors.columns, "integers": noise_errors.integers, "gaussian": noise_scales.gaussian},
        noise_errors.figure,
        "Noise of a coordinate against the number of columns",
    ),
    "regressions": Page(
        "Regressions",
        {
            "choice": regression_texts.choice,
            "lines": line_accuracy.lines,
            "linear": linear_accuracy.section,
            "outliers": linear_accuracy.outliers,
            "pay": line_accuracy.pay,
            "logistic": regression_texts.logistic,
            "multinomial": regression_texts.multinomial,
        },
        line_accuracy.figure,
        "Error of a line against n",
    ),
    "robust": Page(
        "Robust means in the Euclidean norm",
        {"methods": depth_accuracy.methods, "columns": depth_accuracy.columns, "method": depth_accuracy.method},
        depth_accuracy.figure,
        "Error of private robust means of two correlated columns against n",
    ),
    "tables": Page(
        "Synthetic records: distances from the data",
        {
            "tables": synthetic_columns.tables,
            "classifiers": synthetic_columns.classifiers,
            "column": synthetic_columns.one_column,
        },
        synthetic_columns.figure,
        "Distance of the pairs of synthetic tables against epsilon",
    ),
}


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.pages", description="Writes a page of docs/results.")
    parser.add_argument("name", choices=PAGES)
    parser.add_argument("--only", action="append", metavar="SECTION", help="print a section; may be repeated")
    parser.add_argument("--quick", action="store_true", help="small and few data sets: a smoke test, printed")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="write to this folder instead of docs/results")
    options = parser.parse_args(arguments)
    if unknown := set(options.only or ()) - {*PAGES[options.name].sections, "figure"}:
        parser.error(f"{options.name} has no section {', '.join(sorted(unknown))}")
    write(options.name, PAGES[options.name], options)


if __name__ == "__main__":
    main()
