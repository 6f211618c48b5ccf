"""State as nested dicts, NumPy arrays and bytes, and back.

Rules this file keeps:
- what comes back is checked against the variables, all of it: one error lists every difference;
- a value keeps its dtype, of 64 bits also where JAX's are off: nothing is cast that was not asked
  for. A key of `jax.random` travels as its words, and what NumPy's files make raw bytes (bfloat16)
  is what it was again;
- bytes are data: reading them runs nothing, and whatever is wrong with them is one StateError.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.checkpoint.checksum import key_impl
from jaxvars.errors import JaxvarsError, StateError
from jaxvars.interop.rules import Rules, rename
from jaxvars.modules.state import State, require_values
from jaxvars.tensors.array_like import whole
from jaxvars.tensors.dtypes import are_floats, is_key, is_string, keeping, string
from jaxvars.tensors.foreign_arrays import in_numpy
from jaxvars.tensors.tensor import to_tensor
from jaxvars.typing import Array, Value

Nested: TypeAlias = dict[str, Any]

_TEXT, _SHAPE = "__text__", "shape"
_RULES = (
    "Rules say what such a name is here, as for a layer of PyTorch and one of flax: "
    r'from_dict(model, values, [(r"net\.fc", "fc", "Linear"), ...]).'
)


def state_of(source: Any) -> State:
    """Return a State as it is, or of an object; StateError if paths do not tell apart."""
    state = source if isinstance(source, State) else State.of(source, copy=False)
    require_values(state)
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


def from_dict(
    target: Any,
    values: Mapping[str, Any],
    rules: Rules = (),
    *,
    partial: bool = False,
    cast: bool = False,
) -> State:
    r"""Return a State of a target's variables with values from a dict.

    Changes nothing: `commit` the State.

    Args:
        target: a State, or anything with variables in it.
        values: dicts in dicts, or one dict by path, or a mixture; with a value for each
            variable, and no others. Flax's dicts are, and a `state_dict` of PyTorch.
        rules: for names that are not paths, `(pattern, replacement)` or `(pattern, replacement,
            transform)`: a regular expression for the whole name, the path, with `\1` for a group,
            and a function of the array. The first that matches counts; None as the replacement
            drops the name. "Linear", "Conv", "BatchNorm", "LayerNorm" or "Embedding" as the
            transform is for all arrays of such a layer of PyTorch, which become what they are in
            flax: `kernel`, `bias`, `scale`, `mean`, `var`, `embedding`.
        partial: let variables without a value keep theirs, and rules match nothing.
        cast: convert floats to a variable's dtype of floats.

    Raises:
        StateError: listing all that is missing, unknown, given twice, or of another shape or dtype,
            and rules that match nothing.

    >>> import jaxvars as jv
    >>> w = jv.Variable([1.0, 2.0], name="w")
    >>> from_dict({"w": w}, {"w": [3.0, 4.0]}).commit()
    >>> w.numpy()
    array([3., 4.], dtype=float32)
    >>> torch = {"net.0.weight": np.ones((3, 2), np.float32), "net.0.bias": np.zeros(3, np.float32)}
    >>> layer = {"0": {"kernel": jv.Variable(np.zeros((2, 3))), "bias": jv.Variable(np.ones(3))}}
    >>> from_dict(layer, torch, [(r"net\.(\d+)", r"\1", "Linear")])["0/kernel"].shape
    (2, 3)
    """
    state = state_of(target)
    if not isinstance(values, Mapping):
        raise StateError(f"The values of a State are a dict by path, not {type(values).__name__}.")
    given, problems = rename(_flatten(values, ""), rules, to_host, partial=partial)
    if not partial:
        problems += [f"{path}: no value is given" for path in state if path not in given]
    fitted: dict[str, Array] = {}
    for path, (name, value) in given.items():
        shown = path if path == name else f"{path} (from {name!r})"
        if path not in state:
            problems.append(f"{shown}: no variable has this path")
            continue
        try:
            with keeping(state[path].dtype):
                fitted[path] = _fit(value, state[path], cast=cast)
        except (JaxvarsError, TypeError, ValueError) as error:
            problems.append(f"{shown}: {error}")
    if problems:
        has_dots = not rules and any("." in path for path in given.keys() - state.keys())
        listed = [*sorted(problems), *([_RULES] if has_dots else [])]
        raise StateError("\n  ".join(["The values do not fit the variables:", *listed]))
    return state.replace(fitted)


def to_numpy(source: Any, rules: Rules = ()) -> dict[str, np.ndarray]:
    """Return the values of variables as NumPy arrays, in one dict by path.

    Args:
        source: a State, or anything with variables in it.
        rules: from paths to other names, as those of `from_dict`.

    Returns:
        Arrays that share no memory with the variables. A key of `jax.random` is given as its words.

    Raises:
        StateError: when a rule matches nothing, or two paths become one name.

    >>> import jaxvars as jv
    >>> to_numpy({"a": {"w": jv.Variable([1.0, 2.0])}})
    {'a/w': array([1., 2.], dtype=float32)}
    """
    arrays = ((path, to_array(value)) for path, value in state_of(source).items())
    renamed, problems = rename(arrays, rules)
    if problems:
        raise StateError("Paths were not renamed:\n  " + "\n  ".join(problems))
    return {name: array for name, (_, array) in renamed.items()}


from_numpy = from_dict  # they are a dict by path


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
def to_host(value: Any) -> Any:
    """Return arrays of other libraries, flax's boxes, and what `to_file` marks, as plain arrays."""
    if isinstance(value, np.ndarray) and len(value.dtype.names or ()) == 1:
        return unmark(value[value.dtype.names[0]], value.dtype.names[0])
    if isinstance(value, jax.Array | np.ndarray) or hasattr(value, "__jax_array__"):
        return value
    value = value.unbox() if hasattr(value, "unbox") else value
    return in_numpy(value) if hasattr(value, "__dlpack__") else value


