"""Compute what TensorFlow's linear operators give.

    python tests/goldens/make_tf_operator_goldens.py    # needs TensorFlow 2.21

It is run manually when operators are added; TensorFlow is not a dependency, and no test needs it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tf")]

import linear_operator_cases as cases  # noqa: E402 - after the path is set


def main() -> None:
    import tensorflow as tf

    made = {name: cases.facts(make()) for name, make in cases.operators(tf).items()}
    lines = [f"{json.dumps(name)}: {json.dumps(facts)}" for name, facts in made.items()]
    (HERE / "tf_linear_operators.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(made)} operators, TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main()
