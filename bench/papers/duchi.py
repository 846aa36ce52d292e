"""Duchi, Jordan and Wainwright (2018): the page docs/papers/duchi-jordan-wainwright.md."""

from bench.papers import (
    Item,
    Paper,
    duchi_densities,
    duchi_pay,
    duchi_shares,
    duchi_sparse,
    duchi_theory,
    duchi_words,
)

ABOUT = """Estimation under local differential privacy: every person's record leaves their device as a private report.
    The copy of the paper that this page was written from has no formulas, tables or pictures; its claims below are
    those of the text, with formulas derived again. So a "paper" figure is given only where the text has it, and
    privacy levels and steps of the experiments are ours where it does not. E is exp(epsilon), c is coth(epsilon / 2).
    Figures 2, 4 and 8 are drawings of definitions. Runs have fixed seeds; their numbers stand with each table. The
    data of the experiments are stand-ins: pay of four small campuses instead of all, shares of two surveys instead of
    emergency visits, and spam messages instead of censored posts."""

ITEMS = (
    Item(
        "Equation (8): Proposition 1, Le Cam's bound",
        """For two parameters 2 delta apart, whose laws are at total variation t, every estimator has a loss of at
        least Phi(delta) / 2 times 1 - sqrt(constant n epsilon^2 t^2), for epsilon up to 22/35.""",
        ("dpfast.theory.local_le_cam", "dpfast.theory.local_effective_sample_size"),
        duchi_theory.le_cam,
    ),
    Item(
        "Theorem 1: contraction, and Corollary 3",
        """KL(M1, M2) + KL(M2, M1) is at most min(4, E^2) (E - 1)^2 t^2, and the sum over people if they answer one
        after another.""",
        ("dpfast.theory.local_contraction",),
        duchi_theory.contraction,
    ),
    Item(
        "Corollary 1: means under a moment",
        "If E|X|^k <= 1, the error is of order min(1, (n epsilon^2)^(-(k - 1) / k)).",
        (
            "dpfast.theory.local_mean_lower_bound",
            "dpfast.theory.local_mean_upper_bound",
        ),
        duchi_theory.mean_bounds,
    ),
    Item(
        "Equation (10): clipped means",
        "Numbers clipped to [-T, T], T = (n epsilon^2)^(1/2k), with Laplace noise attain the rate of Corollary 1.",
        ("dpfast.local.mean", "dpfast.theory.local_truncation", "dpfast.local.Interval"),
        duchi_theory.truncation,
        error="""The constant of T. Also (44), as far as it can be read: with the variance 2 of a Laplace variable its
            sum is T^2 / n + 8 T^2 / (n epsilon^2).""",
    ),
    Item(
        "Corollary 2: medians",
        "E|X - estimate| - E|X - median| is of order r min(1, (n epsilon^2)^(-1/2)) for medians in [-r, r].",
        (
            "dpfast.theory.local_median_lower_bound",
            "dpfast.theory.local_median_upper_bound",
            "dpfast.local.median",
            "dpfast.local.MedianDescent",
        ),
        duchi_theory.median_bounds,
        error="""Equation (11) has sign(0), which must be 1 or -1: a report of 0 would reveal that the record equals the
        question.""",
    ),
    Item(
        "Theorem 2: information, Proposition 2 and (22)",
        """The information of n reports about which of several laws is at most n (E - 1)^2 times the largest mean
        squared difference of |g| <= 1 between a law and their mean; Fano's bound with it.""",
        ("dpfast.theory.local_fano",),
        duchi_theory.fano,
    ),
    Item(
        "Corollary 4: means in the ball",
        "The error for vectors of the l2 ball is of order r^2 min(1, d / (n epsilon^2)) for epsilon up to 1.",
        (
            "dpfast.theory.local_ball_mean_lower_bound",
            "dpfast.theory.local_ball_mean_upper_bound",
            "dpfast.local.L2Ball",
        ),
        duchi_theory.ball_means,
    ),
    Item(
        "Equation (24): Laplace noise on vectors",
        "Laplace noise in each coordinate of a vector of the l2 ball has an error of order d^2 / (n epsilon^2).",
        ("dpfast.local.L2Ball",),
        duchi_theory.laplace_ball,
    ),
    Item(
        "Equation (25): half spaces",
        "A report of length B on the side of the rounded vector with probability E / (1 + E) is private and unbiased.",
        ("dpfast.local.L2Ball",),
        duchi_theory.half_space,
        error="""Appendix I.2 integrates over the half ball; Z must be on the sphere, as a uniform point of the ball
            would have d / (d + 1) of the mean. No rejection sampling is needed: a wrong side is reflected.""",
    ),
    Item(
        "Equation (26): half cubes",
        "A corner of the cube on the side of the rounded record with probability E / (1 + E) is private and unbiased.",
        ("dpfast.local.Hypercube",),
        duchi_theory.cube,
        error="""For even d the corners that agree in exactly half of the coordinates are in both half cubes, which
            makes their probability the sum of both: the loss is log(1 + E), not epsilon.""",
    ),
    Item(
        "Corollary 5: sparse means",
        """For one nonzero coordinate and mechanisms without interaction the error is of order r^2 min(1, d log(2 d) /
        (n epsilon^2)).""",
        (
            "dpfast.theory.local_sparse_mean_lower_bound",
            "dpfast.theory.local_sparse_mean_bound",
            "dpfast.theory.local_sparse_threshold",
            "dpfast.local.sparse_mean",
        ),
        duchi_sparse.corollary,
    ),
    Item(
        "Two rounds: sparse means with interaction",
        """Section 4.2.2 leaves to future work whether mechanisms that change once important coordinates are known can
        avoid the dimension in Corollary 5.""",
        (
            "dpfast.theory.local_sparse_rounds_bound",
            "dpfast.theory.local_sparse_mean_lower_bound",
            "dpfast.local.sparse_mean",
            "dpfast.local.Hypercube",
        ),
        duchi_sparse.rounds,
        draw=duchi_sparse.draw,
        caption="Squared error of one and two rounds against the size of the coordinates",
    ),
    Item(
        "Theorem 3: mixtures, Proposition 3 and (40)",
        """For laws P_v, v a corner of the cube, the divergences of the mixtures over v_j = 1 and v_j = -1 add up to
        at most 2 n (E - 1)^2 times the supremum over |g| <= 1 of sum_j (P_+j g - P_-j g)^2, for interactive
        mechanisms, too; Assouad's bound with it.""",
        ("dpfast.theory.local_assouad",),
        duchi_theory.mixtures,
        error="""Step (53) of the proof takes a record to be independent of earlier reports under a mixture of
            products. For mixtures, the theorem and the proposition are false; they hold with the largest sum over v
            of the squared differences between P_v and its neighbours ([proof](../proofs/local-lower-bounds.md)),
            which is `local_assouad`.""",
    ),
    Item(
        "Lemma 2: gradient descent, (31) and (32)",
        """The average of private gradient steps is asymptotically normal with covariance H^-1 (B^2 / d) H^-1 / n; of
        order d^2 / (n epsilon^2) in total.""",
        ("dpfast.local.GradientDescent", "dpfast.local.glm"),
        duchi_theory.descent,
    ),
    Item(
        "Corollary 6: logistic regression",
        "The squared error of the coefficients is at least of order min(d, d^2 / (n (E - 1)^2)).",
        ("dpfast.theory.local_logistic_lower_bound",),
        duchi_theory.logistic_bounds,
        error="The proof uses Theorem 3 with mixtures; the corollary holds with the correlation of neighbours.",
    ),
    Item(
        "Corollary 7: densities",
        "The integrated squared error for smoothness s is of order (n epsilon^2)^(-2 s / (2 s + 2)).",
        ("dpfast.theory.local_density_lower_bound", "dpfast.local.SeriesReports"),
        duchi_theory.density_bounds,
    ),
    Item(
        "Equation (39): series of reports",
        "The series of the coefficients estimated by (26) attains the rate of Corollary 7.",
        ("dpfast.local.density", "dpfast.local.SeriesReports"),
        duchi_densities.compute,
        error="The number of terms is usually even, where (26) as published is not private.",
    ),
    Item(
        "Figure 1: shares of drug users",
        """(26) has roughly a fifth of the mean squared error of Laplace noise for 27 shares; its worst runs are better
        than the best of Laplace noise (also section 6.2).""",
        ("dpfast.local.Hypercube",),
        duchi_shares.compute,
        error="""Section 1.1 says that the mean squared error is a fifth. That is the ratio of the errors; the mean
            squared error is about a thirtieth by the formulas of both mechanisms.""",
        draw=duchi_shares.draw,
        caption="Error of 27 shares against the number of people",
    ),
    Item(
        "Figure 3: error of tests",
        "No test between two values of a person errs less often than 1 / (1 + E), from one report and for even odds.",
        ("dpfast.theory.local_testing_error",),
        duchi_theory.testing,
        draw=duchi_theory.draw_testing,
        caption="Error of the best test against epsilon",
    ),
    Item(
        "Figure 5: mean pay against the assumed moment",
        """With a good choice of the assumed moment the error of (10) is much smaller than with a large or a small
        one.""",
        ("dpfast.local.mean",),
        duchi_pay.means,
        draw=duchi_pay.draw_means,
        caption="Error of mean pay against the assumed moment, and without privacy",
    ),
    Item(
        "Table 1: the best moment",
        "Even the best moment has an error of about 6 % of the mean at one of the levels; without privacy 0.2 %.",
        ("dpfast.local.mean",),
        duchi_pay.best_means,
    ),
    Item(
        "Figure 6: median pay against the number of people, and (41)",
        """(11) is better than the median of noisy values (41), by a factor of at least about 6, for every radius; its
        upward deviations are small.""",
        ("dpfast.local.MedianDescent", "dpfast.local.median_naive"),
        duchi_pay.medians,
        draw=duchi_pay.draw_medians,
        caption="Gap of median pay against the number of people",
    ),
    Item(
        "Figure 7: words of messages",
        """Wrong predictions of a logistic regression on words in at least 0.5 % and in at least 10 % of the
        documents: (25) is better than Laplace noise, which guesses with many words; no privacy is better than both.""",
        ("dpfast.local.GradientDescent",),
        duchi_words.compute,
        draw=duchi_words.draw,
        caption="Wrong predictions against epsilon, for two sets of words",
    ),
)

PAPER = Paper(
    "duchi-jordan-wainwright",
    "Duchi, Jordan and Wainwright: minimax optimal procedures for locally private estimation",
    'J. C. Duchi, M. I. Jordan and M. J. Wainwright, "Minimax optimal procedures for locally private estimation", '
    "Journal of the American Statistical Association 113 (2018), 182-201.",
    ABOUT,
    ITEMS,
)
