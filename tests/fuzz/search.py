"""Run programs, one after the other, and print those that fail."""

from __future__ import annotations

import argparse
import gc
import itertools
import random
import time
from collections import Counter

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


def search(options: argparse.Namespace, share: int) -> Counter[str]:
    """Run one of `options.jobs` shares of all programs; return how many there were."""
    jax.config.update("jax_disable_most_optimizations", True)  # compiles in half the time
    end, counts = time.monotonic() + 60 * options.minutes, Counter[str]()
    numbers = itertools.count(share, options.jobs)
    for seed in [options.only] if options.only else (f"{options.seed}:{n}" for n in numbers):
        if time.monotonic() > end:
            break
        block, ways, wide = plan_of(seed, options.all_ways)
        failure = run(block, ways, wide=wide)
        counts["programs"] += 1
        if failure == "refused":
            counts["refused"] += 1
        elif failure is not None:
            counts["failed"] += 1
            report(seed, failure, block, ways, wide=wide)
        if counts["programs"] % _FORGET_EVERY == 0:
            jax.clear_caches()
            gc.collect()
    return counts
