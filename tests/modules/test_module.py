"""A Module finds its variables and submodules, each once, in TensorFlow's order, with paths."""

from __future__ import annotations

import abc
import copy
import gc
import pickle
import weakref
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jaxvars as jv
from jaxvars.errors import CheckpointError
from jaxvars.modules.module import nbytes

V = jv.Variable


class Linear(jv.Module):
    def __init__(self, n_in, n_out, name=None):
        super().__init__(name)
        self.w = V(jnp.zeros((n_in, n_out)), name="w")
        self.b = V(jnp.zeros(n_out), name="b")

    def __call__(self, x):
        return x @ self.w + self.b


def positive(x):
    return jnp.maximum(x, 0)


class Net(jv.Module):  # needs no super().__init__()
    def __init__(self):
        self.steps = V(0, name="steps", trainable=False)
        self.body = Linear(2, 3)
        self.act = positive
        self.scale = V(1.0, name="scale")
        self.layers = [Linear(3, 3) for _ in range(2)]

    def __call__(self, x):
        x = self.body(x)
        for layer in self.layers:
            x = self.act(layer(x))
        return x * self.scale


@dataclass
class Pair:
    second: object
    first: object


@dataclass
class Dense(jv.Module):
    kernel: object
    units: int = 3


Named = namedtuple("Named", "second first")


def holding(**attributes):
    module = jv.Module()
    vars(module).update(attributes)
    return module


def paths(module):
    return list(module.named_variables)


# ---------------------------------------------------------------- finding
NET = ["scale", "steps", "body/b", "body/w", *(f"layers/{i}/{x}" for i in (0, 1) for x in "bw")]


def test_own_variables_come_before_those_of_submodules_sorted_by_name():
    net = Net()
    assert paths(net) == NET
    assert [v.name for v in net.variables] == [path.split("/")[-1] for path in NET]
    assert net.variables == tuple(net.named_variables.values())


def test_trainable_or_not():
    net = Net()
    assert len(net.trainable_variables) == len(NET) - 1
    assert net.non_trainable_variables == (net.steps,)
    net.scale.trainable = False
    assert net.non_trainable_variables == (net.scale, net.steps)
    assert isinstance(net.trainable_variables, tuple)


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (lambda: jv.Module(), []),
        (lambda: holding(b=V(1.0), a=V(1.0)), ["a", "b"]),
        (lambda: holding(x=[V(1.0), (V(1.0), {"k": V(1.0)})]), ["x/0", "x/1/0", "x/1/1/k"]),
        (lambda: holding(x=[V(1.0) for _ in range(11)]), [f"x/{i}" for i in range(11)]),
        (lambda: holding(x={"b": V(1.0), "a": V(1.0)}), ["x/a", "x/b"]),
        (lambda: holding(x=OrderedDict(b=V(1.0), a=V(1.0))), ["x/a", "x/b"]),
        (lambda: holding(x=defaultdict(list, q=[V(1.0)])), ["x/q/0"]),
        (lambda: holding(x=Pair(V(1.0), V(1.0))), ["x/first", "x/second"]),
        (lambda: holding(x=Named(V(1.0), V(1.0))), ["x/second", "x/first"]),
        (lambda: holding(x=Dense(V(1.0)), v=V(1.0)), ["v", "x/kernel"]),
        (lambda: holding(x={"m": Linear(1, 1)}, z=V(1.0)), ["z", "x/m/b", "x/m/w"]),
        (lambda: holding(f=lambda: V(1.0), n=None, t="text", i=3, a=jnp.ones(2)), []),
        (lambda: holding(_private=V(1.0), __x=V(1.0)), ["__x", "_private"]),
        (lambda: holding(x={1: V(1.0), "1": V(1.0)}), ["x/1", "x/1_1"]),
        (lambda: holding(x={"a/b": V(1.0), "a": {"b": V(1.0)}}), ["x/a/b", "x/a/b_1"]),
    ],
)
def test_where_variables_are_found(module, expected):
    found = module()
    assert paths(found) == expected
    assert len(found.variables) == len(expected)


def test_each_is_found_once():
    v, shared = V(1.0), Linear(1, 1)
    module = holding(b=v, a=[v, v], p=shared, q=shared)
    assert paths(module) == ["a/0", "p/b", "p/w"]
    assert module.submodules == (shared,)


