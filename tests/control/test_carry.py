"""What branches return and loops carry: which types join, what differs, and how it is said."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.control.arguments import as_concrete, parameter_name
from jaxvars.control.carry import Carried, Stack, match_forms
from jaxvars.control.forms import (
    Type,
    convert_to_type,
    describe,
    difference,
    flatten_arrays,
    join_types,
    read_variables,
    type_of,
)
from jaxvars.errors import ControlFlowError


def kind(x: Any) -> str:
    return str(type_of(x)) + ("?" if type_of(x).weak_type else "")


# ---------------------------------------------------------------- types
@pytest.mark.parametrize(("one", "other", "both"), [
    (1, 2, "int32[]?"), (1, 2.5, "float32[]?"), (1, jnp.int8(1), "int8[]"),
    (jnp.int8(1), 1, "int8[]"), (2, jnp.bfloat16(1), "bfloat16[]"),
    (2.5, jnp.float16(1), "float16[]"), (True, 1, None), (2.5, 1j, "complex64[]?"),
    (2.5, jnp.int32(1), None), (jnp.int32(1), 2.5, None), (jnp.int32(1), jnp.float32(1), None),
    (jnp.ones(2), jnp.ones(3), None), (1.0, jnp.ones(1), None),
    (jnp.bool_(True), jnp.int32(1), None), (jnp.float32(1), 1.0, "float32[]"),
])  # fmt: skip
def test_types_that_join(one, other, both):
    found = join_types(type_of(one), type_of(other))
    assert (None if found is None else str(found) + ("?" if found.weak_type else "")) == both


def test_keys_join_with_keys_alone():
    key = jax.random.key(0)
    assert join_types(type_of(key), type_of(key)) == type_of(key)
    assert join_types(type_of(key), type_of(1)) is None
    assert join_types(type_of(1.5), type_of(key)) is None


def test_converted():
    assert kind(convert_to_type(1, Type((), jnp.float32))) == "float32[]"
    assert kind(convert_to_type(1.5, type_of(jnp.float32(1)))) == "float32[]"
    x = jnp.ones(2)
    assert convert_to_type(x, type_of(x)) is x


# ---------------------------------------------------------------- forms
def test_variables_are_what_they_hold():
    v = jv.Variable([1.0, 2.0])
    value = read_variables({"v": v, "text": "a"})
    v.assign_add([1.0, 1.0])
    assert value["v"].tolist() == [1.0, 2.0]
    form, arrays = flatten_arrays((v, 3, None, "a"))
    assert [x if isinstance(x, int) else x.tolist() for x in arrays] == [[2.0, 3.0], 3]
    assert form([1, 2]) == (1, 2, None, "a")


def test_described():
    value = {"it's": (jnp.ones(2), 1.5, None), "x": "text"}
    assert describe(value) == """{"it's": (float32[2], float32[], None), 'x': 'text'}"""


def differing(one: Any, other: Any, *names: str) -> Any:
    forms, kinds = [], []
    for value in (one, other):
        form, arrays = flatten_arrays(value)
        forms.append(form)
        kinds.append(list(map(type_of, arrays)))
    found = difference(*forms, kinds, names)
    return found and tuple(found)[:3]


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ((1, "a"), (2, "a"), None),
        ((1, "a"), (2, "b"), ("'y'", "'a'", "'b'")),
        ((1, 2), (jnp.ones(2), 2), ("'x'", "int32[]", "float32[2]")),
        ((1, 2), (1, None), ("'y'", "int32[]", "None")),
        ((1, 2), (1, "b"), ("'y'", "int32[]", "'b'")),
        ((1, "b"), (1, 2), ("'y'", "'b'", "int32[]")),
        (({"a": [1, 2]}, 0), ({"a": [1, jnp.ones(3)]}, 0),
         ("\"x['a'][1]\"", "int32[]", "float32[3]")),
        (([1], 0), ((1,), 0), ("'x'", "[int32[]]", "(int32[],)")),
        (({"a": 1}, 0), ({"b": 1}, 0), ("'x'", "{'a': int32[]}", "{'b': int32[]}")),
        ((1, np.str_("a")), (1, "a"), ("'y'", "np.str_('a')", "'a'")),
    ],
)  # fmt: skip
def test_differences(one, other, found):
    assert differing(one, other, "x", "y") == found


def test_what_has_no_name_in_the_source_has_no_quotes():
    assert differing((1,), (None,), "the result") == ("the result", "int32[]", "None")
    assert differing(([1],), ([jnp.ones(2)],), "the result")[0] == "the result[0]"
    assert differing((1, 2), (1,), "x") == ("the result", "(int32[], int32[])", "(int32[],)")


def test_objects_that_cannot_be_compared_are_the_same_only_if_they_are_one():
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise RuntimeError("no")

        def __hash__(self) -> int:
            return 0

        def __repr__(self) -> str:
            return "odd"

    odd = Odd()
    assert differing((odd,), (odd,), "x") is None
    assert differing((odd,), (Odd(),), "x") == ("'x'", "odd", "another odd")


# ---------------------------------------------------------------- branches
def results(*values: Any) -> Any:
    pairs = [flatten_arrays(value) for value in values]
    forms, arrays = zip(*pairs, strict=True)
    return match_forms(forms, [list(map(type_of, xs)) for xs in arrays]), arrays


def test_branches_of_one_form_are_as_they_are():
    found, arrays = results((1.0, "a"), (2.0, "a"))
    assert [result.arrays(xs) for result, xs in zip(found, arrays, strict=True)] == [[1.0], [2.0]]


def test_a_tensor_array_takes_the_form_it_has_in_another_branch():
    ta = jv.TensorArray(jnp.float32, size=2)
    found, arrays = results((ta, 1), (ta.write(0, [1.0, 2.0]), 2), (ta, 3))
    assert {result.form.treedef for result in found} == {found[1].form.treedef}
    kinds = [list(map(str, result.types)) for result in found]
    assert kinds == [["float32[2, 2]", "int32[]"]] * 3
    first = found[0].arrays(arrays[0])
    assert first[0].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_tensor_arrays_that_cannot_be_alike_stay_as_they_are():
    small, large = (jv.TensorArray(jnp.float32, size=n) for n in (2, 3))
    found, _ = results((small,), (large.write(0, 1.0),))
    assert found[0].form.treedef != found[1].form.treedef


# ---------------------------------------------------------------- loops
def test_carried_takes_the_type_of_the_first_iteration():
    carried = Carried((1, jnp.float32(2)), ("n", "x"))
    assert list(map(kind, carried.advance((2.5, 3)))) == ["float32[]", "float32[]"]
    assert list(map(kind, carried.advance((3, 3.0)))) == ["float32[]", "float32[]"]
    assert carried([1, 2]) == (1, 2)


def test_a_tensor_array_is_carried_with_the_shape_of_its_elements():
    carried = Carried((0, jv.TensorArray(jnp.float32, size=2)), ("i", "ta"))
    assert len(carried.arrays) == 1
    for i in range(2):
        arrays = carried.advance((i, carried(carried.arrays)[1].write(i, jnp.ones(3))))
    assert [x.shape for x in arrays] == [(), (2, 3)]
    other = jv.TensorArray(jnp.float32, size=5).write(0, jnp.ones(3))
    with pytest.raises(ControlFlowError, match=r"changes 'ta' from TensorArray.*size=2.*size=5"):
        carried.advance((1, other))


def test_outputs_are_stacked_in_order():
    stack = Stack("a line")
    for i in (2, 0, 1):
        stack.put(i, {"y": jnp.full(2, i), "none": None, "n": i if i else 0.5})
    whole = stack.whole()
    assert whole["none"] is None
    assert whole["y"].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert whole["n"].tolist() == [0.5, 1.0, 2.0]


# ---------------------------------------------------------------- arguments
def test_what_is_known_is_known_in_any_trace():
    kinds: list[Any] = []
    array = jnp.ones(2)

    def f(x: Any) -> Any:
        kinds.extend(type(as_concrete(value)) for value in (1, array, np.float64(2.0)))
        assert as_concrete(x) is x
        return x

    jax.make_jaxpr(f)(1.0)
    assert kinds == [np.ndarray] * 3
    assert (as_concrete(2.5).dtype, int(as_concrete(2**40))) == (np.float32, 2**40)
    with pytest.raises(ControlFlowError, match="not str 'yes'"):
        as_concrete("yes")
    with pytest.raises(ControlFlowError, match="not NoneType None"):
        as_concrete(None)


def test_names_of_parameters():
    assert parameter_name(lambda i, total: total, 1) == "total"
    assert parameter_name(lambda *args: args, 1) == "the carry"
    assert parameter_name(max, 0) == "the carry"
