"""A traced function as a program in a file: exported by `jax.export`, and described.

What is exported is a function `(variables, arguments) -> (results, new variables)`: a dict by
path and a list, each time.

Rules this file keeps:
- the gradient that is exported is the one that a tape takes;
- no path of the machine that it was made on is in a program;
- what cannot be exported is refused before anything is written.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.checkpoint.checksum import dtype_name
from jaxvars.compiler.executable import CALLBACK_PRIMITIVES, Executable
from jaxvars.compiler.signature import Itself, Signature, Traced, tree_of
from jaxvars.core.cells import STORE
from jaxvars.core.checks import FAILURE, sites_in
from jaxvars.core.staging import Staged
from jaxvars.errors import SavedError
from jaxvars.export.effects import calls_in, run_quietly, without_calls
from jaxvars.export.forms import (
    STATICS,
    Baked,
    Form,
    Json,
    Static,
    Strings,
    Tensor,
    leaves_of,
    to_json,
)
from jaxvars.export.program import sizes
from jaxvars.objects.key_order import in_order
from jaxvars.symbolic.sizes import with_compared_sizes
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tensors.tensor import is_weak
from jaxvars.tracing import jaxprs
from jaxvars.tracing.assigned_read import for_tape
from jaxvars.typing import Array

_HIDING = threading.RLock()
_NO_MESH = jax.sharding.Mesh(np.empty((), object), ())
_REFUSALS = (ValueError, TypeError, NotImplementedError, jax.errors.InconclusiveDimensionOperation)


class Options(NamedTuple):
    """How programs are exported: see `jv.export.save`."""

    platforms: tuple[str, ...] | None
    vjp_order: int | None
    disabled_checks: tuple[Any, ...]


def export_program(
    entry: Executable, binder: Signature, paths: Mapping[int, str], options: Options
) -> tuple[Json, list[bytes]]:
    """Return the description of a program, and the bytes of it, its gradient, and so on."""
    staged = replace(entry._whole, program=without_calls(entry._whole.program))
    _refuse_callbacks(entry.name, staged)
    arguments = describe_arguments(entry, binder)
    outputs = _describe_outputs(staged)
    data = {
        "arguments": {
            name: to_json(form, f"Argument {name!r} of {entry.name}")
            for name, form in arguments.items()
        },
        "outputs": to_json(outputs, f"The result of {entry.name}"),
        "reads": [paths[cell.key] for cell in staged.reads if cell.deliver is None],
        "writes": [paths[cell.key] for cell in staged.writes if cell.deliver is None],
        "checks": sites_in(staged.program) if FAILURE in staged.writes else None,
    }
    specs = [with_compared_sizes(jax.ShapeDtypeStruct(x.shape, x.dtype)) for x in entry._specs]
    program = _Exportable(
        entry.name, _make_program(staged, paths), (_list_states(staged, paths), specs),
        bool(calls_in(entry._whole)),
    )  # fmt: skip
    made = program.export(options)
    gradients, reason = _export_gradients(program, made, options)
    data |= {
        "platforms": list(made.platforms),
        "calling_convention": made.calling_convention_version,
        "no_gradient": reason,
    }
    return data, [_bytes(one, entry.name) for one in (made, *gradients)]


def _bytes(made: Any, name: str) -> bytes:
    try:
        return bytes(made.serialize())
    except (*_REFUSALS, KeyError, OverflowError) as error:  # a dtype that it has no number for
        raise SavedError(f"{name} cannot be written by this JAX: {_first_line(error)}") from error


# ---------------------------------------------------------------- the program
def _make_program(staged: Staged, paths: Mapping[int, str]) -> Callable[..., Any]:
    run = staged.function()

    def program(variables: dict[str, Array], arguments: list[Array]) -> Any:
        inputs = [
            variables[paths[cell.key]] if cell.deliver is None else STORE[cell.key]
            for cell in staged.reads
        ]
        found = zip(run(*inputs, *arguments), staged.program.out_avals, strict=True)
        outputs = [x if hasattr(x, "dtype") else jnp.asarray(x, aval.dtype) for x, aval in found]
        results, written = staged.split(outputs)
        results = results[: len(results) - len(staged.taken)]  # nothing follows
        new = {
            "" if cell is FAILURE else paths[cell.key]: value
            for cell, value in zip(staged.writes, written, strict=True)
        }
        return list(results), new

    return program


def _list_states(staged: Staged, paths: Mapping[int, str]) -> dict[str, Any]:
    cells = [cell for cell in staged.reads if cell.deliver is None]
    return {paths[c.key]: jax.ShapeDtypeStruct(c.aval.shape, c.aval.dtype) for c in cells}


class _Exportable(NamedTuple):
    """A function of arrays, the arguments to export it for, and whether calls were left out."""

    name: str
    run: Callable[..., Any]
    specs: tuple[Any, ...]
    calls: bool

    def export(self, how: Options) -> Any:
        """Export it, or raise SavedError."""
        from jax import export

        options: dict[str, Any] = {
            "platforms": how.platforms,
            "disabled_checks": how.disabled_checks,
        }
        self.run.__name__ = self.run.__qualname__ = re.sub(r"\W+", "_", self.name)
        try:
            with _hide_lines(), jax.set_mesh(_NO_MESH):  # the loading program has another one
                made = export.export(jax.jit(self.run), **options)(*self.specs)
        except _REFUSALS as error:
            raise SavedError(f"{self.name} cannot be exported: {_first_line(error)}") from error
        if made.nr_devices != 1:
            raise SavedError(
                f"{self.name} is a program for {made.nr_devices} devices, because of the shardings "
                "in it; a file holds programs for one. Save a function without them: the "
                "loading program places the variables and the arguments."
            )
        return made

    def gradient(self, made: Any) -> _Exportable:
        """Return the gradient: of flat inputs, and a cotangent for each output that has one."""
        inputs, outputs = (
            [with_compared_sizes(jax.ShapeDtypeStruct(a.shape, a.dtype)) for a in avals]
            for avals in (made.in_avals, made.out_avals)
        )

        def pull(*given: Array) -> list[Array]:
            values, cotangents = given[: len(inputs)], list(given[len(inputs) :])

            def run_active(*active: Array) -> list[Array]:
                new = iter(active)
                merged = [next(new) if is_inexact(x) else x for x in values]
                args, _ = jax.tree.unflatten(made.in_tree, merged)
                return list(filter(is_inexact, jax.tree.leaves(self.run(*args))))

            with for_tape():
                return list(jax.vjp(run_active, *filter(is_inexact, values))[1](cotangents))

        specs = (*inputs, *filter(is_inexact, outputs))
        run = run_quietly(pull) if self.calls else pull  # custom gradients call, too
        return _Exportable(f"The gradient of {self.name}", run, specs, self.calls)


def _export_gradients(
    program: _Exportable, made: Any, options: Options
) -> tuple[list[Any], str | None]:
    """Return the exported gradients, and why there are none."""
    order = options.vjp_order
    if order is None and not all(any(map(is_inexact, x)) for x in (made.in_avals, made.out_avals)):
        return [], "it takes or returns no floating point numbers."
    found: list[Any] = []
    try:
        for _ in range(1 if order is None else order):
            program = program.gradient(made)
            made = program.export(options)
            found.append(made)
    except SavedError as error:
        if order is not None:
            raise SavedError(f"{error} Save it with vjp_order={len(found)}.") from error.__cause__
        return [], str(error)
    return found, None


@contextmanager
def _hide_lines() -> Generator[None]:
    """Export without the names of files and lines, one thread after the other."""
    option = "jax_traceback_in_locations_limit"
    with _HIDING:  # the setting is one of the process
        before = getattr(jax.config, option)
        jax.config.update(option, 0)
        try:
            yield
        finally:
            jax.config.update(option, before)


def _first_line(error: Exception) -> str:
    return f"{(str(error).splitlines() or [''])[0].rstrip('.:')[:300]}."


def _refuse_callbacks(name: str, staged: Staged) -> None:
    found = sorted(CALLBACK_PRIMITIVES & jaxprs.primitives_in(staged.program))
    if found:
        raise SavedError(
            f"{name} computes with what it calls back into Python for ({', '.join(found)}), and no "
            "file holds Python. Compute it with jnp or tf, or save a function that takes the "
            "result as an argument, and call Python before."
        )


# ---------------------------------------------------------------- its arguments and results
def describe_arguments(entry: Executable, binder: Signature) -> dict[str, Form]:
    """Return the form of each argument, less those that are objects."""
    numbers = iter(range(len(entry._specs)))
    forms = [_describe_leaf(leaf, numbers) for leaf in entry.key.leaves]
    args, kwargs = in_order(jax.tree.unflatten(tree_of(entry.key), forms), entry.key.order)
    bound = binder._signature.bind(*args, **kwargs).arguments
    return {name: form for name, form in bound.items() if not _is_baked(form)}


def describe_function(binder: Signature, programs: Sequence[Json]) -> Json:
    """Describe the parameters of a function that its programs take."""
    taken = programs[0]["arguments"]
    kept = [p for name, p in binder._signature.parameters.items() if name in taken]
    described: list[Json] = []
    plain = True  # a parameter with a default has none without one after it
    for parameter in reversed(kept):
        data: Json = {"name": parameter.name, "kind": parameter.kind.name}
        default, variadic = parameter.default, parameter.kind.name.startswith("VAR_")
        if plain and (default is None or type(default) in STATICS):
            data["default"] = default
        elif not variadic and parameter.kind is not parameter.KEYWORD_ONLY:
            plain = False
        described.append(data)
    names = [name for name in binder.static if name in taken]
    return {"name": binder.name, "parameters": described[::-1], "static": sorted(names)}


def _describe_leaf(leaf: Any, numbers: Any) -> Form:
    if isinstance(leaf, Traced):
        return Tensor(next(numbers), sizes(leaf.shape), dtype_name(leaf.dtype), leaf.weak)
    if isinstance(leaf, Itself) or leaf.kind not in STATICS:
        return Baked(leaf.kind.__name__)
    return Static(leaf.value)


def _is_baked(form: Form) -> bool:
    try:
        baked = [isinstance(leaf, Baked) for leaf in leaves_of(form)]
    except TypeError:  # a pytree of a class: `to_json` refuses it
        return False
    return bool(baked) and all(baked)


def _describe_outputs(staged: Staged) -> Form:
    results, _ = staged.split(staged.program.out_avals)
    tensors = [
        Tensor(i, sizes(aval.shape), dtype_name(aval.dtype), is_weak(aval))
        for i, aval in enumerate(results)
    ]
    form = jax.tree.map(_mark_constant, staged.rebuild(tensors))
    return in_order(form, staged.rebuild.order)


def _mark_constant(leaf: Any) -> Any:
    if type(leaf) in STATICS:
        return Static(leaf)
    is_strings = isinstance(leaf, np.ndarray) and leaf.dtype == object
    if is_strings and all(isinstance(word, bytes) for word in leaf.flat):
        return Strings(tuple(leaf.flat), leaf.shape)
    return leaf
