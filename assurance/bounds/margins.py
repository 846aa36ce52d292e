"""Proofs of the margins: a decision by doubles holds for every real input that the doubles stand for.

A margin is a polynomial with positive coefficients in quantities that are not negative, computed with relative error
(1 + u)^n - 1. What it must exceed is such a polynomial too, derived from the claimed bounds. Each monomial is compared.
"""

from fractions import Fraction

from flint import arb

from assurance.bounds import balls
from assurance.bounds.gappa import Script, Unproved, magnitude
from assurance.bounds.proofs import U, expand, find
from assurance.bounds.values import Value, evaluate, free, literal

TINY = Fraction(1, 2**900)  # more than all underflows of one margin
ROOT2 = Fraction(14143, 10000)


def roundings(value, symbols):
    """n such that the doubles compute the value, a sum of positive terms, up to a factor within (1 + u)^+-n."""
    if value in symbols or value.constant is not None:
        return 0
    if value.op not in ("add", "mul", "div"):
        raise Unproved(f"{value.op} in a margin")
    one, two = (roundings(a, symbols) for a in value.args)
    return 1 + (max(one, two) if value.op == "add" else one + two)


def compare(margin, needed, symbols, half):
    """The greatest share of the margin that is needed, over its monomials.

    With `half` the margin is below 1/2 where anything is decided: relative errors then count half of themselves,
    against the constant, which also has to cover the rounding of 1/2 - margin, 2^-55.
    """
    n = roundings(margin, symbols)
    lost = (1 + U) ** n - 1
    has = expand(margin, symbols)
    zero = (0,) * len(symbols)
    if any(c < 0 for c in has.values()) or set(needed) - set(has):
        raise Unproved(f"a margin lacks {set(needed) - set(has)}")
    shares = [needed[m] / has[m] for m in needed if m != zero]
    if half:
        excess = max([Fraction(0), *(share - 1 for share in shares)])
        constant = needed.get(zero, 0) + (lost + excess) / (2 * (1 - lost) ** 2) + Fraction(1, 2**55) + TINY
        return max([constant / has[zero], *(share for share in shares if share <= 1)])
    return max((needed[m] + (TINY if m == zero else 0)) / (has[m] * (1 - lost)) for m in needed)


def ties(proof):
    """y - nearest is exact and at most 1/2, for y < 2^51 in every binade from 1/4 on; 1/2 - margin rounds by 2^-55."""
    convert = proof.library.run("dpfast_to_int").result
    some = [sign * 2**k + d for k in range(51) for sign in (-1, 1) for d in (-1, 0, 1)] + [2**51, -(2**51)]
    same = all(evaluate(convert, {"x": float(i)}) == i for i in some)
    proof.holds("dpfast_to_int", "x at powers of two to 2^51, where its bits are affine in x", same, "integers")
    run = proof.library.run("dpfast_round_exponential", opaque="all")
    difference = next(
        d for d in find(run.result, "sub") if d.args[1].op == "sub" and d.args[0] in d.args[1].args[0].args
    )
    y, nearest = difference.args
    script = Script()
    for e in range(-2, 51):
        script.names = {}
        script.define(f"y{e + 2}", f"fixed<{e - 52},dn>(v{e + 2})")
        script.between(f"y{e + 2}", Fraction(2) ** e, Fraction(2) ** (e + 1))
        script.bind(y, f"y{e + 2}")
        rounded = script.rounded(nearest)
        script.define(f"d{e + 2}", f"y{e + 2} - {rounded}")
        script.ask(script.define(f"exact{e + 2}", f"rnd(d{e + 2}) - d{e + 2}"))
    script.between("M", 0, Fraction(1, 2))
    script.define("room", "1b-1 - M")
    script.ask(script.define("last", "rnd(room) - room"))
    *exact, last = script.prove(proof.gappa)
    right = all(magnitude(interval) == 0 for interval in exact)
    proof.holds("nearest integer", "y - nearest is exact, 1/4 <= y < 2^51", right, "Gappa")
    proof.step("nearest integer", "1/2 - margin", "rounding", Fraction(1, 2**55), magnitude(last), "Gappa")


def step(proof, name, text, share):
    proof.step(name, text, "of the margin", Fraction(1), share, "exact rationals")


