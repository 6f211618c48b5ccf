"""`jaxvars.tf` switches 64-bit types on when imported; here they are on for its tests alone.

`JAX_ENABLE_X64`, which `tests/conftest.py` sets, keeps the import from switching them on for all.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True)
def _numbers_of_64_bits() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def keras_on_jax(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERAS_BACKEND", "jax")  # both are read when keras is imported
        patch.setenv("KERAS_HOME", str(tmp_path_factory.mktemp("keras")))
        pytest.importorskip("keras")
        yield
