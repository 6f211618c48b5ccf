"""Questions that were asked before, of a record of the same structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.autodiff import recording, reverse

pytestmark = pytest.mark.usefixtures("nothing_seen")


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """A list that grows each time a record is gone through."""
    found: list[None] = []
    program = recording.Record.make_program

    def counted(self: Any, *args: Any, **options: Any) -> Any:
        found.append(None)
        return program(self, *args, **options)

    monkeypatch.setattr(recording.Record, "make_program", counted)
    return found


def test_a_training_loop_goes_through_its_record_once(analysed: list[None]) -> None:
    w = jv.Variable(3.0)
    for i in range(6):
        w.assign(float(i))
        with jv.GradientTape() as tape:
            y = jnp.sin(w * w) + w
        assert np.allclose(tape.gradient(y, w), 2 * i * np.cos(i * i) + 1, atol=1e-5)
    assert len(analysed) == 1


a, b = jv.Variable(2.0), jv.Variable(5.0)
C = jnp.asarray(7.0)
DIFFERENT: list[tuple[Callable[[], Any], list[Any], dict[str, Any], list[Any]]] = [
    (lambda: a * b, [a, b], {}, [5.0, 2.0]),
    (lambda: a * b, [b, a], {}, [2.0, 5.0]),
    (lambda: b * a, [a, b], {}, [5.0, 2.0]),
    (lambda: a * a, [a, b], {}, [4.0, None]),
    (lambda: a * a, [b, a], {}, [None, 4.0]),
    (lambda: a * C, [a, b], {}, [7.0, None]),
    (lambda: a * b, [a], {}, [5.0]),
    (lambda: [a * b, a * a], [a], {}, [9.0]),
    (lambda: [a * b, a * b], [a], {}, [10.0]),
    (lambda: [y := a * b, y], [a], {}, [10.0]),
    (lambda: [a * b, a * C][0], [a], {}, [5.0]),
    (lambda: [a * b, a * C][1], [a], {}, [7.0]),
    (lambda: a * b, [a, b], {"output_gradients": 3.0}, [15.0, 6.0]),
    (lambda: [a * b, a * b], [a], {"output_gradients": [3.0, None]}, [20.0]),
    (lambda: a * jax.lax.stop_gradient(a), [a], {}, [2.0]),
    (lambda: a * jnp.floor(a).astype(int), [a], {}, [2.0]),
    (lambda: jax.lax.top_k(jnp.stack([a, b]), 1)[0][0], [a, b], {}, [0.0, 1.0]),
    (lambda: jnp.where(a > b, a, b), [a, b], {}, [0.0, 1.0]),
]  # fmt: skip


def test_questions_that_differ_have_their_own_answers() -> None:
    for _ in range(3):
        for f, sources, options, wanted in DIFFERENT:
            with jv.GradientTape() as tape:
                target = f()
            assert tape.gradient(target, sources, **options) == wanted


def test_through_assigns_or_not() -> None:
    v = jv.Variable(2.0)
    for _ in range(3):
        for through, wanted in ((False, 3.0), (True, 6.0)):
            v.assign(2.0)
            with jv.GradientTape(through_assigns=through) as tape:
                v.assign(v * 2.0)
                y = v * 3.0
            assert tape.gradient(y, v) == wanted


def test_a_part_that_differs_does_not_compile_the_gradient_again() -> None:
    for f in (jnp.sin, jnp.cos, jnp.tanh, jnp.exp):
        for _ in range(2):
            with jv.GradientTape() as tape:
                f(a)
                y = a * b
            assert tape.gradient(y, a) == 5.0
    assert len(reverse._SEEN) == 1
    assert len(reverse._ANSWERS) == 4


def test_answers_are_limited() -> None:
    for i in range(reverse._SEEN_LIMIT + 5):
        reverse._ANSWERS[i] = None
    for _ in range(2):
        with jv.GradientTape() as tape:
            y = a * b
        tape.gradient(y, a)
    assert len(reverse._ANSWERS) == reverse._SEEN_LIMIT
