"""`ConcreteFunction`: one signature of a compiled function, to look into and to call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, final

import jax

from jaxvars.compiler.executable import Executable, cells_of
from jaxvars.compiler.program import NotTopLevel, Placement, SignatureMismatch
from jaxvars.compiler.signature import Call
from jaxvars.core.cells import Cell
from jaxvars.core.frame import Owner, cells_in
from jaxvars.errors import CompileError, called
from jaxvars.objects.traversal import Holder
from jaxvars.tracing.guards import ask
from jaxvars.views import Viewed

if TYPE_CHECKING:
    from jaxvars.core.variable import Variable
    from jaxvars.graph.graph import Graph

_CLOSED = (type, FunctionType, BuiltinFunctionType, ModuleType)


@final
class ConcreteFunction(Viewed):
    """A compiled function for one signature.

    Made by `fn.trace(...)`.

    Attributes:
        name: what the function is called.
        signature: the arguments' types, as a string.

    >>> import jaxvars as jv
    >>> w = jv.Variable(2.0, name="w")
    >>> f = jv.compile(lambda x: w * x).trace(jv.TensorSpec((3,)))
    >>> [v.name for v in f.captured], f.structured_outputs
    (['w'], ShapeDtypeStruct(shape=(3,), dtype=float32))
    """

    def __init__(
        self, entry: Executable, signature: str, bind: Callable[..., Call],
        paths: Mapping[int, str], specs: Sequence[jax.ShapeDtypeStruct],
    ) -> None:  # fmt: skip
        self._executable, self._specs = entry, specs
        self._bind = bind
        self.name = entry.name
        self.signature = signature
        self._paths = paths

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it.

        Raises:
            TypeError: when the arguments have another signature.
            CompileError: under other settings of JAX than it was traced under, or where a variable
                has another shape.
        """
        ask(f"{self.name} is called")
        call = self._bind(args, kwargs)
        mine, its = self._executable.key, call.key
        if (its.form, its.leaves, its.settings) != (mine.form, mine.leaves, mine.settings):
            self._executable.check_settings()
            raise TypeError(
                f"This concrete function of {self.name} takes ({self.signature}); it was called "
                "with other types. Call the compiled function itself to have them traced."
            )
        try:
            return self._executable.run(call.given())
        except NotTopLevel:
            return self._executable.inline(call.given())
        except SignatureMismatch:
            raise self._explain_mismatch() from None
        except (ValueError, RuntimeError) as error:
            self._executable.explain(error, call.values)
            raise

    def _explain_mismatch(self) -> CompileError:
        """Return the error for a variable that has another shape than it was traced with."""
        self._executable.check_settings()
        shapes = self._executable.staged.shapes.items()
        named = ", ".join(f"{called(cell)!r} of shape {shape}" for cell, shape in shapes)
        return CompileError(
            f"This concrete function of {self.name} was traced with {named}: the shape is another "
            "one now. Call the compiled function itself, which is traced for each shape."
        )

    @property
    def jaxpr(self) -> Any:
        """The program as JAX traced it: the captured variables are its first inputs."""
        return self._executable.staged.program

    @property
    def stablehlo(self) -> str:
        """The program as XLA is given it."""
        return self.lower().as_text()

    def lower(self, move: Callable[[Placement], Placement] = lambda placement: placement) -> Any:
        """Return the program lowered for where its variables are placed: a `jax.stages.Lowered`.

        Args:
            move: returns where they and the arguments are instead.
        """
        return self._executable.lower(self._specs, move)

    @property
    def captured(self) -> tuple[Variable, ...]:
        """The variables it reads, then those it only assigns."""
        owners: list[Any] = [cell.owner() for cell in cells_of(self._executable)]
        return tuple(owner for owner in owners if owner is not None)

    @property
    def capture_paths(self) -> list[str]:
        """The paths of `captured` in what the function refers to, like `model/layers/0/w`."""
        return self._paths_of(variable._cell for variable in self.captured)

    def _paths_of(self, cells: Iterable[Cell]) -> list[str]:
        return [self._paths.get(cell.key, cell.name) for cell in cells]

    @property
    def cost(self) -> dict[str, float]:
        """XLA's estimate for the compiled program: "flops", "bytes accessed" and others."""
        found = self.lower().compile().cost_analysis()
        return dict(found or {})

    @property
    def structured_outputs(self) -> Any:
        """The result, with a shape and dtype in place of each array."""
        staged = self._executable.staged
        results, _ = staged.split(staged.program.out_avals)
        return staged.rebuild([jax.ShapeDtypeStruct(a.shape, a.dtype) for a in results])

    @property
    def graph(self) -> Graph:
        """A picture of the program: shown in a notebook, saved with `graph.save("f.svg")`."""
        from jaxvars.graph.graph import graph_of

        staged = self._executable.staged
        return graph_of(
            staged.program,
            inputs=self._paths_of(staged.reads) + self._argument_names(),
            outputs=self._output_names(),
            variables=len(staged.reads),
            written=len(staged.writes),
            title=self.name,
        )

    def _output_names(self) -> list[str]:
        paths, _ = jax.tree_util.tree_flatten_with_path(self.structured_outputs)
        results = ["result" + jax.tree_util.keystr(path) for path, leaf in paths if _is_spec(leaf)]
        staged = self._executable.staged
        return results + staged.taken + self._paths_of(staged.writes)

    def _argument_names(self) -> list[str]:
        n = len(self._executable.staged.program.in_avals) - len(self._executable.staged.reads)
        return [part.split(":")[0] for part in _split(self.signature, n)]


def _is_spec(leaf: object) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct)


def _split(signature: str, n: int) -> Sequence[str]:
    parts = [part for part in signature.split(", ") if ": " in part]
    return parts if len(parts) == n else [f"argument {i}" for i in range(n)]


# ---------------------------------------------------------------- paths of its variables
def paths_from(fn: Any, arguments: Mapping[str, object], entry: Executable) -> dict[int, str]:
    """Return the paths of the variables that a function's program uses, by their cells' keys.

    Those of its own object begin at it; others with the name of an argument or global, as in
    `model/layers/0/w`. A variable that has a name there is known by the name that it was given.
    Modules are looked through first, and no more when all are found.
    """
    while isinstance(fn, functools.partial):
        fn = fn.func
    found, left = dict[int, str](), set(entry.cell_keys)
    own: dict[str, object] = {"": getattr(fn, "__self__", fn), **arguments}
    names: dict[str, object] = {}
    with suppress(TypeError, ValueError):  # not written in Python, or a cell is still empty
        known = inspect.getclosurevars(inspect.unwrap(fn))
        names = {**known.globals, **known.nonlocals}
    roots = {**own, **names, **own}.items()  # its own are first, and win
    for name, root in sorted(roots, key=lambda item: not isinstance(item[1], Holder | Owner)):
        if not left:
            break
        if not isinstance(root, _CLOSED):
            with suppress(Exception):  # it cannot be walked
                _find_paths(name, root, left, found)
    return found


def _find_paths(name: str, root: object, left: set[int], found: dict[int, str]) -> None:
    for path, cell in cells_in(root):
        if cell.key in left:
            start = (name,) if name not in ("self", "") and path else ()
            found[cell.key] = "/".join((*start, *path)) or cell.name
            left.remove(cell.key)
        if not left:
            return
