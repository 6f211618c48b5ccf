"""`jv.TensorArray`: eagerly, compiled, in loops, under tapes and transforms."""

from __future__ import annotations

import copy
import pickle
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars import TensorArray


def made(n=3, **options) -> TensorArray:
    """One of n pairs: [0, 0], [1, 10], [2, 20], ..."""
    ta = TensorArray(jnp.float32, n, **options)
    for i in range(n):
        ta = ta.write(i, [i, 10 * i])
    return ta


PAIRS = [[0.0, 0.0], [1.0, 10.0], [2.0, 20.0]]


# ---------------------------------------------------------------- what it is
def test_what_it_knows_of_itself():
    ta = TensorArray("float32", 3)
    assert (ta.dtype, ta.size(), ta.element_shape, ta.dynamic_size) == ("float32", 3, None, False)
    assert repr(ta) == "TensorArray('float32', size=3)"
    assert repr(made()) == "TensorArray('float32', size=3, element_shape=(2,))"
    assert TensorArray(int, dynamic_size=True).dynamic_size
    assert ta.identity() is ta


def test_what_it_refuses_to_be():
    with pytest.raises(jv.errors.NotATensorError, match="Keep strings in a Python list"):
        TensorArray(str, 3)
    with pytest.raises(TypeError, match="size of a TensorArray is a whole number"):
        TensorArray(jnp.float32, 2.5)
    with pytest.raises(ValueError, match="cannot be -1"):
        TensorArray(jnp.float32, -1)


# ---------------------------------------------------------------- reading and writing
def test_writing_and_reading():
    ta = made()
    assert ta.stack().tolist() == PAIRS
    assert [ta.read(i).tolist() for i in range(3)] == PAIRS
    assert ta.read(jnp.int32(1)).tolist() == PAIRS[1]
    assert ta.concat().tolist() == [0, 0, 1, 10, 2, 20]
    assert ta.gather([2, 0, 2]).tolist() == [PAIRS[2], PAIRS[0], PAIRS[2]]
    assert ta.gather([]).shape == (0, 2)
    assert ta.stack().dtype == jnp.float32


def test_a_write_returns_a_new_one():
    old = made()
    new = old.write(0, [7, 7])
    assert old.stack().tolist() == PAIRS
    assert new.stack().tolist() == [[7, 7], *PAIRS[1:]]
    assert new.read(0).tolist() == [7, 7]


def test_an_element_can_be_read_and_written_again():
    ta = made()
    assert ta.read(1).tolist() == ta.read(1).tolist()
    for value in (5.0, 6.0):
        ta = ta.write(1, [value, value])
    assert ta.read(1).tolist() == [6, 6]


def test_what_was_never_written_is_zeros():
    ta = TensorArray(jnp.float32, 3).write(1, [1.0, 10.0])
    assert ta.stack().tolist() == [[0, 0], [1, 10], [0, 0]]
    assert ta.read(2).tolist() == [0, 0]
    assert TensorArray(jnp.int32, 2, element_shape=(1,)).stack().tolist() == [[0], [0]]


@pytest.mark.parametrize("ask", [lambda t: t.stack(), lambda t: t.read(0), lambda t: t.gather([0]),
                                 lambda t: t.concat()])  # fmt: skip
@pytest.mark.parametrize("shape", [None, (None, 2)])
def test_nothing_written_and_no_shape_known(ask, shape):
    with pytest.raises(
        ValueError, match=r"Nothing was written to this TensorArray of size 3.*elem.*ta = ta\.write"
    ):
        ask(TensorArray(jnp.float32, 3, element_shape=shape))


def test_a_shape_that_is_known_in_part():
    ta = TensorArray(jnp.float32, 2, element_shape=(None, 2))
    assert ta.write(0, np.ones((3, 2))).element_shape == (3, 2)
    with pytest.raises(jv.errors.ShapeError, match=r"Element 0 has shape \(3, 1\)"):
        ta.write(0, np.ones((3, 1)))


@pytest.mark.parametrize("index", [3, -1, 100])
@pytest.mark.parametrize("do", [lambda t, i: t.write(i, [1, 1]), lambda t, i: t.read(i),
                                lambda t, i: t.gather([i]),
                                lambda t, i: t.scatter([i], [[1, 1]])])  # fmt: skip
def test_a_known_index_outside(do, index):
    with pytest.raises(IndexError, match=rf"Index {index} is outside of a TensorArray of size 3\."):
        do(made(), index)
    with pytest.raises(IndexError, match=rf"Index {index} is outside"):  # known in compiled code
        jv.compile(lambda ta: do(ta, index))(made())


def test_the_cure_for_an_index_outside():
    with pytest.raises(IndexError, match=r"Make it with size=6, or dynamic_size=True\.$"):
        made().write(5, [1, 1])
    with pytest.raises(IndexError, match=r"There are no negative indices\.$"):
        made().write(-1, [1, 1])


