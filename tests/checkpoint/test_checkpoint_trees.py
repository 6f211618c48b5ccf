"""Arrays in pytrees are saved and restored into fresh trees, and what would be lost is refused."""

from __future__ import annotations

import enum
from collections import Counter, OrderedDict, deque
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen, nnx
from flax.core import freeze
from flax.training.train_state import TrainState

import jaxvars as jv
from jaxvars.checkpoint import Checkpoint, CheckpointManager, list_variables
from jaxvars.errors import CheckpointError, InteropError

ADAM = optax.adam(1e-3)


class Pair(NamedTuple):
    first: Any
    second: Any


def every_tree(k: int) -> dict[str, Any]:
    """Return trees of every kind, which differ by a number."""
    params = {"dense": {"kernel": jnp.full((2, 3), float(k)), "bias": jnp.arange(3.0) + k}}
    state = jax.tree.map(lambda x: x + k, ADAM.init(params))
    train = TrainState.create(apply_fn=linen.Dense(3).apply, params=params, tx=ADAM)
    return {
        "params": params,
        "state": state,
        "train": train.replace(step=k, opt_state=state),
        "frozen": freeze(params),
        "pair": Pair([jnp.int8(k)], (jnp.bfloat16(k), None)),
        "ordered": OrderedDict(b=jnp.full(2, k), a=k),
        "nnx": nnx.state(nnx.Linear(2, 3, rngs=nnx.Rngs(k))),
        "key": jax.random.key(k),
        "leaves": [jax.random.PRNGKey(k), np.arange(3) + k, np.float32(k), jnp.zeros((0, 2))],
        "numbers": {"a": jnp.ones(1), "n": k, "x": k + 0.5, "on": k == 3, "c": k + 1j},
        "text": {"a": np.ones(1), "words": [f"grüß {k}"]},
        "scale": jnp.asarray(2.0 * k),
        "vars": jv.State.of([jv.Variable(float(k))]),
        "no_slots": optax.sgd(0.1).init(params),
    }


def bits(leaf: Any) -> Any:
    if not hasattr(leaf, "dtype"):
        return type(leaf), leaf
    plain = leaf
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        plain = jax.random.key_data(leaf)
    weak = getattr(leaf, "weak_type", False)
    return type(leaf), leaf.shape, str(leaf.dtype), weak, np.asarray(plain).tobytes()


def all_bits(checkpoint: Checkpoint) -> dict[str, Any]:
    trees = {n: x for n, x in vars(checkpoint).items() if n[0] != "_" and n != "save_counter"}
    return {name: list(map(bits, jax.tree.leaves(tree))) for name, tree in trees.items()}


@pytest.mark.parametrize("form", ["folder", "file.npz"])
def test_trees_of_every_kind_come_back_to_the_bit(tmp_path: Path, form: str):
    ours, theirs = every_tree(3), every_tree(5)
    saved, restored = Checkpoint(**ours), Checkpoint(**theirs)
    before = all_bits(restored)
    assert before != all_bits(saved)
    restored.restore(saved.write(tmp_path / form)).assert_consumed()
    assert all_bits(restored) == all_bits(saved)
    for name, tree in theirs.items():
        structure = jax.tree.structure(getattr(restored, name))
        assert structure == jax.tree.structure(tree)
        assert list(map(bits, jax.tree.leaves(tree))) == before[name]  # was not changed itself


def test_paths_are_those_of_jax_and_of_variables(tmp_path: Path):
    trees = {"p": {"w": jnp.ones(2), 3: [jv.Variable(1.0)]}, "s": ADAM.init({"w": jnp.ones(2)})}
    path = Checkpoint(**trees).write(tmp_path / "c.npz")
    assert [p for p, _ in list_variables(path)] == [
        "p/3/0", "p/w", "s/0/count", "s/0/mu/w", "s/0/nu/w", "save_counter"
    ]  # fmt: skip


