"""Docstrings in parts: what many functions and classes take is described once.

Rules this file keeps:
- the arguments are listed in the order of the signature, as in a docstring written in one piece;
- what a docstring says itself of an argument stays.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from textwrap import fill
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_HEADER = re.compile(r"(\w[\w ]*:(\n|$))|>>> |Source: |Differs from ")
_FORMULA = re.compile(r"`[^`]*( [-+*/<=>] |\w\()[^`]*`")
_ENTRY = re.compile(r"(?m)^    \**(\w+): (.*(?:\n {8}.*)*)")
_WIDTH = 96  # lines of 100 characters, less the indentation in the file


def complete(thing: Any, docs: Mapping[str, str]) -> None:
    """Add to a docstring the arguments that it does not describe, before its other sections.

    `docs` says what an argument is, by name; under "return" what is returned, under "raise" the
    error and when, under "formula" what is computed.

    >>> def scale(x, factor):
    ...     '''Return a product.
    ...
    ...     Raises:
    ...         TypeError: when one is not a number.
    ...     '''
    >>> complete(scale, {"x": "a number.", "factor": "another."})
    >>> print(scale.__doc__)
    Return a product.
    <BLANKLINE>
    Args:
        x: a number.
        factor: another.
    <BLANKLINE>
    Raises:
        TypeError: when one is not a number.
    """
    parts = inspect.cleandoc(thing.__doc__ or "").split("\n\n")  # `python -OO` has none
    first = next((i for i, part in enumerate(parts) if _HEADER.match(part)), len(parts))
    head, rest = parts[:first], parts[first:]
    known = {**docs, **describe_arguments(thing)}
    rest = [part for part in rest if not part.startswith("Args:")]
    for word, header in (("raise", "Raises:"), ("return", "Returns:")):
        if word in docs and not any(part.startswith(header) for part in rest):
            rest.insert(0, f"{header}\n    {docs[word]}")
    if "formula" in docs and not any(part.startswith("Formula: ") for part in parts):
        head.append(docs["formula"])
    given = [p for name, p in inspect.signature(thing).parameters.items() if name in known]
    entries = [_entry("**" * (p.kind is p.VAR_KEYWORD) + p.name, known[p.name]) for p in given]
    if entries:
        head.append("\n".join(["Args:", *entries]))
    thing.__doc__ = "\n\n".join([*head, *rest])


def complete_by(docs: Mapping[str, str]) -> Callable[[F], F]:
    """Return a decorator that completes the docstring of a function: see `complete`."""

    def decorate(function: F) -> F:
        complete(function, docs)
        return function

    return decorate


def describe_arguments(thing: Any) -> dict[str, str]:
    """Return what the docstring of a function or class says of its arguments, by name.

    >>> def scale(x):
    ...     '''Return a product.
    ...
    ...     Args:
    ...         x: a number.
    ...     '''
    >>> describe_arguments(scale)
    {'x': 'a number.'}
    """
    parts = inspect.cleandoc(thing.__doc__ or "").split("\n\n")
    listed = next((part for part in parts if part.startswith("Args:")), "")
    return {name: " ".join(words.split()) for name, words in _ENTRY.findall(listed)}


def describe_formula(thing: Any) -> dict[str, str]:
    """Return what the docstring of a function says that it computes, as "formula", or nothing.

    >>> def double(x):
    ...     '''Return `2 * x`.'''
    >>> describe_formula(double)
    {'formula': 'Formula: `2 * x`.'}
    """
    parts = inspect.cleandoc(thing.__doc__ or "").split("\n\n")
    written = [part for part in parts if part.startswith("Formula: ")]
    if not written and _FORMULA.search(parts[0]):
        written = [f"Formula: {parts[0].removeprefix('Return ')}"]
    return {"formula": written[0]} if written else {}


def add_example(kind: type, given: str, value: object) -> None:
    """Add to the docstring of a class what an object of it returns.

    Args:
        kind: the class; nothing is given to make an object.
        given: the arguments of the object's call.
        value: what it returns, as a float.
    """
    lines = f">>> float({kind.__name__}()({given}))\n{value}"
    kind.__doc__ = f"{inspect.cleandoc(kind.__doc__ or '')}\n\n{lines}\n"


def _entry(name: str, words: str) -> str:
    return fill(
        f"{name}: {words}", _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8,
        break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip
