"""Variables of strings, eagerly and in a `tf.function`.

What is expected was seen in TensorFlow 2.21, unless it says otherwise.
"""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxvars as jv
from jaxvars import tf
from jaxvars.errors import StringVariableError
from jaxvars.tf.tensors.handles import TABLES

InvalidArgumentError = tf.errors.InvalidArgumentError


@pytest.fixture(autouse=True)
def no_table_is_left() -> Any:
    yield
    gc.collect()
    assert not TABLES


def made(*values: str) -> Any:
    return tf.Variable(list(values))


def values(tensors: Any) -> list[Any]:
    return [np.asarray(x.numpy(), object).tolist() for x in tensors]


# ---------------------------------------------------------------- in a program
def test_each_call_reads_what_is_there():
    v, words = tf.Variable("a"), made("b", "c")

    @tf.function
    def read():
        return v + "!", words[1], tf.strings.length(words), v == "a"

    assert values(read()) == [b"a!", b"c", [1, 1], True]
    v.assign(b"\xff")
    words.assign(["long", "d"])
    assert values(read()) == [b"\xff!", b"d", [4, 1], False]
    assert read.experimental_get_tracing_count() <= 2


def test_a_call_assigns_and_reads_in_order():
    v, n = tf.Variable("a"), tf.Variable(0)

    @tf.function
    def inner(x):
        v.assign(v + x)

    @tf.function
    def step(x):
        n.assign_add(1)
        first = v.value()
        inner(x)
        inner("!")
        return first, v, n

    assert [x.numpy() for x in step(tf.constant("b"))] == [b"a", b"ab!", 1]
    assert [x.numpy() for x in step(tf.constant("c"))] == [b"ab!", b"ab!c!", 2]
    assert v.numpy() == b"ab!c!"


def test_in_loops_and_branches_and_where_it_is_printed(capfd):
    v = tf.Variable("")

    @tf.function
    def grow(n):
        i = 0
        while i < n:
            if i % 2 == 0:
                v.assign(v + tf.strings.as_string(i))
            else:
                v.assign(tf.strings.join([v, "-"]))
            i += 1
        tf.print("is", v)
        return v.read_value()

    assert grow(tf.constant(4)).numpy() == b"0-2-"
    assert grow(tf.constant(1)).numpy() == b"0-2-0" == v.numpy()
    assert capfd.readouterr().err.splitlines() == ['is "0-2-"', 'is "0-2-0"']
    pick = tf.function(lambda c: tf.cond(c, lambda: v.assign("T").value(), lambda: v.value()))
    assert [pick(tf.constant(c)).numpy() for c in (False, True)] == [b"0-2-0", b"T"]
    mapped = tf.function(
        lambda: tf.map_fn(
            lambda i: v.assign(v + tf.strings.as_string(i)).value(), tf.range(3),
            fn_output_signature=tf.string,
        )
    )  # fmt: skip
    assert mapped().numpy().tolist() == [b"T0", b"T01", b"T012"]


def test_a_call_that_fails_changes_nothing():
    # Differs from TensorFlow, as for variables of numbers.
    v, n = tf.Variable("old"), tf.Variable(1)

    @tf.function
    def checked(x):
        v.assign("new")
        n.assign(2)
        tf.debugging.assert_greater(x, 0)

    @tf.function
    def no_number():
        v.assign("new")
        n.assign(2)
        return tf.strings.to_number(v)

    with pytest.raises(InvalidArgumentError, match="did not hold"):
        checked(tf.constant(-1))
    with pytest.raises(InvalidArgumentError, match="could not correctly convert string: new"):
        no_number()
    assert (v.numpy(), n.numpy()) == (b"old", 1)
    checked(tf.constant(1))
    assert (v.numpy(), n.numpy()) == (b"new", 2)


def test_a_program_for_sizes_assigns_once():
    v = tf.Variable("")

    @tf.function
    def parts(x):
        v.assign(v + x)
        return tf.strings.split(x, ",")

    assert parts(tf.constant("p,q,r")).numpy().tolist() == [b"p", b"q", b"r"]
    assert parts(tf.constant("s")).numpy().tolist() == [b"s"]
    assert v.numpy() == b"p,q,rs"
    with pytest.raises(InvalidArgumentError, match="How many elements split gives depends on"):
        tf.function(lambda: tf.strings.split(v, ","))()  # TensorFlow can


def test_tapes_go_through():
    v, k = tf.Variable("ab"), tf.Variable(2.0)

    @tf.function
    def loss(x):
        v.assign(v + "c")
        return k * x * x * tf.cast(tf.strings.length(v), tf.float32)

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loss(x)
    assert [y.numpy(), *(g.numpy() for g in tape.gradient(y, [x, k]))] == [54.0, 36.0, 27.0]
    assert v.numpy() == b"abc"


class Log(tf.Module):
    def __init__(self):
        self.text = tf.Variable("0")

    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def add(self, x):
        self.text.assign(tf.strings.join([self.text, x], ","))
        return tf.strings.length(self.text)


def test_methods_have_the_variables_of_their_objects():
    first, second = Log(), Log()
    assert (first.add("a").numpy(), second.add("bc").numpy(), first.add("d").numpy()) == (3, 4, 5)
    assert (first.text.numpy(), second.text.numpy()) == (b"0,a,d", b"0,bc")
    assert first.add.get_concrete_function()(tf.constant("e")).numpy() == 7
    assert first.variables == (first.text,)


