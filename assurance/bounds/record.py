"""The recorded form of every function that was proved: a digest of its graph of operations.

Where a change leaves the bounds true, the record still rejects it until the proofs have run on the changed function.
"""

import json
from pathlib import Path

from assurance.bounds.source import tokens
from assurance.bounds.values import digest

PATH = Path(__file__).parent / "record.json"
WHOLE = (
    "dpfast_from_word", "dpfast_to_int", "dpfast_atanh_tail", "dpfast_log", "dpfast_neg_log_word", "dpfast_exp_neg",
    "dpfast_one_minus_exp_neg", "dpfast_atan", "dpfast_student_tail", "dpfast_normal_of_center",
    "dpfast_normal_shoulder", "dpfast_normal_tail", "dpfast_normal_of_shoulder", "dpfast_normal_of_tail",
    "dpfast_round_signed", "dpfast_round_normal", "dpfast_gaussian_of_center", "dpfast_gaussian_of_shoulder",
    "dpfast_gaussian_of_tail", "dpfast_round_exponential", "dpfast_below_exp_neg_within", "dpfast_discount_up",
    "dpfast_neg_log_product", "dpfast_decayed",
)  # fmt: skip
TEXTS = (
    "dpfast_rounded_student3", "dpfast_choose", "dpfast_flip", "dpfast_box", "dpfast_ball", "dpfast_box_cumulative",
    "dpfast_normals", "dpfast_powers",
)  # fmt: skip
CONSTANTS = ("CHOICE_ERROR", "DPFAST_LEVEL_ERROR", "SCORES_ERROR", "DPFAST_UNIT", "DPFAST_PARTS")


def forms(library, names=(*WHOLE, *TEXTS)):
    """The digest of each function's canonical form, or of its tokens where it has loops over data."""
    found = {}
    for name in names:
        function = library.functions[name]
        text = library.canonical(name) if name in WHOLE else " ".join(token[1] for token in tokens(function.text))
        found[name] = digest(text)
    return found


def constants(library):
    return {name: str(library.macros[name].constant) for name in CONSTANTS}


def write(library):
    PATH.write_text(json.dumps({**forms(library), **constants(library)}, indent=1) + "\n")


def changed(library, names=(*WHOLE, *TEXTS)):
    """The functions and constants that are not the recorded ones."""
    recorded, found = json.loads(PATH.read_text()), {**forms(library, names), **constants(library)}
    return sorted(name for name in found if recorded.get(name) != found[name])
