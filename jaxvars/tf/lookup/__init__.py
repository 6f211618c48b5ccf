"""`tf.lookup`: tables from keys, strings or numbers, to values."""

from __future__ import annotations

from jaxvars.tf.listing import namespace
from jaxvars.tf.lookup import experimental as experimental
from jaxvars.tf.lookup.sources import KeyValueTensorInitializer as KeyValueTensorInitializer
from jaxvars.tf.lookup.sources import TextFileIndex as TextFileIndex
from jaxvars.tf.lookup.sources import TextFileInitializer as TextFileInitializer
from jaxvars.tf.lookup.tables import StaticHashTable as StaticHashTable
from jaxvars.tf.lookup.tables import StaticVocabularyTable as StaticVocabularyTable

__getattr__, __dir__ = namespace(__name__)
