"""Checkpoints on disk: whole or not at all, every bit verified, nothing trusted."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from jaxvars._checkpoint_files import open_stored, write

FORMS = ["folder", "file.npz"]


@pytest.mark.parametrize("form", FORMS)
def test_values_come_back_with_what_was_said_about_them(tmp_path: Path, form: str):
    path = write(tmp_path / form, {"a/w": jnp.arange(6.0).reshape(2, 3)}, {"step": 3})
    found = open_stored(path)
    assert found.about == {"step": 3}
    np.testing.assert_array_equal(found.value("a/w"), [[0, 1, 2], [3, 4, 5]])
