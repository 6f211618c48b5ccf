"""`tf.test`: TensorFlow's test case, for tests that were written with it."""

from __future__ import annotations

import unittest
from typing import Any

from jaxvars.devices.device import list_devices
from jaxvars.tf.listing import namespace
from jaxvars.tf.test.case import TestCase as TestCase

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


__getattr__, __dir__ = namespace(__name__)
