"""`CheckpointManager`: a directory of checkpoints, of which it keeps the ones that matter.

What it knows of a checkpoint, such as its metrics, is written into that checkpoint
(`checkpoint/directory.py`): nothing else has to be kept in step with the directory, and a new
process sees what the last one saw. Which ones are kept is a function of that alone
(`checkpoint/retention.py`). orbax writes each of them, but its manager is not used: it numbers
checkpoints by step only and refuses a step that decreases, keeps the metrics apart from them,
forgets what an earlier manager promised to keep, and loses a save when the interpreter ends
(`checkpoint/saving.py`).

Rules this file keeps:
- a checkpoint is of one moment, that of the call, wherever and whenever it is written;
- at most one save is under way, and what became of it is told: by the next save, restore or
  `wait`, or when the interpreter ends;
- what is refused changes nothing.
"""

from __future__ import annotations

import operator
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, final

import jax

from jaxvars import preemption
from jaxvars.checkpoint.checkpoint import Checkpoint, refuse_traced, with_counter
from jaxvars.checkpoint.directory import Directory, check_name
from jaxvars.checkpoint.disk import absolute
from jaxvars.checkpoint.retention import Policy, Record, check_positive
from jaxvars.checkpoint.saving import (
    Job,
    Save,
    Writer,
    broadcast_from_first,
    do_in_first,
    gather,
    span_processes,
)
from jaxvars.checkpoint.stored import is_damaged
from jaxvars.display.repr import Table, html_repr, text_repr
from jaxvars.errors import CheckpointError, warn_user
from jaxvars.tensors.array_like import unwrap

_clock = time.time
_SUFFIXES = {"orbax": "", "npz": ".npz"}


