"""One step of an optimizer as mathematics: old values in, new values out.

    new = run_step(recipe, values, gradients, learning_rate, accept, extra)

Rules this file keeps:
- in this order, as Keras does: unscale, accumulate, clip, decay the weights, transform, average;
- nothing here knows of variables; dtypes stay as they are;
- an average is negative zero until its variable is first updated, and stands for the value until
  then, whatever is assigned meanwhile: no later average is that (`_average`);
- a sum of gradients counts in the window of calls in which it was begun (`WINDOW`): what a variable
  has left behind that took no part in the update at the end of a window is not part of another. A
  window's number is above that of all sums that there are, also after a restore that has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp

from jaxvars.optimizers.checks import Options
from jaxvars.optimizers.objective import NoObjectiveError, Objective, ask_for_objective
from jaxvars.optimizers.rules import rate_of, wide
from jaxvars.tensors.quick_jit import QuickJit, are_small
from jaxvars.tracing import context
from jaxvars.typing import Array

Values: TypeAlias = dict[str, Any]

AVERAGE = "average"
SUM = "gradient_accumulator"
WINDOW = "window"


_OPTIONS = tuple(Options.__annotations__.keys() - {"name"})


@final
class Recipe:
    """How to update some variables.

    Attributes:
        leaves: for each array of the transformation's state, the variable it belongs to, or None,
            and what it is called.
        decays: the weight decay of the variables that have one, by name.
        is_joined: whether one array is made of all variables, in the order of their names.
        is_searching: whether the transformation is known to call the `Objective`.
    """

    def __init__(
        self, transformation: Any, options: object, params: Values, decays: Mapping[str, float]
    ) -> None:
        self._init, self._update = transformation.init, transformation.update
        self._options = {name: getattr(options, name) for name in _OPTIONS}
        self._decays = decays
        found, self._form = _find_paths(self._init, params)
        shared = dict(_find_shared_paths(self._init))
        self.leaves = [_find_owner(path, params, shared.keys()) for path, _ in found]
        self.is_joined = any(
            name is None and shape != shared.get(path, ())
            for (path, shape), (name, _) in zip(found, self.leaves, strict=True)
        )
        is_small = are_small(x.shape for x in params.values())
        self.jitted = QuickJit(self.step, jax.jit(self.step), lambda *_: is_small)
        self._quick_init = QuickJit(self._init, self._init, lambda *_: is_small)
        self.is_searching = False

    def initial(self, params: Values) -> list[Array]:
        """Return the arrays of the first state."""
        values = params.values()
        is_placed = any(context.is_tracer(x) or x.committed for x in values)
        init = self._init if is_placed else self._quick_init  # one program is in one place
        return [jnp.asarray(x) for x in jax.tree.leaves(init(params))]

    @jax.named_scope("optimizer")  # which profiles and pictures of programs show
    def step(self, carry: Values, grads: Values, rate: Array, accept: Array, extra: Any) -> Values:
        """Return the new values, or the old ones if `accept` is False."""
        if accept is None:
            return self._accumulate(carry, grads, rate, extra)
        return jax.lax.cond(
            accept, lambda: self._accumulate(carry, grads, rate, extra), lambda: carry
        )

    def _accumulate(self, carry: Values, grads: Values, rate: Array, extra: Any) -> Values:
        """Update by the mean of the gradients of some calls, on the last of them."""
        params, factor = carry["params"], self._options["loss_scale_factor"]
        grads = {name: g.astype(wide(params[name])) for name, g in grads.items()}
        if factor is not None:
            grads = {name: g / factor for name, g in grads.items()}
        calls = self._options["gradient_accumulation_steps"]
        if calls is None:
            return self._update_all(carry, grads, rate, extra)
        last, begun = carry["windows"], carry[WINDOW]
        is_open = carry["accumulated"] > 0  # not where a restore in a window has made it 0
        window = jnp.where(is_open, last, jnp.stack([last, *begun.values()]).max() + 1)
        sums = {
            name: jnp.where(is_open & (begun[name] == window), old, 0) + grads[name]
            for name, old in carry[SUM].items()
        }
        count = (carry["accumulated"] + 1) % calls

        def update() -> Values:
            new = self._update_all(carry, jax.tree.map(lambda x: x / calls, sums), rate, extra)
            return {**new, SUM: jax.tree.map(jnp.zeros_like, carry[SUM])}

        kept = {name: x.astype(carry[SUM][name].dtype) for name, x in sums.items()}
        new = jax.lax.cond(count == 0, update, lambda: {**carry, SUM: kept})
        numbers = begun | dict.fromkeys(sums, window)
        return {**new, "accumulated": count, "windows": window, WINDOW: numbers}

    def _update_all(self, carry: Values, grads: Values, rate: Array, extra: Any) -> Values:
        grads = self._clip(grads)
        params = self._decay(carry["params"], rate)
        step = carry["iterations"]
        given = extra if rate is None else {"learning_rate": rate, "step": step, **extra}
        if "value" in extra:  # for transformations that go by the loss
            mine = {name: g.astype(params[name].dtype) for name, g in grads.items()}
            given = {"grad": mine, "value_fn": ask_for_objective, **given}
        updates, arrays = self.apply_rule(carry["state"], grads, params, given)
        params = {n: (p + updates[n]).astype(p.dtype) for n, p in params.items()}
        new = {**carry, "params": params, "state": arrays, "iterations": step + 1}
        return self._average(new, step, carry["params"]) if self._options["use_ema"] else new

    def apply_rule(
        self, state: Sequence[Array], grads: Values, params: Values, given: Mapping[str, Any]
    ) -> tuple[Values, list[Array]]:
        """Return the updates by the rule alone, and the arrays of its new state."""
        updates, made = self._update(grads, self._form.unflatten(state), params, **given)
        pairs = zip(self._form.flatten_up_to(made), state, strict=True)
        return updates, [x.astype(old.dtype) for x, old in pairs]

    def _clip(self, grads: Values) -> Values:
        limit, each, total = (
            self._options[k] for k in ("clipvalue", "clipnorm", "global_clipnorm")
        )
        if limit is not None:
            return {name: jnp.clip(g, -limit, limit) for name, g in grads.items()}
        if each is not None:
            return {name: g * jnp.minimum(1, each / _norm([g])).astype(g.dtype)
                    for name, g in grads.items()}  # fmt: skip
        if total is not None:
            scale = jnp.minimum(1, total / _norm(grads.values()))
            return {name: g * scale.astype(g.dtype) for name, g in grads.items()}
        return grads

    def _decay(self, params: Values, rate: Array) -> Values:
        def decayed(name: str, p: Array) -> Array:
            by = self._decays[name] * jnp.asarray(rate_of(rate, name), wide(p))
            return (p - p * by).astype(p.dtype)

        return {n: decayed(n, p) if n in self._decays else p for n, p in params.items()}

    def _average(self, carry: Values, step: Array, before: Values) -> Values:
        momentum = jnp.where(step == 0, 0.0, self._options["ema_momentum"])
        params = carry["params"]

        def mixed(average: Array, param: Array, old: Array) -> Array:
            part = momentum.astype(wide(param))
            new = part * jnp.where(_is_negative_zero(average), old, average) + (1 - part) * param
            return jnp.where(new == 0, 0, new).astype(average.dtype)  # never negative zero

        averages = jax.tree.map(mixed, carry[AVERAGE], params, before)
        every = self._options["ema_overwrite_frequency"]
        if every is not None:
            due = (step + 1) % every == 0
            params = jax.tree.map(
                lambda a, p: jnp.where(due, a.astype(p.dtype), p), averages, params
            )
        return {**carry, AVERAGE: averages, "params": params}


def no_average(value: Array) -> Array:
    """Return what the average of a variable is until it is first updated."""
    return -no_sum(value)


def no_sum(value: Array) -> Array:
    """Return the sum of no gradients of a variable."""
    return jnp.zeros_like(value, wide(value))


def has_begun(average: Array) -> bool:
    """Return whether the variable of an average has been updated."""
    return not _is_negative_zero(average).all()


def exchange(value: Array, average: Array) -> tuple[Array, Array]:
    """Return what a variable and its average are after an exchange, which another one undoes."""
    is_there, kept = ~_is_negative_zero(average).all(), value
    if not context.is_tracer(is_there):  # nothing is copied
        if not is_there:
            return value, average
        kept = jnp.zeros_like(value) if _is_negative_zero(value).all() else value
        return average.astype(value.dtype), kept.astype(average.dtype)
    kept = jnp.where(_is_negative_zero(value).all(), 0, value).astype(average.dtype)
    new = jnp.where(is_there, average.astype(value.dtype), value)
    return new, jnp.where(is_there, kept, average)


def _is_negative_zero(x: Array) -> Array:
    return (x == 0) & jnp.signbit(x.real)


def run_step(
    recipe: Recipe, carry: Values, grads: Values, rate: Array, accept: Array, extra: Any
) -> Values:
    """Return the new values; compile the step unless it is being traced, or calls functions."""
    rest = {k: x for k, x in extra.items() if not isinstance(x, Objective)}
    given = (carry, grads, rate, accept)
    open_ = any(context.is_tracer(x) or callable(x) for x in jax.tree.leaves((given, rest)))
    if not (open_ or recipe.is_searching):
        try:
            return recipe.jitted(*given, rest)
        except NoObjectiveError:
            if len(rest) == len(extra):
                raise
            recipe.is_searching = True
    return recipe.step(*given, extra)


def _norm(arrays: Any) -> Array:
    return jnp.sqrt(sum(jnp.sum(jnp.square(jnp.abs(x.astype(wide(x))))) for x in arrays))


def _find_paths(init: Callable[[Any], Any], params: Mapping[str, Any]) -> tuple[list[Any], Any]:
    found, form = jax.tree_util.tree_flatten_with_path(jax.eval_shape(init, params))
    return [(path, leaf.shape) for path, leaf in found], form


def _find_shared_paths(init: Callable[[Any], Any]) -> list[Any]:
    """Return the paths to what is in the state whatever the variables are."""
    try:
        return _find_paths(init, {})[0]
    except (LookupError, ValueError, TypeError, AttributeError):  # wants variables: all paths tell
        return []


def _find_owner(path: Any, params: Mapping[str, Any], shared: Set[Any]) -> tuple[str | None, str]:
    """Return the variable that a part of the state belongs to, and the rest of its path."""
    names = [getattr(key, "key", None) for key in path]
    at = [i for i, name in enumerate(names) if name in params] if path not in shared else []
    rest = path[: at[-1]] + path[at[-1] + 1 :] if at else path
    return (names[at[-1]] if at else None), jax.tree_util.keystr(rest, simple=True, separator="/")
