"""States in files, names by rules, casts, and arrays of other libraries through DLPack."""

from __future__ import annotations

import sys
import zipfile
from types import SimpleNamespace

import flax.linen as nn
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from flax import nnx
from flax.core import freeze
from safetensors.numpy import load_file, save_file

import jaxvars as jv
from jaxvars import interop
from jaxvars.errors import ControlFlowError, DtypeError, StateError

NUMBERS = {
    name: jnp.asarray(np.array([[0, 1, 1], [1, 0, 1]]).astype(jnp.dtype(name)))
    for name in ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
                 "float8_e4m3b11fnuz", "int4", "int8", "int32", "uint32", "bool", "complex64")
}  # fmt: skip
EVERYTHING = {
    **NUMBERS,
    "scalar": jnp.bfloat16(3),
    "empty": jnp.zeros((0, 3), ml_dtypes.float8_e5m2),
    "odd": jnp.array([np.nan, -0.0, np.inf, 1e-40]),
    "columns": jnp.asarray(np.arange(6.0, dtype=np.float32).reshape(2, 3).T),
    "key": jax.random.key(3),
    "keys": jax.random.wrap_key_data(np.arange(12, dtype=np.uint32).reshape(3, 4), impl="rbg"),
    "text": np.array([["a", "bé\0"]], np.dtypes.StringDType()),
    "no text": np.zeros((0, 2), np.dtypes.StringDType()),
}
NAMES = ["a/b", "a", "a.npy", "a.b", "file", "../x", "/abs", " ", "é", "0", "00", "x\\y"]


def same(one, other):
    assert one.shape == other.shape
    assert one.dtype == other.dtype
    if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
        one, other = map(jax.random.key_data, (one, other))
    text = one.dtype == np.dtypes.StringDType()
    assert one.tolist() == other.tolist() if text else one.tobytes() == other.tobytes()


def shown(error):
    return [line.strip() for line in str(error.value).splitlines()[1:]]


# ---------------------------------------------------------------- files
@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("name", EVERYTHING)
def test_every_value_comes_back_bit_for_bit(name, suffix, tmp_path):
    v = {"v": jv.Variable(EVERYTHING[name])}
    interop.to_file(v, tmp_path / f"x{suffix}")
    same(interop.from_file(v, tmp_path / f"x{suffix}")["v"], v["v"].value)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_every_path_is_a_name(suffix, tmp_path):
    variables = {name: jv.Variable(float(i)) for i, name in enumerate(NAMES)}
    interop.to_file(variables, tmp_path / f"x{suffix}")
    state = interop.from_file(variables, tmp_path / f"x{suffix}")
    assert {name: float(state[name]) for name in state} == dict(zip(NAMES, range(12), strict=True))
    for bad in ("x\0y", "\ud800"):
        with pytest.raises(StateError, match="cannot be names in a file"):
            interop.to_file({bad: jv.Variable(1.0)}, tmp_path / f"y{suffix}")
    assert [path.name for path in tmp_path.iterdir()] == [f"x{suffix}"]


def test_what_a_format_cannot_hold_is_refused_and_the_old_file_stays(tmp_path):
    path = tmp_path / "x.safetensors"
    interop.to_file(jv.Variable(1.0, name="v"), path)
    with pytest.raises(StateError, match=r"no float32 '__metadata__': write a \.npz file"):
        interop.to_file({"v": jv.Variable(2.0), "__metadata__": jv.Variable(1.0)}, path)
    assert float(interop.from_file(jv.Variable(0.0, name="v"), path)["v"]) == 1
    with pytest.raises(StateError, match=r"does not end in .npz or .safetensors"):
        interop.to_file(jv.Variable(1.0), tmp_path / "x.bin")


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_kinds_that_have_the_same_bytes_are_not_confused(suffix, tmp_path):
    path = tmp_path / f"x{suffix}"
    for have, want in [
        (jnp.ones(2, jnp.bfloat16), jnp.ones(2, jnp.float16)),
        (jnp.ones(2, ml_dtypes.float8_e5m2), jnp.ones(2, ml_dtypes.float8_e4m3fn)),
        (jax.random.key(0, impl="rbg"), jax.random.key(0, impl="unsafe_rbg")),
    ]:
        interop.to_file(jv.Variable(have, name="v"), path)
        with pytest.raises(StateError, match=r"the variable is .*, the value "):
            interop.from_file(jv.Variable(want, name="v"), path)
    np.savez(tmp_path / "raw.npz", v=np.ones(2, ml_dtypes.bfloat16))  # NumPy loses the dtype
    with pytest.raises(StateError, match=r"float16\[2\], the value \|V2"):
        interop.from_file(jv.Variable(jnp.ones(2, jnp.float16), name="v"), tmp_path / "raw.npz")
    whole = interop.from_file(jv.Variable(jnp.zeros(2, "bfloat16"), name="v"), tmp_path / "raw.npz")
    assert whole["v"].tolist() == [1, 1]


