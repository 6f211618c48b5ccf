"""Names of other libraries as paths of variables, by rules: see `interop.from_dict`.

Rule this file keeps: what is wrong with names is collected, for the caller to raise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from jaxvars.errors import StateError

Rules: TypeAlias = Sequence[Sequence[Any]]
_Simple: TypeAlias = tuple[re.Pattern[str], str | None, Callable[[Any], Any] | None]


def _kernel(weight: Any) -> Any:
    return np.moveaxis(weight, (0, 1), (-1, -2))  # (out, in, *sizes) to (*sizes, in, out)


_LINEAR = {"weight": ("kernel", _kernel), "bias": ("bias", None)}
_SCALED = {"weight": ("scale", None), "bias": ("bias", None)}
_STATISTICS = {"running_mean": ("mean", None), "running_var": ("var", None)}
LAYERS: dict[str, dict[str, Any]] = {
    "Linear": _LINEAR,
    "Conv": _LINEAR,
    "Embedding": {"weight": ("embedding", None)},
    "LayerNorm": _SCALED,
    "BatchNorm": {**_SCALED, **_STATISTICS, "num_batches_tracked": (None, None)},
}
"""For each layer of PyTorch: its arrays, and what flax calls them, with a transform."""


def rename(
    values: Iterable[tuple[str, Any]],
    rules: Rules,
    convert: Callable[[Any], Any] = lambda value: value,
    *,
    partial: bool = False,
) -> tuple[dict[str, tuple[str, Any]], list[str]]:
    """Return names and values by path, and what is wrong; with `partial` a rule may be idle."""
    rules = tuple(rules)
    table = [(i, *simple) for i, rule in enumerate(rules) for simple in _expand(rule)]
    idle = {i for i, rule in enumerate(rules) if rule[1] is not None and not partial}
    made: dict[str, tuple[str, Any]] = {}
    problems: list[str] = []
    for name, value in values:
        found = ((*row, m) for row in table if (m := row[1].fullmatch(name)))
        index, _, to, transform, match = next(found, (-1, None, "", None, None))
        idle.discard(index)
        if to is None:
            continue
        try:
            path = match.expand(to) if match else name
            new = transform(convert(value)) if transform else convert(value)
        except Exception as error:  # noqa: BLE001 - whatever a transform or another library raises
            problems.append(f"{name}: {type(error).__name__}: {error}")
            continue
        if path in made:
            problems.append(f"{path}: it is given twice, as {made[path][0]!r} and {name!r}")
        made[path] = name, new
    return made, problems + [f"{rules[i][0]}: this rule matches no name" for i in sorted(idle)]


def _expand(rule: Sequence[Any]) -> list[_Simple]:
    """Return a rule as simple ones: that of a layer is one for each of its arrays."""
    try:
        if isinstance(rule, str):
            raise TypeError("it is a string")
        pattern, path, how = rule if len(rule) == 3 else (*rule, None)
        if how is None or callable(how):
            return [(re.compile(pattern), path, how)]
        linen = re.sub(r"(^|/)params(?=/|$)", r"\1batch_stats", path)
        return [
            (
                re.compile(rf"(?:{pattern})\.{name}" if pattern else name),
                last and f"{linen if name in _STATISTICS else path}/{last}".lstrip("/"),
                transform,
            )
            for name, (last, transform) in LAYERS[how].items()
        ]
    except (TypeError, ValueError, KeyError, re.error) as error:
        raise StateError(
            f"{rule!r} is not a rule, (pattern, replacement) or (pattern, replacement, transform), "
            f"with a function or one of {sorted(LAYERS)} as the transform: {error}"
        ) from None
