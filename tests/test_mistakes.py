"""Typical mistakes: what is raised, the words that teach, and a traceback of the user's lines.

Each program runs as a cell of IPython, as in a notebook: what it shows there is what counts.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any, NamedTuple

import pytest

MOST_LINES = 25


class Mistake(NamedTuple):
    """A program, and what it raises.

    Attributes:
        program: the cell; names that `_SETUP` made are there.
        error: the name of the exception.
        words: what the message holds.
    """

    program: str
    error: str
    words: tuple[str, ...]


_SETUP = """
import jax, jax.numpy as jnp, numpy as np, jaxvars as jv
x, v = jnp.ones(3), jv.Variable(jnp.ones(3), name="w")
class Model(jv.Module):
    def __init__(self):
        self.w = jv.Variable(1.0, name="w")
model, kept = Model(), []
"""

MISTAKES = {
    "if": Mistake(
        "@jv.compile\ndef f(n):\n    if n > 0:\n        return n\n    return -n\nf(x[0])",
        "ControlFlowError",
        ("Python's `if`", "Cell In[1], line 3, in f", "autograph=True", "jv.cond("),
    ),
    "range": Mistake(
        "@jv.compile\ndef f(n):\n    return [0 for i in range(n)]\nf(3)",
        "ControlFlowError",
        ("needs to know a number", "line 3", "static_argnames", "jv.fori_loop("),
    ),
    "zeros": Mistake(
        "@jv.compile\ndef f(n):\n    return jnp.zeros(n)\nf(3)",
        "ControlFlowError",
        ("needs to know a number", "line 3", "or a shape", "static_argnames"),
    ),
    "NumPy": Mistake(
        "@jv.compile\ndef f(x):\n    return np.sin(x)\nf(x)",
        "ControlFlowError",
        ("NumPy at Cell In[1], line 3, in f", "jnp.sin(x)    # not: np.sin(x)", "pure_callback"),
    ),
    "numpy()": Mistake(
        "@jv.compile\ndef f():\n    return v.numpy()\nf()",
        "ControlFlowError",
        ("NumPy at Cell In[1], line 3", "`v.numpy()`", "use NumPy outside"),
    ),
    "leaked tracer": Mistake(
        "@jv.compile\ndef f(n):\n    kept.append(n)\nf(1.0)\nkept[0] + 1",
        "UnexpectedTracerError",
        ("was f at Cell In[1], line 1 traced for jv.compile",),
    ),
    "the user's own": Mistake(
        '@jv.compile\ndef f(x):\n    raise KeyError("mine")\nf(x)', "KeyError", ("mine",)
    ),
    "shapes in a function": Mistake(
        "@jv.compile\ndef f(x):\n    return x @ jnp.ones((2, 2))\nf(x)",
        "TypeError",
        ("(2,)", "(3,)"),
    ),
    "a second creation": Mistake(
        "@jv.compile\ndef f(x):\n    return jv.Variable(x) + 0\nf(x)",
        "CreationError",
        ("created", "self.w"),
    ),
    "write in jit": Mistake(
        "jax.jit(lambda x: v.assign(x))(x)",
        "ForeignTransformError",
        ("'w'", "Use @jv.compile instead of jax.jit", "jv.functionalize"),
    ),
    "a tape used twice": Mistake(
        "with jv.GradientTape() as tape:\n    y = v * 2\ntape.gradient(y, v)\ntape.gradient(y, v)",
        "TapeError",
        ("persistent=True",),
    ),
    "a number watched": Mistake(
        "jv.GradientTape().watch(2.0)", "TapeError", ("x = jnp.asarray(x); tape.watch(x)",)
    ),
    "smaller": Mistake(
        "v.assign(jnp.ones(2))",
        "ShapeError",
        ("(2,)", "'w' of shape (3,)", "Assign a part: v[:2].assign(value)"),
    ),
    "larger": Mistake("v.assign(jnp.ones(4))", "ShapeError", ("the part of the value that fits",)),
    "to be broadcast": Mistake(
        "v.assign(jnp.ones(1))", "ShapeError", ("jnp.broadcast_to(value, (3,))",)
    ),
    "to be reshaped": Mistake(
        "v.assign(jnp.ones((3, 1)))", "ShapeError", ("jnp.reshape(value, (3,))",)
    ),
    "several values": Mistake(
        "jv.Variable([1, 1], [2, 3])",
        "TypeError",
        ("one value", "Cell In[1], line 1", "jv.Variable([[1, 1], [2, 3]])"),
    ),
    "an operand": Mistake(
        "v @ jnp.ones(2)", "TypeError", ("(3,) and (2,)", "The Variable 'w' is float32[3]")
    ),
    "PyTorch's words": Mistake(
        "v.detach()", "AttributeError", ("Use jax.lax.stop_gradient(v.value)",)
    ),
    "NumPy's words": Mistake("jv.zeros(2)", "AttributeError", ("Use jnp.zeros.",)),
    "a float for integers": Mistake(
        'jv.Variable(1, name="n").assign(0.5)',
        "DtypeError",
        (
            "Cannot assign a Python float to variable 'n' of dtype int32",
            "jnp.round(value).astype('int32')",
        ),
    ),
    "None": Mistake("v.assign(None)", "NotATensorError", ("NoneType, which is not a tensor",)),
    "ragged": Mistake(
        "jv.Variable([[1, 2], [3]])", "NotATensorError", ("its rows have 2 and 1 elements", "Pad")
    ),
    "an unknown size": Mistake(
        "jv.Variable(jnp.ones((2, 2)), shape=(None, 2))",
        "ShapeError",
        ("has an unknown size, None", "(2, 2)"),
    ),
    "value =": Mistake("v.value = 2.0", "AttributeError", ("'w'", "write v.assign(new)")),
    "no such device": Mistake(
        'with jv.device("gpuu"):\n    pass', "DeviceError", ("'gpuu'", "there are: CPU:0")
    ),
    "a typo": Mistake("jv.Varible", "AttributeError", ("Did you mean 'Variable'?",)),
    "a typo in a method": Mistake("v.assignadd", "AttributeError", ("Did you mean 'assign_add'",)),
    "gradients last": Mistake(
        "jv.optimizers.SGD(0.1).apply_gradients([(v, x)])",
        "TypeError",
        ("Gradients come first: apply_gradients(zip(gradients, variables))",),
    ),
    "two arguments": Mistake(
        "jv.optimizers.SGD(0.1).apply_gradients([v], [x])",
        "TypeError",
        ("one argument", "Write apply_gradients(zip(gradients, variables))"),
    ),
    "a gradient of another shape": Mistake(
        "jv.optimizers.SGD(0.1).apply_gradients([(x[:2], v)])",
        "ShapeError",
        ("gradient of variable 'w' has shape (2,)", "in the same order"),
    ),
    "truth": Mistake("bool(v)", "ValueError", ("ambiguous", "jnp.any(v)")),
    "an index": Mistake("v[7]", "IndexError", ("'w' of shape (3,)", "out of bounds")),
}

_RUN = """
import contextlib, io, json, re, sys
from IPython.core.interactiveshell import InteractiveShell

