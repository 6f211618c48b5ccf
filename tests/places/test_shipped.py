"""Programs whose code is shipped in another way than as files of source.

A frozen program, as PyInstaller makes it, has no sources, and its code objects name relative files.
Here JAX, jaxvars and a program are imported by a loader that makes them so.
"""

from __future__ import annotations

import json
import os
import py_compile
import subprocess
import sys
import zipapp
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import json, os
os.environ["AUTOGRAPH_VERBOSITY"] = "0"
import jax, jax.numpy as jnp
import jaxvars as jv
from jaxvars.leaks import holders
from users import Model, bump, wrong

model, optimizer, found = Model(), jv.optimizers.SGD(0.1), {}

@jv.compile
def step(x, y):
    with jv.GradientTape() as tape:
        loss = jnp.mean((model(x) - y) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))
    return loss

def says(f, *args):
    try:
        return str(f(*args))
    except Exception as error:
        return str(error)

x = jnp.linspace(0, 1, 8)
found["losses"] = [round(float(step(x, 2 * x)), 3) for _ in range(3)]
checkpoint = jv.checkpoint.Checkpoint(model=model)
path, w = checkpoint.save("saved.npz"), float(model.w)
model.w.assign(0.0)
checkpoint.restore(path)
found["is_restored"] = float(model.w) == w
found["branch"] = says(wrong, model)
found["transform"] = says(jax.jit(model.set), 1.0)
found["autograph"] = says(bump, model.w)
found["of_library"] = [holders.is_of_library(kind) for kind in (Model, json.JSONDecoder, jax.Array)]

from jaxvars import tf

v = tf.Variable(1.0)

@tf.function
def differentiate(x):
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(v * x)
    return tape.gradient(y, v)

found["tf"] = float(differentiate(tf.constant([3.0])))
found["names"] = says(lambda: tf.stak), says(lambda: tf.data.Dataste)
found["files"] = [f.__code__.co_filename for f in (jax.jit, jv.compile, Model.__init__)]
print(json.dumps(found))
"""
MODULE = """
import jaxvars as jv

class Model(jv.Module):
    def __init__(self):
        self.w = jv.Variable(0.5, name="w")

    def __call__(self, x):
        return self.w * x

    def set(self, x):
        self.w.assign(x)

@jv.compile
def wrong(model):
    if model.w > 0:
        model.w.assign(1.0)

@jv.compile(autograph=True)
def bump(x):
    if x > 0:
        x = x + 1
    return x * 0
"""
FREEZE = """
import sys
from importlib import machinery
from types import CodeType

def moved(code, file):
    consts = [moved(x, file) if isinstance(x, CodeType) else x for x in code.co_consts]
    return code.replace(co_filename=file, co_consts=tuple(consts))

class Frozen(machinery.SourceFileLoader):
    def get_code(self, name):
        end = "/__init__.py" if self.is_package(name) else ".py"
        return moved(super().get_code(name), name.replace(".", "/") + end)

    def get_source(self, name):
        raise ImportError(name)

    def exec_module(self, module):
        if module.__name__.startswith(("jaxvars", "users")):
            module.__file__ = "/frozen/" + module.__name__
        super().exec_module(module)

finders = (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES), (Frozen, [".py"])
sys.path_hooks.insert(0, machinery.FileFinder.path_hook(*finders))
sys.path_importer_cache.clear()
sys.frozen = True
with open(sys.argv[1]) as file:
    exec(compile(file.read(), "program.py", "exec"))
"""


def write(folder: Path) -> Path:
    folder.mkdir()
    (folder / "__main__.py").write_text(PROGRAM)
    (folder / "users.py").write_text(MODULE)
    return folder


def run(folder: Path, *words: str | Path) -> dict[str, Any]:
    """Run a program in a folder; return what it found."""
    paths = os.pathsep.join([str(ROOT), str(folder / "code")])
    environment = {**os.environ, "PYTHONPATH": paths, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, *words], env=environment, cwd=folder, capture_output=True, text=True,
        timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def as_files(folder: Path) -> dict[str, Any]:
    return run(folder, write(folder / "code"))


def as_zip(folder: Path) -> dict[str, Any]:
    zipapp.create_archive(write(folder / "code"), folder / "program.pyz")
    (folder / "code" / "users.py").unlink()
    return run(folder, "program.pyz")


def without_sources(folder: Path) -> dict[str, Any]:
    """Run code that was compiled in another folder, where the source has been edited since."""
    made, sources = folder / "code", write(folder / "sources")
    made.mkdir()
    for file in sources.iterdir():
        py_compile.compile(str(file), str(made / f"{file.stem}.pyc"))
    edit(sources)
    return run(folder, made)


def frozen(folder: Path) -> dict[str, Any]:
    """Run a frozen program in a folder with a file of the name that its code has."""
    write(folder / "code")
    (folder / "users.py").write_text(MODULE)
    edit(folder)
    (folder / "code" / "freeze.py").write_text(FREEZE)
    return run(folder, folder / "code" / "freeze.py", folder / "code" / "__main__.py")


def edit(folder: Path) -> None:
    file = folder / "users.py"
    file.write_text(file.read_text().replace("x * 0", "x * 2"))


PLACES: dict[Callable[[Path], dict[str, Any]], str] = {
    as_files: "0.0",
    as_zip: "0.0",
    without_sources: "source has changed",
    frozen: "source has changed",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_program_runs_however_it_is_shipped(place: Any, tmp_path: Path):
    found = place(tmp_path)
    files = [not Path(file).is_absolute() for file in found["files"]]
    assert files == [place is frozen] * 3
    assert found["losses"] == [0.804, 0.693, 0.597]
    assert found["is_restored"]
    assert found["of_library"] == [False, True, True]
    assert "at users.py:16, in wrong needs to know" in found["branch"]
    assert "is written at users.py:12, in set, inside a plain JAX transform" in found["transform"]
    assert PLACES[place] in found["autograph"]
    assert found["tf"] == 3.0
    assert all("Did you mean" in said for said in found["names"]), found["names"]