def test_it_grows_if_it_may():
    ta = TensorArray(jnp.int32, dynamic_size=True)
    for i in range(5):
        ta = ta.write(i, i * i)
    assert ta.size() == 5
    assert ta.stack().tolist() == [0, 1, 4, 9, 16]
    ta = ta.write(7, 49)
    assert ta.stack().tolist() == [0, 1, 4, 9, 16, 0, 0, 49]
    grown = jax.tree.map(lambda x: x, ta).write(9, 81)  # one that has a buffer
    assert grown.stack().tolist() == [0, 1, 4, 9, 16, 0, 0, 49, 0, 81]
    assert grown.read(8) == 0
    assert TensorArray(jnp.float32, 1, dynamic_size=True).unstack(jnp.ones((3, 2))).size() == 3


# ---------------------------------------------------------------- several elements
def test_unstack():
    ta = TensorArray(jnp.float32, 3).unstack(jnp.asarray(PAIRS))
    assert ta.stack().tolist() == PAIRS
    assert ta.element_shape == (2,)
    assert TensorArray(jnp.float32, 3).unstack([1, 2]).size() == 2
    with pytest.raises(jv.errors.ShapeError, match=r"4 elements do not fit.*make it with size=4"):
        ta.unstack(np.ones((4, 2)))


def test_scatter():
    ta = made().scatter([2, 0], [[7, 7], [8, 8]])
    assert ta.stack().tolist() == [[8, 8], PAIRS[1], [7, 7]]
    assert made().scatter([1, 1], [[7, 7], [8, 8]]).read(1).tolist() == [8, 8]
    grown = TensorArray(jnp.float32, dynamic_size=True).scatter([3, 1], [3.0, 1.0])
    assert grown.stack().tolist() == [0, 1, 0, 3]
    with pytest.raises(jv.errors.ShapeError, match="There are 2 indices, but 1 elements"):
        made().scatter([0, 1], [[1, 1]])


def test_split_and_concat():
    ta = TensorArray(jnp.float32, 3).split(jnp.arange(6.0), [2, 2, 2])
    assert ta.stack().tolist() == [[0, 1], [2, 3], [4, 5]]
    assert ta.concat().tolist() == [0, 1, 2, 3, 4, 5]
    deep = TensorArray(jnp.float32, 2).split(jnp.ones((4, 3)), [2, 2])
    assert (deep.element_shape, deep.concat().shape) == ((2, 3), (4, 3))
    with pytest.raises(jv.errors.ShapeError, match="elements of this TensorArray are scalars"):
        TensorArray(jnp.float32, 2).unstack([1.0, 2.0]).concat()


@pytest.mark.parametrize(
    ("value", "lengths", "message"),
    [
        (np.ones(3), [1, 2], r"The lengths \[1, 2\] are not equal.*Pad them to the longest"),
        (np.ones(3), [1, 1], r"The lengths \[1, 1\] do not add up for the shape \(3,\)"),
        (1.0, [1], r"do not add up for the shape \(\)"),
    ],
)
def test_pieces_that_cannot_be_elements(value, lengths, message):
    with pytest.raises(jv.errors.ShapeError, match=message):
        TensorArray(jnp.float32, 2).split(value, lengths)


def test_traced_lengths_are_refused():
    with pytest.raises(TypeError, match="lengths for split are traced"):
        jax.jit(lambda n: TensorArray(jnp.float32, 2).split(jnp.ones(2), n))(jnp.ones(2, int))


# ---------------------------------------------------------------- in compiled code
def test_python_loops_in_compiled_code_make_one_stack():
    @jv.compile
    def f(x):
        ta = TensorArray(jnp.float32, 4)
        for i in range(4):
            ta = ta.write(i, x * i)
        return ta.stack()

    assert f(2.0).tolist() == [0, 2, 4, 6]
    assert not re.findall("scatter|update", str(jax.make_jaxpr(f)(2.0)))


def test_traced_indices():
    read = jax.jit(lambda ta, i: ta.read(i))
    write = jax.jit(lambda ta, i: ta.write(i, [7, 7]))
    assert read(made(), 1).tolist() == PAIRS[1]
    assert write(made(), 1).stack().tolist() == [PAIRS[0], [7, 7], PAIRS[2]]
    assert [read(made(), i).tolist() for i in (-5, 9)] == [PAIRS[0], PAIRS[2]]
    assert [write(made(), i).stack().tolist() for i in (-1, 3)] == [PAIRS, PAIRS]


