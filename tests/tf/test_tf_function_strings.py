"""`tf.function` with strings: arguments, results, branches, loops, tapes, threads.

What is expected was seen in TensorFlow 2.21, unless it says otherwise.
"""

from __future__ import annotations

import gc
import threading
from typing import Any

import jax
import numpy as np
import pytest
from threads import run_in_threads

import jaxvars as jv
from jaxvars import tf
from jaxvars.errors import TapeError
from jaxvars.tf.functions import function as functions
from jaxvars.tf.functions import strings as functions_of_strings
from jaxvars.tf.tensors.handles import TABLES, new_table

InvalidArgumentError = tf.errors.InvalidArgumentError


@pytest.fixture(autouse=True)
def no_table_is_left():
    yield
    gc.collect()
    assert not TABLES


def value(x):
    return tf.nest.map_structure(lambda t: np.asarray(t.numpy()).tolist(), x)


def strings(*x):
    return tf.constant(list(x), tf.string)


def join(s, x):
    return tf.strings.join([s, tf.strings.as_string(x)], "-")


def test_one_trace_for_all_strings_of_a_shape():
    shown: list[str] = []

    @tf.function
    def f(s: Any) -> Any:
        shown.append(str(s))
        return s + "x", tf.strings.length(s), s == "a", tf.strings.upper(s)

    assert value(f(strings("a", "bb"))) == ([b"ax", b"bbx"], [1, 2], [True, False], [b"A", b"BB"])
    assert value(f(strings("c", "a")))[2] == [False, True]
    assert value(f(strings("d")))[0] == [b"dx"]
    assert value(f(strings()))[0] == []
    assert shown == [f'Tensor("s:0", shape=({n},), dtype=string)' for n in (2, 1, 0)]
    assert f.experimental_get_tracing_count() == 3


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (lambda s, i: tf.strings.regex_replace(s, "1", "2"), [b"22", b"234"]),
        (lambda s, i: tf.strings.to_number(s), [11.0, 234.0]),
        (lambda s, i: tf.strings.to_hash_bucket_fast(s, 7), [4, 3]),
        (lambda s, i: tf.strings.reduce_join(s), b"11234"),
        (lambda s, i: tf.strings.substr(s, 1, 1), [b"1", b"3"]),
        (lambda s, i: tf.strings.substr(s, i, i), [b"1", b""]),
        (lambda s, i: tf.strings.format("<{}>", s), b'<["11" "234"]>'),
        (lambda s, i: tf.strings.as_string(i), [b"1", b"0"]),
        (lambda s, i: tf.gather(s, i), [b"234", b"11"]),
        (lambda s, i: tf.gather(["k", "l"], i), [b"l", b"k"]),
        (lambda s, i: tf.concat([s, ["c"]], 0), [b"11", b"234", b"c"]),
        (lambda s, i: tf.stack([s[0], "k"]), [b"11", b"k"]),
        (lambda s, i: s[i[0]], b"234"),
        (lambda s, i: tf.where(i > 0, s, "n"), [b"11", b"n"]),
        (lambda s, i: tf.pad(s, [[1, 0]]), [b"", b"11", b"234"]),
        (lambda s, i: tf.math.count_nonzero(s), 2),
        (lambda s, i: tf.equal(s, s[0]), [True, False]),
        (lambda s, i: tf.map_fn(lambda x: x + "m", s), [b"11m", b"234m"]),
        (lambda s, i: tf.vectorized_map(tf.strings.length, s), [2, 3]),
        (lambda s, i: tf.py_function(lambda x: x + "p", [s], tf.string), [b"11p", b"234p"]),
        (lambda s, i: tf.numpy_function(lambda x: np.int64(len(x)), [s], tf.int64), 2),
        (lambda s, i: tf.TensorArray(tf.string, 2).write(0, s[0]).write(1, "k").stack(),
         [b"11", b"k"]),
        (lambda s, i: tf.io.decode_csv(s, [[""]])[0], [b"11", b"234"]),
    ],
)  # fmt: skip
def test_operations_on_strings(op, expected):
    f = tf.function(op)
    f(strings("0", "0"), tf.constant([0, 0]))
    assert value(f(strings("11", "234"), tf.constant([1, 0]))) == expected
    assert f.experimental_get_tracing_count() == 1


