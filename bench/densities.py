"""Histograms and series: ``python -m bench.densities`` writes docs/results/densities.md and .svg (`pages`).

Fixed seeds: the same page from run to run, in a few minutes. It fails where a figure is not what it should be.
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
