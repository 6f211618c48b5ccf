"""A program for `test_checkpoint_files.py`: children save without a pause, and are killed.

`python checkpoint_kills.py FOLDER KILLS SEED` forks one child after the other. Each restores what
the one before has left, checks that it is of one moment, and goes on saving until it is killed. It
prints how far each came. Forking is safe, as nothing here uses JAX before: this saves importing it
again and again.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import jax.numpy as jnp
import orbax.checkpoint  # noqa: F401 - before the forks, as it takes long
import tensorstore  # noqa: F401 - the same

import jaxvars as jv

FORMS = ("folder", "file.npz", "ckpt", "ckpt.npz")  # two are replaced, two are numbered


def latest(folder: Path, form: str) -> str | None:
    """The newest checkpoint of a form."""
    if not form.startswith("ckpt"):
        path = folder / form
        there = path.exists() or path.with_name(f"{form}.replaced").exists()
        return str(path) if there else None
    home = folder / form.replace(".", "_")
    return jv.checkpoint.latest_checkpoint(home)


def restored(folder: Path, checkpoint: jv.checkpoint.Checkpoint, form: str) -> int:
    """Restore the newest of a form, and return its number, which all values say."""
    checkpoint.v.assign(jnp.zeros_like(checkpoint.v.value))
    checkpoint.w.assign(0.0)
    path = latest(folder, form)
    if path is not None:
        checkpoint.restore(path).assert_consumed()
    numbers = {float(x) for x in [*checkpoint.v.numpy(), checkpoint.w]}
    if len(numbers) != 1:
        raise SystemExit(f"{path} is of several moments: {numbers}")
    return int(numbers.pop())


def child(folder: Path, ready: int) -> None:
    """Go on where the last one was killed."""
    checkpoint = jv.checkpoint.Checkpoint(v=jv.Variable(jnp.zeros(3000)), w=jv.Variable(0.0))
    found = [restored(folder, checkpoint, form) for form in FORMS]
    if max(found) - min(found) > 1:
        raise SystemExit(f"some went back: {found}")
    for n in itertools.count(max(found) + 1):
        if n == max(found) + 2:
            os.write(ready, max(found).to_bytes(8, "little"))
        checkpoint.v.assign(jnp.full(3000, float(n)))
        checkpoint.w.assign(float(n))
        for form in FORMS:
            if form.startswith("ckpt"):
                home = folder / form.replace(".", "_")
                checkpoint.save(home / form)
                for old in sorted(home.iterdir(), key=lambda p: p.stat().st_mtime)[:-3]:
                    shutil.rmtree(old) if old.is_dir() else old.unlink()
            else:
                checkpoint.write(folder / form)


def main(folder: Path, kills: int, seed: int) -> None:
    """Start and kill children."""
    rng = random.Random(seed)
    for _ in range(kills):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(reader)
                child(folder, writer)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(1)
        os.close(writer)
        said = os.read(reader, 8)
        time.sleep(rng.uniform(0, 0.25))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if not said or os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            raise SystemExit("a child ended by itself")
        print(int.from_bytes(said, "little"), flush=True)
        os.close(reader)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
