"""`python -m jaxvars check-accelerator`: what holds on this machine's devices, in one table.

Rules this file keeps:
- a part runs in a process of its own, which has the devices for itself: this one never uses them;
- a part that raises, hangs or crashes is a row, as are those that it had reported before.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import faulthandler
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import zip_longest
from pathlib import Path
from pkgutil import resolve_name
from typing import BinaryIO, NamedTuple, TextIO, TypeAlias

import jax

import jaxvars as jv
from jaxvars.display.repr import Table

Row: TypeAlias = tuple[str, str, str]
OK, FAILED, SKIPPED, INFO = "ok", "FAILED", "skipped", "info"
_COLUMNS = {"check": 22, "found": 47, "result": 7}  # with the gaps 80 characters
_LONGEST = 500  # characters of a cell
_CHILD = "import sys; from jaxvars.demo import accelerator; accelerator.tell(*sys.argv[1:])"
_ASK = "import jax; d = jax.devices()[0]; print(d.platform, d.client.platform_version)"
_ASKED = 25  # seconds to answer in
_PLATFORMS = ("cuda", "rocm", "tpu", "cpu")  # as JAX_PLATFORMS names them
_DUMP = re.compile(r"^(Fatal Python error|Timeout \()", re.MULTILINE)  # faulthandler's heads


class Part(NamedTuple):
    """One part of the check.

    Attributes:
        name: what it is called where it does not end.
        function: module:name of a function that yields rows; it takes whether to be short.
        limit: the seconds that it may take, beside what the parts before it have left of theirs.
    """

    name: str
    function: str
    limit: int


PARTS = (
    Part("device", "jaxvars.demo.checks:describe", 25),
    Part("demo", "jaxvars.demo.checks:demo", 60),
    Part("donation", "jaxvars.demo.checks:donation", 50),
    Part("steps that fail", "jaxvars.demo.checks:failures", 75),
    Part("Ctrl-C", "jaxvars.demo.checks:interrupts", 40),
    Part("checkpoint", "jaxvars.demo.checks:checkpoint", 30),
    Part("dispatch", "jaxvars.demo.pace:dispatch", 45),
    Part("training steps", "jaxvars.demo.pace:training", 75),
    Part("tests of the core", "jaxvars.demo.checks:core_tests", 175),
)


def judge(check: str, found: str, passed: bool) -> Row:
    """Return the row of a check that has passed, or not."""
    return check, found, OK if passed else FAILED


def check(*, quick: bool, out: Path | None) -> int:
    """Run `PARTS`, one after the other, and print what they found.

    Args:
        quick: whether to be short, as on CPUs.
        out: a file to write the table to, as Markdown.

    Returns:
        0 if all has passed, or was skipped for a reason that is told; 1 otherwise.
    """
    rows: list[Row] = []
    platform, end = _find_platform(), time.monotonic()
    for part in PARTS:
        end += part.limit
        limited = part._replace(limit=round(end - time.monotonic()))  # and what others have left
        sys.stderr.write(f"{part.name}: at most {limited.limit} s\n")
        rows += _run(limited, platform, quick or platform == "cpu")
    title = f"jaxvars {jv.__version__}, JAX {jax.__version__}, {dt.date.today()}"
    sys.stdout.write(f"{make_table(title, rows)}\n")
    if out is not None:
        out.write_text(to_markdown(title, rows), encoding="utf-8")
    return int(any(result == FAILED for *_, result in rows))


# ---------------------------------------------------------------- one part
def _find_platform() -> str:
    """Return the name of the platform that JAX runs on; none if it does not say, or is unknown."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        command = [sys.executable, "-c", _ASK]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ASKED, check=False)
        words = done.stdout.lower().split()
        return next((name for name in _PLATFORMS if name in words), "")
    return ""


