"""The command line of `python -m jaxvars`; what it runs is in `demo/`.

Rule of this file: what is wrong with the arguments is said before anything is computed, in one
line below the usage.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path

from jaxvars.demo import accelerator
from jaxvars.demo import train as _demo
from jaxvars.demo.doctor import report
from jaxvars.requirements import installed


def _whole_number(low: int, high: int) -> Callable[[str], int]:
    """Return a function that reads a whole number from `low` to `high`."""

    def read(word: str) -> int:
        if not word.isdecimal() or not low <= int(word) <= high:
            raise argparse.ArgumentTypeError(f"{word!r} is not a whole number from {low} to {high}")
        return int(word)

    return read


def _picture(word: str) -> Path:
    """Return the path of a picture, sure that it can be written."""
    if Path(word).suffix.lower() != ".png":
        raise argparse.ArgumentTypeError(f"{word!r} does not end in .png")
    return _file(word)


def _file(word: str) -> Path:
    """Return the path, sure that a file can be written there."""
    path = Path(word)
    try:
        was_there = path.exists()
        path.open("ab").close()
        if not was_there:
            path.unlink()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot write {word!r}: {error.strerror}") from None
    return path


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m jaxvars",
        description="Train a small network on handwritten digits, and show what came out.",
    )
    parser.add_argument(
        "command",
        nargs="?",
        choices=["doctor", "check-accelerator"],
        help="instead of that, say what is installed here, and what is slow or wrong; or try what "
        "only an accelerator can prove, in at most ten minutes (on CPUs it is short)",
    )
    version = f"jaxvars {installed('jaxvars')}"
    parser.add_argument("--version", action="version", version=version)
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--epochs",
        type=_whole_number(1, 10_000),
        default=40,
        help="passes over the training images (default: 40)",
    )
    length.add_argument("--quick", action="store_true", help="a short run: 8 epochs")
    parser.add_argument(
        "--seed", type=_whole_number(0, 2**32 - 1), default=0, help="another start (default: 0)"
    )
    parser.add_argument(
        "--save",
        type=_picture,
        metavar="PATH",
        help="a .png file to draw the learning curve and some predictions to (needs matplotlib)",
    )
    parser.add_argument(
        "--out",
        type=_file,
        metavar="FILE",
        help="a file to write the table of check-accelerator to, as Markdown",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program.

    Args:
        arguments: those of the command line; those of this process when None.

    Returns:
        The exit status: 0, or 1 if a check of the accelerator failed, or as a shell counts it, 130
        when interrupted (Ctrl-C) and 141 when the reader of the output has gone (`| head`).
    """
    if sys.stdout is None:  # it was closed: `>&-`
        with Path(os.devnull).open("w") as null, redirect_stdout(null):
            return main(arguments)
    parser, status = _parser(), 0
    options = parser.parse_args(arguments)
    if options.out and options.command != "check-accelerator":
        parser.error(
            "--out belongs to check-accelerator: python -m jaxvars check-accelerator --out FILE"
        )
    try:
        if options.command == "doctor":
            report().show()
        elif options.command == "check-accelerator":
            status = accelerator.check(quick=options.quick, out=options.out)
        else:
            epochs = 8 if options.quick else options.epochs
            _demo.run(epochs=epochs, seed=options.seed, save=options.save)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return 141
    return status


if __name__ == "__main__":
    sys.exit(main())
