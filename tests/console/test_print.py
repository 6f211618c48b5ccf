"""`jv.print`: eagerly, compiled, in loops, under tapes and transforms; where it writes to."""

from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.console.print import print_values


def lines(capsys) -> list[str]:
    """What was printed since, line by line."""
    jax.effects_barrier()
    return capsys.readouterr().out.splitlines()


def body(x):
    jv.print("x", x)
    y = x * 2
    jv.print("y {:.1f}", y)
    return y


# ---------------------------------------------------------------- what is printed
@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile, jax.jit], ids=["eager", "jv", "jit"])
def test_the_same_eagerly_and_compiled(wrap, capsys):
    w = jv.Variable([1.0, 2.0], name="w")

    @wrap
    def step(x, n):
        jv.print("values:", x, n, 2.5, None, "text", [x, "text"], sep=" | ")
        jv.print({"x": x, "deep": [x[0], (n,)], "np": np.arange(3)}, end="!\n")
        jv.print("x={:.2f} n={n} {{}}", x, n=n)
        jv.print("nothing traced")
        return x

    step(w + 0, jnp.int32(3))
    assert lines(capsys) == [
        "values: | [1. 2.] | 3 | 2.5 | None | text | [[1. 2.], 'text']",
        "{'x': [1. 2.], 'deep': [1.0, (3,)], 'np': [0 1 2]}!",
        "x=[1.00 2.00] n=3 {}",
        "nothing traced",
    ]


def test_a_compiled_function_prints_each_time_it_runs(capsys):
    traced = []

    @jv.compile
    def step(x):
        traced.append(None)
        jv.print("x", x)

    for i in range(3):
        step(i)
    assert lines(capsys) == ["x 0", "x 1", "x 2"]
    assert len(traced) == 1


def test_variables_are_read_where_the_call_stands(capsys):
    w = jv.Variable(1.0, name="w")

    @jv.compile
    def step():
        jv.print(w)
        w.assign_add(1.0)
        jv.print({"w": w})
        w.assign_add(1.0)

    step()
    jv.print("after", w)
    assert lines(capsys) == ["1.0", "{'w': 2.0}", "after 3.0"]


def test_modules_and_states(capsys):
    class Layer(jv.Module):
        def __init__(self):
            self.w = jv.Variable([1.0, 2.0], name="w")
            self.act = jax.nn.relu

    layer = Layer()
    state = jv.State.of(layer)
    jv.compile(lambda s: jv.print(layer, s))(state)
    assert lines(capsys) == ["Layer(act=relu, w=[1. 2.]) State({'w': [1. 2.]})"]


def test_a_numpy_array_is_printed_as_it_was_when_traced(capsys):
    a = np.arange(3)

    @jv.compile
    def step(x):
        jv.print(a, x)

    step(1.0)
    a[0] = 9
    step(1.0)
    assert lines(capsys) == ["[0 1 2] 1.0"] * 2


def test_string_variables_and_empty_calls(capsys):
    jv.print(jv.Variable("text", name="t"))
    jv.print()
    jv.print("", end="")
    assert capsys.readouterr().out == "text\n\n"


def test_small_floats_and_keys(capsys):
    @jv.compile
    def step(x, key):
        jv.print(x, key)

    step(jnp.ones(2, jnp.bfloat16) / 3, jax.random.key(7))
    assert lines(capsys) == ["[0.333984 0.333984] key<fry>[0 7]"]


def test_it_returns_none():
    assert jv.print(end="") is None


# ---------------------------------------------------------------- order, loops, branches
def test_the_order_is_that_of_the_program(capsys):
    @jv.compile
    def step(x):
        for i in range(20):
            x = jnp.sin(x @ x)
            jv.print(i, abs(x[0, 0]) * 0)

    step(jnp.ones((64, 64)))
    assert lines(capsys) == [f"{i} 0.0" for i in range(20)]


def test_in_loops_and_branches_of_jax(capsys):
    @jax.jit
    def run(x):
        jax.lax.fori_loop(0, 2, lambda i, y: (jv.print("fori", i), y)[1], x)
        jax.lax.scan(lambda c, i: (jv.print("scan", i), (c, i))[1], x, jnp.arange(2))
        jax.lax.while_loop(lambda y: (jv.print("while?", y), y < 3)[1], lambda y: y + 2, x)
        return jax.lax.cond(x > 0, lambda: jv.print("yes"), lambda: jv.print("no"))

    run(1)
    want = ["fori 0", "fori 1", "scan 0", "scan 1", "while? 1", "while? 3", "yes"]
    assert lines(capsys) == want


