"""`tf.experimental`: extension types, NumPy's names, types of few bits, DLPack."""

from __future__ import annotations

import types

from jaxvars.tf.data.generators.optional import Optional as Optional
from jaxvars.tf.experimental import dlpack as dlpack
from jaxvars.tf.experimental import numpy as numpy
from jaxvars.tf.listing import namespace
from jaxvars.tf.ragged.shapes import DynamicRaggedShape as DynamicRaggedShape
from jaxvars.tf.tensors.dtypes import DTYPES, EXPERIMENTAL
from jaxvars.tf.variables.extension_type import ExtensionType as ExtensionType
from jaxvars.tf.variables.extension_type import ExtensionTypeSpec as ExtensionTypeSpec
from jaxvars.tf.variables.extension_type import as_dict as _as_dict

extension_type = types.SimpleNamespace(as_dict=_as_dict)
globals().update({name: DTYPES[name] for name in EXPERIMENTAL})

__getattr__, __dir__ = namespace(__name__, EXPERIMENTAL)
