"""A table that changes, on the host; a checkpoint holds what is in it.

Rules this file keeps:
- inside of a `tf.function` the host is called when the program runs.
"""

from __future__ import annotations

from typing import Any, final

import jax
import jax.experimental
import numpy as np

from jaxvars.tf.data.generators.cursor import Recorded, State
from jaxvars.tf.data.generators.staged import at_once
from jaxvars.tf.lookup.sources import to_typed
from jaxvars.tf.lookup.tables import Table
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.handles import is_handles, stage, taker, to_data
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context
from jaxvars.typing import Array, Value


@final
class MutableHashTable(Table, Recorded):
    """A table that changes.

    Args:
        key_dtype: the type of the keys.
        value_dtype: the type of the values.
        default_value: the value of keys that are not there: a scalar or vector.
        name: what it is called.
        checkpoint: of no effect: a checkpoint holds what is in it.
        experimental_is_anonymous: of no effect.

    Example:
        >>> from jaxvars import tf
        >>> table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int32, default_value=-1)
        >>> table.insert(["a"], [5])
        >>> table.lookup(["a", "b"]).numpy()
        array([ 5, -1], dtype=int32)
    """

    _entry = "table", "table"

    def __init__(
        self, key_dtype: Any, value_dtype: Any, default_value: Any, name: str = "MutableHashTable",
        checkpoint: bool = True, experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(key_dtype, value_dtype, name)
        self._default = to_typed(default_value, self.value_dtype)

    # ------------------------------------------------------------ reading
    def _look_up(self, keys: Array) -> Array:
        if context.is_staging():
            return self._ask_host(keys)
        self._read()
        return _convert.to_array(self._find_values(np.asarray(keys), self._default))

    def _ask_host(self, keys: Array) -> Array:
        """Call the host when the program runs."""
        if is_handles(keys) or self.value_dtype.is_string:
            return stage(self._look_up, keys, ordered=True)

        def on_host(*given: Array) -> np.ndarray:
            self._read()
            return self._find_values(np.asarray(given[0] if given else keys), self._default)

        shape = (*keys.shape, *self._default.shape)
        struct = jax.ShapeDtypeStruct(shape, self.value_dtype.dtype)
        operands = [] if _convert.is_text(keys) else [keys]
        return jax.experimental.io_callback(on_host, struct, *operands, ordered=True)

    def size(self, name: str | None = None) -> Tensor:
        """Return how many keys there are, as an int64."""

        def on_host() -> np.ndarray:
            self._read()
            return np.asarray(len(self._rows), np.int64)

        if not context.is_staging():
            return Tensor(_convert.to_array(on_host()))
        struct = jax.ShapeDtypeStruct((), np.int64)
        return Tensor(jax.experimental.io_callback(on_host, struct, ordered=True))

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Return all keys, and their values.

        Raises:
            InvalidArgumentError: in a `tf.function`, where it is not known how many there are.
        """
        if context.is_staging():
            raise refused(
                "How many keys a table has is known when the tf.function runs: XLA compiles for "
                "fixed shapes. Export it outside of tf.function."
            )
        return super().export(name)

    def _arrays(self, like: Value | None = None) -> tuple[np.ndarray, np.ndarray]:
        self._read()
        return super()._arrays(self._default)

    # ------------------------------------------------------------ writing
    def insert(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Put values under keys, in place of those that were there.

        Args:
            keys: a tensor.
            values: a tensor, of a value for each key.
            name: of no effect.

        Raises:
            TypeError: when the keys are of another type.
            InvalidArgumentError: when the shapes do not fit.
        """
        given = self._keys(keys)
        added = _convert.to_array(values, self.value_dtype)
        if added.shape != (*given.shape, *self._default.shape):
            raise refused(
                f"Expected shape {[*given.shape, *self._default.shape]} for value, got "
                f"{list(added.shape)}"
            )
        self._apply_change(self._put, given, added)

    def remove(self, keys: Any, name: str | None = None) -> None:
        """Take keys out; those that are not there do not matter.

        Raises:
            TypeError: when the keys are of another type.
        """
        self._apply_change(self._take, self._keys(keys))

    def _apply_change(self, change: Any, *arrays: Array) -> None:
        if not context.is_staging():
            change(*arrays)
        else:
            numbers = [x for x in arrays if not _convert.is_text(x)]
            strings = [x if _convert.is_text(x) else None for x in arrays]
            take = taker(numbers)

            def run(*given: Array) -> None:
                rest = iter(take(given))
                at_once(lambda: change(*(next(rest) if x is None else x for x in strings)))

            data = list(map(to_data, numbers))
            jax.experimental.io_callback(run, None, *data, ordered=True)

    def _put(self, keys: Array, values: Array) -> None:
        self._read()
        flat = np.asarray(keys).ravel().tolist()
        rows = np.asarray(values).reshape(-1, *self._default.shape)
        self._rows.update(zip(flat, rows, strict=True))

    def _take(self, keys: Array) -> None:
        self._read()
        flat = np.asarray(keys).ravel().tolist()
        for key in flat:
            self._rows.pop(key, None)

    # ------------------------------------------------------------ in a checkpoint
    def _save(self) -> State:
        keys, values = self._arrays()
        return {"keys": keys, "values": values}

    def _load(self, state: State) -> None:
        self._rows = dict(zip(state["keys"].tolist(), state["values"], strict=True))
