"""`tf.function`: signatures, AutoGraph, methods, concrete functions, and what Python sees in it.

What is expected was seen in TensorFlow 2.21.
"""

from __future__ import annotations

import array
import copy
import io
from typing import Any

import numpy as np
import pytest
from autograph_programs import PROGRAMS

import jaxvars as jv
from jaxvars import tf
from jaxvars.errors import CompileError, CreationError, RetraceWarning


def numbers(x):
    return np.asarray(x).tolist()


# ---------------------------------------------------------------- signatures
def test_tensors_count_by_shape_and_type_and_numbers_by_value():
    seen = []

    @tf.function
    def f(x, b=2):
        seen.append(type(x).__name__)
        return x + b

    assert numbers(f(tf.constant(1))) == 3
    assert numbers(f(tf.constant(5))) == 7
    assert numbers(f(np.int32(5), b=2)) == 7  # a NumPy number is a tensor; a default is a value
    assert numbers(f(x=tf.constant(1))) == 3
    assert len(seen) == 1
    f(tf.constant(1), 3)
    f(1)
    f(2)
    f(1.0)
    assert seen == ["Tensor", "Tensor", "int", "int", "float"]
    assert f.experimental_get_tracing_count() == 5


def test_numbers_of_a_class_are_told_by_value_and_not_by_repr():
    class Money(float):
        def __repr__(self):
            return "money"

    seen = []
    f = tf.function(lambda x: seen.append(type(x)) or tf.constant(1.0) * x)
    assert [numbers(f(Money(x))) for x in (1.0, 2.0, 1.0)] == [1.0, 2.0, 1.0]
    assert seen == [Money, Money]


def test_structures_and_strings():
    f = tf.function(lambda d, *a, **k: {"s": d["a"][0] + d["b"], "k": k["u"], "a": a})
    made = f({"a": [tf.constant(1), 2], "b": 3}, True, None, u="text")
    assert numbers(made["s"]) == 4
    assert list(made) == ["s", "k", "a"]
    assert made["k"].numpy() == b"text"
    assert made["a"][1] is None
    assert numbers(made["a"][0]) is True
    assert tf.function(lambda s: s)("literal int 3").numpy() == b"literal int 3"
    assert tf.function(lambda s: s)(tf.constant("a")).numpy() == b"a"


def test_variables_and_objects_count_as_themselves():
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    f = tf.function(lambda v, x: v.assign_add(x))
    assert numbers(f(v, 1.0)) == 2.0
    assert numbers(f(v, 1.0)) == 3.0
    assert numbers(f(w, 1.0)) == 2.0
    assert f.experimental_get_tracing_count() == 2
    assert numbers(v) == 3.0


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ((), {}, "missing a required argument: 'x'"),
        ((1, 2, 3), {}, "too many positional arguments"),
        ((1,), {"z": 3}, "got an unexpected keyword argument 'z'"),
    ],
)
def test_arguments_that_do_not_fit(args, kwargs, why):
    f = tf.function(lambda x, b=2: x)
    with pytest.raises(TypeError, match=why) as caught:
        f(*args, **kwargs)
    assert str(caught.value).startswith("Binding inputs to tf.function failed due to `")
    assert str(caught.value).endswith("for signature: (x, b=<captured_default_value>).")


def test_input_signature():
    f = tf.function(lambda x: x * 2, input_signature=[tf.TensorSpec([None], tf.int32)])
    assert numbers(f([1, 2])) == [2, 4]
    assert numbers(f(tf.constant([1]))) == [2]
    with pytest.raises(TypeError, match=r"Can not cast TensorSpec\(shape=\(1, 2\), dtype=tf.int32"):
        f(tf.constant([[1, 2]]))
    with pytest.raises(TypeError, match=r"Can not cast .*float32"):
        f(tf.constant([1.0]))
    with pytest.raises(TypeError, match="to EagerTensor of dtype int32"):
        f([1.5])
    spec = tf.TensorSpec([], tf.float32)
    g = tf.function(lambda d, s: d["a"] + s[0], input_signature=[{"a": spec}, [spec]])
    assert numbers(g({"a": 1.0}, [2])) == 3.0
    with pytest.raises(TypeError, match="Binding inputs"):
        g({"b": 1.0}, [2.0])


