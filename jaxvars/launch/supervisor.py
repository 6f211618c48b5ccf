"""The supervisor: starts the workers, watches them, kills and restarts them, and says so.

Rules this file keeps:
- one thread, which waits in one place for signals, for output and for time;
- when a worker dies, the others are killed before anything is said or waited for;
- whatever happens to the supervisor, no worker is left: see `launch/guard.py`;
- a signal that was ignored when the launcher was started (`nohup`) stays ignored;
- each line that it says begins with `[launch]`, and goes to the errors, so that the workers'
  output is theirs alone; a status is what a shell makes of a death: 128 + the signal.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, final

from jaxvars.launch import guard
from jaxvars.launch.options import Options
from jaxvars.launch.worker import (
    Sink,
    Stream,
    Worker,
    command,
    environment,
    meeting_port,
    to_file,
    to_stream,
    write_all,
)

_KILL = int(signal.SIGKILL)
_ECHO = 0.2  # seconds in which a second signal is the first one again: `timeout` sends it twice


@final
class Guard:
    """The process that kills the workers if this one is gone; for a `with` block."""

    def __enter__(self) -> Guard:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    def tell(self, sign: str, group: int) -> None:
        """Say that a process group has begun (+) or ended (-)."""
        with contextlib.suppress(BrokenPipeError):  # it was killed; we go on without
            if self._process.stdin is not None:
                self._process.stdin.write(f"{sign}{group}\n".encode())


@final
class Supervisor:
    """Runs a program in several processes until it ends, or fails too often."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._deaths: list[Death] = []
        self._workers: list[Worker] = []
        self._places = itertools.count()
        self._stop: int | None = None  # the signal that told us to
        self._told = 0.0  # when that was
        self._deadline = float("inf")
        self._inbox = Inbox()
        self._guard = Guard()
        self._selector = selectors.DefaultSelector()

    def run(self) -> int:
        """Run it; return the exit status."""
        with self._selector, self._guard, self._inbox:
            self._selector.register(self._inbox.descriptor, selectors.EVENT_READ)
            for attempt, size in enumerate(self._choose_sizes()):
                dead = self._attempt(attempt, size)
                if self._stop is not None:
                    return self._report_stop()
                if not dead:
                    return self._report_success(size)
                self._deaths.append(first(dead))
                if attempt == self._options.restarts:
                    break
                self._back_off(attempt)
                if self._stop is not None:
                    return self._report_stop()
        say_end(self._deaths)
        return self._deaths[-1].status

    def _choose_sizes(self) -> Iterator[int]:
        """Yield how many workers to start: one fewer after two deaths in a row."""
        for size in range(self._options.processes, self._options.min_processes, -1):
            yield from (size, size)
            say(f"Two deaths in a row with {plural(size, 'worker')}: going on with {size - 1}.")
        yield from itertools.repeat(self._options.min_processes)

    def _report_success(self, size: int) -> int:
        if self._deaths:
            restarts = plural(len(self._deaths), "restart")
            say(f"{f'All {size} workers' if size > 1 else 'It'} ended well, after {restarts}.")
        return 0

    def _report_stop(self) -> int:
        say(f"Stopped by {signal_name(self._stop or 0)}; no worker is left.")
        return 128 + (self._stop or 0)

    def _back_off(self, attempt: int) -> None:
        """Say so and wait, unless a signal comes."""
        options = self._options
        seconds = min(options.backoff * 2.0 ** min(attempt, 64), options.max_backoff)
        say(f"Restart {attempt + 1} of {options.restarts}, in {seconds:g} s.")
        until = time.monotonic() + seconds
        while self._stop is None and (left := until - time.monotonic()) > 0:
            self._wait(left)

    # ---------------------------------------------------------------- one start of the program
    def _attempt(self, attempt: int, size: int) -> list[Death]:
        """Run all workers once; return those that died before the others were killed."""
        with meeting_port(self._options.port) as port:
            try:
                for rank in range(size):
                    self._start(attempt, rank, size, port)
                failed = self._watch()
                others = [worker for worker in self._workers if not worker.look()]
                failed += [worker for worker in others if failed and worker.is_ending()]
            finally:
                workers = list(self._workers)
                self._kill_all()
        if not failed or self._stop is not None:
            return []
        failed += [w for w in workers if w not in failed and w.returncode not in (0, -_KILL)]
        deaths = [Death.of(worker, attempt, size) for worker in failed if worker.returncode]
        say_death(deaths, len([worker for worker in others if worker not in failed]))
        return deaths

    def _start(self, attempt: int, rank: int, size: int, port: int) -> None:
        env = environment(
            self._options, os.environ, rank=rank, size=size, attempt=attempt, port=port
        )
        worker = Worker(rank, command(self._options), env, self._open_sinks(attempt, rank, size))
        self._workers.append(worker)
        self._guard.tell("+", worker.pid)
        if worker.end is not None:
            self._selector.register(worker.end, selectors.EVENT_READ, worker)
        for stream in worker.streams:
            self._selector.register(stream.descriptor, selectors.EVENT_READ, stream)

    def _open_sinks(self, attempt: int, rank: int, size: int) -> tuple[Sink, Sink]:
        if self._options.logs is None:
            prefix = f"[{rank}] "
            return (to_stream(prefix, sys.stdout.fileno()), to_stream(prefix, sys.stderr.fileno()))
        path = self._options.logs / f"attempt-{attempt}" / f"rank-{rank}.log"
        moment = time.strftime("%Y-%m-%d %H:%M:%S")
        title = f"[launch] {moment} attempt {attempt}: worker {rank} of {size}"
        sink = to_file(path, title)
        return sink, sink

    def _watch(self) -> list[Worker]:
        """Wait until all workers have ended, or one has failed; return those that failed."""
        while True:
            over = [worker.look() for worker in self._workers]
            failed = [worker for worker in self._workers if worker.returncode]
            if all(over) or (failed and self._stop is None):
                self._wait(0)  # the system tells here in which order they ended
                return failed
            left = self._deadline - time.monotonic()
            if left <= 0:
                say(f"{plural(over.count(False), 'worker')} did not end in time: killed.")
                return []
            self._wait(min(left, 3600.0))

    def _wait(self, seconds: float) -> None:
        """Wait for output, signals or time, and see to them."""
        for key, _ in self._selector.select(seconds):
            if isinstance(key.data, Stream):
                if not key.data.copy():
                    self._selector.unregister(key.fd)
            elif isinstance(key.data, Worker):
                self._selector.unregister(key.fd)
                key.data.place = next(self._places)
            else:
                for number in self._inbox.take():
                    self._pass_on(number)

    def _pass_on(self, number: int) -> None:
        """Pass the first signal on; at the second one, wait no longer."""
        now = time.monotonic()
        if self._stop is not None:
            if now > self._told + _ECHO:
                self._deadline = 0.0
            return
        self._stop, self._told = number, now
        self._deadline = now + self._options.grace
        running = [worker for worker in self._workers if not worker.look()]
        for worker in running:
            worker.send(number)
        if running:
            say(
                f"{signal_name(number)}: told {plural(len(running), 'worker')} to end, in "
                f"{self._options.grace:g} s at most. Once more kills."
            )

    def _kill_all(self) -> None:
        """Kill the workers that run, and see to what all of them wrote."""
        for worker in self._workers:
            if not worker.look():
                guard.kill_group(worker.pid)
        for worker in self._workers:
            worker.kill()
            self._guard.tell("-", worker.pid)
            for descriptor in worker.descriptors:
                with contextlib.suppress(KeyError):  # at its end already
                    self._selector.unregister(descriptor)
            worker.close()
        self._workers.clear()


