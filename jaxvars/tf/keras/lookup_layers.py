"""`StringLookup` and `IntegerLookup` of `tf.keras.layers`: Keras's own need TensorFlow.

Rules this file keeps:
- strings are looked up on the host; integers in a `tf.function`, too;
- tokens are sorted by their counts, and those that are as frequent by themselves, both downwards;
- what is saved is what Keras saves: configurations, and the vocabulary in a file.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tensors.dtypes import narrowed
from jaxvars.tf.control.branches import Assert
from jaxvars.tf.errors import FailedPreconditionError, UnimplementedError
from jaxvars.tf.keras.adapter.keras import keras
from jaxvars.tf.keras.additions import floatx
from jaxvars.tf.keras.hash_layers import DROPPED, Categories, check_choice
from jaxvars.tf.lookup.sources import KeyValueTensorInitializer
from jaxvars.tf.lookup.tables import StaticHashTable
from jaxvars.tf.strings import hash as hashes
from jaxvars.tf.tensors.convert import dtype_of, is_text, string_array, to_array
from jaxvars.tf.tensors.handles import on_strings
from jaxvars.tf.tensors.static import require_known
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array, Value

MODES = ("int", "one_hot", "multi_hot", "count", "tf_idf")
_NO_TOKENS = "set the vocabulary before calling the layer: pass `vocabulary`, or call `adapt`."
_MISSING = (
    "When `num_oov_indices=0` all inputs should be in vocabulary, consider setting "
    "`num_oov_indices=1`; found OOV values among"
)
_SAVED = (
    "invert", "max_tokens", "num_oov_indices", "oov_token", "mask_token", "output_mode",
    "pad_to_max_tokens", "vocabulary", "idf_weights", "oov_method", "salt", "encoding",
)  # fmt: skip


class Vocabulary(Categories, ABC):
    """From tokens to their indices in a vocabulary, or back."""

    vocabulary_dtype, _default_oov = "string", "[UNK]"

    def __init__(
        self, max_tokens: int | None = None, num_oov_indices: int = 1, mask_token: Any = None,
        oov_token: Any = ..., vocabulary: Any = None, *, idf_weights: Any = None,
        invert: bool = False, output_mode: str = "int", pad_to_max_tokens: bool = False,
        sparse: bool = False, salt: Any = None, oov_method: str = "floormod",
        encoding: str = "utf-8", name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        layer: Any = super()
        layer.__init__(name=name)
        self._convert_input_args, self._allow_non_tensor_positional_args = False, True
        self.max_tokens, self.num_oov_indices, self.mask_token = (
            max_tokens, num_oov_indices, mask_token
        )  # fmt: skip
        self.oov_token = self._default_oov if oov_token is ... else oov_token
        self.output_mode = {"binary": "multi_hot", "tf-idf": "tf_idf"}.get(output_mode, output_mode)
        self.invert, self.pad_to_max_tokens, self.encoding = invert, pad_to_max_tokens, encoding
        self.oov_method, self.salt = oov_method, [salt, salt] if isinstance(salt, int) else salt
        self.vocabulary = None if isinstance(vocabulary, str) else _listed(vocabulary)
        self.idf_weights = _listed(idf_weights)
        self._size = kwargs.pop("vocabulary_size", None)
        self._is_fixed = kwargs.pop("has_input_vocabulary", vocabulary is not None)
        self._check_arguments(sparse, {*kwargs} - {"trainable", "dtype", "vocabulary_dtype"})
        self._table: Any = None
        self._token_weights: Any = None
        self.reset_state()
        self._token_array = self._keys_of([])
        if vocabulary is not None:
            self.set_vocabulary(vocabulary, idf_weights)

    def _check_arguments(self, sparse: bool, unknown: set[str]) -> None:
        size, mode = self.max_tokens, self.output_mode
        check_choice(mode, MODES, "output_mode", self)
        for is_wrong, message in (
            (size and size <= 1, f"If set, `max_tokens` must be greater than 1. {size}"),
            (self.pad_to_max_tokens and not size,
             "If pad_to_max_tokens is True, must set `max_tokens`."),
            (self.idf_weights is not None and mode != "tf_idf",
             "`idf_weights` should only be set if `output_mode` is `'tf_idf'`."),
            (self.num_oov_indices < 0, "`num_oov_indices` must be greater than or equal to 0."),
            (self.invert and mode != "int", "`output_mode` must be `'int'` when `invert` is true."),
            (sparse, "`sparse=True` can only be used with TensorFlow itself: rows are dense here."),
            (unknown, f"Unrecognized keyword argument(s): {unknown}"),
        ):  # fmt: skip
            if is_wrong:
                raise ValueError(message)

    # ------------------------------------------------------------ the vocabulary
    @property
    def _special(self) -> list[Any]:
        """The tokens before those of the vocabulary."""
        masks = [self.mask_token] * (self.mask_token is not None and self.output_mode == "int")
        return [*masks, *[self.oov_token] * self.num_oov_indices]

    def vocabulary_size(self) -> int:
        """Return how many tokens there are, the special ones included."""
        return len(self._token_array) + len(self._special)

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[Any]:
        """Return the tokens in the order of their indices, with those of masks and unknown ones."""
        tokens = self._token_array.tolist()
        known = [x.decode(self.encoding) for x in tokens] if is_text(self._token_array) else tokens
        return [*self._special, *known] if include_special_tokens else known

    def _keys_of(self, values: Any) -> np.ndarray:
        """Return tokens as the keys of the table: bytes, or int64."""
        if self.vocabulary_dtype == "int64":
            return np.asarray(values, np.int64).reshape(-1)
        made = [x if isinstance(x, bytes) else str(x).encode(self.encoding) for x in values]
        return string_array(np.array(made, object))

    def set_vocabulary(self, vocabulary: Any, idf_weights: Any = None) -> None:
        """Set the tokens, with or without the special ones, or the path of a file of lines."""
        if (self.output_mode == "tf_idf") is (idf_weights is None):
            verb = "must" if idf_weights is None else "should only"
            raise ValueError(f"`idf_weights` {verb} be set if output_mode is 'tf_idf'.")
        if isinstance(vocabulary, str):
            if not Path(vocabulary).exists():
                raise ValueError(f"Vocabulary file {vocabulary} does not exist.")
            vocabulary = Path(vocabulary).read_bytes().splitlines()
        given, special = self._keys_of(_listed(vocabulary)), self._special
        start = len(special) if None not in special else 0
        has_special = given[:start].tolist() == self._keys_of(special[:start]).tolist()
        tokens = given[start if has_special else 0 :]
        self._check_tokens(tokens)
        self._set_tokens(tokens)
        if idf_weights is not None:
            if len(given) != len(idf_weights):
                raise ValueError(
                    "`idf_weights` must be the same length as vocabulary. len(idf_weights) is "
                    f"{len(idf_weights)}; len(vocabulary) is {len(given)}"
                )
            self._set_weights(np.asarray(idf_weights, floatx()))

    def _check_tokens(self, tokens: np.ndarray) -> None:
        counts, size = Counter(tokens.tolist()), len(self._special) + len(tokens)
        reserved = [self.mask_token, self.oov_token if self.invert else None]
        wrong = [x for x in reserved if x is not None and self._keys_of([x])[0] in counts]
        if not counts:
            raise ValueError("Cannot set an empty vocabulary. Received: vocabulary=[]")
        if len(counts) < len(tokens):
            raise ValueError(
                "The passed vocabulary has at least one repeated term. Please uniquify your "
                f"dataset. The repeated terms are: {[x for x, n in counts.items() if n > 1]}"
            )
        if wrong:
            what = "mask" if wrong[0] == self.mask_token else "OOV"
            raise ValueError(
                f"Found reserved {what} token at unexpected location in `vocabulary`: leave out "
                f"all mask and OOV tokens, or begin with precisely these: {self._special}."
            )
        if self.max_tokens is not None and size > self.max_tokens:
            raise ValueError(
                "Attempted to set a vocabulary larger than the maximum vocab size. Received "
                f"vocabulary size is {size}; `max_tokens` is {self.max_tokens}."
            )

    def _set_tokens(self, tokens: np.ndarray) -> None:
        size, old, start = len(self._special) + len(tokens), self._size, len(self._special)
        if self.output_mode != "int" and not self.pad_to_max_tokens and old not in (None, size):
            raise RuntimeError(
                f"When using `output_mode={self.output_mode}` and `pad_to_max_tokens=False`, the "
                "vocabulary size cannot be changed after the layer is called. Old vocab size is "
                f"{old}, new vocab size is {size}"
            )
        self._token_array, self._size = tokens, size
        indices = np.arange(start, size, dtype=np.int64)
        keys, values = (indices, tokens) if self.invert else (tokens, indices)
        unknown: Any = start - 1 if self.num_oov_indices == 1 else -1
        source = KeyValueTensorInitializer(keys, values)
        self._table = StaticHashTable(source, self.oov_token if self.invert else unknown)

    def _set_weights(self, weights: np.ndarray) -> None:
        """Keep the weights of tokens: unknown ones have the mean, those that are padded none."""
        front = max(0, len(self._special) + len(self._token_array) - len(weights))
        back = self._depth - front - len(weights)
        mean = np.full(front, np.mean(weights) if len(weights) else 0, weights.dtype)
        self._token_weights = np.concatenate([mean, weights, np.zeros(back, weights.dtype)])

    # ------------------------------------------------------------ adapting
    def adapt(self, data: Any, batch_size: Any = None, steps: int | None = None) -> None:
        """Learn the vocabulary of an array, or of a Dataset's first batches, instead of the old."""
        self.reset_state()
        if isinstance(data, list | tuple | np.ndarray | jax.Array | Tensor):
            whole = known(data)
            data, steps = [np.expand_dims(whole, -1) if whole.ndim == 1 else whole], None
        for i, batch in enumerate(data):
            if i == steps:
                break
            self.update_state(batch)
        self.finalize_state()

    def reset_state(self) -> None:
        """Forget what was counted."""
        self._seen = SimpleNamespace(tokens=Counter(), documents=Counter(), total=0)

    @abstractmethod
    def _tokens_in(self, data: np.ndarray, /) -> np.ndarray:
        """Return the tokens of a batch."""

    def update_state(self, data: Any) -> None:
        """Count the tokens of a batch."""
        if self._is_fixed:
            raise ValueError(
                f"Cannot adapt layer '{getattr(self, 'name')}' after setting a static vocabulary "  # noqa: B009
                "via `vocabulary` argument or `set_vocabulary()` method."
            )
        rows = np.atleast_2d(self._typed(self._tokens_in(known(data)))).tolist()
        self._seen.tokens.update(token for row in rows for token in np.ravel(row).tolist())
        self._seen.documents.update(token for row in rows for token in {*np.ravel(row).tolist()})
        self._seen.total += len(rows)

    def finalize_state(self) -> None:
        """Make the vocabulary of what was counted."""
        seen = self._seen
        if self._is_fixed or not seen.tokens:
            return
        for token in (self.mask_token, self.oov_token):
            if token is not None:
                seen.tokens.pop(self._keys_of([token])[0], None)
        found = sorted(seen.tokens, key=lambda token: (seen.tokens[token], token), reverse=True)
        if self.max_tokens:
            found = found[: self.max_tokens - len(self._special)]
        self._set_tokens(self._keys_of(found))
        if self.output_mode == "tf_idf":
            counts = np.array([seen.documents[token] for token in found], float)
            self._set_weights(np.log(1 + seen.total / (1 + counts)).astype(floatx()))
        self.reset_state()

    # ------------------------------------------------------------ looking up
    def _typed(self, tokens: Value) -> Value:
        wanted = "int64" if self.vocabulary_dtype == "int64" or self.invert else "string"
        given = dtype_of(tokens)
        if given.is_string is not (wanted == "string"):
            raise UnimplementedError(message=f"Cast {given.name} to {wanted} is not supported")
        return tokens if given.is_string else tokens.astype(narrowed(np.int64))

    @property
    def _depth(self) -> Any:
        return self.max_tokens if self.pad_to_max_tokens else self._size

    def call(self, inputs: Any) -> Any:
        """Return the indices of tokens, or what `output_mode` says of each row of them."""
        if self._depth is None and self.output_mode != "int":
            raise RuntimeError(f"When using `output_mode={self.output_mode}`, {_NO_TOKENS}")
        if self._table is None:
            raise FailedPreconditionError(message=f"Table not initialized: {_NO_TOKENS}")
        return super().call(inputs)

    def _index(self, values: Array) -> Array:
        keys = self._typed(values)
        is_on_host = dtype_of(keys).is_string or self.invert
        return on_strings(self._find)(keys) if is_on_host else self._find(keys)

    def _find(self, keys: Array) -> Array:
        """Return the index of each token, or the token of each index."""
        found, index = to_array(self._table._look_up(keys)), self._special.index
        where: Any = np.where if is_text(keys) or is_text(found) else jnp.where
        is_masked = False
        if self.mask_token is not None:
            mask = self._keys_of([self.mask_token])[0]
            masked = mask if self.invert else 0 if self.output_mode == "int" else DROPPED
            is_masked = keys == (0 if self.invert else mask)
            found = where(is_masked, masked, found)
        if self.num_oov_indices > 1 and not self.invert:
            found = where(found == -1, self._buckets_of(keys) + index(self.oov_token), found)
        if not self.num_oov_indices and not self.invert:
            Assert(Tensor(jnp.asarray((found != -1).all())), [_MISSING, Tensor(keys)])
        return to_array(found)

    def _buckets_of(self, keys: Value) -> Value:
        if self.vocabulary_dtype == "int64" and self.oov_method != "farmhash":
            return keys % self.num_oov_indices
        salt: Any = self.salt and tuple(self.salt)
        take = functools.partial(hashes.strong, key=salt) if salt else hashes.fast
        words = [x if isinstance(x, bytes) else str(x).encode() for x in np.ravel(keys).tolist()]
        return np.reshape([take(word) % self.num_oov_indices for word in words], np.shape(keys))

    def _encode(self, found: Array) -> Array:
        made = super()._encode(found)
        if self.output_mode == "tf_idf":
            return made.astype(self._token_weights.dtype) * self._token_weights
        return made

    def compute_output_spec(self, inputs: Any) -> Any:
        """Return the symbolic result."""
        dtype = "int64" if self.output_mode == "int" else floatx()
        shape = self.compute_output_shape(inputs.shape)
        return keras().KerasTensor(shape, self.vocabulary_dtype if self.invert else dtype)

    # ------------------------------------------------------------ saving
    compute_dtype = variable_dtype = property(lambda self: self.vocabulary_dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        layer: Any = super()
        names = _SAVED if self.vocabulary_dtype == "string" else _SAVED[:-1]
        own = {name: getattr(self, name) for name in names}
        return {**layer.get_config(), **own, "sparse": False, "vocabulary_size": self._size}

    def save_own_variables(self, store: Any) -> None:
        """Save the weights of the tokens, if there are any."""
        if self._token_weights is not None:
            store["idf_weights"] = self._token_weights

    def load_own_variables(self, store: Any) -> None:
        """Load the weights of the tokens."""
        if self.output_mode == "tf_idf":
            self._token_weights = np.asarray(store["idf_weights"])

    def save_assets(self, dir_path: str) -> None:
        """Save the vocabulary, if it is not in the configuration."""
        if self.vocabulary is None:
            words = "\n".join(map(str, self.get_vocabulary()))
            (Path(dir_path) / "vocabulary.txt").write_text(words, "utf-8")

    def load_assets(self, dir_path: str) -> None:
        """Load the vocabulary."""
        if self.vocabulary is None:
            words = (Path(dir_path) / "vocabulary.txt").read_text("utf-8").split("\n")
            self._set_tokens(self._keys_of(words[len(self._special) :]))


@final
class IndexLookup(Vocabulary):
    """From tokens to indices, or back; see `keras.layers.StringLookup`."""

    def _tokens_in(self, data: np.ndarray, /) -> np.ndarray:
        return data


def known(data: Any) -> np.ndarray:
    """Return tokens as an array on the host."""
    return require_known(to_array(data), "What a layer of strings gets")


def _listed(values: Any) -> Any:
    """Return an array or tensor as a list."""
    is_array = isinstance(values, Tensor | jax.Array | np.ndarray)
    return np.asarray(values).tolist() if is_array else values
