"""A process that outlives the launcher by a moment: it kills the workers when the launcher is gone.

It reads lines `+123` and `-123`, process groups that have begun and ended, from its standard
input, whose other end only the launcher has. The input ends when the launcher does, also by
`kill -9`; then the groups that are left are killed, with all the children that are in them.

Rules this file keeps:
- it is run as a script, by its path, and imports only what Python has loaded anyway;
- no signal but SIGKILL ends it before its input does.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Read which groups there are; at the end of the input, kill those that are left."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line.startswith("+") else groups.discard)(int(line[1:]))
    for group in groups:
        kill_group(group)


def kill_group(group: int) -> None:
    """Kill all processes of a group, if there are any."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # all gone; macOS says so of zombies
        return


if __name__ == "__main__":
    main()
