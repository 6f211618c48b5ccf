"""The tables of `sweeps.py` and `many_devices.py` name tests that there are; the platform."""

from __future__ import annotations

import re

import pytest
from many_devices import NAMES
from sweeps import ROOT, SWEEPS


def test_each_name_is_that_of_a_test() -> None:
    files = (ROOT / "tests").rglob("test_*.py")
    found = re.findall(r"(?m)^(?:def )?(test_\w+)(?:\(| =)", "".join(f.read_text() for f in files))
    assert {*SWEEPS, *NAMES} - {*found} == set()


@pytest.mark.parametrize(("given", "found"), [
    ("cuda", "cuda,cpu false highest 0"), ("cpu", "cpu None None 1"),
    ("cpu,cuda", "cpu,cuda None None 0"), ("tpu,cpu", "tpu,cpu false highest 0"),
])  # fmt: skip
def test_a_platform_has_the_cpu_beside_it_and_full_precision(run_python, given, found):
    names = ("JAX_PLATFORMS", "XLA_PYTHON_CLIENT_PREALLOCATE", "JAX_DEFAULT_MATMUL_PRECISION")
    unset = dict.fromkeys((*names[1:], "JAX_DISABLE_MOST_OPTIMIZATIONS"), "")
    code = f"""
import os, sys
for name in {[*unset]}:
    del os.environ[name]
sys.path.insert(0, {str(ROOT / "tests")!r})
import conftest
shown = [os.environ.get(name) for name in {[*names]}]
print(*shown, int("JAX_DISABLE_MOST_OPTIMIZATIONS" in os.environ))
"""
    done = run_python("-c", code, **unset, JAX_PLATFORMS=given)
    assert done.stdout == found + "\n", done.stderr


def test_with_one_device_what_needs_eight_is_skipped(run_python):
    test = str(ROOT / "tests/planning/test_abstract.py") + "::test_shardings_are_kept"
    flags = "--xla_force_host_platform_device_count=1"
    done = run_python(
        "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", test, XLA_FLAGS=flags
    )
    assert re.search(r"\b[1-9]\d* skipped in ", done.stdout), done.stdout