def round_exponential(proof):
    """|y - (scale E + offset)| for every U of the word and every real scale and offset that round to the doubles."""
    run = proof.library.run("dpfast_round_exponential", opaque="all")
    scale, margin = free("scale"), run.variables["margin"]
    e = run.variables["e"]
    k = run.variables["two_to_minus_k"]
    beta = proof.claims["neg_log_word"] / (1 - proof.claims["neg_log_word"])  # of e + 1, e computed
    width = ROOT2 * (1 + Fraction(1, 2**11))  # -log(1 - 1/m) < (1 + 2^-11) / m, 1/m <= sqrt(2) 2^-k
    needed = {
        (1, 1, 0): U + U * (1 + U) + U + (1 + U) * beta,
        (1, 0, 0): (1 + U) * beta,
        (1, 0, 1): (1 + U) * width,
        (0, 0, 0): U / 2 + U,
    }
    symbols = (scale, e, k)
    step(proof, "dpfast_round_exponential", "every U, scale and offset", compare(margin, needed, symbols, True))
    large = expand(margin, symbols)[1, 1, 0] * (2**51 - 1) * (1 - 8 * U)
    proof.holds("dpfast_round_exponential", "y >= 2^51 is undecided", large > 1, "exact rationals")


GAUSSIANS = (
    ("dpfast_gaussian_of_center", "dpfast_normal_of_center", "center", 2**61 - 2**7, "dpfast_from_word"),
    ("dpfast_gaussian_of_shoulder", "dpfast_normal_of_shoulder", "shoulder", 2**56 - 4, "dpfast_from_word"),
    ("dpfast_gaussian_of_tail", "dpfast_normal_of_tail", "tail", None, None),
)


def gaussian(proof):
    """|fl(sigma z) - sigma z(V)| for every V of the word and every real sigma that rounds to the double."""
    sigma = free("sigma")
    conversion = proof.library.run("dpfast_from_word").result
    for name, inner, kind, least, _ in GAUSSIANS:
        run = proof.library.run(name, opaque=(inner, "dpfast_round_signed", "dpfast_from_word"))
        call = run.result
        z, y, margin = run.variables["z"], call.args[2], call.args[3]
        if call.args[0] != "dpfast_round_signed" or y.op != "mul" or set(y.args) != {sigma, z}:
            raise Unproved(f"{name} does not round sigma z")
        slope = proof.claims[kind + "_slope"] * U
        constant = proof.claims.get(kind + "_constant", Fraction(0)) * U
        # |z - Z| <= slope Z + constant, so Z <= (z + constant) / (1 - slope).
        slope, constant = slope / (1 - slope), constant / (1 - slope)
        needed = {
            (1, 1, 0): U + (1 + U) * slope + U,
            (1, 0, 0): (1 + U) * constant,
            (0, 0, 0): Fraction(0),
        }
        k = run.variables.get("two_to_minus_k", free("none"))
        if kind == "tail":
            needed[1, 0, 1] = 1 + U  # 2^-k for every V within 2^-64
            del needed[1, 0, 0]
        symbols = (sigma, z, k)
        step(proof, name, "every V and sigma", compare(margin, needed, symbols, True))
        large = expand(margin, symbols)[1, 1, 0] * 2**51 * (1 - 8 * U)
        proof.holds(name, "y >= 2^51 is undecided", large > 1, "exact rationals")
        if least:
            edge = {"center": 2**61, "shoulder": 2**56}[kind]
            right = evaluate(conversion, {"w": least - 1}) < edge <= evaluate(conversion, {"w": least + 1})
            proof.holds(name, f"the least word is above 2^{edge.bit_length() - 1} - {edge - least}", right, "integers")


def below_exp_neg(proof):
    """Heads or tails holds for every U of the word; gamma right to 3 u relative, and to `error` < 1 besides."""
    name = "dpfast_below_exp_neg_within"
    run = proof.library.run(name, opaque="all")
    v = run.variables
    p, u, gamma, error = v["p"], v["u"], free("gamma"), free("error")
    beta = proof.claims["exp_neg"]
    # p (1 + gamma) a, a the relative errors of exp and gamma, times e^error < e; e^error - 1 < 1.7183 error.
    small = beta / (1 - beta * 709) + 3 * U * (1 + 2**10 * U * 3)
    needed = {
        (1, 0, 0, 0): Fraction(27183, 10000) * small * (1 + Fraction(1, 2**30)) + U,
        (1, 0, 1, 0): Fraction(27183, 10000) * small * (1 + Fraction(1, 2**30)),
        (1, 0, 0, 1): Fraction(17183, 10000) * (1 + Fraction(1, 2**30)),
        (0, 1, 0, 0): 2 * U + 4 * U * U,
        (0, 0, 0, 0): 1 + 4 * U,  # the word's width, and roundings of the constant
    }
    share = compare(v["margin"], needed, (p, u, gamma, error), False)
    step(proof, name, "every U, gamma right to 3 u and error < 1", share)


