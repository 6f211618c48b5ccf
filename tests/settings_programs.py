"""The main kinds of programs, run under one of JAX's settings after the other.

`python settings_programs.py NAME=VALUE ... : PROGRAM ...` prints what failed; all programs if none
is named. Every setting is put in force for all of them, one after the other, in one process.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxvars as jv

PROGRAMS: dict[str, Callable[[], None]] = {}


def program(fn: Callable[[], None]) -> Callable[[], None]:
    PROGRAMS[fn.__name__] = fn
    return fn


class Dense(jv.Module):
    def __init__(self) -> None:
        self.w = jv.Variable(jnp.full((3, 2), 0.1), name="w")
        self.b = jv.Variable(jnp.zeros((1, 2)), name="b")

    def __call__(self, x: Any) -> Any:
        return x @ self.w + self.b


@program
def training() -> None:
    for make in (
        lambda: jv.optimizers.Adam(0.1),
        lambda: jv.optimizers.SGD(0.1, momentum=0.9),
        lambda: jv.optimizers.RMSprop(0.01),
    ):
        model, optimizer = Dense(), make()

        @jv.compile
        def step(x: Any, y: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            with jv.GradientTape() as tape:
                loss = jnp.mean((model(x) - y) ** 2)
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            return loss

        losses = [float(step(jnp.ones((4, 3)), jnp.ones((4, 2)))) for _ in range(4)]
        assert losses[-1] < losses[0]


@program
def created_on_first_call() -> None:
    box: list[Any] = []

    @jv.compile
    def layer(x: Any) -> Any:
        if not box:
            box.append(jv.Variable(jv.initializers.GlorotUniform()((3, 3))))
        return x @ box[0]

    assert layer(jnp.ones((2, 3))).shape == layer(jnp.ones((2, 3))).shape


@program
def tapes() -> None:
    w = jv.Variable(3.0)
    f = jv.compile(lambda x: w * w * x)
    for _ in range(3):
        with jv.GradientTape() as outer:
            with jv.GradientTape() as inner:
                y = f(2.0)
            (grad,) = inner.gradient(y, [w])
        assert float(grad) == 12.0
        assert float(outer.gradient(grad, w)) == 4.0
    with jv.GradientTape() as tape:
        y = jnp.stack([w * 1, w * 2])
    assert tape.jacobian(y, w).tolist() == [1.0, 2.0]


@program
def control() -> None:
    w = jv.Variable(1.0)

    @jv.compile
    def f(n: Any) -> Any:
        jv.cond(n > 2, lambda: w.assign(w * 2), lambda: w.assign(w * 3))
        jv.while_loop(lambda i: i < n, lambda i: (w.assign_add(1.0), i + 1)[1], 0)
        _, ys = jv.scan(lambda c, x: (c + x, c * w), 0.0, jnp.arange(3.0))
        return jv.switch(1, [lambda: ys, lambda: ys * 2])

    for _ in range(2):
        f(3)
    assert float(w) == 13.0
    with jv.GradientTape() as tape:
        y = jv.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] * w), (0, jnp.ones(())))[1]
    assert float(tape.gradient(y, w)) == 4 * 13.0**3
    assert jv.vectorized_map(lambda x: x * w, jnp.arange(3.0)).shape == (3,)


@program
def autograph() -> None:
    w, k = jv.Variable(1.0), jv.Variable(0)

    @jv.compile(autograph=True)
    def f(x: Any, n: int) -> Any:
        s = 0.0
        while w < x:
            w.assign(w * 2)
            k.assign_add(1)
        for _ in range(n):
            s = s + w
        while s > 10 and x > 0:
            s = s / 2
            if s < 20:
                continue
            k.assign_add(1)
        if s > 3:
            w.assign(1.0)
        else:
            w.assign_sub(1.0)
        assert s > -1
        return s

    assert [float(f(5.0, 3)), float(f(5.0, 4))] == [6.0, 8.0]
    assert int(k) == 6


@program
def random() -> None:
    generator = jv.random.Generator.from_seed(1)
    generator.uniform((2,), minval=0, maxval=10, dtype=jnp.int32)
    draw = jv.compile(lambda: (generator.normal((2,)), generator.uniform((2,), minval=-1.0)))
    first, second = draw(), draw()
    assert not np.array_equal(first[0], second[0])


@program
def metrics() -> None:
    labels, scores = jnp.array([0, 1, 1]), jnp.array([0.1, 0.8, 0.3])
    for metric, given in (
        (jv.metrics.Mean(), (scores,)),
        (jv.metrics.MeanSquaredError(), (scores, scores)),
        (jv.metrics.AUC(), (labels, scores)),
        (jv.metrics.Precision(), (labels, scores)),
        (jv.metrics.ConfusionMatrix(num_classes=2), (labels, labels)),
        (jv.metrics.BinaryAccuracy(), (labels, scores)),
    ):
        metric.update_state(*given)
        add = jv.compile(lambda *xs, metric=metric: metric.update_state(*xs))
        add(*given)
        assert np.isfinite(metric.result()).all()


@program
def checkpoint() -> None:
    model = Dense()
    with tempfile.TemporaryDirectory() as folder:
        path = jv.checkpoint.Checkpoint(model=model).save(folder + "/c")
        model.w.assign(jnp.zeros((3, 2)))
        jv.checkpoint.Checkpoint(model=model).restore(path)
    assert float(model.w[0, 0]) == np.float32(0.1)


@program
def pure() -> None:
    w = jv.Variable(jnp.arange(3.0), name="w")

    def step(x: Any) -> Any:
        w.assign_add(x * jnp.ones(3))
        return w.value.sum()

    pure, state = jv.functionalize(step), jv.State.of(w)
    _, state = jax.jit(pure)(state, 1.0)
    jax.grad(lambda state: pure(state, 1.0)[0])(state)
    jax.vmap(pure, in_axes=(None, 0))(state, jnp.arange(2.0))
    state, _ = jax.lax.scan(lambda state, x: pure(state, x)[::-1], state, jnp.arange(3.0))
    state.commit()
    assert w.numpy().tolist() == [4.0, 5.0, 6.0]


@program
def updates() -> None:
    v = jv.Variable(jnp.zeros((4, 3)), name="v")
    v[1].assign(1.0)
    v[0, 1].assign_add(2.0)
    v[jnp.array([0, 2])].assign_add(jnp.ones((2, 3)))
    n, b = jv.Variable(0), jv.Variable(jnp.zeros(2, jnp.bfloat16))
    for _ in range(2):
        jv.compile(lambda: (v[1].assign(1.0), n.assign_add(1), b.assign(b * 2))[:0])()
    assert (int(n), float((v * 2 - v).sum())) == (2, 11.0)


@program
def guarded() -> None:
    w = jv.Variable(1.0)

    @jv.compile(guard="finite")
    def scale(x: Any) -> None:
        w.assign(w * x)

    scale(2.0)
    try:
        scale(jnp.inf)
    except (jv.errors.CheckError, FloatingPointError):
        pass
    else:
        raise AssertionError("nothing was raised")
    assert float(w) == 2.0


@program
def tf_loops() -> None:
    from jaxvars import tf

    v, w = tf.Variable(1.0), tf.Variable(tf.ones([3]))

    @tf.function
    def count(n: Any) -> Any:
        for _ in tf.range(n):
            v.assign_add(1.0)
            if v > 3.0:
                break
        while tf.reduce_sum(w) < 10.0:
            w.assign(w * 2.0)
        return tf.map_fn(lambda x: x * v, w)

    @tf.function
    def differentiate(x: Any) -> Any:
        with tf.GradientTape() as tape:
            for _ in tf.range(3):
                x = x * w
                if tf.reduce_sum(x) > 0.0:
                    x = x / 2.0
        return tape.gradient(x, w)

    for n in (5, 6):
        assert count(tf.constant(n)).numpy().tolist() == [16.0] * 3
        assert differentiate(tf.ones([3])).numpy().tolist() == [6.0] * 3
        v.assign(1.0)


def main(arguments: list[str]) -> None:
    split = arguments.index(":") if ":" in arguments else len(arguments)
    wanted = arguments[split + 1 :] or list(PROGRAMS)
    for setting in arguments[:split]:
        name, value = setting.split("=")
        before = getattr(jax.config, name)
        jax.config.update(name, {"True": True, "False": False}.get(value, value))
        for each in wanted:
            try:
                PROGRAMS[each]()
            except BaseException:  # noqa: BLE001 - all of them are shown
                print(setting, each, traceback.format_exc(limit=-4), sep="\n")
        jax.config.update(name, before)
    print("done")


if __name__ == "__main__":
    main(sys.argv[1:])
