"""Proofs for src/shared/certified.h: the arc tangent and the tail of Student's t with 3 degrees of freedom."""

from fractions import Fraction

from flint import arb

from assurance.bounds import balls
from assurance.bounds.gappa import Script, magnitude
from assurance.bounds.proofs import U, nearest_to, powers
from assurance.bounds.values import Value, free, nearest

NARROW = Fraction(1, 2**30)
LEAST = Fraction(1, 2**1018)


def atan(proof):
    name, claim, z = "dpfast_atan", proof.claims["atan"], free("z")
    run = proof.library.run(name)
    v, quarter = run.variables["v"], run.variables["quarter"]
    p = run.variables["p"]
    found = powers(p, v)
    right = found == {k: (-1) ** k * nearest(Fraction(1, 2 * k + 1)) for k in range(12)}
    proof.holds(name, "coefficients (-1)^k / (2 k + 1), k <= 11, the nearest doubles", right, "exact rationals")
    form = run.result.op == "mul" and expand_form(run.result, quarter, p) and v.args == (quarter, quarter)
    half = run.variables["half"]
    form &= angle(half, z) and angle(quarter, half)
    proof.holds(name, "z / (1 + sqrt(1 + z^2)) twice, 4 (quarter p)", form, "structure")
    reach = Fraction(199, 1000)  # tan(pi / 16) = 0.19891...
    terms = len(found)
    rest = sum(abs(abs(found[k]) - Fraction(1, 2 * k + 1)) * reach ** (2 * k) for k in found)
    rest = (rest + reach ** (2 * terms) / (2 * terms + 1)) / (1 - reach**2 / 3)  # atan(q) / q >= 1 - q^2 / 3
    wide = proof.relative(run.result, {z: ("z", NARROW, 1)})
    total = (1 + wide) * (1 + rest) - 1
    proof.step(name, "2^-30 <= z <= 1", "relative", claim, total, "Gappa, exact rationals")
    script = Script()
    script.double("z", z, 0, NARROW)
    ends = []
    for one in (half, quarter):
        script.ask(script.rounded(one.args[1]))
    script.ask(script.rounded(p))
    ends = script.prove(proof.gappa)
    exact = ends[0] == ends[1] == (2, 2)
    proof.holds(name, "2^-1018 <= z < 2^-30: both quotients halve exactly", exact, "Gappa")
    # The result is 4 (z / 4) p with one rounding; atan z is within z^3 / 3 of z.
    p_error = max(abs(end - 1) for end in ends[2])
    total = (1 + p_error) * (1 + U) / (1 - NARROW**2 / 3) - 1
    proof.step(name, "2^-1018 <= z < 2^-30", "relative", claim, total, "Gappa, exact rationals")


def expand_form(result, quarter, p):
    """4 (quarter p), in either order."""
    four = [a for a in result.args if a.constant == 4]
    product = [a for a in result.args if a.op == "mul"]
    return len(four) == len(product) == 1 and set(product[0].args) == {quarter, p}


def angle(half, z):
    """half = z / (1 + sqrt(1 + z z))."""
    if half.op != "div" or half.args[0] is not z or half.args[1].op != "add":
        return False
    one, root = half.args[1].args
    if one.constant != 1 or root.op != "sqrt" or root.args[0].op != "add":
        return False
    return root.args[0].args[0].constant == 1 and root.args[0].args[1] == Value("mul", (z, z), "double")


def tail(y):
    """atan y - y / (1 + y^2), of balls or series."""
    return y.atan() - y / (1 + y * y)


def student_tail(proof):
    name, claim, c = "dpfast_student_tail", proof.claims["student_tail"], free("c")
    share = balls.above
    two_over_pi = nearest_to(2 / arb.pi())
    off = share(balls.ball(two_over_pi) * arb.pi() / 2 - 1)
    near = proof.library.run(name, assume={"c < 1.0": True}, opaque=("dpfast_atan",))
    proof.holds(
        name, "2 / pi is the nearest double", near.variables["two_over_pi"].constant == two_over_pi, "ball arithmetic"
    )
    far = proof.library.run(name, assume={"c < 1.0": False, "c < 2.5": False})
    series(proof, far)
    # 3 f - y f' >= (8/5) y^5 - 6 y^7 for f = atan y - y / (1 + y^2), by its alternating series.
    steep = Fraction(8, 5) > 6 * (Fraction(4, 10) + U) ** 2
    proof.holds(name, "c >= 2.5: the logarithmic slope is above -3", steep, "exact rationals")
    total = near_zero(proof, near, c, off)
    proof.step(name, "0 <= c < 1", "relative", claim, total, "Gappa, ball arithmetic")
    middle = proof.library.run(name, assume={"c < 1.0": False, "c < 2.5": True}, opaque=("dpfast_atan",))
    y = middle.variables["y"]
    # c -> tail(1 / c): a relative error of y counts at most 3 times.
    slope = balls.greatest(condition, Fraction(4, 10), 1, 64)
    proof.holds(name, "1 <= c <= 2.5: the logarithmic slope is above -3", slope < 3, "ball arithmetic")
    total = in_the_middle(proof, middle, y, off)
    moved = 3 * U / (1 - 3 * U)
    proof.step(name, "1 <= c < 2.5", "relative", claim, (1 + total) * (1 + moved) - 1, "Gappa, ball arithmetic")
    total = far_out(proof, far, off)
    proof.step(name, "2.5 <= c <= 2^300", "relative", claim, (1 + total) * (1 + moved) - 1, "Gappa, exact rationals")
    script = Script()
    script.double("y", far.variables["y"], 0, Fraction(1, 2**300))
    script.ask(script.rounded(far.result))
    top = magnitude(script.prove(proof.gappa)[0])
    proof.step(name, "c > 2^300", "size of the result", Fraction(1, 2**899), top, "Gappa")


