"""The choice of a regression, and the section of logistic regressions in docs/results/regressions.md."""

import warnings

from bench import logistic_accuracy, multinomial_accuracy
from bench.pages.populations import DATA
from bench.pages.tables import paragraph, table

CHOICES = (
    """One x: `dpf.theil_sen`. It needs no bounds if n epsilon is at least 300, and outliers do not move it. In the
    table below no other private line is closer by more than 10 %.""",
    """Several columns and a number: `dpf.linear_regression`. It needs bounds on the length of rows or on each column,
    and is better with one on labels, however loose: for columns in different units give `bounds`; clamp columns that
    are in one unit to public bounds, and give the center and the radius of the box. A delta pays from about ten columns
    on.""",
    """The same with outliers of known size: `dpf.glm` with `model="huber"`.""",
    """Labels of two or more classes, counts: `dpf.glm`. A delta reduces the loss several times, but little for two
    classes and up to twenty columns of one scale.""",
    """Each column takes records: `dpf.linear_regression` of p columns needs n epsilon of several hundred times p. Look
    at the standard errors of the fit.""",
    """`dpf.mle` by blocks needs the most records: take it for models that have no method of their own.""",
)


def choice(_quick):
    """Which one when."""
    return "\n".join(["## Which one", "", *(paragraph(text, bullet="- ").rstrip("\n") for text in CHOICES), ""])


def logistic(quick):
    """The points of accuracy lost by logistic regressions, by the settings of `bench.logistic_accuracy`."""
    few = [("normal", 2000, 3, (1.0,), logistic_accuracy.synthetic(2000, 3))]
    every = [
        setting
        for setting in logistic_accuracy.SETTINGS
        if DATA.exists() or not setting[0].startswith(("Adult", "spam"))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the peer
        rows = list(logistic_accuracy.rows(few if quick else every, 2 if quick else 20))
    headings = ["records", "n", "d", "% correct", "epsilon", "`glm`, delta", "`glm`", "diffprivlib"]
    text = f"""Percentage points of correct predictions of new records lost to privacy, relative to scikit-learn without
        penalty, with the standard error in parentheses in units of the last digit: means of 20 samples. "% correct" is
        without privacy. Synthetic rows are normal, with the given deviations of columns, and slopes in a random
        direction; Adult (30,000 records, ten columns or all 120 binary ones) and spambase are split at random, and left
        out if their files are not in the folder DPFAST_DATA. Public: a radius of rows, or in one line bounds of 4
        deviations on columns, for diffprivlib by clamping and scaling the rows before. delta =
        {logistic_accuracy.DELTA:g} where stated, else 0."""
    return "\n".join(["## Logistic regression", "", paragraph(text), table(headings, rows)])


def multinomial(quick):
    """The points of accuracy lost by multinomial regressions, by the settings of `bench.multinomial_accuracy`."""
    settings = [("equal", 2000, 3, 3, 0.0)] if quick else multinomial_accuracy.SETTINGS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the peer
        rows = list(multinomial_accuracy.rows(settings, 2 if quick else 20))
    text = f"""Percentage points of correct predictions lost to privacy by models of K classes, as in the table above.
        Rows are standard normal; the slopes of each class have a random direction and length 1.6. Intercepts are normal
        with deviation 1/2; for unequal classes each has 0.7 less than the one before. Public: the radius sqrt(d) + 1.
        delta = {multinomial_accuracy.DELTA:g} where stated, else 0."""
    return "\n".join(["## Multinomial regression", "", paragraph(text), table(multinomial_accuracy.HEADINGS, rows)])
