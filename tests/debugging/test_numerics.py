"""`debugging/watchers.py`: every operation checked, eagerly and in what is compiled meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threads import run_in_threads

import jaxvars as jv
from jaxvars.debugging import disable_check_numerics, enable_check_numerics
from jaxvars.errors import CheckError


@pytest.fixture
def checked() -> Iterator[None]:
    enable_check_numerics()
    yield
    disable_check_numerics()


ZERO = np.float32(0)


@pytest.mark.usefixtures("checked")
def test_eagerly_the_operation_raises_with_its_line():
    with pytest.raises(CheckError, match=r"^log gave a number that is not finite: value = -inf \("
                                         r"test_numerics\.py:\d+, in test_eagerly"):  # fmt: skip
        jnp.log(ZERO)
    with pytest.raises(
        CheckError, match=r"sqrt gave .*1 of 3 elements, the first at \[2\]: value ="
    ):
        jnp.sqrt(jnp.asarray([1.0, 4.0, -1.0]))


@pytest.mark.usefixtures("checked")
def test_what_is_not_a_mistake():
    mask = jnp.asarray([-jnp.inf, 0.0])
    assert (mask + 1)[0] == -jnp.inf  # an infinity that is passed on
    assert jax.nn.softmax(mask).tolist() == [0, 1]
    assert jnp.arange(3).sum() == 3
    assert jax.random.normal(jax.random.key(0), (2,)).shape == (2,)
    with pytest.raises(CheckError, match="value = nan"):
        mask - mask


@pytest.mark.usefixtures("checked")
def test_in_this_thread_only():
    assert run_in_threads(lambda: float(jnp.log(ZERO))) == [-np.inf]


def count_and_log(v):
    def step(x):
        v.assign_add(1.0)
        y = jnp.log(x)
        return jnp.where(jnp.isfinite(y), y, 0.0)

    return step


def test_a_function_compiled_meanwhile_has_the_checks_in_it():
    v = jv.Variable(0.0, name="v")
    step = jv.compile(count_and_log(v))
    enable_check_numerics()
    try:
        for _ in range(2):
            assert step(1.0) == 0
            with pytest.raises(CheckError, match=r"^log gave .*value = -inf \(.*in step"):
                step(0.0)
        assert v.item() == 2
    finally:
        disable_check_numerics()
    with pytest.raises(CheckError, match="log gave"):  # it is part of the program
        step(0.0)
    assert step(1.0) == 0
    assert v.item() == 3


def test_a_function_compiled_before_is_checked_by_what_it_returns():
    v = jv.Variable(0.0, name="v")
    step = jv.compile(count_and_log(v))
    bad = jv.compile(lambda x: (v.assign_add(1.0), jnp.log(x))[1])
    step(1.0), bad(1.0)
    enable_check_numerics()
    try:
        assert step(0.0) == 0
        with pytest.raises(CheckError, match="<lambda> gave a number that is not finite"):
            bad(0.0)
        assert v.item() == 3
    finally:
        disable_check_numerics()
    assert bad(0.0) == -jnp.inf


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile], ids=["eager", "compiled"])
def test_inside_of_branches_and_loops(wrap):
    def hidden(x):  # the result is finite
        y = jnp.log(x)
        return jnp.where(jnp.isfinite(y), y, 0.0)

    programs = [
        lambda x: jv.cond(x >= 0, lambda: hidden(x), lambda: x),
        lambda x: jv.fori_loop(0, 2, lambda i, y: hidden(y), x),
        lambda x: jv.scan(lambda c, _: (hidden(c), None), x, jnp.arange(2))[0],
    ]
    for program in programs:
        with pytest.raises(CheckError, match=r"^log gave .*in hidden"):
            wrap(program)(jnp.float32(0))


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile], ids=["eager", "compiled"])
def test_gradients_are_checked_too(wrap):
    def slope(x):
        with jv.GradientTape() as tape:
            tape.watch(x)
            y = jnp.sqrt(x)
        return tape.gradient(y, x)

    with pytest.raises(CheckError, match=r"gave a number that is not finite: value = inf"):
        wrap(slope)(jnp.float32(0))
    assert wrap(slope)(jnp.float32(4)) == 0.25


@pytest.mark.usefixtures("checked")
def test_functions_that_close_over_arrays():
    h = jnp.ones(2)
    inner = jax.jit(lambda c: c + h)
    got, _ = jax.lax.scan(lambda c, _: (inner(c), None), jnp.zeros(2), None, length=3)
    assert got.tolist() == [3, 3]


def test_it_is_enabled_and_disabled_outside_of_everything():
    with jv.GradientTape(), pytest.raises(RuntimeError, match="is enabled inside a tape"):
        enable_check_numerics()
    with pytest.raises(RuntimeError, match="is enabled inside"):
        jv.compile(lambda: enable_check_numerics())()
    with pytest.raises(RuntimeError, match="is enabled inside"):
        jax.jit(lambda: enable_check_numerics())()
    enable_check_numerics()
    enable_check_numerics()  # once is enough
    with jv.GradientTape(), pytest.raises(RuntimeError, match="is disabled inside a tape"):
        disable_check_numerics()
    disable_check_numerics()
    assert jnp.log(ZERO) == -jnp.inf
    disable_check_numerics()
