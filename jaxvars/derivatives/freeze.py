"""`freeze`: variables that are not trainable for a while.

Rules this file keeps:
- it holds in one thread or coroutine, and sets no flag: an exception leaves nothing to restore;
- fast paths, which look at no flag, are blocked inside: programs are found by their key.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from jaxvars.core.cells import FROZEN
from jaxvars.core.frame import FastPathBlocker
from jaxvars.core.frames import LOCAL
from jaxvars.errors import StateError, user_line
from jaxvars.modules.module import variables_in


@contextmanager
def freeze(*objects: object) -> Generator[None]:
    """Make variables not trainable inside: tapes do not watch them by themselves.

    It holds for this thread and, in a coroutine, for this coroutine.

    `model.trainable_variables` and `optimizer.minimize(loss, model)` leave them out; they can still
    be assigned. Compiled functions that ask for it are traced once more, and keep both programs.
    Inside of a compiled function it costs nothing at run time; around calls of one it costs each
    call some Python: to freeze for a whole run, set `v.trainable = False`.

    Args:
        *objects: Variables, Modules, what `jv.select` returns, or anything that holds variables.

    Raises:
        StateError: when they hold no variable.

    >>> import jaxvars as jv
    >>> model = {"encoder": jv.Variable(2.0), "head": jv.Variable(3.0)}
    >>> adam = jv.optimizers.SGD(1.0)
    >>> @jv.compile
    ... def step():
    ...     with jv.freeze(jv.select(model, "encoder")):
    ...         return adam.minimize(lambda: model["encoder"] * model["head"], model)
    >>> float(step()), float(model["encoder"]), float(model["head"])
    (6.0, 2.0, 1.0)
    """
    keys = frozenset(v._cell.key for root in objects for _, v in variables_in(root))
    if not keys:
        raise StateError(
            f"There is no Variable to freeze at {user_line()}: give a model, a Variable, or what "
            'jv.select(model, "encoder/**") returns.'
        )
    blocker, frame = FastPathBlocker(), LOCAL.frame
    blocker.begin()
    try:
        with FROZEN.change(keys.union):
            frame.renew()
            yield
    finally:
        blocker.end()
        frame.renew()
