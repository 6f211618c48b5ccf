"""`tf.lookup.experimental`: tables that change."""

from __future__ import annotations

from jaxvars.tf.lookup.mutable import DenseHashTable as DenseHashTable
from jaxvars.tf.lookup.mutable import MutableHashTable as MutableHashTable

__all__ = ["DenseHashTable", "MutableHashTable"]