setup, programs = json.load(sys.stdin)
shell, shown = InteractiveShell.instance(colors="nocolor"), {}
shell.run_cell(setup)
for name, program in programs.items():
    shell.execution_count = 1
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        result = shell.run_cell(program, store_history=False)
    error = result.error_in_exec
    shown[name] = type(error).__name__, str(error), re.sub(r"\\x1b.*?m", "", out.getvalue())
print(json.dumps(shown))
"""


@pytest.fixture(scope="module")
def shown() -> dict[str, list[str]]:
    """For each mistake: the exception, its message, and what IPython shows."""
    programs = {name: mistake.program for name, mistake in MISTAKES.items()}
    return run({}, programs)


def run(environment: dict[str, str], programs: dict[str, str]) -> dict[str, Any]:
    found = subprocess.run(
        [sys.executable, "-c", _RUN],
        input=json.dumps([_SETUP, programs]),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(found.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_explained(name: str, shown: dict[str, list[str]]) -> None:
    error, message, text = shown[name]
    assert error == MISTAKES[name].error
    for words in MISTAKES[name].words:
        assert words in message or words in text  # notes are shown below the message


@pytest.mark.parametrize(
    "name", [name for name in MISTAKES if name != "leaked tracer"]
)  # JAX's own
def test_the_users_lines_are_shown(name: str, shown: dict[str, list[str]]) -> None:
    _, _, text = shown[name]
    assert len(text.splitlines()) <= MOST_LINES
    assert "Cell In[1], line" in text
    for internal in ("staging.py", "leaves[0]", "function.py", "contextlib"):
        assert internal not in text


def test_all_lines_are_shown_when_asked_for() -> None:
    found = run({"JAXVARS_TRACEBACK": "full"}, {"if": MISTAKES["if"].program})
    _, _, text = found["if"]
    assert len(text.splitlines()) > 60
    assert re.search(r"staging.py", text)
