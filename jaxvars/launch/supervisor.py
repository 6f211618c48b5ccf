"""The supervisor: starts the workers, watches them, kills and restarts them.

Rules this file keeps:
- one thread, which waits in one place for signals, for output and for time;
- when a worker dies, the others are killed before anything is said or waited for;
- whatever happens to the supervisor, no worker is left: see `launch/guard.py`.
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
from collections.abc import Iterator
from typing import Any, final

from jaxvars.launch import guard
from jaxvars.launch.options import Options
from jaxvars.launch.output import Sink, Stream, prefixed, to_file
from jaxvars.launch.report import Death, first, plural, say, say_death, say_end, signal_name
from jaxvars.launch.worker import Worker, command, environment, meeting_port

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
            for attempt, size in enumerate(self._sizes()):
                dead = self._attempt(attempt, size)
                if self._stop is not None:
                    return self._stopped()
                if not dead:
                    return self._ended_well(size)
                self._deaths.append(first(dead))
                if attempt == self._options.restarts:
                    break
                self._back_off(attempt)
                if self._stop is not None:
                    return self._stopped()
        say_end(self._deaths)
        return self._deaths[-1].status

    def _sizes(self) -> Iterator[int]:
        """Yield how many workers to start: one fewer after two deaths in a row."""
        for size in range(self._options.processes, self._options.min_processes, -1):
            yield from (size, size)
            say(f"Two deaths in a row with {plural(size, 'worker')}: going on with {size - 1}.")
        yield from itertools.repeat(self._options.min_processes)

    def _ended_well(self, size: int) -> int:
        if self._deaths:
            restarts = plural(len(self._deaths), "restart")
            say(f"{f'All {size} workers' if size > 1 else 'It'} ended well, after {restarts}.")
        return 0

    def _stopped(self) -> int:
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
        worker = Worker(rank, command(self._options), env, self._sinks(attempt, rank, size))
        self._workers.append(worker)
        self._guard.tell("+", worker.pid)
        if worker.end is not None:
            self._selector.register(worker.end, selectors.EVENT_READ, worker)
        for stream in worker.streams:
            self._selector.register(stream.descriptor, selectors.EVENT_READ, stream)

    def _sinks(self, attempt: int, rank: int, size: int) -> tuple[Sink, Sink]:
        if self._options.logs is None:
            prefix = f"[{rank}] "
            return (prefixed(prefix, sys.stdout.fileno()), prefixed(prefix, sys.stderr.fileno()))
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
                    self._told_to_stop(number)

    def _told_to_stop(self, number: int) -> None:
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


_STOPS = ("SIGINT", "SIGTERM", "SIGHUP")


@final
class Inbox:
    """Takes SIGCHLD and the signals that ask the launcher to stop, for a `with` block."""

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