@final
class CheckpointManager:
    """Save checkpoints in a directory, and keep those that matter.

    All that it writes is there whole or not at all, whenever the process is killed. Several
    managers, also of other processes, may read and write one directory: they take turns. Where
    variables span several processes, all of them save together, and the first one writes, at
    once, whatever `async_save` says.

    Args:
        checkpoint: what to save and restore.
        directory: where; it is made when needed.
        max_to_keep: how many of the newest are kept; all when None. Besides one that was restored
            while values of it wait that no save can write, as no object holds them.
        keep_every: also keep, for ever, those whose step is a multiple of this: the first at
            or after each multiple. The step is that of the `step_counter`, or else the number.
        keep_checkpoint_every_n_hours: also keep, for ever, one after each so many hours.
        best_metric: also keep the best by this metric, one of those that `save` is given.
        best_mode: whether the best is the one with the least ("min") or largest ("max") metric.
        keep_best: how many of the best are kept.
        checkpoint_name: what the names begin with: `ckpt-1`, `ckpt-2`, ...
        step_counter: a Variable (or function) that says which step it is.
        checkpoint_interval: `save` does nothing before so many steps after the last save, unless
            `jv.parallel.is_preempted` has said that the program is to stop. When it does, what was
            left out at this step is saved.
        init_fn: called by `restore_or_initialize` when no checkpoint exists.
        async_save: whether `save` returns at once, and a thread writes. What is written is
            the values at the time of the call: the next compiled step copies them instead of
            reusing their memory. `save` waits where the program is to stop, or Python ends.
        format: "orbax", a folder, or "npz", one file that NumPy can read.

    Raises:
        TypeError: when the checkpoint is something else, or an option of another type.
        ValueError: when an option is out of range.

    Example:
        >>> import tempfile
        >>> import jaxvars as jv
        >>> directory = tempfile.TemporaryDirectory()
        >>> w = jv.Variable(0.0, name="w")
        >>> manager = CheckpointManager(
        ...     Checkpoint(w=w),
        ...     directory.name,
        ...     max_to_keep=2,
        ...     format="npz",
        ...     best_metric="loss",
        ...     best_mode="min",
        ... )
        >>> for step, loss in enumerate([0.9, 0.1, 0.5, 0.3]):
        ...     path = manager.save(metrics={"loss": loss})
        ...     _ = w.assign_add(1.0)
        >>> [os.path.basename(path) for path in manager.checkpoints]
        ['ckpt-2.npz', 'ckpt-3.npz', 'ckpt-4.npz']
        >>> _ = manager.restore_best()
        >>> w.numpy()
        array(1., dtype=float32)
        >>> directory.cleanup()

    Differs from TensorFlow:
        `max_to_keep` is 5 when not given. `checkpoints` lists those kept for ever, too. No
        file is named `checkpoint`. `keep_every`, metrics and `async_save` are new. When the
        step counter has gone back, `checkpoint_interval` does not wait until it has caught up.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: str | os.PathLike[str],
        max_to_keep: int | None = 5,
        *,
        keep_every: int | None = None,
        keep_checkpoint_every_n_hours: float | None = None,
        best_metric: str | None = None,
        best_mode: str | None = None,
        keep_best: int = 1,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], object] | None = None,
        async_save: bool = False,
        format: str = "orbax",
    ) -> None:
        if not isinstance(checkpoint, Checkpoint):
            raise TypeError(
                f"A manager saves a Checkpoint, not {type(checkpoint).__name__}: "
                "CheckpointManager(jv.checkpoint.Checkpoint(model=model), directory)."
            )
        if format not in _SUFFIXES:
            raise ValueError(f"format is 'orbax' or 'npz', not {format!r}.")
        check_positive("checkpoint_interval", checkpoint_interval)
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("checkpoint_interval needs a step_counter: the Variable that counts.")
        self._policy = Policy(
            max_to_keep, keep_every, keep_checkpoint_every_n_hours, best_metric, best_mode,
            keep_best,
        )  # fmt: skip
        self.checkpoint = checkpoint
        self._directory = Directory(
            absolute(directory), check_name(checkpoint_name), _SUFFIXES[format]
        )
        self._step_counter = step_counter
        self._interval = checkpoint_interval
        self._init_fn = init_fn
        self._async = async_save
        self._writer = Writer(self._directory, self._policy, _clock())
        self._last_step: int | None = None
        self._job: Job | None = None
        self._turn = threading.RLock()  # reentrant: a signal handler may save while we save
        self._directory.tidy()

    # ------------------------------------------------------------ what is there
    @property
    def directory(self) -> str:
        """Where the checkpoints are, as an absolute path."""
        return str(self._directory.path)

    @property
    def checkpoint_interval(self) -> int | None:
        """How many steps there are between two saves, at least."""
        return self._interval

    @property
    def checkpoints(self) -> list[str]:
        """The paths of all checkpoints, in the order they were saved.

        They are looked up in the directory, so those of other processes are among them. One
        that is being saved in the background is not there yet.
        """
        return [self._path(record) for record in self._directory.records()]

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the checkpoint that was saved last, or None."""
        return next(reversed(self.checkpoints), None)

    @property
    def best_checkpoint(self) -> str | None:
        """The path of the checkpoint with the best metric, or None; of equals the oldest.

        Raises:
            ValueError: when the manager has no `best_metric`.
        """
        if self._policy.best_metric is None:
            raise ValueError(
                "What is best? CheckpointManager(..., best_metric='val_loss', best_mode='min')."
            )
        best = self._policy.best(self._directory.records())
        return self._path(best[0]) if best else None

    def metrics(self, path: str | os.PathLike[str]) -> dict[str, float]:
        """Return the metrics that a checkpoint was saved with.

        Args:
            path: one of `checkpoints`.

        Raises:
            CheckpointError: when it is none of them.
        """
        wanted = str(absolute(path))
        for record in self._directory.records():
            if self._path(record) == wanted:
                return dict(record.metrics)
        raise CheckpointError(f"{wanted} is none of the checkpoints here: {self.checkpoints}.")

    def table(self) -> Table:
        """Return a table of the checkpoints: path, step, time, metrics, whether it is kept."""
        records = self._directory.records()
        names = sorted({name for record in records for name in record.metrics})
        return Table(
            title=f"checkpoints in {self.directory}",
            columns=("checkpoint", "step", "saved", *names, "for ever"),
            rows=[_row(self._place(r).name, r, names) for r in records],
        )

    # ------------------------------------------------------------ saving
    def save(
        self,
        checkpoint_number: Any = None,
        check_interval: bool = True,
        *,
        metrics: Mapping[str, Any] | None = None,
    ) -> str | None:
        """Save a checkpoint, and delete those that are not to be kept any more.

        Args:
            checkpoint_number: the number in its name, an integer or Variable; the checkpoint's
                `save_counter`, which goes up in any case, when None. A checkpoint that has the
                number is replaced; without a `checkpoint_number` not one that is damaged, kept for
                ever or was put there otherwise: then the counter goes on after all numbers there.
            check_interval: False saves within the `checkpoint_interval`, too, but not twice at
                one step.
            metrics: numbers by name, to be stored with it: `{"val_loss": 0.3}`.

        Returns:
            The path; it is there when `save` returns, or with `async_save` after `wait()`. None
            if nothing is saved because of the interval.

        Raises:
            CheckpointError: when the save before this failed in the background, and then nothing
                is saved; or when something else has the name.
            ForeignTransformError: in a function that is being traced, or in a signal handler that
                interrupted a compiled step: let it set a flag, and save after the step.
            TypeError: when the number or a metric is none.
            ValueError: when the number is negative, or the `best_metric` is missing.
            OSError: when the disk is full, or the directory cannot be written.
        """
        refuse_traced("saved")
        numbers = self._policy.check_metrics(metrics)
        asked = None if checkpoint_number is None else _integer("number", checkpoint_number)
        with self._turn:
            step, stopping = self._step(), preemption.is_answered()
            if stopping:
                self.wait()
            if not self._is_due(step, check_interval and not stopping):
                preemption.LEFT_OUT[self] = partial(_make_up, step, asked, numbers)
                return None
            self.wait()
            count, values = self.checkpoint._next(copy=self._async)
            about, number = self.checkpoint._about(), asked
            apart = span_processes(values)
            if number is None:
                count = number = self._free_number(count, apart=apart)
            values = with_counter(gather(values) if apart else values, count)
            step_saved = number if step is None else step
            save = Save(number, step_saved, numbers, values, _clock(), about)
            (self._run_together if apart else self._run)(save, count)
            self._begin_interval(step)
        return str(self._directory.path_of(number))

    def wait(self) -> None:
        """Wait until what is being saved in the background is on disk.

        Raises:
            CheckpointError: when it could not be saved; it says why.
        """
        job = self._job
        if job is not None:
            try:
                job.wait()
            except CheckpointError:
                self._last_step = None  # as that step is not saved
                raise
            finally:
                if self._job is job and not job.is_running:  # else Ctrl-C, or another save, came
                    self._job = None

    sync = wait

    def _run(self, save: Save, count: int) -> None:
        is_ending = preemption.is_answered() or not threading.main_thread().is_alive()
        if is_ending or not self._async:
            self._writer.put(save)
            self.checkpoint._note_save(count)
            self._writer.prune()
            return
        place = self._directory.path_of(save.number)
        self._job = job = Job(lambda: self._writer.put_and_prune(save), f"saving {place.name}")
        job.start()
        self.checkpoint._note_save(count)

    def _free_number(self, count: int, *, apart: bool) -> int:
        """Return the number to save with, if none was given; of several processes the first's."""
        number = self._directory.free_number(count)
        return int(broadcast_from_first(number)) if apart else number

    def _run_together(self, save: Save, count: int) -> None:
        """Save what spans several processes: all wait for the first, which writes."""
        place = self._directory.path_of(save.number)
        do_in_first(lambda: self._writer.put(save), f"Saving {place}")
        self.checkpoint._note_save(count)
        if jax.process_index() == 0:
            self._writer.prune()

    def _step(self) -> int | None:
        counter = self._step_counter
        if counter is None:
            return None
        return _integer("step", counter() if callable(counter) else counter)

    def _begin_interval(self, step: int | None) -> None:
        self._last_step = step
        preemption.LEFT_OUT.pop(self, None)  # what was left out before is another state

    def _is_due(self, step: int | None, check_interval: bool) -> bool:
        if self._interval is None or step is None or self._last_step is None:
            return True
        since = step - self._last_step
        return since != 0 and not (check_interval and 0 < since < self._interval)

    # ------------------------------------------------------------ restoring
    def restore_or_initialize(self, *, skip_damaged: bool = False) -> str | None:
        """Restore the checkpoint that was saved last, or call `init_fn` if there is none.

        Args:
            skip_damaged: whether to take the one before a checkpoint that is damaged, with a
                warning. (What a killed process was about to save does not count: it is not
                there.)

        Returns:
            The path of what was restored, or None.

        Raises:
            CheckpointError: when the checkpoint is damaged or does not fit, or when the last save
                failed in the background. No variable was changed.
            ForeignTransformError: in a function that is being traced.
            OSError: when the directory, or a checkpoint in it, cannot be read.
        """
        refuse_traced("restored")
        with self._turn:
            self.wait()
            paths = self._candidates(skip_damaged)
            is_there = paths or self._directory.damaged()
            path = self._restore_first(paths, skip_damaged) if is_there else None
            if path is None and self._init_fn is not None:
                self._init_fn()
            if path is not None:
                self._begin_interval(self._step())
        return path

    def restore_best(self) -> str:
        """Restore the checkpoint with the best metric, and return its path.

        Raises:
            CheckpointError: when none has the metric, or it is damaged or does not fit. No
                variable was changed.
            ValueError: when the manager has no `best_metric`.
        """
        refuse_traced("restored")
        with self._turn:
            self.wait()
            path = self.best_checkpoint
            if path is None:
                raise CheckpointError(
                    f"No checkpoint in {self.directory} has the metric "
                    f"{self._policy.best_metric!r}: save(metrics={{...}})."
                )
            self.checkpoint.restore(path)
            self._begin_interval(self._step())
        return path

    def _candidates(self, skip_damaged: bool) -> list[str]:
        damaged = self._directory.damaged()
        if damaged and not skip_damaged:
            raise CheckpointError(
                f"{damaged[-1]} is damaged: what the manager wrote about it cannot be read. "
                "Restore it by its path, delete it, or restore_or_initialize(skip_damaged=True)."
            )
        for path in damaged:
            warn_user(f"A damaged checkpoint is skipped: {path}", RuntimeWarning)
        return self.checkpoints[::-1]

    def _restore_first(self, paths: list[str], skip_damaged: bool) -> str:
        for path in paths:
            try:
                self.checkpoint.restore(path)
            except CheckpointError as error:
                if not (skip_damaged and is_damaged(path)):
                    raise
                warn_user(f"A damaged checkpoint is skipped: {error}", RuntimeWarning)
            else:
                return path
        raise CheckpointError(f"All checkpoints in {self.directory} are damaged: see the warnings.")

    def _place(self, record: Record) -> Path:
        return self._directory.path_of(record.number)

    def _path(self, record: Record) -> str:
        return str(self._place(record))

    # ------------------------------------------------------------ with
    def __enter__(self) -> CheckpointManager:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Wait; a failed save does not hide an error of the block, but is noted in it."""
        try:
            self.wait()
        except CheckpointError as failed:
            if error is None:
                raise
            error.add_note(f"Besides: {failed}")

    # ------------------------------------------------------------ display
    def __rich_repr__(self) -> Iterator[Any]:
        yield "directory", self.directory
        yield "checkpoints", [self._place(r).name for r in self._directory.records()]

    def __repr__(self) -> str:
        return text_repr(self)

    def _repr_html_(self) -> str:  # pyright: ignore[reportUnusedFunction] - IPython calls it
        return html_repr(self)


def _make_up(
    step: int | None, number: int | None, metrics: Mapping[str, float], manager: CheckpointManager
) -> None:
    """Save what the interval has left out at a step, unless others were made since."""
    try:
        manager.wait()
    finally:  # also where the save before it has failed
        if manager._step() == step:
            manager.save(number, metrics=metrics)


def _integer(what: str, value: Any) -> int:
    try:
        number = operator.index(unwrap(value))
    except TypeError:
        raise TypeError(f"The {what} of a checkpoint is an integer, not {value!r}.") from None
    if number < 0:
        raise ValueError(f"The {what} of a checkpoint is not negative, as {number} is.")
    return number


def _row(name: str, record: Record, metrics: Sequence[str]) -> tuple[Any, ...]:
    saved = datetime.fromtimestamp(record.time, UTC).isoformat(" ", "seconds")
    values = [record.metrics.get(metric) for metric in metrics]
    return (name, record.step, saved, *values, record.forever)
