"""Proofs for src/shared/certified.h: conversions, logarithms and exponentials."""

from fractions import Fraction

from flint import arb

from assurance.bounds import balls
from assurance.bounds.gappa import Script, Unproved, constant, magnitude, number
from assurance.bounds.proofs import U, expand, nearest_to, powers, series_difference
from assurance.bounds.values import Value, bits_of, double_of, evaluate, free, integer, nearest, operate, real

INTEGERS = "integers"
TAYLOR = "exact rationals"
MOST_S = Fraction(1716, 10000)  # 3 - 2 sqrt 2 = 0.17157...


def from_word(proof):
    run = proof.library.run("dpfast_from_word")
    high, low = run.variables["high"], run.variables["low"]
    word = free("w", "uint64_t")

    def at(value, w):
        return Fraction(evaluate(value, {"w": w}))

    affine = all(
        at(high, 1 << i) - at(high, 0) == (2**i if i >= 32 else 0)
        and at(low, 1 << i) - at(low, 0) == (2**i if i < 32 else 0)
        for i in range(64)
    )
    masks = all(at(v, 2**64 - 1) - at(v, 0) == sum(at(v, 1 << i) - at(v, 0) for i in range(64)) for v in (high, low))
    bases = at(high, 0) == 2**84 and at(low, 0) == 2**52
    proof.holds("dpfast_from_word", "halves 2^84 + h 2^32, 2^52 + l", affine and masks and bases and word, INTEGERS)
    sum_of = {(1, 0): 1, (0, 1): 1, (0, 0): -(2**84 + 2**52)}
    proof.holds("dpfast_from_word", "high - (2^84 + 2^52) + low", expand(run.result, (high, low)) == sum_of, TAYLOR)
    script = Script()
    script.integer("h", None, 0, 2**32 - 1)
    script.integer("l", None, 0, 2**32 - 1)
    script.define("x", "18446744073709551616 * 1048576 + h * 4294967296")
    script.define("y", "4503599627370496 + l")
    script.names.update({high: ("x", "x"), low: ("y", "y")})
    whole = script.rounded(run.result)
    difference = run.result.args[0]
    script.define("word", "h * 4294967296 + l")
    script.ask(f"{script.rounded(difference)} - {script.exact(difference)}")
    script.ask(f"{script.exact(run.result)} - word")
    script.ask(f"{whole} -/ {script.exact(run.result)}")
    script.hint(f"{script.exact(run.result)} - word -> 0")
    script.goals[1] = f"{script.exact(run.result)} - word"
    exact, same, relative = script.prove(proof.gappa)
    proof.holds("dpfast_from_word", "the difference is exact", magnitude(exact) == 0 == magnitude(same), "Gappa")
    claim = proof.claims["from_word"]
    proof.step("dpfast_from_word", "w in [1, 2^64)", "relative", claim, magnitude(relative), "Gappa")


def pieces(proof, function, b, k, f, exponents):
    """Whether x = 2^k z, z = 1 + f in [S, 2 S], S the double next to sqrt(1/2), for all doubles x.

    The bits of z do not depend on the exponent of x, and k grows with it, as long as no sum exceeds 64 bits: the ends
    of the range and its middle are checked. In each binade k is constant and f affine in the bits of x on two pieces,
    of which the ends are checked.
    """
    root = bits_of(0.5**0.5) - 1
    s = next(c for c in (root, root + 1, root + 2) if Fraction(double_of(c)) ** 2 >= Fraction(1, 2))
    edge = s & (2**52 - 1)
    right = True
    for e in exponents:
        for m in (0, 1, edge - 1, edge, edge + 1, 2**52 - 2, 2**52 - 1):
            bits, memory = e << 52 | m, {}
            memory[b] = bits
            shift, rest = evaluate(k, {}, memory), Fraction(evaluate(f, {}, memory))
            x = Fraction(double_of(bits))
            z = 1 + rest
            right &= 2 * (z * z) >= 1 and double_of(s) <= z < 2 * Fraction(double_of(s))
            right &= x == z * Fraction(2) ** shift
    proof.holds(function, "x = 2^k z, z in [sqrt(1/2), sqrt(2)), z - 1 exact", right, INTEGERS)