def test_other_programs_read_and_write_the_files(tmp_path):
    v = {"w": jv.Variable(jnp.arange(6, dtype=jnp.bfloat16).reshape(2, 3).T)}
    interop.to_file(v, tmp_path / "x.safetensors")
    assert load_file(tmp_path / "x.safetensors")["w"].tolist() == [[0, 3], [1, 4], [2, 5]]
    save_file({"weight": np.ones((2, 3), np.float32)}, tmp_path / "y.safetensors")
    state = interop.from_file(
        v, tmp_path / "y.safetensors", [("weight", "w", np.transpose)], cast=True
    )
    assert state["w"].dtype == jnp.bfloat16
    np.savez_compressed(tmp_path / "z.npz", w=np.ones((3, 2), np.float32))
    assert interop.from_file(v, tmp_path / "z.npz", cast=True)["w"].tolist() == [[1, 1]] * 3
    interop.to_file({"w": jv.Variable([1.0])}, tmp_path / "z.npz")
    assert np.load(tmp_path / "z.npz")["w"].tolist() == [1]


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_the_order_of_memory_does_not_matter(suffix, tmp_path):
    columns = jax.dlpack.from_dlpack(aligned().reshape(32, 32).T)
    assert np.asarray(columns).flags.f_contiguous
    state = jv.State.of(v=jv.Variable(jnp.zeros((32, 32)))).replace({"v": columns})
    interop.to_file(state, tmp_path / f"x{suffix}")
    read = interop.from_file(state, tmp_path / f"x{suffix}")["v"]
    np.testing.assert_array_equal(read, columns)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_a_damaged_file_is_one_clear_error(suffix, tmp_path):
    path = tmp_path / f"x{suffix}"
    interop.to_file({"w": jv.Variable([1.0, 2.0]), "k": jv.Variable(jax.random.key(0))}, path)
    data, w = path.read_bytes(), jv.Variable([1.0, 2.0])
    for cut in range(0, len(data) - 1, 7):
        path.write_bytes(data[:cut])
        with pytest.raises(StateError, match="is damaged, or of another format"):
            interop.from_file({"w": w}, path)
    with pytest.raises(FileNotFoundError):
        interop.from_file(w, tmp_path / f"none{suffix}")


def test_no_file_runs_anything(tmp_path):
    np.savez(tmp_path / "x.npz", w=np.array([SimpleNamespace()], object))
    with pytest.raises(StateError, match="allow_pickle=False"):
        interop.from_file(jv.Variable(1.0, name="w"), tmp_path / "x.npz")
    odd = np.zeros(2, [("nonsense", "f4")])
    with pytest.raises(StateError, match=r"w: TypeError: .*nonsense"):
        interop.from_dict(jv.Variable([1.0, 2.0], name="w"), {"w": odd})


def test_the_extra_is_named_when_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "jaxvars\[safetensors\]"'):
        interop.to_file(jv.Variable(1.0), tmp_path / "x.safetensors")
    assert not list(tmp_path.iterdir())


def test_sharded_values_are_gathered(tmp_path):
    mesh = jax.make_mesh((jax.device_count(),), ("x",))
    spread = jax.NamedSharding(mesh, jax.P("x"))
    value = jax.device_put(jnp.arange(4.0 * jax.device_count()), spread)
    v = jv.Variable(value, name="v")
    interop.to_file(v, tmp_path / "x.npz")
    interop.from_file(v, tmp_path / "x.npz").commit()
    same(v.value, value)
    assert v.value.sharding == value.sharding
    with zipfile.ZipFile(tmp_path / "x.npz") as archive:
        assert archive.namelist() == ["v.npy"]


# ---------------------------------------------------------------- names
def test_names_that_land_on_one_path_are_refused():
    v = {"a": {"b": jv.Variable(1.0), "0": jv.Variable(2.0)}}
    for values in ({"a/b": 1.0, "a": {"b": 2.0, "0": 1.0}}, {"a": {"b": 1.0, 0: 3.0, "0": 4.0}}):
        with pytest.raises(StateError, match="it is given twice"):
            interop.from_dict(v, values)
    assert interop.from_dict(v, {"a": {"b": 1.0, 0: 3.0}})["a/0"] == 3
    with pytest.raises(StateError, match="no value is given"):
        interop.from_dict(v, {"a": {}})