def test_in_loops_and_branches_with_variables(capsys):
    v = jv.Variable(0, name="v")

    def once(i, x):
        v.assign_add(1)
        jv.print("v", v, "x", x)
        return x * 2

    def program(x):
        x = jv.fori_loop(0, 2, once, x)
        x = jv.while_loop(lambda x: x < 10, lambda x: once(0, x), x)
        x, _ = jv.scan(lambda x, i: (once(i, x), i), x, jnp.arange(1))
        jv.cond(x > 0, lambda: jv.print("yes", v), lambda: jv.print("no", v))

    want = ["v 1 x 1", "v 2 x 2", "v 3 x 4", "v 4 x 8", "v 5 x 16", "yes 5"]
    program(jnp.int32(1))
    assert lines(capsys) == want
    v.assign(0)
    jv.compile(program)(jnp.int32(1))
    assert lines(capsys) == want


# ---------------------------------------------------------------- derivatives
def loop(x):
    return jax.lax.scan(lambda c, i: (body(c * i), c), x, jnp.arange(1.0, 3.0))[0]


PROGRAMS = {"straight": (body, 2.0, ["x 1.0", "y 2.0"]),
            "loop": (loop, 8.0, ["x 1.0", "y 2.0", "x 4.0", "y 8.0"]),
            "recomputed": (jv.recompute(body), 2.0, ["x 1.0", "y 2.0"])}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("outer", [lambda f: f, jv.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("inner", [lambda f: f, jv.compile], ids=["plain", "compiled inside"])
def test_a_tape_prints_once_and_its_gradient_nothing(program, outer, inner, capsys):
    f, gradient, printed = PROGRAMS[program]
    f = inner(f)

    @outer
    def step(x):
        with jv.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    for _ in range(3):
        assert step(jnp.float32(1.0)) == gradient
        assert lines(capsys) == printed


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_grad_prints_once(program, wrap, capsys):
    f, gradient, printed = PROGRAMS[program]
    assert wrap(jax.grad(f))(1.0) == gradient
    assert lines(capsys) == printed
    assert jax.grad(wrap(f))(1.0) == gradient
    assert lines(capsys) == printed


def test_a_tape_inside_of_a_printing_function(capsys):
    w = jv.Variable(3.0, name="w")

    @jv.compile
    def step():
        with jv.GradientTape() as tape:
            loss = w * w
            jv.print("loss", loss)
        grad = tape.gradient(loss, w)
        jv.print("grad", grad)
        w.assign_sub(0.5 * grad)

    step()
    step()
    assert lines(capsys) == ["loss 9.0", "grad 6.0", "loss 0.0", "grad 0.0"]


def test_printing_changes_no_derivative():
    f = jax.grad(lambda x: (jv.print(x**2, end=""), x**3)[1])
    assert f(2.0) == 12.0
    assert jax.jit(jax.hessian(lambda x: jnp.sin(body(x))))(1.0) == pytest.approx(-4 * np.sin(2.0))


# ---------------------------------------------------------------- vmap
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_vmap_prints_each_example_in_order(wrap, capsys):
    wrap(jax.vmap(lambda x, y: jv.print("x", x, "y", y), in_axes=(0, None)))(
        jnp.arange(50), jnp.ones(2)
    )
    assert lines(capsys) == [f"x {i} y [1. 1.]" for i in range(50)]


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_nested_vmap_and_other_axes(wrap, capsys):
    wrap(jax.vmap(jax.vmap(lambda x: jv.print(x)), in_axes=1))(jnp.arange(6).reshape(2, 3))
    assert lines(capsys) == ["0", "3", "1", "4", "2", "5"]


def test_what_depends_on_no_example_is_printed_once(capsys):
    jax.jit(jax.vmap(lambda x: (jv.print("hello"), x)[1]))(jnp.arange(3))
    assert lines(capsys) == ["hello"]


def test_vmap_of_a_loop(capsys):
    jax.vmap(loop)(jnp.asarray([1.0, 2.0]))
    want = ["x 1.0", "x 2.0", "y 2.0", "y 4.0", "x 4.0", "x 8.0", "y 8.0", "y 16.0"]
    assert lines(capsys) == want


# ---------------------------------------------------------------- several devices
def sharded():
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
    spec = jax.sharding.PartitionSpec("i")
    x = jnp.arange(float(len(jax.devices())))
    return mesh, spec, jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))


