"""Sample and aggregate: ``python -m bench.efficiency`` writes docs/results/efficiency.md and .svg (`pages`).

With fixed seeds every run writes the same page, in about half an hour, most of it for the coverages. It fails if a
figure exceeds its limit.
"""

from bench import pages
from bench.pages import coverage, likelihood_accuracy, likelihood_methods

SECTIONS = {
    "families": likelihood_accuracy.families,
    "methods": likelihood_methods.section,
    "coverage": coverage.section,
    "ends": likelihood_accuracy.ends,
    "wide": likelihood_accuracy.wide_ranges,
    "regression": likelihood_accuracy.regression,
}


def main(arguments=None):
    pages.write(
        "efficiency",
        "Private maximum likelihood: how close to the best estimator",
        SECTIONS,
        figure=likelihood_accuracy.figure,
        caption="Excess of the mean squared error over that of the best estimator without privacy, by theory",
        arguments=arguments,
    )


if __name__ == "__main__":
    main()
