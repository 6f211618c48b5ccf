"""`select` and `astype`: variables by path, class, flag and dtype."""

from __future__ import annotations

import copy
import re
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jaxvars as jv
from jaxvars.objects.traversal import matcher


class Norm(jv.Module):
    def __init__(self) -> None:
        self.scale = jv.Variable([1.0, 1.0], name="scale")
        self.mean = jv.Variable([0.0, 0.0], name="mean", trainable=False)


class Net(jv.Module):
    def __init__(self) -> None:
        self.encoder = [{"kernel": jv.Variable([[1.0, 2.0]]), "norm": Norm()}]
        self.head = jv.Variable([1.0, 2.0], name="head")
        self.steps = jv.Variable(0, name="steps", trainable=False)
        self.label = jv.Variable("net", trainable=False)


KERNEL, MEAN, SCALE = "encoder/0/kernel", "encoder/0/norm/mean", "encoder/0/norm/scale"


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("a/**", ["a/b", "a/b/c"], ["a", "ba/b", "b/a/c"]),
        ("**/b", ["b", "a/b", "a/a/b"], ["ab", "a/ab", "a/b/c"]),
        ("a/**/c", ["a/c", "a/b/c", "a/b/b/c"], ["ac", "a/bc"]),
        ("a/*/c", ["a/b/c"], ["a/c", "a/b/b/c"]),
        ("w?", ["w1"], ["w", "w12", "w/"]),
        ("a.b[0]", ["a.b[0]"], ["axb0", "a.b0"]),
        ("**", ["", "a", "a/b"], []),
        (re.compile("b$"), ["b", "ab", "a/b"], ["ba"]),
        (lambda path, v: path == "x", ["x"], ["y"]),
    ],
)  # fmt: skip
def test_a_pattern_fits_the_whole_path(pattern: Any, yes: list[str], no: list[str]) -> None:
    fits = matcher(pattern)
    assert [fits(path, None) for path in yes + no] == [True] * len(yes) + [False] * len(no)


@pytest.mark.parametrize("pattern", ["kernel$", ".*", "^a", "(a|b)", r"\w", "a+"])
def test_a_regular_expression_is_not_taken_for_a_glob(pattern: str) -> None:
    cure = re.escape(f"Write re.compile({pattern!r}), which is searched.")
    with pytest.raises(ValueError, match=cure):
        jv.select(Net(), pattern)


def test_what_is_not_a_pattern_is_refused() -> None:
    with pytest.raises(TypeError, match=r"A pattern is a string, .*, not int"):
        jv.select(Net(), 3)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("given", "options", "found"),
    [
        (["encoder/**"], {}, [KERNEL, MEAN, SCALE]),
        (["head", "**/kernel"], {}, ["head", KERNEL]),
        ([], {"trainable": True}, ["head", KERNEL, SCALE]),
        ([], {"trainable": False, "dtype": jnp.floating}, [MEAN]),
        ([], {"dtype": "int32"}, ["steps"]),
        ([Norm], {}, [MEAN, SCALE]),
        ([], {"but": [Norm, "steps", "label"]}, ["head", KERNEL]),
        ([lambda path, v: v.ndim == 2], {}, [KERNEL]),
        ([re.compile("mean|head")], {"but": "head"}, [MEAN]),
    ],
)  # fmt: skip
def test_variables_are_selected(given: Any, options: Any, found: list[str]) -> None:
    model = Net()
    selected = model.select(*given, **options)
    assert sorted(selected) == sorted(found)
    assert list(selected) == [p for p in model.named_variables if p in found]  # in their order
    assert all(v is model.named_variables[p] for p, v in selected.items())
    assert jv.select(model, *given, **options).keys() == selected.keys()


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (["encodr/0/kernel"], {}, "'encodr/0/kernel' at .*Did you mean 'encoder/0/kernel'"),
        (["zzz/**"], {}, r"No variable matches 'zzz/\*\*' at .* The paths begin with \['enc"),
        ([dict, jv.random.Generator], {}, "No variable matches class Generator"),
        (["head"], {"trainable": False}, r"at \['head'\] is left by trainable=False"),
        (["head"], {"but": "hed"}, "No variable matches 'hed' at .*Did you mean 'head'"),
    ],
)  # fmt: skip
def test_nothing_is_an_error_that_names_what_is_near(given: Any, options: Any, message: str):
    with pytest.raises(jv.errors.StateError, match=message):
        Net().select(*given, **options)


def test_an_object_without_variables_is_refused() -> None:
    with pytest.raises(jv.errors.StateError, match=r"This list has no Variable to select at .*py"):
        jv.select([1, 2], "**")


