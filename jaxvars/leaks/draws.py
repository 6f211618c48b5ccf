"""Random numbers of Python and NumPy that were drawn while a function was traced.

They are constants of its program: each call has the same ones. So the states of the two global
generators are compared, and what the function's code names is looked at if one has moved: a thread
or a library may have drawn, too.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from jaxvars.leaks.holders import Place, Search, codes_of

_CURE = """\
Draw from a jaxvars generator, which goes on from call to call:
    noise = jv.random.normal(x.shape)    # not: np.random.normal(size=x.shape), nor random.random()
or draw outside, and pass the numbers to the function."""


def states() -> tuple[Any, ...]:
    """Return the states of the global generators of Python and NumPy."""
    _, words, *counts = np.random.get_state(legacy=True)  # noqa: NPY002 - the one that is asked for
    return random.getstate(), words.tobytes(), *counts  # pyright: ignore[reportAttributeAccessIssue]


def explain(function: str, fn: object, objects: Iterable[object]) -> str | None:
    """Return what to say of a function that may have drawn; None if its code names no generator."""
    search = Search(lambda _: False)
    search.run([(Place("attribute", None, "function"), x) for x in (fn, *objects)])
    found = next((each for each in search.functions if _names_generator(each)), None)
    if found is None:
        return None
    name = found.__qualname__
    traced = "it" if name.rpartition(".")[2] == function else function
    return (
        f"{name} drew random numbers of Python or NumPy while {traced} was traced: "
        f"they are constants of its program, the same in each call. {_CURE}"
    )


def _names_generator(fn: FunctionType) -> bool:
    names = {name for code in codes_of(fn.__code__) for name in code.co_names}
    values = [fn.__globals__.get(name) for name in names]
    if any(value is np for value in values) and "random" in names:
        return True
    return any(
        value is random or value is np.random or _is_draw(value)
        for value in values
        if isinstance(value, ModuleType) or callable(value)
    )


def _is_draw(value: Any) -> bool:
    """Return whether a value is a function of one of the two: `from random import random`."""
    owner = getattr(value, "__self__", None)
    return owner is not None and type(owner) in (random.Random, np.random.RandomState)
