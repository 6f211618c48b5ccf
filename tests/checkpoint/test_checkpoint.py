"""Checkpoints: every value back bit for bit, all or none, now or when the variable is created."""

from __future__ import annotations

import gc
import threading
import warnings
from collections import OrderedDict, deque, namedtuple
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checkpoint_training import Training
from threads import run_in_threads

import jaxvars as jv
from jaxvars import tf
from jaxvars.checkpoint import Checkpoint, files
from jaxvars.checkpoint import checkpoint as _checkpoint
from jaxvars.checkpoint.waiting import NEW_CELLS, PENDING
from jaxvars.errors import CheckpointError, CheckpointWarning, ForeignTransformError
from jaxvars.tracing.guards import GUARDS

FORMS = ["folder", "file.npz"]


@pytest.fixture(autouse=True)
def _nothing_is_pending_afterwards():
    yield
    gc.collect()
    assert PENDING == []
    assert NEW_CELLS == {}
    assert GUARDS == {}


def bits(value) -> tuple:
    """All there is to know of a value, without how NaN or -0.0 compare."""
    if str(value.dtype).startswith("key<"):
        return (str(value.dtype), *bits(jax.random.key_data(value)))
    if not isinstance(value, np.ndarray | jax.Array) or value.dtype.kind in "OT":
        return (value.shape, "string", value.tolist())
    array = np.asarray(value)
    return (array.shape, str(array.dtype), array.tobytes())


def all_bits(checkpoint: Checkpoint) -> dict[str, tuple]:
    return {path: bits(v.value) for path, v in checkpoint.named_variables.items()}


class Linear(jv.Module):
    def __init__(self, inputs: int, outputs: int, fill: float = 0.0):
        self.w = jv.Variable(jnp.full((inputs, outputs), fill), name="w")
        self.b = jv.Variable(jnp.full(outputs, fill), name="b")

    def __call__(self, x):
        return x @ self.w + self.b


class Lazy(jv.Module):
    """A layer that makes its variables when it is first called."""

    def __init__(self, outputs: int):
        self.outputs = outputs
        self.w = self.b = None

    def __call__(self, x):
        if self.w is None:
            self.w = jv.Variable(jnp.zeros((x.shape[-1], self.outputs)), name="w")
            self.b = jv.Variable(jnp.zeros(self.outputs), name="b")
        return x @ self.w + self.b


# ---------------------------------------------------------------- there and back
KINDS = [
    "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4", "int8",
    "uint16", "int32", "complex64", "bool",
]  # fmt: skip


def every_kind(seed: int) -> dict[str, jv.Variable]:
    rng = np.random.default_rng(seed)
    made = {kind: jv.Variable(jnp.asarray(rng.integers(0, 8, 6)).astype(kind)) for kind in KINDS}
    odd = np.array([np.nan, -0.0, np.inf, seed], np.float32)
    return {
        **made,
        "odd": jv.Variable(odd),
        "scalar": jv.Variable(jnp.bfloat16(seed)),
        "empty": jv.Variable(jnp.zeros((0, 3), jnp.bfloat16)),
        "text": jv.Variable([["grüß dich", "b\0c"], ["", f"{seed}"]]),
        "word": jv.Variable(f"{seed}"),
        "key": jv.Variable(jax.random.key(seed)),
        "keys": jv.Variable(jax.random.split(jax.random.key(seed, impl="rbg"), 2)),
        "../we ird/.": jv.Variable(float(seed)),
        "..": jv.Variable(float(seed)),
        "": jv.Variable(float(seed)),
        "c/d": jv.Variable(float(seed)),
        "a": {"b": jv.Variable(-float(seed)), "0": {"0": jv.Variable(2.0 * seed)}},
    }


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_value_comes_back_to_the_bit(tmp_path: Path, form: str):
    ours, theirs = Checkpoint(all=every_kind(3)), Checkpoint(all=every_kind(5))
    wanted = all_bits(ours)
    assert wanted != all_bits(theirs)
    path = ours.write(tmp_path / form)
    theirs.read(path).assert_consumed()
    assert all_bits(theirs) == wanted
    assert sorted(p.name for p in tmp_path.iterdir()) == [form]  # nothing beside it


@pytest.mark.parametrize("form", FORMS)
def test_64_bits_come_back_or_are_refused(tmp_path: Path, form: str, x64: None):
    v = jv.Variable(np.array([1.0, 2.0]) / 3, name="v")
    path = Checkpoint(v=v).write(tmp_path / form)
    again = jv.Variable(np.zeros(2))
    Checkpoint(v=again).restore(path).assert_consumed()
    assert bits(again.value) == bits(v.value)
    narrow = jv.Variable(np.zeros(2, np.float32))
    with pytest.raises(CheckpointError, match="v: dtype float64 in the checkpoint, float32 in the"):
        Checkpoint(v=narrow).restore(path)


def test_names_are_paths_of_attributes_and_keys(tmp_path: Path):
    model = SimpleNamespace(layers=[Linear(2, 3), Linear(3, 1)], scale={"x": jv.Variable(1.0)})
    path = Checkpoint(model=model).write(tmp_path / "c")
    assert jv.checkpoint.list_variables(path) == [
        ("model/layers/0/b", (3,)),
        ("model/layers/0/w", (2, 3)),
        ("model/layers/1/b", (1,)),
        ("model/layers/1/w", (3, 1)),
        ("model/scale/x", ()),
        ("save_counter", ()),
    ]


def test_the_paths_of_a_root_begin_with_nothing(tmp_path: Path):
    path = Checkpoint(Linear(2, 3, fill=4.0), step=jv.Variable(7)).write(tmp_path / "c.npz")
    assert dict(jv.checkpoint.list_variables(path)).keys() == {"b", "w", "step", "save_counter"}
    linear = Linear(2, 3)
    Checkpoint(root=linear).restore(path).expect_partial().assert_existing_objects_matched()
    np.testing.assert_array_equal(linear.w.numpy(), np.full((2, 3), 4.0))


def test_a_checkpoint_may_be_in_another(tmp_path: Path):
    def made(x: float) -> Checkpoint:
        inner = Checkpoint(v=jv.Variable(x))
        inner.save_counter.assign(int(x))
        return Checkpoint(inner, deep=Checkpoint(jv.Variable(10 * x, name="w")))

    ours, theirs = made(3.0), made(5.0)
    path = ours.save(tmp_path / "c.npz")
    assert path.endswith("c-1.npz")
    theirs.restore(path).assert_consumed()
    assert all_bits(theirs) == all_bits(ours)
    assert int(theirs.save_counter) == 1


