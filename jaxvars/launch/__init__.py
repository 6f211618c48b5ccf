"""Run a training program in several processes, and start it again when one of them dies.

    python -m jaxvars.launch -n 2 train.py --epochs 10
    python -m jaxvars.launch -n 4 --min-processes 2 --restarts 20 --logs logs -m mypackage.train
    python -m jaxvars.launch --help

The program calls `jv.parallel.initialize()` before anything else, restores its last checkpoint
if there is one, and saves one now and then. The launcher does the rest, on one machine:

- each worker is told where the others meet, in `JAXVARS_COORDINATOR`, and which one it is, in
  `JAXVARS_RANK`, `JAXVARS_WORLD_SIZE` and `JAXVARS_ATTEMPT`;
- what workers print comes out line by line, with `[rank]` before it, or goes to files;
- when a worker dies, the launcher knows at once. The others would wait for it, so they are killed
  with SIGKILL, the death is reported with the last lines of the worker's errors, and after a pause
  all are started again. The pauses become longer, and the restarts are counted;
- with `--min-processes`, a program that dies twice in a row goes on with one worker fewer;
- SIGTERM, SIGHUP and Ctrl-C are passed on, and after `--grace` seconds the workers are killed;
- no worker stays when the launcher is gone, also if that was `kill -9`;
- the exit status is 0 if that of all workers is, or that of the worker which failed first (128 +
  the signal, if one killed it), or 128 + the signal that stopped the launcher.

This is the small launcher for one machine. On several machines the cluster's own starts the same
program, `srun`, `mpirun` or `jv.parallel.run_on_ray`, and `jv.parallel.initialize()` reads what it
says.

The launcher never imports JAX, so it starts in no time and needs no memory to speak of: `jaxvars`
calls it as the first thing that is done in such a process.

Runs on Linux and macOS. On Linux the kernel, too, kills workers whose launcher has died.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def __dir__() -> list[str]:
    return __all__


_NAME = "jaxvars.launch"


def is_asked_for() -> bool:
    """Return whether this process was started as `python -m jaxvars.launch`.

    >>> is_asked_for()
    False
    """
    # While Python looks for a module to run, its argv[0] is "-m"; the name is in the full command.
    named = sys.orig_argv[-len(sys.argv) :][:1]
    return sys.argv[:1] == ["-m"] and named in ([_NAME], [f"-m{_NAME}"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the launcher; the process should do nothing else.

    Args:
        arguments: those of the command line; those of this process when None.

    Returns:
        The exit status: see `python -m jaxvars.launch --help`. 141 when the output is no longer
        read (`| head`).
    """
    from jaxvars.launch.options import parse  # here, as nothing else needs them
    from jaxvars.launch.supervisor import Supervisor

    try:
        return Supervisor(parse(arguments)).run()
    except KeyboardInterrupt:  # before it could be passed on
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return 141


if __name__ == "__main__":
    sys.exit(main())
