"""`name_scope`: what the names of new variables begin with."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import final


@final
class _Names(threading.local):
    """The open name scopes of each thread."""

    def __init__(self) -> None:
        self.scopes: tuple[str, ...] = ()


NAMES = _Names()


@contextmanager
def name_scope(name: str) -> Generator[str]:
    """Put `name/` before the names of the variables created inside.

    Args:
        name: any text.

    Yields:
        The whole scope, outer ones included.

    >>> import jaxvars as jv
    >>> with name_scope("encoder"), name_scope("dense"):
    ...     jv.Variable(0.0, name="bias").name
    'encoder/dense/bias'
    """
    outer = NAMES.scopes
    NAMES.scopes = (*outer, name)
    try:
        yield "/".join(NAMES.scopes)
    finally:
        NAMES.scopes = outer