def test_all_that_is_wrong_with_rules_is_in_one_error():
    v = {"w": jv.Variable([1.0, 2.0]), "b": jv.Variable(1.0), "c": jv.Variable(1.0)}
    values = {"x.w": np.ones(3, np.float32), "x.b": 1.0, "y.b": 2.0, "z": 1.0, "t": [1.0]}
    rules = [(r"x\.(w)", r"\1"), (r".\.b", "b"), ("none", "c"), ("t", "c", lambda _: 1 / 0)]
    with pytest.raises(StateError) as error:
        interop.from_dict(v, values, rules)
    assert shown(error) == [
        "b: it is given twice, as 'x.b' and 'y.b'",
        "c: no value is given",
        "none: this rule matches no name",
        "t: ZeroDivisionError: division by zero",
        "w (from 'x.w'): the variable is float32[2], the value float32[3]",
        "z: no variable has this path",
    ]
    with pytest.raises(StateError, match=r"variables:\n  z: no variable has this path\nMore"):
        interop.from_dict(v, {"z": 1.0}, [("none", "c")], partial=True)
    with pytest.raises(StateError, match=r"x\.w: no variable has this path\n  Rules say .*Linear"):
        interop.from_dict(v, {"x.w": 1.0}, partial=True)
    state = interop.from_dict(v, {"z": 1.0, "b": 5.0}, [("z", None), ("y", None)], partial=True)
    assert (float(state["b"]), float(state["c"])) == (5, 1)


@pytest.mark.parametrize(
    "rule", [("(", "a"), ("a",), ("a", "b", 3), ("a", None, "Linear"), ("a", "b", "LSTM"), (), "ab"]
)
def test_what_is_not_a_rule_is_refused(rule):
    with pytest.raises(StateError, match=r"is not a rule, \(pattern, replacement\)"):
        interop.from_dict(jv.Variable(1.0, name="a"), {"a": 1.0}, [rule])


def test_a_replacement_without_its_group_is_named():
    with pytest.raises(StateError, match=r"a: .*invalid group reference 1"):
        interop.from_dict(jv.Variable(1.0, name="a"), {"a": 1.0}, [("a", r"\1")], partial=True)


class Net(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(10, 3, name="emb")(tokens)
        x = nn.Conv(4, (3, 2), padding="VALID", name="conv")(x)
        x = nn.BatchNorm(use_running_average=True, epsilon=1e-5, name="bn")(x).mean((1, 2))
        x = nn.LayerNorm(epsilon=1e-5, name="ln")(x)
        for i, size in enumerate((5, 2)):
            x = nn.Dense(size, name=f"layers_{i}")(x)
        return x


RULES = [
    ("emb", "params/emb", "Embedding"),
    ("conv", "params/conv", "Conv"),
    ("bn", "params/bn", "BatchNorm"),
    ("ln", "params/ln", "LayerNorm"),
    (r"layers\.(\d+)", r"params/layers_\1", "Linear"),
]


def torch_weights():
    shapes = {
        "emb.weight": (10, 3), "conv.weight": (4, 3, 3, 2), "conv.bias": (4,),
        "bn.weight": (4,), "bn.bias": (4,), "bn.running_mean": (4,), "bn.running_var": (4,),
        "ln.weight": (4,), "ln.bias": (4,), "layers.0.weight": (5, 4), "layers.0.bias": (5,),
        "layers.1.weight": (2, 5), "layers.1.bias": (2,),
    }  # fmt: skip
    random = np.random.default_rng(0)
    made = {name: random.uniform(0.5, 1, shape).astype("f4") for name, shape in shapes.items()}
    return made | {"bn.num_batches_tracked": np.int64(3)}


def torch_forward(w, tokens):
    """What PyTorch documents of these layers, in NumPy: channels are the second axis."""
    x = np.moveaxis(w["emb.weight"][tokens], -1, 1)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 2), axis=(2, 3))
    x = np.einsum("bihwkl,oikl->bohw", windows, w["conv.weight"])
    x = x + w["conv.bias"][:, None, None]

    def channel(name):
        return w[f"bn.{name}"][:, None, None]

    x = (x - channel("running_mean")) / np.sqrt(channel("running_var") + 1e-5)
    x = (x * channel("weight") + channel("bias")).mean((2, 3))
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    x = x * w["ln.weight"] + w["ln.bias"]
    for i in range(2):
        x = x @ w[f"layers.{i}.weight"].T + w[f"layers.{i}.bias"]
    return x