def test_cycles_are_fine():
    parent, child = holding(v=V(1.0)), holding(v=V(2.0))
    parent.child, child.parent, parent.me = child, parent, [parent]
    assert paths(parent) == ["v", "child/v"]
    assert paths(child) == ["v", "parent/v"]
    assert parent.submodules == (child,)
    assert "..." in repr(parent)


def test_variables_are_found_when_asked_for():
    module = jv.Module()
    assert module.variables == ()
    module.late = V(1.0)
    assert paths(module) == ["late"]
    del module.late
    assert paths(module) == []


def test_slots_are_searched():
    class Slotted(jv.Module):
        __slots__ = ("v",)

        def __init__(self):
            self.v = V(1.0)

    assert paths(Slotted()) == ["v"]


def test_properties_are_not_called():
    class Lazy(jv.Module):
        @property
        def v(self):
            raise AssertionError

    assert Lazy().variables == ()


def test_submodules():
    net = Net()
    assert net.submodules == (net.body, *net.layers)
    outer = holding(a=holding(b=holding()), z=[Linear(1, 1)])
    assert outer.submodules == (outer.a, outer.a.b, outer.z[0])
    assert Linear(1, 1).submodules == ()


def test_the_order_does_not_depend_on_that_of_assignment():
    one, two = jv.Module(), jv.Module()
    for name in "abc":
        setattr(one, name, V(0.0, name=name))
    for name in "cab":
        setattr(two, name, V(0.0, name=name))
    assert paths(one) == paths(two) == ["a", "b", "c"]


# ---------------------------------------------------------------- names
@pytest.mark.parametrize(("kind", "name"), [
    ("Linear", "linear"), ("MyNet", "my_net"), ("MyHTTPNet", "my_http_net"),
    ("ResNet50", "res_net50"), ("A", "a"), ("already_snake", "already_snake"),
])  # fmt: skip
def test_the_name_is_that_of_the_class_in_snake_case(kind, name):
    assert type(kind, (jv.Module,), {})().name == name


def test_a_name_may_be_given():
    assert Linear(1, 1, name="encoder").name == "encoder"
    assert Linear(1, 1, name="a/b").name == "a/b"


@pytest.mark.parametrize("name", ["", "a b", "1a", "a.b"])
def test_what_is_no_name(name):
    with pytest.raises(
        ValueError, match="is not a module name: use letters, digits and underscores"
    ):
        Linear(1, 1, name=name)


class Scoped(jv.Module):
    def __init__(self):
        super().__init__("scoped")
        with self.name_scope as scope:
            self.scope, self.v = scope, V(1.0, name="v")

    @jv.Module.with_name_scope
    def build(self, name, *, value=0.0):
        """Make u."""
        self.u = V(value, name=name)
        return self.u


def test_name_scope():
    assert (Scoped().v.name, Scoped().scope) == ("scoped/v", "scoped")
    with jv.name_scope("outer"):
        assert (Scoped().v.name, Scoped().scope) == ("outer/scoped/v", "outer/scoped")
    assert V(1.0, name="v").name == "v"


def test_with_name_scope():
    module = Scoped()
    assert module.build("u", value=2.0).name == "scoped/u"
    assert module.u.item() == 2
    assert (Scoped.build.__name__, Scoped.build.__doc__) == ("build", "Make u.")
    assert V(1.0, name="v").name == "v"


def test_nested_name_scopes():
    class Outer(jv.Module):
        @jv.Module.with_name_scope
        def __init__(self):
            self.inner = Scoped()

    assert Outer().inner.v.name == "outer/scoped/v"


# ---------------------------------------------------------------- use
@pytest.mark.parametrize("compiled", [False, True])
def test_a_training_step_updates_what_is_trainable(compiled):
    net = holding(w=V(2.0, name="w"), frozen=V(3.0, trainable=False))

    def step(x):
        with jv.GradientTape() as tape:
            loss = net.w * net.frozen * x
        grads = tape.gradient(loss, net.trainable_variables)
        for v, g in zip(net.trainable_variables, grads, strict=True):
            v.assign_sub(g)
        return loss

    assert (jv.compile(step) if compiled else step)(1.0) == 6
    assert (net.w.item(), net.frozen.item()) == (-1, 3)