def half_angle(proof, function, run):
    """The relative error of 2 s (1 + v tail(v)) against 2 atanh(s), s = f / (2 + f): Gappa, and exact rationals."""
    f, s, v = run.variables["f"], run.variables["s"], run.variables["v"]
    product = run.result.args[1]
    exact_form = (
        product.op == "mul"
        and product.args[0].op == "mul"
        and product.args[0].args == (real(2), s)
        and s.op == "div"
        and expand(s.args[1], [f]) == {(1,): 1, (0,): 2}
    )
    exact_form &= s.args[0] is f
    proof.holds(function, "the form 2 s p, s = f / (2 + f), v = s s", exact_form and v.args == (s, s), "structure")
    script = Script()
    script.double("z", f.args[0], Fraction(707, 1000), Fraction(1415, 1000))
    script.ask(f"{script.rounded(f)} - {script.exact(f)}")
    proof.holds(function, "f = z - 1 is exact", f.op == "sub" and magnitude(script.prove(proof.gappa)[0]) == 0, "Gappa")
    worst = Fraction(0)
    for low, high in ((Fraction(-293, 1000), -Fraction(1, 2**54)), (Fraction(1, 2**54), Fraction(4143, 10000))):
        worst = max(worst, proof.relative(product, {f: ("f", low, high)}))
    rest = remainder(powers(product.args[1], v))
    return (1 + worst) * (1 + rest) - 1


def remainder(coefficients):
    """Of atanh(s) / s by a polynomial in v = s^2: |difference| for |s| <= 0.1716; atanh(s) / s >= 1."""
    radius, terms = MOST_S**2, len(coefficients)
    rest = radius**terms / ((2 * terms + 1) * (1 - radius))
    return series_difference(coefficients, lambda k: Fraction(1, 2 * k + 1), radius, rest)


def atanh_tail(proof):
    run = proof.library.run("dpfast_atanh_tail")
    found = powers(run.result, free("v"))
    right = found == {k: nearest(Fraction(1, 2 * k + 3)) for k in range(10)}
    proof.holds("dpfast_atanh_tail", "coefficients 1/3 to 1/21, each the nearest double", right, TAYLOR)
    terms, radius = len(found), MOST_S**2
    rest = radius ** (terms + 1) / ((2 * terms + 3) * (1 - radius))
    claim = proof.claims["atanh_tail"]
    proof.step("dpfast_atanh_tail", "|s| < 0.1716", "rest, of atanh(s)", claim, rest, TAYLOR)


def log(proof):
    run = proof.library.run("dpfast_log")
    v = run.variables
    b = v["b"]
    shift = operate("-", v["k"], integer(1023))
    pieces(proof, "dpfast_log", b, Value("cast", (shift,), "int64_t"), v["f"], (1, 2, 1022, 1023, 1024, 2045, 2046))
    exponents = all(evaluate(v["exponent"], {}, {v["k"]: k}) == k - 1023 for k in range(2100))
    proof.holds("dpfast_log", "exponent = k - 1023", exponents, INTEGERS)
    proof.step(
        "dpfast_log", "x in [2^-1022, inf)", "|exact| + 1", proof.claims["log"], logarithm(proof, run), "combined"
    )


def logarithm(proof, run, before=Fraction(0), sign=1):
    """The bound of |result - exact| / (|exact| + 1) for k log 2 + log z; `before` is an error of the exact value."""
    name = run.function.name
    scaled = run.result.args[0]
    two = constant(next(a for a in scaled.args if a.constant is not None), "log 2")
    proof.holds(name, "log 2 is the nearest double", two == nearest_to(arb.const_log2()), TAYLOR)
    whole = run.variables["exponent" if sign > 0 else "missing"]
    if run.result.op != ("add" if sign > 0 else "sub") or scaled.op != "mul" or whole not in scaled.args:
        raise Unproved(f"{name} is not k log 2 + or - log z")
    zeta = half_angle(proof, name, run)
    off = balls.above(balls.ball(two) / arb.const_log2() - 1)
    rho = (1 + off) * (1 + U) - 1
    most = balls.above(arb(2).log() / 2 * (1 + arb(2) ** -40))  # |log z|, z in [S, 2 S]
    # |exact - k log 2| <= most + before; the result is (k log 2 (1 + rho) + log z (1 + zeta)) (1 + U).
    slope = rho + U * (1 + rho)
    rest = (1 + U) * (rho * (most + before) + zeta * most + before) + U * before
    return max(slope, rest)


