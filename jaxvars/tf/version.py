"""`tf.version`: the version of TensorFlow whose names and semantics these are."""

from __future__ import annotations

from jaxvars.tf.listing import lister

VERSION = "2.21.0"
GIT_VERSION = "jaxvars"
COMPILER_VERSION = "XLA"


__dir__ = lister(__name__)