@pytest.mark.parametrize("trip", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies(trip):
    net = Net()
    net.tied = net.scale
    other = trip(net)
    other.scale.assign(5.0)
    assert (net.scale.item(), other.tied.item()) == (1, 5)
    assert other.tied is other.scale
    assert paths(other) == paths(net)
    assert other(jnp.ones((1, 2))).shape == (1, 3)


def test_a_module_is_freed_with_its_variables():
    net = Net()
    gone = [weakref.ref(x) for x in (net, *net.variables)]
    del net
    gc.collect()
    assert all(ref() is None for ref in gone)


# ---------------------------------------------------------------- display
@pytest.mark.skipif(jax.default_backend() != "cpu", reason="names the device")
def test_summary(capsys):
    assert Net().summary() is None
    assert (
        capsys.readouterr().out
        == """\
Net 'net'
path                                   shape   dtype    trainable  device  bytes
-------------------------------------  ------  -------  ---------  ------  -----
scale                                  ()      float32  yes        cpu:0     4 B
steps                                  ()      int32    no         cpu:0     4 B
body/b                                 (3,)    float32  yes        cpu:0    12 B
body/w                                 (2, 3)  float32  yes        cpu:0    24 B
layers/0/b                             (3,)    float32  yes        cpu:0    12 B
layers/0/w                             (3, 3)  float32  yes        cpu:0    36 B
layers/1/b                             (3,)    float32  yes        cpu:0    12 B
layers/1/w                             (3, 3)  float32  yes        cpu:0    36 B
-------------------------------------  ------  -------  ---------  ------  -----
total: 35 elements in 8 variables                                          140 B
trainable: 34 elements in 7 variables                                      136 B
other: 1 elements in 1 variable                                              4 B
"""
    )


def test_the_table_holds_values():
    table = Net().table()
    assert table.columns == ("path", "shape", "dtype", "trainable", "device", "bytes")
    assert table.column("path") == NET
    assert table[3][1:4] == ((2, 3), "float32", True)
    assert sum(table.column("bytes")) == 140
    html = table._repr_html_()
    assert html.count("<tr>") == 1 + len(NET) + 3
    assert "layers/1/w" in html


@pytest.mark.parametrize(
    ("variable", "row"),
    [
        (lambda: V("text"), ("v", (), "string", True, "host", 0)),
        (lambda: V(jnp.ones(3, jnp.bfloat16)), ("v", (3,), "bfloat16", True, None, 6)),
        (lambda: V(True, trainable=False), ("v", (), "bool", False, None, 1)),
        (lambda: V(jax.random.key(0)), ("v", (), "key<fry>", True, None, 8)),
    ],
)
def test_rows_of_all_kinds(variable, row):
    (found,) = holding(v=variable()).table()
    assert found[:4] == row[:4]
    assert found[5] == row[5] == nbytes(holding(v=variable()).variables[0])
    assert row[4] is None or found[4] == row[4]


@pytest.mark.skipif(jax.device_count() < 8, reason="needs 8 devices: see conftest.py")
def test_the_table_says_on_how_many_devices_a_variable_is():
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    table = holding(v=V(jnp.zeros(8), sharding=sharding), w=V(1.0)).table()
    assert table.columns[4:] == ("device", "bytes", "sharding", "bytes per device")
    assert table[0][4:] == ("8 devices", 32, "P('x',)", 4)
    assert table[1][4:] == ("cpu:0", 4, None, 4)
    assert table.footer[0][-3:] == (36, None, 8)
    assert "  P('x',)  " in str(table)
    with jv.device("CPU:3"):
        assert holding(v=V(1.0)).table()[0][4] == "cpu:3"


def test_the_table_in_compiled_code():
    net, shown = holding(v=V(1.0)), []
    show = jv.compile(lambda: shown.append(net.table()))
    show()
    assert shown[0].column("device") == ["traced"]
    assert not show.trace().captured


# ---------------------------------------------------------------- attributes
@dataclass(slots=True)
class Slotted(jv.Module):
    n: object


def on_class():
    kind = type("OnClass", (jv.Module,), {})
    kind.n = V(0)
    return kind()


@pytest.mark.parametrize("make", [lambda: holding(n=V(0)), lambda: Slotted(V(0)), on_class])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_variable_that_is_changed_in_place_stays_in_its_module(make, compiled):
    net = make()
    n = net.n

    def step():
        net.n += 1
        return net.n.value

    step = jv.compile(step) if compiled else step
    assert [int(step()), int(step())] == [1, 2]
    assert net.n is n
    assert [value for value in net.variables or [n] if value is n] == [n]


@pytest.mark.parametrize("make", [lambda: holding(n=V(0)), lambda: Slotted(V(0)), on_class])
@pytest.mark.parametrize("value", [3.0, None, jnp.ones(2), [V(1)]], ids=repr)
def test_a_variable_is_not_overwritten_by_something_else(make, value):
    net = make()
    message = (
        rf"(?s)\.n is a Variable, and at test_module\.py:\d+, in test_a_.* it is set to "
        rf"{type(value).__name__}: .*self\.n\.assign\(value\)    # not: .*del self\.n\."
    )
    with pytest.raises(AttributeError, match=message):
        net.n = value
    assert type(net.n) is V
    net.n = other = V(5)
    assert net.n is other


def test_setting_an_attribute_does_not_ask_for_one():
    class Asking(jv.Module):
        __slots__ = ("n",)

        def __init__(self):
            self.n = self.m = V(0)

        def __getattr__(self, name):
            raise RuntimeError(name)

    assert Asking().n.numpy() == 0


def test_a_variable_is_taken_out_by_deleting_it():
    net = holding(n=V(0), items=[V(1)])
    del net.n
    net.n = 3
    net.n = 4
    net.items[0] = net.items
    assert (net.n, net.variables) == (4, ())
    optimizer = jv.optimizers.SGD(V(0.5))  # its property decides what setting means
    optimizer.learning_rate = 0.25
    assert optimizer.learning_rate.numpy() == 0.25


def test_the_summary_of_nothing():
    assert "total: 0 elements in 0 variables" in str(jv.Module().table())


def test_repr():
    assert repr(Linear(1, 1)) == (
        "Linear(b=<Variable 'b' float32[1] [0.]>, w=<Variable 'w' float32[1,1] [[0.]]>)"
    )


class Keras(jv.Module):
    """It has a method that is another library's word, and lacks another."""

    def fit(self) -> str:
        return "mine"


def test_words_of_other_libraries_are_the_users_to_take() -> None:
    model = Keras()
    assert model.fit() == "mine"
    assert not hasattr(model, "predict")
    model.predict = "mine, too"
    assert model.predict == "mine, too"
    assert {"fit", "predict"} <= set(dir(model))
    assert {"evaluate", "__jax_array__"}.isdisjoint(dir(model))
    with pytest.raises(AttributeError, match=r"has no attribute 'evaluate'\. Use model\(x\)"):
        model.evaluate  # noqa: B018


def test_jax_is_told_that_a_module_is_not_an_array() -> None:
    for transform in (jax.jit, jax.grad, jax.vmap, jax.make_jaxpr):
        with pytest.raises((TypeError, jv.errors.ForeignTransformError), match="Keras"):
            transform(lambda model: 1.0)(Keras())
    assert not hasattr(Keras(), "__jax_array__")
    assert jax.tree.leaves(Keras()) != []


class Trainer(abc.ABC):
    """Another base class, which has other libraries' words."""

    weights = 3

    @abc.abstractmethod
    def save(self) -> str: ...

    def fit(self) -> str:
        return "mixed in"

    @property
    def params(self) -> str:
        raise AttributeError("of the property")


class Mixed(jv.Module, Trainer):
    def save(self) -> str:
        return "saved"

    def __rmatmul__(self, other: Any) -> str:
        return "reflected"


def test_words_of_other_libraries_are_found_in_other_base_classes() -> None:
    model = Mixed()
    assert (model.fit(), Mixed.fit(model), model.weights, Mixed.weights) == ("mixed in",) * 2 + (
        3,
    ) * 2
    assert {"fit", "weights", "params"} <= set(dir(model))
    with pytest.raises(AttributeError, match="of the property"):
        model.params  # noqa: B018
    with pytest.raises(TypeError, match="abstract"):
        type("Unfinished", (jv.Module, Trainer), {})()


def test_operators_of_jax_leave_a_module_its_own() -> None:
    x, model = jnp.ones(3), Mixed()
    assert x @ model == "reflected"
    assert (x == model) is False
    assert model in [x, model]
    with pytest.raises(TypeError, match="unsupported operand"):
        x + model  # pyright: ignore[reportOperatorIssue]


def test_a_flag_that_freezes_nothing_is_refused():
    class Scale(jv.Module):
        def __init__(self, trainable: bool = True):
            self.trainable = trainable  # there are no variables: it is the user's own
            self.factor = jv.Variable(2.0, trainable=trainable)

    class Flagged(jv.Module):
        trainable = True

        def __init__(self):
            self.factor = jv.Variable(2.0)

    scale = Scale()
    with pytest.raises(
        AttributeError, match=r"(?s)Scale\.trainable is set at test_module.*v\.trainable"
    ):
        scale.trainable = False
    assert scale.trainable is True
    assert scale.trainable_variables == (scale.factor,)
    flagged = Flagged()
    flagged.trainable = False  # what it means is the class's
    assert not flagged.trainable


def test_variables_of_the_class_are_refused():
    for held in (jv.Variable(0.0), [jv.Variable(0.0)], {"w": jv.Variable(0.0)}, Holder()):
        with pytest.raises(TypeError, match=r"(?s)Net\.w is made at test_module.*self\.w = \.\.\."):
            type("Net", (jv.Module,), {"w": held})
    made = type("Net", (jv.Module,), {"w": [1], "n": "n", "kind": Holder, "step": jv.compile(len)})
    assert made().variables == ()


class Holder(jv.Module):
    def __init__(self):
        self.w = jv.Variable(0.0)


@pytest.mark.parametrize("name", ["variables", "trainable_variables", "submodules", "name"])
def test_a_property_that_is_set_says_what_to_write(name):
    with pytest.raises(AttributeError, match=rf"Holder\.{name} is set at test_module.*: a module"):
        setattr(Holder(), name, [])


def test_a_subclass_may_have_a_name_that_is_set():
    class Named(jv.Module):
        name = "first"

    named = Named()
    named.name = "second"
    assert named.name == "second"


def test_methods_that_are_attributes_are_not_used_by_others():
    class Table(jv.Module):
        def __init__(self):
            self.table, self.select = jv.Variable(1.0), jv.Variable(2.0)

    Table().summary()
    assert str(Table().astype("bfloat16").table.dtype) == "bfloat16"


class Heads(jv.Module, Mapping):
    def __init__(self, *names):
        self._heads = {name: jv.Variable(1.0, name=name) for name in names}
        self.temperature = jv.Variable(1.0, name="temperature")

    def __getitem__(self, name):
        return self._heads[name]

    def __iter__(self):
        return iter(self._heads)

    def __len__(self):
        return len(self._heads)


class Stack(jv.Module, list):
    def __init__(self, *names):
        self.extend(jv.Variable(1.0, name=name) for name in names)
        self.temperature = jv.Variable(1.0, name="temperature")


@pytest.mark.parametrize(("kind", "first"), [(Heads, ["a", "b"]), (Stack, ["0", "1"])])
def test_a_module_that_is_a_container_has_its_attributes_too(kind, first, tmp_path):
    model = kind("a", "b")
    assert list(model.named_variables) == [*first, "temperature"]
    assert [v.name for v in model.variables] == ["a", "b", "temperature"]
    optimizer = jv.optimizers.SGD({"*": 0.5})
    optimizer.build(model)
    optimizer.minimize(lambda: sum((v - 3) ** 2 for v in model.variables), model)
    assert [float(v) for v in model.variables] == [3.0, 3.0, 3.0]
    path = jv.checkpoint.Checkpoint(model=model).write(tmp_path / "model.npz")
    other = kind("a", "b")
    jv.checkpoint.Checkpoint(model=other).restore(path).assert_consumed()
    assert [float(v) for v in other.variables] == [3.0, 3.0, 3.0]
    assert [float(v) for v in copy.deepcopy(other).variables] == [3.0, 3.0, 3.0]


def test_an_entry_and_an_attribute_of_one_name_are_told_apart_or_refused(tmp_path):
    model = Heads("temperature")
    assert list(model.named_variables) == ["temperature", "temperature_1"]
    with pytest.raises(CheckpointError, match=r"'model/temperature', .*or an entry and an attr"):
        jv.checkpoint.Checkpoint(model=model).write(tmp_path / "model.npz")