def neg_log_word(proof):
    run = proof.library.run("dpfast_neg_log_word", opaque=("dpfast_from_word",))
    v = run.variables
    pieces(proof, "dpfast_neg_log_word", v["b"], v["k"], v["f"], range(1023, 1023 + 65))
    given = {k: {v["k"]: k} for k in range(65)}
    missing = all(evaluate(v["missing"], {}, dict(given[k])) == 64 - k for k in given)
    stored = all(evaluate(run.stores["*two_to_minus_k"], {}, dict(given[k])) == 2.0**-k for k in given)
    proof.holds("dpfast_neg_log_word", "64 - k and 2^-k, k in 0..64", missing and stored, INTEGERS)
    word = proof.claims["from_word"]
    bound = logarithm(proof, run, word / (1 - word), -1)
    proof.step("dpfast_neg_log_word", "w in [1, 2^64)", "exact + 1", proof.claims["neg_log_word"], bound, "combined")
    proof.step("dpfast_neg_log_word", "w in [1, 2^64), for powers", "exact + 1", 3 * U, bound, "combined")


def exp_neg(proof):
    name = "dpfast_exp_neg"
    run = proof.library.run(name, assume={"y < 708.0": True})
    v, p = run.variables, run.result.args[0]
    j, r, y = v["j"], v["r"], free("y")
    if run.result.op != "mul":
        raise Unproved("exp_neg does not end in a product")
    integers(proof, name, run.result.args[1], j)
    high, low, inverse = (constant(c, "a piece of log 2") for c in (r.args[1].args[1].args[1], r.args[0].args[1],
                                                                  j.args[0].args[0].args[1]))  # fmt: skip
    log2 = arb.const_log2()
    pieces_right = (
        inverse == nearest_to(1 / log2)
        and low == nearest_to(log2 - balls.ball(high))
        and high
        == Fraction(int((log2 * arb(2) ** 42).unique_fmpz() or (log2 * arb(2) ** 42).floor().unique_fmpz()), 2**42)
    )
    proof.holds(name, "1 / log 2 and the pieces of log 2: high of 42 bits, low nearest", pieces_right, TAYLOR)
    found = powers(p, r)
    factorials, product = {}, 1
    for k in range(14):
        product *= max(k, 1)
        factorials[k] = nearest(Fraction(1, product))
    proof.holds(name, "coefficients 1/k!, k <= 13, each the nearest double", found == factorials, TAYLOR)
    distance, reach, most = reduction(proof, j, r, y, high, low, inverse)
    proof.holds(name, "2^-j exact and normal: 0 <= j <= 1021", most <= 1021, "Gappa")
    rounding = proof.relative(p, {r: ("r", -reach, reach)})
    approximation = balls.taylor(lambda x: balls.exact(p, {r: x}) * (-x).exp() - 1, -reach, reach, order=24)
    moved = distance / (1 - distance)
    total = (1 + rounding) * (1 + approximation) * (1 + moved) - 1
    proof.step(
        name, "0 <= y < 708, y exact", "relative", proof.claims["exp_neg"], total, "Gappa, Taylor model in balls"
    )
    proof.step(name, "0 <= y < 708, y exact, for powers", "relative", 3 * U, total, "the same")
    slope = max(total, U * (1 + total) * (1 + Fraction(1, 2**40)))  # e^(708 u) - 1 < 708 u (1 + 2^-40)
    proof.step(name, "0 <= y < 708, y right to 2^-53", "1 + y", proof.claims["exp_neg"], slope, "combined")


def integers(proof, name, scale, j):
    """Whether the scale is 2^-j for j = 0..1022, by its integers."""
    right = all(evaluate(scale, {}, {j: float(i)}) == 2.0**-i for i in range(1023))
    proof.holds(name, "the scale is 2^-j, j in 0..1022", right, INTEGERS)


