"""Released marginals, and what follows from them by post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks, plotting
from dpfast.core.privacy import Privacy
from dpfast.core.tabular import Tabular, unused
from dpfast.densities.columns import Column
from dpfast.densities.consistency import Names, Values, nearest_consistent
from dpfast.densities.graphical import Noisy, estimated_total, fitted
from dpfast.densities.junctions import Junctions, Places
from dpfast.random import RandomSource, bit_generator

_SWEEPS, _TOLERANCE = 200, 1e-3  # of a fit, and the share of the records that the last sweep moves
_MOST_LETTERS = 50  # of labels that are horizontal
LEAST_VARIANCE = 1e-12  # of noise that is almost always 0


@dataclass(frozen=True, repr=False, eq=False)
class Marginals(Tabular):
    """Released marginals of a table, made by `dpfast.marginals`. Everything here is public.

    Attributes
    ----------
    columns : mapping from names to domains
        ``labels`` of a domain are the names of its bins.
    counts : mapping from tuples of names to ndarrays of int64
        The noisy counts of each marginal, an axis for each column; possibly negative.
    deviations : mapping from tuples of names to floats
        The standard deviation of the noise on each count of a marginal.
    n : int or None
        The number of records, if it is public.
    privacy : Privacy

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> table = {"a": np.arange(1000) % 3, "b": np.arange(1000) % 2}
    >>> released = dpf.marginals(table, {"a": [0, 1, 2], "b": dpf.Categories([0, 1])}, epsilon=1.0)
    >>> released
    <Marginals: 1 of 2 columns, 12 cells; epsilon = 1 (pure differential privacy) for one record replaced (the number \
of records is public)>
    >>> round(released.consistent()["a", "b"].sum())
    1000
    """

    columns: Mapping[Any, Column]
    counts: Mapping[Names, NDArray[np.int64]]
    deviations: Mapping[Names, float]
    n: int | None
    privacy: Privacy

    def __repr__(self) -> str:
        cells = sum(table.size for table in self.counts.values())
        return f"<Marginals: {len(self.counts)} of {len(self.columns)} columns, {cells} cells; {self.privacy}>"

    def _caption(self) -> str:
        return repr(self).strip("<>")

    def _as_columns(self) -> dict[str, list[Any]]:
        """All cells of all marginals: their bins, None in columns of other marginals, the count and its noise."""
        columns: dict[str, list[Any]] = {str(name): [] for name in self.columns}
        marginal, count, noise = (unused(name, columns) for name in ("marginal", "count", "noise"))
        columns = {marginal: [], **columns, count: [], noise: []}
        for names, table in self.counts.items():
            places = dict(zip(names, np.indices(table.shape).reshape(table.ndim, -1).tolist(), strict=True))
            for name, column in self.columns.items():
                labels = column.labels
                bins = places.get(name)
                columns[str(name)] += [None] * table.size if bins is None else [labels[i] for i in bins]
            columns[marginal] += [", ".join(map(str, names))] * table.size
            columns[count] += table.reshape(-1).tolist()
            columns[noise] += [self.deviations[names]] * table.size
        return columns

    def plot(self, ax: Any = None, names: Names | None = None) -> Any:
        """Plot a marginal of one or two columns with Matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Default: the current axes.
        names : tuple of one or two names, optional
            Which marginal. Default: the first one with one or two columns.

        Returns
        -------
        matplotlib.axes.Axes
        """
        drawn = [names for names in self.counts if len(names) <= 2]
        names = drawn[0] if names is None and drawn else names
        if names is None or names not in drawn:
            raise ValueError(f"names must be those of a marginal of one or two columns, not {names!r}")
        ax, counts, deviation = plotting.axes(ax), self.counts[names], self.deviations[names]
        labels = [[plotting.plain(label) for label in self.columns[name].labels] for name in names]
        if len(names) == 1:
            ax.bar(labels[0], counts, color=plotting.SKY, alpha=0.6)
            low, high = counts - 2 * deviation, counts + 2 * deviation
            ax.vlines(labels[0], low, high, color=plotting.ink(ax), linewidth=1)
            ax.set_ylabel("records (noisy count)")
        else:
            mesh = ax.pcolormesh(counts.T, cmap=plotting.MAP)
            ax.set_yticks(np.arange(len(labels[1])) + 0.5, labels[1])
            ax.set_xticks(np.arange(len(labels[0])) + 0.5, labels[0])
            ax.set_ylabel(plotting.plain(names[1]))
            ax.figure.colorbar(mesh, ax=ax, label="records (noisy count)")
        if sum(map(len, labels[0])) > _MOST_LETTERS:
            ax.tick_params(axis="x", rotation=90)
        ax.set_xlabel(plotting.plain(names[0]))
        lines = "; lines: two standard deviations" if len(names) == 1 else ""
        noise = f"standard deviation of the noise on each count: {deviation:.3g}{lines}"
        plotting.entitle(ax, f"Private counts by {' and '.join(map(str, names))}", self.privacy, noise)
        return ax

    def consistent(self) -> dict[Names, Values]:
        """Return the nonnegative tables with equal shared margins, and the sum n if it is public, nearest to the
        counts.

        Squared distances are weighted by the noise: several counts of the same people are combined into one that is
        more precise than each.

        Returns
        -------
        dict from tuples of names to ndarrays of float64
            Margins on shared columns differ by a small part of the noise.

        References
        ----------
        Barak et al. 2007; Qardaji, Yang and Li 2014, "PriView"; the parts of a table by subsets of its columns are
        those of Xiao et al. 2023, "An optimal and scalable matrix mechanism for noisy marginals".
        """
        variances = {names: max(deviation**2, LEAST_VARIANCE) for names, deviation in self.deviations.items()}
        return nearest_consistent(self.counts, variances, self.n)

    def measurements(self) -> list[tuple[Values, Names, float]]:
        """Return the noisy counts, columns and standard deviations of all marginals, the arguments of measurements of
        `mbi`.

        The package `mbi` (Private-PGM) estimates a graphical model from any marginals::

            domain = mbi.Domain.fromdict(released.sizes)
            measurements = [mbi.LinearMeasurement(*each) for each in released.measurements()]
            model = mbi.estimation.MirrorDescent().estimate(domain, measurements, iters=1000)

        Returns
        -------
        list of (ndarray of float64, tuple of names, float)
        """
        return [
            (table.reshape(-1).astype(np.float64), names, self.deviations[names])
            for names, table in self.counts.items()
        ]

    @property
    def sizes(self) -> dict[Any, int]:
        """The number of bins of each column."""
        return {name: column.size for name, column in self.columns.items()}

    def sample(self, k: SupportsIndex, rng: RandomSource = None) -> dict[Any, NDArray[Any]]:
        """Draw k synthetic records, from the distribution of most entropy that fits the counts.

        Parameters
        ----------
        k : int
            At least 1, below 2**32.
        rng : numpy.random.Generator or BitGenerator, optional
            Default: the secure generator.

        Returns
        -------
        dict from names to ndarrays of shape (k,)
            Values of each column: categories, or numbers uniform in their bins. The shares of the cells of cliques
            differ from those of the distribution by rounding, less than those of independent draws.

        Raises
        ------
        ValueError
            If the junction tree of the marginals has more than 2**24 cells, by the circles that they form.

        Notes
        -----
        Post-processing: any number of draws costs no more privacy. Cost: O(k) for each column, and passes over the
        cells of the junction tree.

        References
        ----------
        McKenna, Sheldon and Miklau 2019, "Graphical-model based estimation and inference for differential privacy".
        """
        k = checks.whole("k", k, least=1)
        if k >= 2**32:
            raise ValueError(f"k must be below 2**32, not {k}")
        source = bit_generator(rng)
        places = {name: place for place, name in enumerate(self.columns)}
        noisy = dict[Places, Noisy]()
        for names, table in self.counts.items():
            order = np.argsort([places[name] for name in names])
            counts = np.transpose(table, order).reshape(-1).astype(np.float64)
            variance = max(self.deviations[names] ** 2, LEAST_VARIANCE)
            noisy[tuple(sorted(places[name] for name in names))] = Noisy(counts, variance)
        tree = Junctions.of(tuple(self.sizes.values()), noisy)
        tree.check()
        total = float(self.n or estimated_total(noisy))
        model = fitted(tree, noisy, total, sweeps=_SWEEPS, tolerance=_TOLERANCE * total)
        generator, bins = np.random.Generator(source), model.draw(k, source)
        return {name: column.draw(bins[places[name]], generator) for name, column in self.columns.items()}
