"""`tf.Variable`, where `tests/tf/programs/variable.txt` does not reach."""

from __future__ import annotations

import copy
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxvars import tf


def test_creators_are_called_from_the_inside_out():
    calls = []

    def outer(next_creator, **kwargs):
        calls.append(("outer", kwargs["name"]))
        return next_creator(**kwargs)

    def inner(next_creator, **kwargs):
        calls.append(("inner", kwargs["name"]))
        kwargs["name"], kwargs["initial_value"] = "renamed", [1.0, 2.0]
        return next_creator(**kwargs)

    with tf.variable_creator_scope(outer), tf.variable_creator_scope(inner):
        v = tf.Variable(0.0, name="v", trainable=False)
    assert calls == [("inner", "v"), ("outer", "renamed")]
    assert (v.name, v.trainable, v.numpy().tolist()) == ("renamed:0", False, [1.0, 2.0])
    assert isinstance(v, tf.Variable)
    with (
        tf.variable_creator_scope(lambda next_creator, **kwargs: 3),
        pytest.raises(TypeError, match=r"not a tf\.Variable"),
    ):
        tf.Variable(1.0)
    assert tf.Variable(1.0).name == "Variable:0"


@pytest.mark.parametrize(
    ("operator", "cure"),
    [("+", "assign_add(value)"), ("-", "assign_sub(value)"), ("*", "assign(variable * value)"),
     ("/", "assign(variable / value)"), ("**", "assign(variable ** value)")],
)  # fmt: skip
def test_operators_that_would_assign_are_refused(operator, cure):
    names = {"v": tf.Variable(2.0)}
    message = f"`variable {operator}= value` with `tf.Variable`s is not supported. Use `variable."
    with pytest.raises(RuntimeError, match=re.escape(f"{message}{cure}` to modify")):
        exec(f"v {operator}= 1.0", names)
    exec("v //= 1.0", names)  # gives a tensor
    assert isinstance(names["v"], tf.Tensor)


def test_a_module_lets_a_variable_be_replaced():
    module = tf.Module()
    module.v = tf.Variable(2.0)
    module.v = 3.0
    assert (module.v, module.variables) == (3.0, ())


def test_what_is_shown_is_not_read():
    v = tf.Variable(2.0)
    shown = []
    show = tf.function(lambda: shown.append((repr(v), str(v), f"{v}", v.device)))
    assert not show.get_concrete_function().variables
    assert shown[0][0] == "<tf.Variable 'Variable:0' shape=() dtype=float32>"


def test_masked_arrays_are_refused():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    for convert in (tf.constant, tf.Variable, tf.Variable([0.0, 0.0]).assign, tf.math.exp):
        for value in (masked, [masked], [tf.constant([1.0, 1.0]), masked]):
            with pytest.raises(TypeError, match="A masked array of NumPy was given as a tensor"):
                convert(value)


@pytest.mark.parametrize("pair", [(2.0, np.inf), (np.inf, 2.0), (np.inf, -np.inf)])
def test_nothing_is_near_an_infinity(pair):
    with pytest.raises(tf.errors.InvalidArgumentError, match="not equal to tolerance"):
        tf.debugging.assert_near(*pair)


def test_what_assigning_gives_is_the_variable():
    v = tf.Variable([1.0, 2.0])
    given = v.assign_add([1.0, 1.0])
    given.assign([5.0, 6.0])
    assert v.numpy().tolist() == [5.0, 6.0]
    assert "UnreadVariable" in repr(given)
    assert given.aliased is v.aliased
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(given * given)
    assert tape.gradient(y, v).numpy().tolist() == [10.0, 12.0]


def test_what_is_refused_changes_nothing():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    before = v.numpy()
    rows = tf.IndexedSlices([[9.0, 9.0]], [2])
    for wrong in (
        lambda: v.assign([1.0]),
        lambda: v.assign_add(1.0),
        lambda: v.scatter_update(rows),
        lambda: v[0].assign([1.0, 2.0, 3.0]),
        lambda: v[2].assign([1.0, 2.0]),
        lambda: v.scatter_nd_add([[5]], [[1.0, 1.0]]),
        lambda: v.batch_scatter_update(tf.IndexedSlices([[1.0]], [[0]])),
        lambda: v.assign(tf.constant([[1, 2], [3, 4]])),
    ):
        with pytest.raises(ValueError):
            wrong()
    np.testing.assert_array_equal(v, before)