WORDS, TABLE = strings("a", "b", "c"), tf.constant([["a", "b"], ["c", "d"]])


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (lambda i, x: WORDS[tf.argmax(x)], b"b"), (lambda i, x: WORDS[-i], b"c"),
        (lambda i, x: TABLE[:, i], [b"b", b"d"]), (lambda i, x: TABLE[i, 0], b"c"),
        (lambda i, x: tf.where(x > 0.0, "pos", "neg"), [b"neg", b"pos", b"neg"]),
        (lambda i, x: tf.where(x > 0.0, WORDS, "neg"), [b"neg", b"b", b"neg"]),
        (lambda i, x: tf.compat.v1.where(x > 0.0, WORDS, WORDS), [b"a", b"b", b"c"]),
        (lambda i, x: tf.gather_nd(WORDS, [[i], [0]]), [b"b", b"a"]),
        (lambda i, x: tf.gather_nd(TABLE, [i, 0]), b"c"),
        (lambda i, x: tf.gather_nd(TABLE, [[[i]], [[0]]], batch_dims=1), [[b"b"], [b"c"]]),
        (lambda i, x: tf.slice(TABLE, [i, 0], [1, 2]), [[b"c", b"d"]]),
        (lambda i, x: tf.one_hot(i, 2, "p", "q"), [b"q", b"p"]),
        (lambda i, x: tf.one_hot(i, 2, WORDS[i], "q"), [b"q", b"b"]),
        (lambda i, x: tf.one_hot(i, 2, "p", WORDS[i]), [b"b", b"p"]),
    ],
)  # fmt: skip
def test_known_strings_are_chosen_by_what_is_not_known(op, expected):
    f = tf.function(op)
    f(tf.constant(0), tf.constant([1.0, 0.0, 0.0]))
    assert value(f(tf.constant(1), tf.constant([-1.0, 2.0, 0.0]))) == expected
    assert f.experimental_get_tracing_count() == 1


def test_an_index_out_of_range_gives_an_empty_string():
    take = tf.function(lambda i: (tf.gather(WORDS, [i, 1]), tf.gather(WORDS, i) + "x"))
    assert value(take(tf.constant(7))) == ([b"", b"b"], b"x")
    ignore = tf.function(lambda i: tf.gather_nd(WORDS, [[1], [i]], bad_indices_policy="IGNORE"))
    assert value(ignore(tf.constant(7))) == [b"b", b""]  # here TensorFlow does so, too


def test_branches_and_loops():
    @tf.function
    def f(s: Any, n: Any) -> Any:
        r = s
        for i in tf.range(n):
            if i % 2 == 0:
                r = r + s
            else:
                r = tf.strings.join([r, tf.strings.as_string(i)])
        if n > 3:
            short = tf.constant("long")
        else:
            short = s
        return r, short, tf.cond(n > 3, lambda: "a", lambda: "b")

    assert value(f(tf.constant("z"), tf.constant(4))) == (b"zz1z3", b"long", b"a")
    assert value(f(tf.constant("y"), tf.constant(2))) == (b"yy1", b"y", b"b")
    end = tf.function(
        lambda s: tf.while_loop(lambda s: tf.strings.length(s) < 5, lambda s: s + "w", [s])
    )
    assert value(end(tf.constant("ab"))[0]) == b"abwww"


def test_strings_that_no_argument_has():
    f = tf.function(lambda x: tf.strings.join(["n", tf.strings.as_string(x)]))
    assert [value(f(tf.constant(x))) for x in (1, 20)] == [b"n1", b"n20"]
    choose = tf.function(lambda p: tf.cond(p, lambda: "a", lambda: "b"))
    assert [value(choose(tf.constant(p))) for p in (True, False)] == [b"a", b"b"]


