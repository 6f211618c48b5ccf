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

__all__ = ["dlpack", "extension_type", "numpy"]

extension_type = types.SimpleNamespace(as_dict=_as_dict)
globals().update({name: DTYPES[name] for name in EXPERIMENTAL})

_DISPATCH = "operations are not dispatched on classes. Give the class methods, or Python operators"
_RAGGED = "tf.RaggedTensor is here, with its row_splits, row_lengths() and bounding_shape()"
_ABSENT = {
    **dict.fromkeys(
        ["dispatch_for_api", "dispatch_for_unary_elementwise_apis",
         "dispatch_for_binary_elementwise_apis", "dispatch_for_binary_elementwise_assert_apis",
         "unregister_dispatch_for"], _DISPATCH,
    ),
    **dict.fromkeys(["StructuredTensor", "RowPartition"], _RAGGED),
    **dict.fromkeys(
        ["BatchableExtensionType", "ExtensionTypeBatchEncoder"],
        "tf.map_fn and tf.data take structures. Use ExtensionType, and map over its fields",
    ),
    "register_filesystem_plugin": "files are opened by Python and orbax: see fsspec and etils",
    "dtensor": "tensors on meshes are those of JAX: jax.make_mesh and jax.sharding",
    "tensorrt": "everything is compiled by XLA",
    "enable_strict_mode": "it is strict already",
    **dict.fromkeys(
        ["async_scope", "async_clear_error", "function_executor_type"],
        "operations always run asynchronously, and an error is raised where a value is read",
    ),
}  # fmt: skip


__getattr__, __dir__ = namespace(__name__, _ABSENT, EXPERIMENTAL)