def test_input_signatures_that_are_wrong():
    spec = tf.TensorSpec([], tf.float32)
    with pytest.raises(TypeError, match="must be either a tuple or a list"):
        tf.function(lambda x: x, input_signature=3)
    with pytest.raises(TypeError, match="contains 1 extra type constraints"):
        tf.function(lambda x: x, input_signature=[spec] * 2)
    with pytest.raises(TypeError, match="missing type constraint for y"):
        tf.function(lambda x, y: x, input_signature=[spec])


def test_results():
    made = tf.function(lambda: ("a", 1, None, 2.5, [1, 2]))()
    assert made[0].numpy() == b"a"
    assert (made[1].dtype, made[2], made[3].dtype) == (tf.int32, None, tf.float32)
    assert numbers(made[4]) == [1, 2]
    with pytest.raises(TypeError, match="found return value of type object"):
        tf.function(lambda: object())()
    with pytest.raises(TypeError):
        tf.function(lambda x: x)({1, 2})


def test_many_traces_warn():
    f = tf.function(lambda x: x)
    for i in range(5):
        f(i)
    with pytest.warns(RetraceWarning, match="traced 6 times"):
        f(5)


# ---------------------------------------------------------------- methods and variables
class Counter:
    def __init__(self):
        self.v = None

    @tf.function
    def add(self, x):
        """Add."""
        if self.v is None:
            self.v = tf.Variable(0.0)
        return self.v.assign_add(x)


def test_methods_have_variables_and_traces_for_each_object():
    a, b = Counter(), Counter()
    assert numbers(a.add(tf.constant(1.0))) == 1.0
    assert numbers(a.add(tf.constant(1.0))) == 2.0
    assert numbers(b.add(tf.constant(5.0))) == 5.0
    assert a.add == a.add
    assert a.add != b.add
    assert a.add.experimental_get_tracing_count() == 2  # the first creates the variable
    assert a.add.__name__ == "add"
    assert callable(a.add.python_function)
    kept, a.v = a.v, None
    with pytest.raises(CreationError, match="created on the first call"):
        a.add(1.0)
    assert numbers(kept) == 2.0


def test_a_copied_object_has_separate_functions():
    class Scale(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(2.0)
            self.f = tf.function(self.scale)

        def scale(self, x):
            return self.w * x

    first = Scale()
    second = copy.deepcopy(first)
    second.w.assign(5.0)
    x = tf.constant(1.0)
    assert [numbers(m.f(x)) for m in (first, second)] == [2.0, 5.0]


def test_a_variable_without_a_reference():
    with pytest.raises(ValueError, match="only supports singleton"):
        tf.function(lambda x: tf.Variable(1.0) + x)(1.0)


def test_init_scope_lifts_out():
    made = []

    @tf.function
    def f(x):
        with tf.init_scope():
            made.append((tf.executing_eagerly(), tf.Variable(3.0)))
        return tf.executing_eagerly(), made[-1][1] * x

    inside, y = f(tf.constant(2.0))
    assert (numbers(inside), numbers(y), made[0][0]) == (False, 6.0, True)
    assert tf.executing_eagerly()


def test_python_runs_once_for_each_trace(capsys):
    @tf.function
    def f(n):
        for i in tf.range(n):
            print("tracing", type(i).__name__)
            tf.print(i, end=";", output_stream="stdout")
        for _ in tf.range(3):
            print("tracing known")

    f(tf.constant(2))
    f(tf.constant(3))
    assert capsys.readouterr().out == "tracing Tensor\ntracing known\n0;1;0;1;2;"


# ---------------------------------------------------------------- AutoGraph
@tf.function
def early(x):
    if x > 0:
        if x > 10:
            return x * 100
        return x
    return -x


@tf.function
def jumps(n):
    total = 0.0
    for i in range(n):
        if i == 2:
            continue
        if i > 5:
            break
        total += tf.cast(i, tf.float32)
    return total


@tf.function
def logic(x, y):
    found = (x > 0 and not y > 0) or -3 < x < -1
    return found, x if found else y, tf.reduce_max([x, y])


def test_statements_on_tensors():
    steps = tf.function(PROGRAMS["collatz"]().run)(tf.constant(6))
    assert (numbers(steps), steps.dtype) == (8, tf.int32)
    assert [numbers(early(tf.constant(x))) for x in (20.0, 5.0, -3.0)] == [2000.0, 5.0, 3.0]
    assert numbers(jumps(tf.constant(10))) == numbers(jumps(10)) == 13.0
    assert [numbers(x) for x in logic(tf.constant(-2.0), tf.constant(1.0))] == [True, -2.0, 1.0]


def test_loops_over_what_is_known_are_staged_or_unrolled(capsys):
    @tf.function
    def f(x):
        i = tf.constant(0)
        while i < 1000:
            print("once")
            i += 1
        ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for j in tf.range(3):
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[(x, tf.TensorShape([None]))]
            )
            x = tf.concat([x, x], 0)
            ta = ta.write(j, tf.cast(j, tf.float32))
        return i, tf.size(x), ta.stack()

    assert [numbers(x) for x in f(tf.constant([1.0]))] == [1000, 8, [0.0, 1.0, 2.0]]
    assert capsys.readouterr().out == "once\n"