def test_a_checkpoint_is_what_orbax_calls_one(tmp_path: Path):
    import orbax.checkpoint as ocp

    path = Checkpoint(model=Linear(2, 3, fill=4.0)).write(tmp_path / "c")
    with ocp.PyTreeCheckpointer() as checkpointer, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = checkpointer.restore(path)
    np.testing.assert_array_equal(found["model/w"], np.full((2, 3), 4.0))


def test_a_file_is_what_numpy_calls_one(tmp_path: Path):
    path = Checkpoint(model=Linear(2, 3, fill=4.0)).write(tmp_path / "c.npz")
    with np.load(path) as found:
        np.testing.assert_array_equal(found["model/w"], np.full((2, 3), 4.0))


@pytest.mark.parametrize("name", ["model", "model.npz"])
def test_a_relative_path_in_a_removed_folder_is_named(tmp_path: Path, monkeypatch, name: str):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    checkpoint = Checkpoint(v=jv.Variable(1.0))
    for use in (checkpoint.save, checkpoint.restore):
        with pytest.raises(FileNotFoundError, match=f"'{name}' is in the working folder.*removed"):
            use(name)


def test_relative_paths_are_made_absolute_at_once(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoint = Checkpoint(v=jv.Variable(1.0))
    path = checkpoint.save("deep/er/ckpt")
    assert path == str(tmp_path / "deep/er/ckpt-1")
    monkeypatch.chdir("/")
    checkpoint.restore(path).assert_consumed()


# ---------------------------------------------------------------- saving
def test_saves_are_numbered_and_the_counter_is_saved(tmp_path: Path):
    v = jv.Variable(1.0)
    checkpoint = Checkpoint(v=v)
    paths = []
    for value in (1.0, 2.0, 3.0):
        v.assign(value)
        paths.append(checkpoint.save(tmp_path / "ckpt.npz"))
    assert paths == [str(tmp_path / f"ckpt-{n}.npz") for n in (1, 2, 3)]
    assert jv.checkpoint.latest_checkpoint(tmp_path) == paths[-1]
    again = Checkpoint(v=jv.Variable(0.0))
    again.restore(paths[1]).assert_consumed()
    assert float(again.v) == 2.0
    assert int(again.save_counter) == 2
    assert again.save(tmp_path / "ckpt.npz") == paths[2]  # in the place of what was there
    assert jv.checkpoint.load_variable(paths[2], "v") == 2.0


def test_a_save_that_fails_changes_nothing(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    checkpoint = Checkpoint(v=jv.Variable(1.0))
    for name in ("file/ckpt", "file/ckpt.npz"):
        with pytest.raises(OSError, match="file"):
            checkpoint.save(tmp_path / name)
    assert int(checkpoint.save_counter) == 0
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("form", FORMS)
def test_what_was_there_is_replaced(tmp_path: Path, form: str):
    v = jv.Variable(1.0)
    checkpoint = Checkpoint(v=v)
    for value in (1.0, 2.0):
        v.assign(value)
        path = checkpoint.write(tmp_path / form)
    assert jv.checkpoint.load_variable(path, "v") == 2.0
    assert sorted(p.name for p in tmp_path.iterdir()) == [form]


def test_what_is_saved_is_of_one_moment_while_steps_run(tmp_path: Path):
    a, b = jv.Variable(jnp.zeros(8)), jv.Variable(jnp.zeros(8))
    checkpoint = Checkpoint(a=a, b=b)

    @jv.compile
    def step():
        a.assign_add(jnp.ones(8))
        b.assign_add(jnp.ones(8))

    stop = threading.Event()

    def train():
        while not stop.is_set():
            step()

    thread = threading.Thread(target=train)
    thread.start()
    try:
        shots = [checkpoint._snapshot() for _ in range(200)]
    finally:
        stop.set()
        thread.join()
    firsts = [float(shot["a"][0]) for shot in shots]
    assert firsts == [float(shot["b"][0]) for shot in shots]
    assert len(set(firsts)) > 1


def test_no_step_takes_away_what_is_being_saved(tmp_path: Path):
    v = jv.Variable(jnp.zeros(4))
    checkpoint = Checkpoint(v=v)
    step = jv.compile(lambda: v.assign_add(jnp.ones(4)))
    for _ in range(3):
        step()
    shot = checkpoint._snapshot()
    for _ in range(3):
        step()
    assert shot["v"].tolist() == [3.0] * 4
    assert v.numpy().tolist() == [6.0] * 4


def test_checkpoints_are_written_at_once_by_several_threads(tmp_path: Path):
    values = [Checkpoint(v=jv.Variable(float(n)))._snapshot() for n in range(4)]
    write = files.write
    forms = [(n, tmp_path / f"{n}{ending}") for n in range(4) for ending in ("", ".npz")]
    run_in_threads(*(partial(write, path, values[n]) for n, path in forms))
    assert [jv.checkpoint.load_variable(path, "v") for n, path in forms] == [n for n, _ in forms]


def test_threads_that_save_at_the_same_time_write_to_one_path_each(tmp_path: Path, monkeypatch):
    checkpoint = Checkpoint(v=jv.Variable(1.0))
    write, both, paths = _checkpoint._write_together, threading.Barrier(2), dict[str, str]()

    def write_slowly(path: Path, values: Any, about: Any) -> Path:
        if threading.current_thread() is not threading.main_thread():
            both.wait(timeout=30)  # both have their number
            if path.name == "c-1.npz":
                second.join()  # the later one is done first
        return write(path, values, about)

    def save() -> None:
        path = checkpoint.save(tmp_path / "c.npz")
        paths[Path(path).name] = path

    monkeypatch.setattr(_checkpoint, "_write_together", write_slowly)
    first, second = (threading.Thread(target=save) for _ in range(2))
    first.start()
    while not checkpoint._underway:
        pass
    second.start()
    first.join()
    assert sorted(paths) == ["c-1.npz", "c-2.npz"]
    assert [jv.checkpoint.load_variable(paths[p], "save_counter") for p in sorted(paths)] == [1, 2]
    assert int(checkpoint.save_counter) == 2
    assert not checkpoint._underway
    assert checkpoint.save(tmp_path / "c.npz").endswith("c-3.npz")


@pytest.mark.parametrize("verb", ["save", "restore"])
def test_files_are_not_part_of_a_program(tmp_path: Path, verb: str):
    checkpoint = Checkpoint(v=jv.Variable(1.0))
    path = checkpoint.write(tmp_path / "c.npz")

    def program():
        getattr(checkpoint, verb)(path)

    pure = jv.functionalize(program)
    for run in (jv.compile(program), jax.jit(program), lambda: pure(jv.State.of(checkpoint))):
        with pytest.raises(ForeignTransformError, match=r"test_checkpoint.py:\d+.*Do it outside"):
            run()
    with jv.GradientTape():  # which is not a program
        program()


def test_objects_cannot_have_names_of_methods():
    with pytest.raises(ValueError, match=r"itself has \['save'\]"):
        Checkpoint(save=jv.Variable(1.0))
    checkpoint = Checkpoint(w=jv.Variable(1.0))
    for name in ("save", "_private"):
        with pytest.raises(ValueError, match=rf"itself has \[.*'{name}'\]"):
            setattr(checkpoint, name, jv.Variable(1.0))


# ---------------------------------------------------------------- restoring: all or none
def test_every_difference_is_listed_and_nothing_changes(tmp_path: Path):
    path = Checkpoint(
        same=jv.Variable(1.0), shape=jv.Variable([1.0, 2.0]), dtype=jv.Variable(1),
        both=jv.Variable([1, 2]), extra=jv.Variable(1.0), bad=jv.Variable(jnp.arange(500.0)),
    ).write(tmp_path / "c.npz")  # fmt: skip
    data = bytearray(Path(path).read_bytes())
    data[data.index(np.arange(500, dtype=np.float32).tobytes()) + 700] ^= 1
    Path(path).write_bytes(data)
    checkpoint = Checkpoint(
        same=jv.Variable(7.0), shape=jv.Variable([7.0]), dtype=jv.Variable(7.0),
        both=jv.Variable(7.0), missing=jv.Variable(7.0), bad=jv.Variable(jnp.zeros(500)),
    )  # fmt: skip
    before = all_bits(checkpoint)
    with pytest.raises(CheckpointError) as caught:
        checkpoint.restore(path)
    first, *lines = str(caught.value).splitlines()
    assert first == f"{path} was not restored, and changed nothing:"
    assert [line.strip() for line in lines] == [
        "bad: corrupt: BadZipFile: Bad CRC-32 for file 'bad.npy'",
        "both: shape (2,) in the checkpoint, () in the variable; dtype int32 in the checkpoint, \
float32 in the variable",
        "dtype: dtype int32 in the checkpoint, float32 in the variable",
        "extra: extra: no variable has this path",
        "missing: missing: it is not in the checkpoint",
        "shape: shape (2,) in the checkpoint, (1,) in the variable",
    ]
    assert all_bits(checkpoint) == before


def test_strings_and_keys_are_not_mixed_up_with_numbers(tmp_path: Path):
    path = Checkpoint(
        a=jv.Variable("text"), b=jv.Variable(jax.random.key(0)), c=jv.Variable(1.0)
    ).write(tmp_path / "c.npz")
    with pytest.raises(CheckpointError) as caught:
        Checkpoint(
            a=jv.Variable(1.0), b=jv.Variable(jax.random.key(0, impl="rbg")), c=jv.Variable("text")
        ).restore(path)
    for line in ("a: dtype string in", "b: dtype key<fry> in the checkpoint, key<rbg> in the",
                 "c: dtype float32 in the checkpoint, string in the variable"):  # fmt: skip
        assert line in str(caught.value)


def test_there_may_be_no_checkpoint(tmp_path: Path):
    checkpoint = Checkpoint(v=jv.Variable(1.0))
    checkpoint.write(tmp_path / "there.npz")
    with pytest.raises(
        CheckpointError, match=r"No checkpoint exists at .*/c.*there are: there\.npz"
    ):
        checkpoint.restore(tmp_path / "c")
    with pytest.raises(CheckpointError, match=r"The folder .*/nowhere does not exist either"):
        checkpoint.restore(tmp_path / "nowhere/c")


def test_restoring_none_does_nothing(tmp_path: Path):
    checkpoint = Checkpoint(v=jv.Variable(1.0))
    status = checkpoint.restore(jv.checkpoint.latest_checkpoint(tmp_path))
    assert status.expect_partial() is status
    assert float(checkpoint.v) == 1.0
    for name in ("consumed", "existing_objects_matched", "nontrivial_match"):
        with pytest.raises(CheckpointError, match="Nothing was restored: the path was None"):
            getattr(status, f"assert_{name}")()


def test_a_restored_variable_has_separate_memory(tmp_path: Path):
    v = jv.Variable(jnp.arange(4.0))
    checkpoint = Checkpoint(v=v)
    path = checkpoint.write(tmp_path / "c.npz")
    step = jv.compile(lambda: v.assign_add(jnp.ones(4)))
    for _ in range(2):
        checkpoint.restore(path)
        held = v.value
        step()
        step()
        assert held.tolist() == [0, 1, 2, 3]
        assert v.numpy().tolist() == [2, 3, 4, 5]
    assert step.trace_count == 1


# ---------------------------------------------------------------- the status
def test_a_status_tells_what_did_not_fit(tmp_path: Path):
    path = Checkpoint(a=jv.Variable(1.0), b=jv.Variable(2.0)).write(tmp_path / "c.npz")
    checkpoint = Checkpoint(a=jv.Variable(0.0), c=jv.Variable(0.0))
    status = checkpoint.restore(path).expect_partial()
    assert float(checkpoint.a) == 1.0
    assert float(checkpoint.c) == 0.0
    assert repr(status) == f"<Status of {path}: 2 values restored, 1 waiting>"
    assert status.assert_nontrivial_match() is status
    with pytest.raises(CheckpointError) as caught:
        status.assert_consumed()
    assert [line.strip() for line in str(caught.value).splitlines()[1:]] == [
        "b: extra: no variable has this path",
        "c: missing: it is not in the checkpoint",
    ]
    with pytest.raises(CheckpointError) as caught:
        status.assert_existing_objects_matched()
    assert [line.strip() for line in str(caught.value).splitlines()[1:]] == [
        "c: missing: it is not in the checkpoint"
    ]
    del checkpoint.c
    checkpoint.b = jv.Variable(0.0)
    assert status.assert_consumed() is status
    assert status.assert_existing_objects_matched() is status
    assert float(checkpoint.b) == 2.0


def test_nothing_but_the_counter_is_not_a_match(tmp_path: Path):
    path = Checkpoint(model=Linear(1, 1)).write(tmp_path / "c.npz")
    checkpoint = Checkpoint(network=Linear(1, 1))
    with pytest.raises(CheckpointError, match=r"(?s)fits none of the objects:.*model/b: extra"):
        checkpoint.restore(path).expect_partial().assert_nontrivial_match()


def test_values_that_are_never_used_are_told_when_the_objects_are_gone(tmp_path: Path):
    path = Checkpoint(model=Linear(1, 1), step=jv.Variable(1)).write(tmp_path / "c.npz")
    step = jv.Variable(0)
    Checkpoint(step=step).restore(path).expect_partial()
    del step
    gc.collect()

    def forgotten():
        step = jv.Variable(0)
        Checkpoint(step=step).restore(path)
        return step

    kept = [forgotten()]
    gc.collect()
    assert len(PENDING) == 1  # the objects are there: it may be too early to tell
    with pytest.warns(CheckpointWarning, match=r"in forgotten.*never used: model/b, model/w\. If"):
        kept.clear()


def test_a_status_of_objects_that_are_gone_says_so(tmp_path: Path):
    path = Checkpoint(w=jv.Variable(1.0)).write(tmp_path / "c.npz")
    status = Checkpoint(w=jv.Variable(0.0), b=jv.Variable(0.0)).restore(path)  # b is missing
    for ask in (status.assert_consumed, status.assert_existing_objects_matched):
        with pytest.raises(CheckpointError, match=r"objects that .* are gone, .*nothing is left"):
            ask()


def test_values_that_are_never_used_are_told_at_the_end_of_the_program(tmp_path: Path, run_python):
    path = Checkpoint(a=jv.Variable(1.0), b=jv.Variable(1.0)).write(tmp_path / "c.npz")
    code = f"""
import jaxvars as jv
told, expected = (jv.checkpoint.Checkpoint(a=jv.Variable(0.0)) for _ in range(2))
told.restore({path!r})
expected.restore({path!r}).expect_partial()
"""
    done = run_python("-c", code)
    assert done.returncode == 0
    assert done.stderr.count("Warning: ") == 1
    assert "CheckpointWarning: Of " in done.stderr
    assert "restored at <string>:4, in <module>, these values were never used: b." in done.stderr


# ---------------------------------------------------------------- variables that come later
def saved_lazy(folder: Path) -> str:
    lazy = Lazy(2)
    lazy(jnp.ones((1, 3)))
    lazy.w.assign(jnp.arange(6.0).reshape(3, 2))
    lazy.b.assign([7.0, 8.0])
    return Checkpoint(layers=[lazy]).write(folder / "c.npz")


@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile], ids=["eager", "compiled"])
def test_a_layer_has_its_values_when_its_first_call_makes_it(tmp_path: Path, wrap):
    path = saved_lazy(tmp_path)
    lazy = Lazy(2)
    checkpoint = Checkpoint(layers=[lazy])
    status = checkpoint.restore(path)
    status.assert_existing_objects_matched()
    call = wrap(lambda x: lazy(x))
    assert call(jnp.ones((1, 3))).tolist() == [[13.0, 17.0]]  # 0+2+4+7, 1+3+5+8
    status.assert_consumed()
    assert PENDING == []
    lazy.b.assign([0.0, 0.0])  # it was given its value once
    assert call(jnp.ones((1, 3))).tolist() == [[6.0, 9.0]]


