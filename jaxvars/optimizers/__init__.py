"""Optimizers: Modules that update variables by gradients.

    optimizer = jv.optimizers.Adam(1e-3)

    @jv.compile
    def step(x, y):
        with jv.GradientTape() as tape:
            loss = loss_of(model(x), y)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

The classes have the names, arguments and formulas of TensorFlow's Keras; `Optax` takes any optax
transformation. Two of them go into one step, as for a generator and a discriminator:

    @jv.compile
    def step(real, noise):
        with jv.GradientTape(persistent=True) as tape:
            fake = generator(noise)
            real_score, fake_score = discriminator(real), discriminator(fake)
            to_judge = (jax.nn.softplus(-real_score) + jax.nn.softplus(fake_score)).mean()
            to_fool = jax.nn.softplus(-fake_score).mean()
        for loss, model, optimizer in (
            (to_judge, discriminator, d_optimizer), (to_fool, generator, g_optimizer),
        ):
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return to_judge, to_fool

optax is imported when an optimizer is made of its parts, not with this file.

What all optimizers take, besides their own arguments, is listed at `Optimizer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxvars.display.lookup import namespace
from jaxvars.optimizers.known import (
    SGD,
    Adadelta,
    Adafactor,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Ftrl,
    Lamb,
    Lion,
    Nadam,
    Optax,
    RMSprop,
)
from jaxvars.optimizers.loss_scale import LossScaleOptimizer
from jaxvars.optimizers.optimizer import Optimizer

__all__ = [
    "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lamb", "Lion",
    "LossScaleOptimizer", "Nadam", "Optax", "Optimizer", "RMSprop",
]  # fmt: skip


if not TYPE_CHECKING:  # a checker would take any name for an attribute
    __getattr__, __dir__ = namespace(__name__, __all__)
