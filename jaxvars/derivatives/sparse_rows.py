"""`lookup`: rows of an array by index, as an operation that a tape knows again.

The gradient of a table that was only looked up in is zero but for the rows that were read. A tape
that is to return `Rows` gives those alone: the gradients of what the look-ups returned.

Rules this file keeps:
- a look-up is a jitted function, known by its name, so that JAX knows all about it;
- rows are only given where nothing else was done with the table; a copy of it counts as it, and so
  does what it is in another type of floats.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp

from jaxvars.autodiff.replay import Program
from jaxvars.autodiff.reverse import add_up
from jaxvars.autodiff.tape import GradientQuery, GradientTape, UnconnectedGradients
from jaxvars.tracing.recorder import Equation
from jaxvars.typing import Array, PyTree

_NAME = "jaxvars_lookup"


def take(array: Array, indices: Array, axis: int) -> Array:
    """Return parts of an array by index; one out of range, negative ones too, gives zeros.

    Args:
        array: of one dimension or more.
        indices: integers, of any shape.
        axis: the dimension that they are for, not negative; their dimensions take its place.
    """
    shape = (*array.shape[:axis], *indices.shape, *array.shape[axis + 1 :])
    if not array.shape[axis]:
        return jnp.zeros(shape, array.dtype)
    kept = [i for i in range(len(shape)) if not axis <= i < axis + indices.ndim]
    numbers = jax.lax.GatherDimensionNumbers(tuple(kept), (axis,), (axis,))
    sizes = (*array.shape[:axis], 1, *array.shape[axis + 1 :])
    fill = jax.lax.GatherScatterMode.FILL_OR_DROP
    return jax.lax.gather(array, indices[..., None], numbers, sizes, mode=fill, fill_value=0)


def _lookup(table: Array, indices: Array) -> Array:
    """Return rows of a table, an array of shape `[n, ...]`, by index, as `take`."""
    return take(table, indices, 0)


_lookup.__name__ = _NAME
lookup = jax.jit(_lookup)


class Rows(NamedTuple):
    """Rows of an array that is zero elsewhere; those of one index add up.

    Attributes:
        values: the rows, of shape `[n, ...]`.
        indices: which they are, of shape `[n]`.
        shape: that of the whole array.
    """

    values: Array
    indices: Array
    shape: tuple[int, ...]

    def whole(self) -> Array:
        """Return the whole array."""
        zeros = jnp.zeros(self.shape, self.values.dtype)
        (added,) = jax.linear_transpose(lambda x: lookup(x, self.indices), zeros)(self.values)
        return added


@final
class Uses:
    """What was done with some values, in a list of operations.

    Args:
        equations: the operations, each with its outputs.
        tables: the values.
        others: values that are returned as they are, too.
    """

    __slots__ = ("_found", "_tables")

    def __init__(
        self,
        equations: Iterable[tuple[Equation, list[Array]]],
        tables: Sequence[Array],
        others: Sequence[Array],
    ) -> None:
        taken = set(map(id, others))
        self._tables = {id(x): id(x) for x in tables}  # the table that a value is a copy of
        self._found: dict[int, list[tuple[Array, Array]] | None] = {
            id(x): None if id(x) in taken else [] for x in tables
        }
        for equation, outputs in equations:
            self._note(equation, outputs, taken)

    def _note(self, equation: Equation, outputs: list[Array], taken: set[int]) -> None:
        inputs = equation.inputs
        table = self._tables.get(id(inputs[0]))
        if table is not None and is_lookup(equation):
            if (rows := self._found[table]) is not None:
                rows.append((outputs[0], inputs[1]))
        elif table is not None and _is_same(equation, outputs) and id(outputs[0]) not in taken:
            self._tables.setdefault(id(outputs[0]), table)
        else:
            for x in inputs:
                if (table := self._tables.get(id(x))) is not None:
                    self._found[table] = None

    def lookups(self, table: Array) -> list[tuple[Array, Array]]:
        """Return the results and indices of the look-ups that are all that was done with a table.

        An empty list says that there were none, or that they were not all.
        """
        return self._found.get(id(table)) or []


def is_lookup(equation: Equation) -> bool:
    """Return whether an operation is a `lookup`."""
    return equation.name == "jit" and equation.params.get("name") == _NAME


def _is_same(equation: Equation, outputs: list[Array]) -> bool:
    """Return whether an operation returns what it is given, perhaps in another type of floats."""
    if equation.name == "convert_element_type":
        dtypes = (equation.inputs[0].dtype, outputs[0].dtype)
        return all(jnp.issubdtype(dtype, jnp.floating) for dtype in dtypes)
    return equation.name == "copy"


def row_gradients(
    tape: GradientTape,
    target: PyTree,
    sources: Sequence[Any],
    output_gradients: PyTree,
    unconnected: UnconnectedGradients,
    stops: Sequence[Any],
) -> list[Any]:
    """Return what `GradientTape.row_gradients` returns."""
    return tape._find_gradients(
        target, sources, output_gradients, unconnected, stops, by=_split_rows, add=_add
    )


def _split_rows(
    query: GradientQuery, program: Program, sources: Sequence[Array]
) -> list[Any] | None:
    """Return gradients made of those of look-ups; None if there are no look-ups."""
    if not any(is_lookup(node.equation) for node in program.nodes):
        return None
    equations = ((node.equation, node.outputs) for node in program.nodes)
    uses = Uses(equations, sources, query.targets)
    lookups = [uses.lookups(x) for x in sources]
    if not any(lookups):
        return None
    asked = [x for x, parts in zip(sources, lookups, strict=True) if not parts]
    asked += [result for parts in lookups for result, _ in parts]
    unique = list({id(x): x for x in asked}.values())
    by_id = dict(zip(map(id, unique), query.answer(unique), strict=True))
    return [
        rows_of([(by_id[id(y)], i) for y, i in parts], x) if parts else by_id[id(x)]
        for x, parts in zip(sources, lookups, strict=True)
    ]


def rows_of(parts: Sequence[tuple[Array, Array]], table: Array) -> Rows:
    """Return gradients of look-ups, each with its indices, as one of the table."""
    shape = tuple(table.shape)
    each = [
        Rows(g.astype(table.dtype).reshape(i.size, *shape[1:]), i.reshape(-1), shape)
        for g, i in parts
    ]
    return _join(each)


def _add(gradients: Sequence[Array | Rows]) -> Array | Rows:
    """Return the sum of one or more gradients; Rows if all of them are."""
    rows = [g for g in gradients if isinstance(g, Rows)]
    if len(rows) == len(gradients):
        return _join(rows)
    return add_up(g.whole() if isinstance(g, Rows) else g for g in gradients)


def _join(rows: Sequence[Rows]) -> Rows:
    if len(rows) == 1:
        return rows[0]
    wide = jnp.result_type(*[each.indices for each in rows])
    indices = jnp.concatenate([each.indices.astype(wide) for each in rows])
    return Rows(jnp.concatenate([each.values for each in rows]), indices, rows[0].shape)