Two = namedtuple("Two", ["z", "a"])


@pytest.mark.parametrize("box", [
    lambda x: [x], lambda x: (None, x), lambda x: {"b": [{"a": x}], "w": 3}, lambda x: Two(x, [x]),
    lambda x: OrderedDict(a=x), lambda x: deque([x]),
])  # fmt: skip
def test_it_waits_for_objects_in_lists_and_dicts(tmp_path: Path, box):
    made = Lazy(2)
    made(jnp.ones((1, 3)))
    made.w.assign(jnp.arange(6.0).reshape(3, 2))
    w = jv.Variable(1.0)
    path = Checkpoint(w=w, layers=box(made)).write(tmp_path / "c.npz")
    lazy = Lazy(2)
    status = Checkpoint(w=w, layers=box(lazy)).restore(path)
    gc.collect()
    assert lazy(jnp.ones((1, 3))).tolist() == [[6.0, 9.0]]
    status.assert_consumed()
    lazy = Lazy(2)
    status = Checkpoint(layers=box(lazy)).restore(path)
    gc.collect()
    kept = [lazy]
    del lazy
    with pytest.warns(CheckpointWarning, match=r"never used: .*layers/.*/w"):
        kept.clear()  # the status does not keep it alive either
    assert PENDING == []


class Train:
    """A model, its optimizer and a compiled or eager step."""

    def __init__(self, wrap):
        self.model, self.optimizer = Linear(3, 2, fill=0.5), jv.optimizers.Adam(0.1)
        self.checkpoint = Checkpoint(model=self.model, optimizer=self.optimizer)

        def step(x):
            with jv.GradientTape() as tape:
                loss = jnp.sum((self.model(x) - 1.0) ** 2)
            weights = self.model.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))

        self.step = wrap(step)


