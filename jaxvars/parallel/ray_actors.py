"""`run_on_ray`: processes that are Ray actors, and are started again when one of them dies.

Rule this file keeps: Ray is imported in the call, so that the library does not need it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from jaxvars.launch.worker import ATTEMPT
from jaxvars.parallel.processes import free_port, initialize, shutdown


def run_on_ray(
    train: Callable[..., Any],
    processes: int,
    args: Sequence[Any] = (),
    *,
    restarts: int = 3,
    **options: Any,
) -> list[Any]:
    """Run a function in several Ray actors that compute together; again when one of them dies.

    The processes have joined when it is called. As under the launcher, it restores its last
    checkpoint and saves one now and then. It needs an extra: `pip install "jaxvars[ray]"`.

    Args:
        train: the function, which Ray pickles.
        processes: how many actors.
        args: its arguments, the same in each.
        restarts: how often all actors are started again after one has died or raised.
        **options: those of each actor: `num_cpus`, `num_gpus`, `runtime_env` and others of Ray.

    Returns:
        What the function returned in each process, in their order.

    Raises:
        ImportError: when Ray is not installed.
        ray.exceptions.RayError: when an actor has died or raised, and no restart is left.

    Example:
        jv.parallel.run_on_ray(train, 2, ("/shared/run",), num_gpus=1)
    """
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError('run_on_ray needs Ray: pip install "jaxvars[ray]"') from None
    attempt = 0
    while True:
        try:
            return _run_once(ray, processes, options, attempt, train, args)
        except ray.exceptions.RayError:
            if attempt == restarts:
                raise
            attempt += 1


def _run_once(ray: Any, processes: int, options: Any, attempt: int, *work: Any) -> list[Any]:
    actor = ray.remote(_Member).options(**options)
    members = [actor.remote() for _ in range(processes)]
    try:
        host = ray.get(members[0].choose_address.remote(ray.util.get_node_ip_address))
        left = calls = [
            member.run.remote(attempt, (host, processes, rank), *work)
            for rank, member in enumerate(members)
        ]
        while left:
            done, left = ray.wait(left)
            ray.get(done)  # the first one that failed raises here, and the others are killed
        return ray.get(calls)
    finally:
        for member in reversed(members):  # the coordinator last
            ray.kill(member)


class _Member:
    """What an actor does."""

    def choose_address(self, host: Callable[[], str]) -> str:
        return f"{host()}:{free_port()}"

    def run(self, attempt: int, place: tuple[str, int, int], train: Any, args: Any) -> Any:
        os.environ[ATTEMPT] = str(attempt)
        initialize(*place)
        result = train(*args)
        shutdown()  # together, or the first one killed would bring the others down with much noise
        return result
