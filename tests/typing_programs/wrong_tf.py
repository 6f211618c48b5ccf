"""Mistakes in TensorFlow's words that both type checkers find."""

from __future__ import annotations

import jaxvars.tf as tf


class Dense(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable([[1.0]])

    @tf.function
    def __call__(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
        return tf.matmul(x, self.w)


@tf.function(jit_compile=True)
def double(x: tf.Tensor) -> tf.Tensor:
    return x * 2.0


model, x, v = Dense(), tf.ones([1, 1]), tf.Variable(1.0)

model()  # wrong: an argument is missing
model(x, trainin=True)  # wrong: a misspelled keyword
model(x).assign_add(x)  # wrong: the result is a tensor
double("x")  # wrong: a string for a tensor
double.get_concrete_fn(x)  # wrong: a misspelled method
tf.function(double, jit_compil=True)  # wrong: a misspelled option
tf.reduce_smu(x)  # wrong: a misspelled operation
tf.reduce_sum(x, axes=0)  # wrong: a misspelled keyword
print(tf.reduce_sum(x).shap)  # wrong: a misspelled attribute
tf.math.reduce_maximum(x)  # wrong: an operation that there is not
tf.nn.relu()  # wrong: an argument is missing
print(tf.flaot32)  # wrong: a misspelled type
v.asign(2.0)  # wrong: a misspelled method
v.assign_add()  # wrong: an argument is missing
with tf.GradientTape(persistant=True) as tape:  # wrong: a misspelled option
    loss = v * v
tape.gradient(loss)  # wrong: of what
tape.gradient(loss, [v]).numpy()  # wrong: a list of gradients