@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile], ids=["eager", "compiled"])
def test_the_first_step_finds_the_optimizer_as_it_was(tmp_path: Path, wrap):
    x = jnp.arange(3.0)[None]
    first = Train(wrap)
    for _ in range(3):
        first.step(x)
    path = first.checkpoint.save(tmp_path / "ckpt")
    first.step(x)
    second = Train(wrap)
    status = second.checkpoint.restore(path)
    assert second.optimizer.slots == {}
    second.step(x)  # makes the slots, and uses them
    status.assert_consumed()
    assert all_bits(second.checkpoint) == all_bits(first.checkpoint)


class Twins(jv.Module):
    """Layers whose variables have one shape and one name, in an order that may change."""

    def __init__(self, order: str = "abc"):
        for name in order:
            setattr(self, name, SimpleNamespace(w=jv.Variable(jnp.zeros(2))))

    def weights(self, order: str = "abc"):
        return [getattr(self, name).w for name in order]


def trained_twins(wrap=lambda optimizer: optimizer) -> tuple[Twins, object]:
    model, optimizer = Twins(), wrap(jv.optimizers.Adam(0.1))
    gradients = [jnp.full(2, x) for x in (1.0, 2.0, 3.0)]
    optimizer.apply_gradients(list(zip(gradients, model.weights(), strict=True)))
    return model, optimizer


def momenta(model: Twins, optimizer) -> list[float]:
    return [float(optimizer.get_slot(w, "momentum")[0]) for w in model.weights()]


