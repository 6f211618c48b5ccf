"""`compile`, `fit`, `evaluate`, `predict` of the models of `tf.keras`.

Keras's loops and callbacks run, and what they call for each batch is a `tf.function` of the model's
`train_step(data)`, as in TensorFlow: it sees all variables, wherever they were made, and may be
written again by the user. So a model is trained by `fit` and by custom loops in turns.

Rules this file keeps:
- the variables have their values all the time: Keras is not passed any to keep;
- a `train_step(state, data)`, as Keras has it on JAX, is left to Keras.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, cast

from jaxvars.tf.autodiff.tape import GradientTape
from jaxvars.tf.functions.decorator import function
from jaxvars.tf.keras.adapter.keras import keras
from jaxvars.tf.keras.adapter.semantics import box_arrays, into_keras, unwrap
from jaxvars.tf.keras.bridges import bridge, check_scale, named, scaled
from jaxvars.tf.keras.data import batch_strings, data_of, is_dataset
from jaxvars.tf.keras.exporting import Served
from jaxvars.tf.tensors.convert import is_text

_SAVED = (
    "optimizer", "loss", "loss_weights", "metrics", "weighted_metrics", "run_eagerly",
    "steps_per_execution", "jit_compile",
)  # fmt: skip


class Trained(Served):
    """What a model of `tf.keras` has besides what one of Keras has."""

    def compile(
        self, optimizer: Any = "rmsprop", loss: Any = None, loss_weights: Any = None,
        metrics: Any = None, weighted_metrics: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        """Configure training; see `keras.Model.compile`.

        Args:
            optimizer: of `tf.keras`, of Keras, or a name.
            loss: the same, or a function of labels and predictions, or a structure of them.
            loss_weights: numbers, in the same structure.
            metrics: like `loss`.
            weighted_metrics: the same, of weighted examples.
            **options: `run_eagerly`, `steps_per_execution`, `jit_compile`, `auto_scale_loss`.
        """
        model: Any = super()
        if options.get("auto_scale_loss", True):
            optimizer = scaled(optimizer, model.dtype_policy.name)
        options["auto_scale_loss"] = False
        given = {
            "optimizer": optimizer, "loss": loss, "loss_weights": loss_weights,
            "metrics": metrics, "weighted_metrics": weighted_metrics, **options,
        }  # fmt: skip
        saved = {name: value for name, value in given.items() if name in _SAVED}
        self._given = MappingProxyType(saved)  # which Keras does not look into
        model.compile(**{name: bridge(value) for name, value in given.items()})

    def get_compile_config(self) -> Any:
        """Return what is saved of the arguments of `compile`."""
        given = getattr(self, "_given", None)
        return None if given is None else keras().saving.serialize_keras_object(named(dict(given)))

    def compile_from_config(self, config: Any) -> None:
        """Call `compile` with what was saved."""
        model, this = cast(Any, super()), cast(Any, self)
        if type(self).compile is not Trained.compile:  # the user's, which may want other arguments
            model.compile_from_config(config)
            return
        self.compile(**keras().saving.deserialize_keras_object(config))
        if this.built:
            this.optimizer.build(this.trainable_variables)

    # ------------------------------------------------------------ one batch
    def train_step(self, *data: Any) -> Any:
        """Train on one batch; return the logs.

        Args:
            *data: what the data set gives: x, or (x, y), or (x, y, sample_weight).
        """
        this, model = cast(Any, self), cast(Any, super())
        if len(data) > 1:  # a step of the user's that is written for Keras on JAX
            return into_keras(model.train_step, data, {})
        x, y, weight = keras().utils.unpack_x_y_sample_weight(*data)
        with GradientTape() as tape:
            predicted = this._predict_batch(x, training=True)
            loss = this._track_loss(x, y, predicted, weight, training=True)
            loss = this.optimizer.scale_loss(loss) if this.optimizer else loss
        weights = this.trainable_weights
        if weights:
            this.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return this.compute_metrics(x, y, predicted, sample_weight=weight)

    def test_step(self, *data: Any) -> Any:
        """Evaluate one batch; return the logs."""
        this, model = cast(Any, self), cast(Any, super())
        if len(data) > 1:
            return into_keras(model.test_step, data, {})
        x, y, weight = keras().utils.unpack_x_y_sample_weight(*data)
        predicted = this._predict_batch(x, training=False)
        this._track_loss(x, y, predicted, weight, training=False)
        return this.compute_metrics(x, y, predicted, sample_weight=weight)

    def predict_step(self, *data: Any) -> Any:
        """Return the predictions for one batch."""
        model: Any = super()
        if len(data) > 1:
            return into_keras(model.predict_step, data, {})
        return self._predict_batch(keras().utils.unpack_x_y_sample_weight(*data)[0], training=False)

    def _predict_batch(self, x: Any, *, training: bool) -> Any:
        this: Any = self
        return this(x, training=training) if this._call_has_training_arg else this(x)

    def _track_loss(self, x: Any, y: Any, predicted: Any, weight: Any, *, training: bool) -> Any:
        this: Any = self
        options = {"training": training} if this._compute_loss_has_training_arg else {}
        loss = this.compute_loss(x, y, predicted, weight, **options)
        size = next(part for part in keras().tree.flatten(unwrap(x)) if part is not None).shape[0]
        this._loss_tracker.update_state(unwrap(loss), sample_weight=size)
        return loss

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        """Return the loss of predictions; see `keras.Model.compute_loss`."""
        model: Any = super()
        return into_keras(model.compute_loss, args, kwargs)

    def compute_metrics(self, *args: Any, **kwargs: Any) -> Any:
        """Update the metrics, and return their results by name."""
        model: Any = super()
        return into_keras(model.compute_metrics, args, kwargs)

    # ------------------------------------------------------------ what Keras calls for a batch
    def make_train_function(self, force: bool = False) -> Any:
        """Make the function that trains on the next batch."""
        return self._make("train", force)

    def make_test_function(self, force: bool = False) -> Any:
        """Make the function that evaluates the next batch."""
        return self._make("test", force)

    def make_predict_function(self, force: bool = False) -> Any:
        """Make the function that predicts the next batch."""
        return self._make("predict", force)

    def _make(self, what: str, force: bool) -> Any:
        this: Any = self
        if getattr(this, f"{what}_function") is not None and not force:
            return getattr(this, f"{what}_function")
        if self._is_of_keras(what):
            model: Any = super()
            return getattr(model, f"make_{what}_function")(force)
        if what == "train" and isinstance(this.optimizer, keras().optimizers.LossScaleOptimizer):
            check_scale(this.optimizer)
        step = getattr(this, f"{what}_step")
        run = step if this.run_eagerly else _compiled(step)
        made = _batches(run, this.steps_per_execution, joined=what == "predict")
        setattr(this, f"{what}_function", made)
        return made

    def _is_of_keras(self, what: str) -> bool:
        """Return whether the step is written for Keras on JAX, of state and data."""
        return len(inspect.signature(getattr(self, f"{what}_step")).parameters) > 1

    def _get_jax_state(self, purge_model_variables: bool = False, **parts: bool) -> Any:
        """Return what Keras keeps for the time of an epoch: nothing."""
        if any(map(self._is_of_keras, ("train", "test", "predict"))):
            model: Any = super()
            return model._get_jax_state(purge_model_variables=purge_model_variables, **parts)
        return tuple(None for is_wanted in parts.values() if is_wanted)

    def _symbolic_build(self, *args: Any, **kwargs: Any) -> None:
        """Leave it to the first batch to make the variables, as TensorFlow does."""
        if self._is_of_keras("train"):
            model: Any = super()
            model._symbolic_build(*args, **kwargs)

    # ------------------------------------------------------------ loops
    def fit(self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Train; see `keras.Model.fit`."""
        model: Any = super()
        held = kwargs.get("validation_data")
        if isinstance(held, tuple | list) and len(held) in (2, 3):
            options = {"batch_size": kwargs.get("batch_size"), "sample_weight": [*held, None][2]}
            first, targets = batch_strings(held[0], held[1], args, options)
            kwargs["validation_data"] = first if targets is None else held
        x, y = batch_strings(x, y, args, kwargs, shuffle=True)
        weight = kwargs.pop("class_weight", None) if is_dataset(x) else None
        kwargs = {name: data_of(value) for name, value in kwargs.items()}
        return self._run("train", model.fit, (data_of(x, weight), data_of(y), *args), kwargs)

    def evaluate(self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Return the loss and the metrics; see `keras.Model.evaluate`."""
        model: Any = super()
        x, y = batch_strings(x, y, args, kwargs)
        return self._run("test", model.evaluate, (data_of(x), data_of(y), *args), kwargs)

    def predict(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return predictions as NumPy arrays; see `keras.Model.predict`."""
        model: Any = super()
        x, _ = batch_strings(x, None, args, kwargs)
        return self._run("predict", model.predict, (data_of(x), *args), kwargs)

    def train_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """Train on one batch."""
        model: Any = super()
        return self._run("train", model.train_on_batch, args, kwargs)

    def test_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate one batch."""
        model: Any = super()
        return self._run("test", model.test_on_batch, args, kwargs)

    def predict_on_batch(self, x: Any) -> Any:
        """Return the predictions for one batch as NumPy arrays."""
        model: Any = super()
        return self._run("predict", model.predict_on_batch, (x,), {})

    def _run(self, what: str, loop: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run a loop of Keras's, which calls the user's callbacks."""
        if self._is_of_keras(what):
            return into_keras(loop, args, kwargs)
        return loop(*unwrap(args), **unwrap(kwargs))


def _compiled(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a step as a function, which runs eagerly on strings: XLA has none."""
    fast = function(lambda data: step(data), autograph=False)
    return lambda data: (step if any(map(is_text, _leaves(data))) else fast)(data)


def _leaves(data: Any) -> Any:
    return keras().tree.flatten(unwrap(data))


def _batches(run: Callable[[Any], Any], count: int, *, joined: bool) -> Callable[..., Any]:
    """Return what Keras calls: it takes batches from an iterator, and passes on the state."""

    def function_of_iterator(state: Any, iterator: Any) -> Any:
        results = [unwrap(run(box_arrays(next(iterator))))]
        for _ in range(count - 1):
            try:
                results.append(unwrap(run(box_arrays(next(iterator)))))
            except StopIteration:
                break
        if joined and len(results) > 1:
            joined_results = keras().tree.map_structure(
                lambda *parts: keras().ops.concatenate(parts), *results
            )
            return joined_results, state
        return results[-1], state

    return function_of_iterator
