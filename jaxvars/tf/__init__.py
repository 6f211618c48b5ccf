"""TensorFlow's names and semantics, over jaxvars: TensorFlow code runs by changing one import.

    import jaxvars.tf as tf

    v = tf.Variable([[1.0, 2.0]])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x - v))
        v.assign_sub(0.1 * tape.gradient(loss, v))
        return loss

It is explicit and thin. A `tf.Tensor` stands for a `jax.Array`, which `jnp.asarray` returns, and
`jnp`, optax and flax take it; a `tf.Variable` stands for a `jaxvars.Variable`. Most operations are
functions of arrays below a decorator (`registry/rows.py`), in a package for each of TensorFlow's
namespaces.

64-bit numbers are switched on in JAX when this package is imported, since TensorFlow programs
have them, which is said once; set the environment variable `JAX_ENABLE_X64=0` before to leave them
off: then int64 is int32, and float64 is refused where it is requested by name. What `jv` makes of
Python's numbers stays: `jv.Variable(1.0)` is float32. Where the environment does not say on what
Keras runs, it is JAX from here on: `KERAS_BACKEND`.

    tensors, variables        Tensor, Variable; types, shapes, what becomes a tensor
    registry                  the table of operations; arrays, math, nn, linalg, ...: its parts
    functions, autodiff       tf.function, GradientTape
    nest, errors              structures; exceptions
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jaxvars.display.strings import did_you_mean
from jaxvars.objects.interpreter import load
from jaxvars.tensors.dtypes import switch_wide_on as _switch_wide_on
from jaxvars.tf import autodiff as autodiff
from jaxvars.tf import autograph as autograph
from jaxvars.tf import bitwise as bitwise
from jaxvars.tf import errors as errors
from jaxvars.tf import keras as keras
from jaxvars.tf import linalg as linalg
from jaxvars.tf import math as math
from jaxvars.tf import nest as nest
from jaxvars.tf import nn as nn
from jaxvars.tf import ragged as ragged
from jaxvars.tf import random as random
from jaxvars.tf import signal as signal
from jaxvars.tf.arrays.constant import constant as constant
from jaxvars.tf.arrays.constant import convert_to_tensor as convert_to_tensor
from jaxvars.tf.arrays.constant import is_tensor as is_tensor
from jaxvars.tf.autodiff.tape import GradientTape as GradientTape
from jaxvars.tf.autodiff.tape import UnconnectedGradients as UnconnectedGradients
from jaxvars.tf.config.devices import DeviceSpec as DeviceSpec
from jaxvars.tf.config.devices import device as device
from jaxvars.tf.context.scope import executing_eagerly as executing_eagerly
from jaxvars.tf.context.scope import init_scope as init_scope
from jaxvars.tf.context.scope import name_scope as name_scope
from jaxvars.tf.control.branches import Assert as Assert
from jaxvars.tf.control.branches import case as case
from jaxvars.tf.control.branches import cond as cond
from jaxvars.tf.control.branches import control_dependencies as control_dependencies
from jaxvars.tf.control.branches import group as group
from jaxvars.tf.control.branches import no_op as no_op
from jaxvars.tf.control.branches import switch_case as switch_case
from jaxvars.tf.control.branches import while_loop as while_loop
from jaxvars.tf.control.callbacks import numpy_function as numpy_function
from jaxvars.tf.control.callbacks import py_function as py_function
from jaxvars.tf.control.printing import print as print
from jaxvars.tf.control.tensor_array import TensorArray as TensorArray
from jaxvars.tf.functions.custom_gradient import custom_gradient as custom_gradient
from jaxvars.tf.functions.custom_gradient import grad_pass_through as grad_pass_through
from jaxvars.tf.functions.custom_gradient import recompute_grad as recompute_grad
from jaxvars.tf.functions.custom_gradient import stop_gradient as stop_gradient
from jaxvars.tf.functions.decorator import function as function
from jaxvars.tf.functions.function import Function as Function
from jaxvars.tf.functions.gradients import AggregationMethod as AggregationMethod
from jaxvars.tf.functions.gradients import gradients as gradients
from jaxvars.tf.functions.maps import foldl as foldl
from jaxvars.tf.functions.maps import foldr as foldr
from jaxvars.tf.functions.maps import map_fn as map_fn
from jaxvars.tf.functions.maps import scan as scan
from jaxvars.tf.functions.maps import vectorized_map as vectorized_map
from jaxvars.tf.listing import HOMES, lister
from jaxvars.tf.math import operators as _operators  # noqa: F401  # pyright: ignore[reportUnusedImport] - the operators of tensors
from jaxvars.tf.random.initializers import constant_initializer as constant_initializer
from jaxvars.tf.random.initializers import ones_initializer as ones_initializer
from jaxvars.tf.random.initializers import random_normal_initializer as random_normal_initializer
from jaxvars.tf.random.initializers import random_uniform_initializer as random_uniform_initializer
from jaxvars.tf.random.initializers import zeros_initializer as zeros_initializer
from jaxvars.tf.registry.absent import reason
from jaxvars.tf.registry.rows import find
from jaxvars.tf.tensors.components import (
    register_tensor_conversion_function as register_tensor_conversion_function,
)
from jaxvars.tf.tensors.dtypes import DTYPES, EXPERIMENTAL
from jaxvars.tf.tensors.dtypes import DType as DType
from jaxvars.tf.tensors.dtypes import as_dtype as as_dtype
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor as RaggedTensor
from jaxvars.tf.tensors.shapes import TensorShape as TensorShape
from jaxvars.tf.tensors.slices import IndexedSlices as IndexedSlices
from jaxvars.tf.tensors.specs import TensorSpec as TensorSpec
from jaxvars.tf.tensors.tensor import Tensor as Tensor
from jaxvars.tf.variables.module import Module as Module
from jaxvars.tf.variables.options import VariableAggregation as VariableAggregation
from jaxvars.tf.variables.options import VariableSynchronization as VariableSynchronization
from jaxvars.tf.variables.options import variable_creator_scope as variable_creator_scope
from jaxvars.tf.variables.variable import Variable as Variable

if "JAX_ENABLE_X64" not in os.environ:
    _switch_wide_on("jaxvars.tf")
os.environ.setdefault("KERAS_BACKEND", "jax")  # for `import keras`, which would need TensorFlow

LAZY = {
    "audio", "compat", "config", "data", "debugging", "distribute", "dtypes", "experimental",
    "image", "io", "lookup", "profiler", "saved_model", "sets", "sparse",
    "strings", "summary", "test", "train", "types", "version",
}  # fmt: skip
"""Namespaces that are imported when they are first requested."""

ELSEWHERE = {
    "tuple": "jaxvars.tf.control.environment:tuple_",
    "__version__": "jaxvars.tf.version:VERSION",
    **{
        name: f"jaxvars.tf.{module}"
        for module, names in {
            "control.environment": "get_current_name_scope get_logger is_symbolic_tensor timestamp",
            "data.generators.optional": "OptionalSpec",
            "data.spec_of": "TensorArraySpec type_spec_from_value",
            "debugging": "assert_equal assert_greater assert_less assert_rank",
            "io.tensors": "make_ndarray make_tensor_proto",
            "sparse": "SparseTensor",
            "strings": "as_string",
            "tensors.ragged_spec": "RaggedTensorSpec",
            "tensors.specs": "IndexedSlicesSpec NoneTensorSpec SparseTensorSpec TypeSpec",
        }.items()
        for name in names.split()
    },
}
"""Names at the top level that are in a namespace, too."""

_KERAS = {"initializers", "losses", "metrics", "optimizers"}
"""Namespaces of `tf.keras` that are at the top level, too."""

newaxis = None
globals().update({k: dtype for k, dtype in DTYPES.items() if k not in EXPERIMENTAL})
globals().update(half=DTYPES["float16"], double=DTYPES["float64"])  # and tf.float32, ...


__dir__ = lister(
    __name__, {*LAZY, *ELSEWHERE, *_KERAS, *DTYPES, "double", "half"} - set(EXPERIMENTAL)
)


if TYPE_CHECKING:
    from jaxvars.tf.operations import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        if name in _KERAS:
            return getattr(keras, name)
        if name in LAZY:
            return load(f"{__name__}.{name}")
        if name in ELSEWHERE:
            module, _, other = ELSEWHERE[name].partition(":")
            return getattr(load(module), other or name)
        found = find(name)
        if found is not None:
            globals()[name] = found
            return found
        if why := reason(name):
            raise AttributeError(f"jaxvars.tf has no tf.{name}: {why}")
        hint = did_you_mean(name, [*HOMES, *LAZY, *globals()])
        raise AttributeError(f"jaxvars.tf has no attribute {name!r}.{hint}")