def test_parts_are_assigned_in_a_compiled_function():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])

    @tf.function
    def program(i, row):
        v[0, 1].assign(20.0)
        v[1:, ::-1].assign(row[None])
        v.scatter_add(tf.IndexedSlices(row[None], i[None]))
        return v[i], v[-1, 0]

    row, corner = program(tf.constant(1), tf.constant([5.0, 6.0]))
    assert v.numpy().tolist() == [[1.0, 20.0], [11.0, 11.0]]
    assert (row.numpy().tolist(), float(corner)) == ([11.0, 11.0], 11.0)


def test_a_part_is_a_tensor_of_the_moment_it_was_taken():
    v = tf.Variable([1.0, 2.0])
    part = v[0]
    v[0].assign(7.0)
    assert (float(part), v.numpy().tolist()) == (1.0, [7.0, 2.0])
    with pytest.raises(AttributeError, match=r"v\[0\].assign\(value\)"):
        tf.constant([1.0])[0].assign(2.0)


def test_counting():
    v = tf.Variable(0)
    assert [int(v.count_up_to(2)) for _ in range(2)] == [0, 1]
    with pytest.raises(tf.errors.OutOfRangeError, match="limit of 2"):
        v.count_up_to(2)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"input is not a scalar: \(1,\)"):
        tf.Variable([0]).count_up_to(2)


def test_counting_in_a_function():
    v = tf.Variable(0)
    count = tf.function(lambda: v.count_up_to(3))
    assert [int(count()) for _ in range(3)] == [0, 1, 2]
    twice = tf.function(lambda: (v.count_up_to(4), v.count_up_to(4)))
    for run in (count, count, twice):
        with pytest.raises(tf.errors.OutOfRangeError, match=r"Reached limit of [34] \(test_tf_v"):
            run()
        assert int(v) == 3  # TensorFlow keeps the first count of `twice`


def test_plain_jax_takes_it():
    v = tf.Variable([1.0, 2.0])
    assert jnp.sum(v) == 3.0
    assert jax.tree.leaves(v)[0].tolist() == [1.0, 2.0]
    text = tf.Variable(["a", "b"])
    assert (text + "c").numpy().tolist() == [b"ac", b"bc"]


def test_rows_by_index_are_a_tree():
    rows = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([1, 1]), tf.constant([3, 1]))
    doubled = jax.jit(lambda r: jax.tree.map(lambda x: 2 * x, r))(rows)
    assert doubled.values.numpy().tolist() == [[2.0], [4.0]]
    assert tf.convert_to_tensor(rows).numpy().tolist() == [[0.0], [3.0], [0.0]]
    assert tf.reduce_sum(rows).numpy() == 3.0
    assert tf.IndexedSlices(tf.ones((2, 3)), [0, 1]).shape.as_list() == [None, 3]


def test_options_are_checked():
    for option in ("constraint", "synchronization", "aggregation", "name"):
        with pytest.raises(ValueError):
            tf.Variable(1.0, **{option: 3})


def test_a_copy_keeps_what_the_variable_was_given():
    v = tf.Variable(
        1.0,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )
    v.note = ["kept"]
    copied = copy.deepcopy(v)
    assert (copied.synchronization, copied.aggregation) == (v.synchronization, v.aggregation)
    assert copied.note is not v.note
    v.note.append("more")
    assert copied.note == ["kept"]
    assert v.assign(2.0).name == "UnreadVariable"


def test_a_shallow_copy_is_the_variable():
    v, model = tf.Variable([1.0, 2.0]), tf.Module()
    model.v = v
    copied, whole = copy.copy(v), copy.deepcopy(v)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(copied * v)
    assert [g.numpy().tolist() for g in tape.gradient(y, [v, copied])] == [[2.0, 4.0]] * 2
    copy.copy(model).v.assign([3.0, 4.0])
    assert copied.numpy().tolist() == v.numpy().tolist() == [3.0, 4.0]
    assert whole.numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "value", [b"\xff\x00", b"a\xf4\x8f\xbe\x80\xfe", "\U0010fffe".encode(), b""]
)
def test_strings_are_any_bytes(value):
    v = tf.Variable([value, b"b"])
    assert v.numpy().tolist() == [value, b"b"]
    assert v.assign([b"c", value]).numpy().tolist() == [b"c", value]


