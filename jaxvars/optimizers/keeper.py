"""What an optimizer keeps: the slots of variables, and the state that belongs to none.

An optimizer gives its transformation the variables as a dict by name, and keeps each array of
the transformation's state in a Variable: a *slot* of the variable whose name is in the path to
it, like momentum, or *shared*, like a count. They are made when a variable is first met.

Rules this file keeps:
- variables are told apart by identity, and slots are found by walking, under the paths of their
  variables (`Tied`); names decide only where the user says so, and paths do after `build(model)`;
- an optimizer does not own its variables: walking it does not find them, a copy or pickle of
  both together keeps them tied. A copy of the optimizer alone is one for the same variables; a
  pickle of it alone is refused when it meets a variable, as what it has is for none.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.variable import Variable, make_variable
from jaxvars.display.repr import Folded
from jaxvars.errors import CreationError, StateError, called
from jaxvars.modules.absent import advised
from jaxvars.modules.module import Module, all_paths, named_variables
from jaxvars.modules.naming import is_unnamed
from jaxvars.modules.state import unique
from jaxvars.objects.traversal import Tie, Tied, first_of
from jaxvars.optimizers.checks import checked_variables, find_rules, is_list, trainable_in
from jaxvars.optimizers.slots import as_rate, is_lost, sharding_like
from jaxvars.optimizers.step import AVERAGE, SUM, WINDOW, Recipe, no_average, no_sum
from jaxvars.sketches import table_of
from jaxvars.typing import Array

_COUNTERS = ("accumulated", "windows")
_BY_PATTERN = ("learning_rate", "weight_decay")


def _by_pattern(rules: Any) -> bool:
    return isinstance(rules, dict)


@advised("Optimizer")
class Keeper(Module, ABC):
    """The variables that an optimizer makes, and those that it knows."""

    _has_slots = True
    _caches: ClassVar[tuple[str, ...]] = ("_recipes", "_names")

    use_ema: bool
    gradient_accumulation_steps: int | None

    def _start(self, learning_rate: Any) -> None:
        self.iterations = self._make_counter("iterations")
        self.shared: dict[str, Variable] = {}
        self.slots: dict[str, dict[str, Variable]] = {}
        self._make_counters()
        # Under the name that walking shows: reading the attribute still calls the property.
        vars(self)["learning_rate"] = as_rate(learning_rate, f"{self.name}/learning_rate")
        self._ties: dict[str, Tie] = {}
        self._paths: dict[str, list[str]] = {}  # all that a variable has, by name, if several
        self._undecayed: tuple[list[Tie], list[str]] = ([], [])
        self._begin()

    # ------------------------------------------------------------ what it is
    @abstractmethod
    def _transformation(self) -> Any:
        """Return the optax transformation; it is given `learning_rate` and `step`."""

    @property
    def learning_rate(self) -> Any:
        """The Variable with the learning rate, or what the schedule says now; a dict by pattern.

        Assign it at any time: compiled functions see it and need no new trace.
        """
        rate = self._rate
        return {k: self._now(r) for k, r in rate.items()} if _by_pattern(rate) else self._now(rate)

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if not isinstance(self._rate, Variable):
            raise TypeError(
                f"The learning rate of {self.name!r} is part of its transformation or a schedule "
                "and cannot be assigned; make the optimizer with a number. Where it is a dict, "
                "assign one of its Variables: optimizer.learning_rate[pattern].assign(0.1)."
            )
        self._rate.assign(value)

    def build(self, variables: object) -> None:
        """Make the state for some variables now, rather than when they are first updated.

        Args:
            variables: floating-point variables; or an object that holds them, such as a Module:
                its trainable ones are then known by their paths, like "layers/0/kernel", to
                masks, labels and `exclude_from_weight_decay`; a shared one by all that it has to
                this and to rules by pattern.

        Raises:
            ValueError: when the object has no trainable variable, when a variable has a path that
                another one was built with, or has been updated under its name before; when one
                has no rule for its learning rate or weight decay, or different ones by two of its
                paths, or a rule is for no variable.

        >>> import jaxvars as jv
        >>> model = {"kernel": jv.Variable([1.0]), "bias": jv.Variable([1.0])}
        >>> optimizer = jv.optimizers.SGD(1.0, weight_decay=0.5)
        >>> optimizer.exclude_from_weight_decay(var_names=["bias"])
        >>> optimizer.build(model)
        >>> _ = optimizer.apply_gradients([([0.0], v) for v in model.values()])
        >>> model["kernel"].numpy(), model["bias"].numpy()
        (array([0.5], dtype=float32), array([1.], dtype=float32))
        """
        if is_list(variables):
            self._prepare(checked_variables(variables))
            return
        named = trainable_in(variables)
        self._check_paths(named)
        every = named_variables(variables)
        paths = all_paths(variables, every)
        for what in filter(lambda what: _by_pattern(vars(self)[what]), _BY_PATTERN):
            find_rules(vars(self)[what], f"{what} of {self.name!r}", every, paths)
        self._paths |= {path: paths[path] for path in named if len(paths[path]) > 1}
        for path, variable in named.items():
            self._tie(variable, path)
        self._prepare(list(named.values()))

    def get_slot(self, variable: Variable, slot_name: str) -> Variable:
        """Return a variable that was made for one of the variables.

        Args:
            variable: one that has been updated, or built for.
            slot_name: like "momentum".

        Raises:
            StateError: when there is none; it says which there are. When the optimizer was
                unpickled without its variables.
        """
        name = self._name_of(variable)
        if name is None:
            self._refuse_lost(variable)
            raise StateError(
                f"Optimizer {self.name!r} does not know variable {called(variable._cell)!r}: it "
                f"has no state before its first update. It knows {sorted(self.slots)}. "
                "Call optimizer.build([variable]) to make it now."
            )
        if slot_name not in self.slots[name]:
            raise StateError(f"No slot {slot_name!r}; there are {sorted(self.slots[name])}.")
        return self.slots[name][slot_name]

    def _list_slots(self) -> Iterator[tuple[Variable, dict[str, Variable]]]:
        """Yield the variables that there is state for, each with its slots by name."""
        for name, tie in self._ties.items():
            if (variable := tie()) is not None:
                yield variable, self.slots[name]

    def _has_begun(self) -> bool:
        """Return whether it has met a variable, by the options that it had."""
        return bool(vars(self).get("_ties"))

    def exclude_from_weight_decay(
        self, var_list: Sequence[Variable] | None = None, var_names: Sequence[str] | None = None
    ) -> None:
        """Keep weight decay from some variables; call it before the first update.

        Args:
            var_list: these variables.
            var_names: and those in whose names, or paths after `build(model)`, one of these
                regular expressions is found.

        Raises:
            ValueError: when the optimizer has state already; and at the first update, when a
                variable has neither an explicit name nor a path to search in.
        """
        if self._has_begun():
            raise ValueError("Call exclude_from_weight_decay before the first update.")
        self._undecayed = (list(map(Tie, var_list or ())), list(var_names or ()))

    # ------------------------------------------------------------ state
    @property
    def _rate(self) -> Any:
        """The learning rate as it was given: a Variable, a schedule, a dict of such, or None."""
        return vars(self)["learning_rate"]

    def _now(self, rate: Any) -> Any:
        return rate(self.iterations.value) if callable(rate) else rate

    def _read_rate(self, names: Iterable[str]) -> Any:
        """Return the learning rate now: one, or one for each variable by name."""
        rate = self.learning_rate
        if not _by_pattern(rate):
            return rate.value if isinstance(rate, Variable) else rate
        values = {k: r.value if isinstance(r, Variable) else r for k, r in rate.items()}
        return {name: values[self._find_rule(rate, name)] for name in names}

    def _find_rule(self, rules: Mapping[str, Any], name: str) -> str:
        find = first_of([(pattern, pattern) for pattern in rules], lambda *_: True)
        return find(self._paths.get(name, [name]), None)

    def _begin(self) -> None:
        self._recipes: dict[Any, Recipe] = {}
        self._names: dict[int, str] = {}

    def __rich_repr__(self) -> Iterator[Any]:
        """Yield the settings that are set, the variables, and a table of the slots."""
        for name, value in vars(self).items():
            is_unset = value is None or value is False or (name == "shared" and not value)
            if name[0] != "_" and name != "slots" and not is_unset:
                yield name, value
        own: dict[str, dict[str, Variable]] = vars(self).get("slots", {})  # and not those inside
        found = {f"{name}/{kind}": v for name, each in own.items() for kind, v in each.items()}
        if found:
            kinds = ", ".join(dict.fromkeys(kind for each in own.values() for kind in each))
            plural = "" if len(own) == 1 else "s"
            words = f"{kinds} of {len(own)} variable{plural}"
            yield "slots", Folded(words, table_of("", found))

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in self._caches}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    def _make_counter(self, name: str) -> Variable:
        return make_variable(np.zeros((), np.int32), f"{self.name}/{name}", False, None)

    def _make_counters(self) -> None:
        """Make what counts the calls in a window of accumulation, and the windows."""
        for name in _COUNTERS if self.gradient_accumulation_steps else ():
            if self._is_missing(None, name):
                self.shared[name] = self._make_counter(name)

    def _name_of(self, variable: Variable) -> str | None:
        """Return what the optimizer calls a variable that it knows."""
        if not self._names:  # a new one, or a copy
            known = ((tie(), name) for name, tie in self._ties.items())
            self._names = {v._cell.key: name for v, name in known if v is not None}
        return self._names.get(variable._cell.key)

    def _tie(self, variable: Variable, path: str | None = None) -> str:
        name = self._name_of(variable)
        if name is None:
            self._refuse_lost(variable)
            self._is_undecayed(path, variable)  # refused before it is known
            if path is None and any(_by_pattern(vars(self)[what]) for what in _BY_PATTERN):
                raise ValueError(
                    f"The optimizer {self.name!r} has rules by path, and does not know the path of "
                    f"variable {called(variable._cell)!r}: call optimizer.build(model) before "
                    "the first update."
                )
            self._forget([name for name, tie in self._ties.items() if tie() is None])
            name = unique(path or variable.name, self._ties)
            self._names[variable._cell.key] = name
            tie = self._ties[name] = Tie(variable)
            self.slots[Tied(name, tie, is_path=path is not None)] = {}
        return name

    def _refuse_lost(self, variable: Variable) -> None:
        """Raise StateError where the optimizer was unpickled without the variables it is for."""
        if not any(tie.is_lost for tie in (*self._ties.values(), *self._undecayed[0])):
            return
        lost = [name for name, tie in self._ties.items() if tie.is_lost]
        what = f"has slots for {lost}" if lost else "keeps weight decay from some variables"
        raise StateError(
            f"Optimizer {self.name!r} {what}, and was pickled without them: it cannot know whether "
            f"{called(variable._cell)!r} is one of these. Pickle both together:\n"
            "    pickle.dumps((model, optimizer))\n"
            "Or save both in one jv.checkpoint.Checkpoint, which goes by paths."
        )

    def _check_paths(self, named: Mapping[str, Variable]) -> None:
        """Raise ValueError where a variable cannot be known by its path."""
        for path, variable in named.items():
            name, tie = self._name_of(variable), self._ties.get(path)
            other = None if tie is None else tie()
            if name not in (None, path):
                raise ValueError(
                    f"Variable {path!r} was built or updated before as {name!r}, which masks and "
                    "slots go by. Call optimizer.build(model) once, before the first update."
                )
            if other is not None and other is not variable:
                raise ValueError(
                    f"Two variables have the path {path!r}. Build the optimizer with all objects "
                    "at once, optimizer.build({'generator': generator, 'critic': critic}), or make "
                    "one for each."
                )

    def _forget(self, names: Iterable[str]) -> None:
        """Drop the state of variables that are gone."""
        for name in names:
            del self._ties[name], self.slots[name]
            self._paths.pop(name, None)
            self._recipes.clear()

    def _holder(self, name: str | None) -> dict[str, Variable]:
        return self.shared if name is None else self.slots[name]

    def _prepare(self, variables: list[Variable]) -> tuple[list[str], Recipe]:
        """Return the variables' names and how to update them; make the slots that are missing."""
        names = [self._tie(variable) for variable in variables]
        params = dict(zip(names, variables, strict=True))
        self._make_counters()
        recipe = self._find_recipe(params)
        missing = [leaf for leaf in recipe.leaves if self._is_missing(*leaf)]
        if missing:
            values = {name: variable.value for name, variable in params.items()}
            made = zip(recipe.leaves, recipe.initial(values), strict=True)
            for (name, slot), value in made:
                if (name, slot) in missing:
                    self._make(name, slot, value, params)
        for kind, first in self._list_own_slots().items():
            for name, variable in params.items():
                if self._is_missing(name, kind):
                    self._make(name, kind, first(variable.value), params)
        return names, recipe

    def _find_recipe(self, params: dict[str, Variable]) -> Recipe:
        key = tuple((name, v._cell.key) for name, v in params.items())
        if key not in self._recipes:
            decay: Any = vars(self)["weight_decay"]
            decays = {
                name: decay[self._find_rule(decay, name)] if _by_pattern(decay) else decay
                for name, v in params.items()
                if decay is not None and not self._is_undecayed(name, v)
            }
            avals = {n: jax.ShapeDtypeStruct(v.shape, v.dtype) for n, v in params.items()}
            recipe = Recipe(self._transformation(), self, avals, decays)
            if recipe.is_joined and any(self._is_renamed(n, v) for n, v in params.items()):
                raise ValueError(
                    f"The transformation of {self.name!r} joins all variables in the order of "
                    f"their names, and several have one name: {sorted(params)}. Once restored, the "
                    "state of one could be that of another. Make the optimizer again, and call "
                    "optimizer.build(model) before the first update, which uses paths."
                )
            self._recipes[key] = recipe
        return self._recipes[key]

    def _is_undecayed(self, path: str | None, variable: Variable) -> bool:
        ties, patterns = self._undecayed
        if any(tie() is variable for tie in ties):
            return True
        paths = self._paths.get(path or "", [path or ""])
        is_found = any(re.search(p, n) for p in patterns for n in (variable.name, *paths))
        if patterns and not is_found and path is None and is_unnamed(variable._cell):
            raise ValueError(
                f"exclude_from_weight_decay(var_names={patterns}) selects by names, and variable "
                f"{called(variable._cell)!r} of shape {variable.shape} was not given any. Call "
                "optimizer.build(model) before the first update, which tells the paths; or name "
                "the variable."
            )
        return is_found

    def _is_renamed(self, name: str, variable: Variable) -> bool:
        """Return whether a variable has a name that depends on when it was met."""
        is_path = any(
            tied == name and tied.is_path for tied in self.slots if isinstance(tied, Tied)
        )
        return name != variable.name and not is_path

    def _is_missing(self, name: str | None, slot: str) -> bool:
        """Return whether the slot does not exist, or a failed call has left it."""
        found = self._holder(name).get(slot)
        return found is None or is_lost(found._cell)

    def _make(self, name: str | None, slot: str, value: Array, params: dict[str, Variable]) -> None:
        sharding = sharding_like(params.get(name) if name else None, params.values(), value.shape)
        path = "/".join(part for part in (self.name, name, slot) if part)
        try:
            self._holder(name)[slot] = make_variable(value, path, False, sharding)
        except CreationError as error:
            raise CreationError(
                f"{error} Optimizer {self.name!r} keeps it for {sorted(params)}, which it updates "
                "for the first time: have it made outside, before:\n"
                "    optimizer.build(variables)    # or optimizer.build(model)"
            ) from error.__cause__

    def _list_cells(
        self, names: Sequence[str], variables: Sequence[Variable], recipe: Recipe
    ) -> dict[str, Any]:
        """Return the cells of all that a step reads and writes."""
        cells: dict[str, Any] = {
            "params": {name: v._cell for name, v in zip(names, variables, strict=True)},
            "state": [self._holder(name)[slot]._cell for name, slot in recipe.leaves],
            "iterations": self.iterations._cell,
        }
        for kind in self._list_own_slots():
            of = self.slots if kind == WINDOW else names  # a new window has a number of its own
            cells[kind] = {n: self.slots[n][kind]._cell for n in of if kind in self.slots[n]}
        if self.gradient_accumulation_steps:
            cells |= {name: self.shared[name]._cell for name in _COUNTERS}
        return cells

    def _list_own_slots(self) -> dict[str, Callable[[Array], Array]]:
        """Return what makes the slots that are not the transformation's, from a value, by name."""
        averages = {AVERAGE: no_average} if self.use_ema else {}
        sums = {SUM: no_sum, WINDOW: lambda _: jnp.int32(0)}
        return averages | (sums if self.gradient_accumulation_steps else {})
