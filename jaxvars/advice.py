"""Words of other libraries, and what to write instead; what errors of JAX and Python mean here.

Rules this file keeps:
- all of it runs on the way of an error, never of a call that works;
- a cure is a line that runs, or the name of what to use.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from traceback import walk_tb
from typing import Any

_A_STEP = "a loop over optimizer.minimize(loss, model), in a @jv.compile'd function"
_A_CHECKPOINT = "jv.checkpoint.Checkpoint(model=model)"
_A_PURE_FUNCTION = "pure = jv.functionalize(model); pure(jv.State.of(model), x)"
_A_LOSS_OF_CLASSES = "jv.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)"
_ASSIGNS = {"update": "assign", "add": "assign_add", "sub": "assign_sub"}
_AT = {"mul": "multiply", "div": "divide", "max": "max", "min": "min"}
_PARTS = "tuple(jnp.moveaxis(indices, -1, 0))"
_BATCHES = "*jnp.indices(rows.shape, sparse=True)[:-1], rows"
_A_UNIT = "jv.interop.from_flax or from_keras of a layer, or a jv.Module with Variables"
_LAYERS = [
    "layers", "Sequential", "Dense", "Linear", "Conv", "Conv2D", "Conv2d", "Dropout", "Embedding",
    "Embed", "BatchNorm", "BatchNormalization", "LayerNorm", "LayerNormalization", "LSTM", "GRU",
    "MultiHeadAttention", "MaxPool2D", "Flatten",
]  # fmt: skip
_RATE = "a schedule of optax as the learning rate"
_SCHEDULES = {
    **dict.fromkeys(
        ["schedules", "lr_scheduler", "ExponentialDecay"], "exponential_decay(0.1, 1000, 0.9)"
    ),
    **dict.fromkeys(["CosineDecay", "CosineAnnealingLR"], "cosine_decay_schedule(0.1, 1000)"),
    "PolynomialDecay": "polynomial_schedule(0.1, 0.01, 1, 1000)",
    "PiecewiseConstantDecay": "piecewise_constant_schedule(0.1, {1000: 0.1})",
}

INSTEAD: dict[str, dict[str, str]] = {
    "jaxvars": {
        **dict.fromkeys(["jit", "filter_jit", "function"], "jv.compile"),
        "vmap": "jv.vectorized_map, or jax.vmap of jv.functionalize(f)",
        **dict.fromkeys(["grad", "value_and_grad", "filter_grad"], "jv.GradientTape"),
        **dict.fromkeys(["save", "load"], "jv.checkpoint (values) or jv.export (programs)"),
        **dict.fromkeys(["Param", "Parameter"], "jv.Variable"),
        **dict.fromkeys(["Tensor", "Array"], "jax.Array"),
        **dict.fromkeys(["constant", "convert_to_tensor", "tensor"], "jnp.asarray"),
        "cast": "x.astype(dtype)",
        "nn": "jax.nn",
        "keras": "jv.interop.from_keras of what is Keras's, or jv.tf.keras",
        "data": "jv.tf.data",
        **dict.fromkeys(_LAYERS, _A_UNIT),
        **{name: f"jax.nn.{name.lower()}" for name in ("ReLU", "GELU", "Softmax", "Sigmoid")},
        "dropout": "jv.random.bernoulli and jnp.where",
        **dict.fromkeys(["distribute", "distributed"], "jv.parallel"),
        "summary": "jv.tensorboard",
        "recompute_grad": "jv.recompute",
        "string": 'the dtype "string"',
        "UnconnectedGradients": 'unconnected_gradients="none" or "zero"',
    },
    "Variable": {
        **dict.fromkeys(["set", "update", "copy_", "load"], "v.assign(value)"),
        **dict.fromkeys(["add_", "sub_", "mul_", "fill_"], "v += x and the like, or v.assign"),
        **dict.fromkeys(["detach", "stop_gradient"], "jax.lax.stop_gradient(v.value)"),
        **dict.fromkeys(["backward", "grad"], "a jv.GradientTape: tape.gradient(loss, v)"),
        **dict.fromkeys(["cpu", "cuda", "to"], "jv.place, or create it in `with jv.device(...)`"),
        **dict.fromkeys(["requires_grad", "requires_grad_"], "v.trainable"),
        **{f"scatter_{how}": f"v[rows].{verb}(updates)" for how, verb in _ASSIGNS.items()},
        **{f"scatter_nd_{how}": f"v[{_PARTS}].{verb}(updates)" for how, verb in _ASSIGNS.items()},
        **{f"scatter_{how}": f"v.assign(v.at[rows].{op}(updates))" for how, op in _AT.items()},
        **{f"scatter_nd_{op}": f"v.assign(v.at[{_PARTS}].{op}(updates))" for op in ("max", "min")},
        "batch_scatter_update": f"v[{_BATCHES}].assign(updates)",
        "eval": "v.numpy()",
        "get_shape": "v.shape",
        "set_shape": "jv.Variable(...), a new one: a variable keeps its shape",
        "unsqueeze": "jnp.expand_dims(v, axis)",
        "permute": "jnp.permute_dims(v, axes)",
        "initializer": "v.value: a Variable has its value from the start",
        "constraint": "one of jv.optimizers: those of Keras train the variables of Keras",
        "ref": "v itself, which is hashed by identity",
    },
    "Module": {
        **dict.fromkeys(["fit", "compile", "train_step", "train_on_batch"], _A_STEP),
        **dict.fromkeys(["predict", "evaluate", "forward"], "model(x)"),
        **dict.fromkeys(["parameters", "trainable_weights"], "model.trainable_variables"),
        "weights": "model.variables",
        "non_trainable_weights": "model.non_trainable_variables",
        **dict.fromkeys(["save", "save_weights", "state_dict"], f"{_A_CHECKPOINT}.save(path)"),
        **dict.fromkeys(["load_weights", "load_state_dict"], f"{_A_CHECKPOINT}.restore(path)"),
        **dict.fromkeys(["apply", "init", "params"], _A_PURE_FUNCTION),
        **dict.fromkeys(["train", "eval"], "an argument: def __call__(self, x, training=False)"),
        "to": "jv.place, or create it in `with jv.device(...)`",
        **dict.fromkeys(["half", "bfloat16", "float"], "model.astype(jnp.bfloat16), a copy"),
        **dict.fromkeys(["freeze", "unfreeze", "requires_grad_"], "jv.freeze, or v.trainable"),
        "__jax_array__": "model.variables",
        "inference": "model.view(eqx.nn.inference_mode) of what from_equinox made: another Module "
        "of the same Variables",
    },
    "Function": {
        "get_concrete_function": "fn.trace(...), which takes the same arguments",
        **dict.fromkeys(["experimental_get_tracing_count", "tracing_count"], "fn.trace_count"),
        "pretty_printed_concrete_signatures": "fn.traces",
        "lower": "fn.trace(...).lower()",
        "eval_shape": "fn.trace(...).structured_outputs",
    },
    "jaxvars.config": {
        **dict.fromkeys(["run_functions_eagerly", "functions_run_eagerly"], "jv.config.run_eagerly")
    },
    "Optimizer": {
        **dict.fromkeys(["step", "update"], "optimizer.apply_gradients(zip(gradients, variables))"),
        "zero_grad": "a new jv.GradientTape: it starts without gradients",
        "init": "optimizer.build(model); the first update does it, too",
        **dict.fromkeys(["lr", "param_groups"], "optimizer.learning_rate, and .assign(0.01) of it"),
        "state_dict": "jv.checkpoint.Checkpoint(model=model, optimizer=optimizer).save(path)",
    },
    "jaxvars.optimizers": {
        name: f"{_RATE}: jv.optimizers.SGD(optax.{schedule})"
        for name, schedule in _SCHEDULES.items()
    },
    "jaxvars.losses": {
        **dict.fromkeys(["mse", "MSELoss"], "jv.losses.mean_squared_error"),
        **dict.fromkeys(["mae", "L1Loss"], "jv.losses.mean_absolute_error"),
        "bce": "jv.losses.binary_crossentropy",
        **dict.fromkeys(["CrossEntropyLoss", "cross_entropy"], _A_LOSS_OF_CLASSES),
        **dict.fromkeys(["CTC", "ctc"], "optax.ctc_loss"),
        **{
            name: f"keras.losses.{name}(...), on Keras's JAX backend"
            for name in ("CategoricalGeneralizedCrossEntropy", "Circle", "Dice", "Tversky")
        },
    },
    "jaxvars.metrics": {
        name: f"jv.interop.from_keras(keras.metrics.{name}(...))"
        for name in (
            "BinaryIoU",
            "FBetaScore",
            "IoU",
            "MeanIoU",
            "OneHotIoU",
            "OneHotMeanIoU",
            "PearsonCorrelation",
            "PrecisionAtRecall",
            "R2Score",
            "RecallAtPrecision",
            "SensitivityAtSpecificity",
            "SpecificityAtSensitivity",
        )
    },
    "jaxvars.initializers": {
        **dict.fromkeys(["Xavier", "xavier_uniform", "Glorot"], "jv.initializers.GlorotUniform"),
        **dict.fromkeys(["Kaiming", "kaiming_uniform", "He"], "jv.initializers.HeUniform"),
    },
    "jaxvars.random": {
        **{
            f"stateless_{name}": f"jax.random.{name}(key, ...)"
            for name in (
                "bernoulli",
                "categorical",
                "gamma",
                "normal",
                "truncated_normal",
                "uniform",
            )
        },
        **dict.fromkeys(["manual_seed", "seed", "PRNGKey", "key"], "jv.random.set_seed(0)"),
    },
    "jaxvars.checkpoint": {"save": f"{_A_CHECKPOINT}.save(path)"},
    "Metric": {
        "update": "metric.update_state(...)",
        "compute": "metric.result()",
        **dict.fromkeys(["reset", "reset_states"], "metric.reset_state()"),
    },
}
"""For each class, and the package: names that other libraries have there."""


def instead_of(name: str, *owners: str) -> str:
    """Return a sentence, with a space before it, on a name that other libraries have; or nothing.

    >>> "No jv.jit." + instead_of("jit", "jaxvars")
    'No jv.jit. Use jv.compile.'
    """
    found = next((INSTEAD[o][name] for o in owners if name in INSTEAD.get(o, {})), None)
    return "" if found is None else f" Use {found}."


_ARRAY = r"(ArrayImpl|Tracer)'?"
_NUMBER = r"'(list|int|float|complex|ArrayImpl|\w*Tracer|Variable)'"
_MEANINGS = {
    rf"{_ARRAY} object is not callable": (
        "An array is not a function: a variable is read by v.value, without (), and jv.cond and "
        "jv.while_loop take functions, as in jv.cond(x > 0, lambda: x, lambda: -x)."
    ),
    rf"{_ARRAY} (object )?has no attribute '?numpy": (
        "np.asarray(x) makes a NumPy array of a JAX array; outside of compiled functions, which "
        "return x for it."
    ),
    rf"{_ARRAY} (object )?has no attribute '?assign": (
        "It is an array: `v = v + 1` gives the name v to one. Write v.assign(v + 1), or v += 1."
    ),
    rf"{_ARRAY} (object )?has no attribute '?backward": (
        "Gradients are asked for, of a tape: `with jv.GradientTape() as tape: loss = ...`, then "
        "tape.gradient(loss, model.trainable_variables); or optimizer.minimize(loss_function, "
        "model) does both and updates."
    ),
    r"unhashable type: '\w*Tracer'": (
        "A dict or set cannot be asked for a value that is only known when the compiled function "
        "runs. Name the argument in static_argnames, or look it up in an array: "
        "jnp.asarray([10, 20])[i]."
    ),
    r"(Slice entries must be static integers|indices must have static start/stop/step)": (
        "A program has fixed shapes, and this slice's depends on a value. Name the argument in "
        "static_argnames, or take a part of fixed size: jax.lax.dynamic_slice_in_dim(x, start, 2). "
        "To leave the other elements out of a sum: jnp.where(jnp.arange(x.shape[0]) < n, x, 0)."
    ),
    r"Array boolean indices must be concrete": (
        "A program has fixed shapes, and how many elements there are is only known when it runs. "
        "Keep the shape, jnp.where(x > 0, x, 0), or say how many: "
        "x[jnp.nonzero(x > 0, size=2, fill_value=0)]."
    ),
    r"unsupported format string passed to \w*Tracer": (
        'The value is only known when the compiled function runs: jv.print("{}", x) prints it '
        "then. Or return it, and format it outside."
    ),
    r"unsupported operand type.*NoneType": (
        "One of them is None. If it is a gradient: jv.GradientTape.explain(loss, variable) says "
        "why there is none."
    ),
    rf"^(unsupported operand type\(s\) for \S+: ('list' and {_NUMBER}|{_NUMBER} and 'list')$"
    r"|\w+ requires ndarray or scalar arguments, got <class 'list'>"
    r"|'list' object has no attribute '(shape|dtype|ndim|size|T|mean|sum|astype|reshape)'$)": (
        "A list is not an array, and one that is an argument of a compiled function stays a list "
        "there. Make an array of it: jnp.asarray(data)."
    ),
    r"string indexing; got idx=": (
        "An array has no names, and a table (a DataFrame) that is an argument of a compiled "
        "function is one array there. Pass a column, d['a'].to_numpy(), or a dict of them: dict(d)."
    ),
    r"Triggering __jax_array__\(\) during abstractification": (
        "Functions of jax.lax take arrays, not Variables: pass v.value, or use jnp's."
    ),
    r"pytree structure error(?s:.*)jaxvars\.core\.variable\.Variable": (
        "A tree of Variables and one of arrays differ for JAX. Use jv.optimizers.Optax("
        "optax.adam(1e-3)), or read the variables first, and assign what comes out:\n"
        "    values = [v.value for v in variables]\n"
        "    for v, new in zip(variables, optax.apply_updates(values, updates)):\n"
        "        v.assign(new)"
    ),
}
"""What errors of JAX and Python mean here, by a pattern of their messages."""

EXPLANATIONS: list[Callable[[Exception], None]] = []
"""Functions that are given an error of code that is traced: they may raise a clearer one."""


def explain(error: BaseException | None) -> None:
    """Add a note to an error of JAX or Python that has a known meaning, unless it has the note."""
    if isinstance(error, UnboundLocalError):
        _explain_rebound(error)
    if not isinstance(error, TypeError | ValueError | AttributeError | IndexError):
        return
    if not type(error).__module__.startswith(("builtins", "jax.", "jaxlib")):
        return
    message = str(error)
    for pattern, meaning in _MEANINGS.items():
        if re.search(pattern, message):
            add_note(error, meaning)


def _explain_rebound(error: UnboundLocalError) -> None:
    """Say what to write where a function gives the name of a global variable to something else."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    for name in re.findall(r"variable '(\w+)'", str(error)):
        if frames and hasattr(frames[-1].f_globals.get(name), "assign_sub"):
            add_note(
                error,
                f"`{name} = ...` and `{name} += ...` make {name!r} a local name of the function. "
                f"Assign to the variable: {name}.assign({name} + 1), or {name}.assign_add(1).",
            )


