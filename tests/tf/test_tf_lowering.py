"""Operations and their gradients, lowered for accelerators."""

from __future__ import annotations

from pathlib import Path

import cases
import numpy as np
import pytest
import scipy.special
from cases import EXAMPLES
from lowering import calls_host, float64_in, unknown_calls

import jaxvars.tf as tf
from jaxvars.tf.image import resizing

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
    assert float64_in(concrete) == set()
    (line,) = [line for line in NAMES if line.startswith(f"- `tf.{name}(")]
    is_on_host = "It is computed on the host" in line
    assert calls_host(concrete) == is_on_host
    if not is_on_host:
        found = unknown_calls(concrete)
        assert ("'eig' not found" in str(found.pop("tpu", ""))) == ("TPUs have no such" in line)
        assert found == {}


@pytest.mark.parametrize("example", [
    *(f"image.resize(r(2, 3, 1), [4, 5], {how!r})" for how in sorted(resizing.METHODS)),
    "image.resize(i(5, 6, 1), [2, 3], antialias=True)",
    "image.resize_with_pad(i(1, 3, 2, 1), 4, 4)",
    "nn.ctc_loss([[1, 2], [2, 0]], r(4, 2, 3), [2, 1], [4, 3])",
    "nn.ctc_loss(tf.constant([[1], [2]], tf.int64), r(4, 2, 3), [1, 1], [4, 3])",
])  # fmt: skip
def test_float32_is_computed_in_float32(example):
    assert float64_in(trace(example)) == set()


def test_float64_is_computed_in_float64():
    x = np.linspace(1, 2, 12).reshape(1, 4, 3)[..., None] + 1e-12
    labels, logits = [[1, 2]], np.linspace(0, 1, 12).reshape(4, 1, 3)
    found = tf.nn.ctc_loss(labels, logits, [2], [4])
    assert found.dtype == tf.float64
    narrow = tf.nn.ctc_loss(labels, np.float32(logits), [2], [4])
    np.testing.assert_allclose(found, narrow, rtol=1e-6)
    assert tf.math.special.spence(x).dtype == tf.float64
    np.testing.assert_allclose(tf.math.special.spence(x), scipy.special.spence(x), rtol=1e-14)