def _run(part: Part, platform: str, quick: bool) -> list[Row]:
    """Return what a part reports in a process of its own, and how that ended if it went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        told, said = Path(folder, "rows"), Path(folder, "stderr")
        told.touch()
        arguments = [part.function, str(told), str(time.time() + part.limit), "quick" * quick]
        with said.open("wb") as errors:
            status = _wait([sys.executable, "-c", _CHILD, *arguments], errors, part.limit, platform)
        lines = told.read_text(encoding="utf-8").split("\n")[:-1]  # of the last one all is there
        rows: list[Row] = [tuple(json.loads(line)) for line in lines]
        if status == 0 and rows:
            return rows
        message = said.read_text(encoding="utf-8", errors="replace")
        return [*rows, (part.name, _describe_end(part, status, message), FAILED)]


def _wait(command: Sequence[str], errors: BinaryIO, limit: float, platform: str) -> int | None:
    """Run a command, and return its exit status; None if it was stopped at the limit."""
    names = ",".join(dict.fromkeys([platform, "cpu"]))  # a CPU to compare with
    more = {"JAX_PLATFORMS": names} if platform else {}
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
        env=os.environ | more, start_new_session=True,
    )  # fmt: skip
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:  # also at Ctrl-C
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):  # a driver may not let it go
                process.wait(10)


def _describe_end(part: Part, status: int | None, message: str) -> str:
    """Say how a process ended that did not report all, where it was, and its last words."""
    if status is None:
        ended = f"did not end within {part.limit} s, and was stopped"
    elif status < 0:
        ended = f"crashed ({signal.Signals(-status).name})"
    else:
        ended = f"ended with status {status}"
    file = part.function.partition(":")[0].rpartition(".")[2]
    where = re.search(rf'\b({file}\.py)", line (\d+),? in (\w+)', message)
    place = f", in line {where[2]} of {where[1]} ({where[3]})" if where else ""
    words = _DUMP.split(message)[0].strip().splitlines()[-1:]
    return shorten(": ".join([f"{ended}{place}", *words]))


def tell(function: str, path: str, end: str, quick: str) -> None:
    """Run a part in this process, and write a line for each row to a file.

    Args:
        function: as in `Part`.
        path: of the file.
        end: when it will be stopped; shortly before, all threads' stacks are written to stderr.
        quick: empty if the part need not be short.
    """
    faulthandler.enable()
    faulthandler.dump_traceback_later(max(float(end) - time.time() - 0.5, 0.1))
    with Path(path).open("w", encoding="utf-8") as file:
        try:
            for row in resolve_name(function)(bool(quick)):
                _write(file, row)
        except Exception as error:  # noqa: BLE001 - the row says it
            line = traceback.extract_tb(error.__traceback__)[:2][-1].lineno
            problem = shorten(f"line {line}: {type(error).__name__}: {error}")
            _write(file, (function.partition(":")[2], problem, FAILED))
    faulthandler.cancel_dump_traceback_later()


def _write(file: TextIO, row: Row) -> None:
    file.write(f"{json.dumps(row)}\n")
    file.flush()


def shorten(message: str) -> str:
    r"""Return a message in one line that is not too long for a cell.

    >>> shorten("a\n  b")
    'a b'
    """
    line = " ".join(message.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."


# ---------------------------------------------------------------- the table
def make_table(title: str, rows: Iterable[Row]) -> Table:
    """Return rows as a table of 80 columns, in which long cells take several lines.

    >>> print(make_table("today", [("donation", "24 of 24 in place", OK)]))
    today
    check     found              result
    --------  -----------------  ------
    donation  24 of 24 in place  ok
    --------  -----------------  ------
              1 ok
    """
    rows = list(rows)
    return Table(title, tuple(_COLUMNS), _fold(rows), footer=[("", _count(rows), "")])


def _fold(rows: Iterable[Row]) -> Iterator[Sequence[str]]:
    for row in rows:
        cells = [textwrap.wrap(c, w) for c, w in zip(row, _COLUMNS.values(), strict=True)]
        yield from zip_longest(*cells, fillvalue="")


def _count(rows: Iterable[Row]) -> str:
    counts = Counter(result for *_, result in rows)
    return ", ".join(f"{counts[kind]} {kind}" for kind in (OK, FAILED, SKIPPED) if counts[kind])


def to_markdown(title: str, rows: Iterable[Row]) -> str:
    r"""Return rows as a table in Markdown.

    >>> print(to_markdown("today", [("a|b", "<lambda>", OK)]))
    **today**
    <BLANKLINE>
    | check | found | result |
    |---|---|---|
    | a\|b | &lt;lambda&gt; | ok |
    <BLANKLINE>
    """
    lines = [tuple(_COLUMNS), ("---",) * 3, *rows]
    cells = [[escape(cell, quote=False).replace("|", "\\|") for cell in line] for line in lines]
    table = [f"| {' | '.join(line)} |" for line in cells]
    table[1] = table[1].replace(" ", "")
    return "\n".join([f"**{title}**", "", *table, ""])