def test_an_array_is_restored_where_the_one_before_it_was(tmp_path: Path):
    device = jax.devices()[-1]
    mesh = jax.make_mesh((len(jax.devices()),), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    spread = jax.NamedSharding(mesh, jax.P("x"))
    tree = {
        "far": jax.device_put(jnp.ones(8), device),
        "spread": jax.device_put(jnp.ones(8), spread),
        "free": jnp.ones(8),
    }
    checkpoint = Checkpoint(tree=tree)
    path = checkpoint.write(tmp_path / "c.npz")
    checkpoint.restore(path).assert_consumed()
    new = checkpoint.tree
    assert new["far"].devices() == {device}
    assert new["spread"].sharding == spread
    assert (new["free"] + tree["far"]).devices() == {device}  # not committed
    jax.jit(lambda x: x + 1, donate_argnums=0)(new["far"])
    assert tree["far"].tolist() == [1.0] * 8


def test_shapes_are_enough_to_restore_and_not_to_save(tmp_path: Path):
    path = Checkpoint(params={"w": jnp.ones(3), "n": np.ones(2)}).write(tmp_path / "c.npz")
    shapes = {"w": jax.ShapeDtypeStruct((3,), jnp.float32), "n": np.zeros(2)}
    checkpoint = Checkpoint(params=shapes)
    with pytest.raises(CheckpointError, match="params/w has no value yet, only its shape"):
        checkpoint.write(tmp_path / "d.npz")
    checkpoint.restore(path).assert_consumed()
    assert checkpoint.params["w"].tolist() == [1.0] * 3
    checkpoint.params["n"][0] = 7.0  # separate memory
    assert shapes["n"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("form", ["folder", "file.npz"])
@pytest.mark.parametrize("kept", [lambda x: x, lambda x: jax.device_put(x, jax.devices()[0])])
def test_64_bits_come_back_where_jax_has_32(tmp_path: Path, form: str, kept: Any):
    with jax.enable_x64(True):
        full = {"a": jnp.ones(2) / 3, "i": jnp.array([2**40]), "weak": jnp.full(2, 1 / 3)}
        path = Checkpoint(p=full, v=jv.Variable(full["a"])).write(tmp_path / form)
        fresh = kept(jax.tree.map(lambda x: x * 0, full))
        checkpoint = Checkpoint(p=fresh, v=jv.Variable(full["a"] * 0))
    checkpoint.restore(path).assert_consumed()
    assert list(map(bits, jax.tree.leaves(checkpoint.p))) == list(map(bits, full.values()))
    assert bits(checkpoint.v.numpy()) == bits(np.asarray(full["a"]))


def test_what_does_not_fit_is_listed_and_nothing_changes(tmp_path: Path):
    def made(**more: Any) -> Checkpoint:
        return Checkpoint(v=jv.Variable(1.0), p={"w": jnp.ones(3), **more})

    path = made(n=1, b=jnp.ones(2), gone=jnp.ones(1)).write(tmp_path / "c.npz")
    checkpoint = made(n=1.5, b=jnp.ones(3, jnp.float16), new=jnp.ones(1))
    checkpoint.v.assign(5.0)
    tree = checkpoint.p
    with pytest.raises(CheckpointError) as caught:
        checkpoint.restore(path)
    assert str(caught.value).splitlines()[1:] == [
        (
            "  p/b: shape (2,) in the checkpoint, (3,) in the tree; "
            "dtype float32 in the checkpoint, float16 in the tree"
        ),
        "  p/gone: extra: no variable has this path",
        "  p/n: dtype int64 in the checkpoint, float in the tree",
        "  p/new: missing: it is not in the checkpoint",
    ]
    assert checkpoint.p is tree
    assert float(checkpoint.v) == 5.0
    status = (fewer := made(new=jnp.zeros(1))).restore(path)
    assert fewer.p["new"].tolist() == [0.0]
    with pytest.raises(CheckpointError, match=r"p/b: extra.*\n.*p/gone: extra.*\n.*\n.*p/new: m"):
        status.assert_consumed()
    status.expect_partial()


def test_a_number_is_restored_from_an_array_and_keeps_its_kind(tmp_path: Path):
    path = Checkpoint(t={"step": jnp.int32(7), "w": jnp.ones(1)}).write(tmp_path / "c.npz")
    checkpoint = Checkpoint(t={"step": 0, "w": jnp.zeros(1)})  # as of a TrainState that is new
    checkpoint.restore(path).assert_consumed()
    assert checkpoint.t["step"] == 7
    assert type(checkpoint.t["step"]) is int


def test_a_bit_that_changed_on_disk_is_found(tmp_path: Path):
    path = Path(Checkpoint(p={"w": jnp.full(64, 3.0)}).write(tmp_path / "c.npz"))
    data = bytearray(path.read_bytes())
    data[data.index(np.full(64, 3.0, np.float32).tobytes()) + 9] ^= 1
    path.write_bytes(data)
    checkpoint = Checkpoint(p={"w": jnp.zeros(64)})
    with pytest.raises(CheckpointError, match="changed nothing:\n  p/w: corrupt: "):
        checkpoint.restore(path)
    assert not checkpoint.p["w"].any()


def test_a_manager_saves_trees_that_are_donated_meanwhile(tmp_path: Path):
    step = jax.jit(lambda p: jax.tree.map(lambda x: x + 1, p), donate_argnums=0)
    checkpoint = Checkpoint(params={"w": jnp.zeros(1000)})
    with CheckpointManager(checkpoint, tmp_path, async_save=True) as manager:
        for _ in range(3):
            manager.save()
            checkpoint.params = step(checkpoint.params)
    again = Checkpoint(params={"w": jnp.full(1000, 9.0)})
    CheckpointManager(again, tmp_path).restore_or_initialize()
    assert again.params["w"].tolist() == [2.0] * 1000
    stale = again.params
    step(stale)
    with pytest.raises(CheckpointError, match=r"params/w was donated.*checkpoint\.params = new"):
        again.write(tmp_path / "d.npz")


def test_trees_in_checkpoints_in_checkpoints(tmp_path: Path):
    def made(x: float) -> Checkpoint:
        inner = Checkpoint(p=[jnp.full(2, x)])
        return Checkpoint(Checkpoint(q=jnp.full(2, x)), deep={"er": inner}, p=jnp.full(2, -x))

    ours, theirs = made(3.0), made(5.0)
    theirs.restore(ours.write(tmp_path / "c.npz")).assert_consumed()
    assert [x.tolist() for x in (theirs._root.q, theirs.deep["er"].p[0], theirs.p)] == [
        [3.0, 3.0], [3.0, 3.0], [-3.0, -3.0]
    ]  # fmt: skip


def test_arrays_of_modules_and_other_objects_are_constants(tmp_path: Path):
    def made(x: float) -> jv.Module:
        module = jv.Module()
        module.w, module.table, module.more = jv.Variable(x), jnp.full(2, x), {"t": [np.ones(2)]}
        return module

    path = Checkpoint(modules=[made(3.0)]).write(tmp_path / "c.npz")
    assert [p for p, _ in list_variables(path)] == ["modules/0/w", "save_counter"]
    module = made(5.0)
    Checkpoint(modules=(modules := [module])).restore(path).assert_consumed()
    assert float(module.w) == 3.0
    assert module.table.tolist() == [5.0, 5.0]
    assert modules == [module]


def test_rings_and_keys_without_an_order_hold_variables_as_before(tmp_path: Path):
    ring: list[Any] = [jv.Variable(1.0), jnp.ones(1)]
    ring.append(ring)
    checkpoint = Checkpoint(ring=ring, keys={3: jv.Variable(2.0), "x": jnp.ones(1), None: None})
    path = checkpoint.write(tmp_path / "c.npz")
    assert dict(list_variables(path)).keys() == {
        "ring/0", "ring/1", "keys/3", "keys/x", "save_counter"
    }  # fmt: skip
    checkpoint.restore(path).assert_consumed()
    assert checkpoint.ring[2] is ring
    for same in (
        {1: jnp.ones(1), "1": jnp.zeros(1)},
        {"1/2": jnp.ones(1), "1": [0, 0, jnp.ones(1)]},
    ):
        with pytest.raises(CheckpointError, match="Two arrays have the path 'd/1"):
            Checkpoint(d=same).write(path)


# ---------------------------------------------------------------- what would be lost
class Mode(enum.IntEnum):
    ON = 1


class Count(int):
    pass


class Units(np.ndarray):
    pass


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (np.ma.array([1.0, 2.0], mask=[0, 1]), r"its mask would be lost\. Save x\.filled\(0\)"),
        (np.ones(1).view(Units), r"more than the numbers of a Units .* give np\.asarray\(x\)"),
        (Mode.ON, "a Mode, which is not saved: make it a bool, int"),
        (Count(3), "a Count, which is not saved"),
        (Fraction(1, 2), "a Fraction, which is not saved"),
        (b"ab", r"a bytes, which is not saved: .*np\.frombuffer\(x, np\.uint8\)"),
        (bytearray(b"ab"), "a bytearray, which is not saved"),
        ({1, 2}, "a set, which is not saved"),
        (deque([jnp.ones(1)]), "a deque, which is not saved"),
        (Counter(a=1), "a Counter, which is not saved"),
        (np.zeros(2, jax.dtypes.float0), "whose dtype is not saved. Make it an array of numbers"),
        (np.zeros(2, [("a", "f4")]), "whose dtype is not saved"),
        (np.longdouble(1), "whose dtype is not saved"),
    ],
)
def test_data_that_would_not_come_back_is_refused(tmp_path: Path, thing: Any, message: str):
    for beside in (jnp.ones(1), jv.Variable(1.0)):
        with pytest.raises(CheckpointError, match=rf"(?s)value at p/x is .*{message}"):
            Checkpoint(p={"x": thing, "w": beside}).write(tmp_path / "c")
        path = Checkpoint(p={"w": beside}).write(tmp_path / "c.npz")
        status = Checkpoint(p={"x": thing, "w": beside}).restore(path)
        with pytest.raises(CheckpointError, match="p/x: missing"):
            status.assert_consumed()


