"""Calculations: the scale of Gaussian noise for a guarantee, and the guarantee of several releases."""

import math

import numpy as np

import dpfast as dpf
from bench.peers.comparison import Job, Peer
from dpfast.theory import gaussian_scale

TITLE = "Calibration and composition"
TEXT = """Numbers without randomness: the standard deviation of Gaussian noise on sensitivity 1 for a guarantee, and the
    epsilon at delta = 1e-6 of releases with noise on sensitivity 1. OpenDP: the better of basic composition and of zero
    concentrated privacy. dp-accounting: privacy loss distributions, which are upper bounds up to its discretisation,
    and Renyi divergences. A time ratio of 0.01 means that dpfast takes a hundredth of the time."""
DELTA = 1e-6


def value(released, *arrays):
    return float(np.asarray(released))


def _scales():
    for epsilon, delta in ((0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-9), (4.0, 1e-9)):
        public = {"epsilon": epsilon, "delta": delta}
        workers = ("opendp", "diffprivlib", "pydp", "dp_accounting")
        yield Job(
            "Gaussian scale", "-", None, f"({epsilon:g}, {delta:g})", lambda generator: (),
            lambda e=epsilon, delta=delta: gaussian_scale(e, delta), value,
            tuple(Peer(worker, "gaussian_scale", public) for worker in workers),
            datasets=1, rounds=1,
        )  # fmt: skip


def _compositions():
    for sigma, releases in ((10.0, 10), (30.0, 1000)):
        public = {"sigma": sigma, "releases": releases, "delta": DELTA}
        yield Job(
            f"epsilon of {releases} Gaussian releases, scale {sigma:g}", "-", None, f"delta = {DELTA:g}",
            lambda generator: (), lambda s=sigma, k=releases: _gaussians(s, k), value,
            (Peer("opendp", "composed_gaussians", public),
             *(Peer("dp_accounting", "composed_gaussians", {**public, "accountant": kind}, kind.upper())
               for kind in ("pld", "rdp"))),
            datasets=1, rounds=1,
        )  # fmt: skip
    for scale, releases in ((10.0, 10), (50.0, 200)):
        public = {"scale": scale, "releases": releases, "delta": DELTA}
        yield Job(
            f"epsilon of {releases} Laplace releases, scale {scale:g}", "-", None, f"delta = {DELTA:g}",
            lambda generator: (), lambda s=scale, k=releases: _laplaces(s, k), value,
            (Peer("opendp", "composed_laplaces", public), Peer("diffprivlib", "composed_laplaces", public),
             *(Peer("dp_accounting", "composed_laplaces", {**public, "accountant": kind}, kind.upper())
               for kind in ("pld", "rdp"))),
            datasets=1, rounds=1,
        )  # fmt: skip


def _gaussians(sigma, releases):
    return dpf.Privacy(mu=math.sqrt(releases) / sigma).epsilon_up(DELTA)


def _laplaces(scale, releases):
    """The least epsilon, to three digits, of a ledger that affords a plan of the releases."""
    one = dpf.PrivacyProfile(dpf.Privacy(1 / scale), (("laplace", 1 / scale, 1),))

    def fits(epsilon):
        try:
            dpf.Ledger(epsilon, DELTA, plan=[one] * releases)
        except dpf.BudgetError:
            return False
        return True

    low, high = 0.0, releases / scale
    while high - low > high / 1000:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def jobs():
    yield from _scales()
    yield from _compositions()
