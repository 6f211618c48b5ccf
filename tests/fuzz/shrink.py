"""Make a failing program small: drop what it fails without."""

from __future__ import annotations

import time
from collections.abc import Callable

from .grammar import Block, smaller


def shrunk(program: Block, fails: Callable[[Block], bool], seconds: float) -> Block:
    """Return a program that fails and of which no part tried can be left out.

    Args:
        program: fails.
        fails: returns whether another one fails in the same way.
        seconds: how long to try.
    """
    until = time.monotonic() + seconds
    while True:
        for candidate in smaller(program):
            if time.monotonic() > until:
                return program
            if candidate and fails(candidate):
                program = candidate
                break
        else:
            return program
