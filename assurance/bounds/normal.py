"""Proofs for src/shared/normal.h: the inverse normal by its three approximations.

z is a function of U, x = 1 - U, t = -log(U (2 - U)) and e = -log U. Ranges of z cover everything. On each, the error is
the sum of: the distance of the double argument from the real one times the greatest slope of z there; the roundings
(Gappa); and the approximation at the double argument (Taylor models of N / D, P and Q against 1 / g or z, where
g(v) = P(|Z| < z) / z, v = z^2).
"""

from fractions import Fraction
from itertools import pairwise

from flint import arb, arb_series, ctx

from assurance.bounds import balls
from assurance.bounds.gappa import Script, magnitude
from assurance.bounds.proofs import U
from assurance.bounds.values import Value, free, real

WORD = Fraction(1, 2**64)
SLACK = Fraction(1, 2**45)
ORDER, NEAR = 14, 3 * U / 4


def below(z):
    """P(|Z| < z)."""
    return (balls.ball(z) / arb(2).sqrt()).erf()


def beyond(z):
    """P(|Z| > z)."""
    return (balls.ball(z) / arb(2).sqrt()).erfc()


def slope(z):
    """|dz / dU| at most, up to z: 1 / (2 phi(z))."""
    z = balls.ball(z + SLACK)
    return balls.above((2 * arb.pi()).sqrt() / 2 * (z * z / 2).exp())


def share(v):
    """g(v) = P(|Z| < z) / z, v = z^2, of a series v + h: each Taylor coefficient is monotone in v.

    g is sqrt(2 / pi) times the integral of e^(-v s^2 / 2) over s in [0, 1]. Its k-th coefficient is sqrt(2 / pi)
    (-1/2)^k / (k! (2 k + 1)) times 1F1(k + 1/2; k + 3/2; -v / 2), an average of e^(-v s^2 / 2).
    """
    here, found, factor = v[0], [], (2 / arb.pi()).sqrt()
    ends = [here.lower(), here.upper()] if here.rad() > 0 else [here]
    for k in range(ctx.cap):
        a = arb(2 * k + 1) / 2
        low, *high = [(-end / 2).hypgeom_1f1(a, a + 1) for end in ends]
        found.append(factor / (2 * k + 1) * (low.union(high[0]) if high else low))
        factor *= arb(-1) / (2 * (k + 1))
    return arb_series(found, ctx.cap)


def between_squares(function, low, high):
    """A bound of |function(v)| for v = z^2, z in [low, high]; ranges are halved until it is below 3/4 of 2^-53."""
    return balls.greatest(lambda a, b: balls.taylor(function, a, b, ORDER), low * low, high * high, 1, NEAR, depth=8)


def steepest(function, low, high):
    """The greatest magnitude of the derivative."""
    ctx.cap = 2
    return balls.greatest(lambda a, b: balls.above(function(arb_series([balls.between(a, b), 1], 2))[1]), low, high, 16)


def parts(first, last, count):
    """Ranges that cover [first, last]."""
    edges = [first + (last - first) * i / count for i in range(count + 1)]
    return list(pairwise(edges))


def center(proof):
    name, x = "dpfast_normal_of_center", free("x")
    run = proof.library.run(name)
    quotient = next(a for a in run.result.args if a.op == "div")
    r, (top, bottom) = run.variables["r"], quotient.args
    form = run.result.op == "mul" and x in run.result.args
    proof.holds(name, "the form x (N(r) / D(r))", form, "structure")
    last = Fraction(15342, 10000)
    covers = balls.ends(beyond(last))[1] < Fraction(1, 8) - Fraction(1, 2**57)
    proof.holds(name, "z <= 1.5342 covers U >= 2^-3 - 2^-57", covers, "ball arithmetic")

    def difference(v):
        g = share(v)
        rr = arb_radius(r, v * g * g)
        return balls.exact(top, {r: rr}) / balls.exact(bottom, {r: rr}) - 1 / g

    worst = Fraction(0)
    for low, high in parts(Fraction(0), last, 24):
        x_low, x_high = balls.ends(below(low))[0], balls.ends(below(high))[1]
        r_low, r_high = (
            constant_of(r) - (x_high + SLACK) ** 2 - SLACK,
            constant_of(r) - max(x_low - SLACK, 0) ** 2 + SLACK,
        )
        moved, r_error = arguments(proof, x, r, x_low, x_high)
        rounded = proof.relative(quotient, {r: ("r", r_low, r_high)})
        steep = steepest(lambda s: balls.exact(top, {r: s}) / balls.exact(bottom, {r: s}), r_low, r_high)
        size = balls.above(balls.ball(high) / below(high)) + SLACK  # N / D is near z / x, which increases
        approximated = between_squares(difference, max(low - SLACK, Fraction(0)), high + SLACK)
        rounding = (1 + rounded) * (1 + U) * (size + approximated + r_error * steep) - size - approximated
        error = moved * slope(high) + (x_high + SLACK) * (rounding + approximated)
        worst = max(worst, error / (claim_at(proof, "center", low)))
    proof.step(name, "m > 2^61 - 2^7", "of the claim", Fraction(1), worst, "Gappa, Taylor models in balls")


