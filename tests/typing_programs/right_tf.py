"""TensorFlow's way of the same: no type checker finds an error, and it runs."""

from __future__ import annotations

from typing import assert_type

import jaxvars.tf as tf


class Dense(tf.Module):
    def __init__(self, n_in: int, n_out: int, name: str | None = None) -> None:
        super().__init__(name=name)
        self.w = tf.Variable(tf.random.normal([n_in, n_out], stddev=0.1), name="w")
        self.b = tf.Variable(tf.zeros([n_out]), name="b")
        self.calls = tf.Variable(0, trainable=False, dtype=tf.int32)

    @tf.function
    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        self.calls.assign_add(1)
        return tf.nn.relu(tf.matmul(x, self.w) + self.b)

    @tf.function(jit_compile=True, input_signature=[tf.TensorSpec([None], tf.float32)])
    def scaled(self, x: tf.Tensor) -> tf.Tensor:
        return x * tf.reduce_sum(self.w)


model = Dense(3, 2)


@tf.function
def step(x: tf.Tensor, y: tf.Tensor, rate: float = 0.1) -> tf.Tensor:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y))
    gradients = tape.gradient(loss, [model.w, model.b])
    assert_type(gradients, list[tf.Tensor])
    for variable, gradient in zip([model.w, model.b], gradients, strict=True):
        variable.assign_sub(rate * gradient)
    if loss > 1.0:
        loss = loss / 2.0
    return loss


x, y = tf.ones([4, 3]), tf.zeros([4, 2])
for _ in range(3):
    assert_type(step(x, y, rate=0.2), tf.Tensor)
print(step.get_concrete_function(x, y).structured_outputs, step(x, y).numpy())

assert_type(model(x), tf.Tensor)
assert_type(model.scaled(tf.constant([1.0, 2.0])), tf.Tensor)
assert_type(model.trainable_variables, tuple[tf.Variable, ...])

total = tf.Variable([1.0, 2.0])
with tf.GradientTape(persistent=True) as tape:
    loss = tf.reduce_sum(total * total, axis=0, keepdims=True)
assert_type(tape.gradient(loss, total), tf.Tensor)
assert_type(tape.gradient(loss, {"total": total}), dict[str, tf.Tensor])
assert_type(total.assign(total + 1.0), tf.Variable)
assert_type(total[0], tf.Tensor)
assert_type(1.0 - total, tf.Tensor)
assert_type(-total == total, tf.Tensor)
total[0].assign(3.0)
low, high = tf.split(tf.cast(tf.range(4), tf.float32), 2)
assert_type(tf.concat([low, high], axis=0), tf.Tensor)
assert_type(tf.math.reduce_max(tf.linalg.diag(low)), tf.Tensor)
for batch in tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0]).batch(2):
    print(batch.shape, low.dtype is tf.float32, total.shape.as_list(), tf.reduce_sum(batch))
