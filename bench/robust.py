"""Robust means in l2: ``python -m bench.robust`` writes docs/results/robust.md and .svg (`pages`), in two minutes."""

from bench import pages
from bench.pages import depth_accuracy

SECTIONS = {
    "methods": depth_accuracy.methods,
    "columns": depth_accuracy.columns,
    "method": depth_accuracy.method,
}


def main(arguments=None):
    pages.write(
        "robust",
        "Robust means in the Euclidean norm",
        SECTIONS,
        figure=depth_accuracy.figure,
        caption="Error of private robust means of two correlated columns against n",
        arguments=arguments,
    )


if __name__ == "__main__":
    main()
