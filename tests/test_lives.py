"""A few random lives of a model's state, and that a wrong one is found and made small.

Many more: `python -m tests.fuzz --lives --minutes 10 --seed 1`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.fuzz import lives, lives_model, lives_moves

PLAIN, AVERAGES = lives_model.Options(), lives_model.Options(ema=True)
WINDOWS, SCALED = lives_model.Options(calls=2), lives_model.Options(scaled=True)
TOUCH = "loss(net0, 1.0)"
TWO = ["net0, opt0 = Net(), jv.optimizers.SGD(0.5, momentum=0.5)", "out = step(net0, opt0, 1.0)"]


@pytest.fixture(scope="module", autouse=True)
def _compiled_cheaply() -> Iterator[None]:
    with lives.compiled_cheaply():
        yield


def act(kind: str, *chosen: str, inner: lives.Acts = ()) -> lives.Act:
    return lives.Act(kind, chosen, inner)


STEP, TWICE = act("step", "0", "eager", "1.0"), act("step", "2", "eager", "1.0")
WITHOUT_ENC = act("freeze", "0", "enc", "net0.enc", inner=(STEP,))
BUILT = (*lives.START, act("build", "0"), act("assign", "0", "enc/w"), WITHOUT_ENC)
ONCE = (*lives.START, STEP, act("save", "0", "both", "#1"))
AGAIN = (*ONCE, act("fresh", "#2"), act("restore", "2", "1.npz", "both"))
LAZY = (*lives.START, act("add_part", "0", "part", "Lazy()"))

SITUATIONS: dict[str, tuple[lives_model.Options, lives.Acts]] = {
    "what waits is saved": (PLAIN, (*AGAIN, act("save", "2", "both", "#3"))),
    "what waits is copied": (
        PLAIN,
        (*AGAIN, act("duplicate", "2", "copied", "both", "#3"), act("step", "3", "eager", "1.0")),
    ),
    "what waits is pickled": (
        PLAIN,
        (*AGAIN, act("duplicate", "2", "again", "both", "#3"), act("step", "3", "eager", "1.0")),
    ),
    "what waits outlives a restore of the weights": (
        PLAIN,
        (*AGAIN, act("save", "0", "net", "#5"), act("restore", "2", "5.npz", "both"), TWICE),
    ),
    "what waits is of the variable": (PLAIN, (*AGAIN, act("add", "2", "", "a", "two", ""), TWICE)),
    "what waits is of the variable, not of one of another shape": (
        PLAIN,
        (*AGAIN, act("add", "2", "", "a", "one", ""), TWICE),
    ),
    "each restored by itself": (
        PLAIN,
        (*ONCE, act("fresh", "#2"), act("restore", "2", "1.npz", "net, opt"), TWICE),
    ),
    "the average of what is frozen": (
        AVERAGES,
        (*BUILT, act("averaged", "0", inner=(act("evaluate", "0", "values({})"),))),
    ),
    "the average of what is thawed": (AVERAGES, (*BUILT, STEP, STEP)),
    "frozen within a window": (WINDOWS, (*lives.START, STEP, WITHOUT_ENC, STEP, STEP)),
    "restored within a window": (
        WINDOWS,
        (*lives.START, act("save", "0", "both", "#1"), STEP, act("restore", "0", "1.npz", "both"),
         STEP, STEP),
    ),
    "slots of a wrapped optimizer are placed": (
        SCALED, (*lives.START, STEP, act("place", "0", "2"), STEP),
    ),
    "two paths, frozen by the second": (
        PLAIN,
        (*lives.START, act("tie", "0", "enc", "weight", "head"),
         act("freeze", "0", "head", 'net0.select("head/**")', inner=(STEP,))),
    ),
    "two paths, restored by the second": (
        PLAIN, (*ONCE, STEP, act("tie", "0", "enc", "list"), act("restore", "0", "1.npz", "both")),
    ),
    "a plan of a first step": (
        AVERAGES,
        (*lives.START, act("plan", "0", "jv.plan(jv.compile(step), net0, opt0, 1.0)"),
         act("save", "0", "both", "#1"), STEP),
    ),
    "averages after a first step that was refused": (
        AVERAGES,
        (*lives.START, act("build", "0"), act("add", "0", "", "a", "two", ""),
         act("step", "0", "pure", "1.0"),
         act("averaged", "0", inner=(act("evaluate", "0", "values({})"),))),
    ),
    "a copy in freeze": (
        PLAIN,
        (*lives.START, act("freeze", "0", "enc", "net0.enc",
                           inner=(act("duplicate", "0", "copied", "both", "#1"),))),
    ),
    "64 bits": (
        PLAIN,
        (*lives.START, act("wide", "", inner=(act("add_wide", "0", "np.int64(2**40 + 1)"),)),
         act("bump", "0"), act("duplicate", "0", "copied", "both", "#1"),
         act("save", "0", "both", "#2"), act("restore", "1", "2.npz", "both")),
    ),
    **{
        f"first in {form}": (
            PLAIN, (*LAZY, act("trace", "0", "part", form), act("touch", "0", TOUCH))
        )
        for form in lives_moves.TRACES
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SITUATIONS)
def test_situations(name: str) -> None:
    """Sequences that have gone wrong."""
    options, acts = SITUATIONS[name]
    difference, lines = lives.fate(options, acts)
    assert difference is None, "\n".join([str(difference), lives.HEAD, *lines])
    assert len(lines) >= len(acts)  # nothing is left out


@pytest.mark.parametrize("number", range(5))
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
