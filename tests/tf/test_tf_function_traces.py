"""`tf.function`: one trace for all sizes, which traces there are, and what a body may not do.

What is expected was seen in TensorFlow 2.21, unless it says otherwise.
"""

from __future__ import annotations

import dataclasses
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

from jaxvars import tf
from jaxvars.errors import LeakWarning

SPEC = tf.TensorSpec([None, 3], tf.float32)


def numbers(x):
    return np.asarray(x).tolist()


def rows(n):
    return tf.reshape(tf.range(3.0 * n), [n, 3])


def doubled(x):
    return x * 2.0


def shown(fn, n=2):
    """Return what a function gives for two sizes, and which shapes its body saw."""
    seen = []

    def body(x):
        seen.append(tuple(x.shape))
        return fn(x)

    compiled = tf.function(body, input_signature=[SPEC])
    for size in (n, n + 3):
        np.testing.assert_allclose(compiled(rows(size)), fn(rows(size)), rtol=1e-5)
    return seen


# ---------------------------------------------------------------- unknown dimensions
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: tf.zeros([tf.shape(x)[0], 2]) + tf.cast(tf.size(x), tf.float32),
        lambda x: tf.reshape(x, [-1]) + tf.reshape(x[::-1], tf.shape(x)[0] * 3),
        lambda x: tf.cast(tf.range(tf.shape(x)[0]), tf.float32)[:, tf.newaxis] * x,
        lambda x: tf.tile(tf.reduce_mean(x, 0, keepdims=True), [tf.shape(x)[0], 1]),
        lambda x: tf.gather(x, [1, 0]) @ tf.transpose(x) + tf.ones_like(x[:, 0]),
    ],
    ids=["zeros", "reshape", "range", "tile", "gather"],
)
def test_a_body_is_traced_once_for_all_sizes(fn):
    assert shown(fn) == [(None, 3)]


def test_loops_branches_and_tapes_in_it_are_traced_once_for_all_sizes():
    seen = []

    @tf.function(input_signature=[SPEC])
    def f(x):
        seen.append(tuple(x.shape))
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.zeros([3])
            for row in x:
                total += row * row
            written = tf.TensorArray(tf.float32, size=tf.shape(x)[0])
            for i in tf.range(tf.shape(x)[0]):
                written = written.write(i, tf.nn.relu(x[i]))
            loss = tf.reduce_sum(total) + tf.reduce_sum(written.stack())
        slope = tape.gradient(loss, x)
        if tf.shape(x)[0] > 3:
            slope = -slope
        return slope

    for n, sign in ((2, 1.0), (4, -1.0)):
        x = np.asarray(rows(n)) - 2.5
        np.testing.assert_allclose(f(x.astype("float32")), sign * (2 * x + (x > 0)), rtol=1e-6)
    assert seen == [(None, 3)]


def test_variables_in_it_are_read_assigned_and_created_as_ever():
    made = []

    @tf.function(input_signature=[SPEC, tf.TensorSpec([None], tf.float32)])
    def step(x, y):
        if not made:
            made.extend([tf.Variable(tf.ones([3])), tf.Variable(0)])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.linalg.matvec(x, made[0]) - y) ** 2)
        made[0].assign_sub(0.01 * tape.gradient(loss, made[0]))
        made[1].assign_add(tf.shape(x)[0])
        return loss

    w = np.ones(3)
    for n in (2, 4, 1, 2):
        x = numbers(rows(n))
        error = x @ w - 1.0
        np.testing.assert_allclose(step(x, tf.ones([n])), (error**2).mean(), rtol=1e-5)
        w -= 0.01 * 2 * error @ x / n
        np.testing.assert_allclose(made[0], w, rtol=1e-4)
    assert numbers(made[1]) == 9
    assert step.experimental_get_tracing_count() == 2  # the first creates variables


