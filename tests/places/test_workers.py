"""Compiled functions in other processes: with what pickle, cloudpickle, joblib, dask and ray send.

A program trains, so that its variables have other values than in a fresh import of it, and sends
functions. One sent by value brings those values; one sent by name is what the worker imports.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import nbclient
import nbformat
import pytest

import jaxvars as jv
import jaxvars.tf as tf

ROOT = Path(__file__).resolve().parent.parent.parent

MODULE = """
import jaxvars as jv

w = jv.Variable(1.0)

@jv.compile
def step(x):
    w.assign_add(x)
    return w * 10

class Model(jv.Module):
    def __init__(self):
        self.v = jv.Variable(2.0)
        self.fast = jv.compile(self.slow)

    def slow(self, x):
        self.v.assign_add(x)
        return self.v * 2

    @jv.compile
    def call(self, x):
        return self.v * x

    twice = jv.compile(slow)
"""

PROGRAM = """
import functools, json, pickle, subprocess, sys, warnings
warnings.simplefilter("ignore")
import cloudpickle
import jax, jax.numpy as jnp
import jaxvars as jv
import jaxvars.tf as tf
import imported

w = jv.Variable(1.0, name="w")

@jv.compile
def step(x):
    w.assign_add(x)
    return w * 10

def plain(x):
    return step(x) + 1

def closure():
    v = jv.Variable(5.0)

    @jv.compile
    def inner(x):
        v.assign_add(x)
        return v + 0
    return inner

def raw(x, k=3.0):
    w.assign_add(x)
    return w * k

@jv.compile(static_argnames="n")
def recursive(x, n):
    return x if n == 0 else recursive(x, n - 1) * w

@tf.function
def graph(x):
    w.assign_add(x)
    return tf.convert_to_tensor(w) * 2

@tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
def signed(x):
    return x * w

class Model(jv.Module):
    def __init__(self):
        self.v = jv.Variable(2.0)
        self.fast = jv.compile(self.slow)
        self.of_its_own = self.call

    @jv.compile
    def call(self, x):
        return self.v * x

    def slow(self, x):
        self.v.assign_add(x)
        return self.v * 2

    twice = jv.compile(slow)

    @tf.function
    def graph(self, x):
        return tf.convert_to_tensor(x) * self.v

@jv.recompute
def recomputed(x):
    return jnp.sin(x) * w

@jv.custom_gradient
def with_rule(x):
    return x * w, lambda upstream, variables=None: (upstream, [upstream * 0])

@tf.recompute_grad
def tf_recomputed(x):
    return x * 2.0

class Absolute(jv.Module):
    def size(self, x):
        return -x if x < 0 else x

def positive(x):
    if x > 5:
        return Absolute().size(-x)
    return x

@jv.compile(autograph=True)
def converted(x):
    if x > 0:
        x = positive(x) * w
    while x < 100:
        x = x * 2
    return x

@tf.function
def tf_converted(x):
    for _ in tf.range(3):
        if x < 10.0:
            x = x * 2.0
    return x

class Clipped(jv.Module):
    @jv.compile(autograph=True)
    def call(self, x):
        return x if x < 1 else x * 0 + 1

named, anonymous = jv.compile(raw), jv.compile(lambda x: w * x)
pure = jv.functionalize(step)
both = [step, named, w]  # one variable, in one message

def in_pure(x):
    state = jv.State.of(w)
    return pure(state, x)[0]

def at_once(x):
    first, second, variable = both
    return first(x) + second(x) * 0 + variable * 0 + w * 0

WORKER = '''
import json, pickle, sys, warnings
warnings.simplefilter("ignore")
import jax
found = {}
for name, blob in pickle.load(sys.stdin.buffer).items():
    f, args = pickle.loads(blob)
    found[name] = [[float(x) for x in jax.tree.leaves(f(*args))] for _ in range(2)]
print(json.dumps(found))
'''

