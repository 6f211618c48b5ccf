"""Which checkpoints of a directory are kept: pure functions of a list of records.

Rules this file keeps:
- nothing here touches a file or a clock;
- the order of checkpoints is that in which they were saved, by serial number: neither a clock
  that is set back nor a step counter that decreases changes it;
- what is kept for ever is decided when a checkpoint is saved, and written into it, so that no
  later manager, whatever its options, undoes it;
- the newest checkpoint is always kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, final

import numpy as np

from jaxvars.display.strings import did_you_mean

_MODES = ("min", "max")


@final
@dataclass(frozen=True)
class Record:
    """What a manager knows of a checkpoint; it is written into it."""

    number: int  # the one in its name
    serial: int  # how many had been saved in the directory, with it; 0 if no manager saved it
    step: int  # what the step counter said; the number where there is none
    time: float  # when it was saved, in seconds since 1970
    metrics: Mapping[str, float] = field(default_factory=dict)
    forever: bool = False  # whether it is one of every so many steps or hours
    clock: float = 0.0  # when the last one was saved that is kept for its time

    @property
    def order(self) -> tuple[int, float, int]:
        """What those are sorted by that are saved one after the other."""
        return self.serial, self.time, self.number

    def to_json(self) -> dict[str, Any]:
        """Return it as what JSON can say, which has no NaN."""
        metrics = {k: v if math.isfinite(v) else str(v) for k, v in self.metrics.items()}
        return {**vars(self), "metrics": metrics}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        """Return the record that `to_json` made this of."""
        known: dict[str, Any] = {f.name: data[f.name] for f in fields(cls)}
        known["metrics"] = {name: float(value) for name, value in data["metrics"].items()}
        return cls(**known)


@final
@dataclass(frozen=True)
class Policy:
    """Which checkpoints are kept; see `CheckpointManager` for the fields."""

    max_to_keep: int | None
    keep_every: int | None
    hours: float | None
    best_metric: str | None
    best_mode: str | None
    keep_best: int

    def __post_init__(self) -> None:
        check_positive("max_to_keep", self.max_to_keep, " To keep all checkpoints, give None.")
        check_positive("keep_every", self.keep_every)
        check_positive("keep_best", self.keep_best)
        if self.hours is not None and not self.hours > 0:
            raise ValueError(
                f"keep_checkpoint_every_n_hours is a positive number or None, not {self.hours!r}."
            )
        if (self.best_metric is None) != (self.best_mode is None):
            raise ValueError(
                "best_metric and best_mode go together: best_metric='val_loss', best_mode='min'."
            )
        if self.best_mode is not None and self.best_mode not in _MODES:
            raise ValueError(f"best_mode is 'min' or 'max', not {self.best_mode!r}.")

    # ------------------------------------------------------------ when one is saved
    def record(
        self,
        number: int,
        step: int,
        metrics: Mapping[str, float],
        now: float,
        *,
        previous: Record | None,
        started: float,  # when the first manager began
    ) -> Record:
        """Return the record of a checkpoint that is saved now, after `previous`."""
        every, before = self.keep_every, previous.step if previous else 0
        reached = every is not None and (step % every == 0 or step // every > before // every)
        clock = min(now, previous.clock if previous else started)  # a clock may be set back
        due = self.hours is not None and now - clock >= self.hours * 3600
        return Record(
            number=number,
            serial=previous.serial + 1 if previous else 1,
            step=step,
            time=now,
            metrics=dict(metrics),
            forever=due or reached,
            clock=now if due else clock,
        )

    # ------------------------------------------------------------ afterwards
    def best(self, records: Iterable[Record]) -> list[Record]:
        """Return those that have the metric, the best one first; of equals the oldest."""
        if self.best_metric is None:
            return []
        sign = -1 if self.best_mode == "max" else 1
        rated = [(sign * r.metrics.get(self.best_metric, math.nan), r.order, r) for r in records]
        return [r for *_, r in sorted(row for row in rated if not math.isnan(row[0]))]

    def superfluous(self, records: Sequence[Record]) -> list[Record]:
        """Return those to delete."""
        if self.max_to_keep is None:
            return []
        newest = sorted(records, key=lambda r: r.order)[-self.max_to_keep :]
        kept = {r.number for r in (*newest, *self.best(records)[: self.keep_best])}
        return [r for r in records if not r.forever and r.number not in kept]

    def check_metrics(self, metrics: Mapping[str, Any] | None) -> dict[str, float]:
        """Return metrics as numbers; raise TypeError or ValueError if they are none."""
        if metrics is None:
            return {}
        if not isinstance(metrics, Mapping):
            raise TypeError(f"metrics are a dict, like {{'val_loss': 0.5}}, not {metrics!r}.")
        numbers = {_name(name): _number(name, value) for name, value in metrics.items()}
        if self.best_metric is not None and self.best_metric not in numbers:
            raise ValueError(
                f"The best checkpoint is chosen by {self.best_metric!r}, which is not among the "
                f"metrics {sorted(numbers)}. {did_you_mean(self.best_metric, list(numbers))}"
            )
        return numbers


def check_positive(what: str, value: Any, hint: str = "") -> None:
    """Raise ValueError unless a value is a positive integer or None."""
    is_int = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if value is not None and (not is_int or value < 1):
        raise ValueError(f"{what} is a positive integer or None, not {value!r}.{hint}")


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"The name of a metric is a string, not {name!r}.")
    return name


def _number(name: str, value: Any) -> float:
    try:
        if not isinstance(value, str):
            return float(np.asarray(value).item())
    except (TypeError, ValueError):
        pass
    raise TypeError(f"Metric {name!r} is one number, not {value!r}.")
