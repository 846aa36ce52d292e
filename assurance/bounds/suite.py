"""All proofs, and the functions whose changes each of them must notice."""

from assurance.bounds import elementary, margins, normal, powers, student

PROOFS = {**elementary.PROOFS, **student.PROOFS, **normal.PROOFS, **margins.PROOFS, **powers.PROOFS}
OWNERS = [
    *(((name,), prove) for name, prove in {**elementary.PROOFS, **student.PROOFS, **normal.PROOFS}.items()),
    (("dpfast_to_int",), margins.ties),
    (("dpfast_normal_shoulder",), normal.shoulder),
    (("dpfast_normal_tail",), normal.tail),
    (("dpfast_round_exponential",), margins.round_exponential),
    (
        ("dpfast_gaussian_of_center", "dpfast_gaussian_of_shoulder", "dpfast_gaussian_of_tail", "dpfast_round_normal"),
        margins.gaussian,
    ),
    (("dpfast_below_exp_neg_within",), margins.below_exp_neg),
    (("dpfast_rounded_student3",), margins.student),
    (("dpfast_choose",), margins.choose),
    (("dpfast_box_cumulative",), margins.sums),
    (("dpfast_discount_up",), margins.discount),
    (("dpfast_flip",), margins.flip),
    (("dpfast_decayed",), powers.decayed),
    (("dpfast_powers",), powers.powers),
    (("dpfast_neg_log_product", "dpfast_box", "dpfast_ball", "dpfast_normals"), margins.knorm),
]
