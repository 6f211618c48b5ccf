r"""What workers write, taken line by line from their pipes.

Rules this file keeps:
- a line is never torn: it goes out whole, in one write, with the number of its worker before it;
- a carriage return ends a line, too, so that progress bars are seen as they grow;
- reading never waits: a process that a dead worker left behind may hold its pipe open.
"""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias, final

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


def prefixed(prefix: str, descriptor: int) -> Sink:
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
