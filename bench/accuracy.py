"""Which estimator to use: ``python -m bench.accuracy`` writes docs/accuracy.md and docs/accuracy.svg.

A section is a function ``section(quick) -> str`` of Markdown that starts with its own heading. ``--quick`` runs a few
small data sets and prints, as a smoke test; ``--output`` writes to another folder.
"""

import argparse
from importlib.metadata import version
from pathlib import Path

import dpfast as dpf
from bench import location_accuracy, peer_accuracy, peers, quantile_accuracy, robust_accuracy
from bench.populations import populations
from bench.tables import paragraph

DOCS = Path(__file__).resolve().parents[1] / "docs"


def method(quick):
    """What is public, what is assumed, how it was measured, how to run it again."""
    sizes = location_accuracy.QUICK if quick else location_accuracy.DATASETS
    data = "\n".join(
        f"- **{population.name}**: {population.note}, step {population.grid.step:g}" for population in populations()
    )
    counted = ", ".join(f"{datasets} of n = {n:,}" for n, datasets in sizes.items())
    versions = {"numpy": version("numpy"), **peers.versions()}
    public = f"""**Public**: n, the bounds and steps above, epsilon, delta, Huber's corner, the fraction trimmed
        ({location_accuracy.TRIM:g} from each side). **Assumed**: nothing about the data; each guarantee is for one
        replaced record. Inverse sensitivity, global sensitivity and Student-t noise are pure; smooth sensitivity with
        Laplace noise has delta = {location_accuracy.DELTA:g}. Bounds are as wide as one who has not seen the data would
        state them; what the mean loses is in proportion to them."""
    measured = f"""**Noise** is E|release - statistic of the data|, the mean over data sets of what their exact output
        laws give: nothing is drawn, so rare large errors count in full. **Sampling error** is E|statistic of the data -
        statistic of the population|. Data sets with fixed seeds: {counted}; the standard error of a sampling error is
        about 0.75 over the root of that number."""
    again = f"""**Again**: `pip install -e '.[bench]'`, then `python -m bench.accuracy` (about ten minutes on one core).
        The real pay is left out unless its file is in the folder `DPFAST_DATA`, other libraries unless they are
        installed. Their calls have no seeds, so their columns change from run to run, and nothing else does. Made with
        dpfast {dpf.__version__}, {", ".join(f"{name} {number}" for name, number in versions.items())}."""
    texts = [paragraph(text) for text in (public, measured, again)]
    return "\n".join(["## What was measured", "", data, "", *texts])


SECTIONS = {
    "answer": location_accuracy.answer,
    "center": location_accuracy.center_of_symmetry,
    "smooth": location_accuracy.smooth,
    "peers": peer_accuracy.section,
    "quantiles": quantile_accuracy.section,
    "robust": robust_accuracy.section,
    "method": method,
    "everything": location_accuracy.everything,
}
FIGURE = "![Noise of the median and the trimmed mean against n](accuracy.svg)\n"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy", description="Errors of all estimators.")
    parser.add_argument(
        "--only", action="append", choices=[*SECTIONS, "figure"], help="print a section; may be repeated"
    )
    parser.add_argument("--quick", action="store_true", help="a few small data sets: a smoke test, printed")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="write there instead of docs/")
    options = parser.parse_args(arguments)

    texts = {}
    for name, section in SECTIONS.items():
        if name in (options.only or SECTIONS):
            texts[name] = section(options.quick)
            print(texts[name], flush=True)
    folder = options.output or (None if options.quick or options.only else DOCS)
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    location_accuracy.figure(options.quick, folder / "accuracy.svg")
    head = "# Accuracy: which estimator to use\n\nMade by `python -m bench.accuracy`; not edited by hand.\n"
    first, *rest = texts.values()
    (folder / "accuracy.md").write_text("\n".join([head, first, FIGURE, *rest]), encoding="utf-8")


if __name__ == "__main__":
    main()
