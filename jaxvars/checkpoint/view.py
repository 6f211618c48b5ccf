"""What is in a checkpoint, without the objects that it was made of.

Rule this file keeps: a value is verified before it is returned.
"""

from __future__ import annotations

import os
from typing import Any

from jaxvars.checkpoint.disk import DamageError, PathLike, absolute, is_folder
from jaxvars.checkpoint.stored import newest, open_stored
from jaxvars.errors import CheckpointError


def list_variables(path: PathLike) -> list[tuple[str, tuple[int, ...]]]:
    """List the paths and shapes of all values in a checkpoint; reads none of them.

    Args:
        path: of a checkpoint.

    Returns:
        Pairs, sorted by path.

    Raises:
        CheckpointError: when there is none, or it is damaged.

    >>> import tempfile, jaxvars as jv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = jv.checkpoint.Checkpoint(w=jv.Variable([1.0, 2.0])).write(f"{folder}/w.npz")
    ...     list_variables(path)
    [('save_counter', ()), ('w', (2,))]
    """
    return [(p, entry.shape) for p, entry in sorted(open_stored(path).entries.items())]


def load_variable(path: PathLike, name: str) -> Any:
    """Return one value in a checkpoint, verified.

    Args:
        path: of a checkpoint.
        name: the path of the variable, as `list_variables` gives it.

    Returns:
        A NumPy array; of random keys a `jax.Array`.

    Raises:
        CheckpointError: when there is no checkpoint or no such value, or it is damaged.

    >>> import tempfile, jaxvars as jv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = jv.checkpoint.Checkpoint(w=jv.Variable([1.0, 2.0])).write(f"{folder}/w.npz")
    ...     load_variable(path, "w")
    array([1., 2.], dtype=float32)
    """
    file = open_stored(path)
    if name not in file.entries:
        raise CheckpointError(
            f"There is no value {name!r} in {file.path}; there are: "
            f"{', '.join(sorted(file.entries))}."
        )
    try:
        return file.value(name)
    except DamageError as error:
        raise CheckpointError(f"{file.path} is damaged:\n  {name}: corrupt: {error}") from None


def load(path: PathLike) -> dict[str, Any]:
    """Return all values in a checkpoint as a dict by path, verified.

    Args:
        path: of a checkpoint.

    Returns:
        NumPy arrays; of random keys `jax.Array`s.

    Raises:
        CheckpointError: when there is none, or a value is damaged; it names all of those.

    >>> import tempfile, jaxvars as jv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = jv.checkpoint.Checkpoint(w=jv.Variable(2.0)).write(f"{folder}/w.npz")
    ...     load(path)["w"]
    array(2., dtype=float32)
    """
    file = open_stored(path)
    values, problems = file.values()
    if problems:
        lines = [f"{p}: {problem}" for p, problem in sorted(problems.items())]
        raise CheckpointError("\n  ".join([f"{file.path} is damaged:", *lines]))
    return values


def latest_checkpoint(directory: PathLike, prefix: str = "") -> str | None:
    """Return the path of the checkpoint that was written last; None if there is none.

    What a killed process has left unfinished does not count.

    Args:
        directory: the folder that the checkpoints are in.
        prefix: what their names begin with.

    Returns:
        The absolute path, for `Checkpoint.restore`, which does nothing for None.

    Raises:
        OSError: when one that may be the last cannot be read.

    >>> import tempfile, jaxvars as jv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(latest_checkpoint(folder))
    ...     path = jv.checkpoint.Checkpoint(w=jv.Variable(1.0)).save(f"{folder}/ckpt.npz")
    ...     latest_checkpoint(folder) == path
    None
    True

    Differs from TensorFlow: looks at the checkpoints; there is no file that says which it was.
    """
    place = absolute(directory)
    if not is_folder(place):
        return None
    names = {name.removesuffix(".replaced") for name in os.listdir(place)}  # noqa: PTH208
    names = {name for name in names if name[0] != "."}  # those that a manager is writing
    found = [place / name for name in names if name.startswith(prefix) and ".tmp-" not in name]
    latest = newest(found)
    return None if latest is None else str(latest)