def test_layers_of_pytorch_compute_the_same():
    tokens = np.random.default_rng(1).integers(0, 10, (5, 6, 6)).astype("i4")
    model, weights = interop.from_flax(Net(), jnp.asarray(tokens), rngs=0), torch_weights()
    state = {"params": model.params, "batch_stats": model.batch_stats}
    interop.from_dict(state, weights, RULES).commit()
    np.testing.assert_allclose(model(tokens), torch_forward(weights, tokens), rtol=1e-4, atol=1e-5)
    back = interop.to_numpy(
        {"params": {"layers_0": model.params["layers_0"]}},
        [(r"params/layers_(\d)/kernel", r"layers.\1.weight", np.transpose), (r".*/bias", "b")],
    )
    np.testing.assert_array_equal(back["layers.0.weight"], weights["layers.0.weight"])
    with pytest.raises(StateError, match="given twice"):
        interop.to_numpy(model, [(".*", "b")])


def test_params_of_flax_go_in_and_out():
    x = jnp.ones((1, 3))
    model, other = (interop.from_flax(nn.Dense(2), x, rngs=seed) for seed in (0, 1))
    params = freeze(nn.Dense(2).init(jax.random.key(5), x)["params"])
    interop.from_dict({"params": model.params}, {"params": params}).commit()
    assert jax.tree.all(jax.tree.map(jnp.array_equal, interop.to_dict(model.params), dict(params)))
    boxed = {"kernel": nn.Partitioned(params["kernel"], (None, None)), "bias": params["bias"]}
    interop.from_dict(other.params, boxed).commit()
    np.testing.assert_array_equal(other(x), model(x))
    linear = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    interop.from_dict(other.params, dict(nnx.state(linear))).commit()
    np.testing.assert_array_equal(other(x), linear(x))


# ---------------------------------------------------------------- casts
def test_floats_are_cast_when_asked_for():
    w, n = jv.Variable(jnp.zeros(2, jnp.bfloat16), name="w"), jv.Variable(1, name="n")
    state = jv.State.of(w=w, n=n).replace({"w": jnp.ones(2)})
    with pytest.raises(StateError) as error:
        state.commit()
    assert shown(error) == [
        "w: the variable is bfloat16[2], the value float32[2]. state.commit(cast=True) converts it"
    ]
    state.commit(cast=True)
    assert w.numpy().tolist() == [1, 1]
    jv.compile(lambda: jv.State.of(w=w).replace({"w": jnp.full(2, 3.0)}).commit(cast=True))()
    assert (w.numpy().tolist(), w.dtype) == ([3, 3], jnp.bfloat16)
    for wrong in ({"n": jnp.float32(2)}, {"w": jnp.ones(2, int)}, {"w": jnp.ones(3)}):
        with pytest.raises(StateError, match=r"the value [a-z]+32\[\d?\]( *|\n.*)$"):
            jv.State.of(w=w, n=n).replace(wrong).commit(cast=True)


def test_a_cast_makes_nothing_infinite():
    v, w = jv.Variable(1.0, name="v"), jv.Variable(jnp.float16(1), name="w")
    state = jv.State.of(v=v, w=w).replace({"v": jnp.float32(9), "w": jnp.float32(1e6)})
    with pytest.raises(DtypeError, match=r"the value for w is 1000000.0, outside of float16"):
        state.commit(cast=True)
    with pytest.raises(StateError, match=r"w: .*outside of float16"):
        interop.from_dict({"w": w}, {"w": np.float64(1e6)}, cast=True)
    assert (float(v), float(w)) == (1, 1)
    assert interop.from_dict({"w": w}, {"w": np.float64(2)}, cast=True)["w"].dtype == jnp.float16
    with pytest.raises(StateError, match=r"float16\[\], the value int64\[\]"):
        interop.from_dict({"w": w}, {"w": np.int64(2)}, cast=True)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_all_64_bits_come_back_where_those_of_jax_are_off(suffix, tmp_path):
    known = {"w": np.array([1 / 3]), "n": np.array([2**60 + 1])}
    with jax.enable_x64(True):
        saved = {name: jv.Variable(x, name=name) for name, x in known.items()}
        blank = {name: jv.Variable(0 * x, name=name) for name, x in known.items()}
    zero = jv.State.of(blank)
    interop.to_file(saved, tmp_path / f"a{suffix}")
    for state in (
        interop.from_file(blank, tmp_path / f"a{suffix}"),
        interop.from_bytes(blank, interop.to_bytes(saved)),
        interop.from_dict(blank, known, cast=True),
        interop.from_dict(blank, {"w": [1 / 3], "n": [2**60 + 1]}),
    ):
        assert [state[name].dtype for name in known] == [np.float64, np.int64]
        state.commit()
        for name, variable in blank.items():
            assert variable.numpy().tolist() == known[name].tolist()
        zero.commit()


