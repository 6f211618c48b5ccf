"""What optimizers accept: options, lists of variables, pairs with gradients.

Each error names the variable, and says what would be right.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias, TypedDict, TypeGuard

import jax
from jax.typing import ArrayLike

from jaxvars.core.cells import Cell
from jaxvars.core.variable import Variable
from jaxvars.display.strings import did_you_mean
from jaxvars.errors import (
    DtypeError,
    GradientWarning,
    Phrase,
    ShapeError,
    called,
    shown,
    user_line,
    warn_user,
)
from jaxvars.modules.module import named_variables
from jaxvars.objects.traversal import Holder, first_of, resolve_proxy
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tensors.tensor import to_tensor
from jaxvars.tracing import context
from jaxvars.typing import Array

Pairs: TypeAlias = Iterable[tuple[Any, Variable]]
Rate: TypeAlias = ArrayLike | Callable[[Array], Any] | Mapping[str, Any]
Decay: TypeAlias = float | Mapping[str, float] | None


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
    """What all optimizers take; see `Optimizer`."""

    weight_decay: Decay


def check_options(options: Mapping[str, Any]) -> None:
    """Raise ValueError for options that are out of range."""
    clips = ("clipnorm", "clipvalue", "global_clipnorm")
    given = {name: options[name] for name in clips if options[name] is not None}
    if len(given) > 1 or any(value <= 0 for value in given.values()):
        raise ValueError(f"Gradients are clipped in one way, by a positive number, not by {given}.")
    if not 0 <= options["ema_momentum"] <= 1:
        raise ValueError(f"ema_momentum is between 0 and 1, not {options['ema_momentum']}.")
    for name, least in (("ema_overwrite_frequency", 1), ("gradient_accumulation_steps", 2)):
        count = options[name]
        if count is not None and (not isinstance(count, int) or count < least):
            raise ValueError(f"{name} is an integer of at least {least}, not {count!r}.")


@functools.cache
def list_options(optimizer: type) -> frozenset[str]:
    """Return the names of what is read when a variable is first met, and not at each update."""
    names = {*inspect.signature(optimizer).parameters, *Options.__annotations__}
    return frozenset(names - {"learning_rate", "name", "options", "others"})


def refuse_late_option(kind: str, name: str, value: Any, old: Any) -> NoReturn:
    """Raise ValueError for an option that is set when updates go by the one before."""
    raise ValueError(
        f"{kind}.{name} is set to {value!r} at {user_line()}, after the first update or `build`: "
        f"variables that were met, and compiled functions, would go on with {old!r}. Set it "
        f"before, as in {kind}(..., {name}={value!r}); only the learning rate changes between "
        "updates. To go on with another optimizer, save this one in a jv.checkpoint.Checkpoint, "
        "and restore it into the other."
    )


def refuse_unknown(optimizer: object, name: str) -> None:
    """Raise AttributeError where an attribute is set that there is not."""
    kind = type(optimizer)
    known = {"learning_rate", *list_options(kind)}
    if name[:1] == "_" or name in known:
        return
    here = _OTHER_NAMES.get(name, "").partition("=")[0]
    hint = f" Set optimizer.{here}." if here in known else did_you_mean(name, known)
    said = (
        f"{kind.__name__}.{name} is set at {user_line()}: there is no such attribute, and nothing"
    )
    raise shown(AttributeError(f"{said} would change.{hint}"))


def checked_variables(variables: Iterable[Any]) -> list[Variable]:
    """Return variables as a list; raise where one cannot be trained."""
    is_one = isinstance(resolve_proxy(variables), Variable)
    listed: list[Any] = list(map(resolve_proxy, [variables] if is_one else variables))
    if not listed:
        raise ValueError(
            "The list of variables is empty; a model's are `model.trainable_variables`."
        )
    for variable in listed:
        _check_variable(variable)
    if len({id(variable) for variable in listed}) < len(listed):
        twice = next(called(v._cell) for v in listed if sum(v is w for w in listed) > 1)
        raise ValueError(f"Variable {twice!r} comes twice; add its gradients up.")
    return listed


def checked_loss(loss: Any) -> Any:
    """Return what a function computed as the loss; raise TypeError for None."""
    if loss is None:
        raise TypeError("The function that computes the loss returned None. Does it `return` it?")
    return loss


def refuse_options(optimizer: type, given: Iterable[str]) -> None:
    """Raise TypeError for an option that there is not, with what it is called here."""
    __tracebackhide__ = True  # IPython and pytest leave the frame out
    for name in given:
        known = list(inspect.signature(optimizer).parameters)
        known += OptionsButDecay.__annotations__
        found = _OTHER_NAMES.get(name, "")
        hint = (
            f" Write {found}=." if found.partition("=")[0] in known else did_you_mean(name, known)
        )
        raise shown(TypeError(f"{optimizer.__name__} takes no argument {name!r}.{hint}"))


_OTHER_NAMES = {
    **dict.fromkeys(["lr", "alpha", "eta", "step_size"], "learning_rate"),
    **dict.fromkeys(["wd", "decay"], "weight_decay"),
    "betas": "beta_1= and beta_2",
    **dict.fromkeys(["b1", "beta1"], "beta_1"),
    **dict.fromkeys(["b2", "beta2"], "beta_2"),
    "eps": "epsilon",
    "clip_norm": "clipnorm",
}


def is_list(variables: object) -> TypeGuard[Iterable[Any]]:
    """Return whether these are variables themselves, and not an object that holds some."""
    found = resolve_proxy(variables)
    return isinstance(found, Variable) or (
        isinstance(found, Iterable) and not isinstance(found, Holder | Mapping)
    )


def trainable_in(root: object) -> dict[str, Variable]:
    """Return the variables in an object that can be trained, by path."""
    named = named_variables(root).items()
    found = {p: v for p, v in named if v.trainable and is_inexact(v)}
    if not found:
        raise ValueError(
            f"This {type(root).__name__} has no trainable variable. If its layers make "
            "their variables when they are first called, call it once before."
        )
    return found


def find_rules(
    rules: Mapping[str, Any], what: str, named: Mapping[str, Any], paths: Mapping[str, list[str]]
) -> None:
    """Raise ValueError unless there is one rule for each variable, and each is for one.

    It lists the variables that none fits, those whose paths have rules that differ, and the
    patterns that are first for none.
    """
    if not all(isinstance(pattern, str) for pattern in rules):
        raise ValueError(f"{what}: the keys of the dict are strings, by which it is saved.")
    find = first_of([(p, p) for p in rules], lambda one, other: _agree(rules[one], rules[other]))
    found, problems = set[str](), list[str]()
    for name, variable in named.items():
        try:
            find(paths[name], variable)
        except LookupError as error:
            problems.append(f"variable {name!r} {error}")
        for path in paths[name]:
            with contextlib.suppress(LookupError):
                found.add(find([path], variable))
    idle = rules.keys() - found
    problems += [f"rule {p!r} is the first to fit none of {list(named)}" for p in sorted(idle)]
    if problems:
        raise ValueError(
            f"{what} has a rule for each variable, and the first whose pattern fits its path "
            f'holds; "**" fits the rest. But:\n  ' + "\n  ".join(problems)
        )


def _agree(one: Any, other: Any) -> bool:
    """Return whether two learning rates or decays are the same."""
    both = [x.value if isinstance(x, Variable) else x for x in (one, other)]
    return one is other or (not any(map(context.is_tracer, both)) and bool(both[0] == both[1]))


def _check_variable(variable: Any) -> None:
    if not isinstance(variable, Variable):
        raise TypeError(
            f"An optimizer updates Variables, not {type(variable).__name__}: what is to be trained "
            "is a jv.Variable, from which the loss is computed. Gradients come first: "
            "apply_gradients(zip(gradients, variables))."
        )
    if not is_inexact(variable):
        raise DtypeError(
            f"Variable {called(variable._cell)!r} is {variable.dtype}, which cannot be trained: "
            "make it a float, or leave it out."
        )


def checked_pairs(pairs: Pairs, *more: object) -> list[tuple[Array, Variable]]:
    """Return the pairs that have a gradient; warn of the others, and refuse what is not pairs."""
    if more:
        raise TypeError(
            "apply_gradients takes one argument, pairs of a gradient and its variable. Write "
            "apply_gradients(zip(gradients, variables))."
        )
    listed = list(pairs)
    if not listed:
        raise ValueError(
            "apply_gradients was given no pairs. An iterator, like zip(...), can be used once."
        )
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in listed):
        raise TypeError(
            "apply_gradients takes pairs of a gradient and its variable. Write "
            "apply_gradients(zip(gradients, variables)), or of one [(gradient, variable)]."
        )
    variables = checked_variables([variable for _, variable in listed])
    missing = [v for (gradient, _), v in zip(listed, variables, strict=True) if gradient is None]
    if len(missing) == len(listed):
        frozen = [called(v._cell) for v in variables if not v.trainable]
        names = [called(v._cell) for v in missing]
        raise ValueError(
            f"No gradient for any variable, of {names}: all are None. Was the loss computed "
            "inside `with jv.GradientTape()` from these variables? `tape.explain(loss, variable)` "
            "says where the path ends."
            f"{f' Not trainable, so not watched: {frozen}.' * bool(frozen)}"
        )
    if missing:
        warn_missing(missing, "`tape.explain(loss, variable)` says why.")
    return [
        (_to_array(g, v), v) for (g, _), v in zip(listed, variables, strict=True) if g is not None
    ]


def warn_missing(variables: Sequence[Variable], why: str) -> None:
    """Warn of variables that have no gradient, and say why."""
    names = [called(v._cell) for v in variables]
    warn_user(
        f"There are no gradients for the variables {names}, which keep their values. {why}",
        GradientWarning,
    )


def _to_array(gradient: Any, variable: Variable) -> Array:
    what = Phrase("the gradient of variable {!r}", variable._cell)
    value = gradient if context.is_tracer(gradient) else to_tensor(gradient, what=what)
    if value.shape != variable.shape:
        raise ShapeError(
            f"The gradient of variable {called(variable._cell)!r} has shape {value.shape}, but the "
            f"variable has shape {variable.shape}. Are gradients and variables in the same order?"
        )
    return value


def same_shapes(cells: Sequence[Cell], update: Callable[[], Any]) -> Any:
    """Return what an update gives; raise ShapeError if slots are of another shape than a value.

    Only a variable whose values may have several shapes can have come to that.
    """
    opened = [cell for cell in cells if cell.is_open]
    if not opened:
        return update()
    before = [cell.aval.shape for cell in cells]
    try:
        new = update()
        if [x.shape for x in jax.tree.leaves(new)] == before:
            return new
        why = None
    except (TypeError, ValueError) as error:
        why = error
    raise ShapeError(
        f"The optimizer was made for other shapes than variable {called(opened[0])!r} has at "
        f"{user_line()}, {opened[0].aval.shape}, or its gradient has another one. Make a new "
        "optimizer when the shape of a variable has changed."
    ) from why
