"""Programs in a file, with their variables: saved once, loaded without their Python source.

    images = jv.TensorSpec((None, 28, 28))
    jv.export.save(model, "model.jaxvars", signatures={"__call__": (images,)})

    loaded = jv.export.load("model.jaxvars")     # in another process, without the class
    y = loaded(x)

What is saved are compiled functions as they are passed to XLA (StableHLO, by `jax.export`), for
unknown dimensions and several platforms, and the variables that they read and assign. A saved
training step trains: it updates the loaded variables, its optimizer's and its generator's with
them, all of them or none. A tape around a loaded function has gradients by its arguments and by the
variables; so it can be part of another model, and be saved again. `jax.vmap` of one runs it for an
example at a time; of forward-mode derivatives (`jax.jvp`, `ForwardAccumulator`) it has none.

Rules this file keeps:
- nothing is written before everything has been exported;
- nothing in a file is Python: no pickle, no source.

A file is an uncompressed zip archive; `export/files.py` says what is in it. `numpy.load` reads its
variables, `jax.export.deserialize` its programs: functions of a dict of variables by path and a
list of arrays, which return a list of arrays and a dict of new values.

Every member is compared with its SHA-256 when it is loaded. That finds what happened to a file by
accident; `load(path, digest=...)` with what `save` returned finds any other file, too. A program
is run by XLA with all that XLA may do: load only files from people you trust.

JAX reads programs of up to six months before it, and up to three weeks after it; a file says with
which it was made.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from jaxvars.checkpoint.checksum import Entry, decode, encode
from jaxvars.checkpoint.disk import PathLike
from jaxvars.compiler.executable import cells_of
from jaxvars.compiler.signature import name_of
from jaxvars.core.cells import Cell, trainable_flag
from jaxvars.core.frames import LOCAL, is_traced
from jaxvars.core.variable import Variable
from jaxvars.errors import SavedError, warn_user
from jaxvars.export.effects import calls_in
from jaxvars.export.files import array_of, check_sound, read, to_npy, write
from jaxvars.export.forms import Json
from jaxvars.export.functions import Found, programs_of
from jaxvars.export.loaded import Loaded, Parts, SavedFunction
from jaxvars.export.serialize import Options, describe_function, export_program
from jaxvars.modules.module import Module
from jaxvars.modules.state import unique

__all__ = ["Loaded", "SavedFunction", "load", "save"]


_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


def save(
    obj: Any,
    path: PathLike,
    signatures: Any = None,
    *,
    platforms: str | Sequence[str] | None = None,
    vjp_order: int | None = None,
    disabled_checks: Sequence[Any] = (),
) -> str:
    """Write compiled functions, and the variables that they use, to a file.

    Reads the variables, all at one moment; changes none. What was at the path is replaced when all
    is written.

    Args:
        obj: a Module, or a method of one, whose variables are all saved, under their paths; or a
            function, of which the variables are saved that it uses, under their names. What
            `load` returned can be saved again.
        path: where to; a name like "model.jaxvars".
        signatures: what to save. None: each compiled method (`__call__`, and those without an
            underscore) for its `input_signature`, or for all that it was called with. Else a dict
            from the name of a method to its arguments: a tuple by position, a dict by name, a list
            of several of them, or `fn.trace(...)` of any function. Without a dict, it is meant for
            `__call__`. Of the programs of one function whose dtypes are nearest to those of the
            arguments, the one with the fewest unknown dimensions runs. An argument is a
            `TensorSpec` or an array in place of an array (a size of None is open: on the first axis
            the same for all arguments, the batch; relations between others are written as
            `jax.export.symbolic_shape`), or a bool, number, string or None that is static. Of
            unknown dimensions nothing may be asked whose answer is not the same for all of them:
            that is refused (but for `isinstance`, `is` and a size as a string, which cannot be
            seen).
        platforms: "cpu", "cuda", "rocm", "tpu": what the programs are for; what JAX uses now when
            None. It need not be there.
        vjp_order: how often the programs can be differentiated, 0 for not. None: once, if a program
            can be.
        disabled_checks: `jax.export.DisabledSafetyCheck`s, for a program with operations that JAX
            does not promise to read later, like custom kernels.

    Returns:
        The checksum of the file, to be passed to `load` as `digest`.

    Raises:
        SavedError: when there is nothing to save, or something that a file cannot hold: the result
            of a call back into Python, a program for several devices, an argument of a custom
            class. Nothing is written then.
        OSError: when the file cannot be written.

    What a program calls in Python for its effect alone, as `jv.print`, is left out; one warning
    names it. Checks of `jv.debugging` are saved, but for those in a JAX transform.

    An argument that is an object, like a Module, is part of the program, and the loaded function
    does not take it. So `signatures={"step": step.trace(model, optimizer, x, y)}` is loaded as
    `loaded.step(x, y)`.

    Example:
        >>> import tempfile
        >>> import jaxvars as jv
        >>> class Scale(jv.Module):
        ...     def __init__(self):
        ...         self.factor = jv.Variable(2.0)
        ...
        ...     @jv.compile
        ...     def __call__(self, x):
        ...         return self.factor * x
        >>> folder = tempfile.TemporaryDirectory()
        >>> digest = save(Scale(), f"{folder.name}/scale.jaxvars", (jv.TensorSpec((None,)),))
        >>> loaded = load(f"{folder.name}/scale.jaxvars", digest=digest)
        >>> loaded.signatures["__call__"]
        __call__(x: float32[batch]) -> float32[batch]
        >>> with jv.GradientTape() as tape:
        ...     y = loaded([1.0, 2.0])
        >>> float(tape.gradient(y, loaded.factor))
        3.0
        >>> folder.cleanup()

    Differs from TensorFlow:
        One file, not a folder. Functions that were never traced, and have no input signature, are
        named when they are missed. Variables that a function captures are saved with it, in
        whatever object they are. There are no assets.
    """
    if is_traced():
        raise SavedError("Programs are saved outside of compiled functions and JAX transforms.")
    if isinstance(obj, Loaded) and signatures is None:
        return _write(path, obj.parts.manifest, dict(obj.parts.blobs), obj.named_variables)
    options = Options(_check_platforms(platforms), vjp_order, tuple(disabled_checks))
    found = programs_of(obj, signatures)
    owner = getattr(obj, "__self__", obj)
    variables = _list_variables(owner, found)
    paths = {variable._cell.key: name for name, variable in variables.items()}
    blobs: dict[str, bytes] = {}
    functions = {
        name: _describe_function(name, programs, paths, options, blobs)
        for name, programs in found.programs.items()
    }
    name = owner.name if isinstance(owner, Module) else name_of(obj)
    manifest = {"name": name, "functions": functions, "unsaved": found.unsaved}
    _warn_of_calls(found)
    return _write(path, manifest, blobs, variables)


def load(path: PathLike, *, digest: str | None = None) -> Loaded:
    """Read what `save` wrote: variables and functions, without their Python source.

    Args:
        path: of the file.
        digest: the checksum that `save` returned, to be sure that it is that file.

    Returns:
        A `Loaded`: a Module with the variables under their paths, and the functions.

    Raises:
        SavedError: when the file does not exist, is damaged or another one, or when this
            version of jaxvars or JAX cannot read it. Sizes are checked before memory is taken.

    Example:
        >>> import tempfile
        >>> import jaxvars as jv
        >>> total = jv.Variable(0.0, name="total")
        >>> add = jv.compile(lambda x: total.assign_add(x) * 1)
        >>> folder = tempfile.TemporaryDirectory()
        >>> _ = save(add, f"{folder.name}/add.jaxvars", (jv.TensorSpec(()),))
        >>> loaded = load(f"{folder.name}/add.jaxvars")
        >>> [float(loaded(x)) for x in (1.0, 2.0)], float(loaded.total), float(total)
        ([1.0, 3.0], 3.0, 0.0)
        >>> folder.cleanup()
    """
    manifest, members = read(path, digest)
    return check_sound(path, lambda: _load(manifest, members))


def _load(manifest: Json, members: Mapping[str, bytes]) -> Loaded:
    variables = {
        str(path): _load_variable(str(path), described, members)
        for path, described in manifest["variables"].items()
    }
    used = {
        file
        for function in manifest["functions"].values()
        for program in function["programs"]
        for file in program["files"]
    }
    names = ("name", "jax", "functions", "unsaved")
    blobs = {file: data for file, data in members.items() if file in used}
    parts = Parts({name: manifest[name] for name in names}, blobs)
    return Loaded(parts, variables)


def _load_variable(path: str, data: Json, members: Mapping[str, bytes]) -> Variable:
    entry = Entry.from_json(data)
    value = decode(array_of(members[data["file"]], entry), entry)
    trainable, name = data["trainable"], data["name"]
    if not isinstance(trainable, bool) or not isinstance(name, str):
        raise ValueError(f"variable {path!r} is not described")
    wanted = None if entry.dtype.startswith("key<") else entry.dtype
    return Variable(value, trainable=trainable, name=name, dtype=wanted)


# ---------------------------------------------------------------- saving
def _check_platforms(names: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    names = (names,) if isinstance(names, str) else tuple(names)
    if not names or not set(names) <= set(_PLATFORMS):
        raise SavedError(
            f"platforms is some of {', '.join(_PLATFORMS)}, not {', '.join(names) or 'none'}: "
            "a GPU is cuda or rocm."
        )
    return names


def _describe_function(
    name: str, programs: Any, paths: Mapping[int, str], options: Options, blobs: dict[str, bytes]
) -> Json:
    """Describe a function, and add its programs to the members of the file."""
    described: list[Json] = []
    for known in programs:
        data, levels = export_program(known.entry, known.binder, paths, options)
        _refuse_ambiguity(name, data, described, {known.entry.key.settings for known in programs})
        files = [f"programs/{len(blobs) + i}.bin" for i in range(len(levels))]
        blobs.update(zip(files, levels, strict=True))
        described.append(data | {"files": files})
    return describe_function(programs[0].binder, described) | {"programs": described}


def _warn_of_calls(found: Found) -> None:
    """Warn, once, of what the programs do without."""
    calls = {
        known.binder.name: calls_in(known.entry._whole)
        for programs in found.programs.values() for known in programs
    }  # fmt: skip
    without = [f"{name} is saved without {', '.join(left)}" for name, left in calls.items() if left]
    if without:
        warn_user(
            f"{'; '.join(without)}: no file holds Python. What is loaded computes the same; do the "
            "rest around its call, where it is needed.",
            UserWarning,
        )


def _refuse_ambiguity(
    name: str, data: Json, others: Sequence[Json], settings: Collection[int]
) -> None:
    for other in others:
        same = data["arguments"] == other["arguments"]
        if same or data["arguments"].keys() != other["arguments"].keys():
            what = "objects that they were given, which are"
            if len(settings) > 1:
                what = "the settings of JAX (jax.default_matmul_precision, ...) or objects, both"
            raise SavedError(
                f"Two programs of {name} differ in {what} part of the program. Save each under a "
                "separate name, traced for what it is for: "
                'signatures={"one": fn.trace(...), "other": fn.trace(...)}.'
            )


def _list_variables(obj: Any, found: Found) -> dict[str, Variable]:
    """Return all variables of an object, then those that its programs use besides, by path."""
    variables: dict[str, Variable] = {}
    if isinstance(obj, Module):
        variables.update(obj.named_variables)
    known = {variable._cell.key for variable in variables.values()}
    for programs in found.programs.values():
        for program in programs:
            for cell in cells_of(program.entry):
                if cell.key not in known:
                    known.add(cell.key)
                    variables[unique(cell.name, variables)] = _find_owner(cell)
    return variables


def _find_owner(cell: Cell) -> Variable:
    owner = cell.owner()
    if not isinstance(owner, Variable):
        raise SavedError(f"Variable {cell.name!r} is gone: only the program knew of it.")
    return owner


def _write(
    path: PathLike, manifest: Json, blobs: Mapping[str, bytes], variables: Mapping[str, Variable]
) -> str:
    described: dict[str, Json] = {}
    members = dict(blobs)
    values = _snapshot(variables)
    for number, (name, variable) in enumerate(variables.items()):
        file = f"variables/{number}.npy"
        plain, entry = encode(values[name])
        members[file] = to_npy(plain)
        described[name] = entry.to_json() | {
            "file": file,
            "name": variable.name,
            "trainable": trainable_flag(variable._cell),
        }
    # What was loaded keeps the version of the JAX that made its programs.
    kept = {
        key: manifest[key] for key in ("jax", "name", "functions", "unsaved") if key in manifest
    }
    return write(path, kept | {"variables": described}, members)


def _snapshot(variables: Mapping[str, Variable]) -> dict[str, Any]:
    """Return the values of all variables at one moment; no step takes them away."""
    found = LOCAL.eager.take_all([variable._cell for variable in variables.values()])
    values = dict(zip(variables, found, strict=True))
    for path, value in values.items():
        if not getattr(value, "is_fully_addressable", True):
            raise SavedError(
                f"Variable {path!r} has parts in other processes, and one process writes the file. "
                "Let each have all of it before."
            )
    return values


def __dir__() -> list[str]:
    return __all__