def mark(value: Array) -> tuple[np.ndarray, str]:
    """Return a value as numbers that NumPy has, and the dtype that they stand for, or nothing."""
    if is_string(value.dtype):
        data = json.dumps([value.shape, value.ravel().tolist()])
        return np.frombuffer(data.encode(), np.uint8), "string"
    array = to_array(value)
    if is_key(value) or array.dtype.isbuiltin == 1:
        return array, str(value.dtype) if is_key(value) else ""
    return array.view(f"u{array.dtype.itemsize}"), array.dtype.name


def unmark(array: np.ndarray, dtype: str) -> Any:
    """Return the value of which `mark` made this."""
    if dtype == "string":
        shape, words = json.loads(array.tobytes())
        return np.array(words, string).reshape(shape)
    if dtype.startswith("key<"):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=key_impl(dtype))
    return array.view(jnp.dtype(dtype)) if dtype else array


def _to_state_dict(state: State) -> Nested:
    return _nest({path: _pack(value) for path, value in state.items()})


def _pack(value: Array) -> Any:
    array = to_array(value)
    if is_string(value.dtype):
        return {_TEXT: [str(x) for x in array.ravel()], _SHAPE: list(array.shape)}
    return array


def to_array(value: Array) -> np.ndarray:
    """Return a copy of a value for NumPy; of keys their words."""
    if is_key(value):
        value = jax.random.key_data(value)
    return np.array(whole(value))


def _fit(value: Any, like: Array, *, cast: bool) -> Array:
    if isinstance(value, Mapping):
        value = np.array(value[_TEXT], string).reshape(value.get(_SHAPE, ()))
    if is_key(like) and not is_key(value):
        words = to_tensor(value)
        value = jax.random.wrap_key_data(words, impl=str(jax.random.key_impl(like)))
    raw = isinstance(value, np.ndarray) and value.dtype.type is np.void and not value.dtype.names
    if raw and value.dtype.itemsize == like.dtype.itemsize and like.dtype.isbuiltin != 1:
        value = value.view(like.dtype)  # only bfloat16 and its like are raw bytes in NumPy's files
    if not hasattr(value, "dtype"):
        value = to_tensor(value, like.dtype)
    if cast and are_floats(value, like):
        value = to_tensor(value, like.dtype)
    if value.shape != like.shape or value.dtype != like.dtype:
        casts = value.shape == like.shape and are_floats(value, like)
        cure = ". cast=True of from_dict and from_file converts it" if casts else ""
        raise StateError(f"the variable is {_describe(like)}, the value {_describe(value)}{cure}")
    return to_tensor(value)


def _describe(value: Value) -> str:
    dtype = "string" if is_string(value.dtype) else value.dtype
    return f"{dtype}{list(value.shape)}"
