"""Regressions: ``python -m bench.regressions`` writes docs/results/regressions.md and .svg (`pages`).

diffprivlib's columns need ``pip install diffprivlib``, OpenDP's ``pip install 'opendp[scikit-learn]'``; they are left
out if these are not installed.
"""

from bench import pages
from bench.pages import line_accuracy, linear_accuracy, regression_texts

SECTIONS = {
    "choice": regression_texts.choice,
    "lines": line_accuracy.lines,
    "linear": linear_accuracy.section,
    "outliers": linear_accuracy.outliers,
    "pay": line_accuracy.pay,
    "logistic": regression_texts.logistic,
    "multinomial": regression_texts.multinomial,
}


def main(arguments=None):
    if linear_accuracy.peer is None:
        print("diffprivlib is not installed: its columns are left out (pip install diffprivlib)")
    pages.write(
        "regressions",
        "Regressions",
        SECTIONS,
        figure=line_accuracy.figure,
        caption="Error of a line against n",
        arguments=arguments,
    )


if __name__ == "__main__":
    main()