@pytest.mark.parametrize("wrap", [lambda o: o, jv.optimizers.LossScaleOptimizer])
@pytest.mark.parametrize("order", ["cab", "bca", "cba"])
@pytest.mark.parametrize("early", [True, False])
def test_slots_go_to_their_variables_in_any_order(tmp_path: Path, order: str, early: bool, wrap):
    model, optimizer = trained_twins(wrap)
    path = Checkpoint(model=model, optimizer=optimizer).write(tmp_path / "c.npz")
    assert "optimizer" in {p.split("/")[0] for p, _ in jv.checkpoint.list_variables(path)}
    again, other = Twins(order), wrap(jv.optimizers.Adam(0.1))
    checkpoint = Checkpoint(model=again, optimizer=other)
    if early:
        other.build(again.weights(order))
    status = checkpoint.restore(path)
    other.build(again if not early else again.weights(order))
    status.assert_consumed()
    assert momenta(again, other) == momenta(model, optimizer)
    assert len(set(momenta(again, other))) == 3


def test_slots_go_to_variables_in_a_dict_when_the_checkpoint_is_gone(tmp_path: Path):
    def made() -> tuple[dict, object]:
        return {x: jv.Variable([1.0]) for x in "ab"}, jv.optimizers.SGD(0.1, momentum=0.5)

    ours, sgd = made()
    sgd.apply_gradients([([1.0], ours["a"]), ([2.0], ours["b"])])
    path = Checkpoint(weights=ours, optimizer=sgd).write(tmp_path / "c.npz")
    theirs, other = made()
    Checkpoint(weights=theirs, optimizer=other).restore(path)
    gc.collect()
    other.apply_gradients([([0.0], theirs["b"]), ([0.0], theirs["a"])])
    assert [round(float(other.get_slot(theirs[x], "momentum")[0]), 3) for x in "ab"] == [
        -0.05,
        -0.1,
    ]


def test_slots_without_their_variables_are_known_by_name_or_refused(tmp_path: Path):
    model, optimizer = trained_twins()
    assert len(model.variables) == 3  # alive, and not in the Checkpoint
    with pytest.raises(CheckpointError, match=r"at 'optimizer' has slots for several.*'Variable'"):
        Checkpoint(optimizer=optimizer).write(tmp_path / "c.npz")
    assert not (tmp_path / "c.npz").exists()

    def made(names: str) -> tuple[dict, object]:
        weights = {x: jv.Variable([1.0, 1.0], name=x) for x in names}
        return weights, jv.optimizers.SGD(0.1, momentum=0.5)

    ours, sgd = made("ab")
    sgd.apply_gradients([([1.0, 1.0], ours["a"]), ([2.0, 2.0], ours["b"])])
    path = Checkpoint(optimizer=sgd).write(tmp_path / "c.npz")
    theirs, other = made("ba")
    status = Checkpoint(optimizer=other).restore(path)
    other.build(list(theirs.values()))
    status.assert_consumed()
    for name in "ab":
        slots = [o.get_slot(v[name], "momentum") for o, v in ((sgd, ours), (other, theirs))]
        assert slots[0].numpy().tolist() == slots[1].numpy().tolist()
    crossed = {"a": jv.Variable([1.0, 1.0], name="b"), "b": jv.Variable([1.0, 1.0], name="a")}
    third = jv.optimizers.SGD(0.1, momentum=0.5)
    third.build(crossed)  # known by paths: a name is not a path
    checkpoint = Checkpoint(crossed, optimizer=third)
    status = checkpoint.restore(path)
    with pytest.raises(CheckpointError, match="optimizer/slots/a/momentum: missing"):
        status.assert_consumed()
    status.expect_partial()


def test_a_name_that_another_variable_takes_later_is_refused(tmp_path: Path):
    one = jv.Variable([1.0], name="w")
    optimizer = jv.optimizers.SGD(0.1, momentum=0.5)
    optimizer.apply_gradients([([1.0], one)])
    path = Checkpoint(optimizer=optimizer).write(tmp_path / "c.npz")
    two, three = jv.Variable([1.0], name="w"), jv.Variable([1.0], name="w")
    other = jv.optimizers.SGD(0.1, momentum=0.5)
    status = Checkpoint(optimizer=other).restore(path)
    with pytest.raises(CheckpointError, match="several variables called 'w'"):
        other.apply_gradients([([1.0], two), ([1.0], three)])
    status.expect_partial()


def updated(optimizer: jv.optimizers.Optimizer, times: int = 1) -> dict[str, Any]:
    v = jv.Variable([1.0], name="v")
    for _ in range(times):
        optimizer.apply_gradients([([1.0], v)])
    return {"v": v, "optimizer": optimizer}


ADAM, SGD = jv.optimizers.Adam, partial(jv.optimizers.SGD, 0.1, momentum=0.5)
MEAN, STEP = "the mean gradient", "the last step"


@pytest.mark.parametrize("name", ["folder", "file.npz"])
@pytest.mark.parametrize("times", [0, 1])
@pytest.mark.parametrize(
    ("saved", "restored", "words"),
    [(ADAM, SGD, (MEAN, STEP)), (SGD, jv.optimizers.Adamax, (STEP, MEAN))],
)
def test_slots_of_one_name_that_are_something_else_are_refused(
    saved, restored, words, times, name, tmp_path: Path
):
    path = Checkpoint(**updated(saved())).write(tmp_path / name)
    there = updated(restored(), times)
    before = all_bits(Checkpoint(**there))
    with pytest.raises(CheckpointError, match="was not restored, and changed nothing") as error:
        Checkpoint(**there).restore(path)
    assert (
        f"optimizer/slots/*/momentum: {words[0]} in the checkpoint, {words[1]} in the optimizer. "
        "Make it as the one that was saved, or restore without it:\n"
        "      jv.checkpoint.Checkpoint(model=model).restore(path).expect_partial()"
    ) in str(error.value)
    assert all_bits(Checkpoint(**there)) == before
    Checkpoint(v=there["v"]).restore(path).expect_partial()


def test_the_slots_of_an_optimizer_without_a_name_or_in_another_are_refused_too(tmp_path: Path):
    path = Checkpoint(ADAM()).write(tmp_path / "new")  # without slots: nothing to misread
    Checkpoint(SGD()).restore(path)
    adam, sgd = updated(ADAM()), updated(SGD())
    path = Checkpoint(adam["optimizer"]).write(tmp_path / "alone")
    with pytest.raises(CheckpointError, match=r"  slots/\*/momentum: the mean"):
        Checkpoint(sgd["optimizer"]).restore(path)
    wrapped = jv.optimizers.LossScaleOptimizer
    path = Checkpoint(**updated(wrapped(ADAM()))).write(tmp_path / "inner")
    with pytest.raises(CheckpointError, match=r"optimizer/.*slots/\*/momentum: the mean"):
        Checkpoint(**updated(wrapped(SGD()))).restore(path)


