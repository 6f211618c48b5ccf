"""`python -m jaxvars.tf check`: names in programs, their imports, and runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import rich

from jaxvars.tf.check.command import look_up, main
from jaxvars.tf.registry.absent import WHY

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setattr(rich.get_console(), "width", 300)


@pytest.fixture
def check(tmp_path, capsys):
    """Check a program; return its exit status, and its names with lines and what is said."""

    def run(source, *options, name="a.py"):
        path = tmp_path / name
        if isinstance(source, str):
            source = textwrap.dedent(source).encode()
        path.write_bytes(source)
        status = main([str(path), *options])
        return status, *read(capsys.readouterr().out)

    return run


def read(said):
    cells = re.findall(r"(?m)^│ (\S+) *│ (.*?) *│ (.*?) *│$", said)
    return {name: (lines, what) for name, lines, what in cells}, said


def notebook(*cells, **more):
    made = [
        {"cell_type": "code", "execution_count": 1, "id": str(i), "metadata": {"a": [1, 2.50]},
         "outputs": [{"data": {"text/plain": ["가 import tensorflow as tf\n"]}}],
         "source": textwrap.dedent(cell).strip("\n").splitlines(keepends=True)}
        for i, cell in enumerate(cells)
    ]  # fmt: skip
    made.insert(1, {"cell_type": "markdown", "metadata": {}, "source": "import tensorflow as tf"})
    return {"cells": made, "metadata": {"한": "글"}, "nbformat": 4, "nbformat_minor": 5, **more}


# ---------------------------------------------------------------- names
def test_names_and_what_is_said_of_them(check):
    status, names, said = check("""\
        import tensorflow as tf
        from tensorflow import keras
        from tensorflow.keras.layers import Dense as D, Densee
        import tensorflow.compat.v1 as tf1
        import tensorflow.keras.backend
        import tensorflow_hub as hub, numpy as np; from .tensorflow_own import a
        x = tf.constant([1.0]); y = tf.argsort(x).numpy()
        L = keras.layers
        L.Conv2D(tf.float32.max, D(3), tf.nope(np.tf, hub.load("x")), tensorflow.add(x, x))
        tf1.Session(), tf1.reduce_mean, tf1.gfile.Exists, tf.constant(2)
        tf.app.run(); tf.linalg.LinearOperatorDiag(x).matvec(x)
    """)
    assert status == 1
    assert names["tf.nope"][1].startswith("not there: Did you mean ")
    assert {name: row for name, row in names.items() if row[1] != "there"} == {
        "tf.app": ("11", f"not there: {WHY['app'].rstrip('.')}."),
        "tf.argsort": ("7", "differs: the sort is always stable, and NaN the largest number."),
        "tf.compat.v1.Session": ("10", f"not there: {WHY['Session']}"),
        "tf.compat.v1.reduce_mean": ("10", "not there: use tf.reduce_mean"),
        "tf.keras.layers.Densee": ("3", "not there: Did you mean 'Dense'?"),
        "tf.linalg.LinearOperatorDiag": (
            "11",
            f"not there: {WHY['linalg.LinearOperator*'].rstrip('.')}.",
        ),
        "tf.nope": ("9", names["tf.nope"][1]),
        "tensorflow_hub": ("6", names["tensorflow_hub"][1]),
    }
    assert names["tensorflow_hub"][1].startswith("not there: a package that needs TensorFlow")
    assert names["tensorflow_hub"][1].endswith("Models of the package keras_hub run on JAX.")
    assert {name: row[0] for name, row in names.items() if row[1] == "there"} == {
        "tf.add": "9", "tf.constant": "7, 10", "tf.float32": "9", "tf.keras": "2",
        "tf.compat.v1": "4", "tf.compat.v1.gfile.Exists": "10", "tf.keras.backend": "5",
        "tf.keras.layers": "8", "tf.keras.layers.Conv2D": "9",
        "tf.keras.layers.Dense": "3, 9",
    }  # fmt: skip
    assert said.splitlines()[-1] == "11 of 18 names are there."


def test_names_that_are_something_else(check):
    status, names, _ = check("""\
        import tensorflow as tf
        layers = tf.keras.layers
        def f(tf, *a, k=tf.zeros): return tf.wrong1, [tf.wrong1 for _ in a], lambda: tf.wrong1
        @tf.function
        def g():
            tf = 3
            def h(): return tf.wrong2
            return tf.wrong2
        def rest(): return [tf.wrong3 for tf in range(3)], (lambda tf: tf.wrong3), tf.add
        class A:
            tf = 3
            def call(self): return tf.nn.relu, self.tf.wrong4
        for layers in range(2): layers.wrong5
        def loop(dense=None):
            layer = tf.keras.layers.Dense
            with open(tf.io.x) as tf_file: tf_file.wrong6
            return layer
        def local():
            try:
                import tensorflow.linalg as la
            except ImportError:
                la = None
            return la.det, la.dett
        try:
            import tensorflow as t
        except ImportError:
            t = None
        t.ones, "tf.wrong7"  # tf.wrong8
    """)
    assert status == 1
    assert {name: row[0] for name, row in names.items()} == {
        "tf.zeros": "3", "tf.function": "4", "tf.add": "9", "tf.nn.relu": "12", "tf.io.x": "16",
        "tf.keras.layers": "2", "tf.keras.layers.Dense": "15, 17", "tf.linalg": "20",
        "tf.linalg.det": "23", "tf.linalg.dett": "23", "tf.ones": "28",
    }  # fmt: skip


def test_star_imports(check):
    status, names, _ = check("""\
        import os
        from tensorflow import *
        from tensorflow.keras.layers import *
        def f(x): return constant(x), nn.relu(x), Dense(3), keras.layers.Dens, os.path, abs(x)
        y = f(2); __file__
    """)
    assert {name: row[1] for name, row in names.items()} == {
        "tf.constant": "there", "tf.nn.relu": "there", "tf.keras.layers.Dense": "there",
        "tf.keras.layers.Dens": "not there: Did you mean 'Dense'?",
    }  # fmt: skip
    status, names, _ = check("from tensorflow import *\nfrom os import *\nconstant(getcwd())")
    assert (status, list(names)) == (0, ["tf.constant"])  # `getcwd` may be of either


def test_a_program_of_jaxvars_is_checked_too(check):
    status, names, said = check("from jaxvars import tf\nimport jaxvars.tf as t\ntf.add, t.abs\n")
    assert (status, set(names)) == (0, {"tf.add", "tf.abs"})
    assert said.endswith("2 of 2 names are there.\n")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import tensorflow as tf\nprint 'a'\n", "line 2: Missing parentheses in call to 'print'"),
        ("def f(:\n", "line 1: invalid syntax"),
        ("if 1:\nx\n", "line 2: expected an indented block"),
    ],
)
def test_what_does_not_parse_is_refused(check, source, message):
    status, names, said = check(source, "--rewrite", "--run")
    assert (status, names) == (1, {})
    assert f"a.py: it is not Python 3: {message}" in said


def test_notebooks_with_magics(check):
    source = notebook(
        "%matplotlib inline\n!pip install \\\n  tensorflow\nimport tensorflow as tf",
        "%%bash\ntf.wrong",
        "%%time\nfiles = !ls\nx = %pwd\ntf.add?\n?tf.sub\ny = ('%d'\n  % tf.rank(x))",
        "await tf.nope",
    )
    status, names, _ = check(json.dumps(source).encode(), name="a.ipynb")
    assert (status, {k: v[0] for k, v in names.items()}) == (
        1,
        {"tf.nope": "cell 5, line 1", "tf.rank": "cell 4, line 7"},
    )
    status, _, said = check(json.dumps(notebook("x", "print 1")).encode(), name="a.ipynb")
    assert "it is not Python 3: cell 3, line 1: Missing parentheses" in said
    status, _, said = check(b"[1]", name="a.ipynb")
    assert (status, "a.ipynb: it is not a notebook of format 4" in said) == (1, True)


# ---------------------------------------------------------------- changing them
def test_imports_are_changed_and_nothing_else(check, tmp_path):
    before = (
        "\ufeffimport os, tensorflow as tf  # import tensorflow\r\n"
        "s = '가'; import tensorflow;import tensorflow.keras as k, tensorflow.keras\r\n"
        "from tensorflow.keras import (\r\n  layers, Model)\r\n"
        'x = """\nimport tensorflow as tf\n"""\n'
        "from \\\n  tensorflow import nn\nfrom .tensorflow import a\nimport tensorflow_hub\t\n"
        "import tensorflow.compat.v1 as tf1\nif x:\n\tfrom tensorflow.nope import y"
    )
    status, _, said = check(before.encode(), "--rewrite")
    after = (
        before.replace("os, tensorflow as", "os, jaxvars.tf as")
        .replace("import tensorflow;", "import jaxvars.tf as tensorflow;")
        .replace("import tensorflow.keras as k, tensorflow.keras",
                 "import jaxvars.tf.keras as k, jaxvars.tf as tensorflow")
        .replace("from tensorflow.keras", "from jaxvars.tf.keras")
        .replace("  tensorflow import nn", "  jaxvars.tf import nn")
        .replace("import tensorflow.compat.v1", "import jaxvars.tf.compat.v1")
    )  # fmt: skip
    assert (tmp_path / "a.py").read_bytes() == after.encode()
    assert (status, "a.py: imports changed: 7" in said) == (1, True)
    _, _, said = check(after.encode(), "--rewrite")
    assert "a.py: imports changed: 0" in said


@pytest.mark.parametrize("style", [{"indent": 1, "ensure_ascii": False}, {"indent": 2}, {}])
def test_a_notebook_keeps_all_else(check, tmp_path, style):
    source = notebook("%pip install a\nimport tensorflow as tf\n# 끝", "x = 1")
    before = json.dumps(source, **style) + "\n"
    status, _, _ = check(before.encode(), "--rewrite", name="a.ipynb")
    old = json.dumps("import tensorflow as tf\n", **style)
    new = old.replace("tensorflow", "jaxvars.tf")
    assert (status, before.count(old)) == (0, 1)
    assert (tmp_path / "a.ipynb").read_bytes().decode() == before.replace(old, new)


def test_a_notebook_that_could_not_be_written_as_it_was_is_refused(check, tmp_path):
    data = json.dumps(notebook("import tensorflow as tf"), separators=(" , ", ":")).encode()
    status, _, said = check(data, "--rewrite", name="a.ipynb")
    assert (status, "a.ipynb: its JSON could not be written as it was" in said) == (1, True)
    assert (tmp_path / "a.ipynb").read_bytes() == data


# ---------------------------------------------------------------- running
def test_a_run_says_where_a_program_fails(tmp_path):
    program = "import tensorflow as tf\n@tf.function\ndef f(x):\n    if x > 0:\n        x = x + 1\n"
    program += "    return tf.reshape(x, [3])\nprint(f(tf.constant([1.0, 2.0, 3.0])[0]))\n"
    (tmp_path / "bad.py").write_text(program, "utf-8")
    (tmp_path / "good.py").write_text(
        "import sys, other, tensorflow as tf\nimport tensorflow.keras.optimizers.schedules as s\n"
        "print(tf.ones(1), s.ExponentialDecay)\n"
    )
    (tmp_path / "other.py").write_text("")
    cells = notebook("%time\nimport tensorflow as tf", "def f(): return 1 / 0", "\n\nf()")
    (tmp_path / "cells.ipynb").write_text(json.dumps(cells), "utf-8")
    (tmp_path / "exit.py").write_text("import sys\nsys.exit(3)\n")
    files = ["bad.py", "good.py", "cells.ipynb", "exit.py", "gone.py"]
    done = subprocess.run(
        [sys.executable, "-m", "jaxvars.tf", "check", *(str(tmp_path / f) for f in files), "--run"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = done.stdout
    assert done.returncode == 1, done.stderr
    assert re.search(r"bad.py: line [67]: .*Error.*", said), said
    assert "good.py: runs\n" in said, said[-2000:]
    assert "cells.ipynb: cell 3, line 1: ZeroDivisionError: division by zero\n" in said
    assert "exit.py: exit status 3: no message\n" in said
    assert "No such file or directory" in said


def test_narrow_screens_cut_nothing_off(check, monkeypatch):
    monkeypatch.setattr(rich.get_console(), "width", 80)
    name = "nn.safe_embedding_lookup_sparse"
    _, _, said = check(f"import tensorflow as tf\ntf.{name}")
    cells = re.findall(r"(?m)^│ (.*?) *│ .*? *│ (.*?) *│$", said)
    shown = ["".join(parts).replace(" ", "") for parts in zip(*cells, strict=True)]
    assert shown == [f"tf.{name}", f"not there: {WHY[name]}".replace(" ", "")]


def test_every_name_of_the_page_is_there():
    page = (ROOT / "jaxvars" / "tf" / "NAMES.md").read_text("utf-8").partition("## What is not")[0]
    names = re.findall(r"(?m)^- `tf\.([\w.]+)", page)
    assert len(names) > 1000
    assert [name for name in names if look_up(name)[1].startswith("not there")] == []
    said = {name: look_up(name)[1] for name in ("Variable", "function")}
    assert all(f"*Differs: {what.removeprefix('differs: ')}*" in page for what in said.values())


# ---------------------------------------------------------------- folders
def test_a_folder_is_all_programs_below_it(tmp_path, capsys):
    for name in ("b/c.py", "a.py", "b/note.ipynb", ".git/x.py", "env/lib/y.py", "b/.z.py", "t.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        is_note = path.suffix == ".ipynb"
        path.write_text(json.dumps(notebook("import os")) if is_note else "import tensorflow as tf")
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "none").mkdir()
    assert main([str(tmp_path), str(tmp_path / "a.py")]) == 0
    said = capsys.readouterr().out
    assert said == (
        "".join(
            f"{tmp_path}/{name}: no name of TensorFlow's\n"
            for name in ("a.py", "b/c.py", "b/note.ipynb", "a.py")
        )
        + "0 of 0 names are there.\n"
    )
    assert main([str(tmp_path / "none")]) == 1
    assert "no .py or .ipynb file" in capsys.readouterr().out
