"""Ball arithmetic: enclosures of real functions over whole ranges, by Taylor models and subdivision. No sampling."""

from fractions import Fraction

from flint import arb, arb_series, ctx, fmpq

from assurance.bounds.gappa import Unproved

ctx.prec = 160


def ball(x):
    """A rational number as a ball."""
    x = Fraction(x)
    return arb(fmpq(x.numerator, x.denominator))


def between(low, high):
    """The ball of all numbers from low to high."""
    return ball(low).union(ball(high))


def above(x):
    """A rational number not below |x|."""
    top = abs(arb(x)).upper()
    if not top.is_finite():
        raise Unproved("a ball is not finite")
    mantissa, exponent = top.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def ends(x):
    """Rational numbers that enclose a ball."""
    found = []
    for end in (x.lower(), x.upper()):
        mantissa, exponent = end.man_exp()
        found.append(Fraction(int(mantissa)) * Fraction(2) ** int(exponent))
    return tuple(found)


def exact(value, inputs, memory=None):
    """A graph of values in exact arithmetic: balls or series for the inputs, given by name or by value."""
    memory = {} if memory is None else memory
    if value in inputs:
        return inputs[value]
    if value in memory:
        return memory[value]
    if value.constant is not None:
        result = ball(value.constant)
    elif value.op == "input":
        result = inputs[value.args[0]]
    else:
        given = [exact(a, inputs, memory) for a in value.args]
        if value.op not in OPERATIONS:
            raise Unproved(f"{value.op} is not an operation on real numbers")
        result = OPERATIONS[value.op](*given)
    memory[value] = result
    return result


OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "sqrt": lambda a: a.sqrt(),
}


def taylor(function, low, high, order=30):
    """A bound of |function| over [low, high]: its Taylor coefficients at the middle, the last over the whole range.

    `function` maps a power series x + h with balls as coefficients to one.
    """
    middle, radius = (Fraction(low) + Fraction(high)) / 2, (Fraction(high) - Fraction(low)) / 2
    before, ctx.cap = ctx.cap, order + 1
    try:
        here = function(arb_series([ball(middle), 1], order + 1))
        everywhere = function(arb_series([between(low, high), 1], order + 1))
        total = above(everywhere[order]) * radius**order
        return total + sum(above(here[j]) * radius**j for j in range(order))
    finally:
        ctx.cap = before


def greatest(bound, low, high, parts, target=None, depth=24):
    """The greatest bound over the parts of [low, high]; a part is halved while its bound is above the target."""
    low, high = Fraction(low), Fraction(high)
    step = (high - low) / parts
    ranges = [(low + j * step, low + (j + 1) * step, 0) for j in range(parts)]
    most = Fraction(0)
    while ranges:
        a, b, level = ranges.pop()
        try:
            value = bound(a, b)
        except (Unproved, ValueError, ZeroDivisionError):
            value = None
        if value is not None and (target is None or value <= target or level == depth):
            most = max(most, value)
        elif level == depth:
            raise Unproved(f"no bound on [{float(a)}, {float(b)}]")
        else:
            ranges += [(a, (a + b) / 2, level + 1), ((a + b) / 2, b, level + 1)]
    return most
