"""`tf.train.ExponentialMovingAverage`: averages of variables as they are trained."""

from __future__ import annotations

from typing import Any, final

from jaxvars.objects.traversal import Holder, Tie, Tied
from jaxvars.tf.attributes import getter
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable


@final
class ExponentialMovingAverage(Holder):
    """Averages of variables, in which each value counts the less the older it is.

    Args:
        decay: the part that the average keeps at each `apply`, near 1.
        num_updates: how many updates there were (a number or variable), for a smaller decay at
            the beginning: `min(decay, (1 + num_updates) / (10 + num_updates))`.
        zero_debias: of no effect on variables.
        name: what the names of the averages end with.

    >>> from jaxvars import tf
    >>> v = tf.Variable(1.0)
    >>> average = ExponentialMovingAverage(0.9)
    >>> average.apply([v])
    >>> _ = v.assign(2.0)
    >>> average.apply([v])
    >>> print(average.average(v).numpy())
    1.1
    """

    def __init__(
        self, decay: Any, num_updates: Any = None, zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:  # fmt: skip
        self._decay, self._num_updates, self._name = decay, num_updates, name
        self._averages: dict[str, Variable] = {}  # by `Tied`: a checkpoint goes by the variables

    name = getter("_name", "What the names of the averages end with.")

    def apply(self, var_list: Any = None) -> None:
        """Move the averages of some variables, from their first call on.

        Args:
            var_list: floating variables.

        Raises:
            TypeError: when one is not a variable, or not floating.
        """
        for variable in var_list or ():
            average = self._average(_check(variable))
            old, new = to_array(average), to_array(variable)
            part = 1 - to_array(self._rate()).astype("float32")  # in bfloat16, 0.999 is 1
            average.assign(Tensor(old - (old - new) * part.astype(old.dtype)))

    def _rate(self) -> Any:
        if self._num_updates is None:
            return self._decay
        count = to_array(self._num_updates).astype("float32")
        rate = (1 + count) / (10 + count)
        return Tensor(rate.clip(None, to_array(self._decay)))

    def _average(self, variable: Variable) -> Variable:
        key = str(variable.aliased._cell.key)
        if key not in self._averages:
            self._averages[Tied(key, Tie(variable.aliased))] = Variable(
                lambda: variable.value(), trainable=False, name=self.average_name(variable)
            )
        return self._averages[key]

    def average(self, var: Variable) -> Variable | None:
        """Return the average of a variable; None if there is none."""
        return self._averages.get(str(_check(var).aliased._cell.key))

    def average_name(self, var: Variable) -> str:
        """Return what the average of a variable is called."""
        return f"{var.name.removesuffix(':0')}/{self._name}"

    def variables_to_restore(self, moving_avg_variables: Any = None) -> dict[str, Variable]:
        """Return variables by the names under which their averages are found."""
        return {self.average_name(v): v for v in moving_avg_variables or ()}


def _check(variable: Any) -> Variable:
    if not isinstance(variable, Variable):
        raise TypeError(
            "tf.train.ExponentialMovingAverage does not support non-Variable tensors when eager "
            "execution is enabled."
        )
    if not variable.dtype.is_floating:
        raise TypeError(f"The variables must be half, float, or double: {variable.name}")
    return variable
