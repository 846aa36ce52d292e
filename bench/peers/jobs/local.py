"""Reports of local privacy: frequencies of categories, bits and means."""

import numpy as np

from bench.peers.comparison import Job, Peer
from dpfast import local

TITLE = "Local privacy"
TEXT = """The root mean squared error of frequencies (over all categories), shares and means, from the frequencies of
    the records. In the rows "unbiased" both sides have no processing after the unbiased estimate; in the others dpfast
    projects onto the simplex and shrinks (`project=True`), pure-ldp projects onto the simplex, and multi-freq-ldpy
    clips and renormalises (MI) or makes iterative Bayesian updates (IBU). dpfast takes the mechanism that has the least
    variance for the public k and epsilon."""

# k, n, epsilon, and methods of pure-ldp and multi-freq-ldpy.
FREQUENCIES = (
    (4, 1000, 1.0, ("k-rr", "oue"), ("k-rr", "subset")),
    (16, 1000, 1.0, ("oue", "hadamard"), ("subset", "adaptive")),
    (64, 1000, 1.0, ("oue", "hadamard"), ("subset", "oue")),
    (64, 1000, 4.0, ("k-rr", "oue"), ("k-rr", "subset")),
)
PROCESSED = """the reports are as good, the processing differs. Clipping and rescaling (MI) and iterative Bayesian
    updates (IBU) that stop early have less error for some laws without frequent categories, and more where one is
    frequent."""


def frequency_error(k):
    return lambda released, x: np.mean((np.asarray(released) - np.bincount(x, minlength=k) / x.size) ** 2)


def zipf(k, n):
    weights = 1 / np.arange(1, k + 1)
    return lambda generator: (generator.choice(k, n, p=weights / weights.sum()),)


def _uniform(k, n):
    return lambda generator: (generator.integers(0, k, n),)


def _frequencies():
    for k, n, epsilon, oracles, others in FREQUENCIES:
        mechanism, public = local.Categorical(k, epsilon), {"k": k, "epsilon": epsilon}
        for name, draw in (("Zipf 1", zipf(k, n)), ("uniform", _uniform(k, n)))[: 2 if k == 16 else 1]:
            yield Job(
                f"frequencies, k = {k}, unbiased", name, n, f"{epsilon:g}, local", draw,
                _unbiased(mechanism), frequency_error(k),
                tuple(Peer("pure_ldp", "frequencies", {**public, "method": method, "normalization": 0}, method)
                      for method in oracles),
                root=True, datasets=10, rounds=20,
            )  # fmt: skip
            projected = tuple(
                Peer("pure_ldp", "frequencies", {**public, "method": method, "normalization": 2}, method)
                for method in oracles
            )
            clipped = tuple(
                Peer("multi_freq", "frequencies", {**public, "method": method, "estimator": estimator},
                     f"{method}, {estimator}", PROCESSED)
                for method in others for estimator in ("MI", "IBU")
            )  # fmt: skip
            yield Job(
                f"frequencies, k = {k}", name, n, f"{epsilon:g}, local", draw,
                lambda x, m=mechanism: m.estimate(m.randomize(x), project=True), frequency_error(k),
                (*projected, *clipped),
                root=True, datasets=10, rounds=20,
            )  # fmt: skip


def _unbiased(mechanism):
    return lambda x: mechanism.estimate(mechanism.randomize(x))


def _bits():
    for n, epsilon in ((1000, 1.0), (1000, 3.0)):
        mechanism, public = local.Binary(epsilon), {"epsilon": epsilon}
        yield Job(
            "share of ones", "30 % ones", n, f"{epsilon:g}, local",
            lambda generator, n=n: ((generator.random(n) < 0.3).astype(np.int64),),
            _unbiased(mechanism),
            lambda released, x: float(np.ravel(released)[-1] - x.mean()) ** 2,
            (Peer("opendp", "randomized_bits", public), Peer("diffprivlib", "randomized_bits", public)),
            root=True, datasets=10, rounds=200, slow=4,
        )  # fmt: skip
    for k, n, epsilon in ((4, 1000, 1.0),):
        mechanism, public = local.Categorical(k, epsilon), {"k": k, "epsilon": epsilon}
        yield Job(
            f"frequencies, k = {k}, unbiased", "uniform", n, f"{epsilon:g}, local", _uniform(k, n),
            _unbiased(mechanism), frequency_error(k), (Peer("opendp", "randomized_categories", public),),
            root=True, datasets=10, rounds=40,
        )  # fmt: skip


def _means():
    for n, epsilon in ((1000, 0.5), (1000, 1.0), (1000, 4.0)):
        mechanism, public = local.Interval(epsilon, bounds=(-1, 1)), {"epsilon": epsilon}
        yield Job(
            "mean in [-1, 1]", "uniform", n, f"{epsilon:g}, local",
            lambda generator, n=n: (generator.uniform(-1, 1, n),),
            _unbiased(mechanism), lambda released, x: (float(released) - x.mean()) ** 2,
            (Peer("opendp", "local_laplace", public),), root=True, datasets=10, rounds=100,
        )  # fmt: skip


def jobs():
    yield from _frequencies()
    yield from _bits()
    yield from _means()
