"""Work in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def run_in_threads(*works: Callable[[], Any]) -> list[Any]:
    """Run each in a thread, all at once; return their results, or raise what one raised."""
    results: list[Any] = [None] * len(works)
    errors: list[BaseException] = []

    def run(i: int) -> None:
        try:
            results[i] = works[i]()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "deadlock"
    for error in errors:
        raise error
    return results