OPTIONS = {
    "static_argnums": 'static_argnames="n": arguments are static by name',
    **dict.fromkeys(
        ["donate_argnums", "donate_argnames"],
        "donate=True or leave it out: variables are donated by themselves, arguments are not",
    ),
    **dict.fromkeys(["jit_compile", "experimental_compile"], "nothing: all is compiled by XLA"),
    **dict.fromkeys(
        ["reduce_retracing", "experimental_relax_shapes", "dynamic"],
        "input_signature=[jv.TensorSpec((None, 3))], with None for a size that changes",
    ),
    "device": "with jv.device(...) around the call",
    "out_shardings": "in_shardings, and jv.shard of what is returned",
}
"""Options of `jax.jit`, `tf.function` and `torch.compile`, and what to write in `jv.compile`."""


def unknown_option(name: str, known: Iterable[str]) -> TypeError:
    """Return the error for an option that `jv.compile` has not.

    >>> print(unknown_option("jit_compile", []))
    jv.compile takes no argument 'jit_compile'. Write nothing: all is compiled by XLA.
    """
    hint = f" Write {OPTIONS[name]}." if name in OPTIONS else did_you_mean(name, known)
    return TypeError(f"jv.compile takes no argument {name!r}.{hint}")


def takes(fn: Callable[..., Any], count: int) -> bool:
    """Return whether a function can be called with so many arguments; True if that is unknown.

    >>> takes(lambda x: x, 1), takes(lambda x: x, 2)
    (True, False)
    """
    try:
        inspect.signature(fn).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # of C, without a signature
        return True
    return True


