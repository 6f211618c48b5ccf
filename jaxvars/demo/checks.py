"""What `python -m jaxvars check-accelerator` looks at: promises that only a device can prove.

Rules this file keeps:
- a part is a generator of rows, and reports each as soon as it is known: a crash keeps them;
- what a part expects it knows by counting: values that are read in between take a slower path.
"""

from __future__ import annotations

import _thread
import math
import operator
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxvars as jv
from jaxvars.core.cells import CURRENT, STORE
from jaxvars.demo import doctor
from jaxvars.demo.accelerator import INFO, SKIPPED, Row, judge, shorten
from jaxvars.demo.train import Run
from jaxvars.display.repr import human_bytes

_UNTOLD = "not told by this device"


def _memory(name: str) -> int | None:
    """Return what the first device says of its memory, if it does."""
    return (jax.devices()[0].memory_stats() or {}).get(name)


# ---------------------------------------------------------------- the device
def describe(quick: bool) -> Iterator[Row]:
    """Say what it runs on."""
    first = jax.devices()[0]
    yield "device", f"{jax.device_count()} x {first.device_kind} ({first.platform})", INFO
    for what, found, cure in doctor._devices():
        if cure:
            yield what, f"{found}: {cure}", INFO
    yield "driver", shorten(f"{_driver()}{first.client.platform_version}"), INFO
    limit = _memory("bytes_limit")
    yield "memory", _UNTOLD if limit is None else f"{human_bytes(limit)} for JAX", INFO
    yield "Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}", INFO
    if flags := os.environ.get("XLA_FLAGS"):
        yield "XLA_FLAGS", shorten(flags), INFO
    yield "length", "short" if quick else "full", INFO


def _driver() -> str:
    """Return the version of NVIDIA's driver, where there is one."""
    if which("nvidia-smi") is None:
        return ""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    done = subprocess.run(query, stdout=subprocess.PIPE, text=True, check=False)
    return " ".join(["NVIDIA", *done.stdout.split()[:1], ""])


def demo(quick: bool) -> Iterator[Row]:
    """Train the demo on the device and on the CPU."""
    epochs, found = 1 if quick else 8, []
    for place in (jax.devices()[0], jax.devices("cpu")[0]):
        with jax.default_matmul_precision("highest"), jv.device(place):
            run = Run(seed=0)
            found.append((np.array(run.train(epochs, lambda *_: None).losses), run.accuracy()))
    (losses, accuracy), (expected, other) = found
    epoch = len(losses) // epochs
    difference = float(np.max(np.abs(losses / expected - 1)[:epoch]))
    told = f"{epoch} steps: {difference:.1e} from the CPU's at most, relatively"
    yield judge("losses of the demo", told, difference < 1e-3)
    told = f"{accuracy:.1%}, on the CPU {other:.1%} (epochs: {epochs})"
    yield judge("accuracy of the demo", told, abs(accuracy - other) < 0.03)