@pytest.mark.parametrize("form", ["folder", "file.npz"])
def test_constants_and_dtypes_of_jax_and_other_machines_are_kept(tmp_path: Path, form: str):
    names = ("bfloat16", "int4", "float8_e4m3fn", ">f4", ">i8", "complex128")
    tree = {(n, s): np.ones(s).astype(jnp.dtype(n)) for n in names for s in ((), (3,))}
    others = [None, len, jax.nn.relu, jnp.float32, np.dtype("f4"), jax.P("x"), object()]
    checkpoint = Checkpoint(t=tree, o=[*others, jnp.ones(1), {jv.Variable(1.0)}])
    checkpoint.restore(checkpoint.write(tmp_path / form)).assert_consumed()
    assert [bits(x) for x in checkpoint.t.values()] == [bits(x) for x in tree.values()]
    assert checkpoint.o[: len(others)] == others


def test_numbers_beside_variables_are_saved(tmp_path: Path):
    def made(k: int) -> Checkpoint:
        return Checkpoint(cfg={"w": jv.Variable(k + 0.5), "step": k, "name": f"{k}"}, l=[m, "x"])

    m = jv.Module()
    m.v = jv.Variable(1.0)
    path, fresh = made(5).write(tmp_path / "c.npz"), made(0)
    cfg, layers = fresh.cfg, fresh.l
    fresh.restore(path).assert_consumed()
    assert (float(fresh.cfg["w"]), fresh.cfg["step"], fresh.cfg["name"]) == (5.5, 5, "5")
    assert fresh.cfg["w"] is cfg["w"]
    assert cfg["step"] == 0  # as of any tree, a fresh one took its place
    assert fresh.l is layers  # nothing in it differs: who adds to it goes on