def test_traced_vectors_of_indices():
    assert jax.jit(lambda ta, i: ta.gather(i))(made(), jnp.array([2, 9, -1])).tolist() == [
        PAIRS[2], PAIRS[2], PAIRS[0]]  # fmt: skip
    put = jax.jit(lambda ta, i, x: ta.scatter(i, x))
    got = put(made(), jnp.array([2, 3, -1]), jnp.full((3, 2), 7.0))
    assert got.stack().tolist() == [*PAIRS[:2], [7, 7]]


@pytest.mark.parametrize("do", [TensorArray.read, TensorArray.gather])
def test_an_empty_one_has_nothing_at_a_traced_index(do):
    empty = TensorArray(jnp.float32, size=0, element_shape=())
    index = 0 if do is TensorArray.read else [0, 1]
    with pytest.raises(IndexError, match="has no elements"):
        jv.compile(lambda i: do(empty, i))(jnp.array(index))


def test_growing_in_staged_code_is_refused():
    ta = TensorArray(jnp.float32, 1, dynamic_size=True)
    for do in (lambda ta, i: ta.write(i, 1.0), lambda ta, i: ta.scatter(i[None], [1.0])):
        with pytest.raises(jv.errors.ControlFlowError, match=r"size=upper_bound\)(.|\n)*stack"):
            jax.jit(do)(ta, 0)
    grown = jax.jit(lambda ta: ta.write(4, 1.0))(ta)  # known: it may
    assert grown.size() == 5


def test_through_compiled_functions():
    f = jv.compile(lambda ta, x: {"ta": ta.write(1, x), "old": ta})
    for _ in range(3):
        result = f(made(), jnp.asarray([7.0, 7.0]))
    assert result["ta"].stack().tolist() == [PAIRS[0], [7, 7], PAIRS[2]]
    assert result["old"].stack().tolist() == PAIRS
    assert f.trace_count == 1
    assert f(TensorArray(jnp.float32, 3), jnp.ones(2))["old"].element_shape is None


def test_as_a_carry_of_jax_loops():
    def body(i, ta):
        return ta.write(i, jnp.stack([i, 10 * i]).astype(jnp.float32))

    start = TensorArray(jnp.float32, 3, element_shape=(2,))
    assert jax.lax.fori_loop(0, 3, body, start).stack().tolist() == PAIRS
    got, _ = jax.lax.scan(lambda ta, i: (body(i, ta), None), start, jnp.arange(3))
    assert got.stack().tolist() == PAIRS
    both = jax.lax.cond(True, lambda ta: body(1, ta), lambda ta: ta, start)
    assert both.read(1).tolist() == PAIRS[1]
    _, got = jax.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, body(*c)), (jnp.int32(0), start)
    )
    assert got.stack().tolist() == PAIRS


# ---------------------------------------------------------------- in jaxvars' loops
def fibonacci(n, ta):
    """Read and write in one loop."""
    ta = ta.write(0, 1.0).write(1, 1.0)
    return jv.fori_loop(2, n, lambda i, t: t.write(i, t.read(i - 1) + t.read(i - 2)), ta)


@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile], ids=["eager", "compiled"])
def test_in_loops(wrap):
    def f(x):
        ta = TensorArray(jnp.float32, 8)
        return fibonacci(8, ta).stack() * x

    assert wrap(f)(2.0).tolist() == [2, 2, 4, 6, 10, 16, 26, 42]


def test_what_a_loop_may_begin_with():
    empty, full = TensorArray(jnp.float32, 3), made()
    start = empty.__carry_like__(full)
    assert jax.tree.structure(start) == jax.tree.structure(full)
    assert start.stack().tolist() == [[0, 0]] * 3
    assert full.__carry_like__(full).stack().tolist() == PAIRS
    assert empty.__carry_like__(TensorArray(jnp.float32, 3)).element_shape is None
    for other in (
        made(4),
        TensorArray(jnp.int32, 3),
        3,
        TensorArray(jnp.float32, 3, dynamic_size=True),
    ):
        with pytest.raises(ValueError, match="a TensorArray keeps its dtype and size"):
            empty.__carry_like__(other)


# ---------------------------------------------------------------- gradients
def powers(w, n, loop):
    """1, w, w², ... with the sum of all as the result: its derivative is easily said."""
    ta = TensorArray(jnp.float32, n, element_shape=())

    _, ta = loop(lambda i, c: (c[0] * w, c[1].write(i, c[0])), (jnp.float32(1.0), ta), n)
    return ta.stack().sum() + ta.read(n - 1)


def python_loop(body, c, n):
    for i in range(n):
        c = body(i, c)
    return c


def scan_loop(body, c, n):
    return jax.lax.scan(lambda c, i: (body(i, c), None), c, jnp.arange(n))[0]


