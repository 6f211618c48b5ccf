"""A process that is forked after JAX has been used says what to do, and never waits forever."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

_FORKED = """
    import multiprocessing, os, pickle, signal, sys, tempfile, threading, time, warnings
    warnings.filterwarnings("ignore", message=r"os.fork\\(\\) was called")
    import numpy as np
    import jaxvars as jv
    from jaxvars.errors import ExecutionError
    from jaxvars.random import draws

    def in_child(name, action):
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            try:
                print(name, "->", action(), flush=True)
            except ExecutionError as error:
                told = 'get_context("spawn")' in str(error) and "<string>:" in str(error)
                print(name, "-> refused", told, str(error).split(" at ")[0], flush=True)
            except BaseException as error:
                print(name, "->", repr(error), flush=True)
            os._exit(0)
        for _ in range(150):
            if os.waitpid(pid, os.WNOHANG)[0]:
                return
            time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        print(name, "-> hangs")

    def fresh():
        v = jv.Variable([1.0, 2.0])
        return jv.compile(lambda: v.assign_add([1.0, 1.0]) + 0)().tolist()

    if sys.argv[1] == "before":
        in_child("before", fresh)
        sys.exit()

    import jax
    import jax.numpy as jnp

    w = jv.Variable(np.arange(3.0), name="w")
    n = jv.Variable(7.0)
    m = jv.Variable(np.ones((600, 600)), name="m")

    @jv.compile
    def step(x):
        w.assign_add(x * jnp.ones(3))
        return w.value.sum()

    @jv.compile
    def large():
        m.assign(m.value @ m.value * 1e-3)

    new = jv.compile(lambda: w * 3)
    concrete = step.trace(1.0)
    for _ in range(3):
        step(1.0)
        large()
    m.numpy()
    with jv.GradientTape() as tape:
        loss = jnp.sum(w * w)
    xs, mean, squares = jnp.arange(3.0), jv.metrics.Mean(), jv.metrics.MeanSquaredError()
    elements = jv.TensorArray(jnp.float32, size=1).write(0, xs)
    with jv.ForwardAccumulator(xs, xs) as forward:
        moved = xs * xs
    in_child("numpy", lambda: w.numpy().tolist())
    in_child("float", lambda: float(n))
    in_child("pickle", lambda: len(pickle.dumps(w)) > 100)
    with jv.GradientTape() as watching:
        float(n)
        in_child("float in a tape", lambda: float(n))
        in_child("shown in a tape", lambda: repr(w))
    in_child("array", lambda: np.asarray(w).tolist())
    with jv.device("CPU:0"):
        in_child("float in a scope", lambda: float(n))
    in_child("create", lambda: jv.Variable(np.ones(2)).numpy().tolist())
    in_child("warm", lambda: step(1.0))
    in_child("warm, large", large)
    in_child("first", new)
    in_child("concrete", lambda: concrete(1.0))
    in_child("assign", lambda: w.assign(np.zeros(3)))
    in_child("assign_add", lambda: w.assign_add(np.zeros(3)))
    in_child("product", lambda: m @ m)
    in_child("state", lambda: jv.State.of(w))
    in_child("commit", jv.State.of(w).commit)
    in_child("gradient", lambda: tape.gradient(loss, w))
    in_child("list", lambda: w.assign([1.0, 2.0, 3.0]))
    in_child("float32", lambda: w.assign(np.zeros(3, np.float32)))
    in_child("add a list", lambda: w.assign_add([1.0, 1.0, 1.0]))
    in_child("part", lambda: w[0].assign_add(1.0))
    in_child("scan", lambda: jv.scan(lambda c, x: (c + x, c), 0, xs))
    in_child("while", lambda: jv.while_loop(lambda i: i < 3, lambda i: i + 1, 0))
    in_child("fori", lambda: jv.fori_loop(0, 3, lambda i, c: c + i, 0))
    in_child("cond", lambda: jv.cond(True, lambda: xs + 1, lambda: xs))
    in_child("map", lambda: jv.map_fn(lambda x: x, xs))
    in_child("map in batches", lambda: jv.map_fn(lambda x: x, xs, batch_size=2))
    in_child("map at once", lambda: jv.vectorized_map(lambda x: x, xs))
    in_child("recompute", lambda: jv.recompute(lambda x: x * 2)(xs))
    in_child("stack", lambda: elements.stack())
    in_child("tangent", lambda: forward.jvp(moved))
    in_child("loss", lambda: jv.losses.MeanSquaredError()(xs, xs))
    in_child("loss, a function", lambda: jv.losses.huber(xs, xs))
    in_child("metric", lambda: mean.update_state(xs))
    in_child("squares", lambda: squares.update_state(xs, xs))
    in_child("new metric", jv.metrics.AUC)
    in_child("reset", mean.reset_state)
    in_child("check", lambda: jv.debugging.check_numerics(xs))
    in_child("first value", lambda: jv.initializers.Zeros()((2, 2)))
    in_child("normal", lambda: draws.normal(1, (3,)))
    in_child("gamma", lambda: draws.gamma(1, (3,), alpha=1.0))
    in_child("classes", lambda: draws.categorical(1, [[1.0, 2.0]], 3))
    in_child("permutation", lambda: draws.permutation(1, 5))
    mesh = jv.mesh({"data": 1})
    pure, state = jv.functionalize(lambda: w.value * 2), jv.State.of(w=w)
    folder = tempfile.TemporaryDirectory()
    checkpoint = jv.checkpoint.Checkpoint(w=w)
    manager = jv.checkpoint.CheckpointManager(checkpoint, folder.name + "/all", max_to_keep=1)
    paths = [checkpoint.write(folder.name + "/" + name) for name in ("c", "c.npz")]
    in_child("sharded", lambda: jv.shard(np.ones(3), jax.P(), mesh=mesh))
    in_child("placed", lambda: jv.place(w, jax.P(), mesh=mesh))
    in_child("batches", lambda: list(jv.parallel.Batches([np.ones(3)])))
    in_child("new checkpoint", lambda: jv.checkpoint.Checkpoint(w=w))
    in_child("pure", lambda: pure(state))
    in_child("folder", lambda: checkpoint.write(paths[0]))
    in_child("file", lambda: checkpoint.save(paths[1]))
    in_child("back from a folder", lambda: checkpoint.restore(paths[0]))
    in_child("back from a file", lambda: checkpoint.restore(paths[1]))
    in_child("manager", manager.save)
    in_child("child's child", lambda: in_child("inner", lambda: step(1.0)))
    large()
    in_child("in flight", lambda: [m.numpy(), "read"][1])
    stop = []
    thread = threading.Thread(target=lambda: [step(1.0) for _ in iter(lambda: bool(stop), True)])
    thread.start()
    for _ in range(5):
        in_child("thread", lambda: [str(w), "read"][1])
    stop.append(None)
    thread.join()
    before = w.numpy()
    step(1.0)
    print("parent ->", (w.numpy() - before).tolist())
