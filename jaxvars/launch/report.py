"""What the launcher says: which worker died, when, of what, and what it did about it.

Rules this file keeps:
- each line begins with `[launch]`, and goes to the errors, so that the workers' output is
  theirs alone;
- the status is what a shell makes of a death: 128 + the signal.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import final

from jaxvars.launch.output import write_all
from jaxvars.launch.worker import Worker

_HINTS = {
    "SIGKILL": ": by another process or the system, which does so when memory runs out",
    "SIGSEGV": ": a crash in compiled code",
    "SIGABRT": ": compiled code gave up; JAX does so when it loses another worker",
}

_LAST_WORDS = 5.0  # seconds before its end in which what a worker says is about that


@final
@dataclass(frozen=True)
class Death:
    """The end of a worker that should not have ended so."""

    attempt: int
    rank: int
    size: int
    pid: int
    code: int
    seconds: float
    at: datetime
    last: tuple[str, ...]
    place: float = float("inf")
    silent: float = float("inf")
    wrote: float = float("-inf")

    @classmethod
    def of(cls, worker: Worker, attempt: int, size: int) -> Death:
        """Return the death of a worker that has ended."""
        errors = worker.streams[1]
        return cls(
            attempt, worker.rank, size, worker.pid, worker.returncode or 0, worker.seconds,
            worker.ended, tuple(errors.tail), worker.place,
            worker.began + worker.seconds - errors.wrote, errors.wrote,
        )  # fmt: skip

    @property
    def status(self) -> int:
        """The exit status that a shell would show."""
        return self.code if self.code >= 0 else 128 - self.code

    @property
    def cause(self) -> str:
        """How it ended, in words."""
        if self.code >= 0:
            return f"exited with status {self.code}"
        return f"was killed by {signal_name(-self.code)}"

    def __str__(self) -> str:
        return (
            f"{self.at:%H:%M:%S} attempt {self.attempt}: worker {self.rank} of {self.size} "
            f"(process {self.pid}) {self.cause} after {self.seconds:.1f} s"
        )

    @property
    def hint(self) -> str:
        """What that usually means."""
        return _HINTS.get(signal_name(-self.code), "") if self.code < 0 else ""


def first(deaths: Sequence[Death]) -> Death:
    """Return the death that caused the others, of those that were seen together.

    A worker that loses another one says so and exits, or aborts, and may be gone before the
    other one is: so a signal that is not an abort was first; or else the worker whose last words
    came first, if all had some; or else the one that the system says was first.
    """
    all_spoke = all(death.silent < _LAST_WORDS for death in deaths)

    def order(death: Death) -> tuple[float, ...]:
        kind = 1 if death.code >= 0 else 2 if -death.code == signal.SIGABRT else 0
        when = death.wrote if all_spoke else death.place
        return (kind > 0, when, kind)

    return min(deaths, key=order)


def signal_name(number: int) -> str:
    """Return SIGKILL for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def plural(count: int, noun: str) -> str:
    """Return "1 worker" or "2 workers"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def say(*lines: str) -> None:
    """Write lines of the launcher's own."""
    text = "".join(f"[launch] {line}\n" for line in lines)
    write_all(sys.stderr.fileno(), text.encode())


def say_death(dead: Sequence[Death], stopped: int) -> None:
    """Report which workers died, first the one that was first."""
    cause = first(dead)
    others = [death for death in dead if death is not cause]
    say(f"{cause}{cause.hint}.")
    if cause.last:
        say("  The last lines of its errors:", *(f"    {line}" for line in cause.last))
    else:
        say("  It wrote nothing to its errors.")
    for death in others:
        say(f"  {death}, at about the same time.")
    if stopped:
        say(f"  The other {plural(stopped, 'worker')} would have waited for it: killed.")


def say_end(deaths: Sequence[Death]) -> None:
    """List all deaths, at the end of a run that failed."""
    say(f"Gave up after {plural(len(deaths) - 1, 'restart')}. What happened:")
    say(*(f"  {death}" for death in deaths))
    say(f"Exit status {deaths[-1].status}, that of worker {deaths[-1].rank} in the last attempt.")
