"""Proofs for powers (src/descent/descent.h) and for the weights of joint quantiles (src/chain/_chain.pyx)."""

import re
from fractions import Fraction

from flint import arb

from assurance.bounds import balls
from assurance.bounds.gappa import Script, Unproved, magnitude
from assurance.bounds.margins import step, walk
from assurance.bounds.proofs import U, expand, find, nearest_to
from assurance.bounds.source import Parser, read, tokens
from assurance.bounds.values import Run, free

SHARP = 3 * U  # of dpfast_neg_log_word, times exact + 1, and of dpfast_exp_neg: elementary.py proves both


def decayed(proof):
    """exp(-decay (64 log 2 - e)), e = -log(i 2^-64): the error of the exponent is greatest for i = 1."""
    name = "dpfast_decayed"
    run = proof.library.run(name, opaque=("dpfast_neg_log_word", "dpfast_exp_neg"))
    exponent = run.variables["exponent"]
    decay, difference = exponent.args
    whole = 64 * arb.const_log2()
    constant, call = difference.args
    form = exponent.op == "mul" and decay is free("decay") and difference.op == "sub"
    form &= constant.constant == nearest_to(whole) and call.args[:2] == ("dpfast_neg_log_word", free("i", "uint64_t"))
    proof.holds(name, "exp(-decay (64 log 2 - e)), the constant nearest", form, "structure")
    most = balls.above(whole)
    off = balls.above(balls.ball(constant.constant) - whole)
    # With l = log i: off + SHARP (most - l + 1) + u l (difference) + u l (product, decay <= 1), which decreases in l.
    error = (off + SHARP * (most + 1)) * (1 + 8 * U)
    total = (1 + SHARP) * (1 + error + error**2) - 1
    proof.step(name, "i >= 1, 0 <= decay <= 1", "relative", proof.claims["decayed"], total, "ball arithmetic")


def powers(proof):
    """(1 + z)^-decay by its series to z^4, z = j / a <= 15 / 2^13, times a scale and the power of a."""
    name = "dpfast_powers"
    run = proof.library.run_only(name, ("c2", "c3", "c4"))
    node = [n for n in walk(proof.library.functions[name].body) if n.kind == "assign" and n.parts[1].kind == "index"][
        -1
    ]
    z, decay = free("z"), free("decay")
    run.variables["z"] = z
    series = run.value(node.parts[2])
    exact = expand(series, (decay, z))
    binomial = {(0, 0): Fraction(1)}
    for k in range(1, 5):  # C(-d, k) = C(-d, k - 1) (-d - k + 1) / k
        for (d, p), c in [item for item in binomial.items() if item[0][1] == k - 1]:
            for power, factor in ((d + 1, Fraction(-1, k)), (d, Fraction(1 - k, k))):
                if factor:
                    binomial[power, p + 1] = binomial.get((power, p + 1), 0) + c * factor
    most = Fraction(15, 2**13)
    rest = most**5
    for m in {**exact, **binomial}:
        rest += abs(exact.get(m, 0) - binomial.get(m, 0)) * most ** m[1]
    script = Script()
    script.double("decay", decay, 0, 1)
    script.double("z", z, 0, most)
    script.ask(f"{script.rounded(series)} - {script.exact(series)}")
    rounding = magnitude(script.prove(proof.gappa)[0])
    moved = 2 * U * most * (1 + most)  # z: the inverse and the product round
    least = 1 - most
    total = (1 + proof.claims["decayed"]) * (1 + U) ** 2 * (1 + (rest + rounding + moved) / least) - 1
    proof.step(name, "index >= 2^13", "relative", proof.claims["powers"], total, "Gappa, exact rationals")
    near = (1 + proof.claims["decayed"]) * (1 + U) - 1
    proof.step(name, "index < 2^13", "relative", proof.claims["powers"], near, "exact rationals")


def joint(proof):
    """The margin of a chain against its roundings: 3 m + 2 quotients, 3 l + 16 roundings each, l <= K, and a^(2 T)."""
    text = re.search(r"self\.margin = fmin\(0\.25, (.*)\)\n", read("src/chain/_chain.pyx"))[1]
    text = re.sub(r"2\.0 \*\* -(\d+)", r"0x1p-\1", text)
    run = Run(proof.library, "dpfast_larger", opaque="all")
    m, size, rate = (free(name) for name in ("m", "size", "rate"))
    run.variables.update(m=m, size=size, rate=rate)
    margin = run.value(Parser(tokens(text), text).expression())
    has = expand(margin, (m, size, rate))
    beta, second = 2 * proof.claims["exp_neg"], 1 + Fraction(1, 2**10)  # twice: dpfast_wide_exp_neg
    needed = {
        (1, 1, 0): 9 * U * second,
        (1, 0, 0): 48 * U * second,
        (0, 1, 0): (6 * U + beta) * second,
        (0, 0, 0): (32 * U + Fraction(2, 2**52)) * second,
        (0, 1, 1): beta * second,
    }
    if set(needed) - set(has) or find(margin, "sub"):
        raise Unproved("the margin of a chain is not a sum of positive terms")
    step(proof, "Chain.margin", "m targets, K = 2 T + 1", max(c / has[k] for k, c in needed.items()) / (1 - 8 * U))


PROOFS = {"dpfast_decayed": decayed, "dpfast_powers": powers, "Chain.margin": joint}