if __name__ == "__main__":
    model, other = Model(), imported.Model()
    model.v.assign(7.0)
    other.v.assign(4.0)
    w.assign(3.0)
    imported.w.assign(30.0)
    partial = jv.compile(functools.partial(raw, k=2.0))
    cases = {
        "step": (step, 1.0), "plain": (plain, 1.0), "closure": (closure(), 1.0),
        "named": (named, 1.0), "anonymous": (anonymous, 2.0), "partial": (partial, 1.0),
        "recursive": (recursive, 2.0, 3), "its body": (recursive.python_function, 2.0, 3),
        "method": (model.call, 2.0), "attribute": (model.fast, 1.0), "alias": (model.twice, 1.0),
        "plain method": (model.slow, 1.0), "pure": (in_pure, 1.0), "at once": (at_once, 1.0),
        "graph": (graph, 1.0), "signed": (signed, 2.0), "graph method": (model.graph, 2.0),
        "converted": (converted, 6.0), "tf converted": (tf_converted, jnp.float32(3.0)),
        "converted method": (Clipped().call, 4.0),
        "recomputed": (recomputed, 1.0), "rule": (with_rule, 2.0), "tf rule": (tf_recomputed, 2.0),
    }
    of_a_module = {
        "module": (imported.step, 1.0), "module method": (other.call, 2.0),
        "module attribute": (other.fast, 1.0), "module alias": (other.twice, 1.0),
    }
    cases |= of_a_module
    blobs = {name: cloudpickle.dumps((f, args)) for name, (f, *args) in cases.items()}
    blobs |= {f"{name}, pickled": pickle.dumps((f, x)) for name, (f, *x) in of_a_module.items()}
    command = [sys.executable, "-c", WORKER]
    done = subprocess.run(command, input=pickle.dumps(blobs), stdout=subprocess.PIPE, check=True)
    here = {}
    for name, (f, *args) in cases.items():
        w.assign(3.0), model.v.assign(7.0), other.v.assign(4.0), imported.w.assign(1.0)
        here[name] = [[float(x) for x in jax.tree.leaves(f(*args))] for _ in range(2)]
    print(done.stdout.decode(), json.dumps(here), sep="")
"""

LIBRARIES = """
import json, multiprocessing, sys, warnings
warnings.simplefilter("ignore")
import jaxvars as jv

w = jv.Variable(1.0, name="w")

@jv.compile
def step(x):
    return w * x

class Model(jv.Module):
    def __init__(self):
        self.v = jv.Variable(2.0)

    @jv.compile
    def call(self, x):
        return self.v * x

    def plain(self, x):
        return float(self.call(x))

def plain(x):
    return float(step(x))

def send(f, xs):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        yield pool.map(f, xs)  # by name: the worker's own import of this file
    import joblib
    yield joblib.Parallel(n_jobs=1 + 1)(joblib.delayed(f)(x) for x in xs)
    import dask
    yield dask.compute(*[dask.delayed(f)(x) for x in xs], scheduler="processes", num_workers=1)
    if "ray" in sys.argv:
        import ray
        yield ray.get([ray.remote(plain).remote(x) for x in xs])

if __name__ == "__main__":
    w.assign(10.0)
    model = Model()
    model.v.assign(5.0)
    for f in (step, model.plain):
        print(json.dumps([[float(x) for x in found] for found in send(f, [1.0, 2.0])]))
