"""How the errors of docs/results/accuracy.md are measured: its section "Method"."""

from importlib.metadata import version

import dpfast as dpf
from bench.pages import location_accuracy
from bench.pages.populations import populations
from bench.pages.tables import paragraph
from bench.peers import installed


def method(quick):
    """Public parameters, assumptions, how the errors are measured, how to reproduce them."""
    sizes = location_accuracy.QUICK if quick else location_accuracy.DATASETS
    data = "\n".join(
        f"- **{population.name}**: {population.note}, step {population.grid.step:g}" for population in populations()
    )
    counted = ", ".join(f"{datasets} of n = {n:,}" for n, datasets in sizes.items())
    versions = {"numpy": version("numpy"), **installed.versions()}
    public = f"""**Public**: n, the bounds and steps above, epsilon, delta, Huber's corner, the trimmed fraction
        ({location_accuracy.TRIM:g} on each side). **Assumptions**: none about the data; each guarantee is for one
        replaced record. Inverse sensitivity, global sensitivity and Student-t noise are pure; smooth sensitivity with
        Laplace noise has delta = {location_accuracy.DELTA:g}. The bounds are as wide as an analyst who has not seen the
        data would state them; the loss of the mean is proportional to their width."""
    measured = f"""**Noise** is E|release - statistic of the data|, averaged over data sets and computed from the exact
        output laws: no noise is drawn, so rare large errors count in full. **Sampling error** is E|statistic of the
        data - statistic of the population|. Data sets with fixed seeds: {counted}; the standard error of a sampling
        error is about 0.75 over the root of that number."""
    again = f"""**To reproduce**: `pip install -e '.[bench]'`, then `python -m bench.pages accuracy` (about ten minutes
        on one core). The real pay is left out unless its file is in the folder `DPFAST_DATA`, other libraries unless
        they are installed. Calls of other libraries are not seeded, so their columns, and only these, change from run
        to run. Made with dpfast {dpf.__version__},
        {", ".join(f"{name} {number}" for name, number in versions.items())}.
        """
    texts = [paragraph(text) for text in (public, measured, again)]
    return "\n".join(["## Method", "", data, "", *texts])