def reduction(proof, j, r, y, high, low, inverse):
    """|r - (j log 2 - y)|, |r| and the greatest j, by Gappa."""
    script = Script(("-Eprecision=200",))
    script.double("y", y, 0, 708)
    script.between("L2", *balls.ends(arb.const_log2()))
    shifted, magic = j.args[0], number(constant(j.args[1], "the shift"))
    jj, rr = script.rounded(j, "j"), script.rounded(r, "r")
    one, two = script.rounded(shifted.args[0]), script.rounded(shifted)
    left, right = script.rounded(r.args[0]), script.rounded(r.args[1])
    product = script.rounded(r.args[1].args[1])
    high, low, inverse = number(high), number(low), number(inverse)
    script.define("e", "j * L2 - y")
    script.define("scaled", f"y * {inverse}")
    for goal in ("r - e", "r", "j"):
        script.ask(goal)
    script.hint(f"j - {one} -> (j - ({two} - {magic})) + ({two} - ({one} + {magic}))")
    script.hint(f"e -> (j - {one}) * L2 + ({one} - scaled) * L2 + y * ({inverse} * L2 - 1)")
    script.hint(f"y - j * {high} -> j * (L2 - {high}) - e")
    script.hint(f"y - {product} -> (y - j * {high}) - ({product} - j * {high})")
    script.hint(
        f"r - e -> (r - ({left} - {right})) + ({left} - j * {low}) - ({right} - (y - {product})) + "
        f"({product} - j * {high}) - j * (L2 - {high} - {low})"
    )
    if (jj, rr) != ("j", "r"):
        raise Unproved("j or r is not computed")
    distance, reach, most = script.prove(proof.gappa)
    return magnitude(distance), magnitude(reach), most[1]


def one_minus_exp_neg(proof):
    name, claim, y = "dpfast_one_minus_exp_neg", proof.claims["one_minus_exp_neg"], free("y")
    run = proof.library.run(name, assume={"y > 0.35": False})
    edge = nearest(Fraction("0.35"))
    p = run.variables["p"]
    factorial, signs = 1, {}
    for k in range(13):
        factorial *= k + 1
        signs[k] = Fraction((-1) ** k, factorial)
    proof.holds(name, "coefficients (-1)^k / (k + 1)!, k <= 12", powers(p, y) == signs, TAYLOR)
    rounding = proof.relative(run.result, {y: ("y", Fraction(1, 2**60), edge)})
    rest = edge**13 / (factorial * 14) / (1 - edge / 2)  # (1 - e^-y) / y >= 1 - y / 2
    total = (1 + rounding) * (1 + rest) - 1
    proof.step(name, "2^-60 <= y <= 0.35", "relative", claim, total, "Gappa, exact rationals")
    script = Script()
    script.double("y", y, 0, Fraction(1, 2**60))
    script.ask(script.rounded(p))
    ends = script.prove(proof.gappa)[0]
    one = ends == (1, 1) and run.result.op == "mul" and set(run.result.args) == {p, y}
    proof.holds(name, "0 < y < 2^-60: the result is y", one, "Gappa")
    proof.step(name, "0 < y < 2^-60", "relative", claim, Fraction(1, 2**60), TAYLOR)
    far = proof.library.run(name, assume={"y > 0.35": True}, opaque=("dpfast_exp_neg",))
    call = far.result.args[1]
    form = far.result.op == "sub" and far.result.args[0].constant == 1 and call.args == ("dpfast_exp_neg", y)
    proof.holds(name, "y > 0.35: 1 - dpfast_exp_neg(y)", form, "structure")
    # e^-y (1 + y) / (1 - e^-y) = (1 + y) / (e^y - 1) decreases; beyond 708 the exponential counts as 0.
    ratio = balls.above((1 + balls.ball(edge)) / balls.ball(edge).expm1())
    total = (1 + U) * (1 + proof.claims["exp_neg"] * ratio) - 1 + balls.above((arb(-708)).exp()) * 2
    proof.step(name, "y > 0.35", "relative", claim, total, "ball arithmetic")


PROOFS = {
    "dpfast_from_word": from_word,
    "dpfast_atanh_tail": atanh_tail,
    "dpfast_log": log,
    "dpfast_neg_log_word": neg_log_word,
    "dpfast_exp_neg": exp_neg,
    "dpfast_one_minus_exp_neg": one_minus_exp_neg,
}
