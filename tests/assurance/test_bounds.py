"""The parser of assurance/bounds against the compiled kernels, its claims against comments and notes, its record."""

from fractions import Fraction

import numpy as np
import pytest

from assurance.bounds import balls, claims, elementary, margins, mutations, record, student
from assurance.bounds.gappa import Unproved, dyadic, ends
from assurance.bounds.proofs import HEADERS, Proof
from assurance.bounds.source import Unsupported
from assurance.bounds.suite import OWNERS
from assurance.bounds.values import Library, evaluate
from dpfast._kernels import _samplers


@pytest.fixture(scope="module")
def library():
    return Library(*HEADERS)


def arguments():
    rng = np.random.default_rng(1)
    return rng.random(400) * np.array([1.0, 700.0, 0.3, 1e-9] * 100)


def words():
    rng = np.random.default_rng(2)
    return rng.integers(2**13, 2**64, 400, dtype=np.uint64) >> rng.integers(0, 50, 400).astype(np.uint64)


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("function", "parameter", "compiled", "inputs"),
    [
        ("dpfast_exp_neg", "y", _samplers.exp_negs, arguments()),
        ("dpfast_one_minus_exp_neg", "y", _samplers.one_minus_exp_negs, arguments()),
        ("dpfast_student_tail", "c", _samplers.student_tails, arguments()),
        ("dpfast_neg_log_word", "w", _samplers.neg_log_words, words()),
        ("dpfast_normal_of_word", "word", _samplers.normal_of_words, words() | np.uint64(2**12)),
    ],
)
def test_parsed_functions_compute_what_the_compiled_ones_do(library, function, parameter, compiled, inputs):
    """To the last bit: the order of operations is right, and the compiler did not change it."""
    run = library.run(function)
    assert [evaluate(run.result, {parameter: x}) for x in inputs.tolist()] == compiled(inputs).tolist()


def test_claims_of_comments_are_those_of_the_notes(library):
    for name, claim in claims.CLAIMS.items():
        if claim.note:
            assert claim.noted() == claim.read(library), name


def test_claims_follow_the_source(library):
    text = library.headers["src/shared/certified.h"]
    changed = text.replace("Bound: relative error <= 2^-50 (1 + y)", "Bound: relative error <= 2^-53 (1 + y)")
    assert changed != text
    assert claims.read(Library(*HEADERS, texts={"src/shared/certified.h": changed}))["exp_neg"] == Fraction(1, 2**53)
    with pytest.raises(Unsupported, match="does not state"):
        claims.read(Library(*HEADERS, texts={"src/shared/certified.h": text.replace("Bound: relative", "Relative")}))


def test_functions_are_those_that_were_proved(library):
    assert record.changed(library) == []


def test_record_sees_order_and_last_bits(library):
    text = library.headers["src/shared/certified.h"]
    for old, new in (
        ("2.0 * s * p;", "2.0 * (s * p);"),
        ("0x1.62e42fefa39efp-1 - 2.0", "0x1.62e42fefa39eep-1 - 2.0"),
    ):
        changed = text.replace(old, new)
        assert changed != text
        assert record.changed(Library(*HEADERS, texts={"src/shared/certified.h": changed})) == ["dpfast_neg_log_word"]


def without_gappa(library, prove):
    """The steps of a proof up to the first that needs Gappa."""
    proof = Proof(library, claims.read(library), "/none")
    with pytest.raises(SystemExit, match="Gappa is missing"):
        prove(proof)
    return proof.steps


@pytest.mark.parametrize(
    ("prove", "old", "new"),
    [
        (elementary.exp_neg, "1.0 / 479001600.0", "0x1.1eed8eff8d899p-29"),
        (elementary.atanh_tail, "1.0 / 17", "0x1.e1e1e1e1e1e1fp-5"),
        (student.atan, "p = 1.0 / 23", "p = 1.0 / 24"),
    ],
)
def test_a_wrong_coefficient_is_found(library, prove, old, new):
    steps = without_gappa(library, prove) if prove is not elementary.atanh_tail else None
    if steps is not None:
        assert steps
        assert all(step.holds for step in steps)
    text = library.headers["src/shared/certified.h"]
    assert old in text
    proof = Proof(
        Library(*HEADERS, texts={"src/shared/certified.h": text.replace(old, new)}), claims.read(library), "/none"
    )
    try:
        prove(proof)
    except SystemExit:
        pass
    except Unproved:
        return
    assert not all(step.holds for step in proof.steps)


def test_intervals_of_gappa_are_read_exactly():
    text = "-1801439850949705b-105 {-4.44089e-17, -2^(-54.3219)}, 3b-5 {0.09375, 2^(-3.41504)}]"
    assert ends(text) == (Fraction(-1801439850949705, 2**105), Fraction(3, 32))
    assert (dyadic("-12"), dyadic("3b4")) == (-12, 48)


@pytest.mark.parametrize("nth", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_every_change_of_a_proved_function_is_rejected(library, nth):
    """Last bits, orders, halved margins: by exact checks and rationals, else by the record; Gappa is not needed."""
    table = mutations.controls(library, OWNERS, every=nth)
    assert set(table) >= {*record.WHOLE, *record.TEXTS}
    found = {}
    for row in table.values():
        for (_, by), number in row.items():
            found[by] = found.get(by, 0) + number
    assert set(found) == {"exact", "bounds", "record"}
    assert sum(found.values()) > 500 // nth


def test_a_change_without_an_effect_is_not_rejected(library):
    same = mutations.Mutation("dpfast_exp_neg", "src/shared/certified.h", "none", 0, 0, "")
    assert mutations.verdict(same, library, [elementary.exp_neg], None) == ""


def test_margins_hold(library):
    proof = Proof(library, claims.read(library), "/none")
    for name, prove in margins.PROOFS.items():
        if prove not in (margins.ties, margins.discount):  # these two need Gappa
            before = len(proof.steps)
            prove(proof)
            assert len(proof.steps) > before, name
    assert [step for step in proof.steps if not step.holds] == []


def test_a_taylor_model_bounds_a_known_error():
    """cos x - 1 + x^2 / 2 is at most x^4 / 24, and the model finds no more than a little above."""
    bound = balls.taylor(lambda x: x.cos() - 1 + x * x / 2, Fraction(-1, 4), Fraction(1, 4))
    assert Fraction(1, 256 * 24) * Fraction(99, 100) < bound < Fraction(1, 256 * 24) * Fraction(101, 100)
