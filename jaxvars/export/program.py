"""A program from a file, as a function of arrays that can be differentiated and mapped.

Rules this file keeps:
- a program's bytes are given to JAX only after its versions were looked at;
- it is differentiated by the gradient that was saved with it: what was not is an error that says
  how to save it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, final

import jax

from jaxvars.checkpoint.checksum import dtype_name
from jaxvars.core.checks import known_here, renumbered
from jaxvars.errors import SavedError
from jaxvars.export.forms import Form, Json, Tensor, describe, from_json, leaves_of
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.typing import Array

Flat: TypeAlias = Callable[..., Sequence[Array]]


@final
class Program:
    """One program of a saved function; an error if it cannot be read, or is another."""

    def __init__(self, name: str, data: Json, blobs: Sequence[bytes], versions: Json) -> None:
        self.name = name
        self.arguments: dict[str, Form] = {
            str(key): from_json(form) for key, form in data["arguments"].items()
        }
        self.outputs: Form = from_json(data["outputs"])
        taken, made = map(_list_tensors, (self.arguments, self.outputs))
        self.results = [tensor.index for tensor in made]  # the number of each array, in order
        self._weak = {tensor.index: tensor.weak for tensor in made}
        open_sizes = [size for form in taken for size in form.shape if isinstance(size, str)]
        # Grows with the number of unknown dimensions: programs are tried in this order.
        self.openness = len(open_sizes), len(set(open_sizes)), sum(form.weak for form in taken)
        self.reads = tuple(map(str, data["reads"]))
        self.writes = tuple(map(str, data["writes"]))
        self.platforms = tuple(map(str, data["platforms"]))
        self.vjp_order = len(blobs) - 1
        self._checks = None if data["checks"] is None else known_here(data["checks"])
        self._no_gradient = data["no_gradient"]
        self._levels = _deserialize(name, data, blobs, versions)
        self._exported = self._levels[0]
        self._check_description()
        self._run = self._differentiable(0)

    def __call__(
        self, variables: dict[str, Array], arguments: Sequence[Array]
    ) -> tuple[list[Array], dict[str, Array], Array | None]:
        """Return the results, new values by path, and a failed check (None without checks)."""
        flat = jax.tree.leaves(({key: variables[key] for key in self.reads}, list(arguments)))
        results, new = jax.tree.unflatten(self._exported.out_tree, self._run(*flat))
        results = [_make_weak(x) if self._weak.get(i) else x for i, x in enumerate(results)]
        failure = new.pop("", None)
        if failure is not None:
            failure = renumbered(failure, self._checks or {})
        return results, new, failure

    def __str__(self) -> str:
        given = ", ".join(f"{key}: {describe(form)}" for key, form in self.arguments.items())
        return f"{self.name}({given}) -> {describe(self.outputs)}"

    def _differentiable(self, level: int) -> Flat:
        """Return a level (program, gradient, ...) with its gradient and a rule for vmap."""
        run = jax.custom_batching.sequential_vmap(_flatten(self._levels[level]))

        @jax.custom_vjp
        def called(*inputs: Array) -> Sequence[Array]:
            return tuple(run(*inputs))

        def forward(*inputs: Array) -> Any:
            if level == self.vjp_order:
                raise SavedError(self._why_no_gradient())
            return called(*inputs), inputs

        def backward(inputs: Sequence[Array], cotangents: Sequence[Array]) -> Any:
            pull = self._differentiable(level + 1)
            found = iter(pull(*inputs, *filter(is_inexact, cotangents)))
            return tuple(next(found) if is_inexact(x) else None for x in inputs)

        called.defvjp(forward, backward)
        return called

    def _why_no_gradient(self) -> str:
        if self.vjp_order:
            return (
                f"{self.name} was saved with gradients of order {self.vjp_order}, and is "
                "differentiated once more. Save it with jv.export.save(..., "
                f"vjp_order={self.vjp_order + 1})."
            )
        reason = self._no_gradient or "vjp_order was 0."
        return f"{self.name} was saved without a gradient: {reason}"

    def _check_description(self) -> None:
        """Raise ValueError unless the program takes and returns what its description says."""
        taken, made = map(_list_tensors, (self.arguments, self.outputs))
        args, kwargs = jax.tree.unflatten(self._exported.in_tree, self._exported.in_avals)
        variables, arguments = args
        results, new = jax.tree.unflatten(self._exported.out_tree, self._exported.out_avals)
        fits = set(variables) == set(self.reads) and set(new) - {""} == set(self.writes)
        if kwargs or not fits or not (_agree(taken, arguments) and _agree(made, results)):
            raise ValueError(f"the program of {self.name} is not the one that is described")
        if ("" in new) != (self._checks is not None):
            raise ValueError(f"the checks of {self.name} are not described")

    def aval(self, path: str) -> Any:
        """Return the shape and dtype of a variable that it reads or assigns."""
        (variables, _), _ = jax.tree.unflatten(self._exported.in_tree, self._exported.in_avals)
        _, new = jax.tree.unflatten(self._exported.out_tree, self._exported.out_avals)
        return variables.get(path, new.get(path))


def _list_tensors(form: Form) -> list[Tensor]:
    return [leaf for leaf in leaves_of(form) if isinstance(leaf, Tensor)]


def _flatten(exported: Any) -> Flat:
    """Return an exported function as one of flat inputs and outputs."""

    def run(*inputs: Array) -> list[Array]:
        args, kwargs = jax.tree.unflatten(exported.in_tree, inputs)
        return jax.tree.leaves(exported.call(*args, **kwargs))

    return run


def _agree(forms: Sequence[Tensor], avals: Sequence[Any]) -> bool:
    by_index = sorted((replace(form, weak=False) for form in forms), key=lambda form: form.index)
    found = [Tensor(i, sizes(a.shape), dtype_name(a.dtype)) for i, a in enumerate(avals)]
    return by_index == found


def _make_weak(value: Array) -> Array:
    kind = {"new_dtype": value.dtype, "weak_type": True, "sharding": None}
    return jax.lax.convert_element_type_p.bind(value, **kind)


def sizes(shape: Sequence[Any]) -> tuple[int | str, ...]:
    """Return a shape with strings in place of unknown dimensions."""
    return tuple(size if isinstance(size, int) else str(size) for size in shape)


def _deserialize(name: str, data: Json, blobs: Sequence[bytes], versions: Json) -> list[Any]:
    from jax import export

    lowest = export.minimum_supported_calling_convention_version
    highest = export.maximum_supported_calling_convention_version
    found = int(data["calling_convention"])
    both = f"it was saved with JAX {versions['jax']}, and this is JAX {jax.__version__}"
    if not lowest <= found <= highest:
        raise SavedError(
            f"{name} has calling convention {found}, and this JAX reads {lowest} to {highest}: "
            f"{both}. Save it again with a JAX of about this one's age."
        )
    try:
        levels: list[Any] = [export.deserialize(bytearray(blob)) for blob in blobs]
        if versions["jax"] != jax.__version__:
            for level in levels:  # JAX would look into it at the first call only
                level.mlir_module()
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0].rstrip(".")
        raise SavedError(
            f"{name} cannot be read by this JAX ({both}): {reason}. JAX reads programs of up to "
            "six months before it, and hardly any of after it: save with the older of the two."
        ) from error
    return levels
