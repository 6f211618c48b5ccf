"""Layers of flax, equinox and Keras in jaxvars, and State as dicts, NumPy arrays and bytes.

    model = jv.interop.from_flax(CNN(), images, rngs={"params": 0, "dropout": 1})

    @jv.compile
    def step(x, y):
        with jv.GradientTape() as tape:
            loss = loss_of(model(x, train=True), y)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

A linen or nnx module becomes a Module whose variables are flax's parameters, batch statistics and
so on, with flax's own paths. It is called like the flax module, eagerly, in compiled functions and
under a tape, and is copied and saved like any Module; what a call changes is written back.

Of linen modules, collections are attributes: `model.params["Dense_0"]["kernel"]`,
`model.batch_stats`. Keys for random values come from generators, `model.rngs`; a stream advances
when it is used. Of nnx modules, what the module has as attributes the model has, too:
`model.encoder(x)`, `model.encoder.kernel`; streams are Generators that go on where nnx's were.

`from_equinox` adapts modules of equinox with their state. `from_keras` has tapes, compiled
functions and checkpoints see the variables of Keras 3. `from_pytree` makes Variables of any tree's
arrays; `jv.variables` makes a tree of them one thing, to be read and assigned as a whole.

The rest of this page is for any variables, flax's or not: `to_dict` and `from_dict`, `to_numpy` and
`from_numpy`, `to_bytes` and `from_bytes`, `to_file` and `from_file`. The latter of each pair return
a State to commit. Rules rename and transform what has other names, as PyTorch's weights do.

Flax is imported when it is first needed. From then on `flax.serialization` knows State, too.

>>> import flax.linen as nn, jax.numpy as jnp, jaxvars as jv
>>> model = from_flax(nn.Dense(2), jnp.ones((1, 3)), rngs=0)
>>> model(jnp.zeros((1, 3)))
Array([[0., 0.]], dtype=float32)
>>> list(model.named_variables)
['params/bias', 'params/kernel']
>>> sorted(to_flax(model)["params"])
['bias', 'kernel']
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TypeVar

from jaxvars.errors import InteropError, shown
from jaxvars.interop.equinox import EquinoxModule, from_equinox, to_equinox
from jaxvars.interop.files import from_file, to_file
from jaxvars.interop.keras import adopt
from jaxvars.interop.linen import LinenModule
from jaxvars.interop.module import FlaxModule, explaining_maps
from jaxvars.interop.nnx import NnxModule, adapt
from jaxvars.interop.state import (
    from_bytes,
    from_dict,
    from_numpy,
    register,
    to_bytes,
    to_dict,
    to_numpy,
)
from jaxvars.interop.trees import VariableTree, variables

__all__ = [
    "EquinoxModule", "FlaxModule", "LinenModule", "NnxModule", "VariableTree", "from_bytes",
    "from_dict", "from_equinox", "from_file", "from_flax", "from_keras", "from_numpy",
    "from_pytree", "to_bytes", "to_dict", "to_equinox", "to_file", "to_flax", "to_numpy",
]  # fmt: skip

T = TypeVar("T")


@explaining_maps()
def from_flax(
    module: Any,
    *args: Any,
    rngs: Any = None,
    method: Any = None,
    variables: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> LinenModule | NnxModule:
    """Make a Module of a linen or nnx module.

    Args:
        module: of linen, unbound; or of nnx, whose state is copied and which is not changed.
        *args: examples of the input of a linen module, for `module.init`: arrays, or specs
            (`jv.TensorSpec`, `jax.ShapeDtypeStruct`). Without any, and without `variables`, the
            first call makes the state.
        rngs: where random values come from: a `jv.random.Generator`; a seed or key; or a dict
            of these by stream. For linen, a seed is used as `module.init` uses it, a Generator
            gives a key by a draw, and then each call is one draw from each stream that it used;
            when it is not a dict, the streams are "params", for `init`, and "dropout", a variable
            of the model if its code can ask for it, or from when it does. When None, they begin
            with a draw of the global generator. For nnx, the module's streams begin again by
            draws; when None they go on.
        method: for linen, what to initialize with and call instead of `__call__`: a name, or a
            function that takes the module first.
        variables: for linen, collections that are there already, `{"params": ...}`.
        **kwargs: more arguments for `module.init`, like `train=False`.

    Returns:
        A Module to call like the flax module.

    Raises:
        InteropError: when it is not a flax module, is bound, or cannot be initialized so.

    >>> import flax.linen as nn
    >>> import jaxvars as jv
    >>> model = jv.interop.from_flax(nn.Dropout(0.5), rngs=0)
    >>> double = jv.compile(lambda x: model(x, deterministic=False))
    >>> sorted(set(double(jv.random.uniform(50, 1, 1 + 1e-6)).round().tolist()))
    [0.0, 2.0]

    Differs from flax: parameters are trained by `jv.optimizers` or `jv.optimizers.Optax`, and
    `train=True` changes batch statistics in place, with nothing to pass on.
    """
    if _is_a(module, "flax.linen", "Module"):
        register()
        model = LinenModule(module, rngs, method)
        if variables is not None:
            model.fill(variables)
        elif args or kwargs:
            model.initialize(args, kwargs, method)
        return model
    if not _is_a(module, "flax.nnx", "Pytree"):
        raise InteropError(_describe_refused(module))
    if args or kwargs or method is not None or variables is not None:
        raise InteropError(
            f"An nnx module like this {type(module).__name__} has its state already: from_flax "
            "takes nothing more than rngs=. Call other methods by name, model.encode(x)."
        )
    register()
    return adapt(module, rngs)


def from_keras(thing: T, *more: Any) -> T:
    """Adopt something of Keras 3 on JAX; return the same object, to be used as before.

    Its variables keep their values in Variables from now on. They are read and written by
    `jv.compile`, tapes and optimizers, and found by `State`, `Checkpoint` and so on, as they are by
    Keras's own methods. Adopt what a Module, a State or a checkpoint is to hold. What is first met
    in a compiled function or under a tape is adopted by that.

    Args:
        thing: a layer, model, optimizer, metric, seed generator or variable. The variables of
            layers and optimizers that are not built yet are adopted when a tape or a compiled
            function meets them: build both before you restore a checkpoint in them.
        *more: nothing; an example input, as for `from_flax`, is refused with advice.

    Returns:
        The object. Its variables' paths are Keras's, less the name of the object itself; numbers
        that Keras has counted in this process, as in `dense_7`, are counted from the beginning.

    Raises:
        InteropError: when it is nothing of Keras's, or Keras does not run on JAX.
        TypeError: when more is given.

    >>> import os
    >>> os.environ["KERAS_BACKEND"] = "jax"
    >>> import keras, jaxvars as jv
    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, "relu")])
    >>> model = jv.interop.from_keras(model)
    >>> list(jv.State.of(model))
    ['dense/kernel', 'dense/bias']
    """
    if more:
        raise shown(
            TypeError(
                "from_keras takes one argument, and no example input: Keras makes the variables "
                "of a layer when it is called first, or now by layer.build(x.shape)."
            )
        )
    return adopt(thing)


def from_pytree(tree: Any) -> Any:
    """Return a pytree with a Variable for each array: the `tree` of `jv.variables(tree)`.

    It is of the same class. For a module of equinox there is `from_equinox`.

    Args:
        tree: whose arrays are copied; what else it has stays.

    Returns:
        A tree of the same structure. Arrays of floating dtypes become trainable Variables, others
        not trainable ones; what is computed with it reads them.

    >>> import jax.numpy as jnp, jaxvars as jv
    >>> class Scale(jv.Module):
    ...     def __init__(self):
    ...         self.params = jv.interop.from_pytree({"scale": jnp.ones(2), "name": "s"})
    >>> Scale().named_variables
    {'params/scale': <Variable 'scale' float32[2] [1. 1.]>}
    """
    return variables(tree).tree


def to_flax(model: FlaxModule, *, bound: bool = False) -> Any:
    """Return the state of a model made by `from_flax`, as flax has it.

    Args:
        model: of linen or nnx.
        bound: return the flax module with this state in it.

    Returns:
        For linen a dict of collections, `{"params": ..., "batch_stats": ...}`, with boxes like
        `nn.Partitioned` where flax had some; for nnx an `nnx.State`. With `bound`, the linen
        module bound to the collections, or a new nnx module.

    Raises:
        InteropError: when it was not made by `from_flax`, or has no state yet.

    >>> from flax import nnx
    >>> model = from_flax(nnx.Linear(2, 3, rngs=nnx.Rngs(0)))
    >>> to_flax(model)["kernel"].shape
    (2, 3)
    """
    if not isinstance(model, FlaxModule):
        raise InteropError(
            f"to_flax takes what from_flax made, not {type(model).__name__}. The values of any "
            "Module's variables are in interop.to_dict(model)."
        )
    return model.to_flax(bound=bound)


def _is_a(module: object, library: str, kind: str) -> bool:
    found = sys.modules.get(library)  # where there is a module of its, it was imported
    return found is not None and isinstance(module, getattr(found, kind))


def _describe_refused(module: object) -> str:
    if isinstance(module, type):
        return f"from_flax takes a module, not a class: from_flax({module.__name__}(...), x)."
    return (
        f"from_flax takes a module of flax.linen or flax.nnx, not {type(module).__name__} "
        f"{module!r}."
    )


def __dir__() -> list[str]:
    return __all__