def test_functions_in_functions():
    g = tf.function(lambda s: s + "g")
    f = tf.function(lambda s, x: (g(g(s)) + tf.strings.as_string(x), g("k")))
    h = tf.function(lambda x: g(tf.strings.as_string(x)))
    assert value(f(tf.constant("q"), tf.constant(1))) == (b"qgg1", b"kg")
    assert value(f(tf.constant("r"), tf.constant(2))) == (b"rgg2", b"kg")
    assert value(g(tf.constant("s"))) == b"sg"
    assert value(h(tf.constant(5))) == b"5g"


def test_a_tape_may_repeat_a_call_after_others():
    w = tf.Variable(2.0)

    @tf.function
    def f(s: Any, x: Any) -> Any:
        return w * x * tf.strings.to_number(s + "0"), s

    with tf.GradientTape(persistent=True) as tape:
        a, b = f(tf.constant("3"), tf.constant(2.0))[0], f(tf.constant("5"), tf.constant(2.0))[0]
    f(tf.constant("7"), tf.constant(2.0))
    gc.collect()
    assert [float(tape.gradient(y, w)) for y in (a, b, a)] == [60.0, 100.0, 60.0]


def test_a_tape_in_a_function():
    w = tf.Variable(2.0)

    @tf.function
    def step(s: Any, x: Any) -> Any:
        with tf.GradientTape() as tape:
            y = w * x * tf.strings.to_number(s)
        g = tape.gradient(y, w)
        w.assign_sub(g)
        return tf.strings.as_string(g)

    assert value(step(tf.constant("2"), tf.constant(3.0))) == b"6.000000"
    assert value(step(tf.constant("4"), tf.constant(3.0))) == b"12.000000"
    assert float(w) == -16.0


def test_calls_in_threads_have_strings_of_their_own():
    g = tf.function(lambda s, x: join(s, x))
    f = tf.function(lambda s, x: (g(s, x), tf.strings.to_number(tf.strings.as_string(x))))
    wrong: list[Any] = []

    def run(k: int) -> None:
        for i in range(30):
            a, b = f(tf.constant(f"t{k}_{i}"), tf.constant(i * 1000 + k))
            if value(a) != f"t{k}_{i}-{i * 1000 + k}".encode() or float(b) != i * 1000 + k:
                wrong.append((k, i, a, b))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_transaction_calls_what_another_thread_calls_meanwhile(monkeypatch):
    f = tf.function(lambda s: tf.strings.split(s, sep=" ").to_tensor())
    assert value(f(strings("a b"))) == [[b"a", b"b"]]
    assert f._strings.made_for == functions_of_strings.SIZED
    called, done, own = threading.Event(), threading.Event(), functions_of_strings._call

    def call(*args):  # which is to trace, and would wait for the transaction
        called.set()
        monkeypatch.setattr(functions_of_strings, "_call", own)
        assert done.wait(20), "the transaction waits for this call"
        return own(*args)

    def first():
        return value(f(strings("a b c")))

    def second():
        called.wait(20)
        with jv.transaction():
            found = value(f(strings("d e")))
            done.set()
        return found

    monkeypatch.setattr(functions_of_strings, "_call", call)
    assert run_in_threads(first, second) == [[[b"a", b"b", b"c"]], [[b"d", b"e"]]]


def test_a_call_while_another_thread_has_new_sizes_has_sizes_of_its_own(monkeypatch):
    f = tf.function(lambda s: tf.strings.split(s, sep=" ").to_tensor())
    assert value(f(strings("a b"))) == [[b"a", b"b"]]
    called, done, own = threading.Event(), threading.Event(), functions_of_strings._call

    def call(*args):
        called.set()
        monkeypatch.setattr(functions_of_strings, "_call", own)
        assert done.wait(20)
        return own(*args)

    def second():
        called.wait(20)
        try:
            return value(f(strings("d e f g", "h i j k")))
        finally:
            done.set()

    monkeypatch.setattr(functions_of_strings, "_call", call)
    found = run_in_threads(lambda: value(f(strings("a b", "c d"))), second)
    assert found == [
        [[b"a", b"b"], [b"c", b"d"]],
        [[b"d", b"e", b"f", b"g"], [b"h", b"i", b"j", b"k"]],
    ]


