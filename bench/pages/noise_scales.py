"""Gaussian noise of dpfast and of other libraries at the same guarantee: standard deviation and time of a draw."""

import numpy as np

import dpfast as dpf
from bench.compare.clock import race
from bench.pages.tables import digits, paragraph, table
from bench.peers import installed
from dpfast.theory import gaussian_scale

GUARANTEES = ((0.1, 1e-6), (0.5, 1e-6), (1.0, 1e-6), (1.0, 1e-9), (4.0, 1e-9))
DRAWS = 100_000  # of dpfast and NumPy at a time
FEW = 1000  # of other libraries, which take microseconds a draw


def gaussian(quick):
    """A table over guarantees, with the time of a draw in the last column of each library."""
    rows = []
    for epsilon, delta in GUARANTEES[2:3] if quick else GUARANTEES:
        scale, others = gaussian_scale(epsilon, delta), installed.gaussians(epsilon, delta)
        cells = [f"{sigma:.4f} ({100 * (sigma / scale - 1):.1f} %)" for sigma, _ in others.values()]
        rows.append([f"({epsilon:g}, {delta:g})", f"{scale:.4f}", *cells])
    times = _times(0.05 if quick else 2.5)
    floor = times["NumPy `standard_normal`, neither exact nor secure"]
    clock = [[name, f"{digits(seconds * 1e9)} ns", digits(seconds / floor)] for name, seconds in times.items()]
    text = """The standard deviation of Gaussian noise for an l2 sensitivity of 1, and how much larger it is than that
        of dpfast. dpfast and diffprivlib solve the exact relation of Balle and Wang 2018; dpfast rounds the solution up
        with a certified bound. OpenDP accounts for its discrete Gaussian by zero-concentrated privacy, as in its
        composition."""
    speed = f"""The time of a draw for sigma = {gaussian_scale(1.0, 1e-6):.4f} on integers (diffprivlib: floats), in one
        run and one thread: {DRAWS:,} draws a call of dpfast and NumPy, {FEW:,} of the others. dpfast and OpenDP are
        exact and draw from a cryptographic generator; diffprivlib adds floating-point noise."""
    return "\n".join(
        [
            "## Gaussian noise",
            "",
            paragraph(text),
            table(["(epsilon, delta)", "dpfast", *installed.gaussians(1.0, 1e-6)], rows),
            paragraph(speed),
            table(["library", "one draw", "relative to NumPy"], clock),
        ]
    )


def _times(seconds):
    """Seconds of one draw, by library."""
    scale, generator = gaussian_scale(1.0, 1e-6), np.random.default_rng(0)
    fast = [lambda: dpf.noise.gaussian(scale, DRAWS), lambda: generator.standard_normal(DRAWS)]
    (ours, floor), _ = race(fast, seconds)
    times = {"dpfast": ours / DRAWS, "NumPy `standard_normal`, neither exact nor secure": floor / DRAWS}
    for name, (_, draw) in installed.gaussians(1.0, 1e-6).items():
        times[name] = race([lambda draw=draw: draw(FEW)], 0.0)[0][0] / FEW
    return times