def test_variables_in_branches():
    v = tf.Variable(1.0)

    @tf.function
    def f(x):
        if x > 0:
            w = v
            v.assign_add(x)
        else:
            w = v
        return type(w).__name__, w * 1.0

    kind, y = f(tf.constant(2.0))
    assert (kind.numpy(), numbers(y)) == (b"Variable", 3.0)


def test_branches_that_differ():
    @tf.function
    def one_sided(x):
        if x > 0:
            y = x
        return y

    @tf.function
    def typed(x):
        if x > 0:
            y = x
        else:
            y = 1
        return y

    with pytest.raises(ValueError, match="'y' is used at"):
        one_sided(tf.constant(1.0))
    with pytest.raises(TypeError, match="'y' is float32"):
        typed(tf.constant(1.0))


def test_what_cannot_be_known_while_tracing():
    @tf.function(autograph=False)
    def unconverted(x):
        if x > 0:
            return x
        return -x

    @tf.function
    def value(x):
        return x.numpy()

    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="as a Python `bool`"):
        unconverted(tf.constant(1.0))
    with pytest.raises(AttributeError, match="'SymbolicTensor' object has no attribute 'numpy'"):
        value(tf.constant(1.0))


def test_asserts():
    @tf.function
    def f(x):
        assert x > 0, "positive"
        tf.Assert(x < 10, [x])
        return x

    assert numbers(f(tf.constant(1.0))) == 1.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="positive"):
        f(tf.constant(-1.0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
        f(tf.constant(11.0))


def test_recursion_and_nesting():
    @tf.function
    def factorial(n):
        return tf.constant(1) if n == 0 else n * factorial(n - 1)

    def relu(x):
        if x > 0:
            return x
        return tf.zeros_like(x)

    @tf.function
    def outer(x):
        return relu(x) + inner(x)

    inner = tf.function(relu)
    assert numbers(factorial(4)) == 24
    assert numbers(outer(tf.constant(-2.0))) == 0.0
    assert tf.function(tf.function(relu)).python_function is relu


def test_manual_conversion():
    def f(x):
        if x > 0:
            return x
        return -x

    @tf.autograph.experimental.do_not_convert
    def left(x):
        return 1.0 if x > 0 else 2.0

    assert "ag__.if_stmt" in tf.autograph.to_code(f)
    assert numbers(tf.autograph.to_graph(f)(tf.constant(-1.0))) == 1.0
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(lambda x: left(x))(tf.constant(1.0))
    assert tf.autograph.experimental.Feature.ALL.value == "ALL"


def test_bounded_loops_have_gradients():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            while y < 100.0:
                tf.autograph.experimental.set_loop_options(maximum_iterations=20)
                y = y * x
        return tape.gradient(y, x)

    assert numbers(f(tf.constant(10.0))) == 20.0


# ---------------------------------------------------------------- concrete functions
def test_concrete_functions():
    v = tf.Variable(2.0, name="v")

    @tf.function
    def f(x, b=3, *, c=None):
        return {"y": x * v + b}

    made = f.get_concrete_function(tf.TensorSpec([None, 2], tf.float32), 4)
    assert made.structured_input_signature == (
        (tf.TensorSpec([None, 2], tf.float32, name="x"), 4),
        {"c": None},
    )
    assert numbers(made(tf.ones([1, 2]))["y"]) == [[6.0, 6.0]]
    assert numbers(made(x=tf.ones([2, 2]))["y"]) == [[6.0, 6.0]] * 2
    assert made.variables[0] is v
    assert made.captured_inputs[0] is made.trainable_variables[0]
    assert made.structured_outputs["y"].dtype == tf.float32
    assert [op.type for op in made.graph.get_operations()][2:] == [
        "Mul", "Const", "AddV2", "Identity",
    ]  # fmt: skip
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected to be a float32 tensor"):
        made(tf.ones([2, 2], tf.int32))
    assert made(tf.ones([2, 3]))["y"].shape == (2, 3)  # shapes are looked at in functions only
    with pytest.raises(TypeError, match=r"Can not cast TensorSpec\(shape=\(2, 3\)"):
        tf.function(lambda: made(tf.ones([2, 3])))()
    with pytest.raises(TypeError, match="missing required arguments: x"):
        made()
    assert "b (POSITIONAL_OR_KEYWORD): Literal[4]" in str(made)
    assert f.pretty_printed_concrete_signatures().startswith(made.pretty_printed_signature())
    assert repr(made).startswith("<ConcreteFunction (x: TensorSpec(shape=(None, 2)")


def test_functions_and_methods_show_what_tensorflow_shows():
    class Model:
        @tf.function
        def half(self, x):
            return x / 2.0

    theirs = {  # TensorFlow 2.21, without function_spec and get_initialization_function
        "experimental_get_compiler_ir", "experimental_get_tracing_count", "function_type",
        "get_concrete_function", "input_signature", "name", "pretty_printed_concrete_signatures",
        "python_function",
    }  # fmt: skip
    model = Model()
    for shown in (Model.half, model.half):
        assert {name for name in dir(shown) if not name.startswith("_")} == theirs
        assert list(shown.function_type.parameters) == ["self", "x"]
    ir = model.half.experimental_get_compiler_ir(tf.constant(1.0))
    assert "divide" in ir()
    assert "HloModule" in ir("optimized_hlo")


def test_concrete_functions_of_a_signature():
    f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([2], tf.float32, name="inp")])
    assert f.get_concrete_function().structured_input_signature[0][0].name == "inp"
    assert numbers(f.get_concrete_function()(inp=tf.constant([1.0, 2.0]))) == [1.0, 2.0]
    assert f.input_signature == (tf.TensorSpec([2], tf.float32, name="inp"),)


