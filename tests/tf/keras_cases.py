"""Expressions of `tf.keras` that TensorFlow and `jaxvars.tf` evaluate alike, to compact values."""

from __future__ import annotations

from typing import Any

import numpy as np

X = [[-2.0, -0.5, 0.0], [0.25, 1.0, 3.0]]
LABELS, SCORES = [[0.0, 1.0], [1.0, 0.0]], [[0.25, 0.75], [0.5, 0.5]]

ACTIVATIONS = (  # noqa: SIM905 - shorter
    "celu elu exponential gelu hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu linear "
    "log_sigmoid log_softmax mish relu relu6 selu sigmoid silu softmax softplus softsign "
    "sparse_plus sparse_sigmoid squareplus swish tanh tanh_shrink hard_shrink soft_shrink"
).split()

SCHEDULES = (
    "ExponentialDecay(0.1, 10, 0.5)", "ExponentialDecay(0.1, 10, 0.5, staircase=True)",
    "InverseTimeDecay(0.1, 10, 0.5)", "PiecewiseConstantDecay([5, 12], [1.0, 0.5, 0.1])",
    "PolynomialDecay(0.1, 10, 0.01, power=2.0)", "PolynomialDecay(0.1, 10, cycle=True)",
    "CosineDecay(0.1, 20, alpha=0.1)", "CosineDecay(0.0, 20, warmup_target=0.1, warmup_steps=7)",
    "CosineDecayRestarts(0.1, 8)", "CosineDecayRestarts(0.1, 8, t_mul=1.0, m_mul=0.5, alpha=0.1)",
)  # fmt: skip
OPTIMIZERS = (
    "SGD(0.1, momentum=0.9, nesterov=True)",
    "Adam(k.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5))",
    "RMSprop(0.01, centered=True)", "AdamW(0.1, weight_decay=0.1)", "Adagrad(0.1, clipnorm=0.5)",
)  # fmt: skip

EXPRESSIONS = [
    *(f"k.activations.{name}(X)" for name in ACTIVATIONS),
    "k.activations.relu(X, negative_slope=0.1, max_value=2.0, threshold=0.1)",
    "k.activations.threshold(X, 0.5, 9.0)", "k.activations.get('relu')(X)",
    "k.regularizers.L1(0.1)(X)", "k.regularizers.L2(0.1)(X)", "k.regularizers.L1L2(0.1, 0.2)(X)",
    "k.regularizers.OrthogonalRegularizer(0.1)(X)", "k.regularizers.get('l2')(X)",
    "k.losses.MeanSquaredError()(LABELS, SCORES)", "k.losses.mse(LABELS, SCORES)",
    "k.losses.Huber(delta=0.5, reduction='sum')(LABELS, SCORES)",
    "k.losses.CategoricalCrossentropy(from_logits=True)(LABELS, SCORES, sample_weight=[1.0, 3.0])",
    "k.losses.SparseCategoricalCrossentropy(reduction='none')(tf.constant([1, 0]), SCORES)",
    "k.losses.sparse_categorical_crossentropy(tf.constant([1, 0]), SCORES, from_logits=True)",
    "k.losses.BinaryCrossentropy(label_smoothing=0.1)(LABELS, SCORES)",
    "k.losses.get('mae')(LABELS, SCORES)", "written_loss(tf)(LABELS, SCORES)",
    "metric(k.metrics.Mean(), [1.0, 2.0], 6.0)", "metric(k.metrics.Sum(), [1.0, 2.0], 6.0)",
    "k.metrics.SparseCategoricalAccuracy()(tf.constant([1, 1]), SCORES)",
    "k.metrics.Precision()(LABELS, SCORES)", "k.metrics.AUC(num_thresholds=5)(LABELS, SCORES)",
    "k.metrics.MeanSquaredError()(LABELS, SCORES)",
    "k.metrics.categorical_accuracy(LABELS, SCORES)", "k.utils.to_categorical([0, 2, 1])",
    "k.utils.to_categorical([[0], [2]], num_classes=4)", "k.initializers.Constant(2.0)((2,))",
    "k.initializers.get('zeros')((2,), dtype='int32')", "k.initializers.Identity(2.0)((2, 2))",
    "tf.ones_initializer()((2,), dtype=tf.float64)",
    "tf.constant_initializer([1, 2, 3, 4])((2, 2))", "tf.constant_initializer(3)([2])",
    *(f"rates(k.optimizers.schedules.{made})" for made in SCHEDULES),
    *(f"trained(tf, k.optimizers.{made})" for made in OPTIMIZERS),
]  # fmt: skip


def written_loss(tf: Any) -> Any:
    """Return a loss that a program has written."""

    class Distance(tf.keras.losses.Loss):
        def call(self, y_true: Any, y_pred: Any) -> Any:
            return tf.reduce_sum(tf.abs(y_true - y_pred), axis=-1)

    return Distance(name="distance")


def metric(made: Any, *values: Any) -> Any:
    for value in values:
        made.update_state(value)
    return made.result()


def rates(schedule: Any) -> list[Any]:
    return [schedule(step) for step in (0, 3, 10, 17, 30)]


def trained(tf: Any, optimizer: Any) -> list[Any]:
    v = tf.Variable([1.0, -2.0])
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(v))
        optimizer.apply_gradients(zip(tape.gradient(loss, [v]), [v], strict=True))
    return [v, optimizer.iterations.numpy() * 1.0]


def evaluate(tf: Any, expression: str) -> tuple[list[str], list[Any]]:
    """Return the types and the values of an expression."""
    tensors = {"X": tf.constant(X), "LABELS": tf.constant(LABELS), "SCORES": tf.constant(SCORES)}
    found = eval(expression, {**globals(), **tensors, "tf": tf, "k": tf.keras})
    parts = found if isinstance(found, list) else [found]
    arrays = [np.asarray(x.numpy() if hasattr(x, "numpy") else x) for x in parts]
    return [x.dtype.name for x in arrays], [np.round(x, 7).tolist() for x in arrays]