# ---------------------------------------------------------------- donation
def donation(quick: bool) -> Iterator[Row]:
    """Look where the values of a large model are before and after a step, and at its memory."""
    limit = _memory("bytes_limit") or 2**36
    count, size = 8, min(2**24 if quick else 2**30, limit // 4)
    n = math.isqrt(size // 4 // count)
    weights = [jv.Variable(jnp.full((n, n), 1 / n), name=f"w{i}") for i in range(count)]
    x = jnp.ones((64, n))

    @jv.compile
    def step(x: Any) -> Any:
        with jv.GradientTape() as tape:
            loss = jnp.mean(reduce(lambda y, w: jax.nn.relu(y @ w), weights, x) ** 2)
        for w, g in zip(weights, tape.gradient(loss, weights), strict=True):
            w.assign_sub(0.01 * g)
        return loss

    planned, compiling = jv.plan(step, x).memory["total"], _memory("peak_bytes_in_use")
    for _ in range(3):
        jax.block_until_ready(step(x))
    check = f"memory of a {human_bytes(4 * n * n * count)} model"
    yield _compare_peak(check, planned, compiling)
    before = [_held(w) for w in weights]
    places = [value.unsafe_buffer_pointer() for value in before]
    step(x)
    gone = sum(value.is_deleted() for value in before)
    yield judge("old values deleted", f"{gone} of {count} after a step", gone == count)
    after = [_held(w).unsafe_buffer_pointer() for w in weights]
    same = sum(map(operator.eq, places, after))
    yield judge("values in place", f"{same} of {count} where they were", same == count)


def _held(variable: jv.Variable) -> Any:
    """Return the array of a variable, which is not marked as held elsewhere: it is donated."""
    write_back, key = CURRENT[0], variable._cell.key
    pending = dict(zip(write_back.keys, write_back.values, strict=True)) if write_back else {}
    return pending.get(key, STORE.get(key))


def _compare_peak(check: str, planned: int, compiling: int | None) -> Row:
    """Compare the peak of steps with what was planned, and with the peak before them."""
    peak, plan = _memory("peak_bytes_in_use"), f"jv.plan: {human_bytes(planned)}"
    if peak is None or compiling is None:
        return check, f"{plan}; the peak is {_UNTOLD}", SKIPPED
    told = f"peak {human_bytes(peak)}, before the steps {human_bytes(compiling)}; {plan}"
    return judge(check, told, peak <= max(1.15 * planned, compiling))


# ---------------------------------------------------------------- steps that fail
def failures(quick: bool) -> Iterator[Row]:
    """Let steps fail in several ways, and read every variable."""
    counters, step = _count_in_steps(is_checked=True)
    for _ in range(3):
        step(1)
    yield _fail("a check fails", lambda: step(1, limit=3), counters, step, 3)
    room = _memory("bytes_limit")
    if room is None:
        yield "out of memory", f"how much there is: {_UNTOLD}", SKIPPED
    else:
        yield from run_out(room)


def run_out(room: int) -> Iterator[Row]:
    """Let a step run out of memory in its first run, and another one in a later one.

    Args:
        room: the bytes that there are.
    """
    counters, step = _count_in_steps(is_checked=False)
    step(1)
    yield _fail("out of memory, first run", lambda: step(4 * room), counters, step, 1)
    for _ in range(3):
        jax.block_until_ready(step(room // 4))
    ballast = _fill(room // 32)
    late = lambda: step(room // 4)  # noqa: E731
    yield _fail("out of memory, later", late, counters, step, 4, ballast.clear)


def _count_in_steps(*, is_checked: bool) -> tuple[list[jv.Variable], Callable[..., Any]]:
    """Return variables, and a step that adds 1 to each and returns as many bytes as it is told."""
    counters = [jv.Variable(jnp.zeros(1000), name=f"counter{i}") for i in range(8)]

    @jv.compile(static_argnames="size")
    def step(size: int, limit: Any = 2**20) -> Any:
        for counter in counters:
            counter.assign_add(jnp.ones(1000))
        if is_checked:
            jv.debugging.assert_less_equal(counters[0], limit)
        return jnp.zeros(size, jnp.int8) + counters[0][0].astype(jnp.int8)

    return counters, step


def _fill(size: int) -> list[Any]:
    """Return arrays of a size that leave no room for another one."""
    arrays: list[Any] = []
    try:
        while True:
            arrays.append(jax.block_until_ready(jnp.zeros(size, jnp.int8)))
    except (ValueError, RuntimeError):  # jit's fast path makes it a ValueError
        return arrays


def _fail(
    check: str, call: Callable[[], Any], counters: Sequence[jv.Variable], step: Callable[..., Any],
    count: int, release: Callable[[], Any] = lambda: None,
) -> Row:  # fmt: skip
    """Say what a call that has to fail leaves of variables that hold a count; then they hold 1."""
    try:
        jax.block_until_ready(call())
        raised = "no error"
    except Exception as error:  # noqa: BLE001 - JAX has several kinds
        raised = type(error).__name__
    states = _read(counters, count)
    release()
    _clear(counters)
    step(1)
    works = _read(counters, 1) == _BEFORE
    told = f"{raised}; all {states}; then the step {'works' if works else 'does NOT work'}"
    whole = states in (_BEFORE, _AFTER, _TOLD)
    return judge(check, told, whole and works and raised != "no error")


_BEFORE, _AFTER, _TOLD, _WRONG = "as before", "as after it", "lost, as their reads say", "WRONG"


def _read(counters: Iterable[jv.Variable], count: int) -> str:
    """Say what variables hold that a step has added 1 to that often, or once more: one of four."""
    return " and ".join(sorted({_read_one(counter, count) for counter in counters}))


def _read_one(counter: jv.Variable, count: int) -> str:
    try:
        found = np.unique(counter.numpy()).tolist()
    except jv.errors.ExecutionError as error:
        return _TOLD if repr(counter.name) in str(error) else _WRONG
    return _BEFORE if found == [count] else _AFTER if found == [count + 1] else _WRONG


def _clear(counters: Iterable[jv.Variable]) -> None:
    for counter in counters:
        counter.assign(jnp.zeros(1000))


# ---------------------------------------------------------------- Ctrl-C
def interrupts(quick: bool) -> Iterator[Row]:
    """Interrupt steps, and read every variable."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    counters = [jv.Variable(jnp.zeros(1000), name=f"counter{i}") for i in range(8)]
    m = jnp.eye(300)

    @jv.compile
    def step(turns: Any) -> Any:
        work = jax.lax.fori_loop(0, turns, lambda _, x: jnp.tanh(x @ m), m)
        for counter in counters:
            counter.assign_add(jnp.ones(1000) + work[0, 1])
        return work[0, 0]

    step(jnp.int32(1))
    turns, seconds = 1, 0.0
    while seconds < (0.05 if quick else 0.5):
        turns, start = 2 * turns, time.perf_counter()
        jax.block_until_ready(step(jnp.int32(turns)))
        seconds = time.perf_counter() - start
    times, more = (6, 30) if quick else (20, 300)
    delays = np.linspace(0, 2 * seconds, times).tolist()
    long = partial(step, jnp.int32(turns))
    yield _interrupt(f"Ctrl-C, step of {seconds:.2f} s", long, counters, delays)
    delays = np.linspace(0, 5e-3, more).tolist()
    yield _interrupt("Ctrl-C, short steps", partial(step, jnp.int32(1)), counters, delays)


def _interrupt(
    check: str, step: Callable[[], Any], counters: Sequence[jv.Variable], delays: Sequence[float]
) -> Row:
    """Interrupt a step that is called in a loop, after some times, and say what it leaves."""
    states: list[str] = []
    for delay in delays:
        _clear(counters)
        states.append(_read(counters, _call_until_interrupted(step, delay)))
    told = ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))
    return judge(check, f"{len(states)} times: {told}", {*states} <= {_BEFORE, _AFTER})


def _call_until_interrupted(step: Callable[[], Any], delay: float) -> int:
    """Return how often a step has returned before an interrupt came, or was lost in a finalizer."""
    calls, sent = 0, []

    def interrupt() -> None:
        _thread.interrupt_main()
        sent.append(True)

    timer = threading.Timer(delay, interrupt)
    timer.daemon = True
    try:
        timer.start()
        while not sent:
            jax.block_until_ready(step())
            calls += 1
        time.sleep(0.01)  # where it comes, if it has not
    except KeyboardInterrupt:
        pass
    return calls


# ---------------------------------------------------------------- checkpoints
_DTYPES = ("float32", "bfloat16", "float16", "int32", "uint8", "complex64")


def checkpoint(quick: bool) -> Iterator[Row]:
    """Save values on the device, restore them on the CPU, and these on the device again."""
    size = 2**12 if quick else 2**20
    raw = np.random.default_rng(0).integers(0, 256, 8 * size, np.uint8)  # many kinds of NaN, too
    values = {name: raw.view(jnp.dtype(name))[:size] for name in _DTYPES}
    device, cpu = jax.devices()[0], jax.devices("cpu")[0]
    source = _place(values, device)
    with tempfile.TemporaryDirectory() as folder:
        for i, target in enumerate([cpu, device]):
            path = jv.checkpoint.Checkpoint(v=source).save(f"{folder}/{i}")
            source = _place({name: np.zeros_like(x) for name, x in values.items()}, target)
            jv.checkpoint.Checkpoint(v=source).restore(path).assert_consumed()
            equal = [v.numpy().tobytes() == values[name].tobytes() for name, v in source.items()]
            there = all(v.device == target for v in source.values())
            check = f"checkpoint to {target.platform}"
            found = f"{sum(equal)} of {len(equal)} dtypes have equal bits"
            yield judge(check, found, all(equal) and there)


def _place(values: Mapping[str, Any], device: Any) -> dict[str, jv.Variable]:
    with jv.device(device):
        return {name: jv.Variable(value) for name, value in values.items()}


# ---------------------------------------------------------------- tests
_ONE_FILE = "core/test_frames.py"
# They start other processes, which need memory, too, and compare with NumPy.
_FOR_TESTS = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "JAX_DEFAULT_MATMUL_PRECISION": "highest"}


def core_tests(quick: bool) -> Iterator[Row]:
    """Run the tests of the core, in a process that starts before this one uses the devices."""
    check, folder = "tests of the core", Path(jv.__file__).parents[1] / "tests"
    lacking = [name for name in ("pytest", "hypothesis") if find_spec(name) is None]
    if lacking or not (folder / _ONE_FILE).is_file():
        why = f"not installed: {', '.join(lacking)}" if lacking else "no clone of the repository"
        yield check, why, SKIPPED
        return
    options = ["-q", "-o", "addopts=", "-p", "no:cacheprovider", "-m", "not slow and not sweep"]
    command = [sys.executable, "-m", "pytest", *options, folder / (_ONE_FILE if quick else "core")]
    done = subprocess.run(
        command, cwd=folder.parent, env=os.environ | _FOR_TESTS, text=True, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    told = " ".join([*done.stdout.splitlines()[-1:], *failed])
    yield judge(check, shorten(told), done.returncode == 0)
