"""`tf.compat.v1`: what programs of TensorFlow 2 still take from TensorFlow 1.

Differs from TensorFlow: what builds graphs and runs sessions is not here, nor are functions of
TensorFlow 1 whose arguments differ: `tf.reduce_sum` is there, `tf.compat.v1.reduce_sum` is not.
"""

from __future__ import annotations

import contextlib
import contextvars
import importlib
import logging as _logging
import sys
import types
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from jaxvars.initializers import GlorotUniform
from jaxvars.tf.arrays.creation import cast
from jaxvars.tf.compat import dimension_at_index as dimension_at_index
from jaxvars.tf.compat import dimension_value as dimension_value
from jaxvars.tf.context.scope import executing_eagerly as executing_eagerly
from jaxvars.tf.context.scope import name_scope as _name_scope
from jaxvars.tf.control.environment import get_logger
from jaxvars.tf.io import gfile as _gfile
from jaxvars.tf.listing import lister
from jaxvars.tf.random import set_seed as _set_seed
from jaxvars.tf.registry.absent import reason
from jaxvars.tf.registry.rows import find
from jaxvars.tf.tensors.convert import to_array, to_operand_of
from jaxvars.tf.tensors.dtypes import as_dtype, bool_
from jaxvars.tf.tensors.shapes import Dimension as Dimension
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tf.tensors.static import ints, refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable

_SCOPE: contextvars.ContextVar[str] = contextvars.ContextVar("variable scope", default="")
AUTO_REUSE = object()
"""What `variable_scope(reuse=...)` takes; of no effect, as in TensorFlow 2."""


# ---------------------------------------------------------------- of no effect
def _done(*args: Any, **kwargs: Any) -> None:
    """Do nothing: it is so from the start, as in TensorFlow 2."""


enable_eager_execution = enable_v2_behavior = enable_v2_tensorshape = _done
enable_resource_variables = enable_tensor_equality = enable_control_flow_v2 = _done
global_variables_initializer = local_variables_initializer = variables_initializer = _done
initialize_all_variables = tables_initializer = _done


def executing_eagerly_outside_functions() -> bool:
    """Return True."""
    return True


def set_random_seed(seed: Any) -> None:
    """Set the seed: `tf.random.set_seed`."""
    _set_seed(seed)


# ---------------------------------------------------------------- variables
def assign(ref: Any, value: Any, *_: Any, **__: Any) -> Any:
    """Assign a variable, and return it: `ref.assign(value)`."""
    return ref.assign(value)


def assign_add(ref: Any, value: Any, *_: Any, **__: Any) -> Any:
    """Add to a variable, and return it: `ref.assign_add(value)`."""
    return ref.assign_add(value)


def assign_sub(ref: Any, value: Any, *_: Any, **__: Any) -> Any:
    """Subtract from a variable, and return it: `ref.assign_sub(value)`."""
    return ref.assign_sub(value)


def get_variable(
    name: str, shape: Any = None, dtype: Any = None, initializer: Any = None,
    regularizer: Any = None, trainable: bool | None = None, collections: Any = None,
    caching_device: Any = None, **options: Any,
) -> Variable:  # fmt: skip
    """Make a variable, a new one in each call.

    Args:
        name: what it is called, in the `variable_scope` around.
        shape: of its value, unless the initializer is a value.
        dtype: of its value; `tf.float32` when None.
        initializer: a value, or a function of a shape and a dtype; when None, Glorot's uniform
            distribution for floats, and zeros for others.
        regularizer: must be None: it is in the loss, `tf.nn.l2_loss(v)`, or in `tf.keras`.
        trainable: whether tapes watch it and optimizers update it.
        collections: of no effect.
        caching_device: of no effect.
        **options: `constraint`, `synchronization` and `aggregation` of `tf.Variable`.

    Raises:
        ValueError: when a shape is missing, or given with a value.
        NotImplementedError: for options that would have an effect, and are not here.
    """
    _refuse("get_variable", {"regularizer": regularizer, **options}, _OF_VARIABLES)
    kind = None if dtype is None else as_dtype(dtype)
    if initializer is not None and not callable(initializer):
        if shape is not None:
            raise ValueError("If initializer is a constant, do not specify shape.")
        initial: Any = initializer
    else:
        if shape is None and initializer is None:
            raise ValueError(
                f"Variable {name} did not get an initializer, so its `shape` argument must be "
                "specified."
            )
        initial = _call_initializer(initializer, shape, as_dtype(kind or "float32"))
    kept = {key: options[key] for key in _OF_VARIABLES if key in options}
    with _name_scope(f"{_SCOPE.get()}/" if _SCOPE.get() else ""):
        return Variable(initial, name=name, dtype=kind, trainable=trainable, **kept)


_OF_VARIABLES = ("constraint", "synchronization", "aggregation")
_NO_EFFECT = ("use_resource", "validate_shape", "reuse", "auxiliary_name_scope")


def _refuse(where: str, options: dict[str, Any], known: Sequence[str] = ()) -> None:
    """Raise NotImplementedError if there are options that would be lost."""
    lost = [
        key
        for key, value in options.items()
        if value is not None and key not in (*known, *_NO_EFFECT)
    ]
    if lost:
        raise NotImplementedError(
            f"tf.compat.v1.{where} takes no {lost[0]} here: give get_variable its initializer and "
            "dtype, and the loss what regularizes."
        )