# ---------------------------------------------------------------- signals
_STOPS = ("SIGINT", "SIGTERM", "SIGHUP")


@final
class Inbox:
    """Takes SIGCHLD and the signals to stop, for a `with` block, as bytes in a pipe."""

    def __enter__(self) -> Inbox:
        self.descriptor, self._end = os.pipe()
        for descriptor in (self.descriptor, self._end):
            os.set_blocking(descriptor, False)
        self._fd_before = signal.set_wakeup_fd(self._end, warn_on_full_buffer=False)
        stops = [getattr(signal, name) for name in _STOPS]
        wanted = [s for s in stops if signal.getsignal(s) is not signal.SIG_IGN]
        self._before = {s: signal.signal(s, _note) for s in [*wanted, signal.SIGCHLD]}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._fd_before)
        os.close(self.descriptor)
        os.close(self._end)

    def take(self) -> list[int]:
        """Return the numbers of the signals to stop that have come since the last time."""
        try:
            taken = os.read(self.descriptor, 4096)
        except BlockingIOError:
            return []
        return [number for number in taken if number != signal.SIGCHLD]


def _note(number: int, frame: Any) -> None:
    # Python writes the number to the pipe before it calls this.
    return


# ---------------------------------------------------------------- what it says
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
    code: int  # as `subprocess` has it: -9 for SIGKILL
    seconds: float
    at: datetime
    last: tuple[str, ...]  # lines of its errors
    place: float = float("inf")  # how many workers ended before it, if the system said so
    silent: float = float("inf")  # seconds from its last error message to its end
    wrote: float = float("-inf")  # when that message came, by `time.monotonic()`

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
        """How it ended, as a string."""
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
