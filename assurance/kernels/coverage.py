"""Functions of src/*/*.h without a harness, and why. A new function needs a harness or an entry here."""

_DOUBLES = "decided by doubles, whose bounds `assurance.bounds` and docs/proofs treat; its loops run over one length"
_ROWS = "a vector loop over tiles of doubles in a room of computed size: too large for a solver at its least size"
_LATER = "a loop over a block of records, a table or allocated memory: no verdict within seconds; or AVX-512"
_PRODUCTS = "products or quotients of 64 or 128 bits in a loop, beyond a SAT solver; tests have slow twins of them"
_NOT_YET = "computes an address one before its keys, which it does not read: CBMC rejects it"
_TABLE = "reads tables of 2^16 counts, too many to unwind"
_SYSTEM = "state of the process (forks, wiping of memory) or interpreter, or one line around a function that is checked"

NOT_COVERED: dict[str, dict[str, str]] = {
    _LATER: {
        "bins.h": "bins_count bins_locate",
        "bits.h": "dpfast_add_eight",
        "blocks.h": (
            "blocks_log_each blocks_make_terms blocks_scan blocks_scan_values blocks_spread blocks_sum blocks_totals"
        ),
        "bounding.h": "dpfast_bound_pairs dpfast_grow dpfast_reservoirs_free dpfast_reservoirs_reserve",
        "csv.h": "csv_rest csv_row csv_rows",
        "draws_of_cells.h": "cells_below cells_divide cells_most cells_open cells_plan cells_take",
        "filter.h": "filter_between filter_chunks filter_chunks_avx512 filter_whole",
        "hyperplane_sums.h": "DPFAST_OF",  # all of them, for each type of count
        "hyperplanes.h": ("dpfast_add_report dpfast_cell dpfast_hash_of dpfast_mixed dpfast_product dpfast_roots"),
        "keys.h": (
            "dpfast_group_integers dpfast_group_spans dpfast_integer_hash dpfast_keys_free dpfast_keys_reserve "
            "dpfast_keys_resize"
        ),
        "magnitudes.h": (
            "dpfast_add_magnitudes dpfast_add_powers dpfast_add_sums dpfast_add_tail dpfast_below_index "
            "dpfast_below_magnitude dpfast_bucket dpfast_first_of_piece dpfast_index_at dpfast_magnitude_at "
            "dpfast_piece_of dpfast_rounds_below dpfast_settle"
        ),
        "measure.h": "dpfast_float_weight",
        "pages.h": "dpfast_fetch dpfast_free_lines dpfast_large dpfast_lines",
        "ranked.h": "dpfast_huber_ranges dpfast_ranked_boxes",
        "ranks.h": "dpfast_ranked",
        "scores.h": "scores_fill_guide scores_index",
        "select.h": (
            "select_address select_fill select_keys_of_doubles select_kind_of select_load select_load_array "
            "select_load_filled select_load_part select_load_swapped select_scan select_scan_keys select_swap"
        ),
        "stream.h": (
            "stream_count stream_count_block stream_count_tied stream_digits stream_encode stream_is_tied "
            "stream_load stream_prefetch stream_refine stream_refine_block"
        ),
        "spans.h": "windows_count",
    },
    _PRODUCTS: {
        "depth.h": (
            "dpfast_chain_of dpfast_depth_2 dpfast_depth_3 dpfast_floor_sum dpfast_height dpfast_height_sum "
            "dpfast_least_side dpfast_polygon dpfast_polygon_count dpfast_polygon_point dpfast_strip_count"
        ),
        "randomize.h": "dpfast_line dpfast_large_subset dpfast_weight",
        "ranked.h": "dpfast_clipped_sum",
        "segments.h": (
            "dpfast_add_code dpfast_length dpfast_quotient dpfast_spread_code dpfast_spread_of dpfast_spread_value"
        ),
        "scores.h": "scores_add scores_at scores_end scores_inverse_prior scores_sweep scores_value",
    },
    _NOT_YET: {
        "blocks.h": "blocks_gamma_gaps blocks_gamma_shapes blocks_gamma_starts blocks_gamma_steps",
        "brackets.h": "brackets_each brackets_filter brackets_pay brackets_scan brackets_search",
        "score_cells.h": (
            "scores_add_table scores_at_once scores_cells scores_collect scores_cross "
            "scores_doubt scores_estimate scores_fill scores_is_linear scores_lay_out scores_mark scores_place "
            "scores_run scores_run_sum scores_scan scores_singles"
        ),
        "select.h": "select_sort",
        "stream.h": "stream_mark stream_repeats stream_walk_values",
    },
    _DOUBLES: {
        "bins.h": "bins_certified bins_locate_by_guess",
        "bits.h": "dpfast_round_bits dpfast_round_word",
        "blocks.h": (
            "blocks_c4 blocks_clamp blocks_complements blocks_count blocks_deviations blocks_double "
            "blocks_log_part blocks_log_steps blocks_log_values blocks_logs blocks_mask blocks_squares blocks_steps "
            "blocks_values blocks_wides"
        ),
        "boxes.h": (
            "dpfast_box_cumulative dpfast_encode_in_place dpfast_grow dpfast_grow_by_codes dpfast_grow_by_ranges "
            "dpfast_transform"
        ),
        "certified.h": (
            "dpfast_atan dpfast_atanh_tail dpfast_between dpfast_bits dpfast_double dpfast_exp_neg dpfast_log "
            "dpfast_neg_log_word dpfast_negative dpfast_one_minus_exp_neg dpfast_student_tail dpfast_to_int"
        ),
        "chain.h": (
            "dpfast_add_longer_runs dpfast_add_runs dpfast_allowed dpfast_arrive dpfast_clamp_codes dpfast_filters "
            "dpfast_gap dpfast_gap_weight dpfast_is_first dpfast_is_last dpfast_larger dpfast_lengths "
            "dpfast_looks_alike dpfast_mark dpfast_meets dpfast_most_runs dpfast_narrow dpfast_one_if "
            "dpfast_point_weight dpfast_raise dpfast_read_gaps dpfast_runs dpfast_runs_in dpfast_scaled "
            "dpfast_scaled_power dpfast_score dpfast_shift dpfast_source_range dpfast_sources dpfast_state_weights "
            "dpfast_step dpfast_up_to dpfast_weigh dpfast_weight"
        ),
        "cliques.h": (
            "cliques_exp cliques_fit cliques_fold cliques_greater cliques_lesser cliques_log cliques_next cliques_pass "
            "cliques_scale cliques_solve cliques_where"
        ),
        "choice.h": (
            "choice_block_sum choice_cumulative choice_exponent choice_flip choice_largest choice_locate "
            "choice_number choice_totals choice_weights"
        ),
        "depth.h": "dpfast_ray_to",
        "descent.h": (
            "dpfast_decayed dpfast_descend dpfast_descend_once dpfast_descend_together dpfast_moved dpfast_powers "
            "dpfast_pushes dpfast_record dpfast_signed_push dpfast_test"
        ),
        "directions.h": (
            "dpfast_add_vectors dpfast_direction dpfast_dot dpfast_has_length dpfast_have_length dpfast_largest "
            "dpfast_normals dpfast_own_side dpfast_record dpfast_scale"
        ),
        "draws.h": (
            "dpfast_below_exp_neg dpfast_below_exp_neg_within dpfast_coarse dpfast_geometric dpfast_levels "
            "dpfast_on_level dpfast_round_exponential dpfast_rounded_laplace dpfast_rounded_student3 "
            "dpfast_secret_student_tail dpfast_student_start"
        ),
        "gaps.h": "dpfast_discount_up dpfast_gap_weights dpfast_stretch",
        "gradient.h": ("dpfast_add_step dpfast_add_to dpfast_clamp dpfast_meant dpfast_project dpfast_residual"),
        "grid.h": (
            "dpfast_code dpfast_encode dpfast_encode_array dpfast_encode_floats dpfast_float_code "
            "dpfast_from_integer dpfast_known dpfast_round_shift"
        ),
        "groups.h": "dpfast_group_cumulative dpfast_prepare_few",
        "knorm.h": (
            "dpfast_accepts_box dpfast_ball dpfast_ball_unit dpfast_box dpfast_multiply dpfast_neg_log_product "
            "dpfast_normals dpfast_relative dpfast_split dpfast_squares dpfast_take"
        ),
        "ks.h": "dpfast_jump_weights dpfast_next_row dpfast_normalize dpfast_origins dpfast_power",
        "levels.h": (
            "dpfast_draw_shell_point dpfast_flip dpfast_level_cumulative dpfast_level_powers dpfast_level_sums "
            "dpfast_level_weights dpfast_level_weights_of dpfast_set_decay"
        ),
        "marginals.h": "marginals_distance",
        "measure.h": (
            "dpfast_count dpfast_counted_point dpfast_counted_weights dpfast_draw_point dpfast_float_sums "
            "dpfast_interval_weights dpfast_multiple dpfast_power_sums dpfast_powers_of dpfast_set_uniform "
            "dpfast_small_double dpfast_weigh_below"
        ),
        "normal.h": (
            "dpfast_decided dpfast_enough dpfast_gaussian_of_center dpfast_gaussian_of_shoulder "
            "dpfast_gaussian_of_tail dpfast_normal_of_center dpfast_normal_of_shoulder dpfast_normal_of_tail "
            "dpfast_normal_of_word dpfast_normal_shoulder dpfast_normal_tail dpfast_round_normal "
            "dpfast_round_signed dpfast_rounded_gaussian dpfast_shoulders dpfast_tails"
        ),
        "polygamma.h": (
            "dpfast_polygamma dpfast_polygamma_gaps dpfast_polygamma_gaps_each dpfast_polygamma_steps "
            "dpfast_polygamma_stirling"
        ),
        "projections.h": (
            "projections_add projections_meet projections_push projections_raise projections_sweep projections_walk"
        ),
        "randomize.h": "dpfast_dither",
        "scores.h": "scores_attempt scores_cumulative",
        "select.h": "select_clamp select_plan select_set_grid",
        "series.h": "dpfast_clenshaw dpfast_series",
        "stream.h": "stream_bits stream_door_of",
        "sums.h": "sums_block sums_block_absent sums_block_squares sums_load sums_scan sums_scan_between sums_within",
        "wide.h": "dpfast_wide_exp_neg dpfast_wide_of dpfast_wide_plus dpfast_wide_scaled dpfast_wide_times",
        "wide_chain.h": (
            "dpfast_wide_ends dpfast_wide_filters dpfast_wide_longest dpfast_wide_runs dpfast_wide_sources "
            "dpfast_wide_step"
        ),
        "spans.h": "windows_between windows_of_points",
    },
    _ROWS: {
        "square.h": "square_expected square_maximise square_smooth square_sums",
        "fits.h": (
            "fits_binomial fits_binomial_bias fits_binomial_score fits_depths fits_exp_neg fits_keys "
            "fits_laplace fits_less fits_load fits_log fits_log1p fits_one_if fits_tilt fits_weibull"
        ),
        "glm.h": (
            "glm_add glm_add_classes glm_add_products glm_by_column glm_class_residuals glm_clipped glm_exp "
            "glm_logistic glm_norms glm_predict glm_predict_class glm_residuals glm_scratch glm_sum "
            "glm_transform"
        ),
        "moments.h": (
            "moments_encode moments_finite moments_label moments_multiply moments_multiply_all moments_multiply_wide "
            "moments_scratch moments_sum moments_tile moments_wide_tile moments_width"
        ),
        "products.h": (
            "fits_add_hessian fits_add_pair_products fits_add_pairs fits_add_panel fits_add_products fits_add_some "
            "fits_predictor"
        ),
        "regressions.h": (
            "fits_dot fits_exp fits_expect fits_factor fits_invert fits_is_curved fits_is_near fits_leverages "
            "fits_logistic fits_maximum fits_newton fits_pass fits_pass_last fits_pass_single fits_regression "
            "fits_secant_step fits_solve fits_step_pass fits_subtract fits_tilt_residuals fits_weigh "
            "fits_weigh_counts fits_weigh_labels fits_weigh_linear fits_weigh_start"
        ),
        "rows.h": (
            "rows_add_squares rows_center rows_centered rows_encode rows_encode_ball rows_encode_block "
            "rows_encode_group rows_extreme rows_get rows_load rows_multiply rows_put rows_residuals "
            "rows_residuals_block rows_rest rows_round rows_round_to_codes rows_scratch rows_sum_ball rows_sum_block "
            "rows_sum_grids rows_sum_strip rows_total rows_truncate"
        ),
        "singles.h": (
            "fits_across fits_add_single_hessian fits_add_singles fits_add_some_singles fits_add_wide "
            "fits_add_wide_singles fits_flush fits_narrow_inverse fits_narrow_tiles "
            "fits_single_leverages fits_single_predictor fits_some_leverages fits_wide_leverages"
        ),
        "tiles.h": (
            "fits_clear fits_divide fits_exponent fits_fetch_rows fits_greatest fits_labels fits_load_rows "
            "fits_narrow fits_narrow_tile fits_padded fits_pair fits_room_in fits_room_size fits_scale fits_sizes "
            "fits_tile fits_transpose"
        ),
    },
    _SYSTEM: {
        "advice.h": "dpfast_raise dpfast_refused dpfast_take_calls",
        "ranks.h": "dpfast_order",
        "secure.h": (
            "secure_double secure_exchange secure_forked secure_fraction secure_free secure_gcm_is_fast "
            "secure_generation secure_is_first secure_load secure_placeholders secure_refilled_double secure_store "
            "secure_survived secure_thread secure_try secure_try_awaited secure_unknown_fork secure_watch_forks "
            "secure_wipe"
        ),
    },
    _TABLE: {
        "select.h": "select_by_digits select_digit",
    },
}
