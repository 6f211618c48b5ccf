r"""Names of other libraries as paths of variables: a table of rules.

    rules = [
        (r"encoder\.(\d+)", r"params/layers_\1", "Linear"),
        (r"head\.scale", "params/scale", jnp.transpose),
        (r"head\.version", None),
    ]

A rule is `(pattern, replacement)` or `(pattern, replacement, transform)`: a name that the regular
expression matches as a whole is replaced, and its array transformed. The first rule that matches
counts, and a name that none matches stays. None as the replacement drops the name. The name of a
layer of PyTorch as the transform is short for a rule for each of its arrays: see `LAYERS`.

Rule this file keeps: what is wrong with names is collected, for the caller to raise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxvars.errors import StateError

Rules: TypeAlias = Sequence[Sequence[Any]]


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
    "BatchNorm": {**_SCALED, **_STATISTICS, "num_batches_tracked": None},
}
"""For each layer of PyTorch: its arrays, and what flax calls them, with a transform."""


class _Simple(NamedTuple):
    rule: int  # index of the rule that it comes from
    pattern: re.Pattern[str]
    path: str | None
    transform: Callable[[Any], Any] | None


def rename(
    values: Iterable[tuple[str, Any]], rules: Rules, *, partial: bool = False
) -> tuple[dict[str, tuple[str, Any]], list[str]]:
    """Return names and values by path, and what is wrong; with `partial` a rule may be idle."""
    table = _table(rules)
    made: dict[str, tuple[str, Any]] = {}
    used: set[int] = set()
    problems: list[str] = []
    for name, value in values:
        path, new = name, value
        if found := next(((s, m) for s in table if (m := s.pattern.fullmatch(name))), None):
            simple, match = found
            used.add(simple.rule)
            if simple.path is None:
                continue
            try:
                path = match.expand(simple.path)
                new = simple.transform(value) if simple.transform else value
            except Exception as error:  # noqa: BLE001 - whatever the caller's transform raises
                problems.append(f"{name}: rule {simple.rule}: {type(error).__name__}: {error}")
        if path in made:
            problems.append(f"{path}: it is given twice, as {made[path][0]!r} and {name!r}")
        made[path] = name, new
    for index, (pattern, path, *_) in enumerate(rules):
        if not (index in used or partial or path is None):
            problems.append(f"{pattern}: this rule matches no name")
    return made, problems


def _table(rules: Rules) -> list[_Simple]:
    table: list[_Simple] = []
    for index, rule in enumerate(rules):
        try:
            table += _expand(index, *rule)
        except (TypeError, ValueError, re.error) as error:
            raise StateError(
                f"Rule {index}, {rule!r}, is not (pattern, replacement) or (pattern, replacement, "
                f"transform), with a function or one of {sorted(LAYERS)} as transform: {error}"
            ) from None
    return table


def _expand(index: int, pattern: str, path: str | None, how: Any = None) -> Iterator[_Simple]:
    """Yield a rule as simple ones: that of a layer for each of its arrays."""
    if not isinstance(path, str | None) or not (how is None or callable(how) or how in LAYERS):
        raise TypeError(f"{how if isinstance(path, str | None) else path!r} is none of these")
    if how is None or callable(how):
        yield _Simple(index, re.compile(pattern), path, how)
        return
    for name, known in LAYERS[how].items():
        last, transform = known or (None, None)
        start = path or ""
        if name in _STATISTICS:  # linen has them in a collection
            start = re.sub(r"(^|/)params(?=/|$)", r"\1batch_stats", start)
        whole = re.compile(rf"(?:{pattern})\.{name}" if pattern else name)
        to = None if path is None or last is None else f"{start}/{last}".lstrip("/")
        yield _Simple(index, whole, to, transform)
