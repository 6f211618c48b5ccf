"""A few random lives of a model's state, and that a wrong one is found and made small.

Many more: `python -m tests.fuzz --lives --minutes 10 --seed 1`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.fuzz import lives, lives_model

TWO = ["net0, opt0 = Net(), jv.optimizers.SGD(0.5, momentum=0.5)", "out = step(net0, opt0, 1.0)"]


@pytest.fixture(scope="module", autouse=True)
def _compiled_cheaply() -> Iterator[None]:
    with lives.compiled_cheaply():
        yield


@pytest.mark.parametrize("number", range(8))
def test_lives_are_those_of_the_model(number: int) -> None:
    seed = f"test:{number}"
    options, acts, difference = lives.born(seed, 10, without=["elsewhere"])
    if difference is not None:
        pytest.fail(lives.report(seed, options, acts, difference))


def test_what_is_wrong_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lives_model.Life, "loss", lambda self, x: np.float32(-1))
    found = (lives.born(f"wrong:{number}", 10, without=["elsewhere"]) for number in range(9))
    options, acts, difference = next(life for life in found if life[2] is not None)
    assert difference is not None
    head, where, *program = lives.report("1", options, acts, difference).strip().splitlines()
    assert head.startswith("--- life 1: out: out is ")
    assert head.endswith(", not -1.0")
    assert where.startswith("from tests.fuzz.lives_world import *")
    assert program[0] == TWO[0]
    assert len(program) == 2
    assert "out = " in program[1]