def test_slots_that_are_the_same_thing_go_from_one_optimizer_into_another(
    tmp_path: Path, monkeypatch
):
    adam = updated(ADAM())
    path = Checkpoint(**adam).write(tmp_path / "adam")
    for kind in (jv.optimizers.AdamW, jv.optimizers.Adamax):
        other = updated(kind())
        Checkpoint(**other).restore(path).expect_partial()
        slots = [x["optimizer"].get_slot(x["v"], "momentum") for x in (adam, other)]
        assert float(slots[0][0]) == float(slots[1][0])
    plain, sgd = updated(jv.optimizers.SGD(0.1)), updated(SGD())
    Checkpoint(**plain).restore(path).expect_partial()
    monkeypatch.setattr(Checkpoint, "_about", lambda _: {})  # as of a version before
    path = Checkpoint(**adam).write(tmp_path / "before")
    Checkpoint(**sgd).restore(path).expect_partial()


@pytest.mark.parametrize(
    "alike",
    [lambda a, b: {a, b}, lambda a, b: [{1: a, "1": b}], lambda a, b: {"x/y": a, "x": {"y": b}}],
)
def test_what_has_no_order_and_no_name_is_refused(tmp_path: Path, alike):
    things = alike(jv.Variable(1.0), jv.Variable(2.0))
    with pytest.raises(CheckpointError, match=r"Two variables have the path 'things.*Use a list"):
        Checkpoint(things=things).write(tmp_path / "c.npz")
    Checkpoint(things={jv.Variable(1.0)}).write(tmp_path / "c.npz")


def test_a_checkpoint_of_the_format_before_is_refused(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("jaxvars.checkpoint.files.FORMAT", 1)
    path = Checkpoint(v=jv.Variable(1.0)).write(tmp_path / "c.npz")
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="its format is 1, and this version reads 2"):
        Checkpoint(v=jv.Variable(1.0)).restore(path)


def test_a_new_value_may_be_used_before_it_is_anybodys(tmp_path: Path):
    path = Checkpoint(v=jv.Variable(1.0), norm=jv.Variable(9.0)).write(tmp_path / "c.npz")
    checkpoint = Checkpoint()
    checkpoint.restore(path)
    v = jv.Variable(3.0)
    norm = jv.Variable(v * 2)  # reads it while it is in no object
    checkpoint.v, checkpoint.norm = v, norm
    assert float(v) == 1.0
    assert float(norm) == 9.0


def test_what_is_assigned_after_it_was_created_stays(tmp_path: Path):
    path = Checkpoint(a=jv.Variable(1.0), b=jv.Variable(1.0), c=jv.Variable(1.0)).write(
        tmp_path / "c.npz"
    )
    checkpoint = Checkpoint()
    status = checkpoint.restore(path)
    checkpoint.a, checkpoint.b = jv.Variable(0.0), jv.Variable(0.0)
    checkpoint.a.assign(5.0)
    checkpoint.b.assign_add(5.0)
    checkpoint.c = jv.Variable(0.0)
    status.assert_consumed()
    assert [float(checkpoint.a), float(checkpoint.b), float(checkpoint.c)] == [5.0, 6.0, 1.0]


def test_saving_includes_values_that_have_only_just_come(tmp_path: Path):
    path = Checkpoint(v=jv.Variable(1.0)).write(tmp_path / "c.npz")
    checkpoint = Checkpoint()
    checkpoint.restore(path)
    checkpoint.v = jv.Variable(0.0)
    assert jv.checkpoint.load_variable(checkpoint.write(tmp_path / "d.npz"), "v") == 1.0


def test_a_variable_that_was_there_is_given_its_value_when_asked_for(tmp_path: Path):
    path = Checkpoint(v=jv.Variable(1.0)).write(tmp_path / "c.npz")
    v, checkpoint = jv.Variable(0.0), Checkpoint()
    status = checkpoint.restore(path)
    checkpoint.v = v
    assert float(v) == 0.0  # it may have been trained
    status.assert_consumed()
    assert float(v) == 1.0


@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile], ids=["eager", "compiled"])
def test_what_comes_later_and_does_not_fit_is_refused(tmp_path: Path, wrap):
    path = saved_lazy(tmp_path)
    lazy = Lazy(2)
    checkpoint = Checkpoint(layers=[lazy])
    status = checkpoint.restore(path).expect_partial()
    call = wrap(lambda x: lazy(x))
    with pytest.raises(CheckpointError) as caught:
        call(jnp.ones((1, 5)))
    assert str(caught.value) == (
        f"{path} does not fit variables that were created since:\n"
        "  layers/0/w: shape (3, 2) in the checkpoint, (5, 2) in the variable"
    )
    assert lazy.w.numpy().tolist() == [[0.0, 0.0]] * 5
    assert lazy.b.numpy().tolist() == [7.0, 8.0]
    with pytest.raises(CheckpointError, match="layers/0/w: shape"):
        status.assert_consumed()


def test_strangers_are_not_looked_for_for_ever(tmp_path: Path, monkeypatch):
    path = Checkpoint(v=jv.Variable(1.0)).write(tmp_path / "c.npz")
    checkpoint = Checkpoint()
    checkpoint.restore(path).expect_partial()
    looks = []
    seeker = PENDING[0]
    monkeypatch.setattr(seeker, "seek", lambda keys: looks.append(1) or set(), raising=False)
    stranger = jv.Variable(0.0)
    for _ in range(50):
        stranger.numpy()
    assert len(looks) == 16
    assert NEW_CELLS == {}


def test_a_later_restore_takes_the_place_of_an_earlier_one(tmp_path: Path):
    paths = [Checkpoint(v=jv.Variable(x)).write(tmp_path / f"{x}.npz") for x in (1.0, 2.0)]
    checkpoint = Checkpoint(w=jv.Variable(0.0))
    old, _ = map(checkpoint.restore, paths)
    assert len(PENDING) == 1
    checkpoint.v = jv.Variable(0.0)
    assert float(checkpoint.v) == 2.0
    with pytest.raises(CheckpointError, match=r"as a whole: .*2\.0\.npz has been restored since"):
        old.expect_partial().assert_consumed()
    assert float(checkpoint.v) == 2.0