def claim_at(proof, name, low):
    """(slope z + constant) 2^-53 at the lower end of a range, with room for z computed or exact."""
    return (proof.claims[name + "_slope"] * max(low - SLACK, 0) + proof.claims[name + "_constant"]) * U


def constant_of(r):
    """c of r = c - x x."""
    return r.args[0].constant


def arb_radius(r, square):
    """r for a series of x^2."""
    return balls.ball(constant_of(r)) - square


def arguments(proof, x, r, x_low, x_high):
    """|x - (1 - V)| for the double x and every V of the word, and the rounding error of r."""
    script = Script()
    u_low, u_high = max(1 - x_high - SLACK, Fraction(1, 16)), min(1 - x_low + SLACK, Fraction(1))
    script.between("V", u_low, u_high)
    script.define("u", "rnd(V)")
    script.define("x", "rnd(1 - u)")
    script.bind(x, "x")
    script.ask("x - (1 - V)")
    script.ask(f"{script.rounded(r)} - {script.exact(r)}")
    script.hint("x - (1 - V) -> (x - (1 - u)) - (u - V)")
    script.between("x", max(x_low - SLACK, 0), x_high + SLACK)
    moved, error = script.prove(proof.gappa)
    return magnitude(moved) + WORD, magnitude(error)


def shoulder(proof):
    name, u = "dpfast_normal_of_shoulder", free("u")
    run = proof.library.run(name, opaque=("dpfast_log", "dpfast_normal_shoulder"))
    x, call = run.variables["x"], next(a for a in run.result.args if a.op == "call")
    minus = call.args[1]
    w = minus.args[0].args[1]
    form = (
        run.result.op == "mul" and x in run.result.args and minus.op == "neg" and minus.args[0].args[0] == "dpfast_log"
    )
    form &= w == Value("mul", (u, Value("add", (real(1), x), "double")), "double") and x.op == "sub"
    proof.holds(name, "the form x P(-log(u (1 + x))), x = 1 - u", form, "structure")
    inner = proof.library.run("dpfast_normal_shoulder")
    t, result = free("t"), inner.result
    last = Fraction(28861, 10000)
    covers = balls.ends(beyond(last))[1] < Fraction(1, 2**8) - Fraction(1, 2**62)
    proof.holds(name, "z <= 2.8861 covers U >= 2^-8 - 2^-62", covers, "ball arithmetic")

    def difference(v):
        g = share(v)
        return balls.exact(result, {t: -(1 - v * g * g).log()}) - 1 / g

    coarse, worst, log_claim = {}, Fraction(0), proof.claims["log"]
    for low, high in parts(Fraction(0), last, 32):
        u_low, u_high = balls.ends(beyond(high))[0] - SLACK, min(balls.ends(beyond(low))[1] + SLACK, Fraction(1))
        script = Script()
        script.double("u", u, u_low, min(u_high, 1 - U))
        script.ask(f"{script.rounded(w)} -/ {script.exact(w)}")
        script.ask(f"{script.rounded(x)} -/ {script.exact(x)}")
        w_error, x_error = map(magnitude, script.prove(proof.gappa))
        t_low, t_high = log_range(u_high)[0] - SLACK, log_range(u_low)[1] + SLACK
        t_error = w_error / (1 - w_error) + log_claim * (1 + t_high)
        key = int(t_low * 2)
        if key not in coarse:
            start = Fraction(key, 2) - (SLACK if key else Fraction(1, 2))
            coarse[key] = proof.absolute(result, {t: ("t", start, Fraction(key + 2, 2))})
        steep = steepest(lambda s: balls.exact(result, {t: s}), t_low, t_high)
        size = balls.above(balls.ball(high) / below(high)) + SLACK
        approximated = between_squares(difference, max(low - SLACK, Fraction(0)), high + SLACK)
        inside = size + approximated + coarse[key] + t_error * steep
        rounding = (1 + x_error) * (1 + U) * inside - size - approximated
        x_high = balls.ends(below(high))[1] + SLACK
        error = (U * u_high + WORD) * slope(high) + x_high * (rounding + approximated)
        worst = max(worst, error / claim_at(proof, "shoulder", low))
    proof.step(name, "m > 2^56 - 4", "of the claim", Fraction(1), worst, "Gappa, Taylor models in balls")


