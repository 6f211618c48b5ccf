"""Python that a program calls on the host each time it runs, for its effect alone.

Rules this file keeps:
- the calls are in the order of the program, but for programs that run on several devices, where
  JAX refuses an order;
- under `vmap` it is said what happens: JAX would make a call for each example, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

from jaxvars.tracing import context
from jaxvars.typing import Array


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
) -> None:
    """Make a call of a Python function a part of the program that is being staged.

    Args:
        run: takes the values, those that are traced as arrays of NumPy.
        values: known or traced.
        over_examples: called instead where `vmap` adds an axis to values: with how many examples
            there are, which values have the axis, as their first one, and the values.
        ordered: whether to keep the order of the program.
    """
    known = [None if context.is_tracer(x) else x for x in values]
    dtypes = {i: x.dtype for i, x in enumerate(values) if context.is_tracer(x)}

    def filled(operands: Iterable[Array], others: Sequence[Any] = known) -> list[Any]:
        found = dict(zip(dtypes, operands, strict=True))
        return [found.get(i, x) for i, x in enumerate(others)]

    def on_host(*operands: Array) -> None:
        run(*filled(map(np.asarray, operands, dtypes.values())))

    def stage(*operands: Array) -> tuple[()]:
        jax.debug.callback(on_host, *operands, ordered=ordered and not _is_on_several_devices())
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
