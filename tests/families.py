"""Families with parameters that the tests use, their records, and boxes around the parameters."""

from dpfast.families import Ranges


def draws(name, theta, n, rng):
    return {
        "bernoulli": lambda p: rng.random(n) < p,
        "poisson": lambda mean: rng.poisson(mean, n),
        "geometric": lambda p: rng.geometric(p, n),
        "exponential": lambda rate, mean: rng.exponential(mean, n),
        "normal": lambda mean, sd, variance: rng.normal(mean, sd, n),
        "lognormal": lambda mu, sigma: rng.lognormal(mu, sigma, n),
        "pareto": lambda shape: 1 + rng.pareto(shape, n),
        "gamma": lambda shape, rate, scale: rng.gamma(shape, scale, n),
        "beta": lambda a, b: rng.beta(a, b, n),
    }[name](**theta)


THETAS = [
    ("bernoulli", {"p": 0.3}),
    ("poisson", {"mean": 2.0}),
    ("geometric", {"p": 0.3}),
    ("exponential", {"rate": 0.5, "mean": 2.0}),
    ("normal", {"mean": 3.0, "sd": 2.0, "variance": 4.0}),
    ("lognormal", {"mu": 0.5, "sigma": 2.0}),
    ("pareto", {"shape": 3.0}),
    ("gamma", {"shape": 2.0, "rate": 0.25, "scale": 4.0}),
    ("gamma", {"shape": 0.4, "rate": 2.0, "scale": 0.5}),
    ("beta", {"a": 2.0, "b": 3.0}),
]


def box_of(theta):
    upper = (1.0 if name == "p" else 50 * value for name, value in theta.items())
    return Ranges(tuple(theta), tuple(value / 50 for value in theta.values()), tuple(upper))
