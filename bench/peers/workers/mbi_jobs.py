"""Synthetic tables by OpenDP with mbi (Private-PGM), in zero-concentrated privacy; one record added or removed."""

from importlib.metadata import version

import opendp.prelude as dp
import polars as pl
import serve

dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")


def synthetic(sizes, epsilon, delta, algorithm):
    """As many synthetic records as there are records, by the rho that implies epsilon and delta."""
    names = [f"c{j}" for j in range(len(sizes))]
    keys = {name: list(range(size)) for name, size in zip(names, sizes, strict=True)}
    low, high = 0.0, 100.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if _epsilon(middle, delta) <= epsilon else (low, middle)

    def release(X):
        context = dp.Context.compositor(
            data=pl.DataFrame(dict(zip(names, X.T, strict=True))).lazy(),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(rho=low),
            split_evenly_over=1,
        )
        query = context.query().contingency_table(keys=keys, algorithm=getattr(dp.mbi, algorithm)())
        return query.release().synthesize(len(X), method="sample").to_numpy()

    return release


def _epsilon(rho, delta):
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    if rho == 0:
        return 0.0
    gaussian = dp.c.make_zCDP_to_approxDP(space >> dp.m.then_gaussian((1 / (2 * rho)) ** 0.5))
    return gaussian.map(1.0).epsilon(delta)


if __name__ == "__main__":
    serve.main(globals(), f"{version('opendp')} and {version('mbi')}")
