"""`console/print.py`: templates, their fields and the mistakes in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jaxvars.console.print import Filling, is_template
from jaxvars.display.pretty import Layout, Planner


def filled(text: str, *values: Any, **fields: Any) -> str:
    planner = Planner(lambda x: x)
    pieces = Filling(planner, text, values, fields).pieces()
    return Layout([np.asarray(x) for x in planner.arrays], 3).join(pieces)


@pytest.mark.parametrize(
    "text", ["{}", "{0}", "{a}", "{a.b[c]:.2f}", "x {} {{y}}", "{:>{n}}", "{!r}"]
)
def test_templates(text):
    assert is_template(text)


@pytest.mark.parametrize("text", ["", "x", "{{}}", "{", "}", "{ }", "{'a': 1}", "{a b}", "{-1}", 3])
def test_other_strings(text):
    assert not is_template(text)


@pytest.mark.parametrize(("values", "fields", "text", "result"), [
    ((1, "b"), {}, "{} and {}", "1 and b"), ((1, 2), {}, "{1}{0}{1}", "212"),
    ((0.123,), {"n": 3}, "{n}: {:.1f}", "3: 0.1"),
    ((np.array([0.25, 1]),), {}, "{:.2f}", "[0.25 1.00]"),
    (({"a": [5, 6]},), {}, "{0[a][1]}", "6"), ((np.zeros((2, 3)),), {}, "{0.shape}", "(2, 3)"),
    (("x",), {}, "{!r}", "'x'"), ((3,), {"w": 6}, "{:>{w}}|", "     3|"),
    ((1,), {}, "{{{}}}", "{1}"),
    ((np.eye(2),), {}, "w {} end", "w [[1. 0.]\n   [0. 1.]] end"),
], ids=repr)  # fmt: skip
def test_what_is_filled_in(values, fields, text, result):
    assert filled(text, *values, **fields) == result


@pytest.mark.parametrize(
    ("values", "fields", "text", "message"),
    [
        ((1,), {}, "{} {}", "'{} {}' has the field {}, but there is no value number 1. Give it"),
        ((1,), {}, "{loss}", "has the field {loss}, but there is no loss=. Give it, or double"),
        ((1,), {}, "{5}", "there is no value number 5"),
        ((1, 2), {}, "{}", "has no field for value number 1. Add one, or leave it out."),
        ((1,), {"a": 2}, "{}", "has no field for a=."),
        ((1.5,), {}, "{:d}", "has the format 'd' for the field {}: Unknown format code 'd'"),
        ((None,), {}, "{:>9}", "has the format '>9' for the field {}"),
        ((1,), {}, "{0.foo}", "cannot be looked up (AttributeError: 'int' object has no attribute"),
        (([1],), {}, "{0[3]}", "cannot be looked up (IndexError"),
        (("a",), {}, "{!x}", "has the conversion !x. There are !s, !r and !a."),
        ((1.5,), {}, "{!x}", "has the conversion !x. There are !s, !r and !a."),
    ],
    ids=repr,
)
def test_mistakes(values, fields, text, message):
    with pytest.raises(ValueError, match=r"jv\.print: the template") as caught:
        filled(text, *values, **fields)
    assert message in str(caught.value)
