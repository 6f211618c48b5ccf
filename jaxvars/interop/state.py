"""State as nested dicts, NumPy arrays and bytes, and back.

Rules this file keeps:
- what comes back is checked against the variables, all of it: one error lists every difference;
- a value keeps its dtype: nothing is cast, but for a key of `jax.random`, which travels as its
  words, and for what a NumPy file has lost (bfloat16 becomes raw bytes there);
- bytes are data: reading them runs nothing, and whatever is wrong with them is one StateError.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import jax
import numpy as np

from jaxvars.core.state import State
from jaxvars.errors import JaxvarsError, StateError
from jaxvars.tensors.dtypes import is_key, is_string, string
from jaxvars.tensors.tensor import to_tensor
from jaxvars.typing import Array

Nested: TypeAlias = dict[str, Any]

_TEXT, _SHAPE = "__text__", "shape"


def state_of(source: Any) -> State:
    """Return a State as it is, or of an object; StateError if paths do not tell apart."""
    state = source if isinstance(source, State) else State.of(source, copy=False)
    if untold := state._layout.untold:
        raise StateError(
            f"The paths of this State do not tell apart {sorted(set(untold))}: values would go to "
            "the wrong variables elsewhere. Take the State with the model, "
            "jv.State.of(model=model, optimizer=optimizer), and have lists, or dicts with strings "
            "as keys, in place of sets."
        )
    return state


def to_dict(source: Any) -> Nested:
    """Return the values of variables as dicts in dicts, by path.

    Args:
        source: a State, or anything with variables in it.

    Returns:
        `{"layers": {"0": {"w": array}}}` for a variable at `layers/0/w`.

    Raises:
        StateError: when there are no variables, or one path goes on below another's value.

    >>> import jaxvars as jv
    >>> to_dict({"a": {"w": jv.Variable(1.0)}, "b": jv.Variable(2)})
    {'a': {'w': Array(1., dtype=float32)}, 'b': Array(2, dtype=int32)}
    """
    return _nest(state_of(source))


def from_dict(target: Any, values: Mapping[str, Any]) -> State:
    """Return a State of a target's variables with values from a dict.

    Changes nothing: `commit` the State.

    Args:
        target: a State, or anything with variables in it.
        values: dicts in dicts, or one dict by path, or a mixture; with a value for each
            variable, and no others.

    Raises:
        StateError: listing all that is missing, unknown, or of another shape or dtype.

    >>> import jaxvars as jv
    >>> w = jv.Variable([1.0, 2.0], name="w")
    >>> from_dict({"w": w}, {"w": [3.0, 4.0]}).commit()
    >>> w.numpy()
    array([3., 4.], dtype=float32)
    """
    state = state_of(target)
    if not isinstance(values, Mapping):
        raise StateError(f"The values of a State are a dict by path, not {type(values).__name__}.")
    given = dict(_flatten(values, ""))
    problems = [f"{path}: no value is given" for path in state if path not in given]
    problems += [f"{path}: there is no such variable" for path in given if path not in state]
    fitted: dict[str, Array] = {}
    for path in set(given) & set(state):
        try:
            fitted[path] = _fit(given[path], state[path])
        except (JaxvarsError, TypeError, ValueError) as error:
            problems.append(f"{path}: {error}")
    if problems:
        raise StateError("The values do not fit the variables:\n  " + "\n  ".join(sorted(problems)))
    return state.replace(fitted)


def to_numpy(source: Any) -> dict[str, np.ndarray]:
    """Return the values of variables as NumPy arrays, in one dict by path.

    Args:
        source: a State, or anything with variables in it.

    Returns:
        Arrays that share no memory with the variables, as `np.savez(file, **arrays)` takes
        them. A key of `jax.random` is given as its words.

    >>> import jaxvars as jv
    >>> to_numpy({"a": {"w": jv.Variable([1.0, 2.0])}})
    {'a/w': array([1., 2.], dtype=float32)}
    """
    return {path: _to_array(value) for path, value in state_of(source).items()}


def from_numpy(target: Any, arrays: Mapping[str, Any]) -> State:
    """Return a State of a target's variables with values from NumPy arrays.

    Changes nothing: `commit` the State.

    Args:
        target: a State, or anything with variables in it.
        arrays: by path, as `to_numpy` or `np.load` of an npz file give them; or nested.

    Raises:
        StateError: listing all that is missing, unknown, or of another shape or dtype.

    >>> import jaxvars as jv
    >>> w = jv.Variable([1.0, 2.0], name="w")
    >>> from_numpy({"w": w}, {"w": np.zeros(2, np.float32)})["w"]
    Array([0., 0.], dtype=float32)
    """
    return from_dict(target, arrays)


def to_bytes(source: Any) -> bytes:
    """Return the values of variables as bytes, in the format of `flax.serialization`.

    Args:
        source: a State, or anything with variables in it.

    Returns:
        A msgpack of dicts in dicts with arrays, which flax reads with `msgpack_restore`.

    >>> import jaxvars as jv
    >>> w = jv.Variable([1.0, 2.0], name="w")
    >>> data = to_bytes({"w": w})
    >>> from_bytes({"w": w}, data)["w"]
    Array([1., 2.], dtype=float32)
    """
    from flax import serialization

    register()
    return serialization.msgpack_serialize(_to_state_dict(state_of(source)), in_place=True)


def from_bytes(target: Any, data: bytes) -> State:
    """Return a State of a target's variables with values from bytes.

    Changes nothing: `commit` the State. Reading runs nothing: the bytes may come from anywhere.

    Args:
        target: a State, or anything with variables in it.
        data: what `to_bytes` gave, or flax's `to_bytes` of dicts in dicts with the same paths.

    Raises:
        StateError: when they are not such bytes; or listing all that is missing, unknown, or of
            another shape or dtype.

    >>> import jaxvars as jv
    >>> one, other = jv.Variable(1.0, name="w"), jv.Variable(2.0, name="w")
    >>> from_bytes(other, to_bytes(one)).commit()
    >>> other
    <Variable 'w' float32[] 1.>
    """
    from flax import serialization

    register()
    state = state_of(target)
    if not isinstance(data, bytes | bytearray | memoryview):
        raise StateError(f"from_bytes takes bytes, not {type(data).__name__}.")
    try:
        values: Any = serialization.msgpack_restore(bytes(data))
    except Exception as error:  # whatever msgpack, NumPy and flax make of bad data
        raise StateError(
            f"These {len(data)} bytes are not a State: {type(error).__name__}: {error}. They are "
            "cut off, damaged, or were not written by interop.to_bytes or flax.serialization."
        ) from error
    return from_dict(state, values)


def register() -> None:
    """Tell `flax.serialization` how a State is written and read, once."""
    from flax import serialization

    if not serialization.is_serializable(State):
        serialization.register_serialization_state(State, _to_state_dict, from_dict)


# ---------------------------------------------------------------- paths
def _nest(values: Mapping[str, Any]) -> Nested:
    nested: Nested = {}
    for path, value in values.items():
        *outer, last = path.split("/")
        holder: Any = nested
        for name in outer:
            holder = holder.setdefault(name, {}) if isinstance(holder, dict) else None
        if not isinstance(holder, dict) or last in holder:
            raise StateError(
                f"{path!r} does not go into dicts in dicts: another variable's path is a part of "
                "it. Take State.of(name=...) of each, or interop.to_numpy, which has one dict."
            )
        holder[last] = value
    return nested


def _flatten(values: Mapping[str, Any], start: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        path = f"{start}{name}"
        if isinstance(value, Mapping) and _TEXT not in value:
            yield from _flatten(value, f"{path}/")
        else:
            yield path, value


# ---------------------------------------------------------------- values
def _to_state_dict(state: State) -> Nested:
    return _nest({path: _pack(value) for path, value in state.items()})


def _pack(value: Array) -> Any:
    array = _to_array(value)
    if is_string(value.dtype):
        return {_TEXT: [str(x) for x in array.ravel()], _SHAPE: list(array.shape)}
    return array


def _to_array(value: Array) -> np.ndarray:
    if is_key(value):
        return np.array(jax.random.key_data(value))
    return np.array(value)


def _fit(value: Any, like: Array) -> Array:
    if isinstance(value, Mapping):
        value = np.array(value[_TEXT], string).reshape(value.get(_SHAPE, ()))
    if is_key(like) and not is_key(value):
        words = to_tensor(value)
        value = jax.random.wrap_key_data(words, impl=str(jax.random.key_impl(like)))
    raw = isinstance(value, np.ndarray) and value.dtype.kind == "V" and value.dtype.names is None
    if raw and value.dtype != like.dtype and value.dtype.itemsize == like.dtype.itemsize:
        value = value.view(like.dtype)
    if not hasattr(value, "dtype"):
        value = to_tensor(value, like.dtype)
    if value.shape != like.shape or value.dtype != like.dtype:
        raise StateError(f"the variable is {_describe(like)}, the value {_describe(value)}")
    return to_tensor(value)


def _describe(value: Array) -> str:
    dtype = "string" if is_string(value.dtype) else value.dtype
    return f"{dtype}{list(value.shape)}"
