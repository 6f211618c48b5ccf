"""The training run of `train_two_processes.py` in workers of Ray, which Ray starts again.

    python train_on_ray.py /shared/run 2

When a worker dies or raises, Ray Train stops the others and starts all of them again, as often as
`max_failures` says, and each begins with the last checkpoint. `jv.parallel.initialize()`, in the
function that a worker runs, finds out from Ray Train which one it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import train_two_processes as program


def train(config: dict[str, Any]) -> None:
    program.run(config["folder"])


def start(train: Callable[..., Any], config: dict[str, Any], workers: int, failures: int) -> Any:
    """Run `train(config)` in several workers, and return what it returned in the first one."""
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.v2.jax import JaxTrainer

    trainer = JaxTrainer(
        train,
        train_loop_config=config,
        scaling_config=ScalingConfig(num_workers=workers),  # use_gpu=True: a GPU for each
        run_config=RunConfig(
            storage_path=str(Path(config["folder"], "ray").absolute()),  # what Ray itself keeps
            failure_config=FailureConfig(max_failures=failures),
        ),
    )
    return trainer.fit().return_value


if __name__ == "__main__":
    start(train, {"folder": str(Path(sys.argv[1]).absolute())}, int(sys.argv[2]), failures=3)