def test_what_a_trace_cannot_leave_open_is_traced_for_each_size():  # not as in TensorFlow
    assert shown(lambda x: tf.add_n(list(x))) == [(None, 3), (2, 3), (5, 3)]
    f = tf.function(lambda x, y: x + y, input_signature=[tf.TensorSpec([None])] * 2)
    assert numbers(f([1.0, 2.0], [3.0, 4.0])) == [4.0, 6.0]
    assert numbers(f([1.0, 2.0, 3.0], [1.0] * 3)) == [2.0, 3.0, 4.0]
    assert f.experimental_get_tracing_count() == 1
    assert numbers(f([1.0, 2.0], [1.0])) == [2.0, 3.0]  # one is broadcast: another program
    assert f.experimental_get_tracing_count() == 2
    assert f(tf.zeros([0]), tf.zeros([0])).shape == (0,)


def test_a_variable_cannot_have_an_open_size():
    made = []

    @tf.function(input_signature=[SPEC])
    def f(x):
        if not made:
            made.append(tf.Variable(tf.zeros([tf.shape(x)[0]])))
        return made[0] + x[:, 0]

    assert f(rows(2)).shape == (2,)
    assert made[0].shape == (2,)


def test_reduce_retracing_leaves_sizes_open_once_they_differ():
    seen = []

    @tf.function(reduce_retracing=True)
    def f(x, k):
        seen.append(tuple(x.shape))
        return tf.reduce_sum(x) * k

    for n in (2, 3, 4, 5):
        assert numbers(f(tf.ones([n]), 2)) == 2.0 * n
    assert seen == [(2,), (None,)]
    f(tf.ones([2]), 3)
    assert seen[2:] == [(2,)]  # another number is another signature


def test_reduce_retracing_leaves_all_sizes_of_another_rank_open():
    seen = []

    @tf.function(reduce_retracing=True)
    def f(x):
        seen.append(tuple(x.shape))
        return tf.reduce_sum(x, axis=-1)

    for shape in [(1,), (2,), (3,), (1, 1), (2, 2), (2, 2, 2), (3, 3, 3), (4,)]:
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        assert f(tf.constant(x)).numpy().tolist() == x.sum(-1).tolist()
    assert seen == [(1,), (None,), (None, None), (None, None, None)]


def test_a_concrete_function_with_open_sizes_serves_calls_of_its_function():
    seen = []

    @tf.function
    def f(x):
        seen.append(x.shape[0])
        return {"y": x * 2.0, "n": tf.shape(x)[0]}

    made = f.get_concrete_function(SPEC)
    assert made.structured_outputs["y"] == SPEC
    assert made.output_shapes["y"].as_list() == [None, 3]
    assert numbers(made(rows(4))["n"]) == numbers(f(rows(4))["n"]) == 4
    assert numbers(f(rows(2))["n"]) == 2
    assert seen == [None]
    square = tf.function(lambda x: x @ x).get_concrete_function(tf.TensorSpec([None, None]))
    assert square.output_shapes.as_list() == [None, None]
    assert numbers(square(tf.eye(3))) == np.eye(3).tolist()


# ---------------------------------------------------------------- which traces there are
def test_the_same_signature_gives_the_same_concrete_function():
    f = tf.function(lambda x, *rest, **words: x)
    one = f.get_concrete_function(SPEC, 2)
    assert f.get_concrete_function(tf.TensorSpec([None, 3]), 2) is one
    assert f.get_concrete_function(SPEC, 3) is not one
    named = f.get_concrete_function(tf.TensorSpec([None, 3], name="other"), 2)
    assert named.structured_input_signature[0][0].name == "other"
    assert [p.type_constraint for p in one.function_type.parameters.values()] == [SPEC, 2]


def test_traces_of_calls_are_listed():
    class Model(tf.Module):
        @tf.function
        def f(self, x, k=2):
            return [x, {"k": (k * x,)}]

    model = Model()
    model.f(tf.constant(1))
    model.f(tf.constant([1.0]))
    text = model.f.pretty_printed_concrete_signatures()
    first, second = text.split("\n\n")
    assert first.splitlines()[1:3] == [
        "  x (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(), dtype=tf.int32, name=None)",
        "  k (POSITIONAL_OR_KEYWORD): Literal[2]",
    ]
    assert "List[TensorSpec(shape=(1,)" in second
    assert "Dict[['k', Tuple[" in second
    gone = weakref.ref(model)
    del model
    assert gone() is None


