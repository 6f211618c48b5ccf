"""Which tests need eight devices and do not say it themselves: with fewer they are skipped.

So it is with one GPU, or `XLA_FLAGS=--xla_force_host_platform_device_count=1`.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

NAMES = frozenset(
    [
        "test_a_box_with_a_mesh_says_where",
        "test_a_state_without_values_is_planned_for_a_pod",
        "test_scopes_without_a_device_or_a_kind",
        "test_a_global_batch_is_placed_as_requested",
        "test_a_killed_worker_leaves_no_trace_in_the_values",
        "test_a_restored_variable_on_a_mesh_needs_no_new_program",
        "test_a_source_may_use_one_array_for_all_batches",
        "test_a_state_taken_under_a_tape_and_a_device_scope_has_the_values",
        "test_a_value_stays_where_it_was_put",
        "test_a_variable_of_several_devices_and_a_generator_of_one",
        "test_an_eager_shard_map_is_one_operation_over_what_it_closed_over",
        "test_batches_and_trees_with_nothing_in_a_place",
        "test_batches_are_sent_ahead_and_no_more",
        "test_batches_before_one_that_fails_arrive",
        "test_batches_on_the_mesh_in_force",
        "test_batches_that_cannot_be_sharded",
        "test_bytes_are_those_of_jax_also_of_one_device_part",
        "test_errors_name_the_leaf",
        "test_first_used_anywhere",
        "test_losses_are_averaged_over_the_global_batch",
        "test_no_damage_goes_unseen",
        "test_no_damage_of_thousands_goes_unseen",
        "test_replicas_draw_with_separate_keys",
        "test_sharded_over_devices_every_value_differs",
        "test_sharded_values_are_gathered",
        "test_shardings_are_kept",
        "test_slots_are_divided_as_their_variables",
        "test_slots_that_come_later_are_placed_where_their_variables_are",
        "test_slurm_starts_two_processes",
        "test_tapes_around_a_shard_map",
        "test_values_go_from_one_mesh_to_another",
        "test_variables_of_several_devices_work_together",
        "test_variables_on_several_processes_are_saved_by_all_and_restored_by_one",
        "test_variables_without_values_are_restored",
        "test_what_a_first_value_is_drawn_from_is_drawn_no_second_time",
        "test_what_is_kept_of_a_value_on_a_mesh_of_explicit_axes_is_placed_like_it",
        "test_without_a_mesh_they_go_to_the_device_in_force",
        "test_without_a_placement_values_stay_where_they_are",
        "test_without_places_a_variable_is_nowhere_in_particular",
    ]
)


def mark_many_devices(items: Iterable[pytest.Item]) -> None:
    """Have tests that need eight devices skipped where there are fewer."""
    import jax  # here, so that `conftest.py` sets the environment first

    skipped = pytest.mark.skip(reason="needs 8 devices: see conftest.py")
    chosen = [item for item in items if getattr(item, "originalname", "") in NAMES]
    for item in chosen if chosen and jax.device_count() < 8 else ():
        item.add_marker(skipped)