def test_concrete_functions_of_strings():
    f = tf.function(lambda x: tf.strings.join([x, x]))
    made = f.get_concrete_function(tf.TensorSpec([], tf.string))
    assert [made(tf.constant(x)).numpy() for x in ("a", "b")] == [b"aa", b"bb"]
    assert "Output Type:\n  TensorSpec(shape=(), dtype=tf.string, name=None)" in str(made)
    assert (made.structured_outputs.shape, made.structured_outputs.dtype) == ([], tf.string)


# ---------------------------------------------------------------- Python at run time
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # JAX's, of iterators as leaves
def test_an_iterator_of_python_is_refused_and_one_of_a_dataset_is_advanced():
    traces = []

    @tf.function
    def consume_next(iterator):
        traces.append(1)
        return next(iterator)

    for iterator in (iter([1, 2, 3]), (x for x in [1, 2, 3])):
        with pytest.raises(CompileError, match=r"an iterator.*step\(next\(iterator\)\)"):
            consume_next(iterator)
    iterator = iter(tf.data.Dataset.from_tensor_slices([1, 2, 3]))
    assert [consume_next(iterator).numpy() for _ in range(3)] == [1, 2, 3]
    assert len(traces) == 1


def test_py_function():
    got = []
    tf.function(lambda x: tf.py_function(got.append, [x], []))(tf.constant(1.0))
    assert [x.numpy() for x in got] == [1.0]
    f = tf.function(lambda x: tf.py_function(lambda y: y * y.numpy(), [x], tf.float32))
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert (numbers(y), numbers(tape.gradient(y, x))) == (9.0, 3.0)
    g = tf.function(lambda x: tf.numpy_function(lambda y: (y, y + 1), [x], [tf.float32] * 2))
    assert list(map(numbers, g(x))) == [3.0, 4.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="returns int32, but expects float32"):
        tf.numpy_function(lambda: np.int32(1), [], tf.float32)