def test_names_of_arguments():
    seen = []
    f = tf.function(lambda x, pair, *rest: seen.extend([x, *pair, *rest]))
    with pytest.warns(LeakWarning, match="seen, a variable around .* is changed at"):
        f(tf.constant(1), (tf.constant(2.0), tf.constant(3)), tf.constant([4]))
    assert [x.name for x in seen] == ["x:0", "pair:0", "pair_1:0", "rest_0:0"]
    assert str(seen[0]) == 'Tensor("x:0", shape=(), dtype=int32)'
    with pytest.raises(ValueError, match="Name collision after sanitization"):
        tf.function(lambda **words: 1)(**{"a_b": 1, "a/b": 2})


def test_nodes_of_a_graph():
    made = tf.function(lambda a: a + a).get_concrete_function(tf.constant(1.0))
    nodes = [(node.input, node.name) for node in made.graph.as_graph_def().node]
    assert nodes == [([], "a"), (["a", "a"], "add"), (["add"], "Identity")]


def graph_of(fn, *specs):
    return tf.function(fn).get_concrete_function(*specs).graph


def test_operations_have_names_types_and_tensors():
    v = tf.Variable(2.0, name="w")

    def f(x, y):
        z = tf.nn.relu(tf.matmul(x, y) + v) * 2.0
        v.assign(tf.exp(v) * 3.0)
        return tf.reduce_sum(z), z

    graph = graph_of(f, SPEC, tf.TensorSpec([3, 4], name="why"))
    shown = [(op.name, op.type, [x.name for x in op.inputs]) for op in graph.get_operations()]
    assert shown == [
        ("x", "Placeholder", []), ("why", "Placeholder", []), ("w", "Placeholder", []),
        ("MatMul", "MatMul", ["x:0", "why:0"]), ("add", "AddV2", ["MatMul:0", "w:0"]),
        ("Relu", "Relu", ["add:0"]), ("mul/y", "Const", []), ("mul", "Mul", ["Relu:0", "mul/y:0"]),
        ("Exp", "Exp", ["w:0"]), ("mul_1/y", "Const", []),
        ("mul_1", "Mul", ["Exp:0", "mul_1/y:0"]), ("Sum", "Sum", ["mul:0"]),
        ("AssignVariableOp", "AssignVariableOp", ["w:0", "mul_1:0"]),
        ("Identity", "Identity", ["Sum:0"]), ("Identity_1", "Identity", ["mul:0"]),
    ]  # fmt: skip
    product = graph.get_operation_by_name("MatMul")
    assert repr(product) == "<tf.Operation 'MatMul' type=MatMul>"
    assert graph.get_tensor_by_name("MatMul:0") is product.outputs[0]
    assert str(product.outputs[0]) == 'Tensor("MatMul:0", shape=(None, 4), dtype=float32)'
    assert [op.name for op in product.outputs[0].consumers()] == ["add"]
    assert [x.op.type for x in graph.inputs] == ["Placeholder"] * 2
    assert repr(graph.outputs[0]) == "<tf.Tensor 'Identity:0' shape=() dtype=float32>"
    assert graph.captures == [(v, graph.get_tensor_by_name("w:0"))]
    assert graph.structured_input_signature[0][1].name == "why"
    with pytest.raises(KeyError, match="The name 'no' refers to an Operation not in the graph"):
        graph.get_operation_by_name("no")
    with pytest.raises(KeyError, match="The operation, 'no', does not"):
        graph.get_tensor_by_name("no:0")
    with pytest.raises(ValueError, match="refers to an Operation, not a Tensor"):
        graph.get_tensor_by_name("MatMul")
    with pytest.raises(AttributeError, match="there are no protocol buffers"):
        graph.as_graph_def().SerializeToString()


def test_operations_of_loops_keys_strings_and_constants():
    inner = tf.function(lambda x: tf.nn.softmax(x) - 1.0)

    def f(x):
        for _ in tf.range(3):
            x = inner(x) + tf.random.normal([3])
        return tf.split(x, 3, 1)[1] if tf.reduce_sum(x) > 0 else x[:, :1]

    types = [op.type for op in graph_of(f, tf.TensorSpec([2, 3])).get_operations()]
    assert types.count("While") == types.count("If") == 1
    made = tf.function(lambda s: s).get_concrete_function(tf.TensorSpec([None], tf.string))
    assert [(x.op.name, x.dtype) for x in made.inputs] == [("s", tf.string)]
    assert [op.name for op in made.graph.get_operations()] == ["s", "Identity"]
    assert graph_of(lambda: tf.constant(1.0)).outputs[0].op.inputs[0].op.type == "Const"


