"""What a Checkpoint was given and could not keep is refused, before anything is written or changed.

Rules this file keeps:
- an object is kept if a Variable, or an array of a pytree, is found in it; a pytree without any
  leaf, such as the state of an optimizer without slots, has nothing to be kept;
- what may still get its variables, such as a layer that makes them in its first call, is refused
  when it is saved, and not before.
"""

from __future__ import annotations

from jaxvars.checkpoint.trees import has_arrays, has_leaves, others_in
from jaxvars.core.module import variables_in
from jaxvars.core.traversal import CLOSED_TYPES, Path
from jaxvars.errors import CheckpointError, user_line


def check_kept(path: Path, value: object, *, is_root: bool = False, is_saving: bool) -> None:
    """Raise if an object that a Checkpoint was given would be lost.

    Args:
        path: of the object in the Checkpoint.
        value: the object.
        is_root: whether its paths begin with nothing.
        is_saving: whether it is about to be saved.

    Raises:
        CheckpointError: when there is no Variable and no array in it.
        InteropError: when there is a module of flax or Keras in it that is not adapted.
    """
    if is_root and value is None:
        return
    arrays = has_arrays(value)
    if arrays and is_root:
        raise CheckpointError(
            f"The root of a Checkpoint is a {type(value).__name__} with arrays, at {user_line()}, "
            "and where the restored one is to be found was not said. Give it a name, "
            "Checkpoint(params=tree); after restore it is checkpoint.params."
        )
    variables = [v for _, leaf in others_in(value) for _, v in variables_in(leaf)]
    if arrays or variables or not (is_saving or isinstance(value, CLOSED_TYPES)):
        return
    is_empty = value is None or (type(value) in (dict, list, tuple) and not value)
    if is_empty or has_leaves(value):
        raise CheckpointError(_refusal("/".join(path) or "root", value))


def _refusal(name: str, value: object) -> str:
    kind = type(value).__name__
    words = f"{kind} {value!r}" if isinstance(value, CLOSED_TYPES) else f"{kind} object"
    why = f"The Checkpoint at {user_line()} would save nothing of {name!r} ({words}): "
    if isinstance(value, int | float | complex | str | bytes):
        return (
            f"{why}it is neither a Variable nor an array. Make it one, "
            f"{name}=jv.Variable({value!r})."
        )
    if isinstance(value, CLOSED_TYPES):
        return f"{why}there is no Variable and no array in it. Leave it out."
    return (
        f"{why}there is no Variable and no array in it. If its layers make their variables when "
        "they are first called, call it before. An array that is an attribute of a Module or of "
        "another object that is not a pytree is a constant: make it a jv.Variable, or give the "
        "pytree itself, as in Checkpoint(params=params)."
    )
