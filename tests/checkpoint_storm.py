"""Kill a process that saves checkpoints, again and again, and see what it leaves.

    python tests/checkpoint_storm.py FOLDER ROUNDS SEED

Each round forks a process that restores, checks what it got, and saves in a tight loop until it
is killed. It says through a pipe what it knows to be on disk: the next one must find at least
that. The forking process never starts a backend of JAX, so that forking it is safe.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import numpy as np
import orbax.checkpoint  # noqa: F401 - once, here, and not in each round
import tensorstore  # noqa: F401 - the same

import jaxvars as jv
from jaxvars.checkpoint import Checkpoint, CheckpointManager

# One directory for each: options of the manager, and whether it saves one number over and over.
WAYS = [
    ({"max_to_keep": 2}, False),
    ({"max_to_keep": 1, "format": "npz"}, True),
    ({"max_to_keep": 1, "async_save": True, "keep_every": 7}, False),
    ({"max_to_keep": 1}, True),
    ({"max_to_keep": 1, "format": "npz", "best_metric": "loss", "best_mode": "min"}, False),
]


def values_at(step: int) -> dict[str, object]:
    return {
        "step": np.int32(step),
        "row": np.full(1000, step, np.float32),
        "square": np.full((16, 16), -step, np.float32),
        "text": np.array(f"step {step}", object),
    }


def save_until_killed(folder: Path, way: int, known: int, said: int) -> None:
    """Restore and check; save until killed. `known` is the step that must be there."""
    options, same_number = WAYS[way]
    model = {name: jv.Variable(value, name=name) for name, value in values_at(0).items()}
    step = model["step"]
    manager = CheckpointManager(Checkpoint(model=model), folder / str(way), **options)
    path = manager.restore_or_initialize()
    now = int(step)
    assert (path is not None) == (now > 0), (path, now)
    assert now >= known, f"{path}: step {now}, but {known} had been saved"
    for name, value in values_at(now).items():
        np.testing.assert_array_equal(model[name].numpy(), value, err_msg=f"{path} {name}")
    hidden = {p.name for p in (folder / str(way)).glob(".*")}
    assert hidden <= {".ckpt.lock"}, hidden
    tell(said, now)
    while True:
        now += 1
        for name, value in values_at(now).items():
            model[name].assign(value)
        manager.save(1 if same_number else None, metrics={"loss": 1 / now})
        if not options.get("async_save"):
            tell(said, now)
        elif now % 4 == 0:
            manager.wait()
            tell(said, now)


def tell(pipe: int, step: int) -> None:
    os.write(pipe, step.to_bytes(8, "big"))


def one_round(folder: Path, way: int, known: int, seconds: float) -> int:
    """Run a process and kill it so long after its first output; return the last step it told."""
    heard, said = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            save_until_killed(folder, way, known, said)
        except BaseException:  # noqa: BLE001 - it is shown, and the round fails
            traceback.print_exc()
        os._exit(1)
    os.close(said)
    first = os.read(heard, 8)
    if first:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    told = first
    while more := os.read(heard, 4096):
        told = (told + more)[-8:]
    os.close(heard)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        raise SystemExit(f"way {way}, after {known}: the process failed, see above")
    return int.from_bytes(told, "big")


def main() -> None:
    folder, rounds, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(seed)
    known = [0] * len(WAYS)
    for i in range(rounds + len(WAYS)):  # the last rounds look at what the last kills left
        way = i % len(WAYS)
        known[way] = one_round(folder, way, known[way], chance.uniform(0.0, 0.4))
    print("killed", rounds + len(WAYS), "times, at steps", known)


if __name__ == "__main__":
    main()
