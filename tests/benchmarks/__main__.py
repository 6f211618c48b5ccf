"""All benchmarks, one after the other, each in a process of its own: tables, and one JSON.

python -m tests.benchmarks [--quick] [--only dispatch,looks] [--json figures.json]
python -m tests.benchmarks --readme      # the README's table, measured now
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.measuring import HERE, Effort, environment, parser_of

NAMES = ("dispatch", "looks", "eager", "memory", "scaling", "peers", "tf_programs")


def figures_of(name: str, effort: Effort) -> dict[str, Any]:
    """Run a benchmark, which prints its tables; return its figures."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures.json"
        flags = [f"--{effort.name.lower()}"] if effort else []
        command = [sys.executable, str(HERE / f"{name}.py"), *flags, "--json", str(path)]
        subprocess.run(command, check=True, env=environment())
        return json.loads(path.read_text())


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--only", help=f"names with commas between: {', '.join(NAMES)}")
    parser.add_argument("--readme", action="store_true", help="print the README's table alone")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else ["peers"] if options.readme else NAMES
    if unknown := set(names) - set(NAMES):
        parser.error(f"there is no {', '.join(sorted(unknown))}: there are {', '.join(NAMES)}")
    found: dict[str, Any] = {}
    for name in NAMES:
        if name in names:
            print(f"== {name}", flush=True)
            found |= figures_of(name, options.effort)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.readme:
        sys.path.append(str(HERE))  # benchmarks are programs, beside what they share
        from tests.benchmarks.peers import readme

        print(readme(found["peers"]))


if __name__ == "__main__":
    main()