class Plain:
    def __init__(self):
        self.params = {"w": jnp.ones(3)}


@pytest.mark.parametrize(("thing", "message"), [
    (3, r"'x' \(int 3\): .*x=jv\.Variable\(3\)"), (0.5, r"x=jv\.Variable\(0\.5\)"),
    ("adam", r"x=jv\.Variable\('adam'\)"), (None, "Leave it out"),
    (len, "no Variable and no array in it"), (linen, "no Variable and no array in it"),
])  # fmt: skip
def test_what_can_never_be_kept_is_refused_at_once(tmp_path: Path, thing: Any, message: str):
    with pytest.raises(CheckpointError, match=message):
        Checkpoint(x=thing)
    checkpoint = Checkpoint(v=jv.Variable(1.0))
    path = checkpoint.write(tmp_path / "c.npz")
    checkpoint.x = thing
    for use in (lambda: checkpoint.save(tmp_path / "d.npz"), lambda: checkpoint.restore(path)):
        with pytest.raises(CheckpointError, match=message):
            use()
    assert [p.name for p in tmp_path.iterdir()] == ["c.npz"]


@pytest.mark.parametrize(
    "thing",
    [{}, [], (), jv.Module(), Plain(), {"lr": 0.1}, ADAM, [jv.Module()], object(), {"a": len}],
    ids=lambda thing: type(thing).__name__,
)
def test_what_holds_nothing_yet_is_refused_when_it_is_saved(tmp_path: Path, thing: Any):
    path = Checkpoint(v=jv.Variable(2.0)).write(tmp_path / "c.npz")
    checkpoint = Checkpoint(v=jv.Variable(1.0), thing=thing)
    checkpoint.restore(path).assert_consumed()
    with pytest.raises(
        CheckpointError, match=r"would save nothing of 'thing' \(.*\): .*no Variable"
    ):
        checkpoint.save(tmp_path / "d.npz")
    with pytest.raises(CheckpointError, match="would save nothing of 'thing'"):
        CheckpointManager(checkpoint, tmp_path / "m").save()
    assert int(checkpoint.save_counter) == 0
    assert not (tmp_path / "d-1.npz").exists()


