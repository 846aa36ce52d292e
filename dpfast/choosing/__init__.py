"""The choice among mechanisms by public numbers, and the text that says so before a release.

A `Choice` is one of several candidates for the same release, each with a name: the one that is taken, why, what is
known about each, such as its expected errors under public assumptions, and the limits of those that cannot be taken. It
depends on public numbers only, never on data, so that it costs no privacy. The functions that choose make one beside
the mechanisms that they choose among, by the two rules that most of them share: candidates within 2 % of the least
error are as good as the best (`near_least`), and another one than the default must gain 5 % (`gainful`). The guide
lists all rules: https://dpfast.readthedocs.io/en/latest/guides/choosing.html.

``explain=`` tells a choice, and the mechanism that is taken, before records are read or a budget is charged: what will
be released, the guarantee, the parts of the budget, what missing records become, and the error to expect (`explained`).
`dpfast.explain` returns a choice without records.
"""

from dpfast.choosing.choice import Choice, Known, built, gainful, near_least, rounded_down, rounded_up
from dpfast.choosing.explaining import Explain, describe, explain_bounds, explained, split, tell

__all__ = [
    "Choice",
    "Explain",
    "Known",
    "built",
    "describe",
    "explain_bounds",
    "explained",
    "gainful",
    "near_least",
    "rounded_down",
    "rounded_up",
    "split",
    "tell",
]