def add_note(error: BaseException, note: str) -> None:
    """Add a note to an error once."""
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


_SHAPE = re.compile(r"\((?:\d+,|\d+(?:, ?\d+)+,?)\)")


def name_shapes(
    error: BaseException,
    variables: Iterable[tuple[Any, tuple[int, ...]]],
    called: Callable[[Any], str] = str,
) -> None:
    """Say in a note which variables, of which shapes, an error about shapes may be about."""
    message = str(error)
    if "shape" not in message or any("Variable" in n for n in getattr(error, "__notes__", ())):
        return
    shown = {shape.replace(",)", ")").replace(" ", "") for shape in _SHAPE.findall(message)}
    named = [
        f"{called(cell)!r} {shape}"
        for cell, shape in variables
        if str(shape).replace(",)", ")").replace(" ", "") in shown
    ]
    if named:
        add_note(error, f"Variables of such shapes: {', '.join(named[:4])}.")


def did_you_mean(name: str, options: Iterable[str]) -> str:
    """Return a sentence, with a space before it, that offers what a name is close to; or nothing.

    Private names are offered for private ones, and no others: tools ask modules for many of these.

    >>> "No optimizer 'adm'." + did_you_mean("adm", ["sgd", "adam"])
    "No optimizer 'adm'. Did you mean 'adam'?"
    >>> did_you_mean("zebra", ["sgd", "adam"])
    ''
    """
    from difflib import get_close_matches

    is_private = name[:1] == "_"
    known = {option.lower(): option for option in options if (option[:1] == "_") is is_private}
    close = get_close_matches(name.lower(), list(known), n=3, cutoff=0.65)
    return f" Did you mean {' or '.join(repr(known[c]) for c in close)}?" if close else ""
