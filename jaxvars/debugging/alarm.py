"""NaN alarms: `NanAlarm` looks at variables now and then, `nonfinite` at this moment.

A look is a small program that is queued behind the steps, and reads the variables where they are
placed. Its result is looked at when it is there, some steps later; so nothing waits for the device.

Rules this file keeps:
- a look takes no value out of a variable, so that the next step is donated what it would be;
- nothing is changed: what an alarm tells of has happened. `compile(guard="finite")` prevents it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.compiler import decorator
from jaxvars.core.cells import Cell
from jaxvars.core.frames import LOCAL
from jaxvars.core.state import named_cells
from jaxvars.display.repr import Table, type_text
from jaxvars.errors import CheckError, CompileError, user_line
from jaxvars.tensors.dtypes import is_inexact, is_string
from jaxvars.typing import Array

_SHOWN = 10  # variables named by a message


# ---------------------------------------------------------------- the alarm
@final
class NanAlarm:
    """Looks every so many steps whether variables are finite, without waiting for the device.

    Reads the variables, and changes none. Used by `with`, it looks once more at the end.

    Args:
        *objects: Variables, Modules, optimizers, or anything that holds them. Which float and
            complex variables there are is found out at the first look: slots that an optimizer
            makes in its first step are seen.
        every: how many calls of `step` from one look to the next. A look reads each variable
            once; that is its cost.

    Raises:
        TypeError: when there is nothing to look at.
        ValueError: when `every` is not positive.

    The steps go on until a look is done, which is found out by the next `step`. The variables
    then are not those of the step in which it began; the message says between which steps
    that was.

    Example:
        >>> import jaxvars as jv
        >>> w = jv.Variable([1.0, 2.0], name="w")
        >>> @jv.compile
        ... def step(x):
        ...     w.assign(jnp.log(w - x))
        >>> with NanAlarm(w, every=10) as alarm:
        ...     step(1.0)
        ...     alarm.step()
        Traceback (most recent call last):
        jaxvars.errors.CheckError: After step 1, a variable is not finite...
          w float32[2]: 1 of 2 elements are infinite...
    """

    __slots__ = ("_asked", "_cells", "_every", "_good", "_left", "_look", "_objects", "_pending",
                 "_steps")  # fmt: skip

    def __init__(self, *objects: object, every: int = 100) -> None:
        if not objects:
            raise TypeError("NanAlarm needs something with variables: NanAlarm(model, every=100).")
        if every < 1:
            raise ValueError(f"NanAlarm: every is a number of steps, not {every!r}.")
        self._objects = objects
        self._every = self._left = every
        self._steps = 0  # that were counted before the last look
        self._good = 0  # after which all was well
        self._asked = 0  # after which a look was begun
        self._pending: Array = None
        self._look: Any = None
        self._cells: list[tuple[str, Cell]] = []

    @property
    def steps(self) -> int:
        """How often `step` was called."""
        return self._steps + self._every - self._left

    def step(self) -> None:
        """Count a step; begin a look if it is time, and raise if one has found something.

        Raises:
            CheckError: naming each variable that is not finite, and between which steps that was.
            CompileError: inside a compiled function.
        """
        _require_outside("alarm.step()")
        self._left -= 1
        if self._pending is not None and self._pending.is_ready():
            self._judge()
        if self._left <= 0:
            self._begin()

    def check(self) -> None:
        """Look now, and wait for what is found.

        Raises:
            CheckError: naming each variable that is not finite.
            CompileError: inside a compiled function.
        """
        _require_outside("alarm.check()")
        self._begin()
        self._judge()

    def __enter__(self) -> NanAlarm:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.check()

    def _begin(self) -> None:
        if self._pending is not None:  # from `every` steps ago
            self._judge()
        self._steps, self._left = self.steps, self._every
        if self._look is None:
            self._cells = list(_find_floats(self._objects).items())
            self._look = decorator.compile(self._count)
        self._pending, self._asked = self._look(), self._steps

    def _count(self) -> Array:
        counts = [jnp.stack(_count_nonfinite(LOCAL.frame.read(cell))) for _, cell in self._cells]
        return jnp.stack(counts) if counts else jnp.zeros((0, 2), int)

    def _judge(self) -> None:
        counts, self._pending = np.asarray(self._pending), None
        if not counts.any():
            self._good = self._asked
            return
        since = f", and all was well after step {self._good}" if self._good else ""
        wrong = int(counts.any(axis=1).sum())
        many = f"{wrong} of {len(counts)} variables are" if wrong > 1 else "a variable is"
        raise CheckError(
            f"After step {self._asked}, {many} not finite{since}.\n"
            f"{_describe_all(self._cells, counts)}\n"
            f"These steps are done: go back to a checkpoint of step {self._good} or before. "
            'jv.compile(guard="finite") stops such a step before it changes anything, and '
            "jv.debugging.enable_check_numerics() finds the operation."
        )


# ---------------------------------------------------------------- a table
def nonfinite(*objects: object, everything: bool = False) -> Table:
    """Return a table of the variables that hold NaN or infinities, and how many.

    Waits for the values. Changes nothing.

    Args:
        *objects: Variables, Modules, or anything that holds them.
        everything: list all variables of a float or complex dtype, those that are finite too.

    Returns:
        A row for each: path, shape, dtype, number of NaN, number of infinities, and the
        largest absolute value of the finite elements. Empty, and so false, if there is none.

    Raises:
        StateError: when there is no variable in an object.
        CompileError: inside a compiled function.

    Example:
        >>> import jaxvars as jv
        >>> w = jv.Variable([1.0, jnp.nan, -3.0], name="w")
        >>> b = jv.Variable([1.0, 2.0], name="b")
        >>> print(nonfinite({"w": w, "b": b}))
        variables that are not finite
        path  shape  dtype    NaN  infinite  largest
        ----  -----  -------  ---  --------  -------
        w     (3,)   float32    1         0        3
        >>> bool(nonfinite(b))
        False
    """
    _require_outside("nonfinite(...)")
    rows: list[tuple[Any, ...]] = []
    for name, cell in _find_floats(objects).items():
        nans, infinities, largest = (x.item() for x in _summarize(LOCAL.frame.read(cell)))
        if everything or nans or infinities:
            rows.append((name, cell.aval.shape, str(cell.aval.dtype), nans, infinities, largest))
    return Table(
        title="variables" if everything else "variables that are not finite",
        columns=("path", "shape", "dtype", "NaN", "infinite", "largest"),
        rows=rows,
    )


@jax.jit
def _summarize(x: Array) -> tuple[Array, Array, Array]:
    largest = jnp.max(jnp.where(jnp.isfinite(x), jnp.abs(x), 0), initial=0)
    return (*_count_nonfinite(x), largest)


# ---------------------------------------------------------------- parts
def _find_floats(objects: Iterable[object]) -> dict[str, Cell]:
    """Return the cells of float and complex variables in some objects, by path."""
    cells = named_cells(list(objects), {})
    return {n: c for n, c in cells.items() if not is_string(c.aval.dtype) and is_inexact(c.aval)}


def _count_nonfinite(x: Array) -> tuple[Array, Array]:
    """Return how many elements are NaN, and how many are infinite."""
    return jnp.isnan(x).sum(), jnp.isinf(x).sum()


def _describe_all(cells: list[tuple[str, Cell]], counts: np.ndarray) -> str:
    pairs = zip(cells, counts.tolist(), strict=True)
    lines = [_describe(*cell, *count) for cell, count in pairs if any(count)]
    more = [f"  ... and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "\n".join(lines[:_SHOWN] + more)


def _describe(path: str, cell: Cell, nans: int, infinities: int) -> str:
    kinds, size = {"NaN": nans, "infinite": infinities}, math.prod(cell.aval.shape)
    found = [f"{count:,} of {size:,} elements are {kind}" for kind, count in kinds.items() if count]
    return f"  {path} {type_text(cell.aval)}: {', '.join(found)}"


def _require_outside(what: str) -> None:
    if LOCAL.frame is not LOCAL.eager:
        raise CompileError(
            f"{what} at {user_line()} is called inside a compiled function, where there are no "
            "values yet. Call it outside, after the step; inside, jv.debugging.check_numerics(x) "
            "is a check of the program's own."
        )
