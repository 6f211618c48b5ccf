"""Print what there is of TensorFlow's names, and what differs: `python -m jaxvars.tf [word]`."""

from __future__ import annotations

import sys

from jaxvars.tf.page import lines_with, page

if __name__ == "__main__":
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    print("\n".join(lines_with(word)) if word else page(), end="\n" if word else "")