def test_on_several_devices(capfd):
    _, _, x = sharded()
    jv.print(x, summarize=-1)
    jax.jit(lambda x: jv.print(x, summarize=-1, ordered=False))(x)
    jax.effects_barrier()
    text = f"[{' '.join(f'{i}.' for i in range(x.size))}]"
    assert capfd.readouterr().out.splitlines() == [text, text]


def test_in_shard_map_each_device_prints(capsys):
    mesh, spec, x = sharded()
    if x.size == 1:
        pytest.skip("one device")
    f = jax.shard_map(lambda x: (jv.print(x), x)[1], mesh=mesh, in_specs=spec, out_specs=spec)
    jax.jit(f)(x)
    assert sorted(lines(capsys)) == sorted(f"[{i}.]" for i in range(x.size))


# ---------------------------------------------------------------- where to
@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile], ids=["eager", "compiled"])
def test_files(wrap, tmp_path, capsys):
    path, buffer = tmp_path / "log.txt", io.StringIO()

    @wrap
    def step(x):
        jv.print(x, file=path)
        jv.print(x, file=f"file://{path}", end="|")
        jv.print(x, file=buffer, flush=True)
        jv.print(x, file=sys.stderr)

    step(1)
    step(2)
    assert path.read_text() == "1\n1|2\n2|"
    assert buffer.getvalue() == "1\n2\n"
    assert capsys.readouterr() == ("", "1\n2\n")


def test_stdout_is_looked_up_when_it_prints(monkeypatch):
    step = jv.compile(lambda x: jv.print(x, file=sys.stdout))
    step(1)
    buffer = io.StringIO()
    monkeypatch.setattr(sys, "stdout", buffer)
    step(2)
    assert buffer.getvalue() == "2\n"
    monkeypatch.setattr(sys, "stdout", None)
    step(3)


class Slow(io.StringIO):
    def __init__(self):
        super().__init__()
        self.calls = []

    def write(self, text):
        self.calls.append(text)
        return len(text)


def test_one_call_writes_once_from_any_thread():
    file = Slow()
    with ThreadPoolExecutor(8) as pool:
        for i in range(8):
            pool.submit(jv.print, "thread", i, [i], file=file)
    assert sorted(file.calls) == [f"thread {i} [{i}]\n" for i in range(8)]


def test_a_file_that_fails_leaves_the_variables_unchanged():
    class Full(io.StringIO):
        def write(self, text):
            raise OSError("no space left")

    v = jv.Variable(1.0, name="v")

    @jv.compile
    def step(x):
        v.assign_add(x)
        jv.print(v, file=Full())

    with pytest.raises(Exception, match="no space left"):
        step(1.0)
    assert v.item() == 1.0


# ---------------------------------------------------------------- templates and mistakes
def test_a_string_is_a_template_only_if_there_is_something_to_fill_in(capsys):
    jv.print("{}")
    jv.print("{'a': 1}", 2)
    jv.print("{", 2)
    jv.print("{}", 2)
    jv.print(1, "{}")
    assert lines(capsys) == ["{}", "{'a': 1} 2", "{ 2", "2", "1 {}"]


def test_no_templates_for_pythons_print(capsys):
    print_values("{}", 1, [jnp.ones(2)], sep="-", end="!\n")
    assert lines(capsys) == ["{}-1-[[1. 1.]]!"]


@pytest.mark.parametrize("wrap", [jv.compile, jax.jit], ids=["jv", "jit"])
def test_a_mistake_raises_before_anything_runs(wrap, capsys):
    @wrap
    def step(x):
        jv.print("before", x)
        jv.print("loss {loss}", x)

    with pytest.raises(ValueError, match=r"the field \{loss\}, but there is no loss="):
        step(1.0)
    assert lines(capsys) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"x": 1}, r"got x=, but the first argument is not a template.*\{x\}"),
        ({"sep": 1}, "sep is a string or None, not int"),
        ({"end": b""}, "end is a string or None, not bytes"),
        ({"summarize": -2}, "summarize is a number of elements, or -1 for all, not -2"),
        ({"summarize": 1.5}, "summarize is a number of elements"),
        ({"file": "log.txt"}, "file is 'log.txt', which cannot be written to. Give an open file"),
        ({"file": 3}, "file is 3"),
    ],
    ids=repr,
)
def test_options_of_the_wrong_kind(options, message):
    with pytest.raises(TypeError, match=message):
        jv.print("text", **options)
