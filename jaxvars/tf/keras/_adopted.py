"""`tf.keras.adopt`: a model or layer of Keras, with tf.Variables in place of its own.

Rules this file keeps:
- the values live in tf.Variables; Keras's own are given them for each call, by `stateless_call`,
  and keep what they had, until `write_back`;
- what a call changes, like the statistics of a batch normalisation or the seeds of a dropout, is
  assigned to the tf.Variables.
"""

from __future__ import annotations

from typing import Any, final

from jaxvars._module import Module
from jaxvars.tf._tensor import wrap
from jaxvars.tf._variable import Variable
from jaxvars.tf.keras._facade import arrays


@final
class Adopted(Module):
    """A model of Keras over tf.Variables; made by `tf.keras.adopt`."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.trained = [_variable(v, True) for v in model.trainable_variables]
        self.others = [_variable(v, False) for v in model.non_trainable_variables]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model, with tensors in and out; assigns what the call changes."""
        given = [v.value()._array for v in self.trained], [v.value()._array for v in self.others]
        plain = arrays(args), {k: x if k == "training" else arrays(x) for k, x in kwargs.items()}
        result, changed = self.model.stateless_call(*given, *plain[0], **plain[1])
        for variable, value in zip(self.others, changed, strict=True):
            variable.assign(value)
        return wrap(result)

    @property
    def trainable_variables(self) -> Any:
        """The tf.Variables that a GradientTape watches by itself."""
        return list(self.trained)

    @property
    def non_trainable_variables(self) -> Any:
        """The other tf.Variables: statistics, seeds."""
        return list(self.others)

    @property
    def variables(self) -> Any:
        """All tf.Variables."""
        return [*self.trained, *self.others]

    def write_back(self) -> None:
        """Assign the values to the model's own variables, to save or use it as one of Keras."""
        theirs = [*self.model.trainable_variables, *self.model.non_trainable_variables]
        for variable, own in zip(theirs, self.variables, strict=True):
            variable.assign(own.value()._array)


def _variable(variable: Any, trainable: bool) -> Variable:
    return Variable(variable.value, trainable=trainable, name=variable.path.replace("/", "_"))


def adopt(model: Any, *inputs: Any) -> Adopted:
    """Return a model or layer of Keras with tf.Variables in place of its own.

    Args:
        model: of Keras; built, or built here by calling it with the inputs.
        *inputs: examples of what it will be called with.

    Returns:
        What is called as the model is, in `tf.function` and under a tape, too. Its variables are
        copies: `write_back` assigns them to the model.

    Raises:
        ValueError: when the model has no variables yet, and there are no inputs.
    """
    if inputs:
        model(*arrays(inputs))
    if not model.built:
        raise ValueError(
            "The model has no variables yet: give an example of its input, tf.keras.adopt(model, "
            "tf.zeros([1, 784]))."
        )
    return Adopted(model)
