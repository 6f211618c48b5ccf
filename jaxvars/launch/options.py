"""The command line of `python -m jaxvars.launch`.

Rule of this file: what is wrong with the arguments is said before anything is started, in one
line below the usage.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

_DESCRIPTION = """\
Run a Python program in several processes of this machine, and keep it running.

Each worker process meets the others in jv.parallel.initialize(). When one dies, the others are
killed at once and all are started again: the program goes on from its last checkpoint."""

_EPILOG = """\
examples:
  python -m jaxvars.launch -n 2 train.py --epochs 10
  python -m jaxvars.launch -n 4 -m mypackage.train
  python -m jaxvars.launch -n 8 --min-processes 4 --restarts 20 --logs logs train.py
  python -m jaxvars.launch -n 2 --gpus-per-process 1 train.py

The exit status is 0 if all workers ended with 0. Else it is that of the worker which failed first,
128 + 9 if SIGKILL ended it, and so on; 128 + the signal if the launcher was told to stop.
SIGTERM, SIGHUP and Ctrl-C go on to the workers, which have --grace seconds to end; a second
one kills them."""


@final
@dataclass(frozen=True)
class Options:
    """What the command line says; the help of `_add_*` below explains each."""

    processes: int
    min_processes: int
    restarts: int
    backoff: float
    max_backoff: float
    grace: float
    port: int
    logs: Path | None
    devices_per_process: int | None
    gpus_per_process: int | None
    module: bool
    program: str
    arguments: tuple[str, ...]


def parse(arguments: Sequence[str] | None) -> Options:
    """Return the options of a command line; end the process if there are none to run with."""
    parser = _make_parser()
    given = vars(parser.parse_args(arguments))
    given["arguments"] = tuple(given["arguments"])
    if given["min_processes"] is None:
        given["min_processes"] = given["processes"]
    options = Options(**given)
    problem = _find_problem(options)
    if problem:
        parser.error(problem)
    return options


def _find_problem(options: Options) -> str | None:
    """Return what no single argument can know is wrong."""
    if options.min_processes > options.processes:
        return (
            f"--min-processes {options.min_processes} is more than the -n {options.processes} "
            "to begin with"
        )
    if options.devices_per_process and options.gpus_per_process:
        return "--devices-per-process is for CPUs and --gpus-per-process for GPUs; choose one"
    visible, wanted = visible_gpus(os.environ), options.processes * (options.gpus_per_process or 0)
    if visible and wanted > len(visible):
        return f"{wanted} GPUs are asked for, and CUDA_VISIBLE_DEVICES names {len(visible)}"
    if not options.module and not Path(options.program).is_file():
        return f"there is no file {options.program!r} (write -m before the name of a module)"
    return None


def visible_gpus(environment: Mapping[str, str]) -> list[str]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES names; none if it does not say."""
    return [name for name in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """Return a function that reads a whole number from `low` to `high`."""

    def read(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return read


def _parse_seconds(text: str) -> float:
    """Return a number of seconds, sure that it is one."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds


def _make_folder(text: str) -> Path:
    """Return a folder, sure that it is there."""
    path = Path(text).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot make {text!r}: {error.strerror}") from None
    return path


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m jaxvars.launch",
        usage="python -m jaxvars.launch [options] [-m] program [arguments of the program ...]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_workers(parser)
    _add_restarts(parser)
    _add_program(parser)
    return parser


def _add_workers(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("workers")
    group.add_argument(
        "-n", "--processes", type=whole_number(1, 4096), default=1, metavar="N",
        help="how many worker processes (default: 1)",
    )  # fmt: skip
    group.add_argument(
        "--devices-per-process", type=whole_number(1, 4096), metavar="K",
        help="run on CPU, and give each worker K virtual devices",
    )  # fmt: skip
    group.add_argument(
        "--gpus-per-process", type=whole_number(1, 4096), metavar="K",
        help="give each worker K separate GPUs, by CUDA_VISIBLE_DEVICES",
    )  # fmt: skip
    group.add_argument(
        "--port", type=whole_number(0, 65535), default=0,
        help="where the workers meet, on 127.0.0.1 (default: a free one, another each time)",
    )  # fmt: skip
    group.add_argument(
        "--logs", type=_make_folder, metavar="DIR",
        help="write what the workers print to DIR/attempt-0/rank-0.log and so on, not here",
    )  # fmt: skip


def _add_restarts(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("when a worker dies")
    group.add_argument(
        "--restarts", type=whole_number(0, 10**6), default=3, metavar="R",
        help="start again at most R times in all (default: 3)",
    )  # fmt: skip
    group.add_argument(
        "--backoff", type=_parse_seconds, default=1.0, metavar="S",
        help="wait S seconds before the first restart, and twice as long each time (default: 1)",
    )  # fmt: skip
    group.add_argument(
        "--max-backoff", type=_parse_seconds, default=60.0, metavar="S",
        help="never wait longer than this (default: 60)",
    )  # fmt: skip
    group.add_argument(
        "--min-processes", type=whole_number(1, 4096), metavar="M",
        help="after two deaths in a row with the same number of workers go on with one fewer, "
        "down to M (default: always N)",
    )  # fmt: skip
    group.add_argument(
        "--grace", type=_parse_seconds, default=10.0, metavar="S",
        help="how long the workers have to end when the launcher is told to (default: 10)",
    )  # fmt: skip


def _add_program(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-m", dest="module", action="store_true", help="the program is a module, as with python -m"
    )
    parser.add_argument("program", help="a Python file, or with -m the name of a module")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="all that follows is the program's"
    )
