"""`Checkpoint`: the values of variables, and the arrays of pytrees, on disk and back.

Rules this file keeps:
- what is written is what all variables were at one moment, whatever other threads do;
- a failed save or restore changes nothing, the counter of saves included;
- a path means the same wherever it is written: it is made absolute at once.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, final

import jax.numpy as jnp
import numpy as np

from jaxvars.checkpoint.disk import PathLike, absolute
from jaxvars.checkpoint.files import write
from jaxvars.checkpoint.restore import (
    Found,
    Restore,
    cells_of,
    describe_missing,
    describe_paths,
    describe_slots,
    find,
    list_values,
    match_cells,
    others_in,
    values_in,
)
from jaxvars.checkpoint.saving import do_in_first, gather, span_processes
from jaxvars.checkpoint.stored import open_stored
from jaxvars.checkpoint.trees import Trees, find_kept
from jaxvars.checkpoint.waiting import given_by
from jaxvars.control.overlay import Overlay, stack
from jaxvars.core.cells import Cell
from jaxvars.core.frames import LOCAL, is_traced
from jaxvars.core.store import refuse_to_wait
from jaxvars.core.variable import Variable, make_variable
from jaxvars.errors import CheckpointError, ForeignTransformError, user_line
from jaxvars.modules.module import Module
from jaxvars.objects.traversal import Path as Parts
from jaxvars.objects.traversal import walk
from jaxvars.tracing import context
from jaxvars.tracing.guards import GUARDS, ask
from jaxvars.typing import Array

_OWN = ("_name", "_root", "_underway")  # attributes that are not objects to be saved


@final
class Checkpoint(Module):
    """The values of the variables in some objects, and the arrays of pytrees, saved and restored.

    The objects are attributes of the Checkpoint, and more may be assigned later. A variable is
    known by its path, like `model/layers/0/w`: what it is called, and where the objects are in
    memory, does not matter. Strings and random keys are saved, too.

    Of a pytree, such as a dict of parameters, an optax state or a module of equinox, the arrays are
    saved, and the numbers and strings beside them, as beside Variables. Functions, other objects
    and static fields are constants; other data, such as bytes, is refused. Trees are not changed in
    place: `restore` puts a fresh one of the same structure in the place of the attribute,
    `checkpoint.params`; a training loop assigns the new tree before saving,
    `checkpoint.params = params`.

    What would be lost is refused: an object with no Variable and no array of a pytree in it, and a
    module of flax or Keras that is not adapted. Arrays that are attributes of a Module, or of
    another object that is not a pytree, are constants of it, neither saved nor restored.

    Args:
        root: an object whose variables' paths begin with nothing.
        **objects: Variables, Modules, optimizers, generators, lists and dicts of them, or pytrees
            of arrays; the paths of what is in them begin with the name given here.

    Attributes:
        save_counter: the Variable that counts the calls of `save`, int32; saved with the rest.

    Raises:
        ValueError: when an object is given a name that is a method's or begins with `_`, here or
            as an attribute.
        CheckpointError: when an object is a number or something else that cannot be kept.
        InteropError: when there is a module of flax or Keras that is not adapted.

    Example:
        >>> import tempfile, jaxvars as jv
        >>> folder = tempfile.TemporaryDirectory()
        >>> w = jv.Variable([1.0, 2.0])
        >>> checkpoint = Checkpoint(w=w)
        >>> path = checkpoint.save(f"{folder.name}/ckpt.npz")
        >>> w.assign([0.0, 0.0]).numpy()
        array([0., 0.], dtype=float32)
        >>> _ = checkpoint.restore(path).assert_consumed()
        >>> w.numpy()
        array([1., 2.], dtype=float32)
        >>> import jax.numpy as jnp
        >>> path = Checkpoint(params={"w": jnp.ones(2)}).write(f"{folder.name}/params.npz")
        >>> checkpoint = Checkpoint(params={"w": jnp.zeros(2)})
        >>> _ = checkpoint.restore(path).assert_consumed()
        >>> checkpoint.params
        {'w': Array([1., 1.], dtype=float32)}
        >>> folder.cleanup()

    Differs from TensorFlow:
        Every value is verified by a checksum. What does not fit or is damaged raises one
        CheckpointError that lists it all, and nothing is restored. Paths are those of
        attributes and keys, and an optimizer's slots are found by the paths of their variables in
        the Checkpoint, `optimizer/slots/model/w/momentum`; of variables that are not in it, by
        their names, and several of one name are refused.
        A checkpoint is a folder that orbax can read, or one file if its name ends in `.npz`.
        Where variables span several processes, all of them save, and the first one writes.
    """

    def __init__(self, root: object = None, **objects: object) -> None:
        super().__init__()
        _refuse_own(objects, "save_counter")
        for name, value in objects.items():
            find_kept((name,), value, is_saving=False)
        self._root = root
        self._underway: dict[int, object] = {}
        vars(self).update(objects)
        self.save_counter = make_variable(np.zeros((), np.int32), "save_counter", False, None)

    def __setattr__(self, name: str, value: Any, /) -> None:
        if name not in _OWN:  # it would be neither saved nor restored, or hide a method
            _refuse_own([name])
        super().__setattr__(name, value)

    # ------------------------------------------------------------ writing
    def save(self, prefix: PathLike) -> str:
        """Write the values of all variables to the next of `prefix-1`, `prefix-2`, ....

        Adds one to `save_counter`, if all went well; threads that save at the same time write
        to one path each. Of a tree of arrays that is trained, assign the new one before:
        `checkpoint.params = params`.

        Args:
            prefix: what the path begins with. With `runs/ckpt` there is a folder
                `runs/ckpt-1`, with `runs/ckpt.npz` a file `runs/ckpt-1.npz`.

        Returns:
            The absolute path, for `restore`.

        Raises:
            CheckpointError: when a value cannot be written, when an object holds nothing to be
                saved, or a folder of something else is there.
            ForeignTransformError: in a function that is being traced.
            OSError: when the disk is full, or the folder cannot be written.
        """
        number, values = self._next()
        with self._reserve(number) as number:
            values = with_counter(values, number)
            path = _write_together(numbered_path(prefix, number), values, self._about())
            self._note_save(number)
        return str(path)

    def write(self, path: PathLike) -> str:
        """Write the values of all variables to a path, and leave `save_counter` alone.

        It appears when all is written, and takes the place of what was there.

        Args:
            path: of a folder, or of a file if it ends in `.npz`.

        Returns:
            The absolute path, for `read`.

        Raises:
            CheckpointError, ForeignTransformError, OSError: as for `save`.
        """
        return str(_write_together(absolute(path), self._snapshot(), self._about()))

    def _find_variables(self) -> Iterator[tuple[Parts, Variable]]:
        return walk(self, Variable)  # arrays in modules of equinox are saved as they are

    def _roots(self) -> dict[str | None, object]:
        """Return the objects by name; that without one under None."""
        named = {name: x for name, x in vars(self).items() if name[0] != "_"}
        return {None: self._root, **named}

    def _find(self, *, is_saving: bool) -> tuple[Found, Trees]:
        """Return what is in this Checkpoint, and the trees with arrays in it and those in it.

        Raises where something that was given to one of them would be lost.
        """
        found = find(self._roots(), Variable, Checkpoint)
        both: list[tuple[Parts, object]] = [((), self), *found[0], *found[1]]
        first = {id(x): (path, x) for path, x in both[::-1] if isinstance(x, Checkpoint)}
        return found, Trees(first.values(), is_saving=is_saving)

    def _snapshot(self, *, copy: bool = False) -> dict[str, Array]:
        """Return all values at one moment, by path; `copy` arrays in trees that may be donated."""
        refuse_traced("saved")
        pending = list_values()  # before variables are found: a value is here, there, or in both
        found, trees = self._find(is_saving=True)
        cells, leaves = cells_of(found), trees.leaves
        if both := cells.keys() & leaves.keys():
            raise CheckpointError(f"A variable and an array have the same path: {sorted(both)}.")
        late = values_in(pending, self, self._roots(), cells)
        if not leaves and not late and cells.keys() == {"save_counter"}:
            raise CheckpointError(
                "There is nothing in this Checkpoint to be saved: Checkpoint(model=model)."
            )
        for frame in stack(LOCAL.eager):
            if isinstance(frame, Overlay):
                frame.check_saved(cells.values())
        values = dict(zip(cells, LOCAL.eager.take_all(cells.values()), strict=True))
        return late | values | {p: leaf.snapshot(p, copy) for p, leaf in leaves.items()}

    def _about(self) -> dict[str, Any]:
        """Return what is stored beside the values."""
        roots = self._roots()
        found = find(roots, Variable, Module)
        cells = cells_of(found)
        return describe_paths(roots, cells) | describe_slots(found, cells)

    def _next(self, *, copy: bool = False) -> tuple[int, dict[str, Array]]:
        """Return the number of the next save, and what it is to write `with_counter`."""
        values = self._snapshot(copy=copy)
        return int(values["save_counter"]) + 1, values

    @contextlib.contextmanager
    def _reserve(self, number: int) -> Generator[int]:
        """Hold a number, or the first one after it that no save under way or made has."""
        mine = object()
        try:
            while self._underway.setdefault(number, mine) is not mine or number <= int(
                self.save_counter
            ):
                number += 1
            yield number
        finally:
            for other, owner in tuple(self._underway.items()):
                if owner is mine:
                    del self._underway[other]

    def _note_save(self, number: int) -> None:
        """Take note that a save has been made."""
        later = jnp.asarray(number, jnp.int32)  # unless a later one was faster
        LOCAL.frame.modify(self.save_counter._cell, lambda value: jnp.maximum(value, later))

    # ------------------------------------------------------------ reading
    def restore(self, path: PathLike | None) -> Status:
        """Give all variables the values that were saved, or none of them.

        A value whose variable does not exist yet waits for it, in memory: a layer that is made
        by its first call, or a slot of an optimizer, has its value before it is used for the
        first time, in compiled functions, too. Until then it is state of the Module or optimizer
        that it waits in: saved, copied and pickled with it, and ended by the restore of another
        value for the same place, or with the Module; for what is put into a list or dict later,
        with the Checkpoint. Then a CheckpointWarning tells what was not taken. A slot waits for
        the variable that was restored with it, wherever that is, and not for another one that
        takes its place; this Checkpoint may have restored it, or another one from the same path.
        Variables that have changed places since a restore are known to an optimizer when they are
        restored with it, or before it. A variable that existed before, and is put into one of the
        objects later, gets its value when the status is asked, as it may have been trained.

        Variables that the checkpoint does not have keep their values. What is returned says
        if all fitted. A tree with arrays is restored at once, into a fresh one that takes its
        place: `checkpoint.params`. Its values do not wait for a tree that is assigned later.

        An initial value that is drawn from a generator advances it, also where it is not needed:
        to go on bit for bit, restore when all variables are there, or draw initial values from a
        generator that is not saved.

        Args:
            path: what `save` or `write` returned; None (no latest checkpoint) does nothing.

        Returns:
            A `Status`, to be asked with `assert_consumed()` and the like.

        Raises:
            CheckpointError: when no checkpoint exists, or a value is damaged or has another
                shape or dtype than its variable, or is the momentum of Adam, a mean gradient, and
                here that of SGD, a step. It lists all that differs; nothing is changed.
                And in `jv.transaction`, when a value would wait or one waits already.
            ForeignTransformError: in a function that is being traced.
            OSError: when the disk cannot be read.

        Example:
            >>> import tempfile, jaxvars as jv
            >>> folder = tempfile.TemporaryDirectory()
            >>> path = Checkpoint(w=jv.Variable(5.0)).write(f"{folder.name}/w.npz")
            >>> late = Checkpoint()
            >>> status = late.restore(path)
            >>> late.w = jv.Variable(0.0)  # created after it was restored
            >>> float(late.w)
            5.0
            >>> folder.cleanup()
        """
        refuse_traced("restored")
        if path is None:
            return Status(None)
        found, trees = self._find(is_saving=False)
        with context.at(context.EVAL):
            file, roots = open_stored(path), self._roots()
            before = given_by(file.stamp)
            cells = match_cells(found, roots, file.entries.keys(), others_in(file), before)
            restoring = Restore(file, roots, self, cells, trees)
            restoring.begin()
        return Status(restoring)

    def read(self, path: PathLike) -> Status:
        """Give all variables the values that were written; the same as `restore`."""
        return self.restore(os.fspath(path))


@final
class Status:
    """What has become of the values of a checkpoint: returned by `Checkpoint.restore`.

    The methods look again each time: variables may have been created since.

    Differs from TensorFlow: a failed assertion is a CheckpointError, which lists everything.
    """

    __slots__ = ("_restored",)

    def __init__(self, restored: Restore | None) -> None:
        self._restored = restored

    def assert_consumed(self) -> Status:
        """Raise CheckpointError unless all values have variables, and all variables values.

        Returns:
            The same status.
        """
        restored, cells = self._look_again()
        restored.require(restored.unmatched(cells), "was not restored as a whole")
        return self

    def assert_existing_objects_matched(self) -> Status:
        """Raise CheckpointError unless all variables that there are have values from it.

        Values whose variables have not been created do not matter.

        Returns:
            The same status.
        """
        restored, cells = self._look_again()
        restored.require(describe_missing(restored.missing(cells)), "does not have all variables")
        return self

    def assert_nontrivial_match(self) -> Status:
        """Raise CheckpointError unless a variable other than `save_counter` has its value from it.

        Returns:
            The same status.
        """
        restored, cells = self._look_again()
        if not restored.taken.keys() - {"save_counter"}:
            restored.require(restored.unmatched(cells), "fits none of the objects")
        return self

    def expect_partial(self) -> Status:
        """Give no warning of values that were never used, when the objects are gone.

        Nor are those saved that have no place: neither a variable that they are slots of, nor an
        object that has yet to make its variables.

        Returns:
            The same status.
        """
        if self._restored is not None:
            self._restored.is_partial = True
        return self

    def _look_again(self) -> tuple[Restore, dict[str, Cell]]:
        if self._restored is None:
            raise CheckpointError(
                "Nothing was restored: the path was None. Is there a checkpoint in the folder?"
            )
        refuse_traced("restored")
        return self._restored, self._restored.look()

    def __repr__(self) -> str:
        if self._restored is None:
            return "<Status: nothing restored>"
        taken, waiting = len(self._restored.taken), len(self._restored.waiting)
        return f"<Status of {self._restored.source}: {taken} values restored, {waiting} waiting>"


def _write_together(path: Path, values: dict[str, Array], about: dict[str, Any]) -> Path:
    """Write values to a path, together with the other processes if some have parts in them."""
    if not span_processes(values):
        return write(path, values, about)
    whole = gather(values)
    do_in_first(lambda: write(path, whole, about), f"Writing {path}")
    return path


def numbered_path(prefix: PathLike, number: int) -> Path:
    """Return the path of a numbered checkpoint: `prefix-3`, or `prefix-3.npz`."""
    path = absolute(prefix)
    stem = path.name.removesuffix(".npz")
    return path.with_name(f"{stem}-{number}{path.name[len(stem) :]}")


def refuse_traced(what: str) -> None:
    """Raise in a function that is being traced, in a step's callback, and in a forked process."""
    if GUARDS:
        ask(f"A checkpoint is {what}")
    refuse_to_wait()  # before there is a lock, which a save that waits for the step may have
    if is_traced():
        raise ForeignTransformError(
            f"Variables are {what} at {user_line()} in a function that is being traced (compiled, "
            "pure, or in a JAX transform): files are written and read by Python. Do it outside."
        )


def with_counter(values: dict[str, Array], number: int) -> dict[str, Array]:
    """Return what is to be saved, with a number of the save in it."""
    return values | {"save_counter": jnp.asarray(number, jnp.int32)}


def _refuse_own(names: Iterable[str], *also: str) -> None:
    """Raise ValueError for names that are a Checkpoint's own, or may be."""
    taken = [n for n in names if n in also or n[0] == "_" or hasattr(Checkpoint, n)]
    if taken:
        raise ValueError(
            f"A Checkpoint itself has {taken}, or may have: give the objects other names."
        )
