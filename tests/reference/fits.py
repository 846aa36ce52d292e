"""Slow estimates of one block: general optimisers on log-likelihoods written out, and sums term by term."""

import math

import mpmath as mp
import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, expit, polygamma


def weibull(x):
    """Shape and scale at the maximum of the profile likelihood, in 40 digits."""
    with mp.workdps(40):
        logs = [mp.log(mp.mpf(float(v))) for v in x]
        top, mean = max(logs), mp.fsum(logs) / len(logs)

        def score(k):
            weights = [mp.exp(k * (v - top)) for v in logs]
            return mp.fsum(w * v for w, v in zip(weights, logs, strict=True)) / mp.fsum(weights) - 1 / k - mean

        spread = mp.sqrt(mp.fsum((v - mean) ** 2 for v in logs) / len(logs))
        low, high = 1 / (100 * spread), 100 / spread
        for _ in range(130):
            middle = mp.sqrt(low * high)
            low, high = (middle, high) if score(middle) < 0 else (low, middle)
        k = low
        scale = mp.exp(top + mp.log(mp.fsum(mp.exp(k * (v - top)) for v in logs) / len(logs)) / k)
        return float(k), float(scale)


def laplace(x):
    location = float(np.median(x))
    return location, float(np.mean(np.abs(np.asarray(x) - location)))


def laplace_factor(n):
    """E mean |x - median| of n standard Laplace records, from the mean of the Binomial(n, u) majority.

    The records above the median less those below it are the sum of min(i, n - i) (x_(i+1) - x_(i)), and the mean of a
    spacing is the integral of C(n, i) F^i (1 - F)^(n - i) dx, with dx = du / min(u, 1 - u) in u = F(x).
    """
    with mp.workdps(30):

        def total(u):
            return mp.fsum(min(i, n - i) * mp.binomial(n, i) * u**i * (1 - u) ** (n - i) for i in range(1, n)) / u

        return float(2 * mp.quad(total, [0, 0.25, 0.5]) / n)


def negative_binomial(x):
    """r, p and mean, by a bracketing solver of the profile score."""
    x = np.asarray(x, float)
    mean = x.mean()

    def score(t):
        r = math.exp(t)
        return float(np.mean(digamma(x + r) - digamma(r)) - math.log1p(mean / r))

    r = math.exp(brentq(score, -12, 12, xtol=1e-14, rtol=1e-14))
    return r, r / (r + mean), mean


def negative_binomial_bias(x, r):
    """n times the bias of r, by the general formula of Cox and Snell in the parameters (r, mean).

    Derivatives of the log-likelihood of each record, written out; expectations are averages over the block.
    """
    x = np.asarray(x, float)
    m = x.mean()
    first = digamma(x + r) - digamma(r) + np.log(r / (r + m)) + 1 - (x + r) / (r + m), x / m - (x + r) / (r + m)
    rr = polygamma(1, x + r) - polygamma(1, r) + 1 / r - 2 / (r + m) + (x + r) / (r + m) ** 2
    rm = -1 / (r + m) + (x + r) / (r + m) ** 2
    mm = -x / m**2 + (x + r) / (r + m) ** 2
    rrr = polygamma(2, x + r) - polygamma(2, r) - 1 / r**2 + 3 / (r + m) ** 2 - 2 * (x + r) / (r + m) ** 3
    rrm = 2 / (r + m) ** 2 - 2 * (x + r) / (r + m) ** 3
    rmm = 1 / (r + m) ** 2 - 2 * (x + r) / (r + m) ** 3
    mmm = 2 * x / m**3 - 2 * (x + r) / (r + m) ** 3
    second = np.array([[rr, rm], [rm, mm]])
    third = np.array([[[rrr, rrm], [rrm, rmm]], [[rrm, rmm], [rmm, mmm]]])
    inverse = np.linalg.inv(-second.mean(axis=-1))
    joint = 0.5 * third.mean(axis=-1) + np.einsum("ijx,kx->ijk", second, np.array(first)) / x.size
    return float(np.einsum("i,jk,ijk", inverse[0], inverse, joint))


def _design(design, intercept):
    design = np.asarray(design, float)
    return np.column_stack([np.ones(len(design)), design]) if intercept else design


def linear(design, response, *, intercept=False):
    """Least squares by a singular value decomposition; the standard deviation of the noise, by n."""
    design = _design(design, intercept)
    beta = np.linalg.lstsq(design, response, rcond=None)[0]
    return beta, float(np.sqrt(np.mean((response - design @ beta) ** 2)))


def _newton(design, start, derivatives):
    """Newton's method with halving, on a concave log-likelihood given as value, gradient and weights of eta."""
    beta = start
    value, slope, weight = derivatives(design @ beta)
    for _ in range(200):
        step = np.linalg.solve(design.T @ (weight[:, None] * design), design.T @ slope)
        length = 1.0
        while True:
            new = derivatives(design @ (beta + length * step))
            if new[0] >= value - 1e-12 * abs(value):
                break
            length /= 2
        beta = beta + length * step
        value, slope, weight = new
        if np.max(np.abs(step)) < 1e-13 * max(1, np.max(np.abs(beta))):
            break
    return beta


def _leverages(design, weight):
    inverse = np.linalg.inv(design.T @ (weight[:, None] * design))
    return inverse, weight * np.einsum("ij,jk,ik->i", design, inverse, design)


def logistic(design, labels, *, intercept=False, correct=False):
    design = _design(design, intercept)
    y = np.asarray(labels) > 0

    def derivatives(eta):
        p = expit(eta)
        return -np.sum(np.logaddexp(0, np.where(y, -eta, eta))), y - p, p * (1 - p)

    beta = _newton(design, np.zeros(design.shape[1]), derivatives)
    if correct:
        p = expit(design @ beta)
        inverse, leverage = _leverages(design, p * (1 - p))
        beta = beta - inverse @ design.T @ (leverage * (p - 0.5))
    return beta


def poisson(design, counts, *, intercept=False, correct=False):
    design = _design(design, intercept)
    y = np.asarray(counts, float)

    def derivatives(eta):
        mean = np.exp(np.minimum(eta, 600))
        return np.sum(y * eta - mean), y - mean, mean

    start = np.linalg.lstsq(design, np.log(y + 0.5), rcond=None)[0]
    beta = _newton(design, start, derivatives)
    if correct:
        mean = np.exp(design @ beta)
        inverse, leverage = _leverages(design, mean)
        beta = beta + inverse @ design.T @ leverage / 2
    return beta
