"""One worker: a process of the program, its surroundings and its end.

Rules this file keeps:
- a worker leads a separate process group, and at its end the whole group is killed, so that
  its children go with it;
- the group is killed before the dead worker is reaped: until then its number is its own;
- on Linux the kernel kills the worker when the launcher dies. The guard does it everywhere.
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
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, final

from jaxvars.launch.guard import kill_group
from jaxvars.launch.options import Options, visible_gpus
from jaxvars.launch.output import Sink, Stream

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
        self.ended = datetime.min
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
            Stream(_descriptor(self._process.stdout), sinks[0]),
            Stream(_descriptor(self._process.stderr), sinks[1]),
        )
        self.end = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else None
        self.place = float("inf")

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


def _descriptor(pipe: Any) -> int:
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
        env["CUDA_VISIBLE_DEVICES"] = _gpus(options.gpus_per_process, rank, given)
    return env


def _gpus(count: int, rank: int, given: Mapping[str, str]) -> str:
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