def test_a_call_while_a_function_learns_of_strings_runs_what_there_is(monkeypatch):
    f = tf.function(lambda x: x)
    known = f.get_concrete_function(tf.TensorSpec([None], tf.float32))
    made, found = functions.make_body, []

    def make(*args: Any, **kwargs: Any) -> Any:
        found.append(value(known(tf.constant([1.0]))))  # as another thread may
        return made(*args, **kwargs)

    monkeypatch.setattr(functions, "make_body", make)
    assert value(f(strings("a"))) == [b"a"]
    assert found == [[1.0]]


def test_a_table_that_changes_is_asked_for_known_keys_when_the_program_runs():
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)
    names = tf.lookup.experimental.MutableHashTable(tf.string, tf.string, "?")

    @tf.function
    def count(x):
        for _ in tf.range(3):
            table.insert(["a"], table.lookup(["a"]) + 1)
        before = names.lookup("k")
        names.insert("k", x)
        return table.lookup("a"), table.size(), before, names["k"]

    assert value(count(tf.constant("1"))) == (3, 1, b"?", b"1")
    assert value(count(tf.constant("2"))) == (6, 1, b"1", b"2")
    table.insert("b", tf.constant(5, tf.int64))
    assert value(count(tf.constant("3"))) == (9, 2, b"2", b"3")
    with pytest.raises(InvalidArgumentError, match=r"Export it outside of tf\.function"):
        tf.function(lambda: table.export())()  # TensorFlow can


def test_a_loop_with_strings_of_variables_is_not_differentiated():
    # TensorFlow can: 192 and b"xxx".
    v, k = tf.Variable(""), tf.Variable(2.0)

    @tf.function
    def slope():
        with tf.GradientTape() as tape:
            y = k * 1.0
            for _ in tf.range(3):
                y = y * k * tf.cast(tf.strings.length(v) + 1, tf.float32)
                v.assign(v + "x")
        return tape.gradient(y, k)

    with pytest.raises(TapeError, match="calls the host in each iteration, as tables, iterators"):
        slope()
    assert v.numpy() == b""


def test_what_is_called_back_is_in_order(capsys):
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.string, "none")
    words = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], ["a", "b"]), "?")
    seen: list[bytes] = []

    @tf.function
    def f(s: Any, i: Any) -> Any:
        table.insert(s, s + "v")
        found = table.lookup(s)
        table.insert(s, "last")
        tf.py_function(lambda x: seen.append(x.numpy()), [s + "!"], [])
        tf.print(s, [s], output_stream="stdout")
        return found, table.lookup(s), words.lookup(i)

    assert value(f(tf.constant("x"), tf.constant(2))) == (b"xv", b"last", b"b")
    assert value(f(tf.constant("y"), tf.constant(9))) == (b"yv", b"last", b"?")
    assert seen == [b"x!", b"y!"]
    assert capsys.readouterr().out.splitlines() == ['"x" ["x"]', '"y" ["y"]']


def test_arguments_of_all_kinds():
    @tf.function
    def f(d: Any, k: Any = "d", *, e: Any) -> Any:
        return {"r": d["a"][0] + d["b"] + k + e, "k": tf.constant("k")}

    one = f({"a": [tf.constant("1")], "b": tf.constant("2")}, e=tf.constant("3"))
    two = f({"a": [tf.constant("4")], "b": tf.constant("5")}, tf.constant("7"), e=np.array("6"))
    assert value(one) == {"r": b"12d3", "k": b"k"}
    assert value(two) == {"r": b"4576", "k": b"k"}