def test_an_empty_checkpoint_is_refused(tmp_path: Path):
    for empty in (Checkpoint(), Checkpoint(state=optax.sgd(0.1).init({"w": jnp.ones(1)}))):
        with pytest.raises(CheckpointError, match="nothing in this Checkpoint to be saved"):
            empty.write(tmp_path / "c.npz")
    with pytest.raises(CheckpointError, match=r"root of a Checkpoint is a dict .*params=tree"):
        Checkpoint({"w": jnp.ones(3)}).write(tmp_path / "c.npz")
    for dtype, value in (("object", [None]), ("datetime64[s]", [0]), ("U1", ["a"])):
        with pytest.raises(CheckpointError, match=r"value at x/0 is .*dtype is not saved"):
            Checkpoint(x=[np.array(value, dtype)]).write(tmp_path / "c.npz")
    for form in ("c", "c.npz"):
        with pytest.raises(CheckpointError, match=r"'x/\\ud800'\] hold half a character"):
            Checkpoint(x={"\ud800": jnp.ones(1)}).write(tmp_path / form)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("nested", [lambda x: x, lambda x: {"a": [x]}], ids=["itself", "in a dict"])
def test_modules_of_flax_are_refused_with_the_line_that_adapts_them(nested):
    dense, linear = linen.Dense(3), nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    for module, line in (
        (dense, r"jv\.interop\.from_flax\(module, example_input\)"),
        (linear, r"jv\.interop\.from_flax\(module\)"),
    ):
        with pytest.raises(InteropError, match=line):
            Checkpoint(w=jv.Variable(1.0), net=nested(module))
    adapted = jv.interop.from_flax(linear)
    assert "net/kernel" in Checkpoint(net=adapted).named_variables