def student(proof):
    """Both comparisons of dpfast_rounded_student3, for every U of the word and every real scale."""
    name = "dpfast_rounded_student3"
    run = proof.library.run_only(name, ("u", "s", "k", "margin"))
    u, scale = run.variables["u"], free("scale")
    margin = expand(run.variables["margin"], [u])
    root = expand(run.variables["s"], [scale])
    off = balls.above(balls.ball(root[1,]) / arb(3).sqrt() - 1)
    edge = (1 + off) * (1 + U) / ((1 - U) ** 2 * (1 - U)) - 1  # constant, product, scale; division: of c
    slope = balls.greatest(steepness, 0, 1, 64)
    proof.holds(name, "the logarithmic slope of the tail is above -3, c <= 1", slope < 3, "ball arithmetic")
    error = (1 + proof.claims["student_tail"]) * (1 + edge) ** 3 / (1 - edge) ** 3 - 1
    factor, constant = margin[1,], margin[0,]
    lost = (1 + U) ** 3
    below = (1 - factor / lost) * (1 + U) * (1 + error) <= 1 - U and constant / lost > Fraction(1, 2**64)
    above = (1 + factor / lost) * (1 - U) * (1 - error) >= 1 + 2 * U and constant / lost > Fraction(1, 2**64) * (1 + U)
    proof.holds(name, "both edges, for every U and scale", below and above, "exact rationals")
    step(proof, name, "2^-43 u + 2^-63", max((error + 4 * U) / (factor / lost), Fraction(1, 2**64) / (constant / lost)))


def steepness(low, high):
    c = balls.between(low, high)
    least = 1 - 2 / arb.pi() * (balls.ball(high).atan() + balls.ball(high) / (1 + balls.ball(high) ** 2))
    return balls.above(c * 4 / arb.pi() / (1 + c * c) ** 2 / least)


def choose(proof):
    """U - C / W > 0 below and C / W - U > 0 above, at the least error, 2^-50; a greater one only adds."""
    error = Fraction(1, 2**50)
    run = proof.library.run_only("dpfast_choose", ("total", "target", "margin"))
    form = run.variables["margin"].op == "mul" and run.variables["target"].op == "mul"
    proof.holds("dpfast_choose", "margin = error total, target = (w 2^-64) total", form, "structure")
    # target: 2 roundings; the difference and the margin one each; U is in [w, w + 1) 2^-64.
    needed = error / 2 + (1 + U) ** 2 - 1 + Fraction(1, 2**64)
    step(proof, "dpfast_choose", "every U, error >= 2^-50", needed / (error * (1 - U) / (1 + U)))


def sums(proof):
    """Twice (numerator and total) the error of an edge against half of the constant; weights have 2^-50 (1 + y)."""
    beta, macros = proof.claims["exp_neg"], proof.library.macros
    two_sum = Fraction(1, 2**52) + Fraction(1, 2**44)
    compensated = Fraction(1, 2**52) + Fraction(2**42, 2**106)  # blocks: n <= 2^31 / 2^10
    cases = {
        "CHOICE_ERROR": (beta * 76 + 3 * U * 75 + 135 * U + compensated, Fraction(1, 2**58)),
        "DPFAST_LEVEL_ERROR": (
            beta * 128 + U * 128 + proof.claims["one_minus_exp_neg"] + Fraction(1, 2**46) + 3 * U + two_sum,
            Fraction(1, 2**120),
        ),
        "SCORES_ERROR": (beta * 161 + 3 * U * 160 + 4 * U + two_sum, Fraction(1, 2**70)),
    }
    for name, (relative, rest) in cases.items():
        edge = relative * (1 + Fraction(1, 2**20)) + rest
        share = 2 * edge / (1 - edge) / (macros[name].constant / 2)
        step(proof, name, "an edge / total", share)
    # unit, length and product round once each; then a sum for each part, whose terms have no more roundings.
    weights = (1 + U) ** (3 + int(macros["DPFAST_PARTS"].constant)) - 1
    proof.step(
        "dpfast_interval_weights",
        "up to DPFAST_PARTS parts",
        "relative",
        proof.claims["weights"],
        weights,
        "exact rationals",
    )
    function = proof.library.functions["dpfast_box_cumulative"]
    columns, far = free("columns", "ptrdiff_t"), free("far")
    run = proof.library.run_only("dpfast_box_cumulative", ("loss",))
    run.variables.update(far=far, columns=columns)
    returned = run.value(next(node for node in walk(function.body) if node.kind == "return").parts[0])
    has = expand(returned, (Value("cast", (columns,), "double"), far))
    # rho: exp at y < 80, 1 - q, the two-word sum, and of (columns + far + 2) 2^-51; four times that.
    rho = beta * 81 + 2 * proof.claims["one_minus_exp_neg"] + two_sum
    # For columns + far <= 2^27, rho < 2^-23: 4 rho^2 and the roundings of the bound go to its constant.
    each, constant = Fraction(4, 2**51), 4 * (rho + Fraction(2, 2**51)) + Fraction(4, 2**46) + 8 * U / 2**22
    shares = [constant / has[0, 0], each / has[1, 0], each / has[0, 1]]
    step(proof, "dpfast_box_cumulative", "an edge / total, columns + far <= 2^27", max(shares))


