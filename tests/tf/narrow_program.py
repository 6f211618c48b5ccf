"""Run the examples of operations where 64-bit numbers are off; print those that are not right.

Right is TensorFlow's value in 32 bits, or a refusal that says what is off, of what has 64 bits.
"""

from __future__ import annotations

import itertools
import json
import sys
import warnings
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import cases
import test_tf_rows as rows

import jaxvars.tf as tf

NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
NAMES = (*NARROW, "double")


def check(example: str) -> None:
    golden = rows.GOLDENS[example]
    try:
        got = cases.values(cases.run(tf, example, tf.constant))
    except Exception as error:
        has_wide = any(words["dtype"] in NARROW for words in golden.get("values", ()))
        is_named = has_wide or any(name in example for name in NAMES)
        if "error" in golden or (is_named and "64-bit numbers are off" in str(error)):
            return
        raise
    assert "error" not in golden, "was not refused"
    for x, words in zip(got, golden["values"], strict=True):
        narrow = {**words, "dtype": NARROW.get(words["dtype"], words["dtype"])}
        rows.assert_same(x, narrow, 1e-4)


def failures(examples: list[str]) -> dict[str, str]:
    found = {}
    for example in examples:
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("error", ".*requested dtype.*")  # JAX's, of what it cuts
                check(example)
        except Exception as error:  # noqa: BLE001 - all are told
            found[example] = f"{type(error).__name__}: {error}"
    return found


if __name__ == "__main__":
    assert not jax.config.jax_enable_x64
    count = int(sys.argv[1])
    chosen = [x for name in rows.ROWS for x in itertools.islice(cases.EXAMPLES[name], count)]
    with np.errstate(all="ignore"):
        print(json.dumps(failures(chosen)))