def test_a_cast_to_64_bits_is_one_where_those_of_jax_are_off():
    with jax.enable_x64(True):
        w = jv.Variable(np.zeros(1), name="w")
    interop.from_dict({"w": w}, {"w": np.float32([0.5])}, cast=True).commit()
    assert (w.numpy().tolist(), w.dtype) == ([0.5], np.float64)


# ---------------------------------------------------------------- DLPack
def aligned(n=1024):
    """An array that JAX does not copy: its memory begins where XLA's would."""
    raw = np.zeros(4 * n + 64, np.uint8)
    start = -raw.ctypes.data % 64
    array = raw[start : start + 4 * n].view(np.float32)
    array[:] = np.arange(n)
    return array


def stepping(v):
    @jv.compile
    def step():
        v.assign(2 * v + 1)

    return step


@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize("steps_before", [0, 2])
def test_what_is_handed_out_stays_as_it_is(copy, steps_before):
    v = jv.Variable(jnp.arange(1024.0))
    step = stepping(v)
    for _ in range(steps_before):
        step()
    out = [np.from_dlpack(v, copy=copy), np.from_dlpack(v.value)]
    out += [np.from_dlpack(jv.State.of(v=v, copy=share)["v"]) for share in (True, False)]
    before = v.numpy()
    for _ in range(3):
        step()
    jax.block_until_ready(v.value)
    for array in out:
        np.testing.assert_array_equal(array, before)
    assert (v[0] > before[0]).item()


def test_what_is_handed_out_may_be_written():
    v = jv.Variable(jnp.zeros(1024))
    out = np.from_dlpack(v)
    view = np.ctypeslib.as_array(
        (np.ctypeslib.ctypes.c_float * 1024).from_address(out.ctypes.data)
    )  # torch.from_dlpack would be writable, too
    view[:] = 7
    assert (v.numpy().max(), out.max()) == (0, 7)


@pytest.mark.parametrize("way", ["Variable", "assign", "State", "from_dict"])
def test_what_came_in_is_not_donated_under_its_owner(way):
    owner = aligned()
    shared = jax.dlpack.from_dlpack(owner)
    assert shared.unsafe_buffer_pointer() == owner.ctypes.data
    v = jv.Variable(shared) if way == "Variable" else jv.Variable(jnp.zeros(1024))
    if way == "assign":
        v.assign(shared)
    elif way == "State":
        jv.State.of(v=v).replace({"v": shared}).commit()
    elif way == "from_dict":
        interop.from_dict({"v": v}, {"v": shared}).commit()
    step = stepping(v)
    for _ in range(3):
        step()
    jax.block_until_ready(v.value)
    np.testing.assert_array_equal(owner, np.arange(1024))
    owner[:] = -1
    assert v[1].item() == 2 * (2 * (2 * 1 + 1) + 1) + 1


class Foreign:
    """An array of a library that NumPy does not know; like torch's, if it has `detach`."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class LikeTorch(Foreign):
    """With a gradient until it is detached, and no NumPy array of bfloat16."""

    dtype = "torch.bfloat16"

    def __array__(self, *_, **__):
        raise TypeError("Got unsupported ScalarType BFloat16")

    def detach(self):
        return self

    cpu = resolve_conj = resolve_neg = contiguous = detach


@pytest.mark.parametrize("kind", [Foreign, LikeTorch])
def test_arrays_of_other_libraries_are_copied_exactly(kind):
    for value in (jnp.ones((2, 3), jnp.bfloat16), jnp.float32(3), jnp.zeros((0, 2), "float8_e5m2")):
        v = jv.Variable(kind(value))
        same(v.value, value)
        v.assign(kind(value))
        same(interop.from_dict({"v": v}, {"v": kind(value)})["v"], value)
    with pytest.raises(DtypeError, match="1099511627776"):
        jv.Variable(kind(np.array(2**40)))
    owner = aligned()
    v = jv.Variable(kind(owner))
    owner[:] = 0
    assert v[5].item() == 5


def test_a_compiled_function_has_nothing_to_hand_out():
    v = jv.Variable(jnp.ones(3))
    with pytest.raises(ControlFlowError, match="only known when the compiled function runs"):
        jv.compile(lambda: np.from_dlpack(v))()
    assert v.numpy().tolist() == [1, 1, 1]


def test_a_key_and_a_string_have_no_dlpack():
    with pytest.raises(AttributeError, match="__dlpack__"):
        np.from_dlpack(jv.Variable(jax.random.key(0)))
    with pytest.raises(BufferError):
        np.from_dlpack(jv.Variable("text"))
