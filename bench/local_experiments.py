"""The experiments of Duchi, Jordan and Wainwright 2018: ``python -m bench.local_experiments`` (`pages`).

Writes docs/results/local_experiments.md and .svg in a few minutes, with fixed seeds. Data files are read from the
folder ``DPFAST_DATA``; without them every experiment runs on made-up data of the same shape.
"""

import math

from bench import pages
from bench.pages import local_densities, local_logistic, local_marginals, local_means

SECTIONS = {
    "marginals": local_marginals.section,
    "pay": local_means.section,
    "logistic": local_logistic.section,
    "densities": local_densities.section,
}


def lines_of(rows, line, x, y):
    """The points of each line by its name, in the order of the rows."""
    found = {}
    for row in rows:
        found.setdefault(row[line], []).append((row[x], row[y]))
    return {name: tuple(zip(*points, strict=True)) for name, points in found.items()}


def figure(quick, path):
    """Figures 1, 5, 6 and 7 of the paper: one panel each."""
    shares, logistic = local_marginals.rows(quick), local_logistic.rows(quick)
    table_of_shares = shares[0][0]
    people, n = max((row[0], row[1]) for row in logistic if row[0] == logistic[-1][0])
    panels = {
        f"shares, {table_of_shares}": (
            "n",
            "largest error",
            lines_of([row for row in shares if row[0] == table_of_shares], 3, 2, 4),
        ),
        "mean pay, epsilon = 1": (
            "assumed moment k",
            "error / mean",
            lines_of([row for row in local_means.mean_rows(quick) if row[0] == 1], 2, 1, 3),
        ),
        "median pay, epsilon = 1": (
            "width of the bounds, r",
            "excess risk / median",
            lines_of(local_means.median_rows(quick), 1, 0, 2),
        ),
        f"logistic regression, {people}, n = {n:,}": (
            "epsilon",
            "excess risk",
            lines_of(
                [(*row[:5], row[5][0]) for row in logistic if row[:2] == (people, n) and row[3] < math.inf], 4, 3, 5
            ),
        ),
    }
    drawn, axes = pages.pyplot().subplots(2, 2, figsize=(8, 6), layout="constrained")
    for ax, (title, (x, y, lines)) in zip(axes.flat, panels.items(), strict=True):
        for name, points in lines.items():
            ax.loglog(*points, label=name, marker=".")
        places = sorted({place for points in lines.values() for place in points[0]})
        ax.set_xticks(places, [f"{place:,g}" for place in places])
        ax.set_xticks([], minor=True)
        ax.set(title=title, xlabel=x, ylabel=y)
        ax.legend(frameon=False)
    pages.save(drawn, path)


def main(arguments=None):
    pages.write(
        "local_experiments",
        "Local privacy: the published experiments",
        SECTIONS,
        figure=figure,
        caption="Figures 1, 5, 6 and 7 of Duchi, Jordan and Wainwright",
        arguments=arguments,
    )


if __name__ == "__main__":
    main()
