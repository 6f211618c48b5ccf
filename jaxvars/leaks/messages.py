"""What a leak is called, and what to write instead."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Sequence
from types import FunctionType
from typing import Any, final

from jaxvars.leaks import statements
from jaxvars.leaks.holders import Place
from jaxvars.modules.module import Module
from jaxvars.tracebacks import line_of_function

_DOOR = "jaxvars.tf."


@final
class Leak:
    """A place that has a tracer.

    Args:
        place: where.
        value: the tracer.
        functions: of the user's, that may have put it there.
        at: where that was, if it is known.
        of: the module of what is compiled: for `tf.function`, one of ours.
    """

    def __init__(
        self,
        place: Place,
        value: Any,
        functions: Sequence[FunctionType],
        at: statements.Line | None,
        of: str = "",
    ) -> None:
        self.place = place
        self.value = value
        self._functions = functions
        self._statement = statements.find(place, functions, at)
        homes = [str(base.__module__) for base in type(place.owner).__mro__]
        self._is_tf = any(home.startswith(_DOOR) for home in [*homes, of])
        self._variable = "tf.Variable" if self._is_tf else "jv.Variable"

    @property
    def key(self) -> tuple[int, str]:
        """Which attribute, global or variable it is."""
        return id(self.place.owner), self.place.name

    @property
    def is_error(self) -> bool:
        """Whether it is an attribute of a Module that the user has assigned.

        Not in programs of TensorFlow, which does it: there it is a warning.
        """
        is_attribute = self.place.kind == "attribute" and isinstance(self.place.owner, Module)
        return is_attribute and not self._is_cached and not self._is_tf

    @property
    def _is_cached(self) -> bool:
        kind, owner, name, *_ = self.place
        declared = inspect.getattr_static(type(owner), name, None)
        return kind == "cache" or isinstance(declared, functools.cached_property)

    # ------------------------------------------------------------ what it is called
    @property
    def _word(self) -> str:
        """What the user calls the name or attribute."""
        kind, owner, name, *_ = self.place
        if self._statement is not None:
            return statements.show(self._statement.base)
        if kind == "attribute":
            is_named = isinstance(owner, type | FunctionType)
            return f"{owner.__qualname__ if is_named else 'self'}.{name}"
        return name

    @property
    def name(self) -> str:
        """What the user calls the place."""
        kind, owner, name, *_ = self.place
        word = self._target
        if kind == "cache":
            return f"what functools keeps of {name} ({line_of_function(owner)})"
        if kind == "default":
            return f"{word}, a default argument of {owner.__qualname__},"
        if kind == "attribute" and not isinstance(owner, type | FunctionType):
            return f"{word} of {type(owner).__name__}"
        if kind == "closure":
            return f"{word}, a variable around {owner.__qualname__},"
        return f"the global {word}" if kind == "global" else word

    @property
    def _target(self) -> str:
        """What the user writes for the place."""
        known = self._statement
        return self._word + self.place.path if known is None else statements.show(known.target)

    # ------------------------------------------------------------ what to do
    def explain_error(self, left: Sequence[Leak]) -> str:
        """Return the message of an error.

        Args:
            left: those whose attributes do not have their old values again.
        """
        targets = ", ".join(leak._target for leak in left)
        again = f"\nThese still hold what was traced, set them again: {targets}." if left else ""
        return (
            f"{self._sentence}: it would stay what it was at the first call. {self._cure()}\n"
            f"What is only passed on within a call is returned, or deleted at its end: "
            f"`del {self._target}`.{again}"
        )

    def explain(self, function: str) -> str:
        """Return what a warning says."""
        if self._is_cached:
            return (
                f"{_upper(self.name)} was computed while {function} was traced, and is a tracer, "
                "which nothing else can use. Compute it before, outside of compiled functions, or "
                "by NumPy."
            )
        when = "That happens" if self._statement is None else "Python does that"
        return (
            f"{_upper(self._sentence)}. {when} once, when the function is traced: each call uses "
            "what was there before, and what is there now is a tracer, which nothing can use. "
            f"{self._cure()}"
        )

    @property
    def _sentence(self) -> str:
        if self._statement is None:
            return f"{self.name} holds a value of a compiled function that has been traced"
        verb = "changed" if self._statement.is_call else "assigned"
        return f"{self.name} is {verb} at {self._statement.line}, in a compiled function"

    def _cure(self) -> str:
        if self._statement is not None and self._statement.is_call:
            return f"Return the value, and do it outside: {self._statement.code}"
        is_tree = bool(self.place.path) and not self._is_entry
        return self._cure_of_tree() if is_tree else self._cure_of_array()

    @property
    def _is_entry(self) -> bool:
        """Whether an entry of a list or dict is assigned."""
        known = self._statement
        return known is not None and known.target is not known.base

    def _cure_of_array(self) -> str:
        known = self._statement
        target = self._target
        cured = known and known.for_variable()
        instead = f"    # not: {known.code}" if known and cured else ""
        return (
            f"Make it a {self._variable}, and assign it:\n"
            f"    {target} = {self._variable}({self._first_value()}){self._comment}\n"
            f"    {cured or f'{target}.assign(value)'}{instead}"
        )

    def _cure_of_tree(self) -> str:
        first = statements.first_value(self.place, self._functions) or "..."
        return (
            "Keep its arrays in Variables, and assign them:\n"
            f"    {self._word} = jv.variables({first}){self._comment}\n"
            f"    {self._word}.assign(new)    # what it is now: {self._word}.value"
        )

    @property
    def _comment(self) -> str:
        """Where a Variable is made."""
        is_object = self.place.kind == "attribute" and not isinstance(self.place.owner, type)
        return "    # in __init__" if is_object else "    # outside"

    def _first_value(self) -> str:
        """Return what a Variable is made of, with the shape and dtype of what is assigned."""
        found = None if self.place.path else statements.first_value(self.place, self._functions)
        if found is not None and found.startswith(_ARRAYS):
            return found
        shape, dtype = self.value.shape, self.value.dtype
        number = _number_like(dtype, found)
        if not shape:
            return repr(number)
        kind = "" if dtype == "float32" else f", {str(dtype)!r}"
        return f"jnp.full({shape}, {number}{kind})" if number else f"jnp.zeros({shape}{kind})"


_ARRAYS = ("jnp.", "np.", "jax.", "tf.")


def _number_like(dtype: Any, code: str | None) -> bool | int | float | complex:
    """Return the number that some code is, or else 0, as a Variable of a dtype is made of it."""
    kinds = {"b": bool, "i": int, "u": int, "c": complex}
    kind = kinds.get(getattr(dtype, "kind", ""), float)
    try:
        return kind(ast.literal_eval(code or "0"))
    except (ValueError, TypeError, SyntaxError):  # it is none
        return kind(0)


def _upper(words: str) -> str:
    return words[:1].upper() + words[1:] if words.startswith(("the ", "what ", "a ")) else words
