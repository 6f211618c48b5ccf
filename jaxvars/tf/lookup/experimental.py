"""`tf.lookup.experimental`: a table that changes."""

from __future__ import annotations

from jaxvars.tf.listing import namespace
from jaxvars.tf.lookup.mutable import MutableHashTable as MutableHashTable

__getattr__, __dir__ = namespace(__name__)