"""


def run(folder: Path, program: str, *arguments: str) -> list[Any]:
    """Run a program as a script, beside the module that it imports; return the lines of JSON."""
    (folder / "imported.py").write_text(MODULE)
    script = folder / "program.py"
    script.write_text(program)
    paths = os.pathsep.join([str(ROOT), str(folder)])
    environment = {**os.environ, "PYTHONPATH": paths, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, str(script), *arguments]
    done = subprocess.run(
        command,
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line[:1] in "[{"]


def test_what_cloudpickle_sends_is_what_is_here(tmp_path: Path):
    there, here = run(tmp_path, PROGRAM)
    by_name = {name: there.pop(f"{name}, pickled") for name in here if name.startswith("module")}
    assert there == here
    assert there["step"] == [[40.0], [50.0]]  # of the program that has trained: w is 3
    assert there["module"] == [[20.0], [30.0]]  # of the worker's import: w is 1, and not 30
    assert by_name["module"] == [[40.0], [50.0]]  # it was the same object as the one before


def test_libraries_that_send_functions(tmp_path: Path):
    function, method = run(tmp_path, LIBRARIES)
    assert function == [[1.0, 2.0], [10.0, 20.0], [10.0, 20.0]]
    assert method == [[5.0, 10.0]] * 3


@pytest.mark.slow
def test_ray_sends_functions(tmp_path: Path):
    pytest.importorskip("ray")
    assert [found[-1] for found in run(tmp_path, LIBRARIES, "ray")] == [[10.0, 20.0]] * 2


def test_functions_of_a_notebook(tmp_path: Path):
    """What a cell defines is sent by value: a notebook is `__main__`."""
    cells = [
        "import jaxvars as jv\nw = jv.Variable(1.)\ndef half(x):\n    return x / 2 if x > 5 else x",
        "@jv.compile(autograph=True)\ndef step(x):\n    x = w * x\n    return half(x)",
        "await __import__('asyncio').sleep(0)\nw.assign(10.0)\nimport joblib",
        "print(joblib.Parallel(n_jobs=2)(joblib.delayed(step)(float(x)) for x in (1, 2)))",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(x) for x in cells])
    nbclient.NotebookClient(notebook, timeout=240, kernel_name="python3").execute()
    assert (
        "Array(5., dtype=float32), Array(10., dtype=float32)" in notebook.cells[-1].outputs[0].text
    )


CELLS = """
import linecache, subprocess, sys, cloudpickle

def run_cell(name, text):
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    exec(compile(text, name, "exec"), globals())

run_cell("<cell 0>", '''
import jaxvars as jv

@jv.compile(autograph=True)
def step(x):
    return x * 10 if x > 0 else x
''')
for i in range(1, int(sys.argv[1])):
    run_cell(f"<cell {i}>", f"def f{i}(x): return x + {i}")
worker = "import pickle, sys; print([float(pickle.load(sys.stdin.buffer)(2.0))])"
given = cloudpickle.dumps(step)
done = subprocess.run([sys.executable, "-c", worker], input=given, capture_output=True)
print(done.stdout.decode().strip() or done.stderr.decode())
"""


@pytest.mark.parametrize("count", [100, 5000])
def test_a_function_of_a_notebook_with_many_cells(tmp_path: Path, count: int):
    assert run(tmp_path, CELLS, str(count)) == [[20.0]]


EDITED = """
import subprocess, sys, cloudpickle
import jaxvars as jv

@jv.compile(autograph=True)
def step(x):
    return x * 10 if x > 0 else x

if __name__ == "__main__":
    if "traced" in sys.argv:
        step(1.0)
    with open(__file__, "r+") as file:
        text = file.read().replace("* 10", "* 99")
        file.seek(0), file.write(text)
    worker = "import pickle, sys; print([float(pickle.load(sys.stdin.buffer)(2.0))])"
    given = cloudpickle.dumps(step)
    done = subprocess.run([sys.executable, "-c", worker], input=given, capture_output=True)
    print(done.stdout.decode().strip() or [int(b"its source is not available" in done.stderr)])
