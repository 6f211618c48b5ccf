"""A writer that is the default while a test runs."""

from __future__ import annotations

import pytest

from jaxvars import tensorboard


@pytest.fixture
def writer(tmp_path):
    made = tensorboard.create_file_writer(tmp_path)
    with made.as_default():
        yield made
    made.close()