def condition(low, high):
    y = balls.between(low, high)
    return balls.above(2 * y**3 / ((1 + y * y) ** 2 * balls.between(*ends_of_tail(low, high))))


def ends_of_tail(low, high):
    """The tail increases in y."""
    return balls.ends(tail(balls.ball(low)))[0], balls.ends(tail(balls.ball(high)))[1]


def near_zero(proof, run, c, off):
    """1 - (2 / pi) (atan c + c / (1 + c^2)): Gappa's absolute error, over the least value."""
    call = Value("call", ("dpfast_atan", c), "double")
    angle_error = proof.claims["atan"]
    script = Script()
    script.double("c", c, 0, 1)
    script.define("a", "rnd(a_)")
    script.bind(call, "a", "A")
    script.between("A", 0, Fraction(786, 1000))
    script.within("a - A", angle_error * Fraction(786, 1000) + LEAST)  # below 2^-1018 the error is below 2^-1018
    script.ask(f"{script.rounded(run.result)} - {script.exact(run.result)}")
    error = magnitude(script.prove(proof.gappa)[0])
    least = 1 - balls.above(2 / arb.pi() * (arb.pi() / 4 + arb(1) / 2))
    return (error + off) / least


def in_the_middle(proof, run, y, off):
    """(2 / pi) (atan y - y / (1 + y^2)), y in [0.4, 1]: in four ranges, each with its least value."""
    call = Value("call", ("dpfast_atan", y), "double")
    worst, parts = Fraction(0), 6
    for part in range(parts):
        low, high = (
            Fraction(4, 10) + Fraction(6, 10) * part / parts,
            Fraction(4, 10) + Fraction(6, 10) * (part + 1) / parts,
        )
        script = Script()
        script.double("y", y, low - U, high)
        script.define("a", "rnd(a_)")
        script.bind(call, "a", "A")
        bottom, top = balls.ends(balls.ball(low - U).atan())[0], balls.ends(balls.ball(high).atan())[1]
        script.between("A", bottom, top)
        script.within("a - A", proof.claims["atan"] * top)
        script.ask(f"{script.rounded(run.result)} - {script.exact(run.result)}")
        error = magnitude(script.prove(proof.gappa)[0])
        least, _ = balls.ends(2 / arb.pi() * tail(balls.ball(low - U)))
        worst = max(worst, error / least)
    return (1 + worst) * (1 + off) - 1


def series(proof, run):
    """The exact checks of the branch for c >= 2.5."""
    name, y, v, p = "dpfast_student_tail", run.variables["y"], run.variables["v"], run.variables["p"]
    found = powers(p, v)
    right = found == {n - 1: (-1) ** (n + 1) * nearest(Fraction(2 * n, 2 * n + 1)) for n in range(1, 23)}
    proof.holds(
        name, "coefficients (-1)^(n + 1) 2 n / (2 n + 1), n <= 22, the nearest doubles", right, "exact rationals"
    )
    product = {y: 1, v: 1, p: 1}
    inner = next(a for a in run.result.args if a.op == "mul")
    factors = [a for m in (inner, *[a for a in inner.args if a.op == "mul" and a not in (v, p)]) for a in m.args]
    form = sorted(map(id, [a for a in factors if a in product])) == sorted(map(id, product))
    proof.holds(name, "(2 / pi) (p v y), v = y y", form and v.args == (y, y), "structure")


def far_out(proof, run, off):
    """(2 / pi) y v p(v): the sum of (-1)^(n + 1) 2 n / (2 n + 1) y^(2 n + 1) to n = 22."""
    y, found = run.variables["y"], powers(run.variables["p"], run.variables["v"])
    top = Fraction(4, 10) + U
    rounding = max(
        proof.relative(run.result, {y: ("y", low, high)})
        for low, high in ((Fraction(1, 2**301), Fraction(1, 2**20)), (Fraction(1, 2**20), top))
    )
    radius = top**2
    rest = sum(abs(abs(found[n - 1]) - Fraction(2 * n, 2 * n + 1)) * radius ** (n - 1) for n in range(1, 23))
    rest = (rest + radius**22) / (Fraction(2, 3) - Fraction(4, 5) * radius)
    return (1 + rounding) * (1 + rest) * (1 + off) - 1


PROOFS = {"dpfast_atan": atan, "dpfast_student_tail": student_tail}
