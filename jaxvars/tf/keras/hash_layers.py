"""`Hashing` and `HashedCrossing` of `tf.keras.layers`: Keras's own need TensorFlow.

Rules this file keeps:
- the numbers are TensorFlow's, of its hashes;
- strings are hashed on the host, which a `tf.function` calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tensors.dtypes import narrowed
from jaxvars.tf.keras.adapter.keras import keras
from jaxvars.tf.keras.adapter.semantics import into_keras, unwrap
from jaxvars.tf.keras.additions import floatx
from jaxvars.tf.strings import hash as hashes
from jaxvars.tf.strings.buckets import to_hash_bucket_fast
from jaxvars.tf.strings.conversion import as_string
from jaxvars.tf.tensors.convert import dtype_of, to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.handles import is_handles, on_strings
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

DROPPED = np.iinfo(np.int32).max  # the index of what no row counts


def check_choice(value: Any, choices: tuple[Any, ...], name: str, owner: Any) -> None:
    """Raise ValueError unless an argument is one of some values."""
    if value not in choices:
        raise ValueError(
            f"Unknown value for `{name}` argument of {type(owner).__name__}. Allowed values are: "
            f"{choices}. Received: {name}={value}"
        )


class Categories(ABC):
    """From strings or integers to indices, or to what `output_mode` makes of a row of them."""

    output_mode: str
    _depth: Any

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the layer; not Keras, which does not know the strings of a `tf.function`."""
        layer: Any = super()
        if any(map(is_handles, jax.tree.leaves(unwrap(inputs)))):
            return into_keras(self.call, (inputs,), {})
        return layer.__call__(inputs, *args, **kwargs)

    def call(self, inputs: Any) -> Any:
        """Return the indices, or what `output_mode` makes of each row of them."""
        given = inputs if isinstance(inputs, RaggedTensor) else to_array(inputs)
        if not isinstance(given, RaggedTensor):
            found = self._index(given)
        else:
            found = given.with_flat_values(Tensor(self._index(given.flat_values._array)))
            if self.output_mode == "int":
                return found
            found = found.to_tensor(DROPPED)._array
        return found if self.output_mode == "int" else self._encode(found)

    @abstractmethod
    def _index(self, values: Array) -> Array:
        """Return the indices of strings or integers."""

    def _encode(self, found: Array) -> Array:
        found, depth = jnp.atleast_1d(found), self._depth
        if self.output_mode == "one_hot":
            is_column = found.ndim > 1 and found.shape[-1] == 1
            return jax.nn.one_hot(found[..., 0] if is_column else found, depth, dtype=int)
        found = jnp.moveaxis(found, min(1, found.ndim - 1), -1)
        rows = jnp.minimum(found, depth).reshape(-1, found.shape[-1])
        sums = jnp.asarray(_count(rows, depth)).reshape(*found.shape[:-1], depth)
        return jnp.minimum(sums, 1) if self.output_mode == "multi_hot" else sums

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return the shape of the result."""
        is_list = bool(input_shape) and isinstance(input_shape[0], list | tuple)
        shape = tuple(input_shape[0] if is_list else input_shape)
        if self.output_mode == "int":
            return shape
        is_row = self.output_mode == "one_hot" and (len(shape) < 2 or shape[-1] != 1)
        return (*(shape if is_row else shape[:-1]), self._depth)

    def get_build_config(self) -> dict[str, Any]:
        """Return what `build` needs: nothing."""
        return {}


def _count(rows: Value, depth: int) -> Value:
    """Return how often each index below a depth is in each row."""
    at = np.arange(len(rows))[:, None]
    if not context.is_known(rows):
        return jnp.zeros((len(rows), depth + 1), int).at[at, rows].add(1)[:, :depth]
    sums = np.zeros((len(rows), depth + 1), np.int64)
    np.add.at(sums, (at, np.asarray(rows)), 1)  # rows of each length need no program of their own
    return sums[:, :depth]


class _Hashed(Categories, ABC):
    """What `Hashing` and `HashedCrossing` have in common."""

    _modes: tuple[str, ...] = ("int", "one_hot")

    def __init__(
        self, num_bins: int, output_mode: str = "int", sparse: bool = False, *, dtype: Any = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        layer: Any = super()
        layer.__init__(dtype=dtype or ("int64" if output_mode == "int" else floatx()), **kwargs)
        self._convert_input_args, self._allow_non_tensor_positional_args = False, True
        check_choice(output_mode, self._modes, "output_mode", self)
        is_whole = as_dtype(getattr(self, "compute_dtype")).is_integer  # noqa: B009
        for is_wrong, message in (
            (num_bins is None or num_bins <= 0,
             f"`num_bins` cannot be `None` or non-positive values. Received: {num_bins}"),
            (output_mode == "int" and not is_whole,
             f'When `output_mode="int"`, `dtype` should be an integer type. Received: {dtype}'),
            (sparse, "`sparse=True` can only be used with TensorFlow: rows are dense here."),
        ):  # fmt: skip
            if is_wrong:
                raise ValueError(message)
        self.num_bins = self._depth = num_bins
        self.output_mode, self.sparse = output_mode, sparse

    def call(self, inputs: Any) -> Any:
        """Return the bins, or what `output_mode` makes of each row of them."""
        found, dtype = super().call(inputs), getattr(self, "compute_dtype")  # noqa: B009
        if isinstance(found, RaggedTensor):
            return found.with_flat_values(Tensor(found.flat_values._array.astype(dtype)))
        return found.astype(dtype)

    def compute_output_spec(self, inputs: Any) -> Any:
        """Return the symbolic result."""
        first = inputs[0] if isinstance(inputs, list | tuple) else inputs
        shape, dtype = self.compute_output_shape(first.shape), getattr(self, "compute_dtype")  # noqa: B009
        return keras().KerasTensor(shape, dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        layer: Any = super()
        own = {name: getattr(self, name) for name in ("num_bins", "output_mode", "sparse")}
        return {**layer.get_config(), **own}


@final
class Hashing(_Hashed):
    """From strings or integers to bins, by their hashes; see `keras.layers.Hashing`."""

    _modes = ("int", "one_hot", "multi_hot", "count")

    def __init__(
        self, num_bins: int, mask_value: Any = None, salt: Any = None, output_mode: str = "int",
        sparse: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(num_bins, output_mode, sparse, **kwargs)
        self.mask_value, self.salt = mask_value, [salt, salt] if isinstance(salt, int) else salt
        if salt is not None and len(self.salt) != 2:
            raise ValueError(
                "The `salt` argument for `Hashing` can only be a tuple of size 2 integers, or a "
                f"single integer. Received: salt={salt}."
            )

    def _index(self, values: Array) -> Array:
        return on_strings(self._find)(values)

    def _find(self, values: np.ndarray) -> Value:
        has_mask = self.mask_value is not None and self.num_bins > 1
        count = self.num_bins - has_mask
        whole = values.astype(narrowed(np.int64)) if dtype_of(values).is_floating else values
        words = as_string.__wrapped__(whole)
        if self.salt is None:
            found = to_hash_bucket_fast.__wrapped__(words, count)
        else:
            first, second = self.salt
            numbers = [hashes.strong(word, (first, second)) % count for word in words.ravel()]
            found = to_array(np.array(numbers, np.int64).reshape(words.shape))
        if not has_mask:
            return found
        is_masked = values == to_array(self.mask_value, dtype_of(values))
        return jnp.where(jnp.asarray(is_masked), 0, found + 1)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        return {**super().get_config(), "salt": self.salt, "mask_value": self.mask_value}


@final
class HashedCrossing(_Hashed):
    """From combinations of values to bins, by a hash of all; see `keras.layers.HashedCrossing`."""

    def call(self, inputs: Any) -> Any:
        """Return the bin of each combination."""
        arrays = list(map(to_array, inputs)) if isinstance(inputs, list | tuple) else []
        shapes, kinds = {x.shape for x in arrays}, list(map(dtype_of, arrays))
        is_whole = all(kind.is_integer or kind.is_string for kind in kinds)
        if len(arrays) < 2 or len(shapes) > 1 or shapes.pop()[1:] not in ((), (1,)) or not is_whole:
            raise ValueError(
                "`HashedCrossing` should be called on a list or tuple of at least two inputs of "
                "an integer or string dtype, and of equal shape: `()`, `(batch_size)` or "
                f"`(batch_size, 1)`. Received: inputs={inputs}"
            )
        return super().call(on_strings(self._cross)(arrays))

    def _index(self, values: Array) -> Array:
        return values

    def _cross(self, arrays: list[Array]) -> Array:
        rows = zip(*(np.ravel(x).tolist() for x in arrays), strict=True)
        found = [hashes.cross(row) % self.num_bins for row in rows]
        return to_array(np.array(found, np.int64).reshape(arrays[0].shape))