def _call_initializer(initializer: Any, shape: Any, kind: Any) -> Any:
    if initializer is None:
        if not (kind.is_floating or kind.is_complex):
            return np.zeros(ints(shape, "shape"), kind.dtype)
        return GlorotUniform()(ints(shape, "shape"), kind.dtype)
    return initializer() if shape is None else initializer(shape, dtype=kind)


@contextlib.contextmanager
def variable_scope(
    name_or_scope: Any, default_name: str | None = None, values: Any = None, **options: Any
) -> Generator[types.SimpleNamespace]:
    """Let the names of `get_variable`, and of other variables, begin with `name/`.

    Args:
        name_or_scope: a name, or what another `variable_scope` gave.
        default_name: the name when that is None.
        values: of no effect.
        **options: `reuse`, which is of no effect, as in TensorFlow 2.

    Raises:
        NotImplementedError: for options that would have an effect, and are not here.

    Differs from TensorFlow: of what it gives only `name` is there.
    """
    _refuse("variable_scope", options)
    given = default_name if name_or_scope is None else name_or_scope
    is_scope = isinstance(given, types.SimpleNamespace)
    whole = given.name if is_scope else "/".join(filter(None, (_SCOPE.get(), given)))
    token = _SCOPE.set(whole)
    try:
        with _name_scope(f"{whole}/" if whole else ""):
            yield types.SimpleNamespace(name=whole)
    finally:
        _SCOPE.reset(token)


def name_scope(name: str | None, default_name: str | None = None, values: Any = None) -> Any:
    """Return `tf.name_scope` of a name, or of another one when it is None."""
    return _name_scope(name or default_name or "")


# ---------------------------------------------------------------- tensors
def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return a tensor: what it is where operations run at once."""
    return Tensor(to_array(input))


def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: Any = None) -> Any:
    """Return a sparse tensor as it is, and a tensor of anything else."""
    if isinstance(value, SparseTensor):
        return value
    return Tensor(to_array(value, None if dtype is None else as_dtype(dtype)))


def to_float(x: Any, name: Any = None) -> Any:
    """Convert to float32: `tf.cast(x, tf.float32)`."""
    return cast(x, "float32")


def to_double(x: Any, name: Any = None) -> Any:
    """Convert to float64: `tf.cast(x, tf.float64)`."""
    return cast(x, "float64")


def to_int32(x: Any, name: Any = None) -> Any:
    """Convert to int32: `tf.cast(x, tf.int32)`."""
    return cast(x, "int32")


def to_int64(x: Any, name: Any = None) -> Any:
    """Convert to int64: `tf.cast(x, tf.int64)`."""
    return cast(x, "int64")


def where(condition: Any, x: Any = None, y: Any = None, name: Any = None) -> Any:
    """Return the elements of x where a condition holds, and those of y elsewhere, as `tf.where`.

    A condition of one dimension chooses whole rows.
    """
    if x is None:
        return find("where")(condition, x, y)
    given = Tensor(to_operand_of(bool_, condition, "Select"))
    if given.shape.rank:
        shape = Tensor(to_array(x)).shape
        if given.shape.rank == 1 and given.shape[0] == shape[0]:
            given = find("reshape")(given, [-1, *[1] * (len(shape) - 1)])
        elif given.shape != shape:
            raise refused(f"a condition of shape {given.shape} chooses nothing of {shape}")
    return find("where")(given, x, y)


def make_one_shot_iterator(dataset: Any) -> Any:
    """Return an iterator of a dataset, with `get_next()`."""
    return iter(dataset)


data = types.SimpleNamespace(make_one_shot_iterator=make_one_shot_iterator)
random = types.SimpleNamespace(set_random_seed=set_random_seed)


# ---------------------------------------------------------------- files, logs, flags
gfile = types.SimpleNamespace(
    Copy=_gfile.copy, DeleteRecursively=_gfile.rmtree, Exists=_gfile.exists,
    FastGFile=_gfile.GFile, GFile=_gfile.GFile, Glob=_gfile.glob, IsDirectory=_gfile.isdir,
    ListDirectory=_gfile.listdir, MakeDirs=_gfile.makedirs, MkDir=_gfile.mkdir,
    Open=_gfile.GFile, Remove=_gfile.remove, Rename=_gfile.rename, Stat=_gfile.stat,
    Walk=_gfile.walk,
)  # fmt: skip
_log = get_logger()
logging = types.SimpleNamespace(
    DEBUG=_logging.DEBUG, INFO=_logging.INFO, WARN=_logging.WARNING, ERROR=_logging.ERROR,
    FATAL=_logging.FATAL, debug=_log.debug, info=_log.info, warn=_log.warning,
    warning=_log.warning, error=_log.error, fatal=_log.critical, log=_log.log,
    set_verbosity=_log.setLevel, get_verbosity=_log.getEffectiveLevel,
)  # fmt: skip
_PACKAGES = {"flags": "absl.flags", "app": "absl.app"}


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(_PACKAGES[name])
    why = reason(name)
    if not why and hasattr(sys.modules["jaxvars.tf"], name):
        why = f"use tf.{name}."
    raise AttributeError(
        f"jaxvars.tf has no tf.compat.v1.{name}: {why or 'TensorFlow 1 is not here.'}"
    )


__dir__ = lister(__name__, _PACKAGES)
