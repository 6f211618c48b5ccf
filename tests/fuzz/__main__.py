"""`python -m tests.fuzz --minutes 10 --seed 1`: see the package's docstring."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# A number of 16 bits has 16 bits in compiled code, too, so that the ways can be compared.
# Eight devices, for lives that are placed on meshes.
os.environ["XLA_FLAGS"] = " ".join([
    os.environ.get("XLA_FLAGS", ""), "--xla_allow_excess_precision=false",
    "--xla_force_host_platform_device_count=8",
])  # fmt: skip

from . import lives, search


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--only", help="one program, by the seed that was printed: 0:17")
    parser.add_argument("--lives", action="store_true", help="of a model's state (`lives.py`)")
    parser.add_argument("--all-ways", action="store_true", help="not three ways for each program")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    options.jobs = 1 if options.only else options.jobs
    start = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        run = lives.search if options.lives else search.search
        shares = pool.starmap(run, [(options, share) for share in range(options.jobs)])
    counts = sum(shares, Counter[str]())
    what = "lives" if options.lives else "programs"
    print(f"{counts['programs']} {what}, {counts['failed']} failed, {counts['refused']} refused, "
          f"in {time.monotonic() - start:.0f} s")  # fmt: skip
    return bool(counts["failed"])


if __name__ == "__main__":
    sys.exit(main())
