"""The table of operations: values, types, gradients and compiled programs equal TensorFlow's.

The goldens were computed by TensorFlow; see `tests/goldens/make_tf_goldens.py`.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
from pathlib import Path

import cases
import numpy as np
import pytest

from jaxvars import tf

FILES = sorted((Path(__file__).parent.parent / "goldens" / "tf").glob("*.json"))
GOLDENS = {k: v for file in FILES for k, v in json.loads(file.read_text()).items()}
ROWS = cases.everything()
EXAMPLES = [example for row in ROWS.values() for example in row.examples]
FIRST = [row.examples[0] for row in ROWS.values() if row.examples]


def array(words):
    if words["dtype"] == "string":
        return np.array([x.encode() for x in words["data"]], object).reshape(words["shape"])
    data = np.array([float(x) if isinstance(x, str) else x for x in words["data"]])
    if words["dtype"].startswith("complex"):
        data = data.reshape(-1, 2)
        data = data[:, 0] + 1j * data[:, 1]
    return data.reshape(words["shape"])


def assert_same(got, words, tolerance):
    assert (got.dtype.name if got.dtype != object else "string") == words["dtype"]
    assert list(got.shape) == words["shape"]
    wanted = array(words)
    if got.dtype.kind in "fc" or got.dtype.kind not in "biuO":
        coarse = 30 if got.dtype.itemsize == 2 else 1
        np.testing.assert_allclose(
            got.astype(wanted.dtype), wanted, rtol=tolerance * coarse, atol=tolerance * coarse
        )
    else:
        assert got.tolist() == wanted.astype(got.dtype).tolist()


@pytest.mark.parametrize("example", EXAMPLES)
def test_values(example):
    golden = GOLDENS[example]  # if it is missing: run make_tf_goldens.py
    if "error" in golden:
        with pytest.raises(Exception) as caught:  # the type is compared below
            cases.run(tf, example, tf.constant)
        assert type(caught.value).__name__ == golden["error"]
        return
    got = cases.values(cases.run(tf, example, tf.constant))
    assert len(got) == len(golden["values"])
    for x, words in zip(got, golden["values"], strict=True):
        assert_same(x, words, 2e-5)


def has_gradients(example):
    return bool(GOLDENS.get(example, {}).get("gradients"))


def often(row):
    return {*row.examples[:1], *itertools.islice(filter(has_gradients, row.examples), 1)}


OFTEN = set().union(*map(often, [*ROWS.values()][::3]))  # the others take their time: `-m slow`


def sometimes(examples):
    return [pytest.param(e, marks=() if e in OFTEN else pytest.mark.slow) for e in examples]


@pytest.mark.parametrize("example", sometimes(filter(has_gradients, EXAMPLES)))
def test_gradients(example):
    wanted = GOLDENS[example]["gradients"]
    got = cases.gradients(tf, example)
    assert [g is None for g in got] == [g is None for g in wanted]
    for x, words in zip(got, wanted, strict=True):
        if words is not None:
            assert_same(x, words, 1e-4)


@pytest.mark.parametrize(
    "example", sometimes(e for e in FIRST if "error" not in GOLDENS.get(e, {}))
)
def test_compiled_is_eager(example):
    row = next(row for row in ROWS.values() if row.examples[:1] == (example,))
    if row.eager_only:
        pytest.skip(row.eager_only)
    eager = cases.values(cases.run(tf, example, tf.constant))
    for x, y in zip(cases.compiled(tf, example), eager, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def named(path):
    return functools.reduce(getattr, path.split("."), tf)


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_complete(name):
    row = ROWS[name]
    made = named(name)
    assert row.doc.endswith(".")
    assert len(row.examples) >= 3, "three examples or more"
    assert all(example in GOLDENS for example in row.examples), "run make_tf_goldens.py"
    parameters = inspect.signature(made).parameters
    assert list(parameters)[-1] == "name"
    for alias in row.aliases:
        assert named(alias) is made
