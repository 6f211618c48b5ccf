"""What checkpoints cost: 100 MB saved and restored, beside orbax alone and NumPy's savez.

python tests/benchmarks/checkpoint.py    # TMPDIR=... for another disk

All ways take turns, each writing to a separate place; what is printed is the median of the
rounds, as a multiple of orbax alone. jaxvars also computes a checksum of each value, and compares
it when it restores; orbax alone and savez do not. "call" is how long `save` keeps the program
waiting, and "step after" how long the next compiled step takes, which copies what is being
written.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from measuring import Effort, Row, run_jobs, timed

import jaxvars as jv
from jaxvars.checkpoint import Checkpoint, CheckpointManager

COUNT = 25  # of a million float32 each: 100 MB


def one_round(folder: Path, variables: list[jv.Variable]) -> Iterator[tuple[str, float]]:
    """Yield what each way takes, in seconds."""
    arrays = {f"v{i}": variable.value for i, variable in enumerate(variables)}
    # Orbax runs with its defaults, but for the compression.
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler(use_compression=False)) as alone:
        to = folder / "orbax"
        yield "orbax alone, save", timed(lambda: alone.save(to, ocp.args.PyTreeSave(arrays)))
        like = {name: ocp.ArrayRestoreArgs(sharding=x.sharding) for name, x in arrays.items()}
        args = ocp.args.PyTreeRestore(restore_args=like)
        yield "orbax alone, restore", timed(lambda: alone.restore(to, args))
    yield "np.savez", timed(lambda: np.savez(folder / "numpy.npz", **arrays))

    def load() -> list[jax.Array]:
        with np.load(folder / "numpy.npz") as file:
            return [jnp.array(file[name]) for name in file]

    yield "np.load", timed(load)
    checkpoint = Checkpoint(weights=variables)
    for name in ("folder", "file.npz"):
        path = folder / name
        yield f"jaxvars, save to a {name}", timed(lambda path=path: checkpoint.write(path))
        yield f"jaxvars, restore a {name}", timed(lambda path=path: restored(checkpoint, path))
    yield from background(folder, checkpoint, variables)


def restored(checkpoint: Checkpoint, path: Path) -> list[jax.Array]:
    checkpoint.restore(path).assert_consumed()
    return [cell.value for cell in checkpoint.variables]


def background(
    folder: Path, checkpoint: Checkpoint, variables: list[jv.Variable]
) -> Iterator[tuple[str, float]]:
    @jv.compile
    def step() -> None:
        for variable in variables:
            variable.assign_add(1.0)

    def run() -> list[jax.Array]:
        step()
        return [variable.value for variable in variables]

    run()
    step()
    for kind in (False, True):
        manager = CheckpointManager(checkpoint, folder / f"managed-{kind}", async_save=kind)
        name = "in the background" if kind else "at once"
        yield f"manager, {name}: call", timed(manager.save)
        yield f"manager, {name}: step after", timed(run)
        yield f"manager, {name}: until it is there", timed(manager.wait)


def checkpoint(effort: Effort) -> list[Row]:
    """Return the median of what each way takes, and its ratio to orbax alone."""
    size, rounds = (1_000_000, 1_000_000, 1_000)[effort], (7, 3, 1)[effort]
    rng = np.random.default_rng(0)
    variables = [jv.Variable(rng.normal(size=size).astype(np.float32)) for _ in range(COUNT)]
    times: dict[str, list[float]] = {}
    for i in range(rounds + 1):
        folder = Path(tempfile.mkdtemp())
        for name, seconds in one_round(folder, variables):
            if i:  # the first round imports and compiles
                times.setdefault(name, []).append(seconds)
        shutil.rmtree(folder)
    found = {name: statistics.median(each) for name, each in times.items()}
    base = found["orbax alone, save"]
    return [{"way": k, "ms": 1e3 * v, "of an orbax save": v / base} for k, v in found.items()]


if __name__ == "__main__":
    run_jobs(__doc__, {"checkpoint": checkpoint})
