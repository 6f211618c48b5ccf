"""The paths of Keras's variables: Keras's own, less the name of what they are looked for in.

`Sequential([Dense(3), Dense(2)])` has `dense/kernel` and `dense_1/kernel`: the names of the layers
and of their variables. Names that Keras has counted in this process, `dense_7`, are counted from
the beginning in each layer, as Keras does for the first model of a process. So a model that is made
again, or made of the same layers in another way, has the same paths.

What is used of Keras beyond its public names: `_flatten_layers`, `_inbound_nodes`,
`_outbound_nodes` and `_compile_config` of layers, `_trainable_variables` of optimizers.

Rules this file keeps:
- what a layer holds besides (Variables of jaxvars, for example) is found under its attributes;
- a slot of an optimizer is under the path of its variable, as those of `jv.optimizers`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jaxvars.modules.state import unique
from jaxvars.objects.traversal import Tied, attributes_of, resolve_proxy

_ELSEWHERE = {
    "_compile_config", "_inbound_nodes", "_outbound_nodes", "_trainable_variables",
    "_token_array", "_token_weights",  # of layers of strings of `tf.keras`: no variables
}  # fmt: skip
_BORDER = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])")
_COUNTED_SEED = re.compile(r"^seed_generator_\d+/")


def parts_of(thing: Any) -> Iterator[tuple[str, object]]:
    """Yield what a layer, metric or optimizer of Keras holds, by name."""
    if not hasattr(thing, "variables"):  # a symbolic tensor, which knows all layers before it
        return
    layers = _layers_in(thing)
    inside = {id(v) for layer in layers for v in layer.variables}
    own = [v for v in thing.variables if id(v) not in inside]
    found: dict[str, object] = {}
    if hasattr(thing, "apply_gradients"):
        slots = _slots_of(thing, own)
        yield from slots
        known = {id(v) for _, held in slots for v in held.values()}
        own = [v for v in own if id(v) not in known]
    for variable in own:
        found[unique(_tail(variable.path, thing.name), found)] = variable
    for part in [*layers, *getattr(thing, "metrics", ())]:
        found[unique(_name_of(part), found)] = part
    yield from found.items()
    others = {k: v for k, v in attributes_of(thing).items() if k not in _ELSEWHERE}
    yield from sorted(others.items())


def _layers_in(thing: Any) -> list[Any]:
    if not hasattr(thing, "_flatten_layers"):
        return []
    return list(thing._flatten_layers(recursive=False, include_self=False))


def _name_of(part: Any) -> str:
    """Return the name of a layer or metric, without a number that Keras has counted."""
    base = _BORDER.sub("_", type(part).__name__).lower()
    return base if re.fullmatch(rf"{re.escape(base)}_\d+", part.name) else part.name


def _tail(path: str, name: str) -> str:
    """Return the part of a variable's path that comes after the name of its layer.

    A variable of a generator has a path with the name of the generator, but not of the layer.
    """
    *outer, last = path.split("/")
    is_inside = name in outer
    start = len(outer) - outer[::-1].index(name) if is_inside else len(outer)
    start -= not is_inside and last == "seed_generator_state"
    return _COUNTED_SEED.sub("seed_generator/", "/".join([*outer[start:], last]))


def _slots_of(optimizer: Any, variables: list[Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the slots of an optimizer by the variables that they belong to."""
    owners = {v.path.replace("/", "_"): v for v in optimizer._trainable_variables}
    slots: dict[str, dict[str, Any]] = {}
    for variable in variables:
        starts = [start for start in owners if variable.name.startswith(f"{start}_")]
        if starts:
            start = max(starts, key=len)
            slots.setdefault(start, {})[variable.name[len(start) + 1 :]] = variable
    return [
        (Tied(owners[start].path, lambda v=owners[start]: resolve_proxy(v)), held)
        for start, held in slots.items()
    ]
