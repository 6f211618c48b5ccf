"""Another process, in which programs are run one after the other: starting one takes seconds.

python -m tests.fuzz.lives_elsewhere    # reads programs, a literal a line, and answers
"""

from __future__ import annotations

import ast
import subprocess
import sys
import traceback
from typing import Any

from . import lives_world

_PROGRAMS = 40  # that one process runs


class Elsewhere:
    """Runs programs in another process, which is a new one now and then."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._left = 0

    def __call__(self, source: str) -> None:
        """Run a program to its end; raise ValueError if it fails."""
        if self._left == 0 or self._process is None:
            self.close()
            command = [sys.executable, "-m", __name__]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
            self._left = _PROGRAMS
        self._left -= 1
        asked, answer = self._process.stdin, self._process.stdout
        if asked is None or answer is None:
            raise RuntimeError("no pipes")
        print(repr(source), file=asked, flush=True)
        found = ast.literal_eval(answer.readline() or "'the process has ended'")
        if found:
            raise ValueError(found)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def serve() -> None:
    """Run the programs that come in."""
    for line in sys.stdin:
        names: dict[str, Any] = {**vars(lives_world), "__name__": "life"}
        try:
            exec(ast.literal_eval(line), names)
            print(repr(""), flush=True)
        except Exception:  # noqa: BLE001 - who asked raises it
            print(repr(traceback.format_exc()), flush=True)


if __name__ == "__main__":
    serve()
