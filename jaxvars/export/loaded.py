"""`Loaded`: what comes out of a file: variables, and functions of them.

Rules this file keeps:
- it holds the variables under the paths that they were saved under, and nothing else that
  `walk` could find: the rest is in slots that it does not enter;
- a function keeps the variables alive that it uses, not the Loaded;
- a copy has its own variables and functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, final

import jax

from jaxvars.compiler.decorator import compile as compiled
from jaxvars.compiler.function import Function
from jaxvars.core.checks import report
from jaxvars.core.frames import LOCAL
from jaxvars.core.variable import Variable
from jaxvars.display.strings import did_you_mean
from jaxvars.errors import CompileError, SavedError
from jaxvars.export.forms import CALL, STATICS, Json, Mismatch, fill, fit
from jaxvars.export.program import Program
from jaxvars.modules.module import Module
from jaxvars.objects.key_order import in_order, order_of
from jaxvars.objects.traversal import HIDING
from jaxvars.typing import Array

_KINDS = {str(kind.name): kind for kind in inspect._ParameterKind}


class Parts(NamedTuple):
    """What of a file is not a variable: words of the manifest, and programs by member."""

    manifest: Json
    blobs: Mapping[str, bytes]


@final
class SavedFunction:
    """A function from a file: compiled, and with a gradient.

    Attributes:
        name: what it was saved as.
        programs: what it can be called with: each has `arguments`, `outputs`, `reads`, `writes`,
            `platforms` and `vjp_order`.
    """

    __slots__ = (
        "__function", "__orders", "__ready", "__signature__", "__sorted", "name", "programs",
    )  # fmt: skip

    def __init__(
        self, name: str, words: Json, programs: Sequence[Program], variables: Mapping[str, Variable]
    ) -> None:
        self.name = name
        self.programs = tuple(programs)
        self.__signature__ = _make_signature(words["parameters"])
        # A program for known sizes is tried before one for which they are open.
        self.__sorted = sorted(self.programs, key=lambda program: program.openness)
        self.__orders = {
            jax.tree.structure(fill(program.outputs, program.results)): order_of(program.outputs)
            for program in reversed(self.programs)
        }
        self.__ready: set[Any] = set()  # kinds of arguments that need not be converted
        body = _make_body(self.__signature__, self.__sorted, variables)
        body.__name__ = body.__qualname__ = name
        known = self.__signature__.parameters
        static = [str(x) for x in words["static"] if x in known]
        self.__function = compiled(static_argnames=static)(body)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it: the variables are read and assigned as the function did that was saved.

        Raises:
            CompileError: when the arguments are not those of one of its programs.
            SavedError: when it was not exported for the platform that it is run on.
        """
        try:
            args, kwargs = self._convert(args, kwargs)
            result = self.__function(*args, **kwargs)
        except ValueError as error:
            raise self._translate(error) from error.__cause__
        return in_order(result, self.__orders.get(jax.tree.structure(result)))

    def _convert(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Return arguments with arrays of the dtypes that were saved.

        In the compiled function they have no numbers any more, or others: an int64 is an int32.
        """
        leaves, treedef = jax.tree.flatten((args, kwargs))
        kind = treedef, tuple(str(getattr(leaf, "dtype", None)) for leaf in leaves)
        if kind in self.__ready:
            return args, kwargs
        bound = self.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        program, arrays, is_exact = _choose(self.__sorted, bound.arguments)
        if is_exact and all(hasattr(leaf, "dtype") for leaf in leaves):
            self.__ready.add(kind)
        for name, form in program.arguments.items():
            bound.arguments[name] = fill(form, arrays)
        return bound.args, bound.kwargs

    @property
    def function(self) -> Function[..., Any]:
        """The compiled function: `trace`, `traces`."""
        return self.__function

    def _translate(self, error: ValueError) -> ValueError:
        if "do not match the polymorphic shapes" in str(error):  # of sizes like "2*n"
            return CompileError(f"The sizes of the arguments do not fit together:\n  {self!r}.")
        if "was exported for platforms" not in str(error):
            return error
        names = sorted({platform for program in self.programs for platform in program.platforms})
        return SavedError(
            f"{self.programs[0].name} was saved for {' and '.join(names)}, and is run elsewhere. "
            'Save it with platforms=("cpu", "cuda", "tpu").'
        )

    def __repr__(self) -> str:
        return "\n".join(map(str, self.programs))


def _make_body(
    signature: inspect.Signature, programs: Sequence[Program], variables: Mapping[str, Variable]
) -> Callable[..., Any]:
    used = {path for program in programs for path in (*program.reads, *program.writes)}
    mine = {path: variables[path] for path in sorted(used)}

    def body(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        program, arrays, _ = _choose(programs, bound.arguments)
        values = {path: mine[path].value for path in program.reads}
        results, new, failure = program(values, arrays)
        held = [*values.values(), *arrays]
        LOCAL.frame.write_all([mine[path]._cell for path in new], list(new.values()), held)
        if failure is not None:
            report(failure)
        return fill(program.outputs, results)

    body.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess] - inspect's way
    return body


def _choose(
    programs: Sequence[Program], arguments: Mapping[str, Any]
) -> tuple[Program, list[Array], bool]:
    """Return the program for a call, its arrays, and whether it fits exactly, as it should."""
    reasons: list[str] = []
    for closeness in range(4):
        for program in programs:
            try:
                return program, fit(program.arguments, arguments, closeness), closeness == 0
            except Mismatch as reason:
                reasons.append(f"{program}\n    {reason}")
    known = "\n  ".join(reasons[-len(programs) :])
    raise CompileError(f"The arguments are not those that were saved:\n  {known}.")


def _make_signature(parameters: Any) -> inspect.Signature:
    return inspect.Signature([
        inspect.Parameter(
            data["name"],
            _KINDS[data["kind"]],
            default=_read_default(data),
        )
        for data in parameters
    ])  # fmt: skip


def _read_default(data: Json) -> Any:
    value = data.get("default", inspect.Parameter.empty)
    if value is inspect.Parameter.empty:
        return value
    if value is not None and not isinstance(value, STATICS):
        raise ValueError("no default")
    return value


@final
class Loaded(Module):
    """A saved object, loaded: variables under their paths, and functions under their names.

    Made by `jv.export.load`. `loaded["layers/0/w"]` or `loaded.layers[0].w` is a Variable,
    `loaded.step` a function, and `loaded(x)` calls the object, if it could be called. It is a
    Module: `named_variables`, `trainable_variables`, `summary()` work, and so do
    `jv.State.of(loaded)` and checkpoints. A copy has its own variables.
    """

    __slots__ = ("__functions", "__parts", "__variables")

    def __init__(self, parts: Parts, variables: Mapping[str, Variable]) -> None:
        self.__parts = parts
        self.__variables = dict(variables)
        vars(self).update(variables)  # by path, where walking finds them
        self.__functions = {
            str(name): _make_function(str(name), data, parts, self.__variables)
            for name, data in parts.manifest["functions"].items()
        }

    @property
    def name(self) -> str:
        """What the saved object was called."""
        return self.__parts.manifest["name"]

    @property
    def signatures(self) -> Mapping[str, SavedFunction]:
        """The functions by name; printed, they show what they take and return."""
        return MappingProxyType(self.__functions)

    @property
    def named_variables(self) -> dict[str, Variable]:
        """All variables by path, in the order of the saved object."""
        return dict(self.__variables)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables, in the order of the saved object."""
        return tuple(self.__variables.values())

    @property
    def parts(self) -> Parts:
        """What of the file is not a variable."""
        return self.__parts

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the saved object.

        Raises:
            SavedError: when it was saved without `__call__`.
        """
        if CALL not in self.__functions:
            names = ", ".join(self.__functions)
            raise SavedError(f"{self.name} was saved without __call__. There are: {names}.")
        return self.__functions[CALL](*args, **kwargs)

    def __getitem__(self, path: str) -> Variable:
        """Return a variable by its path."""
        if path not in self.__variables:
            hint = did_you_mean(path, list(self.__variables))
            raise KeyError(f"{self.name} has no variable {path!r}.{hint}")
        return self.__variables[path]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self.__functions:
            return self.__functions[name]
        if name in self.__parts.manifest["unsaved"]:
            raise AttributeError(
                f"{name!r} of {self.name} was not saved: it was not called before, and no "
                f'signature was given for it: signatures={{"{name}": ...}}.'
            )
        return _Branch(self, "", self.__variables)._child(name)

    def __dir__(self) -> list[str]:
        firsts = {path.split("/")[0] for path in self.__variables}
        return sorted({*super().__dir__(), *self.__functions, *firsts})

    def __reduce__(self) -> Any:
        return Loaded, (self.__parts, self.__variables)

    def __rich_repr__(self) -> Iterator[Any]:
        yield from self.__variables.items()
        yield from self.__functions.items()


HIDING.add(Loaded)


def _make_function(
    name: str, data: Json, parts: Parts, variables: Mapping[str, Variable]
) -> SavedFunction:
    programs = [
        Program(
            str(data["name"]), one, [parts.blobs[file] for file in one["files"]], parts.manifest
        )
        for one in data["programs"]
    ]
    for program in programs:
        for path in (*program.reads, *program.writes):
            aval, have = program.aval(path), variables[path]
            if (aval.shape, aval.dtype) != (have.shape, have.dtype):
                raise ValueError(f"variable {path!r} is not the one that {name} was saved with")
    return SavedFunction(name, data, programs, variables)


@final
class _Branch:
    """The variables whose paths begin alike: `loaded.layers`, `loaded.layers[0]`."""

    __slots__ = ("_owner", "_prefix", "_variables")

    def __init__(self, owner: Loaded, prefix: str, variables: Mapping[str, Variable]) -> None:
        self._owner = owner
        self._prefix = prefix
        self._variables = variables

    def _child(self, name: str) -> Any:
        path = f"{self._prefix}{name}"
        if path in self._variables:
            return self._variables[path]
        if any(known.startswith(f"{path}/") for known in self._variables):
            return _Branch(self._owner, f"{path}/", self._variables)
        names = [*self._owner.signatures, *self._variables]
        hint = did_you_mean(path, names)
        raise AttributeError(f"{self._owner.name} has no {path!r}.{hint}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._child(name)

    def __getitem__(self, key: Any) -> Any:
        try:
            return self._child(str(key))
        except AttributeError as error:
            raise KeyError(str(error)) from None

    def __repr__(self) -> str:
        paths = [path for path in self._variables if path.startswith(self._prefix)]
        return f"<{self._prefix.rstrip('/')} of {self._owner.name}: {', '.join(paths)}>"