def log_range(u):
    """An enclosure of t = -log(u (2 - u))."""
    u = balls.ball(u)
    return balls.ends(-(u * (2 - u)).log())


def tail(proof):
    name = "dpfast_normal_of_tail"
    run = proof.library.run(name, opaque=("dpfast_neg_log_word", "dpfast_normal_tail"))
    r = run.variables["r"]
    inner = proof.library.run("dpfast_normal_tail")
    y, q = free("y"), inner.result
    call = next(a for a in run.result.args if a.op == "call")
    form = run.result.op == "mul" and r in run.result.args and r.op == "sqrt" and call.args[1].op == "div"
    form &= call.args[1].args[0].constant == 1 and call.args[1].args[1] is r
    form &= r.args[0].op == "call" and r.args[0].args[0] == "dpfast_neg_log_word"
    proof.holds(name, "the form r Q(1 / r), r = sqrt(-log U)", form, "structure")
    whole = proof.library.run(name, opaque=("dpfast_neg_log_word",))
    e = whole.variables["r"].args[0]
    first, last = Fraction(28855, 10000), Fraction(8211, 1000)
    covers = balls.ends(beyond(first))[0] > Fraction(1, 2**8) and balls.ends(beyond(last))[1] < Fraction(1, 2**52)
    proof.holds(name, "2.8855 <= z <= 8.211 covers 2^-52 <= U <= 2^-8", covers, "ball arithmetic")

    def difference(z):
        inverse = (-((z / arb(2).sqrt()).erfc()).log()).rsqrt()
        return balls.exact(q, {y: inverse}) / inverse - z

    worst, coarse = Fraction(0), {}
    for low, high in parts(first, last, 12):
        e_high = balls.ends(-beyond(high).log())[1]
        key = int(low - first)
        if key not in coarse:
            ends = [-beyond(end).log() for end in (first + key, first + key + 1 + (last - first) / 12)]
            coarse[key] = proof.relative(
                whole.result, {e: ("e", balls.ends(ends[0])[0] - SLACK, balls.ends(ends[1])[1] + SLACK)}
            )
        mills = balls.above(beyond(low - SLACK)) * slope(low)
        approximated = balls.greatest(
            lambda a, b: balls.taylor(difference, a, b, ORDER), low - SLACK, high + SLACK, 1, NEAR, depth=8
        )
        log_error = proof.claims["neg_log_word"] * (1 + e_high)
        error = log_error * mills + approximated + coarse[key] * (high + approximated)
        worst = max(worst, error / (proof.claims["tail_slope"] * (low - SLACK) * U))
    proof.step(name, "2^12 < m < 2^56, z(m 2^-64)", "of the claim", Fraction(1), worst, "Gappa, Taylor models in balls")
    # For V within 2^-64: |log V - log(m 2^-64)| <= 1.416 2^-k, times Mills' ratio, which decreases.
    mills = balls.above(beyond(Fraction(288, 100))) * slope(Fraction(288, 100))
    width = balls.above(arb(2).sqrt()) * (1 + Fraction(1, 2**11)) * mills
    proof.step(name, "every V within 2^-64", "of 2^-k", Fraction(1), width, "ball arithmetic")


PROOFS = {"dpfast_normal_of_center": center, "dpfast_normal_of_shoulder": shoulder, "dpfast_normal_of_tail": tail}
