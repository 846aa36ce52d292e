"""Renyi divergences and mean losses of the pairs of each family, from their definitions, in 60 digits."""

from functools import cache

from mpmath import mp, mpf

DIGITS = 60


def of_masses(p, q, order):
    """D_a(P || Q) of two lists of masses; Kullback-Leibler at 1."""
    if order == 1:
        return mp.fsum(x * mp.log(x / y) for x, y in zip(p, q, strict=True))
    return mp.log(mp.fsum(x**order * y ** (1 - order) for x, y in zip(p, q, strict=True))) / (order - 1)


def pure(epsilon, steps, r, order):
    """Of randomised response."""
    truth = 1 / (1 + mp.exp(-epsilon))
    return of_masses([truth, 1 - truth], [1 - truth, truth], order)


def laplace(epsilon, steps, r, order):
    """Of Laplace(0, 1/epsilon) and Laplace(1, 1/epsilon): tails as they are, the middle by its antiderivative."""
    if order == 1:  # the loss is epsilon (1 - 2x) on [0, 1]
        middle = mp.quad(lambda x: epsilon * (1 - 2 * x) * epsilon / 2 * mp.exp(-epsilon * x), [0, 1])
        return epsilon / 2 + middle - epsilon * mp.exp(-epsilon) / 2
    left = mp.exp((order - 1) * epsilon) / 2
    right = mp.exp(-order * epsilon) / 2
    rate = (1 - 2 * order) * epsilon
    middle = epsilon / 2 * mp.exp((order - 1) * epsilon) * mp.expm1(rate) / rate
    return mp.log(left + middle + right) / (order - 1)


def discrete_laplace(epsilon, steps, r, order):
    """Of P(z) proportional to exp(-epsilon |z| / steps) and its shift by steps: a sum over z, tails as they are."""
    rate = epsilon / steps
    mass = mp.tanh(rate / 2)
    p = [mass * mp.exp(-rate * z) for z in range(1, steps)]
    q = p[::-1]
    tail = 1 / (1 + mp.exp(-rate))  # P(Z <= 0)
    far = tail * mp.exp(-epsilon)  # P(Z >= steps)
    return of_masses([*p, tail, far], [*q, far, tail], order)


def staircase(epsilon, steps, r, order):
    """Of staircase noise and its shift by steps: a sum over z, far levels as geometric series."""
    q, far = mp.exp(-epsilon), 3 * steps

    def mass(z):
        return q ** (0 if abs(z) < r else 1 + (abs(z) - r) // steps)

    def to_the_right(z):
        """Of all masses from z > r on: of each period q times the mass of the last."""
        return mp.fsum(map(mass, range(z, z + steps))) / (1 - q)

    near = range(-far, far + 1)
    p, other = [mass(z) for z in near], [mass(z - steps) for z in near]
    p += [to_the_right(far + 1)] * 2
    other += [to_the_right(far + 1 - steps), to_the_right(far + 1 + steps)]
    total = mp.fsum(p)
    return of_masses([x / total for x in p], [y / total for y in other], order)


@cache
def zero_sum_masses(epsilon, steps):
    """P(loss = epsilon), P(loss = 0) and P(loss = -epsilon) of noise of sum 0 on so many integers, one up and one down.

    Masses of sums of independent discrete Laplace noise are means of its generating function on a circle. The
    trapezoidal rule is exact but for aliases, here below 60 digits. The half circle that mirrors the other is left out.
    """
    q = mp.exp(-epsilon / 2)
    half = int(mp.ceil(DIGITS * mp.log(10) / epsilon)) + 20
    up = [1 / (1 - 2 * q * mp.cospi(mpf(j) / half) + q**2) for j in range(half + 1)]
    fewer = [f ** (steps - 1) / (2 if j in (0, half) else 1) for j, f in enumerate(up)]
    largest = mp.fsum(fewer) / mp.fdot(fewer, up) / (1 - q**2) ** 2
    least = largest * mp.exp(-epsilon)
    return largest, 1 - largest - least, least


def zero_sum_laplace(epsilon, steps, r, order):
    """Of noise of sum 0 on so many integers, one up and one down by 1; two integers have no loss of 0."""
    masses = zero_sum_masses(epsilon, steps)[:: 2 if steps == 2 else 1]
    return of_masses(masses, masses[::-1], order)


def bounded_range(epsilon, steps, r, order):
    """The largest of two-point laws with losses t and t - epsilon, by golden section."""

    def at(t):
        p = (mp.exp(epsilon) - mp.exp(t)) / mp.expm1(epsilon)
        return of_masses([p, 1 - p], [p * mp.exp(-t), (1 - p) * mp.exp(epsilon - t)], order)

    # An error of the place counts by its square: after 70 steps, below 1e-24.
    low, high, share = mpf(0), mpf(epsilon), (mp.sqrt(5) - 1) / 2
    left, right = high - share * (high - low), low + share * (high - low)
    at_left, at_right = at(left), at(right)
    for _ in range(70):
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + share * (high - low)
            at_right = at(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - share * (high - low)
            at_left = at(left)
    return max(at_left, at_right)


FAMILIES = {
    "pure": pure,
    "laplace": laplace,
    "discrete-laplace": discrete_laplace,
    "zero-sum-laplace": zero_sum_laplace,
    "staircase": staircase,
    "bounded-range": bounded_range,
}


def exact(family, epsilon, shape, order):
    """D_a of the worst pair of a family, `order` 1 for the mean of its loss; `shape` has the steps and r, if any."""
    return found(family, epsilon, *(*shape, 1, 1)[:2], order)


@cache
def found(family, epsilon, steps, r, order):
    with mp.workdps(DIGITS):
        return FAMILIES[family](mpf(epsilon), steps, r, mpf(order))


def gaussian_delta(mu, epsilon):
    """Phi(mu / 2 - epsilon / mu) - exp(epsilon) Phi(-mu / 2 - epsilon / mu)."""
    with mp.workdps(400):
        mu, epsilon = mpf(mu), mpf(epsilon)
        return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)
