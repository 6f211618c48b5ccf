"""Python that is called on the host each time a program runs, for its effect alone.

The program calls it (`call_on_host`), or returns what it takes and is followed by it (`HostCall`).
The second donates, waits for nothing, and costs a hundredth; it needs a value that can come out.

Rules this file keeps:
- the calls are in the order of the program, but for programs that run on several devices, where
  JAX refuses an order;
- under `vmap` it is said what happens: JAX would make a call for each example, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple, final

import jax
import numpy as np

from jaxvars.core import staging
from jaxvars.tracing import context
from jaxvars.typing import Array

CALLS = "calls "
"""The beginning of the name of the scope in which a program calls; what calls follows."""


def drop_gradient(x: Array) -> Array:
    """Return a value without its derivative; under `jax.grad` alone it is then known."""
    return jax.lax.stop_gradient(x) if context.is_tracer(x) else x


def runs_now(values: Iterable[Array]) -> bool:
    """Return whether all values are known and nothing is being staged."""
    return not context.is_staging() and not any(map(context.is_tracer, values))


def call_on_host(
    run: Callable[..., None],
    values: Sequence[Array],
    over_examples: Callable[[int, Sequence[bool], Sequence[Array]], None],
    *,
    ordered: bool = True,
    what: str = "",
) -> None:
    """Make a call of a Python function a part of the program that is being staged.

    Args:
        run: takes the values, those that are traced as arrays of NumPy.
        values: known or traced.
        over_examples: called instead where `vmap` adds an axis to values: with how many examples
            there are, which values have the axis, as their first one, and the values.
        ordered: whether to keep the order of the program.
        what: what calls, for those who look into the program.
    """
    known = [None if context.is_tracer(x) else x for x in values]
    dtypes = {i: x.dtype for i, x in enumerate(values) if context.is_tracer(x)}

    def filled(operands: Iterable[Any], others: Sequence[Any] = known) -> list[Any]:
        found = dict(zip(dtypes, operands, strict=True))
        return [found.get(i, x) for i, x in enumerate(others)]

    def on_host(*operands: Array) -> None:
        run(*filled(map(np.asarray, operands, dtypes.values())))

    def stage(*operands: Array) -> tuple[()]:
        in_order = ordered and not _is_on_several_devices()
        with jax.named_scope(CALLS + what):
            jax.debug.callback(on_host, *operands, ordered=in_order)
        return ()

    if not dtypes:
        stage()
        return
    staged = jax.custom_batching.custom_vmap(stage)

    @staged.def_vmap
    def rule(  # pyright: ignore[reportUnusedFunction] - the rule of `staged`
        count: int, batched: Sequence[bool], *operands: Array
    ) -> tuple[tuple[()], tuple[()]]:
        over_examples(count, filled(batched, [False] * len(known)), filled(operands))
        return (), ()

    staged(*(values[i] for i in dtypes))


def _is_on_several_devices() -> bool:
    mesh = jax.sharding.get_abstract_mesh()
    return not mesh.empty and mesh.size > 1


# ---------------------------------------------------------------- after the program
class HostCall(NamedTuple):
    """A call that is to be made each time, in the program or after it.

    Attributes:
        what: it does, in a word.
        run: takes the values, and `in_program`: whether the program waits for it.
        values: known or traced; `None` may be one.
        over_examples: see `call_on_host`.
    """

    what: str
    run: Callable[..., None]
    values: Sequence[Any]
    over_examples: Callable[[int, Sequence[bool], Sequence[Array]], None]

    def make(self) -> None:
        """Call now, or have it called when the program that is being staged has run, or by it."""
        if runs_now(self.values):
            self.run(*self.values, in_program=False)
        elif (after := AFTER.value) is None or not after.takes(self):
            self.stage()

    def stage(self) -> None:
        """Have the program call."""
        run = partial(self.run, in_program=True)
        call_on_host(run, self.values, self.over_examples, what=self.what)


@final
class After:
    """The calls that follow the program whose function is being traced.

    What is called in an inner function (a loop's body, a branch) cannot come out. From there on the
    program makes all calls itself, those before too, so that they stay in order.

    Attributes:
        calls: what is called.
        names: for each value that the program returns for them, of which call it is.
    """

    def __init__(self) -> None:
        self.calls: list[HostCall] = []
        self.names: list[str] = []
        self._trace: Any = context.strip(context.current())
        self._is_open = True

    def during(self) -> AbstractContextManager[object]:
        """Return the context in which the function is traced."""
        return AFTER.set(self)

    def takes(self, call: HostCall) -> bool:
        """Take a call, unless the program is to make it."""
        if self._is_open and context.strip(context.current()) is not self._trace:
            self._is_open = False
            with context.at(self._trace):
                for one in self.calls:
                    one.stage()
            self.calls.clear()
        if self._is_open:
            self.calls.append(call)
        return self._is_open

    def take_values(self) -> list[Array]:
        """Return the traced values of the calls, and keep none of them."""
        traced = [x for call in self.calls for x in call.values if context.is_tracer(x)]
        self.names = [x.what for x in self.calls for _ in filter(context.is_tracer, x.values)]
        self.calls = [
            call._replace(values=[TRACED if context.is_tracer(x) else x for x in call.values])
            for call in self.calls
        ]
        self._trace = None  # which holds all values of the function
        return traced

    def run(self, traced: Iterable[Array]) -> None:
        """Make the calls with what the program has returned; if some raise, raise the first."""
        values, errors = iter(traced), list[Exception]()
        for call in self.calls:
            given = [next(values) if x is TRACED else x for x in call.values]
            try:
                call._replace(values=list(map(drop_gradient, given))).make()
            except Exception as error:  # noqa: BLE001 - raised below
                errors.append(error)
        if errors:
            raise errors[0]


TRACED = object()
AFTER = context.Scoped[After | None](None)


def install() -> None:
    """Have calls follow the programs of compiled functions."""
    staging.AFTER.append(After)
