"""Random numbers of Python and NumPy in a compiled function: they are drawn once, which is said."""

from __future__ import annotations

import random
import threading
import warnings
from random import uniform

import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.errors import LeakWarning


def _helper(x):
    return x * uniform(0, 1)


class Augment(jv.Module):
    @jv.compile
    def step(self, x):
        return self.inner(x)

    def inner(self, x):
        return x + np.random.normal(size=3)  # noqa: NPY002


DRAWING = {
    "NumPy": lambda: jv.compile(lambda x: x * np.random.rand()),  # noqa: NPY002
    "Python": lambda: jv.compile(lambda x: x * random.random()),
    "a helper": lambda: jv.compile(lambda x: _helper(x) + 1),
    "a method": lambda: Augment().step,
}


@pytest.mark.parametrize("name", DRAWING)
def test_numbers_that_are_drawn_once_are_told_of(name):
    draw = DRAWING[name]()
    with pytest.warns(
        LeakWarning, match=r"(?s)drew random numbers.*jv\.random\.normal\(x\.shape\)"
    ):
        first = draw(jnp.ones(3))
    assert np.array_equal(first, draw(jnp.ones(3)))  # as it says


def test_first_values_of_variables_may_be_drawn():
    class Lazy(jv.Module):
        w = None

        @jv.compile
        def __call__(self, x):
            if self.w is None:
                self.w = jv.Variable(np.random.rand(3))  # noqa: NPY002
            return x * self.w

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Lazy()(jnp.ones(3))


def test_what_another_thread_draws_is_not_told_of():
    drawn, stop = threading.Event(), threading.Event()

    def run():
        while not stop.is_set():
            np.random.rand()  # noqa: NPY002
            drawn.set()

    def traced(x):
        drawn.clear()
        assert drawn.wait(10)
        return x * 2

    thread = threading.Thread(target=run)
    thread.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            jv.compile(traced)(1.0)
    finally:
        stop.set()
        thread.join()


def test_code_that_does_not_draw_is_not_told_of():
    def maybe(x, *, noisy=False):
        return x * np.random.rand() if noisy else x  # noqa: NPY002

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jv.compile(maybe)(1.0)
