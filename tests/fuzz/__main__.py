"""`python -m tests.fuzz --minutes 10 --seed 1`: see the package's docstring."""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# A number of 16 bits has 16 bits in compiled code, too, so that the ways can be compared.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_allow_excess_precision=false"

import jax

from .grammar import PRELUDE, Block, Writer, source_of
from .modes import REFUSALS, Difference, Program
from .shrink import shrunk

WAYS = ("compiled", "pure", "eager_around_compiled", "mapped", "gradients", "slopes", "assigns")
_FORGET_EVERY = 100  # programs: what JAX keeps of each would fill the memory


def run(block: Block, ways: set[str], *, wide: bool) -> str | None:
    """Return how a program fails: None, "refused", or a message."""
    try:
        Program(source_of(block), wide=wide).check(ways)
    except Difference as difference:
        return str(difference)
    except Exception as error:
        if not any(refusal in str(error) for refusal in REFUSALS):
            raise
        return "refused"
    return None


def kind_of(failure: str | None) -> str:
    """Return what stays the same while a failing program is made smaller: way and error."""
    return "" if failure is None else " ".join(failure.replace(":", " ").split()[:4])


def plan_of(seed: str, every_way: bool) -> tuple[Block, set[str], bool]:
    """Return a program, in which ways to run it, and whether with 64-bit floats."""
    chooser = random.Random(f"ways {seed}")
    ways = set(WAYS) if every_way else {"compiled", *chooser.sample(WAYS[1:], 2)}
    return Writer(seed).program(), ways, chooser.random() < 0.6


def report(seed: str, failure: str, block: Block, ways: set[str], *, wide: bool) -> None:
    """Print a failing program, made small."""
    alone = ({way} for way in WAYS if way in ways)
    ways = next((w for w in alone if fails_alike(failure, block, w, wide=wide)), ways)
    small = shrunk(block, lambda b: fails_alike(failure, b, ways, wide=wide), seconds=60)
    failure = run(small, ways, wide=wide) or failure
    body = source_of(small).removeprefix(PRELUDE)
    print(f"\n--- seed {seed}, {'64' if wide else '32'}-bit floats: {failure}\n{body}", flush=True)


def fails_alike(failure: str, block: Block, ways: set[str], *, wide: bool) -> bool:
    return kind_of(run(block, ways, wide=wide)) == kind_of(failure)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--only", help="one program, by the seed that was printed: 0:17")
    parser.add_argument("--all-ways", action="store_true", help="not three ways for each program")
    options = parser.parse_args()
    jax.config.update("jax_disable_most_optimizations", True)  # compiles in half the time
    start, count, refused, failed = time.monotonic(), 0, 0, 0
    while time.monotonic() - start < 60 * options.minutes:
        seed = options.only or f"{options.seed}:{count}"
        block, ways, wide = plan_of(seed, options.all_ways)
        failure = run(block, ways, wide=wide)
        count += 1
        if failure == "refused":
            refused += 1
        elif failure is not None:
            failed += 1
            report(seed, failure, block, ways, wide=wide)
        if options.only:
            break
        if count % _FORGET_EVERY == 0:
            jax.clear_caches()
            gc.collect()
    seconds = time.monotonic() - start
    print(f"{count} programs, {failed} failed, {refused} refused, in {seconds:.0f} s")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
