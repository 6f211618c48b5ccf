"""Compute what TensorFlow gives for each example of `jaxvars.tf`'s operations, and for others.

    python tests/goldens/make_tf_goldens.py        # needs TensorFlow 2.21, and jaxvars
    python tests/goldens/make_tf_goldens.py math nn keras        # only these

"keras" are the expressions of `tests/tf/keras_cases.py`, "operations" what TensorFlow calls each
operation in its log of placements; all others are namespaces.

Rules of this file:
- it is run manually when examples are added; TensorFlow is not a dependency, and no test needs it;
- what TensorFlow refuses is kept as the name of its exception.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tf"), str(HERE.parent.parent)]

import cases  # noqa: E402 - after the path is set
import keras_cases  # noqa: E402


def golden(tf: Any, example: str) -> dict[str, Any]:
    """Return what TensorFlow gives for an example: values, dtypes, and gradients."""
    try:
        results = cases.values(cases.run(tf, example, tf.constant))
    except Exception as error:  # noqa: BLE001 - whatever it raises is the golden
        return {"error": type(error).__name__}
    try:
        grads = cases.gradients(tf, example)
    except Exception:  # noqa: BLE001 - LookupError and others: there is no gradient
        grads = []
    return {
        "values": [words(x) for x in results],
        "gradients": [None if g is None else words(g) for g in grads],
    }


def words(array: np.ndarray) -> dict[str, Any]:
    """Return an array as what JSON can say."""
    if array.dtype.kind in "OSU":
        texts = [x.decode() if isinstance(x, bytes) else str(x) for x in array.ravel()]
        return {"dtype": "string", "shape": list(array.shape), "data": texts}
    plain = array
    if array.dtype.kind == "c":
        plain = np.stack([array.real, array.imag], -1)
    elif array.dtype.kind not in "biuf":
        plain = array.astype(np.float64)  # bfloat16 and the like
    data = [
        str(x) if isinstance(x, float) and not np.isfinite(x) else x for x in plain.ravel().tolist()
    ]
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}


def operations(tf: Any) -> dict[str, str]:
    """Return what TensorFlow runs for each first example, where that is a single operation."""
    from tensorflow.python.framework import op_callbacks

    ran: list[str] = []

    def note(op: Any, inputs: Any, attrs: Any, outputs: Any, *_: Any, **__: Any) -> Any:
        ran.append(op if isinstance(op, str) else op.decode())
        return outputs

    found = {name: examples[0] for name, examples in cases.EXAMPLES.items()}
    for name, example in found.items():
        ran.clear()
        op_callbacks.add_op_callback(note)
        with contextlib.suppress(Exception):
            cases.run(tf, example, tf.constant)
        op_callbacks.remove_op_callback(note)
        found[name] = ran[0] if len(ran) == 1 else ""
    return {name: op for name, op in sorted(found.items()) if op}


def goldens(tf: Any, name: str) -> dict[str, Any]:
    """Return what TensorFlow gives for all examples of a name, by example."""
    if name == "operations":
        return operations(tf)
    if name == "keras":
        return {text: keras_cases.evaluate(tf, text) for text in keras_cases.EXPRESSIONS}
    examples = sorted(example for found in cases.FILES[name].values() for example in found)
    return {example: golden(tf, example) for example in examples}


def main() -> None:
    import tensorflow as tf

    for name in sys.argv[1:] or [*cases.FILES, "keras", "operations"]:
        made = goldens(tf, name)
        lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in made.items()]
        path = HERE / (f"tf/{name}.json" if name in cases.FILES else f"tf_{name}.json")
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        print(f"{name}: {len(made)} examples, TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main()
