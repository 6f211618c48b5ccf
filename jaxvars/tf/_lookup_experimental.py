"""`tf.lookup.experimental`: tables that change."""

from __future__ import annotations

from jaxvars.tf._lookup_tables import DenseHashTable as DenseHashTable
from jaxvars.tf._lookup_tables import MutableHashTable as MutableHashTable

__all__ = ["DenseHashTable", "MutableHashTable"]