def discount(proof):
    """q of dpfast_discount_up: above exp(-beta) by 2^-53 at least, by 2^-45 min(beta, 1) + 2^-51 at most."""
    run = proof.library.run("dpfast_discount_up", opaque=("dpfast_one_minus_exp_neg",))
    d = find(run.result, "call")[0]
    script = Script(("-Eprecision=120",))
    script.define("d", "rnd(d_)")
    script.bind(d, "d")
    script.between("d", Fraction(1, 2**31), 1)
    q, outer = script.rounded(run.result), run.result.args[0]
    product = outer.args[1]
    inner, p = script.rounded(outer), script.rounded(product)
    script.ask(f"{inner} - (1 - {p})")
    script.ask(f"{q} - ({inner} + {run.result.args[1].constant.numerator}b-52)")
    script.ask(f"{p} -/ {script.exact(product)}")
    one, two, relative = script.prove(proof.gappa)
    factor = next(a.constant for a in product.args if a.constant is not None)
    off = proof.claims["one_minus_exp_neg"] + magnitude(relative) * 2  # of the product, besides the factor
    relative = (factor * (1 - off) - 1, factor * (1 + off) - 1)
    added = run.result.args[1].constant
    name, down = "dpfast_discount_up", magnitude(one) + magnitude(two)
    proof.holds(name, "q >= exp(-beta) + 2^-53", relative[1] <= 0 and added - down >= U, "Gappa, exact rationals")
    share = max(-relative[0] / Fraction(1, 2**45), (added + down) / Fraction(1, 2**51))
    step_text = "q <= exp(-beta) + 2^-45 min(beta, 1) + 2^-51"
    proof.step(name, step_text, "of the claim", Fraction(1), share, "Gappa, exact rationals")


def flip(proof):
    """The error of `value - loss` in dpfast_flip, for every U of the word."""
    run = proof.library.run_only("dpfast_flip", ("loss", "l", "u", "value", "margin"))
    v = run.variables
    margin = v["margin"]
    value, loss = v["value"], v["loss"]
    inverses = find(margin, "div")
    inverse = next(d for d in inverses if d.args[0].constant == 1)
    width = next(d for d in inverses if d.args[0].constant != 1)
    unit = width.args[0].constant
    proof.holds(
        "dpfast_flip", "1 / l and 2^-62 / (u l)", width.args[1].op == "mul" and unit == Fraction(1, 2**62), "structure"
    )
    slack = 1 + Fraction(1, 2**8)  # log(1 - x) for the relative error x < 2^-9 of l, and products of errors
    log, one, word = proof.claims["log"], proof.claims["one_minus_exp_neg"], proof.claims["neg_log_word"]
    needed = {
        (1, 0, 0, 0): slack * word,
        (0, 1, 0, 0): slack * Fraction(1, 2**63) / unit,
        (0, 0, 1, 0): slack * (log + 4 * U),
        (0, 0, 0, 1): slack * 6 * U,
        (0, 0, 0, 0): slack * (word + U + one + log),
    }
    share = compare(margin, needed, (inverse, width, value, loss), False)
    step(proof, "dpfast_flip", "every U, l > 2^-40, word >= 2^12", share)


