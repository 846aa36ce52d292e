"""Sums over blocks and their estimates, record by record, in exact or 50-digit arithmetic."""

from fractions import Fraction

import mpmath

STEP_OF_LOGS = Fraction(1, 2**37)


def block_of(i, k, n):
    return i * k // n


def members(n, k):
    """The records of each block."""
    blocks = [[] for _ in range(k)]
    for i in range(n):
        blocks[block_of(i, k, n)].append(i)
    return blocks


def clamp(value, most):
    return max(-most, min(most, value))


def value_code(x, center, step, most=2**51 - 1):
    """(x - center) / step as doubles give it, clamped, then rounded half to even."""
    return round(Fraction(clamp((x - center) / step, float(most))))


def wide_code(x, center, step):
    """In units of 2**-50 steps: a rounded whole number of steps, and the rest rounded."""
    steps = Fraction(clamp((x - center) / step, 2.0**50))
    whole = round(steps)
    return whole * 2**50 + round((steps - whole) * 2**50)


def log_code(x):
    """Of a subnormal number as of the least normal one."""
    x = max(x, 2.0**-1022)
    return int(mpmath.nint(mpmath.log(mpmath.mpf(x)) * 2**37))


def sums(values, k, columns, lower, upper):
    """For each block: how many records are in the support; for each column the sum of codes and of their squares."""
    rows = []
    for block in members(len(values), k):
        inside = [values[i] for i in block if lower <= values[i] <= upper]
        row = [len(inside)]
        for kind, center, step in columns:
            if kind == "value":
                codes, square = [value_code(x, center, step) for x in inside], False
            elif kind == "square":
                codes, square = [value_code(x, center, step, 2**47 - 2**23) for x in inside], True
            elif kind == "wide":
                codes, square = [wide_code(x, center, step) for x in inside], False
            else:
                codes = [log_code(1.0 - x if kind == "log1m" else x) for x in inside]
                square = kind == "log-square"
            row += [sum(codes), sum(code * code for code in codes) if square else 0]
        rows.append(tuple(row))
    return rows


def shape_equation(k):
    """log k - digamma k."""
    k = mpmath.mpf(k)
    return mpmath.log(k) - mpmath.digamma(k)


def normal_correction(m):
    """E[s] / sigma of m normal records."""
    m = mpmath.mpf(m)
    return mpmath.sqrt(2 / (m - 1)) * mpmath.gamma(m / 2) / mpmath.gamma((m - 1) / 2)
