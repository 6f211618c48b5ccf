r"""One worker: a process of the program, its surroundings, its output and its end.

Rules this file keeps:
- a worker leads a separate process group, and at its end the whole group is killed, so that
  its children go with it;
- the group is killed before the dead worker is reaped: until then its number is its own;
- on Linux the kernel kills the worker when the launcher dies. The guard does it everywhere;
- a line of output is never torn: it goes out whole, in one write, with the number of its worker
  before it; a carriage return ends a line, too, so that progress bars are seen as they grow;
- reading never waits: a process that a dead worker left behind may hold its pipe open.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias, final

from jaxvars.launch.guard import kill_group
from jaxvars.launch.options import Options, visible_gpus

COORDINATOR = "JAXVARS_COORDINATOR"
RANK = "JAXVARS_RANK"
WORLD_SIZE = "JAXVARS_WORLD_SIZE"
ATTEMPT = "JAXVARS_ATTEMPT"
"""What a worker finds in its environment; `jv.parallel.initialize()` reads them."""

_HOST = "127.0.0.1"
_PR_SET_PDEATHSIG = 1
_PF_EXITING = (
    4  # in the flags of /proc/PID/stat: its sockets are closed soon after, it is gone later
)
_DEVICE_COUNT = re.compile(r"--xla_force_host_platform_device_count=\d+\s*")


@final
class Worker:
    """A running process of the program, which leads a group of processes."""

    def __init__(
        self,
        rank: int,
        command: Sequence[str],
        environment: Mapping[str, str],
        sinks: tuple[Sink, Sink],
    ) -> None:
        self.rank = rank
        self.returncode: int | None = None
        self.ended = datetime.min  # when that was seen
        self.seconds = 0.0
        self.began = time.monotonic()
        self._process = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            preexec_fn=_die_with(os.getpid()),  # the launcher has one thread
        )
        self.pid = self._process.pid
        self.streams = (
            Stream(_take_descriptor(self._process.stdout), sinks[0]),
            Stream(_take_descriptor(self._process.stderr), sinks[1]),
        )
        self.end = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else None
        self.place = float("inf")  # how many workers ended before it, when the system says so

    @property
    def descriptors(self) -> list[int]:
        """What can be waited for."""
        ends = [] if self.end is None else [self.end]
        return [*(stream.descriptor for stream in self.streams), *ends]

    def close(self) -> None:
        """Pass on what it wrote last, and give the descriptors back."""
        for stream in self.streams:
            stream.close()
        if self.end is not None:
            os.close(self.end)

    def look(self) -> bool:
        """Return whether it has ended; its group is killed then."""
        if self.returncode is None and _is_over(self._process):
            self.kill()
        return self.returncode is not None

    def is_ending(self) -> bool:
        """Return whether the system is about to end it, or has, where that can be known."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        return bool(int(stat.rpartition(")")[2].split()[6]) & _PF_EXITING)

    def send(self, number: int) -> None:
        """Send a signal to the worker, if it runs; not to its children."""
        if not self.look():
            self._process.send_signal(number)

    def kill(self) -> None:
        """Kill it and its children with SIGKILL, and wait until it has ended."""
        if self.returncode is None:
            kill_group(self.pid)
            self.returncode = self._process.wait()
            self.ended = datetime.now().astimezone()
            self.seconds = time.monotonic() - self.began