def test_several_wait_for_their_own(tmp_path: Path):
    path = saved_lazy(tmp_path)
    lazies = [Lazy(2), Lazy(2)]
    checkpoints = [Checkpoint(layers=[lazy]) for lazy in lazies]
    statuses = [checkpoint.restore(path) for checkpoint in checkpoints]
    assert len(PENDING) == 2
    for lazy in reversed(lazies):
        assert lazy(jnp.ones((1, 3))).tolist() == [[13.0, 17.0]]
    for status in statuses:
        status.assert_consumed()


# ---------------------------------------------------------------- exactly as if nothing had been
def test_training_goes_on_in_another_process_bit_for_bit(tmp_path: Path, run_python):
    training = Training()
    training.run(10)
    path = training.checkpoint.write(tmp_path / "ten")
    training.run(10)
    program = str(Path(__file__).parents[1] / "checkpoint_training.py")
    done = run_python("-W", "error", program, "checkpoint", path, "10", str(tmp_path / "twenty"))
    assert (done.returncode, done.stderr) == (0, "")
    found = jv.checkpoint.load(tmp_path / "twenty")
    assert int(found["steps"]) == 20
    assert {p: bits(x) for p, x in found.items()} == all_bits(training.checkpoint)
    assert {"optimizer/iterations", "net/rng/state", "net/hidden"} < found.keys()


# ---------------------------------------------------------------- meshes
def spread(*names: str | None, shape=(4, 2)) -> jax.sharding.NamedSharding:
    kinds = (jax.sharding.AxisType.Auto,) * 2
    mesh = jax.make_mesh(shape, ("a", "b"), axis_types=kinds)
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*names))


PLACES = {
    "4x2": lambda: spread("a", "b"),
    "2x4": lambda: spread("b", "a", shape=(2, 4)),
    "copies": lambda: spread(),
    "one": lambda: jax.devices()[3],
    "anywhere": lambda: None,
}


@pytest.mark.parametrize("form", FORMS)
def test_values_go_from_one_mesh_to_another(tmp_path: Path, form: str):
    value = jnp.arange(64.0).reshape(8, 8)
    for there, get in PLACES.items():
        v = jv.Variable(value, sharding=get())
        key = jv.Variable(jax.random.split(jax.random.key(1), 8), sharding=None)
        path = Checkpoint(v=v, key=key, half=jv.Variable(v.value.astype("bfloat16"))).write(
            tmp_path / form
        )
        for here, place in PLACES.items():
            w = jv.Variable(jnp.zeros((8, 8)), sharding=place())
            half = jv.Variable(jnp.zeros((8, 8), jnp.bfloat16), sharding=place())
            sharding = w.value.sharding
            checkpoint = Checkpoint(v=w, half=half, key=jv.Variable(key.value))
            checkpoint.restore(path).assert_consumed()
            assert w.value.sharding == sharding, (there, here)
            assert half.value.sharding == sharding
            assert w.value.committed == (here != "anywhere")
            np.testing.assert_array_equal(w.numpy(), value)
            np.testing.assert_array_equal(half.numpy(), value)


def test_a_restored_variable_on_a_mesh_needs_no_new_program(tmp_path: Path):
    v = jv.Variable(jnp.zeros((8, 8)), sharding=spread("a", "b"))
    checkpoint = Checkpoint(v=v)
    step = jv.compile(lambda: v.assign_add(jnp.ones((8, 8))))
    step()
    path = checkpoint.write(tmp_path / "c")
    step()
    checkpoint.restore(path)
    step()
    assert float(v[0, 0]) == 2.0
    assert v.value.sharding == spread("a", "b")
    assert step.trace_count == 1


def test_a_value_stays_where_it_was_put(tmp_path: Path):
    v = jv.Variable(jnp.zeros(4))
    v.assign(jax.device_put(jnp.arange(4.0), jax.devices()[5]))
    checkpoint = Checkpoint(v=v)
    path = checkpoint.write(tmp_path / "c.npz")
    checkpoint.restore(path)
    assert v.device == jax.devices()[5]
    assert v.numpy().tolist() == [0.0, 1.0, 2.0, 3.0]


def test_variables_without_values_are_restored(tmp_path: Path):
    path = Checkpoint(w=jv.Variable(jnp.arange(8.0)), t=jv.Variable("yes")).write(tmp_path / "c")
    place = spread("a")
    w = jv.abstract(lambda: jv.Variable(jnp.zeros(8), sharding=place))
    checkpoint = Checkpoint(w=w, t=jv.Variable("no"))
    checkpoint.restore(path).assert_consumed()
    assert w.numpy().tolist() == list(range(8))
    assert w.value.sharding == place
    assert checkpoint.t.numpy().item() == "yes"


def test_slots_that_come_later_are_placed_where_their_variables_are(tmp_path: Path):
    def made():
        w = jv.Variable(jnp.ones((8, 8)), sharding=spread("a", "b"), name="w")
        optimizer = jv.optimizers.SGD(0.5, momentum=0.9)
        return w, optimizer, Checkpoint(w=w, optimizer=optimizer)

    w, optimizer, checkpoint = made()
    optimizer.apply_gradients([(jnp.ones((8, 8)), w)])
    path = checkpoint.write(tmp_path / "c")
    w, optimizer, checkpoint = made()
    status = checkpoint.restore(path)
    optimizer.build([w])
    status.assert_consumed()
    slot = optimizer.get_slot(w, "momentum")
    assert slot.value.sharding == spread("a", "b")
    assert float(abs(slot[0, 0])) > 0


@pytest.mark.parametrize("make", [
    lambda: jv.metrics.AUC(multi_label=True), lambda: jv.metrics.F1Score(),
    lambda: jv.metrics.F1Score(average="micro"), lambda: tf.keras.metrics.F1Score(),
])  # fmt: skip
def test_metrics_that_data_builds_are_built(tmp_path: Path, make):
    labels, scores = jnp.array([[1.0, 0.0], [0.0, 1.0]]), jnp.array([[0.9, 0.1], [0.7, 0.8]])
    metric, again, reset = make(), make(), make()
    metric.update_state(labels, scores)
    path = Checkpoint(deep={"m": metric}).write(tmp_path / "c")
    Checkpoint(deep={"m": again}).restore(path).assert_consumed()
    assert np.array_equal(again.result(), metric.result())
    Checkpoint(deep={"m": reset}).restore(path)
    reset.reset_state()  # must not come back with the next update
    reset.update_state(labels, labels)
    assert np.allclose(reset.result(), 1)


