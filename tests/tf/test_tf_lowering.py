"""Operations and their gradients, lowered for accelerators."""

from __future__ import annotations

from pathlib import Path

import cases
import pytest
from cases import EXAMPLES
from lowering import calls_host, unknown_calls

import jaxvars.tf as tf

TABLE = cases.everything()
NAMES = Path(tf.__file__).with_name("NAMES.md").read_text().splitlines()
# What is known when a function is traced: strings, files and pictures.
FIXED = {
    name for name in EXAMPLES if TABLE[name].eager_only or name.startswith(("strings.", "io.read"))
}


def trace(example):
    """Trace an example, and its gradients if it has some."""
    tensors = [tf.constant(array) for array in cases.inputs_of(tf, example)]

    @tf.function(autograph=False)
    def program(*tensors):
        given, floats = iter(tensors), [x for x in tensors if x.dtype.is_floating]
        with tf.GradientTape() as tape:
            for x in floats:
                tape.watch(x)
            results = cases.run(tf, example, lambda _: next(given))
            targets = [tf.reduce_sum(x) for x in results if x.dtype.is_floating]
        return results, tape.gradient(targets, floats) if targets and floats else None

    return program.get_concrete_function(*tensors).core


@pytest.mark.parametrize("name", sorted({*EXAMPLES} - FIXED))
def test_an_operation_is_lowered_for_accelerators(name):
    concrete = trace(EXAMPLES[name][0])
    (line,) = [line for line in NAMES if line.startswith(f"- `tf.{name}(")]
    is_on_host = "It is computed on the host" in line
    assert calls_host(concrete) == is_on_host
    if not is_on_host:
        found = unknown_calls(concrete)
        assert ("'eig' not found" in str(found.pop("tpu", ""))) == ("TPUs have no such" in line)
        assert found == {}
