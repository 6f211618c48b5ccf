"""Compute what TensorFlow gives for the expressions of `tests/tf/keras_cases.py`.

    python tests/goldens/make_tf_keras_goldens.py       # needs TensorFlow 2.21

It is run manually when expressions are added; TensorFlow is not a dependency, and no test needs it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tf"))

import keras_cases  # noqa: E402 - after the path is set


def main() -> None:
    import tensorflow as tf

    made = {text: keras_cases.evaluate(tf, text) for text in keras_cases.EXPRESSIONS}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in made.items()]
    (HERE / "tf_keras.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
