"""The processes that TF_CONFIG names, which is how TensorFlow's programs find each other."""

from __future__ import annotations

import json
import os
from typing import Any

from jaxvars.parallel.processes import initialize


def join_cluster() -> None:
    """Join the processes that TF_CONFIG names; do nothing if it names none but this one.

    Raises:
        DistributedError: when JAX has been used before.
    """
    config: dict[str, Any] = json.loads(os.environ.get("TF_CONFIG") or "{}")
    cluster, task = config.get("cluster", {}), config.get("task", {})
    first = {"chief": 0, "worker": len(cluster.get("chief", []))}  # the number of each type's first
    addresses = [address for kind in first for address in cluster.get(kind, [])]
    if len(addresses) > 1 and task.get("type") in first:
        number = first[task["type"]] + int(task["index"])
        initialize(addresses[0], len(addresses), number)
