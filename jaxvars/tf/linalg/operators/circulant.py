"""Circulant linear operators, which Fourier transforms make diagonal.

Rules this file keeps:
- a matrix of depth 2 or 3 acts on images or volumes, row by row as one vector.
"""

from __future__ import annotations

import math
from typing import Any, final

import jax.numpy as jnp
import numpy as np

from jaxvars.tf import debugging
from jaxvars.tf.attributes import getter
from jaxvars.tf.linalg.operators.declare import accept_hints, array_of, imply, parameter, register
from jaxvars.tf.linalg.operators.diagonal import OfNumbers
from jaxvars.tf.linalg.operators.operator import LinearOperator
from jaxvars.tf.tensors.dtypes import as_dtype, complex64
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array

_ARGS = """

    Args:
        spectrum: the eigenvalues: what the Fourier transform makes of the first column, of shape
            [..., {}].
        input_output_dtype: the type of what it is applied to, and gives; complex64.
        is_self_adjoint: whether it equals its adjoint; with a real spectrum it does.
        is_square: it is.

    Raises:
        ValueError: when the hints cannot hold.
    """


class CirculantOperator(OfNumbers):
    """What Fourier transforms of so many axes make diagonal."""

    _depth: int
    _SINGULAR = "Operator was singular."
    _NOT_POSITIVE = "Not positive definite:  Real part of spectrum was not all positive."
    _NOT_SELF_ADJOINT = "Not self-adjoint:  The spectrum contained imaginary part."

    @accept_hints(is_square=True, name=None)
    def __init__(self, spectrum: Any, input_output_dtype: Any = complex64, **hints: Any) -> None:
        self._spectrum = parameter(spectrum)
        if len(self._spectrum.shape) < self.block_depth:
            raise ValueError(
                f"Argument spectrum must have at least {self.block_depth} dimensions.  Found: "
                f"{self._spectrum!s}"
            )
        if not self._spectrum.dtype.is_complex:
            message = "A real spectrum always corresponds to a self-adjoint operator."
            imply(hints, "is_self_adjoint", message)
        imply(hints, "is_square", "Only square circulant operators currently supported.")
        super().__init__(as_dtype(input_output_dtype), **hints)
        self._input_output_dtype = self.dtype

    block_depth = getter("_depth", "Over how many axes it is circulant.")
    spectrum = getter("_spectrum", "The eigenvalues.")

    @property
    def block_shape(self) -> TensorShape:
        """The sizes of those axes."""
        return self._spectrum.shape[-self.block_depth :]

    def block_shape_tensor(self) -> Tensor:
        """Return `block_shape` as a tensor."""
        return Tensor(np.asarray(self._blocks(), np.int32))

    def convolution_kernel(self, name: str = "convolution_kernel") -> Tensor:
        """Return the first column: with what it convolves."""
        return Tensor(self._own_type(jnp.fft.ifftn(self._complex(), axes=self._axes())))

    def assert_hermitian_spectrum(self, name: str = "assert_hermitian_spectrum") -> None:
        """Raise InvalidArgumentError if the first column is not real."""
        kernel = jnp.fft.ifftn(self._complex(), axes=self._axes())
        limit = 5 * np.finfo(kernel.dtype).eps * math.sqrt(math.prod(self._blocks()))
        part = Tensor(jnp.abs(kernel.imag))
        debugging.assert_less_equal(
            part, Tensor(jnp.asarray(limit, part.dtype)), message="Spectrum was not Hermitian"
        )

    def _numbers(self) -> Array:
        """Return the spectrum."""
        return array_of(self._spectrum)

    def _of_numbers(self, numbers: Array, **hints: Any) -> LinearOperator:
        """Return the operator of another spectrum."""
        return type(self)(Tensor(numbers), self.dtype, **hints)

    def _hints(self) -> dict[str, Any]:
        return {**super()._hints(), "name": self.name}

    def _blocks(self) -> list[int]:
        return list(map(int, self.block_shape))

    def _axes(self) -> tuple[int, ...]:
        return tuple(range(-self.block_depth, 0))

    def _complex(self) -> Array:
        spectrum = self._numbers()
        wide = spectrum.dtype in (np.float64, np.complex128)
        return spectrum.astype(np.complex128 if wide else np.complex64)

    def _own_type(self, x: Array) -> Array:
        dtype = self.dtype
        return (x if dtype.is_complex else jnp.real(x)).astype(dtype.dtype)

    def _shape(self) -> Any:
        sizes = self._spectrum.shape.as_list()
        count = math.prod(sizes[-self.block_depth :])
        return (*sizes[: -self.block_depth], count, count)

    def _filter(self, x: Array, spectrum: Array) -> Array:
        """Return what a spectrum makes of the columns of matrices."""
        blocks = self._blocks()
        rows = jnp.swapaxes(x, -1, -2)
        images = rows.reshape(*rows.shape[:-1], *blocks).astype(spectrum.dtype)
        columns = jnp.expand_dims(spectrum, -self.block_depth - 1)
        made = jnp.fft.ifftn(columns * jnp.fft.fftn(images, axes=self._axes()), axes=self._axes())
        made = made.reshape(*made.shape[: -self.block_depth], math.prod(blocks))
        return self._own_type(jnp.swapaxes(made, -1, -2))

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        spectrum = self._complex()
        return self._filter(x, jnp.conj(spectrum) if adjoint else spectrum)

    def _solve(self, rhs: Array, adjoint: bool = False) -> Array:
        spectrum = self._complex()
        return self._filter(rhs, 1 / (jnp.conj(spectrum) if adjoint else spectrum))

    def _determinant(self) -> Array:
        return self._own_type(jnp.prod(self._complex(), self._axes()))

    def _log_abs_determinant(self) -> Array:
        return jnp.sum(jnp.log(jnp.abs(self._complex())), self._axes()).astype(self.dtype.dtype)

    def _trace(self) -> Array:
        return self._own_type(jnp.sum(self._complex(), self._axes()))

    def _diag_part(self) -> Array:
        return jnp.broadcast_to(self._trace()[..., None] / self.sizes[-1], self.sizes[:-1])

    def _eigvals(self) -> Array:
        return self._numbers().reshape(self.sizes[:-1])

    def _cond(self) -> Array:
        sizes = jnp.abs(self._complex())
        return jnp.max(sizes, self._axes()) / jnp.min(sizes, self._axes())


@final
@register
class LinearOperatorCirculant(CirculantOperator):
    __doc__ = "A matrix whose columns are the first one, turned around." + _ARGS.format("n")
    _depth = 1


@final
@register
class LinearOperatorCirculant2D(CirculantOperator):
    __doc__ = "A matrix that convolves images, around their edges." + _ARGS.format("n0, n1")
    _depth = 2


@final
@register
class LinearOperatorCirculant3D(CirculantOperator):
    __doc__ = "A matrix that convolves volumes, around their edges." + _ARGS.format("n0, n1, n2")
    _depth = 3
