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
from jaxvars.tf.math import reduce
from jaxvars.tf.registry.rows import name_of

FILES = sorted((Path(__file__).parent.parent / "goldens" / "tf").glob("*.json"))
GOLDENS = {k: v for file in FILES for k, v in json.loads(file.read_text()).items()}
ROWS = cases.everything()
EXAMPLES = [example for name in ROWS for example in cases.EXAMPLES[name]]
FIRST = {cases.EXAMPLES[name][0]: row for name, row in ROWS.items()}


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


OTHERWISE = {
    "pad": "Pad",  # PadV2, where the padding is not 0
    "split": "SplitV",  # Split, where a number of parts is given
}


def test_names_of_operations():
    names = json.loads((FILES[0].parent.parent / "tf_operations.json").read_text())
    assert len(names) > 200
    assert {name: name_of(ROWS[name]) for name in names} == {**names, **OTHERWISE}


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


def often(name):
    examples = cases.EXAMPLES[name]
    return {examples[0], *itertools.islice(filter(has_gradients, examples), 1)}


OFTEN = set().union(*map(often, [*ROWS][::3]))  # the others take their time: `-m slow`


def sometimes(examples):
    return [pytest.param(e, marks=() if e in OFTEN else pytest.mark.slow) for e in examples]


@pytest.mark.parametrize("example", sometimes(filter(has_gradients, EXAMPLES)))
def test_gradients_of_rows(example):
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
    if why := FIRST[example].eager_only:
        pytest.skip(why)
    eager = cases.values(cases.run(tf, example, tf.constant))
    for x, y in zip(cases.compiled(tf, example), eager, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def named(path):
    return functools.reduce(getattr, path.split("."), tf)


def test_rows_are_complete():
    for name, row in ROWS.items():
        made, examples = named(name), cases.EXAMPLES[name]
        said = [" ".join(part.split()) for part in inspect.getdoc(made).split("\n\n")]
        assert said[0].endswith("."), name
        assert said[1] == " ".join(f"Example: `tf.{examples[0]}`.".split())
        assert len(examples) >= 3, (name, "three examples or more")
        assert all(example in GOLDENS for example in examples), (name, "run make_tf_goldens.py")
        assert list(inspect.signature(made).parameters)[-1] == "name", name
        assert all(named(alias) is made for alias in row.aliases), name


def test_every_example_is_of_a_row():
    assert set(cases.EXAMPLES) == set(ROWS)


def test_an_operation_leads_to_its_def():
    below = inspect.unwrap(tf.reduce_sum)
    assert below.__code__.co_filename == inspect.getsourcefile(reduce)
    assert inspect.getsource(tf.reduce_sum).startswith('@op("math.reduce_sum", ')
    assert tf.reduce_sum is tf.math.reduce_sum is reduce.reduce_sum


def test_a_traceback_shows_the_def_even_when_an_argument_is_refused():
    with pytest.raises(ValueError, match="convert") as caught:
        tf.reduce_sum(object())
    frame = next(frame for frame in caught.traceback if frame.name == "tf.math.reduce_sum")
    assert str(frame.path) == inspect.getsourcefile(reduce)
    assert frame.statement.lines[0].startswith('@op("math.reduce_sum", ')


MANY_PARTS = [
    "math.ndtri([0.5])", "image.sobel_edges(x)", "reverse_sequence(x[0, :, :, 0], [2, 3], 1)",
    "scatter_nd([[1], [3]], [1.0, 2.0], [4])",
]  # fmt: skip


def test_operations_of_many_parts_are_few_programs(run_python):
    code = """
import sys, jax, jax.monitoring, numpy as np, jaxvars.tf as tf
made = []
def note(name, *_, **__):
    made.append(name)
jax.monitoring.register_event_duration_secs_listener(note)
x = tf.constant(np.ones([1, 2, 3, 1], np.float32))
for example in sys.argv[1:]:
    made.clear()
    eval("tf." + example)
    print(sum(name.endswith("backend_compile_duration") for name in made))
"""
    done = run_python("-c", code, *MANY_PARTS, JAX_ENABLE_X64="1")
    counts = list(map(int, done.stdout.split()))
    assert len(counts) == len(MANY_PARTS), done.stderr
    assert max(counts) <= 12, counts