def test_print_as_tensorflow_does():
    out = io.StringIO()
    values = [
        tf.constant(1 / 3), tf.constant([1.0, 2.5, 1e-8]), tf.range(10), tf.constant("x"),
        tf.constant(["x", "y"]), [tf.constant(1), 2], (1, "a"), {"b": tf.constant([1.0]), "a": "s"},
        tf.constant([True, False]), None, "{}", tf.constant([[1, 2], [3, 4]]), tf.float32,
        tf.constant(0.1, tf.float64), tf.constant(0.1, tf.float16),
    ]  # fmt: skip
    for value in values:
        tf.print(value, end="|", output_stream=out)
    assert out.getvalue() == (
        "0.333333343|[1 2.5 1e-08]|[0 1 2 ... 7 8 9]|x|"
        "[\"x\" \"y\"]|[1, 2]|(1, 'a')|{'a': 's', 'b': [1]}|"
        "[1 0]|None|{}|[[1 2]\n [3 4]]|tf.float32|0.1|0.0999755859|"
    )
    with pytest.raises(ValueError, match="Unrecognized keyword"):
        tf.print(1, file=out)


@pytest.mark.parametrize("value", [np.ones(3), np.array([1, 1, 1]), [1, 1, 1], np.float32([1] * 3)])
def test_arrays_of_numpy_take_the_type_of_an_input_signature(value):
    twice = tf.function(lambda x: x * 2, input_signature=[tf.TensorSpec([None], tf.float32)])
    assert twice(value).numpy().tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(TypeError, match="Can not cast"):
        twice(tf.constant([1, 1, 1]))


def test_a_range_that_is_no_tensor_says_what_to_write():
    program = tf.function(lambda i: tf.reduce_sum(tf.range(i, i + 2)))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"start \+ tf\.range\(length\)"):
        program(tf.constant(1))


def test_libraries_decorate_a_method_before_its_first_call():
    """Sonnet does, with the methods of a module's class."""

    class Doubled(tf.Module):
        @tf.function
        def add(self, x):
            return x + 1

    Doubled.__dict__["add"]._decorate(lambda add: lambda self, x: 2 * add(self, x))
    assert Doubled().add(tf.constant(3.0)).numpy() == 8.0
    with pytest.raises(ValueError, match="cannot be decorated after they have been traced"):
        Doubled.__dict__["add"]._decorate(lambda add: add)


# ---------------------------------------------------------------- arrays of other libraries
class Elsewhere:
    """An array in the memory of another library."""

    def __init__(self, numbers):
        self.numbers = np.array(numbers)
        self.shape, self.dtype = self.numbers.shape, f"other.{self.numbers.dtype}"

    def __array__(self, dtype=None, copy=None):
        return self.numbers

    def fill_(self, value):
        self.numbers[...] = value


def torch_tensor(numbers):
    torch = pytest.importorskip("torch")
    return torch.tensor(numbers, dtype=torch.float32)


def other_floats(numbers):
    return Elsewhere(np.array(numbers, np.float32))


@pytest.mark.parametrize("make", [other_floats, torch_tensor])
def test_arrays_of_other_libraries_count_by_value_at_the_time_of_the_call(make):
    x = make([0.0, 0.0])

    class Doubled(tf.Module):
        @tf.function
        def __call__(self, y, more=x):
            return 2 * y["a"][0] + more

    double, found = Doubled(), []
    for value in (1.0, 2.0, 3.0):
        x.fill_(value)
        found += [double({"a": [x]}), double({"a": [tf.ones(2)]})]
        x.fill_(-1.0)
    assert [y.numpy().tolist() for y in found] == [[n] * 2 for n in (3, 3, 6, 4, 9, 5)]
    assert double.__call__.experimental_get_tracing_count() == 1
    outer = tf.function(lambda y: double({"a": [x]}) + y)
    assert outer(tf.ones(2)).numpy().tolist() == [-2, -2]


