"""Compute what TensorFlow says to each line of the programs in `tests/tf/programs`.

    python tests/goldens/make_tf_texts.py             # needs TensorFlow 2.21
    python tests/goldens/make_tf_texts.py tensor      # only this program

Rules of this file:
- it is run manually when lines are added; TensorFlow is not a dependency, and no test needs it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tf")]

import texts  # noqa: E402 - after the path is set


def main() -> None:
    import tensorflow as tf

    for name in set(sys.argv[1:] or texts.SCRIPTS) & set(texts.SCRIPTS):
        printed = "\n".join(texts.printed_by(tf, name)) + "\n"
        (HERE / "tf_texts" / f"{name}.out").write_text(printed)
    for name in sorted(set(sys.argv[1:] or texts.NAMES) & set(texts.NAMES)):
        made = texts.run(tf, name)
        lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in made.items()]
        (HERE / "tf_texts" / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
        print(f"{name}: {len(made)} lines, TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main()
