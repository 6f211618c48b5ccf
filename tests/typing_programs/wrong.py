"""Mistakes that both type checkers find, one to a line that says what it is."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import jaxvars as jv


class Linear(jv.Module):
    def __init__(self) -> None:
        self.w = jv.Variable(jnp.ones((3, 2)))

    @jv.compile
    def __call__(self, x: jax.Array, training: bool = False) -> jax.Array:
        return x @ self.w


@jv.compile(static_argnames="n")
def power(x: jax.Array, n: int = 2) -> tuple[jax.Array, jax.Array]:
    return x**n, -x


model, v = Linear(), jv.Variable([1.0, 2.0])
x = jnp.ones((4, 3))

model()  # wrong: an argument is missing
model(x, trainin=True)  # wrong: a misspelled keyword
model(x, 1, 2)  # wrong: too many arguments
model(x).assign(x)  # wrong: the result is an array
power(x, n="2")  # wrong: a string for a number
power([1.0])  # wrong: a list for an array
power(x).sum()  # wrong: the result is a tuple
print(power.trace_cuont)  # wrong: a misspelled attribute
jv.compile(power, donat=True)  # wrong: a misspelled option
jv.compile(power, donate="never")  # wrong: an option that there is not
jv.compile(3)  # wrong: not a function
jv.Varible(1.0)  # wrong: a misspelled class
jv.Variable(1.0, trainable="no")  # wrong: a string for a bool
v.asign(1.0)  # wrong: a misspelled method
v + "1"  # wrong: a string is no operand
v.value = 1.0  # wrong: a value is assigned
v.value()  # wrong: a value is no method
model.bias = v  # wrong: an attribute that there is not
model.w.assign(None)  # wrong: nothing is no value
with jv.GradientTape(persistant=True) as tape:  # wrong: a misspelled option
    loss = jnp.sum(v * v)
0.1 * tape.gradient(loss, [v])  # wrong: a list of gradients
tape.gradient(loss)  # wrong: of what
tape.gradient(loss, v, unconnected_gradient="zero")  # wrong: a misspelled option
jv.cond(v[0] > 0, lambda: v, lambda y: y)  # wrong: a branch that takes more
jv.cond(v[0] > 0, lambda: v * 2).sum()  # wrong: a branch is missing
jv.optimizers.Adam(learning_rat=0.1)  # wrong: a misspelled option
jv.optimizers.SGD("0.1")  # wrong: a string for a rate
jv.optimizers.SGD().apply_gradients(zip([v], [x], strict=True))  # wrong: gradients come first
jv.metrics.Mean().update_state(loss, sample_weights=1.0)  # wrong: a misspelled keyword
jv.metrics.Mean().result().update_state(1.0)  # wrong: the result is an array
jv.functionalize(power)(x)  # wrong: the state is missing