@pytest.mark.parametrize("make", [other_floats, torch_tensor])
def test_signatures_take_arrays_of_other_libraries(make):
    step = tf.function(lambda x: x + 1, input_signature=[tf.TensorSpec([None], tf.float32)])
    x = make([1.0, 2.0])
    y = step(x)
    x.fill_(5.0)
    assert [y.numpy().tolist(), step(x).numpy().tolist()] == [[2, 3], [6, 6]]
    with pytest.raises(
        TypeError, match=r"Can not cast TensorSpec\(shape=\(1, 1\), dtype=tf.float32"
    ):
        step(make([[1.0]]))
    one = tf.function(lambda x: x * 2).get_concrete_function(x)
    assert one.structured_input_signature[0][0] == tf.TensorSpec([2], tf.float32, name="x")
    assert one(x).numpy().tolist() == one(tf.fill([2], 5.0)).numpy().tolist() == [10, 10]


def test_other_arrays_of_strings_are_strings_and_of_objects_are_refused():
    length = tf.function(lambda x: tf.strings.length(x))
    assert length(Elsewhere(np.array(["ab", "c"], object))).numpy().tolist() == [2, 1]
    with pytest.raises(TypeError, match=r"argument x of .*Python's objects"):
        length(Elsewhere(np.array(["ab", 1], object)))


def test_a_gradient_of_pytorch_does_not_end_in_silence():
    x = torch_tensor([1.0, 2.0]).requires_grad_()
    spec = [tf.TensorSpec([None], tf.float32)]
    for step in (tf.function(lambda x: x), tf.function(lambda x: x, input_signature=spec)):
        with pytest.raises(TypeError, match=r"requires grad.*Pass its value, x\.detach\(\)"):
            step(x)
        assert step(x.detach()).numpy().tolist() == [1, 2]


def test_buffers_are_arrays_and_tensors_are_read_in_any_dtype():
    step = tf.function(lambda x: x * 2)
    assert step(array.array("d", [1.0])).dtype == tf.float64
    assert step(memoryview(b"ab")).dtype == tf.uint8
    half = torch_tensor([1.0]).bfloat16()
    assert step(half).dtype == tf.constant(half).dtype == tf.bfloat16


# ---------------------------------------------------------------- plans
def test_a_plan_of_a_function_with_strings_for_another_mesh():
    lower = tf.function(lambda s, x: (tf.strings.lower(s), x * 2))
    plans = [
        jv.plan(lower, tf.constant("AB"), tf.ones((8, 4)), mesh={"data": n}) for n in (1, 2, 1)
    ]
    assert [plan.devices for plan in plans] == [1, 2, 1]
    assert lower(tf.constant("AB"), tf.ones((8, 4)))[0].numpy() == b"ab"


@pytest.mark.parametrize("options", [{}, {"mesh": {"data": 1}}])
def test_a_plan_for_unknown_sizes_is_refused(options):
    spec = tf.TensorSpec((None, 4), tf.float32)

    class Layer(tf.Module):
        @tf.function
        def __call__(self, x):
            return tf.reshape(x, (-1, 2)) * 2

    for function in (tf.function(lambda x: x * 2), Layer().__call__):
        with pytest.raises(CompileError, match=r"takes tensors of known sizes, and .*\(None, 4\)"):
            jv.plan(function, spec, **options)
        assert jv.plan(function, tf.ones((8, 4)), **options).memory["arguments"] == 128
    signed = tf.function(lambda x: x * 2, input_signature=[spec])
    with pytest.raises(CompileError, match="takes tensors of known sizes"):
        jv.plan(signed, **options)
    assert jv.plan(signed, tf.ones((8, 4)), **options).memory["arguments"] == 128


def test_a_method_that_is_a_function_is_an_argument_by_its_object():
    class Model(tf.Module):
        def __init__(self, w: float) -> None:
            self.w = tf.Variable(w)

        @tf.function
        def loss(self, x: Any) -> Any:
            return self.w * x

    runs: list[None] = []

    @tf.function
    def train(loss: Any, x: Any) -> Any:
        runs.append(None)
        return loss(x) * 2.0

    one, two = Model(2.0), Model(3.0)
    assert [float(train(m.loss, 1.0)) for m in (one, two, one, two)] == [4.0, 6.0, 4.0, 6.0]
    assert len(runs) == 2