def _is_over(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a child has ended, and leave it to be reaped where the system can."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _take_descriptor(pipe: Any) -> int:
    """Return a new descriptor for a pipe of `Popen`."""
    with pipe:
        return os.dup(pipe.fileno())


def _die_with(parent: int) -> Callable[[], None] | None:
    """Return what a child runs before the program, so that the kernel kills it with its parent."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl

    def bind() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != parent:  # it died before it could be asked for
            os._exit(128 + signal.SIGKILL)

    return bind


# ---------------------------------------------------------------- what to start
def command(options: Options) -> list[str]:
    """Return the command line that starts a worker."""
    how = ["-m", options.program] if options.module else [options.program]
    return [sys.executable, *how, *options.arguments]


def environment(
    options: Options, given: Mapping[str, str], *, rank: int, size: int, attempt: int, port: int
) -> dict[str, str]:
    """Return the environment of one worker, made from that of the launcher."""
    env = {
        "PYTHONUNBUFFERED": "1",  # what it prints is not lost when it is killed
        "PYTHONFAULTHANDLER": "1",  # a crash in compiled code says where
        **given,
        COORDINATOR: f"{_HOST}:{port}",
        RANK: str(rank),
        WORLD_SIZE: str(size),
        ATTEMPT: str(attempt),
    }
    if any(env.get(name) for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")):
        env["no_proxy"] = ",".join(filter(None, [env.get("no_proxy"), _HOST]))  # for gRPC
    if options.devices_per_process:
        flags = _DEVICE_COUNT.sub("", env.get("XLA_FLAGS", ""))  # JAX refuses to be told twice
        count = str(options.devices_per_process)
        env |= {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": count, "XLA_FLAGS": flags}
    if options.gpus_per_process:
        env["CUDA_VISIBLE_DEVICES"] = _choose_gpus(options.gpus_per_process, rank, given)
    return env


def _choose_gpus(count: int, rank: int, given: Mapping[str, str]) -> str:
    visible = visible_gpus(given)
    mine = range(rank * count, (rank + 1) * count)
    return ",".join(visible[i] if visible else str(i) for i in mine)


@contextlib.contextmanager
def meeting_port(wanted: int) -> Generator[int]:
    """Keep a port for the workers to meet at; any that is free when `wanted` is 0.

    The coordinator in worker 0 can listen there, because gRPC shares ports and this socket does,
    too, while a program that asks for any free port gets another one.
    """
    if wanted or not hasattr(socket, "SO_REUSEPORT"):
        with socket.socket() as probe:
            probe.bind((_HOST, 0))
            free = probe.getsockname()[1]
        yield wanted or free
        return
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        keeper.bind((_HOST, 0))
        yield keeper.getsockname()[1]


# ---------------------------------------------------------------- its output
Sink: TypeAlias = Callable[[list[bytes]], None]

TAIL = 10  # lines of a worker's errors that are shown again in the report
_LONG = 1 << 16  # bytes after which a line is taken as it is
_BREAK = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL)  # a \r at the end may be half of \r\n


@final
class Lines:
    r"""Bytes on their way to be lines.

    >>> lines = Lines()
    >>> lines.feed(b"one\ntw"), lines.feed(b"o\r\n50%\r100%\nrest"), lines.rest()
    ([b'one'], [b'two', b'50%', b'100%'], [b'rest'])
    """

    def __init__(self) -> None:
        self._open = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes, without their ends."""
        *lines, self._open = _BREAK.split(self._open + data)
        if len(self._open) > _LONG:
            lines += self.rest()
        return lines

    def rest(self) -> list[bytes]:
        """Return what has no end yet, as a line, if there is anything."""
        rest, self._open = self._open.rstrip(b"\r"), b""
        return [rest] if rest else []


@final
class Stream:
    """One of a worker's pipes, passed to a sink line by line; it closes its descriptor."""

    def __init__(self, descriptor: int, sink: Sink) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.wrote = float("-inf")
        self.tail: deque[str] = deque(maxlen=TAIL)
        self._lines = Lines()
        self._sink = sink

    def copy(self) -> bool:
        """Pass on what can be read now; return whether more may come."""
        try:
            data = os.read(self.descriptor, _LONG)
        except BlockingIOError:
            return True
        self._give(self._lines.feed(data) if data else self._lines.rest())
        return bool(data)

    def close(self) -> None:
        """Pass on what is left in the pipe, and close it."""
        try:
            while data := os.read(self.descriptor, _LONG):
                self._give(self._lines.feed(data))
        except BlockingIOError:
            pass  # another process has the other end still; what the worker wrote has been read
        self._give(self._lines.rest())
        os.close(self.descriptor)

    def _give(self, lines: list[bytes]) -> None:
        if lines:
            self.wrote = time.monotonic()
            self.tail.extend(line.decode(errors="replace") for line in lines)
            self._sink(lines)


def to_stream(prefix: str, descriptor: int) -> Sink:
    """Return a sink that writes to a descriptor, with a prefix before each line."""
    start = prefix.encode()
    return lambda lines: write_all(descriptor, b"".join(start + line + b"\n" for line in lines))


def to_file(path: Path, title: str) -> Sink:
    """Return a sink that adds to a file, which begins with a title."""
    path.parent.mkdir(parents=True, exist_ok=True)

    def add(lines: list[bytes]) -> None:
        with path.open("ab", buffering=0) as file:
            file.write(b"".join(line + b"\n" for line in lines))

    add([title.encode()])
    return add


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`, to a pipe that takes it in parts, too."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
