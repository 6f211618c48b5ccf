"""Tests of the page of names, and of what `dir` lists."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jaxvars.tf as tf
from jaxvars.tf import page as _page
from jaxvars.tf.listing import HOMES

PAGE = Path(tf.__file__).with_name("NAMES.md")
LINES = _page.page().splitlines()
NAMES = {line[3:].partition("`")[0].partition("(")[0] for line in LINES if line.startswith("- `")}


def test_the_page_in_the_tree_is_the_one_that_is_made_now():
    assert PAGE.read_text() == _page.page(), "run: python -m jaxvars.tf > jaxvars/tf/NAMES.md"


def test_every_operation_is_on_the_page():
    assert {f"tf.{name}" for name in HOMES} <= NAMES


def test_every_public_name_is_on_the_page():
    namespaces = _page.namespaces()
    for space in ("", "math", "nn", "random", "train", "errors", "debugging"):
        module = namespaces[space]
        listed = {name for name in dir(module) if name not in namespaces}
        prefix = f"tf.{space}." if space else "tf."
        modules = {name for name in listed if type(getattr(module, name)) is type(tf)}
        groups = {name for name in listed if any(n.startswith(f"{prefix}{name}.") for n in NAMES)}
        assert {f"{prefix}{name}" for name in listed - modules - groups} <= NAMES, space


def test_a_line_says_signature_what_it_does_and_what_differs():
    (line,) = [line for line in LINES if line.startswith("- `tf.boolean_mask(")]
    assert line == (
        "- `tf.boolean_mask(tensor, mask, axis=None, name=None)`: Take the elements or slices for "
        "which a mask is true. *Differs: inside a `tf.function` the mask must be known.*"
    )
    assert "- `tf.add`: `tf.math.add`." in LINES


def test_what_is_not_there_is_on_the_page_with_the_reason():
    (line,) = [line for line in LINES if line.startswith("- `tf.xla`")]
    assert "@tf.function is enough" in line
    (line,) = [line for line in LINES if line.startswith("- `tf.linalg.LinearOperator")]
    assert line.startswith("- `tf.linalg.LinearOperator*`: use the dense matrix, with tf.linalg")
    assert "- `tf.nn.dilation2d`: use tf.nn.max_pool2d(x, ...), for a flat filter." in LINES


def test_a_name_that_a_module_only_changes_is_not_public():
    assert "HOMES" not in dir(tf.nn)


def test_the_program_prints_the_lines_of_a_word():
    program = [sys.executable, "-m", "jaxvars.tf", "check"]  # a word, where no files follow
    said = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert said.startswith("- `tf.debugging.check_numerics(tensor, ")
    assert all("check" in line.partition("(")[0] for line in said.splitlines())


def test_the_program_prints_them_without_keras(run_python):
    program = (
        "import runpy, sys; sys.modules['keras'] = None; sys.argv[1:] = ['gather']\n"
        "runpy.run_module('jaxvars.tf', run_name='__main__')"
    )
    done = run_python("-c", program)
    assert done.stdout.splitlines() == _page.lines_with("gather")


def test_dir_lists_operations_and_nothing_that_is_not_public():
    assert {"concat", "Variable", "math", "float32", "newaxis", "keras"} <= set(dir(tf))
    assert {"reduce_sum", "special"} <= set(dir(tf.math))
    assert not {"ROWS", "operations", "annotations", "jax", "importlib"} & {*dir(tf), *dir(tf.math)}
    assert "bessel_j0" in dir(tf.math.special)