def test_pickling():
    f = tf.function(doubled, input_signature=[SPEC], reduce_retracing=True)
    f(rows(2))
    again = pickle.loads(pickle.dumps(f))
    assert again.input_signature == (SPEC,)
    assert numbers(again(rows(1))) == numbers(f(rows(1)))


# ---------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda a, b: a.append(1), "a"),
        (lambda a, b: b["k"].pop(), "b"),
        (lambda a, b: a.append(b["k"].pop(0)), "a, b"),
    ],
)
def test_arguments_may_not_be_changed(change, names):
    @tf.function
    def f(a, b):
        change(a, b)

    with pytest.raises(ValueError, match=rf"f\(a, b\) should not modify .* modified: {names}"):
        f([tf.constant(1)], {"k": [tf.constant(2)]})


def test_arguments_that_have_no_type():
    f = tf.function(lambda x: x)
    with pytest.raises(TypeError, match="Could not generate a generic TraceType for set"):
        f(set())
    with pytest.raises(TypeError, match=r"weakref input .* not supported"):
        f(weakref.ref(f))
    with pytest.raises(TypeError, match="1 is not a callable object"):
        tf.function(1)
    with pytest.raises(TypeError, match=r"must be a possibly nested sequence of TensorSpec"):
        tf.function(lambda x: x, input_signature=[(2, SPEC)])
    with pytest.raises(TypeError, match=r"Can not cast TensorSpec\(shape=\(3,\)"):
        tf.function(lambda x: x, input_signature=[SPEC]).get_concrete_function(tf.TensorSpec([3]))


def test_a_tensor_that_left_its_function_is_out_of_scope():
    kept = []
    with pytest.warns(LeakWarning, match="each call uses what was there before"):
        tf.function(lambda x: kept.append(x))(tf.constant(1))
    with pytest.raises(TypeError, match="out of scope and cannot be used here"):
        tf.function(lambda y: y + kept[0])(tf.constant(2))


@pytest.mark.parametrize(
    ("given", "call", "why"),
    [
        ((1, tf.constant(2)), (1,), "missing a required argument: 'y'"),
        ((1, 2), (1, 2, 3), "too many positional arguments"),
        ((5,), (8, 5), r"Can not cast 8 to Literal\[5\]"),
        (({"a": tf.constant(1)},), (tf.constant(1), 5), "Can not cast .* to a Dict type"),
        (((tf.constant(1),),), (tf.constant(1), 5), "Can not cast .* to tuple type"),
    ],
)
def test_arguments_that_do_not_fit_a_concrete_function(given, call, why):
    func = tf.function(lambda x, y=5: x)
    made = func.get_concrete_function(*given)
    with pytest.raises(TypeError, match=f"Binding inputs to tf.function failed due to .*{why}"):
        made(*call)


def test_what_was_assigned_in_init_scope_is_not_initialized_again():
    made = []

    @tf.function
    def f(x):
        if not made:
            made.append(tf.Variable(3.0))
            with tf.init_scope():
                made[0].assign(10.0)
        return made[0] + x

    assert numbers(f(tf.constant(1.0))) == 11.0