def test_ragged_and_sparse_arguments_and_results():
    @tf.function
    def program(x):
        return x, tf.strings.upper(x)

    for words in (["a", "b\0"], ["c", ""]):
        given = tf.RaggedTensor.from_row_lengths(strings(*words), [0, 2])
        assert value(program(given)[1].flat_values) == [w.upper().encode() for w in words]
    assert program.experimental_get_tracing_count() == 1
    rows = tf.function(lambda x: tf.RaggedTensor.from_row_lengths(x, [1, 1]))(strings("a", "b"))
    assert rows.to_list() == [[b"a"], [b"b"]]
    sparse = tf.function(lambda x: tf.SparseTensor([[0], [2]], x, [3]))(strings("a", "b"))
    assert value(tf.sparse.to_dense(sparse)) == [b"a", b"", b"b"]


def test_what_iterates_over_strings_gets_tensors():
    assert [s.shape.rank for s in strings("a b", "c")] == [0, 0]
    assert [value(tf.strings.split(s)) for s in strings("a b", "c")] == [[b"a", b"b"], [b"c"]]


def test_a_number_and_a_string_are_not_added():
    with pytest.raises((TypeError, InvalidArgumentError), match="string"):
        tf.function(lambda s: s + 1)(tf.constant("a"))


def test_concrete_functions_and_signatures():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def f(s: Any) -> Any:
        return s + "e", tf.strings.reduce_join(s)

    assert value(f(["a", "b"])) == ([b"ae", b"be"], b"ab")
    assert value(f(strings())) == ([], b"")
    concrete = f.get_concrete_function()
    assert value(concrete(strings("c"))) == ([b"ce"], b"c")
    assert [x.dtype for x in concrete.structured_outputs] == [tf.string, tf.string]
    assert str(concrete.inputs[0]) == 'Tensor("s:0", shape=(None,), dtype=string)'
    assert len(concrete.outputs) == 2


def test_errors_end_the_table_too():
    f = tf.function(lambda s: tf.strings.to_number(s))
    with pytest.raises(InvalidArgumentError, match="could not correctly convert string: x"):
        f(tf.constant("x"))
    assert float(f(tf.constant("5"))) == 5.0


def test_sizes_of_parts_of_strings_are_traced_for():  # TensorFlow traces once
    f = tf.function(lambda s: tf.strings.split(tf.strings.upper(s)) + "x")
    words = ["a b", "c", "d e", "f g h"]
    assert [value(f(tf.constant(x))) for x in words] == [
        [part.encode() + b"x" for part in x.upper().split()] for x in words
    ]
    assert f.experimental_get_tracing_count() == 3
    outer = tf.function(lambda s, x: (f(s), x + 1))
    found = [value(outer(tf.constant(x), tf.constant(1))) for x in ("k l", "m n", "o")]
    assert found == [([b"Kx", b"Lx"], 2), ([b"Mx", b"Nx"], 2), ([b"Ox"], 2)]
    assert outer.experimental_get_tracing_count() == 2
    lengths = tf.function(lambda s: tf.strings.split(s).row_lengths())  # of as many words
    pairs = [("a b", "c"), ("d", "e f"), ("g h", "i")]
    both = tf.function(lambda b, a: tf.concat([tf.strings.split(b), tf.strings.split(a)], 0))
    assert value(both(b=tf.constant("x y"), a=tf.constant("z"))) == [b"x", b"y", b"z"]
    assert [value(lengths(strings(*x))) for x in pairs] == [[2, 1], [1, 2], [2, 1]]


def test_errors_are_those_of_operations_where_sizes_depend_on_strings():
    f = tf.function(lambda s: tf.strings.to_number(tf.strings.split(s)))
    for x in ("5 x", "y"):
        with pytest.raises(InvalidArgumentError, match=f"not correctly convert string: {x[-1]}"):
            f(tf.constant(x))
    assert [value(f(tf.constant(x))) for x in ("1 2", "3")] == [[1.0, 2.0], [3.0]]


def test_sizes_that_few_strings_have():
    count = tf.Variable(0)

    @tf.function
    def f(s: Any) -> Any:
        count.assign_add(1)
        return tf.strings.to_number(tf.strings.split(s, "and"))

    given = ["1and2", "3and4", "5andx", "6", "7and8"]
    assert value(f(tf.constant(given[0]))) == [1.0, 2.0]
    assert value(f(tf.constant(given[1]))) == [3.0, 4.0]
    with pytest.raises(InvalidArgumentError, match="could not correctly convert string: x"):
        f(tf.constant(given[2]))
    assert [value(f(tf.constant(x))) for x in given[3:]] == [[6.0], [7.0, 8.0]]
    assert int(count) == 4


