"""Tables from keys to values, on the host.

Rules this file keeps:
- inside of a `tf.function` keys are looked up when the program runs: numbers in a static table by
  the program, others, and in a table that changes, by a call to the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.errors import FailedPreconditionError
from jaxvars.tf.lookup.sources import to_typed
from jaxvars.tf.strings import hash as hashes
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.dtypes import DType, as_dtype, int64, string
from jaxvars.tf.tensors.handles import is_handles, on_strings, stage
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context
from jaxvars.typing import Array, Value


class Table(ABC):
    """A table from keys to values.

    Attributes:
        key_dtype: the type of the keys.
        value_dtype: the type of the values.
        name: what it is called.
    """

    def __init__(self, key_dtype: Any, value_dtype: Any, name: str | None) -> None:
        self.key_dtype: DType = as_dtype(key_dtype)
        self.value_dtype: DType = as_dtype(value_dtype)
        self.name = name
        self._rows: dict[Any, Array] = {}

    @abstractmethod
    def _look_up(self, keys: Array) -> Array:
        """Return the values of an array of keys."""

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Return the values of keys, and the default value for those that are not there.

        Args:
            keys: a tensor of any shape; a ragged or sparse one gives one of values.
            name: of no effect.

        Raises:
            TypeError: when the keys are of another type.
        """
        if isinstance(keys, RaggedTensor):
            return keys.with_flat_values(self.lookup(keys.flat_values))
        if isinstance(keys, SparseTensor):
            return keys.with_values(self.lookup(keys.values))
        return Tensor(self._look_up(self._keys(keys)))

    def _keys(self, keys: Any) -> Array:
        """Return keys as an array.

        Raises:
            TypeError: when they are of another type.
        """
        hint = None if _convert.is_tensor_like(keys) else self.key_dtype
        array = keys._array if isinstance(keys, Tensor) else _convert.to_array(keys, hint)
        if (dtype := _convert.dtype_of(array)) != self.key_dtype:
            raise TypeError(f"Dtype of argument `keys` must be {self.key_dtype}, received: {dtype}")
        return array

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)

    def size(self, name: str | None = None) -> Tensor:
        """Return how many keys there are, as an int64."""
        return Tensor(_convert.to_array(np.asarray(len(self._rows), np.int64)))

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Return all keys, and their values."""
        keys, values = self._arrays()
        return Tensor(_convert.to_array(keys)), Tensor(_convert.to_array(values))

    def _arrays(self, like: Value | None = None) -> tuple[np.ndarray, np.ndarray]:
        keys = np.empty(len(self._rows), _kind(self.key_dtype))
        keys[:] = list(self._rows)
        shape = () if like is None else np.shape(like)
        values = np.empty((len(self._rows), *shape), _kind(self.value_dtype))
        for i, value in enumerate(self._rows.values()):
            values[i] = value
        return keys, values

    def _find_values(self, keys: np.ndarray, default: np.ndarray) -> np.ndarray:
        """Return the values of keys that are known."""
        made = np.empty((*keys.shape, *default.shape), _kind(self.value_dtype))
        flat = made.reshape(-1, *default.shape)
        other = default if default.ndim else default[()]
        for i, key in enumerate(keys.ravel().tolist()):
            flat[i] = self._rows.get(key, other)
        return flat.reshape(made.shape)


def _kind(dtype: DType) -> Any:
    return np.dtype(object) if dtype.is_string else dtype.dtype


def _fill_table(table: Table, source: Any) -> None:
    """Put what an initializer has into a table."""
    rows = table._rows
    for key, value in zip(source.keys.tolist(), source.values, strict=True):
        if rows.setdefault(key, value) != value:
            shown = [x.decode() if isinstance(x, bytes) else x for x in (key, rows[key], value)]
            raise FailedPreconditionError(
                message=f"HashTable has different value for same key. Key {shown[0]} has "
                f"{shown[1]} and trying to add value {shown[2]}"
            )


@final
class StaticHashTable(Table):
    """A table that does not change.

    Args:
        initializer: the keys and values.
        default_value: the value of keys that are not there.
        name: what it is called.
        experimental_is_anonymous: of no effect.

    Example:
        >>> from jaxvars import tf
        >>> source = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])
        >>> table = tf.lookup.StaticHashTable(source, default_value=-1)
        >>> table.lookup(["b", "c"]).numpy()
        array([ 2, -1], dtype=int32)
    """

    def __init__(
        self, initializer: Any, default_value: Any, name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(initializer.key_dtype, initializer.value_dtype, name)
        self._default = to_typed(default_value, self.value_dtype)
        if self._default.ndim:
            raise refused("default_value must be a scalar")
        _fill_table(self, initializer)

    @property
    def default_value(self) -> Tensor:
        """The value of keys that are not there."""
        return Tensor(_convert.to_array(self._default))

    def _look_up(self, keys: Array) -> Array:
        if context.is_known(keys):
            return _convert.to_array(self._find_values(np.asarray(keys), self._default))
        if is_handles(keys) or self.value_dtype.is_string:
            return stage(lambda given: self._find_values(given, self._default), keys)
        return _search_sorted(self, keys, self._default)


def _search_sorted(table: Table, keys: Array, default: Value) -> Array:
    """Look up keys in a program."""
    known, values = table._arrays()
    if not len(known):
        return jnp.broadcast_to(jnp.asarray(default), keys.shape)
    order = np.argsort(known)
    sorted_keys, sorted_values = jnp.asarray(known[order]), jnp.asarray(values[order])
    places = jnp.clip(jnp.searchsorted(sorted_keys, keys), 0, len(known) - 1)
    return jnp.where(sorted_keys[places] == keys, sorted_values[places], jnp.asarray(default))


@final
class StaticVocabularyTable(Table):
    """A table that gives other keys numbers of buckets, by their hashes.

    Args:
        initializer: the keys, and int64 values from 0 on; None if there are none.
        num_oov_buckets: how many buckets there are for other keys.
        lookup_key_dtype: the type of the keys, if it is not that of the initializer.
        name: what it is called.
        experimental_is_anonymous: of no effect.

    Raises:
        ValueError: without buckets.
        TypeError: when the types are others.

    Example:
        >>> from jaxvars import tf
        >>> source = tf.lookup.KeyValueTensorInitializer(["a", "b"], [0, 1], value_dtype=tf.int64)
        >>> table = tf.lookup.StaticVocabularyTable(source, num_oov_buckets=3)
        >>> table.lookup(["a", "zz", "b"]).numpy().tolist()
        [0, 3, 1]
    """

    def __init__(
        self, initializer: Any, num_oov_buckets: int, lookup_key_dtype: Any = None,
        name: str | None = None, experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        if num_oov_buckets <= 0:
            raise ValueError("`num_oov_buckets` must be > 0; use StaticHashTable.")
        kind = as_dtype(lookup_key_dtype or (initializer and initializer.key_dtype) or string)
        super().__init__(kind, int64, name)
        self._buckets = int(num_oov_buckets)
        if initializer is None:
            return
        if initializer.value_dtype != self.value_dtype:
            raise TypeError(
                f"Invalid `value_dtype`, expected {self.value_dtype.name} but got "
                f"{initializer.value_dtype!r}."
            )
        if kind.is_integer != initializer.key_dtype.is_integer:
            raise TypeError(
                "Invalid `key_dtype`: the keys of the initializer and those that are looked up "
                f"are {initializer.key_dtype!r} and {kind!r}."
            )
        _fill_table(self, initializer)

    def _look_up(self, keys: Array) -> Array:
        return on_strings(self._number_keys)(keys)

    def _number_keys(self, keys: Array) -> Array:
        array = np.asarray(keys)
        made = [self._number(key) for key in array.ravel().tolist()]
        return _convert.to_array(np.array(made, np.int64).reshape(array.shape))

    def _number(self, key: Any) -> int:
        if key in self._rows:
            return int(self._rows[key])
        encoded = key if isinstance(key, bytes) else str(key).encode()
        return len(self._rows) + hashes.fast(encoded) % self._buckets

    def size(self, name: str | None = None) -> Tensor:
        """Return how many values there are, those of buckets included."""
        number = len(self._rows) + self._buckets
        return Tensor(_convert.to_array(np.asarray(number, np.int64)))
