"""What every test shares: the machine JAX sees, hypothesis profiles, and a fresh interpreter.

Rules of this file:
- JAX reads its environment once, so it is set here, before any test imports JAX.
- A setting already in the environment wins: `JAX_PLATFORMS=cuda pytest` runs on a GPU, with the CPU
  beside it, without taking all its memory, and with full precision of products.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from many_devices import mark_many_devices
from sweeps import mark_sweeps

ROOT = Path(__file__).resolve().parent.parent

PLATFORMS = os.environ.setdefault("JAX_PLATFORMS", "cpu").split(",")  # as on every machine
if "cpu" not in PLATFORMS:  # strings, maps of `tf.data` and what is computed on the host use it
    os.environ["JAX_PLATFORMS"] = ",".join([*filter(None, PLATFORMS), "cpu"])
if PLATFORMS[0] != "cpu":
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # processes share it
    os.environ.setdefault("JAX_DEFAULT_MATMUL_PRECISION", "highest")  # not TF32, nor bfloat16
# Eight devices, so that placement and sharding are tested on any machine.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
# `jaxvars.tf` switches 64-bit types on, for the whole process, unless this says something.
os.environ.setdefault("JAX_ENABLE_X64", "0")
# XLA compiles in two thirds of the time; `.ci/run` runs the sweeps as programs run for users.
if os.environ["JAX_PLATFORMS"] == "cpu":
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
# Child processes and notebook kernels meet the copy of the package that is under test.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
)
os.environ.setdefault("MPLBACKEND", "agg")  # no test opens a window

# A first call compiles, so the time of one example says nothing.
settings.register_profile("default", deadline=None, max_examples=50)
# The same examples on every run: a red build must mean a change, not luck.
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=1000)
settings.load_profile("ci" if "CI" in os.environ else "default")


collect_ignore = ["typing_programs"]  # for type checkers: half of them are wrong


class _Outside:
    """Settings of what is not in this folder: examples of the package, and notebooks.

    Examples of `jaxvars.tf` have the 64-bit types that its users have; notebooks, of which no
    number is compared, are never compiled with all optimizations.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        import jax

        is_example = "jaxvars/tf/" in item.path.as_posix() and item.path.suffix == ".py"
        wide = jax.enable_x64(True) if is_example else contextlib.nullcontext()
        with pytest.MonkeyPatch.context() as patch, wide:
            if item.path.suffix == ".ipynb":
                patch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
            before = signal.getsignal(signal.SIGTERM)
            try:
                return (yield)
            finally:  # SIGTERM ends pytest after `is_preempted`, too
                signal.signal(signal.SIGTERM, before)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Outside())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Collect no garbage while modules and tests are: they make little, and it takes seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest looks at the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_sweeps(items)
    mark_many_devices(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Run each file in one worker: what its tests compile, another one would compile again."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.fixture(scope="module")
def empty_jit_cache() -> None:
    """Empty the cache of jit, whose `_cache_size` is 0 for what it takes when it is full."""
    import jax

    jax.clear_caches()


@pytest.fixture(scope="module", autouse=True)
def _garbage_of_this_file_alone() -> None:
    """Leave what other files made out of garbage collections, which would look at it each time."""
    if _resident_memory() > _MOST_MEMORY:
        _free_memory()
    gc.collect()
    gc.freeze()


_MOST_MEMORY = 1200 << 20  # bytes, after which a worker drops its programs before the next file


def _resident_memory() -> int:
    """Return how many bytes of memory this process has, or 0 where that is not known."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _free_memory() -> None:
    """Drop the programs that files before this one have compiled, and give their memory back."""
    import jax

    jax.clear_caches()
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):  # glibc keeps it otherwise
        libc.malloc_trim(0)


@pytest.fixture
def run_python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `python *args` in an empty folder: `run_python("-c", code, JAX_ENABLE_X64="1")`.

    What the program printed is in `.stdout` and `.stderr`; the exit status is not checked.
    """

    def run(*args: str, timeout: float = 120, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *args],
            cwd=tmp_path,
            env=os.environ | env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run


@pytest.fixture
def batch() -> Any:
    """An array of float32 ones that XLA on the CPU reads in place, for tests to write to."""
    import numpy as np

    raw = np.ones(2**20 + 16, np.float32)
    start = -raw.ctypes.data % 64 // raw.itemsize
    return raw[start : start + 2**20]


@pytest.fixture
def x64() -> Iterator[None]:
    """Turn 64-bit dtypes on for one test."""
    import jax  # here, so that the environment above is set first

    with jax.enable_x64(True):
        yield


@pytest.fixture
def nothing_seen() -> Iterator[None]:
    """Let no test find the replays and answers that tapes kept of another one."""
    from jaxvars.autodiff import reverse

    known = reverse._SEEN, reverse._ANSWERS, reverse._MET
    for each in known:
        each.clear()
    yield
    for each in known:
        each.clear()