def test_ragged_strings_in_programs():
    def one_of_each(words: Any) -> Any:
        return (words.to_tensor("-"), tf.strings.reduce_join(words, axis=-1, separator="_"))

    f = tf.function(lambda s: one_of_each(tf.strings.split(s)))
    for a, b, c in ("abc", "def"):
        given = strings(f"{a} {b}", c)
        a, b, c = a.encode(), b.encode(), c.encode()
        assert value(f(given)) == ([[a, b], [c, b"-"]], [a + b"_" + b, c])
    assert f.experimental_get_tracing_count() == 1


def test_what_must_know_strings_is_traced_for_each_tensor():  # TensorFlow traces once
    f = tf.function(lambda s, n: (tf.strings.split(s[0]), tf.strings.as_string(n)))
    for i, word in enumerate(("a b", "c d")):
        found = value(f(strings(word), tf.constant(i)))
        assert found == ([x.encode() for x in word.split()], str(i).encode())
    assert f.experimental_get_tracing_count() == 2


def test_strings_of_python_become_tensors_in_loops_and_branches():
    @tf.function
    def f(words: Any, n: Any) -> Any:
        out, longest = "", "none"
        for i in tf.range(n):
            out = out + words[i]
            if tf.strings.length(words[i]) > 2:
                longest = words[i]
        return out, longest

    assert value(f(strings("ab", "cde"), tf.constant(2))) == (b"abcde", b"cde")
    assert value(f(strings("ab", "cde"), tf.constant(0))) == (b"", b"none")


def test_the_keys_of_dicts_are_in_order():
    @tf.function
    def f(d: Any, x: Any) -> Any:
        joined = ""
        for key, s in d.items():
            joined = joined + key + s
        total = 0
        for row in tf.data.Dataset.from_tensor_slices(x).map(lambda x: {"z": x, "a": x + 1}):
            for number in row.values():
                total = total * 10 + number
        return joined, total

    given = {"z": tf.constant("1"), "b": tf.constant("2")}
    assert value(f(given, tf.constant([1, 2]))) == (b"z1b2", 1223)


def test_what_has_no_fixed_shape_is_refused():  # TensorFlow's programs have unknown dimensions
    for op in (tf.strings.split, tf.strings.bytes_split):
        with pytest.raises(InvalidArgumentError, match=r"How many elements \w+ gives depends on"):
            tf.function(lambda x: op(tf.strings.as_string(x)))(tf.constant(12))  # noqa: B023


def test_inside_of_functions_of_jax_strings_are_constants():  # not in TensorFlow
    f = tf.function(lambda s, x: tf.strings.to_number(s) * x)
    for compiled in (jax.jit(lambda x: f(tf.constant("3"), x)), jv.compile(lambda x: f("3", x))):
        assert float(compiled(np.float32(2.0))) == 6.0
    assert float(f(tf.constant("4"), tf.constant(2.0))) == 8.0
    with pytest.raises(InvalidArgumentError, match=r"in a tf\.function only"):
        jax.jit(lambda x: tf.strings.length(tf.strings.as_string(x)))(np.int32(2))


def test_a_string_of_another_call_is_refused():  # no program has one
    (one, kept), (other, also_kept) = new_table(), new_table()
    numbers = one.put(np.array([b"a", b"b", b"a"], object))
    assert one.take(numbers).tolist() == [b"a", b"b", b"a"]
    with pytest.raises(RuntimeError, match="A string of another call"):
        other.take(numbers)
    assert len(TABLES) == 2
    del kept, also_kept


def test_strings_are_shuffled():
    assert sorted(value(tf.random.shuffle(strings("a", "b", "c")))) == [b"a", b"b", b"c"]
