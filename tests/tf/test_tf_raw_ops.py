"""`tf.raw_ops`: public functions by the names of TensorFlow's graphs."""

from __future__ import annotations

import functools
import importlib
import inspect

import pytest

from jaxvars import tf
from jaxvars.tf import raw_ops


def test_each_is_a_function():
    for space in ("image", "quantization", "strings"):
        importlib.import_module(f"jaxvars.tf.{space}")
    for op, public in raw_ops._PUBLIC.items():
        made, function = getattr(tf.raw_ops, op), functools.reduce(getattr, public.split("."), tf)
        assert made.__name__ == op
        assert inspect.signature(made) == inspect.signature(function)


def test_arguments_are_given_by_name():
    assert tf.raw_ops.AddV2(x=1, y=2).numpy() == 3
    assert tf.raw_ops.MatMul(a=[[2.0]], b=[[3.0]], transpose_b=True).numpy().tolist() == [[6.0]]
    assert tf.raw_ops.StringUpper(input="a").numpy() == b"A"
    with pytest.raises(TypeError, match="positional"):
        tf.raw_ops.AddV2(1, 2)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Sum", r"Its public name is tf\..*reduce_sum"),
        ("AddV3", "Did you mean"),
        ("XlaCallModule", "Use the public function"),
    ],
)
def test_others_name_the_public_function(name, words):
    with pytest.raises(AttributeError, match=words):
        getattr(tf.raw_ops, name)