"""


def test_a_file_that_was_edited_before_its_function_is_sent_is_not_the_source(tmp_path: Path):
    assert run(tmp_path, EDITED, "traced") == [[20.0]]  # by the source that was read here
    assert run(tmp_path, EDITED) == [[1]]


def test_what_has_no_name_is_refused_as_a_function_is():
    function = jv.compile(lambda x: x)
    with pytest.raises((pickle.PicklingError, AttributeError), match="<lambda>"):
        pickle.dumps(function)
    assert copy.copy(function) is function


def test_a_method_is_pickled_as_itself_and_not_by_its_name():
    class Scaled(jv.Module):
        def __init__(self) -> None:
            self.v = jv.Variable(2.0)

        def times(self, x: Any) -> Any:
            return self.v * x

        fast = jv.compile(times)

    model = Scaled()
    made = cloudpickle.loads(cloudpickle.dumps(model.fast))
    assert type(made) is type(model.fast)
    assert float(made(3.0)) == 6.0


def test_a_function_that_was_decorated_in_place_is_sent_as_it_is_now():
    function = tf.function(lambda x: x * 2.0)
    assert float(cloudpickle.loads(cloudpickle.dumps(function))(3.0)) == 6.0
    function._decorate(lambda f: lambda x: f(x) + 1.0)
    assert float(cloudpickle.loads(cloudpickle.dumps(function))(3.0)) == 7.0


def add_one(f: Any) -> Any:
    @functools.wraps(f)
    def added(x: Any) -> Any:
        return f(x) + 1.0

    return added


@jv.compile
def doubled(x: Any) -> Any:
    return x * 2.0


class Named(jv.Module):
    factor = 3.0

    @classmethod
    @jv.compile
    def scaled(cls, x: Any) -> Any:
        return x * cls.factor

    @classmethod
    @tf.function
    def graph_scaled(cls, x: Any) -> Any:
        return x * cls.factor

    @jv.compile
    def method(self, x: Any) -> Any:
        return x * 5.0


@pytest.mark.parametrize("compiled", [jv.compile, tf.function])
def test_what_a_decorator_wraps_is_sent_after_a_call(compiled: Any):
    v = jv.Variable(3.0)
    function = compiled(lambda x: v * x)
    wrapped, pure = add_one(function), jv.functionalize(function)
    assert float(wrapped(2.0)) == 7.0
    made, made_pure, variable = cloudpickle.loads(cloudpickle.dumps((wrapped, pure, v)))
    variable.assign(4.0)
    assert float(made(2.0)) == 9.0
    assert float(made_pure(jv.State.of(variable), 2.0)[0]) == 8.0
    assert float(wrapped(2.0)) == 7.0
    assert not {"python_function", "_anchor", "_options"} & vars(wrapped).keys()


@pytest.mark.parametrize("inner", [jv.compile, tf.function])
def test_a_function_of_a_compiled_one_has_its_own_options_and_is_sent_as_itself(inner: Any):
    signature = [tf.TensorSpec([None], tf.float32)]
    within = inner(lambda x: tf.reduce_sum(x) * 2.0)
    cloudpickle.dumps(within)
    for given in (within, add_one(within)):
        function = tf.function(given, input_signature=signature)
        made = cloudpickle.loads(cloudpickle.dumps(function))
        assert made.python_function is not within
        assert made.input_signature == function.input_signature == tuple(signature)
        assert float(made([1.0, 2.0])) == float(function([1.0, 2.0]))


@pytest.mark.parametrize("compiled", [jv.compile, tf.function])
def test_attributes_of_a_function_are_sent_and_copied(compiled: Any):
    function = compiled(lambda x: x * function.scale)
    function.scale, function.itself = jv.Variable(4.0), function
    for made in (cloudpickle.loads(cloudpickle.dumps(function)), copy.deepcopy(function)):
        assert made.itself is made is not function
        assert float(made.scale) == 4.0
        assert made.scale is not function.scale
    made = cloudpickle.loads(cloudpickle.dumps(function))
    made.scale.assign(5.0)
    assert [float(made(2.0)), float(function(2.0))] == [10.0, 8.0]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_what_has_a_name_is_pickled_by_every_protocol(protocol: int):
    for function in (doubled, Named.method):
        assert pickle.loads(pickle.dumps(function, protocol)) is function
    assert float(pickle.loads(pickle.dumps(Named().method, protocol))(2.0)) == 10.0


@pytest.mark.parametrize("method", [Named.scaled, Named.graph_scaled])
def test_a_method_of_a_class_is_pickled_by_its_name(method: Any):
    made = pickle.loads(pickle.dumps(method))
    assert made.__self__ is Named
    assert float(made(2.0)) == 6.0
    assert pickle.dumps(made) == pickle.dumps(method)  # the names alone


def test_joblib_knows_a_function_again():
    before = joblib.hash(doubled)
    doubled(1.0)
    assert joblib.hash(doubled) == before
    assert joblib.hash(Named.method) != before
