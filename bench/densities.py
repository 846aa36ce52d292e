"""Histograms and series: ``python -m bench.densities`` writes docs/results/densities.md and .svg (`pages`).

With fixed seeds every run writes the same page, in a few minutes. It fails if a figure differs from the expected one.
"""

from bench import pages
from bench.pages import histogram_accuracy, kolmogorov_accuracy, series_accuracy

SECTIONS = {
    "histogram": histogram_accuracy.errors,
    "rates": histogram_accuracy.rates,
    "kolmogorov": kolmogorov_accuracy.section,
    "series": series_accuracy.section,
}


def main(arguments=None):
    pages.write(
        "densities",
        "Densities under privacy: the published simulation and the rates",
        SECTIONS,
        figure=histogram_accuracy.figure,
        caption="Figure 1 of Wasserman and Zhou: error against bins",
        arguments=arguments,
    )


if __name__ == "__main__":
    main()
