"""Kill a process that saves checkpoints, again and again, and see what it leaves.

    python tests/checkpoint_storm.py FOLDER managers|checkpoints ROUNDS SEED

Each round forks a process that restores, checks what it got, and saves in a tight loop until it
is killed. It says through a pipe what it knows to be on disk: the next one must find at least
that. The forking process never starts a backend of JAX, so that forking it is safe.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orbax.checkpoint  # noqa: F401 - once, here, and not in each round
import tensorstore  # noqa: F401 - the same

import jaxvars as jv
from jaxvars.checkpoint import Checkpoint, CheckpointManager, latest_checkpoint

# One directory for each: options of a manager, and whether it saves one number over and over; or
# what a Checkpoint writes to, twice replaced and twice numbered.
WAYS: dict[str, list[Any]] = {
    "managers": [
        ({"max_to_keep": 2}, False),
        ({"max_to_keep": 1, "format": "npz"}, True),
        ({"max_to_keep": 1, "async_save": True, "keep_every": 7}, False),
        ({"max_to_keep": 1}, True),
        ({"max_to_keep": 1, "format": "npz", "best_metric": "loss", "best_mode": "min"}, False),
    ],
    "checkpoints": ["folder", "file.npz", "ckpt", "ckpt.npz"],
}


def values_at(step: int) -> dict[str, object]:
    return {
        "step": np.int32(step),
        "row": np.full(1000, step, np.float32),
        "square": np.full((16, 16), -step, np.float32),
        "text": np.array(f"step {step}", object),
    }


def managed(checkpoint: Checkpoint, folder: Path, way: Any) -> tuple[Callable[..., Any], ...]:
    """Return what restores the newest, and what saves and returns whether that is on disk."""
    options, same_number = way
    manager = CheckpointManager(checkpoint, folder, **options)

    def save(step: int) -> bool:
        manager.save(1 if same_number else None, metrics={"loss": 1 / step})
        if options.get("async_save"):
            if step % 4:
                return False
            manager.wait()
        return True

    return manager.restore_or_initialize, save


def alone(checkpoint: Checkpoint, folder: Path, form: str) -> tuple[Callable[..., Any], ...]:
    """Return the same for a Checkpoint without a manager."""
    folder.mkdir(parents=True, exist_ok=True)
    numbered = form.startswith("ckpt")

    def restore() -> str | None:
        there = (folder / form).exists() or (folder / f"{form}.replaced").exists()
        path = latest_checkpoint(folder) if numbered else str(folder / form) if there else None
        if path is not None:
            checkpoint.restore(path).assert_consumed()
        return path

    def save(step: int) -> bool:
        (checkpoint.save if numbered else checkpoint.write)(folder / form)
        for old in sorted(folder.iterdir(), key=lambda p: p.stat().st_mtime)[:-3] * numbered:
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        return True

    return restore, save


def save_until_killed(folder: Path, way: Any, known: int, said: int) -> None:
    """Restore and check; save until killed. `known` is the step that must be there."""
    model = {name: jv.Variable(value, name=name) for name, value in values_at(0).items()}
    restore, save = (alone if isinstance(way, str) else managed)(
        Checkpoint(model=model), folder, way
    )
    path = restore()
    now = int(model["step"])
    assert (path is not None) == (now > 0), (path, now)
    assert now >= known, f"{path}: step {now}, but {known} had been saved"
    for name, value in values_at(now).items():
        np.testing.assert_array_equal(model[name].numpy(), value, err_msg=f"{path} {name}")
    hidden = {p.name for p in folder.glob(".*")}
    assert hidden <= {".ckpt.lock"}, hidden
    tell(said, now)
    while True:
        now += 1
        for name, value in values_at(now).items():
            model[name].assign(value)
        if save(now):
            tell(said, now)


def tell(pipe: int, step: int) -> None:
    os.write(pipe, step.to_bytes(8, "big"))


def one_round(folder: Path, way: Any, known: int, seconds: float) -> int:
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


def main(folder: str, what: str, rounds: str, seed: str) -> None:
    chance, ways = random.Random(int(seed)), WAYS[what]
    known = [0] * len(ways)
    for i in range(int(rounds) + len(ways)):  # the last rounds look at what the last kills left
        way = i % len(ways)
        place = Path(folder, str(way))
        known[way] = one_round(place, ways[way], known[way], chance.uniform(0.0, 0.4))
    print("killed", int(rounds) + len(ways), "times, at steps", known)


def check(run_python: Callable[..., Any], folder: Path, what: str, rounds: int, seed: int) -> None:
    """Run this program in a process of its own, and see that it got to save."""
    how = "error" if what == "checkpoints" else "ignore"
    words = ("-W", how, __file__, str(folder / "storm"), what, str(rounds), str(seed))
    done = run_python(*words, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"killed {rounds + len(WAYS[what])} times" in done.stdout
    assert max(json.loads(done.stdout.partition("steps")[2])) > 5, "it never got to save"


if __name__ == "__main__":
    main(*sys.argv[1:])