def test_one_that_is_created_in_the_first_call():
    kept = []

    @tf.function
    def count():
        if not kept:
            kept.append(tf.Variable("x"))
        kept[0].assign(kept[0] + "+")
        return kept[0].value()

    assert [count().numpy(), count().numpy()] == [b"x+", b"x++"]


def test_functions_of_datasets_read_it():
    v = tf.Variable("a")
    data = tf.data.Dataset.from_tensor_slices(["1", "2"]).map(lambda x: v + x)
    assert list(data.as_numpy_iterator()) == [b"a1", b"a2"]


def test_threads_and_transactions():
    v, n = tf.Variable(""), tf.Variable(0)

    @tf.function
    def step(x):
        n.assign_add(1)
        v.assign(x)
        return v + "."

    def work(name):
        found[name] = {step(tf.constant(name)).numpy() for _ in range(10)}

    found: dict[str, Any] = {}
    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"a": {b"a."}, "b": {b"b."}}
    assert n.numpy() == 20
    v.assign("before")
    read = tf.function(lambda: v.value())

    def fail():
        with jv.transaction():
            step(tf.constant("in"))
            assert read().numpy() == b"in"
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert (v.numpy(), n.numpy()) == (b"before", 20)


# ---------------------------------------------------------------- checkpoints
def test_a_program_writes_it_into_a_checkpoint(tmp_path: Path):
    v = tf.Variable("old")
    checkpoint = tf.train.Checkpoint(v=v)

    @tf.function
    def save(x):
        v.assign(x)
        checkpoint.write(str(tmp_path / "c"))

    save(tf.constant(b"\xff"))
    v.assign("other")
    checkpoint.read(str(tmp_path / "c")).assert_consumed()
    assert v.numpy() == b"\xff"


def test_a_program_has_what_waits_in_a_checkpoint(tmp_path: Path):
    path = tf.train.Checkpoint(v=tf.Variable("saved")).save(tmp_path / "c")
    v = tf.Variable("new")
    read = tf.function(lambda: v.value())
    assert read().numpy() == b"new"
    later = tf.train.Checkpoint()
    later.restore(path)
    later.v = v
    assert read().numpy() == b"saved"


# ---------------------------------------------------------------- parts
@pytest.mark.parametrize("decorate", [lambda f: f, tf.function])
def test_parts_are_replaced(decorate):
    w = tf.Variable([["a", "b"], ["c", "d"]])

    def change(s, i):
        w.scatter_nd_update([[0, 1]], [s])
        w.scatter_update(tf.IndexedSlices(tf.constant([["k", "l"]]), tf.constant([1])))
        w[:, 1].assign([s, "e"])
        w[0, 0].assign("one")
        w[i].assign(s)

    decorate(change)(tf.constant("new"), tf.constant(1))
    assert w.numpy().tolist() == [[b"one", b"new"], [b"new", b"new"]]
    assert w[0, 1].numpy() == b"new"


def test_parts_that_do_not_fit_are_refused():
    w = tf.Variable([["a", "b"], ["c", "d"]])
    with pytest.raises(InvalidArgumentError, match="index 7 is out of bounds"):
        w.scatter_nd_update([[7, 1]], ["x"])
    with pytest.raises(InvalidArgumentError, match="index -1 is below 0"):
        w.scatter_nd_update([[-1, 1]], ["x"])
    with pytest.raises(InvalidArgumentError, match=r"shape \(1,\), and the part has \(1, 2\)"):
        w.scatter_nd_update([[0]], ["x"])
    with pytest.raises(InvalidArgumentError, match=r"shape \(3,\), and the part has \(2,\)"):
        w[0].assign(["x", "y", "z"])
    with pytest.raises(InvalidArgumentError, match="only assign changes it"):
        w.scatter_nd_add([[0, 1]], ["x"])
    assert w.numpy().tolist() == [[b"a", b"b"], [b"c", b"d"]]


def test_one_element_keeps_its_last_zeros():
    assert tf.Variable([["a", "b\0"]])[0, 1].numpy() == b"b\0"


# ---------------------------------------------------------------- what is refused
def test_unknown_sizes():
    # TensorFlow reads it, too.
    o = tf.Variable(["a", "b"], shape=tf.TensorShape([None]))

    @tf.function
    def change(x):
        o.assign(x)

    change(tf.constant(["1", "2", "3"]))
    assert o.numpy().tolist() == [b"1", b"2", b"3"]
    with pytest.raises(InvalidArgumentError, match=r"has unknown sizes: .* step\(v\.value\(\)\)"):
        tf.function(lambda: o)()


def test_other_shapes_and_types():
    v = tf.Variable("a")
    with pytest.raises(ValueError, match=r"assigned value shape \(2,\) are incompatible"):
        tf.function(v.assign)(tf.constant(["a", "b"]))
    with pytest.raises(ValueError, match="requested dtype string for Tensor with dtype int32"):
        tf.function(v.assign)(tf.constant(1))


def test_compiled_functions_of_jaxvars_say_what_to_write():
    v = tf.Variable("a")
    with pytest.raises(StringVariableError, match="pass the string"):
        jv.compile(lambda: tf.strings.length(v))()
