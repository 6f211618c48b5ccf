"""`TextVectorization` of `tf.keras.layers`: Keras's own needs TensorFlow."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any, final

import numpy as np

from jaxvars.tf.keras.adapter.keras import keras
from jaxvars.tf.keras.adapter.semantics import into_user
from jaxvars.tf.keras.hash_layers import check_choice
from jaxvars.tf.keras.lookup_layers import Vocabulary, known
from jaxvars.tf.strings.conversion import each
from jaxvars.tf.tensors.convert import string_array, to_array
from jaxvars.tf.tensors.handles import on_strings
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.tensor import Tensor

_STRIP = ("lower_and_strip_punctuation", "strip_punctuation")
_LOWER = ("lower_and_strip_punctuation", "lower")
_PUNCTUATION = string.punctuation.encode()
_SPLITS: dict[Any, Callable[[bytes], list[bytes]]] = {
    "whitespace": bytes.split,
    "character": lambda line: [one.encode() for one in line.decode("utf-8", "replace")],
}


@final
class TextVectorization(Vocabulary):
    """From strings to the indices of their words; see `keras.layers.TextVectorization`.

    Differs from TensorFlow: a `split` of the user's is called with one string at a time.
    """

    def __init__(
        self, max_tokens: Any = None, standardize: Any = "lower_and_strip_punctuation",
        split: Any = "whitespace", ngrams: Any = None, output_mode: str = "int",
        output_sequence_length: Any = None, *, ragged: bool = False, sparse: bool = False,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        self._standardize, self._split, self._ngrams = standardize, split, ngrams
        self._length = output_sequence_length
        if not callable(standardize):
            check_choice(standardize, (*_LOWER, _STRIP[1], None), "standardize", self)
        if not callable(split):
            check_choice(split, (*_SPLITS, None), "split", self)
        if output_mode != "int" and output_sequence_length is not None:
            raise ValueError(
                "`output_sequence_length` must not be set if `output_mode` is not 'int'."
            )
        if ragged and (output_mode != "int" or split not in _SPLITS):
            raise ValueError("`ragged=True` needs `output_mode='int'`, and a `split` by its name.")
        self._ragged = ragged
        super().__init__(
            max_tokens, mask_token="", output_mode=output_mode, sparse=sparse, **kwargs
        )

    def call(self, inputs: Any) -> Any:
        """Return the indices of the words of each string, padded with zeros to one length."""
        return super().call(on_strings(self._rows_of)(to_array(inputs)))

    def _rows_of(self, strings: np.ndarray) -> Any:
        words = self._tokens_in(known(strings))
        if self._length is not None:
            lengths = [(0, 0)] * (words.ndim - 1) + [(0, max(0, self._length - words.shape[-1]))]
            words = np.pad(words, lengths, constant_values=b"")[..., : self._length]
        if self._ragged and words.ndim > 1:
            return RaggedTensor.from_tensor(Tensor(words), padding=b"")
        return words

    def _tokens_in(self, strings: np.ndarray, /) -> np.ndarray:
        """Return the words of each string as a row, padded with empty ones."""
        if callable(self._standardize):
            strings = _call(self._standardize, strings)
        if self._standardize in _LOWER:
            strings = each(bytes.lower, strings)
        if self._standardize in _STRIP:
            strings = each(lambda line: line.translate(None, _PUNCTUATION), strings)
        if self._split is None:
            return self._join(strings.tolist()) if self._ngrams else strings
        if strings.ndim > 1:
            if strings.shape[-1] != 1:
                raise ValueError(
                    "When using `TextVectorization` to tokenize strings, the input rank must be 1 "
                    "or the last shape dimension must be 1. Received: "
                    f"inputs.shape={strings.shape} with rank={strings.ndim}"
                )
            strings = strings[..., 0]
        cut = _SPLITS.get(self._split, lambda line: _call(self._split, np.array(line, object)))
        return self._join([[*cut(line)] for line in strings.ravel()], strings.shape)

    def _join(self, rows: list[Any], shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Return rows of words, or of what `ngrams` joins of them, as one array."""
        if shape is None:  # of an array
            shape = np.shape(rows)[:-1]
            rows = np.reshape(np.array(rows, object), (-1, np.shape(rows)[-1])).tolist()
        if self._ngrams:
            given = self._ngrams
            widths = range(1, given + 1) if isinstance(given, int) else given
            rows = [
                [b" ".join(row[i : i + n]) for n in widths for i in range(len(row) - n + 1)]
                for row in rows
            ]
        made = np.full((len(rows), max(map(len, rows), default=0)), b"", object)
        for i, row in enumerate(rows):
            made[i, : len(row)] = row
        return string_array(made.reshape(*shape, made.shape[-1]))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return the shape of the result."""
        if self.output_mode == "int":
            return (input_shape[0], self._length)
        return super().compute_output_shape((input_shape[0], None))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        config = super().get_config()
        for key in ("invert", "num_oov_indices", "oov_token", "mask_token", "oov_method", "salt"):
            del config[key]
        own = {"standardize": self._standardize, "split": self._split, "ngrams": self._ngrams}
        length = {"output_sequence_length": self._length, "ragged": self._ragged}
        return {**config, **own, **length, "vocabulary_size": self.vocabulary_size()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Return the layer with these arguments."""
        given = dict(config)
        for key in ("standardize", "split"):
            if isinstance(given.get(key), dict):
                given[key] = keras().saving.deserialize_keras_object(given[key])
        return cls(**given)


def _call(fn: Callable[..., Any], strings: np.ndarray) -> np.ndarray:
    return known(to_array(into_user(lambda: fn(Tensor(strings)), (), {})))
