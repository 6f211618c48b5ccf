"""`tf.lookup`: tables from keys, strings or numbers, to values."""

from __future__ import annotations

from typing import Any

from jaxvars.display.text import did_you_mean
from jaxvars.tf.listing import lister
from jaxvars.tf.lookup import experimental as experimental
from jaxvars.tf.lookup.sources import KeyValueTensorInitializer as KeyValueTensorInitializer
from jaxvars.tf.lookup.sources import TextFileIndex as TextFileIndex
from jaxvars.tf.lookup.sources import TextFileInitializer as TextFileInitializer
from jaxvars.tf.lookup.tables import StaticHashTable as StaticHashTable
from jaxvars.tf.lookup.tables import StaticVocabularyTable as StaticVocabularyTable

__all__ = [
    "KeyValueTensorInitializer", "StaticHashTable", "StaticVocabularyTable", "TextFileIndex",
    "TextFileInitializer", "experimental",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    hint = did_you_mean(name, __all__)
    raise AttributeError(f"tf.lookup has no attribute {name!r}.{hint}")


__dir__ = lister(__name__)