def test_a_selection_goes_where_variables_do() -> None:
    model = Net()
    found = model.select("encoder/**", trainable=True)
    state = jv.State.of(found)
    assert sorted(state) == [KERNEL, SCALE]
    with jv.GradientTape() as tape:
        loss = (model.encoder[0]["kernel"] ** 2).sum() + model.encoder[0]["norm"].scale.value.sum()
    gradients = tape.gradient(loss, found)
    assert gradients.keys() == found.keys()
    jv.optimizers.SGD(0.5).minimize(
        lambda: (
            (model.encoder[0]["kernel"] ** 2).sum() + (model.encoder[0]["norm"].scale * 2).sum()
        ),
        found,
    )
    assert model.encoder[0]["kernel"].numpy().tolist() == [[0.0, 0.0]]
    state.commit()
    assert model.encoder[0]["kernel"].numpy().tolist() == [[1.0, 2.0]]
    assert len(jv.place(found, jax.devices()[0])) == 2
    checkpoint = jv.checkpoint.Checkpoint(part=found)
    assert checkpoint is not None


def test_astype_makes_a_copy_with_another_dtype_and_keeps_what_is_shared() -> None:
    model = Net()
    model.tied = model.head
    model.encoder[0]["norm"].scale.trainable = False
    half = model.astype(jnp.bfloat16, but="**/mean")
    dtypes = {path: str(v.dtype) for path, v in half.named_variables.items()}
    assert dtypes[KERNEL] == dtypes[SCALE] == dtypes["head"] == "bfloat16"
    assert (dtypes[MEAN], dtypes["steps"]) == ("float32", "int32")
    assert half.tied is half.head is not model.head
    assert not half.encoder[0]["norm"].scale.trainable
    assert half.head.name == "head"
    half.head.assign_add([1.0, 1.0])
    assert (half.head.numpy().tolist(), model.head.numpy().tolist()) == ([2.0, 3.0], [1.0, 2.0])
    assert str(model.head.dtype) == "float32"
    same = model.astype(jnp.float32, "head")
    same.head.assign([0.0, 0.0])
    assert model.head.numpy().tolist() == [1.0, 2.0]


def test_astype_takes_the_slots_of_an_optimizer_inside_along_unless_left_out() -> None:
    model = Net()
    model.optimizer = jv.optimizers.SGD(0.1, momentum=0.9)
    model.optimizer.build([model.head])
    half = model.astype(jnp.bfloat16, but="optimizer/**")
    slot = half.optimizer.get_slot(half.head, "momentum")
    assert (str(slot.dtype), str(half.head.dtype)) == ("float32", "bfloat16")
    assert copy.deepcopy(half).optimizer.get_slot is not None


def test_astype_is_for_floats() -> None:
    with pytest.raises(jv.errors.DtypeError, match=r"takes a floating-point dtype, .*, not int8"):
        Net().astype(jnp.int8)
    with pytest.raises(jv.errors.StateError, match=r"is left by dtype="):
        Net().astype(jnp.bfloat16, "steps")


class Tied(jv.Module):
    """A weight under two paths, and a part that is in two places."""

    def __init__(self) -> None:
        self.decoder = {"kernel": jv.Variable([1.0]), "bias": jv.Variable([0.0])}
        self.embed = {"kernel": self.decoder["kernel"]}
        self.shared = Norm()
        self.blocks = [self.shared]


@pytest.mark.parametrize(
    ("patterns", "but", "found"),
    [
        (["decoder/**"], (), ["decoder/bias", "decoder/kernel"]),
        (["embed/**"], (), ["decoder/kernel"]),
        (["embed/kernel", "blocks/*/scale"], (), ["decoder/kernel", "blocks/0/scale"]),
        (["shared/**"], (), ["blocks/0/mean", "blocks/0/scale"]),
        ([re.compile("^embed")], (), ["decoder/kernel"]),
        ([lambda path, _: path.startswith("shared/s")], (), ["blocks/0/scale"]),
        (["decoder/**"], "embed/**", ["decoder/bias"]),
        ([], ["embed/*", "shared/**"], ["decoder/bias"]),
    ],
)
def test_a_shared_variable_is_selected_by_each_of_its_paths(patterns, but, found) -> None:
    assert sorted(Tied().select(*patterns, but=but)) == sorted(found)


def test_a_shared_variable_is_frozen_by_its_other_path() -> None:
    model = Tied()
    with jv.freeze(model.select("embed/**")):
        assert not model.decoder["kernel"].trainable
        assert model.decoder["bias"].trainable
    with pytest.raises(jv.errors.StateError, match=r"Did you mean 'embed/kernel'\?"):
        model.select("embed/kernal")


def test_slots_are_selected_under_the_paths_of_an_optimizer_that_is_shared() -> None:
    model, optimizer = {"w": jv.Variable([1.0])}, jv.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model)
    root = {"a": optimizer, "model": model, "z": optimizer}
    assert list(jv.select(root, "z/slots/model/w/*")) == ["a/slots/model/w/momentum"]
