"""Tracebacks show the user's lines; what a notebook shows is in `test_mistakes.py`."""

from __future__ import annotations

import contextlib
import gc
import traceback
import weakref

import jax
import jax.numpy as jnp
import pytest

import jaxvars as jv
from jaxvars import tracebacks


def functions_in(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def raise_because() -> None:
    try:
        raise KeyError("first")
    except KeyError as error:
        raise ValueError("second") from error


def raise_while() -> None:
    try:
        raise KeyError("first")
    except KeyError:
        raise ValueError("second")  # noqa: B904 - without a cause


@jv.compile
def nested(fail: object) -> jax.Array:
    def body() -> jax.Array:
        fail()  # pyright: ignore[reportCallIssue]
        return jnp.ones(())

    return jv.cond(jnp.ones(()) > 0, body, body)


@pytest.mark.parametrize("fail", [raise_because, raise_while])
def test_lines_of_the_library_are_left_out(fail: object) -> None:
    with pytest.raises(ValueError, match="second") as caught:
        nested(fail)
    names = functions_in(caught.value)
    assert names[-3:] == ["nested", "body", getattr(fail, "__name__", "")]
    assert {"stage", "capture", "inner", "around"}.isdisjoint(names)
    assert functions_in(caught.value.__cause__ or caught.value.__context__ or caught.value) == [
        getattr(fail, "__name__", "")
    ]


def test_all_lines_are_there_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXVARS_TRACEBACK", "full")
    with pytest.raises(ValueError, match="second") as caught:
        nested(raise_because)
    assert {"stage", "within", "around"} <= set(functions_in(caught.value))


def test_an_interrupt_keeps_its_lines() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        nested(interrupt)
    assert "stage" in functions_in(caught.value)


def test_errors_that_are_each_others_cause_end() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one

    def fail() -> None:
        raise one

    with pytest.raises(ValueError, match="one"):
        nested(fail)


def test_who_raised_an_error_is_known():
    def raised_by(f):
        with pytest.raises(Exception) as caught:
            f()
        return tracebacks.is_raised_by_user(caught.value)

    def own():
        raise ValueError

    assert raised_by(own)
    assert not raised_by(lambda: None + 1)
    assert not raised_by(lambda: jnp.ones(2) + jnp.ones(3))
    assert not raised_by(lambda: jv.Variable(1.0).assign([1.0]))


def test_an_error_that_shows_itself_keeps_nothing_alive() -> None:
    class Held:
        """What a frame on the way of the error has."""

    def fail() -> weakref.ref[Held]:
        held = Held()
        with contextlib.suppress(AttributeError):
            jv.Varible  # noqa: B018
        return weakref.ref(held)

    gc.disable()
    try:
        assert fail()() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(("name", "file", "expected"), [
    ("jaxvars.core", "jaxvars/core.py", True), ("jax._src.core", "/anywhere/core.py", True),
    ("jaxon", "jaxon.py", False), (None, "<string>", False), ("__main__", "program.py", False),
    ("code", "/home/me/code.py", False), ("code", "code.py", True),
    ("importlib._bootstrap", "<frozen importlib._bootstrap>", True),
])  # fmt: skip
def test_whose_code_is_of_a_module_is_asked_of_its_name(name, file, expected):
    space = {} if name is None else {"__name__": name}
    assert tracebacks.is_library(space, file) == expected
    assert tracebacks.package_of({"__name__": None}) == ""