"""


def run(run_python: Callable[..., Any], when: str) -> list[str]:
    done = run_python("-c", textwrap.dedent(_FORKED), when, XLA_FLAGS="")
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_what_a_forked_process_may_do_and_what_it_is_told(run_python: Callable[..., Any]):
    lines = run(run_python, "after")
    uncertain = [line for line in lines if line.startswith(("in flight", "thread"))]
    assert len(uncertain) == 6
    assert not any("hangs" in line for line in uncertain), uncertain
    assert [line for line in lines if line not in uncertain] == [
        "numpy -> [3.0, 4.0, 5.0]",
        "float -> 7.0",
        "pickle -> True",
        "float in a tape -> 7.0",
        "shown in a tape -> <Variable 'w' float32[3] [3. 4. 5.]>",
        "array -> [3.0, 4.0, 5.0]",
        "float in a scope -> 7.0",
        "create -> refused True A variable is created",
        "warm -> refused True step is called",
        "warm, large -> refused True large is called",
        "first -> refused True <lambda> is called",
        "concrete -> refused True step is called",
        "assign -> refused True Variable 'w' is written",
        "assign_add -> refused True Variable 'w' is written",
        "product -> refused True Variable 'm' is read to compute with it",
        "state -> refused True Variable 'w' is read to compute with it",
        "commit -> refused True A tensor is made of the value for w",
        "gradient -> refused True A gradient is requested",
        "list -> refused True Variable 'w' is written",
        "float32 -> refused True Variable 'w' is written",
        "add a list -> refused True Variable 'w' is written",
        "part -> refused True Variable 'w' is read to compute with it",
        "scan -> refused True A function is run by jaxvars",
        "while -> refused True A function is run by jaxvars",
        "fori -> refused True A function is run by jaxvars",
        "cond -> refused True A function is run by jaxvars",
        "map -> refused True A function is run by jaxvars",
        "map in batches -> refused True A tensor is made",
        "map at once -> refused True A function is run by jaxvars",
        "recompute -> refused True A function is run by jaxvars",
        "stack -> refused True A TensorArray is read",
        "tangent -> refused True A tangent is requested",
        "loss -> refused True A loss is computed",
        "loss, a function -> refused True A tensor is made of y_true of huber",
        "metric -> refused True A tensor is made of the values of mean",
        "squares -> refused True A metric is updated",
        "new metric -> refused True A variable is created",
        "reset -> refused True A metric is reset",
        "check -> refused True A tensor is made of x",
        "first value -> refused True An initial value is made",
        "normal -> refused True Random values are drawn",
        "gamma -> refused True Random values are drawn",
        "classes -> refused True A tensor is made",
        "permutation -> refused True Random values are drawn",
        "sharded -> refused True Arrays are sharded",
        "placed -> refused True Variables are placed",
        "batches -> refused True Arrays are sharded",
        "new checkpoint -> refused True A variable is created",
        "pure -> refused True A function is run by jaxvars",
        "folder -> refused True A checkpoint is saved",
        "file -> refused True A checkpoint is saved",
        "back from a folder -> refused True A checkpoint is restored",
        "back from a file -> refused True A checkpoint is restored",
        "manager -> refused True A checkpoint is saved",
        "inner -> refused True step is called",
        "child's child -> None",
        "parent -> [1.0, 1.0, 1.0]",
    ]


def test_a_process_forked_before_jax_is_used_computes(run_python: Callable[..., Any]):
    assert run(run_python, "before") == ["before -> [2.0, 3.0]"]