def test_metrics_that_data_builds_keep_their_size(tmp_path: Path):
    metric = jv.metrics.F1Score()
    path = Checkpoint(m=[jv.metrics.Mean(), metric]).write(tmp_path / "c")
    Checkpoint(m=[jv.metrics.Mean(), metric]).restore(path).assert_consumed()
    assert not metric.is_built
    wide, narrow = jv.metrics.F1Score(), jv.metrics.F1Score()
    wide.build(3)
    narrow.build(2)
    path = Checkpoint(m=wide).write(tmp_path / "d")
    with pytest.raises(CheckpointError, match="m/counts/true_positives"):
        Checkpoint(m=narrow).restore(path)


class Counted(OrderedDict):
    """Counts how often it is looked into."""

    looks = 0

    def items(self):
        self.looks += 1
        return super().items()


def test_objects_are_looked_through_a_few_times_alone(tmp_path: Path):
    inside = Counted(w=jv.Variable(1.0))
    checkpoint = Checkpoint(model=jv.Module())
    checkpoint.model.inside = inside
    path = checkpoint.write(tmp_path / "c.npz")
    assert inside.looks == 4  # what would be lost; all variables; and again, for their other paths
    status = checkpoint.restore(path)
    assert inside.looks == 7  # the first two, and the variables that there are after reading
    status.assert_consumed()
    assert inside.looks == 8


# ---------------------------------------------------------------- a path is one of several
class Plain(jv.Module):
    def __init__(self):
        self.net = {"kernel": jv.Variable([1.0, 1.0])}


class Listed(Plain):
    """The part is in a list, too, which comes first in the alphabet."""

    def __init__(self):
        super().__init__()
        self.layers = [self.net]


def trained(model: jv.Module, steps: int) -> dict[str, Any]:
    optimizer = jv.optimizers.Adam(0.1)
    for _ in range(steps):
        optimizer.apply_gradients([([1.0, 2.0], model.variables[0])])
    return {"model": model, "optimizer": optimizer}


@pytest.mark.parametrize("build", ["before", "after"])
@pytest.mark.parametrize(("then", "now"), [(Plain, Listed), (Listed, Plain), (Listed, Listed)])
def test_a_variable_that_got_or_lost_a_path_is_restored(tmp_path: Path, then, now, build: str):
    saved, new = trained(then(), 2), trained(now(), 0)
    path = Checkpoint(**saved).write(tmp_path / "a.npz")
    if build == "before":
        new["optimizer"].build(new["model"])
    status = Checkpoint(**new).restore(path)
    new["optimizer"].build(new["model"])
    status.assert_consumed()
    for each in (saved, new):
        each["optimizer"].apply_gradients([([1.0, 2.0], each["model"].variables[0])])
    assert bits(saved["model"].variables[0].value) == bits(new["model"].variables[0].value)


def test_a_variable_that_comes_later_under_another_path_is_restored(tmp_path: Path):
    manager = jv.checkpoint.CheckpointManager(Checkpoint(model=Listed()), tmp_path)
    manager.checkpoint.model.net["kernel"].assign([5.0, 6.0])
    path = manager.save()
    assert [p for p, _ in jv.checkpoint.list_variables(path)] == [
        "model/layers/0/kernel", "save_counter"
    ]  # fmt: skip
    model = jv.Module()
    status = Checkpoint(model=model).restore(path)
    model.net = {"kernel": jv.Variable([0.0, 0.0])}
    assert model.net["kernel"].numpy().tolist() == [5.0, 6.0]
    status.assert_consumed()


def test_objects_with_several_names_are_restored_by_either(tmp_path: Path):
    model = Plain()
    model.net["kernel"].assign([5.0, 6.0])
    path = Checkpoint(model=model, head=model.net).write(tmp_path / "a.npz")
    for given in ({"model": Plain()}, {"head": Plain().net}):
        Checkpoint(**given).restore(path).assert_consumed()
        assert jv.select(given).popitem()[1].numpy().tolist() == [5.0, 6.0]
    new = Plain()
    Checkpoint(new.net, model=new).restore(path).assert_consumed()
    assert new.net["kernel"].numpy().tolist() == [5.0, 6.0]


def test_of_a_shared_variable_two_are_restored(tmp_path: Path):
    kernel = jv.Variable([5.0, 6.0])
    path = Checkpoint(a=[kernel], b=[kernel]).write(tmp_path / "a.npz")
    one, other = jv.Variable([0.0, 0.0]), jv.Variable([0.0, 0.0])
    Checkpoint(a=[one], b=[other]).restore(path).assert_consumed()
    one.assign_add([1.0, 1.0])
    jv.compile(lambda: other.assign_add([2.0, 2.0]))()
    assert (one.numpy().tolist(), other.numpy().tolist()) == ([6.0, 7.0], [7.0, 8.0])
    with pytest.raises(
        CheckpointError, match=r"b/0: shape \(2,\) in the checkpoint, \(3,\) in the"
    ):
        Checkpoint(a=[one], b=[jv.Variable([0.0] * 3)]).restore(path)
    assert one.numpy().tolist() == [6.0, 7.0]


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("names", ["ab", "bc"])
@pytest.mark.parametrize("kind", [SimpleNamespace, jv.Module])
def test_two_values_for_what_is_one_variable_now_are_told(
    tmp_path: Path, kind: type, names: str, is_late: bool
):
    one, now = kind(), kind()
    one.a, one.b = kind(), kind()
    one.a.w, one.b.w = jv.Variable(1.0), jv.Variable(2.0)
    path = Checkpoint(model=one).write(tmp_path / "a.npz")
    now.e, kernel = [], jv.Variable(0.0)
    now.a, now.b, now.c = kind(), kind(), kind()
    checkpoint = Checkpoint(model=now, step=jv.Variable(0))
    status = checkpoint.restore(path) if is_late else None
    for name in ("a", *names):
        getattr(now, name).w = kernel
    status = status or checkpoint.restore(path)
    for _ in range(2):
        with pytest.raises(CheckpointError, match="model/b/w: extra: no variable has this path"):
            status.assert_consumed()
        assert float(kernel) == 1.0
    status.expect_partial()


def test_a_variable_that_has_a_path_now_comes_before_one_that_had_it(tmp_path):
    model = jv.Module()
    model.enc, model.head = jv.Module(), jv.Module()
    model.enc.w = model.head.w = jv.Variable(1.0)
    path = Checkpoint(model=model).write(tmp_path / "tied.npz")  # of "enc/w", which is "head/w"
    model.enc.w = jv.Variable(2.0)
    model.all = [model.enc]  # the first path of its variable is "all/0/w"
    model.head.w.assign(3.0)
    Checkpoint(model=model).restore(path).expect_partial()
    assert (float(model.enc.w), float(model.head.w)) == (1, 1)
