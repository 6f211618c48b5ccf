"""Every error is a builtin one too, is met in the way that its docstring says, and blames the
user's line."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import pickle
import re
import warnings
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jaxvars as jv
from jaxvars import errors

BUILTINS = {
    "ShapeError": (ValueError,), "DtypeError": (TypeError, ValueError),
    "NotATensorError": (TypeError, ValueError), "CreationError": (ValueError,),
    "ForeignTransformError": (RuntimeError,), "StateError": (KeyError, ValueError),
    "UninitializedError": (RuntimeError,), "ExecutionError": (RuntimeError,),
    "StringVariableError": (TypeError,), "CheckError": (AssertionError, ValueError),
    "ContextError": (RuntimeError,),
    "CompileError": (TypeError, ValueError), "ControlFlowError": (TypeError, ValueError),
    "CheckpointError": (ValueError,), "CheckpointWarning": (UserWarning,),
    "SavedError": (ValueError,), "TapeError": (RuntimeError, ValueError),
    "InteropError": (ValueError,), "DeviceError": (ValueError,), "ShardingError": (ValueError,),
    "DistributedError": (RuntimeError,), "StaleReadWarning": (UserWarning,),
    "RetraceWarning": (UserWarning,), "GradientWarning": (UserWarning,),
    "LeakWarning": (UserWarning,),
}  # fmt: skip
PUBLIC = {
    name: found
    for name, found in vars(errors).items()
    if inspect.isclass(found) and issubclass(found, Exception) and name != "JaxvarsError"
}


def test_the_table_is_complete():
    assert PUBLIC.keys() == BUILTINS.keys()


def test_each_is_a_builtin_one_too_and_shows_what_raises_it_and_the_fix():
    for name, error in PUBLIC.items():
        assert all(issubclass(error, builtin) for builtin in BUILTINS[name])
        assert issubclass(error, Warning | errors.JaxvarsError)
        assert error.__final__
        assert re.search(r"\nRaised by:\s.*\nFix: ", inspect.getdoc(error), re.DOTALL), name


def test_a_note_names_the_help_and_the_message_stays_as_it_was():
    error = pickle.loads(pickle.dumps(errors.ShapeError("two and three")))
    assert (str(error), error.__notes__) == (
        "two and three", ['More: help("jaxvars.errors.ShapeError")'],
    )  # fmt: skip


def forever(x):
    return compiled_forever(x)


compiled_forever = jv.compile(forever)


def tape_twice():
    v = jv.Variable(1.0)
    with jv.GradientTape() as tape:
        y = v * v
    tape.gradient(y, v)
    tape.gradient(y, v)


def state_of_half():
    v, w = jv.Variable(1.0, name="v"), jv.Variable(1.0, name="w")
    jv.functionalize(lambda: w.assign(v * 2))(jv.State.of(v))


def missing_stream():
    import flax.linen as nn

    model = jv.interop.from_flax(nn.Dropout(0.5), rngs={"params": 0}, variables={})
    model(jnp.ones(2), deterministic=False)


def no_such_device():
    jv.config.set_soft_device_placement(False)
    try:
        with jv.device("TPU:7"):
            pass
    finally:
        jv.config.set_soft_device_placement(True)


def never_computed():
    kept = SimpleNamespace()

    def fail():
        raise OSError("no file")

    @jv.compile
    def f(x):
        kept.v = jv.Variable(jax.pure_callback(fail, x), name="v")

    with contextlib.suppress(Exception):
        f(jnp.ones(2))
    kept.v.numpy()


def ended_out_of_order():
    outer, inner = jv.transaction(), jv.transaction()
    outer.__enter__()
    inner.__enter__()
    try:
        outer.__exit__(None, None, None)
    finally:
        with contextlib.suppress(errors.ContextError):
            inner.__exit__(None, None, None)


WRONG = [
    (errors.ShapeError, lambda: jv.Variable([1.0, 2.0]).assign([1.0, 2.0, 3.0])),
    (errors.DtypeError, lambda: jv.Variable(0).assign(2.5)),
    (errors.NotATensorError, lambda: jv.Variable({"a": 1})),
    (errors.CreationError, lambda: jv.compile(lambda x: jv.Variable(1.0) * x)(2.0)),
    (errors.ForeignTransformError, lambda: jax.jit(jv.Variable(1.0).assign_add)(1.0)),
    (errors.StateError, state_of_half),
    (errors.UninitializedError, never_computed),
    (errors.ExecutionError, lambda: jv.compile(lambda: jnp.zeros(2**44, jnp.int8))()),
    (errors.StringVariableError, lambda: jv.compile(jv.Variable("a").item)()),
    (errors.CompileError, lambda: compiled_forever(1.0)),
    (errors.ControlFlowError, lambda: jv.compile(lambda x: 1 if x > 0 else 2)(1.0)),
    (errors.CheckError, lambda: jv.debugging.assert_finite(jnp.log(0.0))),
    (errors.CheckpointError, lambda: jv.checkpoint.Checkpoint().restore("no/such/checkpoint")),
    (errors.TapeError, tape_twice),
    (errors.InteropError, missing_stream),
    (errors.DeviceError, no_such_device),
    (errors.ContextError, ended_out_of_order),
]


@pytest.mark.parametrize(("error", "program"), WRONG, ids=lambda x: getattr(x, "__name__", ""))
def test_the_wrong_program_meets_the_error(error, program):
    with pytest.raises(error) as caught:
        program()
    assert type(caught.value) is error
    assert len(str(caught.value)) > 40  # it teaches


def test_a_state_error_is_shown_as_written():
    assert str(errors.StateError("line 1\nline 2")) == "line 1\nline 2"
    assert str(errors.StateError()) == ""


# ---------------------------------------------------------------- the user's line
def test_line_of_is_the_innermost_line_of_the_users():
    def fails():
        jnp.ones(2).reshape(3)

    with pytest.raises(TypeError) as caught:
        fails()
    expected = f"test_errors.py:{fails.__code__.co_firstlineno + 1}, in fails"
    assert errors.line_of(caught.value) == expected
    assert errors.line_of(ValueError()) == "an unknown line"


def test_line_of_function_is_where_it_is_defined():
    def f():
        pass

    line = f"test_errors.py:{f.__code__.co_firstlineno}"
    assert errors.line_of_function(f) == line
    assert errors.line_of_function(functools.wraps(f)(lambda: f())) == line
    assert errors.line_of_function(len) == "an unknown line"


def test_user_line_names_file_line_and_function():
    here = inspect.currentframe()
    expected = f"test_errors.py:{here.f_lineno + 1}, in {here.f_code.co_name}"
    assert errors.user_line() == expected


@pytest.mark.parametrize(
    "through",
    [
        pytest.param(lambda f: f(), id="directly"),
        pytest.param(lambda f: jax.jit(f)(), id="jax"),
        pytest.param(lambda f: jv.compile(f)(), id="jaxvars"),
        pytest.param(lambda f: functools.reduce(lambda _, g: g(), [f], None), id="functools"),
    ],
)
def test_libraries_are_not_blamed(through):
    found = []
    through(lambda: found.append(errors.user_line()))
    assert found[0].startswith("test_errors.py:")
    assert found[0].endswith("in <lambda>")


def test_the_standard_library_is_not_blamed():
    v = jv.Variable(1.0)

    @jv.compile
    def copies():
        return copy.deepcopy(v) + 1

    with pytest.raises(errors.CreationError, match=r"test_errors\.py:\d+, in copies"):
        copies()


def test_a_warning_blames_the_users_line_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            errors.warn_user("careful", errors.RetraceWarning)
        errors.warn_user("careful", errors.RetraceWarning)
    lines = [(w.filename, w.lineno, w.category) for w in caught]
    assert len(lines) == 2  # two lines, whatever the number of times
    assert lines[0][0] == __file__
    assert lines[0][2] is errors.RetraceWarning
    assert lines[1][1] == lines[0][1] + 1


FORMS = {
    "scan": lambda f: jax.lax.scan(lambda c, x: (f(x), None), 0.0, jnp.ones(3)),
    "fori_loop": lambda f: jax.lax.fori_loop(0, 3, lambda i, x: f(x), 0.0),
    "while_loop": lambda f: jax.lax.while_loop(lambda x: x < 3, f, 0.0),
    "cond": lambda f: jax.lax.cond(True, f, f, 1.0),
    "switch": lambda f: jax.lax.switch(jnp.int32(0), [f, f], 1.0),
    "map_fn": lambda f: jax.lax.map(f, jnp.ones(3)),
    "recompute": lambda f: jax.checkpoint(f)(1.0),
    "functionalize": lambda f: jax.lax.scan(
        lambda c, x: (c, jax.vmap(f)(x)), 0.0, jnp.ones((3, 2))
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("start", [jv.compile, lambda f: f])
def test_an_assignment_in_a_body_of_jaxs_names_the_form_that_takes_it(form: str, start: Any):
    v = jv.Variable(0.0)

    def assign(x: Any) -> Any:
        return jax.tree.map(lambda leaf: (v.assign(leaf), leaf)[1], x)  # `map` is not jax.lax.map

    with pytest.raises(errors.ForeignTransformError, match=rf"jv\.{form}\b"):
        start(lambda: FORMS[form](assign))()


def test_an_error_of_a_user_has_no_note_on_ours() -> None:
    own = type("ShapeError", (jv.errors.JaxvarsError,), {})
    assert not hasattr(own("mine"), "__notes__")
