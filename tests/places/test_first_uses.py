"""Names that are imported when they are first used, by several threads at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import random, sys, threading, traceback
import jaxvars as jv

owner = "jaxvars"
names = [
    "optimizers", "random", "checkpoint", "export", "metrics", "losses", "initializers", "diff",
    "interop", "parallel", "debugging", "profiler", "tensorboard", "config", "variables", "place",
]
if sys.argv[1] == "tf":
    import jaxvars.tf
    owner = "jaxvars.tf"
    names = [
        "data", "nn", "image", "strings", "io", "train", "saved_model", "linalg", "lookup",
        "compat", "distribute", "experimental", "summary", "ragged", "sparse", "keras",
    ]
random.Random(int(sys.argv[2])).shuffle(names)
sys.setswitchinterval(1e-5)  # threads take turns often
gate, errors = threading.Barrier(8), []

def use(name):
    gate.wait()
    try:
        dir(getattr(sys.modules[owner], name))
    except BaseException:
        errors.append(f"{name}: {traceback.format_exc()}")

threads = [threading.Thread(target=use, args=(name,)) for name in names[:8]]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit("\\n".join(errors) or None)
"""


def use_first(door: str, seed: int) -> str:
    """Return what eight threads raise that use a name each."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, door, str(seed)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return done.stderr[-3000:] if done.returncode else ""


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 50))]
)
@pytest.mark.parametrize("door", ["native", "tf"])
def test_threads_that_use_names_first(door: str, seed: int):
    assert use_first(door, seed) == ""


def test_a_name_is_used_first_in_a_namespace_that_has_no_name(run_python):
    done = run_python("-c", 'exec("import jaxvars as jv; jv.optimizers.SGD", {})')
    assert not done.returncode, done.stderr
    done = run_python(
        "-c", 'exec("import jaxvars.tf as tf; tf.SparseTensor([[0]], [1.0], [2])", {})'
    )
    assert not done.returncode, done.stderr
