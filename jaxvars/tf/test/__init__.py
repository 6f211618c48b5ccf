"""`tf.test`: TensorFlow's test case, for tests that were written with it."""

from __future__ import annotations

import functools
import platform
import unittest
from collections.abc import Callable
from typing import Any

from jaxvars.devices.device import list_devices
from jaxvars.tf.listing import namespace
from jaxvars.tf.test.case import TestCase as TestCase
from jaxvars.tf.test.case import compute_gradient as compute_gradient

main = unittest.main


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Return whether there is a GPU."""
    return bool(list_devices("gpu"))


def gpu_device_name() -> str:
    """Return the name of the first GPU; "" if there is none."""
    return "/device:GPU:0" if list_devices("gpu") else ""


def is_built_with_cuda() -> bool:
    """Return whether JAX has a GPU of NVIDIA."""
    return any("cuda" in str(d.client.platform_version).lower() for d in list_devices("gpu"))


def is_built_with_gpu_support() -> bool:
    """Return whether JAX has GPUs."""
    return is_gpu_available()


def is_built_with_xla() -> bool:
    """Return True."""
    return True


def is_built_with_rocm() -> bool:
    """Return whether JAX has a GPU of AMD."""
    return any("rocm" in str(d.client.platform_version).lower() for d in list_devices("gpu"))


def is_cpu_target_available(target: str) -> bool:
    """Return whether programs are compiled for a kind of CPU: that of this machine.

    >>> is_cpu_target_available("pdp11")
    False
    """
    names = {"amd64": "x86_64", "arm64": "aarch64"}
    machine = platform.machine().lower()
    return target == names.get(machine, machine)


def disable_with_predicate(
    pred: Callable[[], bool], skip_message: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that skips a test where a predicate holds when it is to be run.

    >>> @disable_with_predicate(lambda: True, "not here")
    ... def test(self):
    ...     raise AssertionError
    >>> test(None)
    Traceback (most recent call last):
    unittest.case.SkipTest: not here
    """

    def decorated(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            if pred():
                raise unittest.SkipTest(skip_message)
            return test(*args, **kwargs)

        return run

    return decorated


def with_eager_op_as_function(cls: Any = None, only_as_function: bool = False) -> Any:
    """Return a test case as it is: operations that run eagerly are programs already."""
    return (lambda kind: kind) if cls is None else cls


_ELSEWHERE = {
    "Benchmark": "jaxvars.profiler.profile shows where the time of a step goes",
    "benchmark_config": "there are no sessions to configure",
    "assert_equal_graph_def": "there are no graphs to compare",
    "create_local_cluster": "jaxvars.launch starts processes",
    "experimental": "there is nothing to wait for but values: tensor.numpy()",
}


__getattr__, __dir__ = namespace(__name__, _ELSEWHERE)