def test_strings_of_no_elements():
    v = tf.Variable(tf.zeros((0,), tf.string))
    assert (v.dtype, v.shape, v.assign(v.value()).numpy().tolist()) == (tf.string, [0], [])
    with pytest.raises(tf.errors.InvalidArgumentError, match="holds strings"):
        tf.Variable("a").assign_add("b")


def test_what_only_tensorflow_1_had_says_so():
    v = tf.Variable(1.0)
    with pytest.raises(AttributeError, match="TensorFlow 1"):
        v.eval()
    with pytest.raises(AttributeError, match="undefined when eager"):
        v.op  # noqa: B018


# ---------------------------------------------------------------- rows by index
@pytest.mark.parametrize("how", ["update", "add", "sub", "mul", "div", "max", "min"])
@pytest.mark.parametrize("index", [lambda: tf.constant([0]), lambda: np.array([0]), lambda: [0]])
def test_rows_of_a_known_index_in_a_function(how, index):
    v, w = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])

    def change(variable):
        given = tf.IndexedSlices(tf.constant([5.0]), index())
        return getattr(variable, f"scatter_{how}")(given)

    change(v)
    tf.function(lambda: change(w))()
    np.testing.assert_array_equal(v, w)


def test_batches_of_a_known_index_in_a_function():
    v = tf.Variable([[1.0, 2.0]])
    given = tf.IndexedSlices(tf.constant([[5.0]]), tf.constant([[0]]))
    tf.function(lambda: v.batch_scatter_update(given))()
    assert v.numpy().tolist() == [[5.0, 2.0]]


def test_indices_below_0_are_refused():
    v = tf.Variable([1.0, 2.0])
    slices = tf.IndexedSlices(tf.constant([7.0]), tf.constant([-1]))
    for change in (
        lambda: v.scatter_nd_update([[-1]], [7.0]),
        lambda: v.scatter_add(slices),
        lambda: v.batch_scatter_update(slices),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match="index -1 is below 0"):
            change()
    assert v.numpy().tolist() == [1.0, 2.0]


def test_what_a_creator_saw_is_the_variable_that_was_made():
    made = []

    def creator(next_creator, **kwargs):
        assert kwargs["synchronization"] is tf.VariableSynchronization.AUTO
        assert kwargs["aggregation"] is tf.VariableAggregation.NONE
        made.append(next_creator(**kwargs))
        made[0].note = "seen"
        return made[0]

    with tf.variable_creator_scope(creator):
        v = tf.Variable(1.0)
    assert {made[0].ref(): "it"}[v.ref()] == "it"
    assert v.note == "seen"
    assert v.ref() != tf.Variable(1.0).ref()


class Held(tf.Variable):  # pyright: ignore[reportGeneralTypeIssues] - as programs do
    """A variable that has a tensor in the place of a resource."""

    def __init__(self, tensor):
        self.tensor = tensor

    shape = property(lambda self: self.tensor.shape)
    dtype = property(lambda self: self.tensor.dtype)


tf.register_tensor_conversion_function(Held, lambda v, dtype, name, as_ref: v.tensor)


def test_a_creator_may_return_a_variable_of_another_class():
    with tf.variable_creator_scope(lambda _, **kwargs: Held(tf.constant(kwargs["initial_value"]))):
        v = tf.Variable([1.0, 2.0])
    assert isinstance(v, Held)
    assert (v + 1).numpy().tolist() == tf.add(1.0, v).numpy().tolist() == [2.0, 3.0]
    v.tensor = tf.constant([3.0])
    assert tf.reduce_sum(v).numpy() == 3.0
    with pytest.raises(TypeError, match=r"nor twice for a subclass of tf\.Variable"):
        tf.register_tensor_conversion_function(Held, print)
    with pytest.raises(TypeError, match="nor for tensors"):
        tf.register_tensor_conversion_function(tf.Variable, print)


def test_completion_leaves_the_scatter_methods_out_which_can_be_called():
    v = tf.Variable([1.0, 2.0])
    assert [name for name in dir(v) if "scatter_" in name] == []
    assert {"assign", "assign_add", "numpy", "value"} <= {*dir(v)}
    v.scatter_add(tf.IndexedSlices([5.0], [1]))
    assert v.numpy().tolist() == [1.0, 7.0]
