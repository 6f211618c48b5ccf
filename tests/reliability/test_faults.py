"""Where each fault is injected, and what must hold after it: the table, which a test keeps true."""

from __future__ import annotations

import ast
import functools

import pytest

from tests.conftest import ROOT

FAULTS: dict[str, tuple[str, ...]] = {
    "an error in a trace, a host callback or a check: no variable is changed": (
        "test_safety::test_an_error_in_a_callback_changes_nothing",
        "test_leaks::test_no_tracer_leaks_from_an_exception_in_a_trace_or_creation_inside",
        "core/test_checks::test_a_check_anywhere_raises_eagerly",
    ),
    "an interrupt anywhere, creation, saves and restores too: all or nothing": (
        "test_safety::test_1500_interrupts_leave_all_or_nothing",
        "reliability/test_interrupts::test_a_warm_step_anywhere",
        "reliability/test_interrupts::test_a_first_call_that_creates_variables_anywhere",
        "reliability/test_interrupts::test_what_runs_eagerly_is_all_or_nothing_anywhere",
        "reliability/test_interrupts::test_a_checkpoint_is_whole_anywhere",
    ),
    "threads that share variables: no update is lost, no step is half seen": (
        "test_safety::test_eight_threads_lose_no_update",
        "test_safety::test_steps_assignments_and_reads_from_many_threads",
        "test_safety::test_what_reads_variables_reads_those_of_one_moment",
    ),
    "a value that is held across a donated step: it stays readable": (
        "core/test_variable_memory::test_a_variable_that_was_assigned_has_memory_that_nothing_else_holds",
        "test_safety::test_a_signal_handler_may_read_and_keep_values",
    ),
    "no memory, or a program that XLA refuses: a clear error, values kept or named": (
        "reliability/test_memory::test_steps_that_run_out_of_memory",
        "test_safety::test_a_step_that_xla_refuses_changes_nothing",
    ),
    "NaN in an update under a guard: nothing is committed": (
        "core/test_checks::test_the_guard_names_the_first_variable_and_changes_none",
    ),
    "junk: taken exactly, or refused by name": (
        "reliability/test_junk::test_much_junk_is_taken_exactly_or_refused",
    ),
    "kill -9 in a save, a full disk, two writers: the newest whole checkpoint is read": (
        "checkpoint/test_checkpoint_files::test_a_process_can_be_killed_a_hundred_times",
        "checkpoint/test_checkpoint_files::test_a_full_disk_changes_nothing",
        "checkpoint/test_checkpoint_manager::test_killed_at_any_moment_it_leaves_what_it_had_saved",
    ),
    "damaged files: one error that lists everything, or the same data": (
        "checkpoint/test_checkpoint_files::test_no_damage_of_thousands_goes_unseen",
    ),
    "hostile files: no code runs, nothing is written elsewhere": (
        "checkpoint/test_checkpoint_files::test_hostile_files_are_refused_without_harm",
        "checkpoint/test_checkpoint_files::test_hostile_folders_are_refused",
        "export/test_export::test_a_forged_file_is_one_clear_error",
    ),
    "tracers that leave their function: named, and none of ours": (
        "test_leaks::test_no_tracer_leaks_from_compile_and_tape",
        "reliability/test_settings::test_all_kinds_of_programs_run_under_a_setting",
    ),
    "a call inside of a callback, a finalizer, a signal handler, a trace: right, or refused": (
        "test_safety::test_callbacks_while_other_threads_run_steps",
        "test_safety::test_a_finalizer_may_read_variables",
        "test_safety::test_a_finalizer_reads_the_value_before_a_step_or_is_refused",
        "test_safety::test_a_finalizer_that_the_collector_runs_reads_and_computes_nothing",
        "tracing/test_signals::test_what_it_does_happens_once_and_outside",
    ),
    "fork after use: an error, no hang": (
        "reliability/test_fork::test_what_a_forked_process_may_do_and_what_it_is_told",
    ),
    "long runs: memory stays flat": (
        "test_leaks::test_a_long_loop_does_not_grow",
        "test_leaks::test_what_is_made_and_dropped_leaves_no_memory",
    ),
    "a worker that is killed: the same numbers": (
        "parallel/test_processes::test_a_storm_of_kills_leaves_no_trace_in_the_values",
    ),
    "JAX's settings: the same numbers": (
        "reliability/test_settings::test_conformance_holds_under_a_setting",
    ),
}


@functools.cache
def names_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / f"{file}.py").read_text(encoding="utf-8"))
    made = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return names | {target.id for target in made if isinstance(target, ast.Name)}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_has_its_tests(fault: str):
    for test in FAULTS[fault]:
        file, name = test.split("::")
        assert name in names_in(file), test
