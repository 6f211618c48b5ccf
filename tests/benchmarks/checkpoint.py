"""What checkpoints cost: 100 MB saved and restored, beside orbax alone and NumPy's savez.

python tests/benchmarks/checkpoint.py [FOLDER] [ROUNDS]

All ways take turns, each writing to a separate place; what is printed is the median of the
rounds, as a multiple of orbax alone. jaxvars also computes a checksum of each value, and compares
it when it restores; orbax alone and savez do not. "call" is how long `save` keeps the program
waiting, and "step after" how long the next compiled step takes, which copies what is being
written.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

import jaxvars as jv
from jaxvars.checkpoint import Checkpoint, CheckpointManager

COUNT, SIZE = 25, 1_000_000  # float32: 100 MB


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(action())
    return time.perf_counter() - start


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


def main() -> None:
    parent = sys.argv[1] if len(sys.argv) > 1 else None
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    rng = np.random.default_rng(0)
    variables = [jv.Variable(rng.normal(size=SIZE).astype(np.float32)) for _ in range(COUNT)]
    times: dict[str, list[float]] = {}
    for i in range(rounds + 1):
        folder = Path(tempfile.mkdtemp(dir=parent))
        for name, seconds in one_round(folder, variables):
            if i:  # the first round imports and compiles
                times.setdefault(name, []).append(seconds)
        shutil.rmtree(folder)
    base = statistics.median(times["orbax alone, save"])
    for name, each in times.items():
        median = statistics.median(each)
        print(f"{name:<45} {median * 1e3:>8.1f} ms {median / base:>7.2f}")


if __name__ == "__main__":
    main()