LOOPS = {"python": python_loop, "scan": scan_loop}
SLOPE = 1 + 2 * 2 + 3 * 4 + 3 * 4  # of 1 + w + w² + w³ + w³ at 2


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_grad(loop, wrap):
    assert wrap(jax.grad(lambda w: powers(w, 4, LOOPS[loop])))(2.0) == SLOPE


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile], ids=["eager", "compiled"])
def test_tape(loop, wrap):
    w = jv.Variable(2.0, name="w")

    @wrap
    def slope():
        with jv.GradientTape() as tape:
            y = powers(w.value, 4, LOOPS[loop])
        return tape.gradient(y, w)

    assert slope() == SLOPE


def test_a_tape_opened_after_the_writes_sees_the_elements():
    x = jnp.asarray([3.0])
    ta = TensorArray(jnp.float32, 2).write(0, x)
    ta.stack()
    with jv.GradientTape() as tape:
        tape.watch(x)
        y = (ta.write(1, x * x).stack() ** 2).sum()
    assert tape.gradient(y, x).tolist() == [6 + 4 * 27]


def test_grad_with_respect_to_one():
    grads = jax.grad(lambda ta: (ta.stack() ** 2).sum())(made())
    assert isinstance(grads, TensorArray)
    assert grads.stack().tolist() == [[0, 0], [2, 20], [4, 40]]


# ---------------------------------------------------------------- as a pytree
def test_as_a_pytree():
    ta = made()
    (leaf,) = jax.tree.leaves(ta)
    assert leaf.tolist() == PAIRS
    assert jax.tree.leaves(TensorArray(jnp.float32, 3)) == []
    assert jax.tree.map(lambda x: 2 * x, ta).read(1).tolist() == [2, 20]
    ((path, _),), _ = jax.tree_util.tree_flatten_with_path(ta)
    assert jax.tree_util.keystr(path) == ".elements"
    assert hash(jax.tree.structure(ta)) == hash(jax.tree.structure(made()))


@pytest.mark.parametrize("child", [None, "text", object(), 0, jax.ShapeDtypeStruct((3, 2), "f4")])
def test_anything_may_be_put_into_one(child):
    structure = jax.tree.structure(made())
    there = jax.tree.unflatten(structure, [child])
    assert jax.tree.leaves(there, is_leaf=lambda x: x is child) == [child]


def test_copies_and_pickles():
    for other in (copy.deepcopy(made()), pickle.loads(pickle.dumps(made()))):
        assert other.stack().tolist() == PAIRS
        assert other.element_shape == (2,)


def test_vmap():
    def f(x):
        ta = TensorArray(jnp.float32, 3)
        for i in range(3):
            ta = ta.write(i, x * i)
        return jax.lax.fori_loop(0, 3, lambda i, t: t.write(i, t.read(i) + 1), ta)

    assert jax.vmap(lambda x: f(x).stack())(jnp.arange(2.0)).tolist() == [[1, 1, 1], [1, 2, 3]]
    with pytest.raises(ValueError, match=r"come out of a vmap or scan.*Return ta\.stack\(\)"):
        jax.vmap(f)(jnp.arange(2.0)).stack()
    indices = jnp.array([0, 2, 5])
    assert jax.vmap(lambda i: made().read(i))(indices).tolist() == [PAIRS[0], PAIRS[2], PAIRS[2]]
    rows = jax.vmap(lambda i: made(2).write(i, [7, 7]).stack())(jnp.array([1, 5]))
    assert rows.tolist() == [[PAIRS[0], [7, 7]], PAIRS[:2]]


def test_variables_as_values_and_indices():
    v, i = jv.Variable([1.0, 2.0], name="v"), jv.Variable(1, name="i")

    def f():
        return TensorArray(jnp.float32, 3).write(i, v).read(i)

    assert f().tolist() == jv.compile(f)().tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "complex64"])
def test_other_dtypes(dtype):
    one = jnp.ones(2, dtype)
    stacked = TensorArray(dtype, 2).write(0, one).stack()
    assert stacked.dtype == dtype
    assert stacked.astype(jnp.complex64).tolist() == [[1, 1], [0, 0]]
    with pytest.raises(jv.errors.DtypeError, match="nothing is converted silently"):
        TensorArray(dtype, 2).write(0, jnp.ones(2))


@pytest.mark.parametrize(("dtype", "place"), [("uint8", 200), ("int8", 100)])
def test_a_traced_index_may_have_a_dtype_that_does_not_hold_the_size(dtype, place):
    ta = TensorArray(jnp.float32, 300).unstack(jnp.arange(300.0))
    index, indices = jnp.asarray(place, dtype), jnp.full(1, place, dtype)
    assert float(jv.compile(ta.read)(index)) == place
    assert float(jv.compile(ta.gather)(indices)[0]) == place
    assert float(jv.compile(lambda i: ta.write(i, -1.0).stack()[place])(index)) == -1.0
    assert float(jv.compile(lambda i: ta.scatter(i, [-1.0]).stack()[place])(indices)) == -1.0
