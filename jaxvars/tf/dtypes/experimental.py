"""`tf.dtypes.experimental`: types of fewer than 16 bits."""

from __future__ import annotations

from jaxvars.tf.tensors.dtypes import DTYPES, EXPERIMENTAL

globals().update({name: DTYPES[name] for name in EXPERIMENTAL})
