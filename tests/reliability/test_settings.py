"""Programs run alike under JAX's settings for finding mistakes.

Rules of this file:
- the short form runs what a setting has broken before, all settings in one process;
- the long form runs all kinds of programs, and the conformance tests, under each setting.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parent.parent / "settings_programs.py"
SETTINGS = (
    "jax_enable_checks=True",
    "jax_check_tracer_leaks=True",
    "jax_numpy_dtype_promotion=strict",
    "jax_debug_nans=True",
    "jax_numpy_rank_promotion=raise",
    "jax_enable_x64=True",
)


def run(run_python: Callable[..., Any], *arguments: str) -> str:
    return run_python(str(PROGRAMS), *arguments, XLA_FLAGS="", timeout=600).stdout


@pytest.mark.parametrize(
    ("setting", "programs"),
    [
        ("jax_enable_checks=True", ("created_on_first_call", "updates")),
        ("jax_check_tracer_leaks=True", ("autograph", "tf_loops")),
        ("jax_numpy_dtype_promotion=strict", ("random", "metrics")),
        ("jax_numpy_rank_promotion=raise", ("metrics",)),
    ],
)
def test_what_a_setting_broke(run_python: Callable[..., Any], setting: str, programs: Any):
    assert run(run_python, setting, ":", *programs) == "done\n"


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_all_kinds_of_programs_run_under_a_setting(run_python: Callable[..., Any], setting: str):
    assert run(run_python, setting) == "done\n"


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS[:-1])  # its programs have floats of 32 bits
def test_conformance_holds_under_a_setting(run_python: Callable[..., Any], setting: str):
    name, value = setting.split("=")
    tests = [str(PROGRAMS.parent / name) for name in ("test_conformance.py", "test_tour.py")]
    done = run_python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests,
        timeout=900, **{name.upper(): value},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
