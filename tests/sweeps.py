"""Which tests are sweeps: `pytest` runs a part of them, and CI the rest.

A sweep tries one promise in many situations, or waits for other processes. So that `pytest` ends
within ten minutes on two cores, it runs every 24th case of a sweep and none of a single long
test; `pytest -m sweep` runs the others, `pytest -m "not slow"` both, and `.ci/run` one after the
other. What is here took more than a second and a half in all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EVERY = 24
FIRST = "notebooks/01_variables.ipynb"  # the one notebook that `pytest` runs


def mark_sweeps(items: Iterable[pytest.Item]) -> None:
    """Mark the cases of sweeps that `pytest` leaves to CI, and those that both leave out."""
    seen: Counter[tuple[str, str]] = Counter()
    for item in items:
        path, name = item.path.relative_to(ROOT).as_posix(), getattr(item, "originalname", "")
        is_notebook = path.startswith("notebooks/")
        seen[path, name] += name in SWEEPS or (is_notebook and path != FIRST)
        if seen[path, name] % EVERY and not item.get_closest_marker("slow"):
            part = SWEEPS.get(name, 1)
            is_left = part == 0 or (part > 1 and seen[path, name] % part != 1)
            item.add_marker("slow" if is_left else "sweep")


_NAMES = """
    test_64_bit_everywhere test_64_bits_change_no_stream
    test_a_block_that_a_generator_has_open_at_the_end_says_nothing
    test_a_body_is_traced_once_for_all_sizes
    test_a_body_that_searches test_a_branch_that_depends_on_an_open_size_is_refused
    test_a_callback_knows_which_way_a_metric_is_better test_a_cell_carries
    test_a_check_anywhere_fails_the_step test_a_check_anywhere_raises_eagerly/5
    test_a_check_under_a_tape_around test_a_checkpoint_holds_model_and_optimizer
    test_a_checkpoint_is_restored_in_a_twin_that_is_made_in_another_way test_a_checkpoint_is_whole
    test_a_class_is_lowered_for_accelerators
    test_a_cluster_is_asked test_a_compiled_function_is_traced_once_for_open_sizes
    test_a_compiled_function_sees_and_returns_what_python_would
    test_a_compiled_step_is_traced_once_and_does_what_an_eager_one_does/5
    test_a_custom_gradient_that_closes_over_something_differentiable
    test_a_derivative_of_a_derivative_by_what_the_first_is_not_of test_a_disk_that_is_full
    test_a_draw_is_lowered_for_accelerators
    test_a_failed_check_draws_nothing
    test_a_file_that_was_edited_before_its_function_is_sent_is_not_the_source
    test_a_first_call_that_creates_variables_after_its_body
    test_a_folder_is_used_from_the_call_on test_a_fresh_process_needs_no_source
    test_a_full_disk_changes_nothing test_a_function_may_be_an_extra_argument
    test_a_function_with_a_rule_for_batches_of_many_sizes
    test_a_generator_as_seed/5
    test_a_gradient_of_zero_stays_zero test_a_hessian_from_a_jacobian_of_a_gradient
    test_a_handler_that_cuts_the_other_processes_off_is_refused
    test_a_higher_order_has_larger_loops_and_hardly_more
    test_a_killed_worker_leaves_no_trace_in_the_values test_a_last_batch_may_be_smaller/5
    test_a_linen_model_trains_as_in_flax_to_the_bit test_a_linen_module_under_a_tape/slow
    test_a_loop_in_a_loop_and_a_second_derivative
    test_a_loop_of_ones_own_is_gradient_descent_eager_and_compiled
    test_a_loss_of_candidates_has_a_slope_at_logits_of_0
    test_a_model_is_built_in_the_first_call_of_a_function
    test_a_model_made_in_a_map_is_refused_with_programs_that_work
    test_a_model_of_hashes_is_trained_saved_and_loaded test_a_model_of_keras_is_served
    test_a_name_is_used_first_in_a_namespace_that_has_no_name
    test_a_narrow_variable_takes_the_step_of_a_wide_one/5
    test_a_part_of_the_check_finds_nothing_wrong test_a_part_that_goes_wrong_is_a_row
    test_a_penalty_on_the_gradient test_a_picture_is_drawn_whatever_came_out
    test_a_platform_that_is_not_there_is_a_row test_a_pool_differentiates_in_both_modes_and_twice
    test_a_process_can_be_killed_at_any_moment test_a_process_forked_before_jax_is_used_computes
    test_a_program_for_any_size_has_the_values_and_derivatives_of_one_for_that_size
    test_a_program_may_end_with_threads_at_work
    test_a_program_runs_however_it_is_shipped
    test_a_program_that_is_told_to_stop_three_times/2
    test_a_range_may_be_wider_than_the_largest_number
    test_a_raw_layer_is_refused_before_one_was_adopted_which_leaves_tf_and_64_bits_off
    test_a_read_in_a_transform_in_our_frames_is_not_a_constant/5
    test_a_reader_that_has_gone_causes_no_traceback
    test_a_replay_of_new_operations_is_compiled_at_once
    test_a_replay_of_operations_met_before_is_compiled_from_the_second_time/5
    test_a_root_and_a_logarithm_give_the_matrix test_a_rule_reads_the_variable_as_it_is_each_time/5
    test_a_rule_that_is_not_the_derivative_in_nested_tapes_is_jax_s
    test_a_run_says_where_a_program_fails
    test_a_save_is_finished_and_its_error_told_when_the_interpreter_ends
    test_a_saved_iterator_goes_on_or_is_refused/5
    test_a_saved_step_trains_and_is_part_of_another_model
    test_a_scale_may_be_beyond_the_dtype_of_a_variable test_a_script_prints_what_tensorflow_prints/5
    test_a_setting_gives_the_numbers_of_a_function_that_never_saw_another
    test_a_spectrogram_gives_the_signal_back test_a_step_is_that_of_the_hand_written_stateless_loop
    test_a_step_that_finds_no_memory_where_jit_is_fast
    test_a_step_that_is_interrupted_anywhere_leaves_no_scope test_a_step_that_only_checks_in_traces
    test_a_strategy_gives_the_same_result_as_one_device
    test_a_sum_of_gradients_is_part_of_one_window test_a_tape_costs_what_value_and_grad_costs/5
    test_a_tape_in_a_compiled_function_costs_no_more test_a_tape_inside_around_and_both/5
    test_a_tape_prints_once_and_its_gradient_nothing
    test_a_train_step_as_keras_has_it_on_jax_is_keras_s test_a_train_step_of_the_users
    test_a_training_loop_pays_the_compiler_once
    test_a_training_run_goes_on_in_a_new_process_bit_for_bit
    test_a_training_step_goes_on_as_the_one_that_was_saved
    test_a_transform_of_the_pure_function_is_mathematics/5
    test_a_transformer_block_trains_as_on_one_device
    test_a_type_checker_finds_all_mistakes_and_nothing_else test_a_right_program_runs
    test_a_warm_step_between_execution_and_return/5
    test_a_wrapped_optimizer_does_what_it_does_alone
    test_accumulated_gradients_and_averages_are_keras_s/slow test_all_lines_are_shown_when_asked_for
    test_an_array_of_the_tape_closed_over_by_any_transform
    test_an_error_in_one_process_ends_it_at_once test_an_index_out_of_range_fails_the_step/5
    test_an_inner_function_that_is_used_again_reads_again test_an_integer_gives_the_same_each_time/5
    test_an_nnx_model_trains_as_in_flax_to_the_bit test_an_nnx_module_under_a_tape
    test_an_operand_may_be_written_to_afterwards test_an_operation_that_is_called_often_is_the_same
    test_an_operation_is_lowered_for_accelerators/5
    test_an_operator_gives_exactly_what_it_gives_for_the_array/5
    test_another_backend_is_refused_with_the_line_that_helps
    test_another_process_compiles_nothing_that_is_in_the_folder
    test_another_thread_trains_restores_and_commits_inside test_any_rank test_arithmetic
    test_as_a_program_without_a_terminal test_as_a_pure_function_and_under_a_tape
    test_as_a_pure_function_they_do_the_same_and_change_nothing
    test_attributes_are_set_in_the_module test_batch_jacobian test_both_factors_have_derivatives
    test_build_makes_the_state_beforehand test_callbacks_may_read_and_are_told_not_to_write
    test_categorical_of_batches test_channels_may_come_first test_chi_square/5 test_choices_of_rows
    test_comparing_puts_the_variables_back test_comparisons_are_those_of_the_numbers/5
    test_compiled_functions_follow_the_mode test_compiled_gradients_are_eager/5
    test_compiled_gradients_equal_jitted_ones/5 test_compiled_is_eager/5
    test_compiled_they_do_what_they_do_eagerly test_confusion_matrices
    test_control_flow_is_lowered_for_accelerators
    test_converted_and_run_eagerly_is_plain_python/5 test_copies_of_model_and_optimizer_stay_tied/5
    test_ctc_takes_sparse_labels test_derivatives_of_second_order_through_what_runs_once
    test_distributions test_dropout_of_each_example test_dtypes
    test_each_line_says_what_tensorflow_says/5
    test_each_of_many_shapes_has_a_hot_path_and_the_values_stay_with_the_step
    test_each_optimizer_updates_variables_of_both_kinds
    test_each_public_method_is_that_of_the_wrapped_optimizer
    test_each_tape_knows_variables_of_both_kinds test_each_variable_goes_by_its_rate/5
    test_eager_compiled_and_pure_are_one test_eager_is_compiled_is_pure/5
    test_eagerly_the_operation_raises_with_its_line test_edges_are_those_of_tensorflow/5
    test_every_draw_is_the_same_compiled/5 test_every_epoch_has_each_image_at_most_once
    test_every_operation_is_right_or_refused_in_a_process_of_its_own
    test_everything_is_there_without_docstrings
    test_examples_draw_different_values_and_the_generator_advances_once
    test_examples_have_other_sizes_before_they_are_prepared
    test_examples_of_a_map_draw_different_values test_expressions/5 test_factors_give_the_matrix
    test_fit_and_compiled_steps_take_turns test_fit_and_loops_take_turns_with_one_optimizer
    test_fit_ends_with_the_averages_and_leaves_what_was_not_updated
    test_flags_static_arguments_and_control_flow_stay_those_of_the_compiled_function
    test_float32_is_drawn_as_with_64_bits
    test_functions_of_a_notebook
    test_gamma_is_differentiated_by_its_shape_parameter/slow
    test_global_generator_and_functions_of_a_key_agree/5 test_grad test_gradients_equal_jax_grad/5
    test_gradients_go_to_the_values test_gradients_of_complex_numbers_are_conjugated/5
    test_gradients_of_lookups test_gradients_of_other_uses_are_tensors test_gradients_of_rows/5
    test_gradients_of_small_floats_update_float32/5 test_gradients_of_values/5
    test_hessian_vector_product_forward_over_reverse test_however_often_it_runs
    test_images_and_labels test_in_a_terminal_there_is_a_bar_with_the_loss test_initializers_draw
    test_integers test_interrupts_leave_all_or_nothing
    test_interrupts_at_random_instants
    test_it_advances_by_what_the_example_drew_that_drew_most
    test_it_computes_what_equinox_does_wherever_it_is_called test_it_does_the_same_as_eagerly/5
    test_it_goes_back_leaf_for_leaf test_it_is_found_where_variables_are_looked_for
    test_it_is_saved_again_alone_and_as_a_part test_it_is_what_runs
    test_it_recognises_the_held_out_digits test_it_runs_wherever_a_compiled_function_does
    test_it_says_what_holds_and_what_does_not
    test_its_attributes_are_the_modules_and_paths_are_equinoxs
    test_jacobian_of_a_variable_and_a_structure test_jacobians_and_tangents_through_what_runs_once
    test_jax_takes_it_for_an_array
    test_jax_works_on_after_an_interrupt_as_it_enters_or_leaves_a_trace test_joins
    test_junk_is_taken_exactly_or_refused test_keras_is_imported_when_layers_are_used
    test_keras_that_is_imported_after_the_door_runs_on_jax
    test_keys_seeds_and_initializers test_killed_at_any_moment_it_leaves_what_it_had_saved
    test_kolmogorov_smirnov/5 test_labels_of_a_narrow_dtype_are_below_any_number_of_classes
    test_large_numbers_of_one_batch_do_not_swallow_small_ones
    test_layers_of_pytorch_compute_the_same test_letters_are_generated_as_by_tensorflow
    test_libraries_that_send_functions
    test_lifted_transforms_work_and_their_draws_are_seen test_limits_of_norms/5
    test_logits_of_few_bits_prefer_no_class test_loops_and_branches_draw_as_python_does
    test_losses_of_layers_are_there_in_the_tape_and_after_it test_losses_of_optax/5
    test_losses_of_samples test_losses_of_samples_take_tables_in_parts
    test_many_models_in_one_train_as_in_nnx/slow
    test_many_shapes_in_any_order_between_reads_writes_and_cleared_caches test_map_fn_in_batches
    test_maps_draw_for_each_example test_maps_over_any_number_of_elements
    test_masks_differ_from_step_to_step_in_scans_and_maps_of_states test_matmul
    test_memory_that_runs_out test_metrics_that_data_builds_are_built
    test_minimize_tells_the_loss test_nested_maps
    test_no_array_is_kept_alive test_no_example_draws_what_is_drawn_outside
    test_no_operator_returns_the_memory_of_a_variable/5 test_norms_of_zeros
    test_nothing_is_lost_when_python_ends test_nothing_leaks
    test_objects_are_part_of_the_program_and_static_values_choose_one
    test_one_large_batch_is_summed_as_in_float64 test_one_trace_does_it_all
    test_one_trace_draws_for_all_sizes test_open_sizes_that_cannot_be_open
    test_operations_of_many_parts_are_few_programs test_operators/5
    test_operators_promote_when_asked_for test_operators_that_assign/5 test_operators_with_numbers/5
    test_optimizers_of_jaxvars_train_the_weights_that_are_trainable test_orthogonal
    test_other_axes_and_no_examples test_other_transforms_over_a_tape_over_what_runs_once
    test_over_all_examples_they_are_distributed_as_they_should test_padding_and_bounds
    test_parameters_broadcast test_params_of_flax_go_in_and_out
    test_parts_have_what_the_original_has test_parts_of_linen_have_what_the_bound_module_has
    test_parts_read_and_change_as_in_numpy/5 test_parts_share_the_variables_of_the_whole
    test_paths_of_models_of_the_users test_places test_powers_in_place_are_those_of_a_known_exponent
    test_processes_stop_at_one_step_whatever_handlers_there_are
    test_pure_functions_under_jit_follow_the_mode test_pure_models_train_side_by_side
    test_questions_that_differ_have_their_own_answers test_random_changes_of_images_are_tensorflows
    test_random_programs/5 test_random_values
    test_reset_copy_pickle_and_merge/5 test_results_are_those_of_tensorflow/5
    test_rows_are_of_all_lookups_in_their_order test_rows_of_a_known_index_in_a_function
    test_samplers test_saturated_values_are_the_limits/5
    test_scans_of_keras_s_own_are_differentiated_and_never_stale test_scattering/5
    test_scattering_in_a_matrix test_seeds_are_those_of_flax
    test_settings_before_the_start_and_after test_shapes_and_types/5 test_shapes_of_draws
    test_short_floats_are_added_up_in_longer_ones test_situations
    test_slopes_at_corners_are_those_of_tensorflow/5 test_slopes_of_activations_at_corners
    test_slopes_where_there_is_no_value/5 test_slots_go_to_their_variables_in_any_order
    test_slots_of_a_frozen_variable_wait_until_it_is_thawed test_slurm_starts_two_processes
    test_state_is_kept_by_a_call_and_refused_in_a_plain_vmap test_statistics/5
    test_steps_go_into_a_scan
    test_steps_that_fail_change_nothing_or_lose_what_they_say/5 test_steps_that_run_out_of_memory
    test_streams_of_nnx_go_on_and_can_begin_anew test_strings_and_numbers_side_by_side test_sums
    test_sums_and_means_are_those_of_tensorflow test_sums_over_each_axis
    test_tapes_around_a_shard_map test_tensor_arrays_that_were_never_written
    test_tensors_of_strings_are_trained_on_with_targets test_tests_of_the_core_are_run
    test_that_a_shape_fits_is_checked_when_it_is_known
    test_the_average_of_a_frozen_variable_is_its_value
    test_the_door_says_once_that_an_accelerator_emulates
    test_the_end_of_a_range_may_be_one_more_than_the_largest
    test_the_end_of_the_interpreter_is_silent test_the_first_example_that_fails
    test_the_first_of_equals_has_the_derivative/5 test_the_functions_are_those_of_tensorflow
    test_the_gradient_of_a_loop_over_a_dataset_of_known_size
    test_the_import_leaves_pythons_numbers_as_they_are_in_jv
    test_the_named_ones_are_variance_scaling/5
    test_the_next_touch_of_a_lost_variable_says_what_failed test_the_numbers_are_jaxs/5
    test_the_numbers_are_tensorflows test_the_one_function_with_a_signature_is_served
    test_the_picture_does_not_depend_on_hash_seeds test_the_program_prints_the_lines_of_a_word
    test_the_program_prints_them_without_keras
    test_the_reference test_the_report
    test_the_same_eagerly_and_compiled_and_through_an_inner_compiled_function
    test_the_same_seed_gives_the_same_losses_and_another_one_others test_the_same_stream_everywhere
    test_the_step_by_hand_is_the_same_step test_the_step_is_one_program_with_the_optimizer_in_it
    test_the_tape_is_jax_grad test_the_updates_are_those_of_optax_to_the_bit/5
    test_the_updates_are_those_of_tensorflow/5 test_the_users_code_has_tensors_and_keras_arrays
    test_the_value_under_a_tape_keeps_its_rule_for_every_derivative test_they_run
    test_through_assigns_again test_through_assigns_is_the_gradient_of_the_pure_function/5
    test_training_a_stateful_cnn_is_what_equinox_does/slow
    test_training_goes_on_in_another_process_bit_for_bit
    test_two_equal_objects_with_variables_are_two_objects
    test_two_processes_compute_together_until_they_are_told_to_leave
    test_two_processes_may_save_in_one_directory test_under_another_setting_another_program_runs
    test_two_processes_that_are_told_to_stop_go_on_where_they_were
    test_under_grad_through_three_training_steps test_uniform_stays_below_its_bound
    test_updates_are_computed_where_dtypes_are_not_mixed/5 test_values/5
    test_values_and_gradients_are_those_of_tensorflow/5 test_values_become_bins
    test_values_go_from_one_mesh_to_another test_values_gradients_and_assignments_come_back
    test_variables_are_donated_and_an_older_value_stays_readable
    test_variables_of_keras_in_operations
    test_variables_on_several_processes_are_saved_by_all_and_restored_by_one test_variance_scaling
    test_weights_of_a_narrow_dtype_count_as_they_are/5
    test_what_a_call_changes_is_changed_by_functions_and_by_fit_alike
    test_what_a_forked_process_may_do_and_what_it_is_told test_what_a_generator_draws
    test_what_a_loop_sets_first_is_absent_in_the_first_iteration_alone test_what_a_setting_broke
    test_what_a_signal_handler_reads_while_jit_traces_a_first_call
    test_what_agrees_is_listed_and_nothing_changes
    test_what_an_assign_cuts_off_has_no_gradient_around_a_compiled_function_either
    test_what_changes_is_carried test_what_fails_says_what/5
    test_what_cloudpickle_sends_is_what_is_here
    test_what_has_no_gradient_eagerly_has_none_compiled test_what_holds/5
    test_what_is_changed_in_place_is_seen_by_each_kind_of_call/5
    test_what_is_entered_is_left_wherever_it_is_interrupted test_what_is_infinitely_far_is_not_near
    test_what_is_kept_stays_where_it_is test_what_is_no_array_stays_what_it_is/5
    test_what_is_not_a_mistake test_what_is_not_donated_is_not_lost test_what_is_not_wrong
    test_what_is_right_raises_no_false_alarm/5 test_what_picks_elements_has_gradients
    test_what_reads_variables_reads_those_of_one_moment test_what_runs_eagerly_is_all_or_nothing
    test_what_the_user_writes_and_keras_calls_has_tensors
    test_what_was_changed_for_a_while_is_as_before test_what_was_traced_can_be_called
    test_with_one_device_what_needs_eight_is_skipped
    test_without_a_seed_each_call_draws_anew/5 test_without_keras
    test_without_matplotlib_it_says_so_and_trains
"""
SWEEPS = {
    name: {"": 1, "2": 2, "5": 5, "slow": 0}[part]
    for name, _, part in (word.partition("/") for word in _NAMES.split())
}
"""Names of tests, and which of its cases CI runs: 1 for all, 5 for every fifth, 2 for every second,
the first included, 0 for none; `pytest -m slow` runs the others."""
