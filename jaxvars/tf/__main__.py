"""What there is of TensorFlow's names, and what differs.

python -m jaxvars.tf                  print the page of all names
python -m jaxvars.tf gather           print the lines whose name holds a word
python -m jaxvars.tf check PATHS...   say which names in programs are there
"""

from __future__ import annotations

import sys

from jaxvars.tf.check.command import main
from jaxvars.tf.page import lines_with, page

if __name__ == "__main__":
    word, *files = sys.argv[1:] or [""]
    if word == "check" and files:
        sys.exit(main(files))
    print("\n".join(lines_with(word)) if word else page(), end="\n" if word else "")
