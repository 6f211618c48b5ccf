"""The options that all optimizers take."""

from __future__ import annotations

from typing import Any, TypeAlias, TypedDict

Rate: TypeAlias = Any  # a number, Variable, or function of the step


class OptionsButDecay(TypedDict, total=False):
    """What all optimizers take in one way."""

    clipnorm: float | None
    clipvalue: float | None
    global_clipnorm: float | None
    use_ema: bool
    ema_momentum: float
    ema_overwrite_frequency: int | None
    loss_scale_factor: float | None
    gradient_accumulation_steps: int | None
    name: str | None


class Options(OptionsButDecay, total=False):
    """What all optimizers take; see the top of `jaxvars.optimizers`."""

    weight_decay: float | None


WORDS = {
    "learning_rate": "as for `Adam`.",
    "beta_1": "how much of the mean is kept.",
    "beta_2": "how much of the mean square is kept.",
    "epsilon": "what is added to the root.",
    "amsgrad": "whether to divide by the largest mean square so far.",
    "momentum": "the part of the last step that is made again.",
    "options": "see `jaxvars.optimizers`.",
}