def knorm(proof):
    """src/knorm/knorm.h: -log of a product of uniform numbers; the margins of the box and of the ball."""
    run = proof.library.run("dpfast_neg_log_product", opaque=("dpfast_log",))
    n, widths = free("n"), free("product.widths")
    r, bound = run.result, run.stores["*error"]
    log2 = Fraction(693148, 10**6)
    # Fewer than 2 n roundings: |log(1 + e)| < 2 n u (1 + u). 16 u of that, 2^36 u^2 for n < 2^31, goes to the constant.
    needed = {
        (1, 0, 0): 2 * U * (1 - 16 * U),
        (0, 1, 0): Fraction(5, 2) * U * (1 + 8 * U),
        (0, 0, 1): (1 + Fraction(1, 2**11)) * (1 + U * 2**32),
        (0, 0, 0): Fraction(3, 2) * U * log2 * (1 + U) + proof.claims["log"] * (1 + log2) + 2**36 * U * U,
    }
    step(proof, "dpfast_neg_log_product", "n < 2^31", compare(bound, needed, (n, r, widths), False))
    kappa = Fraction(1, 2**6)
    box = proof.library.run_only("dpfast_box", ("unit", "error", "step", "y"))
    margin = call_of(proof, "dpfast_box", box).args[3]
    y, own, given = box.variables["y"], box.variables["step"], free("r[row].error")
    four = (1 + U) ** 3 / (1 - U) - 1
    needed = {
        (1, 1, 0): Fraction(1),
        (0, 1, 0): four * (1 + kappa),
        (0, 0, 1): (1 + kappa) * (1 + 2 * U),
        (0, 0, 0): Fraction(0),
    }
    step(proof, "dpfast_box", "every U of the row", compare(margin, needed, (given, y, own), True))
    ball = proof.library.run_only("dpfast_ball", ("error", "own", "step", "y"))
    margin = call_of(proof, "dpfast_ball", ball).args[3]
    y, own = ball.variables["y"], ball.variables["step"]
    given, most = free("unit[row].error"), free("extra[row].most")
    slope, constant = proof.claims["center_slope"] * U, proof.claims["center_constant"] * U
    needed = {
        (1, 1, 0, 0): Fraction(1),
        (0, 1, 0, 0): U + (1 + kappa) * (1 + 2 * U) * slope,
        (0, 0, 1, 0): (1 + kappa) * (1 + 2 * U) * constant,
        (0, 0, 1, 1): (1 + kappa) * (1 + 2 * U),
        (0, 0, 0, 0): Fraction(0),
    }
    step(proof, "dpfast_ball", "every U of the row", compare(margin, needed, (given, y, own, most), True))
    room = (
        16 - proof.claims["center_slope"]
        >= Fraction(13, 2)
        >= proof.claims["tail_slope"] - proof.claims["center_slope"]
    )
    proof.holds("dpfast_normals", "tail words: 6.5 u z + 2^-k besides", room, "exact rationals")


def added_to_tails(proof):
    """The constant c of `c * DPFAST_UNIT * tail` in dpfast_normals."""
    for node in walk(proof.library.functions["dpfast_normals"].body):
        if node.kind == "assign" and node.parts[0] == "+=" and node.parts[1].parts == ("error",):
            return literal(node.parts[2].parts[1].parts[1].parts[0]).constant
    raise Unproved("dpfast_normals adds nothing to the error of its tails")


def call_of(proof, name, run):
    """The call of dpfast_round_signed in a function, with the variables of a run."""
    node = next(node for node in walk(proof.library.functions[name].body) if is_call(node, "dpfast_round_signed"))
    run.opaque = "all"
    return run.value(node)


def is_call(node, name):
    return node.kind == "call" and node.parts[0].parts[0] == name


def walk(node):
    yield node
    for piece in node.parts:
        for inner in piece if isinstance(piece, tuple) else (piece,):
            if hasattr(inner, "kind"):
                yield from walk(inner)
            elif isinstance(inner, tuple):
                for part_ in inner:
                    if hasattr(part_, "kind"):
                        yield from walk(part_)


PROOFS = {
    "nearest integer": ties,
    "dpfast_round_exponential": round_exponential,
    "dpfast_gaussian_of": gaussian,
    "dpfast_below_exp_neg_within": below_exp_neg,
    "dpfast_rounded_student3": student,
    "dpfast_choose": choose,
    "CHOICE_ERROR": sums,
    "dpfast_discount_up": discount,
    "dpfast_flip": flip,
    "dpfast_knorm": knorm,
}
