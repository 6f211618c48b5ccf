"""Examples of operations as strings, run by TensorFlow and by `jaxvars.tf` alike.

A line of a table has the name of an operation and, between bars, the arguments of its examples, or
after "= " an expression as one writes it after `tf.`; it goes on in the lines that are indented.
`tf` is there for more names. The inputs are made by short functions of a shape, from a fixed stream
of random values, so that both get the same:

    r(2, 3) float32     p(2, 3) positive     i(4) int32 in -5..9     b(4) bool     z(2) complex64

Each operation has three examples or more, edge cases among them; its docstring shows the first.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def read(space: str, table: str) -> dict[str, tuple[str, ...]]:
    """Return the examples of a table as expressions, by full name."""
    lines = table.strip().replace("\n    ", " ").splitlines()
    return {
        (full := space + name): tuple(
            row[2:] if row.startswith("= ") else f"{full}({row})" for row in rows.split(" | ")
        )
        for name, rows in (line.split(": ", 1) for line in lines)
    }


FILES: dict[str, dict[str, tuple[str, ...]]] = {}
for found in pkgutil.iter_modules(__path__):
    name, rows = found.name.replace("_", "."), importlib.import_module(f"cases.{found.name}")
    if found.name == "top":
        tables = {x: table for x, table in vars(rows).items() if x.isupper()}
        FILES |= {f"_{x.lower()}": read("", table) for x, table in tables.items()}
    else:
        FILES[name] = read(f"{name}.", rows.EXAMPLES)
"""By the name of the file of goldens: the examples of operations, by full name."""

EXAMPLES = {name: found for examples in FILES.values() for name, found in examples.items()}

Made = Callable[[np.ndarray], Any]


def everything() -> dict[str, Any]:
    """Return all rows of the table by full name: imports each namespace of `jaxvars.tf`."""
    import jaxvars.tf
    from jaxvars.tf.registry.rows import TABLE

    for found in pkgutil.walk_packages(jaxvars.tf.__path__, "jaxvars.tf."):
        importlib.import_module(found.name)
    return dict(sorted(TABLE.items()))


def makers(make: Made) -> dict[str, Callable[..., Any]]:
    """Return the functions that make inputs, again: the first call gives the same each time."""
    stream = np.random.default_rng(7)

    def real(*shape: int) -> Any:
        return make(stream.standard_normal(shape).astype(np.float32))

    def positive(*shape: int) -> Any:
        return make(stream.uniform(0.2, 2.0, shape).astype(np.float32))

    def integers(*shape: int) -> Any:
        return make(stream.integers(-5, 10, shape).astype(np.int32))

    def bools(*shape: int) -> Any:
        return make(np.asarray(stream.integers(0, 2, shape) > 0))

    def complexes(*shape: int) -> Any:
        parts = stream.standard_normal((2, *shape))
        return make((parts[0] + 1j * parts[1]).astype(np.complex64))

    return {"r": real, "p": positive, "i": integers, "b": bools, "z": complexes}


def inputs_of(tf: Any, example: str) -> list[np.ndarray]:
    """Return the arrays that an example needs."""
    found: list[np.ndarray] = []

    def make(array: np.ndarray) -> Any:
        found.append(array)
        return tf.constant(array)

    run(tf, example, make)
    return found


def run(tf: Any, example: str, make: Made) -> list[Any]:
    """Evaluate an example; return its results, flat."""
    made = eval(f"tf.{example}", {"tf": tf, "np": np, "inf": np.inf, "nan": np.nan, **makers(make)})
    return [x for x in tf.nest.flatten(made) if hasattr(x, "dtype")]


def values(results: Sequence[Any]) -> list[np.ndarray]:
    """Return results as NumPy arrays."""
    return [np.asarray(x.numpy(), object if x.dtype.name == "string" else None) for x in results]


def compiled(tf: Any, example: str) -> list[np.ndarray]:
    """Evaluate an example in a `tf.function`, with its inputs as arguments."""
    arrays = inputs_of(tf, example)

    @tf.function(autograph=False)
    def program(*tensors: Any) -> Any:
        given = iter(tensors)
        return run(tf, example, lambda _: next(given))

    return values(program(*map(tf.constant, arrays)))


def gradients(tf: Any, example: str) -> list[np.ndarray | None]:
    """Return the gradient of the sum of all float results with respect to each float input."""
    arrays = inputs_of(tf, example)
    tensors = [tf.constant(array) for array in arrays]
    floats = [x for x in tensors if x.dtype.is_floating]
    given = iter(tensors)
    with tf.GradientTape() as tape:
        for x in floats:
            tape.watch(x)
        results = run(tf, example, lambda _: next(given))
        targets = [tf.reduce_sum(x) for x in results if x.dtype.is_floating]
    if not targets or not floats:
        return []
    found = tape.gradient(targets, floats)
    return [None if g is None else np.asarray(tf.convert_to_tensor(g).numpy()) for g in found]
