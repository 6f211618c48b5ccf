"""Processes that were forked after JAX had been used: what computes in them says so.

JAX's threads are not there, so it would wait for them forever. What has been computed can be read.
"""

from __future__ import annotations

from jaxvars.errors import ExecutionError, user_line

FORKED: list[None] = []
"""Not empty in such a process; see `be_forked` in `core/store.py`."""


def refuse_if_forked(what: str) -> None:
    """Raise ExecutionError in a forked process."""
    if FORKED:
        raise ExecutionError(
            f"{what} at {user_line()} in a process that was forked after JAX had been used. JAX's "
            "threads are not there, so it would wait forever. Use processes that are spawned:\n"
            '    multiprocessing.get_context("spawn").Pool()    # or .Process(...)\n'
            "or fork before JAX is used. Values of variables can be read here, as with v.numpy()."
        )