# ---------------------------------------------------------------- objects with components
@dataclasses.dataclass
class Masked:
    names: list
    value: tf.Tensor

    def __tf_flatten__(self):
        return (self.names,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(metadata[0], components[0])


def test_objects_with_components_are_taken_and_returned():
    seen = []

    @tf.function
    def f(x, pair):
        seen.append(x.names)
        return Masked([*x.names, "new"], x.value * 2.0), [pair[0]]

    for value in (1.0, 2.0):
        x = Masked(["a"], tf.constant(value))
        made, (same,) = f(x, [x])
        assert (made.names, numbers(made.value)) == (["a", "new"], 2 * value)
        assert (same.names, numbers(same.value)) == (["a"], value)
    assert len(seen) == 1
    for names in (["b"], [1], [True]):  # 1 == True
        made, _ = f(Masked(names, tf.constant(1.0)), [Masked(names, tf.constant(1.0))])
        assert made.names[0] is names[0]
    assert len(seen) == 4


def test_values_of_tensorflow_are_told_by_what_they_hold() -> None:
    runs: list[object] = []

    @tf.function
    def f(x: Any, option: Any) -> Any:
        runs.append(option)
        return x

    made = [
        lambda: tf.TensorShape([2, None]),
        lambda: tf.TensorSpec([2], tf.int32),
        lambda: tf.float16,
        lambda: tf.TensorShape([3, None]),
    ]
    for make in made:
        for _ in range(3):
            f(1.0, make())
    assert len(runs) == len(made)


def test_a_concrete_function_takes_a_zero_of_its_sign_only() -> None:
    f = tf.function(lambda x, y: x + y)
    concrete = f.get_concrete_function(tf.TensorSpec([], tf.float32), 0.0)
    assert f.get_concrete_function(tf.TensorSpec([], tf.float32), 0.0) is concrete
    assert f.get_concrete_function(tf.TensorSpec([], tf.float32), -0.0) is not concrete
    with pytest.raises(TypeError, match=r"Can not cast -0\.0 to Literal\[0\.0\]"):
        concrete(tf.constant(1.0), -0.0)


# ---------------------------------------------------------------- how often
@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize(("calls", "counts"), [
    ([tf.zeros(n) for n in (1, 2, 3, 4, 2, 7)], ((1, 2, 3, 4, 4, 5), (1, 2, 2, 2, 2, 2))),
    ([tf.constant(1), tf.constant(1.0), tf.constant(2)], ((1, 2, 2),) * 2),
    ([1, 2, 3, 2, 1], ((1, 2, 3, 3, 3),) * 2),
    ([None, tf.constant(1.0), None], ((1, 2, 2),) * 2),
    ([[1, 2], [1, 2], [2, 3]], ((1, 1, 2),) * 2),
    ([{"a": [tf.zeros(n), m]} for n, m in ((2, 1), (3, 1), (4, 2))], ((1, 2, 3), (1, 2, 3))),
    ([(tf.constant(1),), [tf.constant(1)], (tf.constant(2),)], ((1, 2, 2),) * 2),
    ([np.zeros(n, np.float32) for n in (2, 3, 4)], ((1, 2, 3), (1, 2, 2))),
    ([tf.float32, tf.int32, tf.float32, len, abs, len], ((1, 2, 2, 3, 4, 4),) * 2),
])  # fmt: skip
def test_a_function_is_traced_as_often_as_in_tensorflow(relaxed, calls, counts):
    traced = []

    @tf.function(reduce_retracing=relaxed)
    def f(x):
        traced.append(None)

    found = [len(traced) for call in calls if f(call) is None]
    assert found == list(counts[relaxed])
    assert f.experimental_get_tracing_count() == found[-1]


def test_tensors_have_names_while_a_function_is_traced():
    shown: list[Any] = []

    @tf.function
    def f(x: Any, add: Any) -> Any:
        a = x + 1.0
        b = tf.matmul(a + add, a)
        shown.extend([str(a), repr(b), b.name, b.op.type, b.op.inputs[1].name, f"{tf.nn.relu(b)}"])
        c = tf.cond(
            tf.reduce_sum(b) > 0.0, lambda: [b * 2.0, shown.append((b * 2.0).name)][0], lambda: b
        )
        shown.append(c.name)
        return tf.nn.relu(c)

    concrete = f.get_concrete_function(tf.ones([2, 2]), tf.ones([]))
    kind = "shape=(2, 2) dtype=float32"
    assert shown == [
        'Tensor("add_1:0", shape=(2, 2), dtype=float32)',
        f"<tf.Tensor 'MatMul:0' {kind}>",
        "MatMul:0", "MatMul", "add_1:0", 'Tensor("Relu:0", shape=(2, 2), dtype=float32)',
        "mul_1:0", "cond:0",
    ]  # fmt: skip
    names = [op.name for op in concrete.graph.get_operations()]
    assert {"add", "add_1", "add_2", "MatMul", "cond"} <= set(names)


def test_a_tensor_without_a_trace_has_no_name():
    kept: list[Any] = []
    with pytest.warns(LeakWarning, match="each call uses what was there before"):
        tf.function(lambda x: kept.append(x + 1.0))(tf.constant(1.0))
    assert str(kept[0]) == "Tensor(shape=(), dtype=float32)"
    with pytest.raises(AttributeError, match=r"Tensor\.name is undefined when eager"):
        tf.constant(1.0).name  # noqa: B018


def test_what_is_computed_of_constants_is_a_size():
    @tf.function
    def f(x):
        two = tf.constant(2)
        rows = tf.zeros([tf.maximum(two, 1) * 3, tf.cast(tf.math.ceil(3 / 2), tf.int32)])
        same = tf.reshape(x, [tf.reduce_prod(tf.constant([2, 3])), -1])
        return rows, same, tf.tile(x, tf.ones([1], tf.int32) * two), tf.get_static_value(two * 3)

    rows, same, tiled, six = f(tf.range(12.0))
    assert (rows.shape, same.shape, tiled.shape, numbers(six)) == ((6, 2), (6, 2), (24,), 6)
    depends = tf.function(lambda n: tf.zeros([tf.maximum(n, 3)]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="its value depends on an argument"):
        depends(tf.constant(4))


def test_a_size_that_must_be_known_is_refused_by_the_program_itself():
    def build(x):
        if x.shape[-1] is None:
            raise ValueError("The last size must be known.")
        return x

    with pytest.raises(ValueError, match="The last size must be known"):
        tf.function(build).get_concrete_function(tf.TensorSpec([2, None]))


def test_results_without_one_trace_for_all_sizes_have_unknown_ones():
    def split(x, like):
        return tf.reshape(x, tf.concat([tf.shape(like)[:2], tf.shape(x)[1:]], 0))

    made = tf.function(split).get_concrete_function(
        tf.TensorSpec([None, None]), tf.TensorSpec([None, None])
    )
    assert made.output_shapes.as_list() == [None, None, None]
    assert made(tf.ones([6, 4]), tf.ones([2, 3])).shape == (2, 3, 4)


def test_a_variable_as_an_argument_is_itself_wherever_the_body_meets_it():
    # TensorFlow runs the trace of `a` with b's memory wherever `a` was: 220.0, and the velocities
    # of the optimizer are those of the other variable
    a, b = tf.Variable(10.0), tf.Variable(20.0)
    f = tf.function(lambda v: a * 10 + v)
    assert (float(f(a)), float(f(b)), f.experimental_get_tracing_count()) == (110.0, 120.0, 2)

    def train(decorate):
        pair = [tf.Variable(1.0), tf.Variable(2.0)]
        optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
        step = decorate(lambda vs: optimizer.apply_gradients([(v * 2, v) for v in vs]))
        for variables in (pair, pair, pair[::-1]):
            step(variables)
        return numbers(pair)

    assert train(tf.function) == train(lambda step: step)


@pytest.mark.parametrize(
    ("compute", "sizes", "shape"),
    [
        (lambda x: tf.reshape(x, [tf.shape(x)[0], -1]) @ tf.ones([6, 2]), (None, None, 3), (4, 2)),
        (lambda x: tf.reshape(x, [-1, 2, 3]), (None, None, 3), (4, 2, 3)),
        (lambda x: x[2] + x[-1], (None, 3), (3,)),
    ],
)
def test_a_program_for_sizes_from_two_on_has_a_result_of_unknown_sizes(compute, sizes, shape):
    f = tf.function(compute, input_signature=[tf.TensorSpec(sizes)])
    made = f.get_concrete_function()
    assert made.output_shapes.as_list() in ([None] * len(shape), list(shape))
    given = tf.ones([2 if size is None else size for size in sizes])
    assert tf.reduce_all(made(tf.concat([given, given], 0)) == compute(tf.concat([given] * 2, 0)))


def test_what_fits_no_size_says_why_the_smallest_does_not():
    f = tf.function(lambda x: x @ tf.ones([2, 4]), input_signature=[tf.TensorSpec([None, 3])])
    with pytest.raises(ValueError, match=r"\[1,3\].*\[2,4\]"):
        f.get_concrete_function().output_shapes  # noqa: B018
