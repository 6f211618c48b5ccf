"""`tf.GradientTape` and `tf.autodiff.ForwardAccumulator`: jaxvars's, for Tensors and Variables."""

from __future__ import annotations

from abc import ABC
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self, TypeVar, final, overload

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.autodiff.tape import GradientTape as CoreTape
from jaxvars.autodiff.tape import UnconnectedGradients as UnconnectedGradients
from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.derivatives.forward import ForwardAccumulator as CoreAccumulator
from jaxvars.derivatives.irreversible import LOOP_CURE
from jaxvars.derivatives.sparse_rows import Rows
from jaxvars.errors import TapeError
from jaxvars.objects.traversal import PROXIES, resolve_proxy
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tf import nest
from jaxvars.tf.context.scope import executing_eagerly
from jaxvars.tf.tensors.convert import is_text, to_array
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.slices import IndexedSlices
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor, wrap
from jaxvars.tf.variables.variable import Variable, face_of
from jaxvars.typing import K

T = TypeVar("T", Tensor, Variable)

_LOOP_CURE = (
    "They are kept unless the loop prints, calls Python, or is over a dataset. Where the number of "
    "a dataset's elements is known, write the tape in the tf.function, around the loop alone; "
    "otherwise inside the loop:\n"
    "    for x in dataset:\n"
    "        with tf.GradientTape() as tape:\n"
    "            loss = compute_loss(x)\n"
    "        total += tape.gradient(loss, w)  # begins with tf.zeros_like(w)\n"
    "or bound their number, with tf.autograph.experimental.set_loop_options(maximum_iterations=n)."
)


@contextmanager
def _in_tensorflows_words() -> Generator[None]:
    try:
        yield
    except TapeError as error:
        if not str(error).endswith(LOOP_CURE):
            raise
        raise TapeError(str(error).removesuffix(LOOP_CURE) + _LOOP_CURE) from None


class _Recording(ABC):
    """A tape or an accumulator of the core as a context, which is not entered while it is open."""

    _reopened: ClassVar[str]
    _core: Any
    _is_open = False

    def __enter__(self) -> Self:
        if self._is_open:
            raise ValueError(self._reopened)
        self._core.__enter__()
        self._is_open = True
        return self

    def __exit__(self, *error: Any) -> None:
        if self._is_open:
            self._is_open = False
            self._core.__exit__(*error)


@final
class GradientTape(_Recording):
    """Record what runs, to differentiate it.

    Args:
        persistent: allow more than one gradient to be computed.
        watch_accessed_variables: watch trainable variables as they are read.

    >>> from jaxvars import tf
    >>> x = tf.constant(3.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x)
    <tf.Tensor: shape=(), dtype=float32, numpy=6.0>

    Differs from TensorFlow: gradients of complex numbers are conjugated, as TensorFlow's are, also
    those of cumprod, det, slogdet, sqrtm, reduce_euclidean_norm, squared_difference, xlogy,
    xlog1py, xdivy, multiply_no_nan and unsorted_segment_prod, where TensorFlow's are not.
    """

    _reopened = (
        "Tape is still recording, This can happen if you try to re-enter an already-active tape."
    )

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._core = CoreTape(
            persistent=persistent, watch_accessed_variables=watch_accessed_variables
        )
        self._persistent = persistent
        self._used = False

    def __repr__(self) -> str:
        return repr(self._core)

    def watch(self, tensor: Any) -> None:
        """Watch a tensor, a variable, or a structure of them.

        Raises:
            ValueError: when it is something else.
        """
        for given in nest.flatten(tensor):
            leaves = nest.flatten(given, expand_composites=True)
            for leaf in leaves:
                if not isinstance(leaf, Tensor | Variable) and type(leaf) not in PROXIES:
                    raise ValueError(
                        f"Passed in object {leaf!r} of type '{type(leaf).__name__}', not tf.Tensor "
                        "or tf.Variable."
                    )
                core, is_whole = core_of(leaf), leaf is given
                if not is_text(core) and (is_whole or is_inexact(core)):
                    self._core.watch(core)

    @overload
    def gradient(
        self, target: Any, sources: Tensor | Variable, output_gradients: Any = None,
        unconnected_gradients: Any = ...,
    ) -> Tensor: ...  # fmt: skip
    @overload
    def gradient(
        self, target: Any, sources: list[T], output_gradients: Any = None,
        unconnected_gradients: Any = ...,
    ) -> list[Tensor]: ...  # fmt: skip
    @overload
    def gradient(
        self, target: Any, sources: tuple[T, ...], output_gradients: Any = None,
        unconnected_gradients: Any = ...,
    ) -> tuple[Tensor, ...]: ...  # fmt: skip
    @overload
    def gradient(
        self, target: Any, sources: dict[K, T], output_gradients: Any = None,
        unconnected_gradients: Any = ...,
    ) -> dict[K, Tensor]: ...  # fmt: skip
    @overload
    def gradient(
        self, target: Any, sources: Any, output_gradients: Any = None,
        unconnected_gradients: Any = ...,
    ) -> Any: ...  # fmt: skip
    def gradient(
        self, target: Any, sources: Any, output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:  # fmt: skip
        """Return the gradient of a target with respect to each source; None where there is none.

        That of a tensor or variable which was only looked up in, by `tf.gather`, `tf.gather_nd` or
        `tf.nn.embedding_lookup`, is `tf.IndexedSlices`.

        Raises:
            RuntimeError: when the tape is not persistent and has been used.
        """
        self._use()
        how = check_unconnected(unconnected_gradients)
        whole, parts = nest.flatten(sources), _parts(target)
        flat, targets = [source_of(x) for x in whole], [target_of(x) for x in parts]
        given = None if output_gradients is None else _check_upstream(targets, output_gradients)
        with _in_tensorflows_words():
            found = self._core.row_gradients(targets, flat, given, how)
            pairs = zip(whole, found, strict=True)
            made = [_by_itself(x, parts, given) if g is None else g for x, g in pairs]
            return like_sources(sources, made)

    def _use(self, what: str = "gradient", use_pfor: bool = True) -> None:
        if self._used and not self._persistent:
            raise TapeError(
                "A non-persistent GradientTape can only be used to compute one set of gradients "
                "(or jacobians). Use tf.GradientTape(persistent=True), or one call with all "
                "sources: tape.gradient(loss, [w, b])."
            )
        self._used = True
        if not use_pfor and not self._persistent and executing_eagerly():  # as in TensorFlow
            raise TapeError(
                f"GradientTape must be created with persistent=True to compute the {what} with "
                "eager execution enabled and with experimental_use_pfor set to False."
            )

    def jacobian(
        self, target: Any, sources: Any, unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None, experimental_use_pfor: bool = True,
    ) -> Any:  # fmt: skip
        """Return the derivative of each element of the target by each of each source.

        Args:
            target: a tensor.
            sources: a tensor, variable, or structure of them.
            unconnected_gradients: what a source gets that the target does not depend on.
            parallel_iterations: accepted, and of no effect.
            experimental_use_pfor: of no effect; False needs a persistent tape, eagerly.

        Raises:
            RuntimeError: when the tape is not persistent and has been used.
        """
        self._use("jacobian", experimental_use_pfor)
        flat = [source_of(x) for x in nest.flatten(sources)]
        how = check_unconnected(unconnected_gradients)
        with _in_tensorflows_words():
            return like_sources(sources, self._core.jacobian(target_of(target), flat, how))

    def batch_jacobian(
        self, target: Any, source: Any, unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None, experimental_use_pfor: bool = True,
    ) -> Any:  # fmt: skip
        """Return the derivatives of each example of the target by the same one of the source.

        Args:
            target: a tensor of shape [batch, ...], of rank 2 or more.
            source: a tensor of shape [batch, ...], of rank 2 or more.
            unconnected_gradients: accepted; without a connection the derivatives are zeros.
            parallel_iterations: accepted, and of no effect.
            experimental_use_pfor: of no effect; False needs a persistent tape, eagerly.

        Raises:
            RuntimeError: when the tape is not persistent and has been used.
            ValueError: when ranks or sizes do not fit.
        """
        y, x = target_of(target), source_of(source)
        for shape in (y.shape, x.shape):
            if len(shape) < 2:
                raise ValueError(f"Shape {TensorShape(shape)} must have rank at least 2")
        if y.shape[0] != x.shape[0]:
            raise ValueError(
                f"Need first dimension of target shape ({TensorShape(y.shape)}) and source shape "
                f"({TensorShape(x.shape)}) to match."
            )
        self._use("batch_jacobian", experimental_use_pfor)
        return _wrap_gradient(self._core.batch_jacobian(y, x, UnconnectedGradients.ZERO))

    def watched_variables(self) -> tuple[Variable, ...]:
        """Return the variables that have been watched, in the order of their creation."""
        found = sorted(self._core.watched_variables(), key=lambda variable: variable._cell.key)
        return tuple(map(face_of, found))

    @contextmanager
    def stop_recording(self) -> Generator[None]:
        """Record nothing inside."""
        with self._core.stop_recording():
            yield

    def reset(self) -> None:
        """Forget what was recorded; an open tape goes on recording."""
        self._core.reset()
        self._used = False


def _parts(structure: Any) -> list[Any]:
    """Return the leaves of a structure: of what consists of tensors, its values."""
    flat = nest.flatten(structure)
    return [x.values if isinstance(x, IndexedSlices) else _values_of(x) for x in flat]


def _values_of(x: Any) -> Any:
    return x.flat_values if isinstance(x, RaggedTensor) else x


def core_of(x: Any) -> Any:
    """Return a tensor or variable as jaxvars has it."""
    other = resolve_proxy(x)
    return other if isinstance(other, CoreVariable) else to_array(x)


def target_of(x: Any) -> Any:
    """Return what is differentiated; raise TypeError when it is not a tensor."""
    if x is None:
        raise TypeError(
            "Argument `target` should be a list or nested structure of Tensors, Variables or "
            "CompositeTensors to be differentiated, but received None."
        )
    return _check_source(x, "target")


def source_of(x: Any) -> Any:
    """Return that by which is differentiated; raise TypeError when it is not a tensor."""
    return _check_source(_values_of(x), "sources")


def _check_source(x: Any, what: str) -> Any:
    if not isinstance(x, Tensor | Variable | jax.Array | CoreVariable) and type(x) not in PROXIES:
        raise TypeError(
            f"Argument `{what}` is a tensor, a variable or a structure of them, not {x!r} of type "
            f"{type(x).__name__}: what is computed from it cannot be followed."
        )
    return core_of(x)


def _check_upstream(targets: Sequence[Any], output_gradients: Any) -> list[Any]:
    """Return the gradients of the targets; raise InvalidArgumentError if a shape does not fit."""
    flat = nest.flatten(output_gradients)
    found = [None if g is None else conjugate(to_array(g)) for g in flat]
    for target, g in zip(targets, found, strict=False):
        if g is not None and g.shape != target.shape:
            raise refused(
                f"output_gradients has shape {TensorShape(g.shape)}, but its target has shape "
                f"{TensorShape(target.shape)}"
            )
    return found


def _by_itself(x: Any, targets: Sequence[Any], upstream: Any) -> Any:
    """Return the gradient of what is a target and a source, which no tape need have watched."""
    if not (isinstance(x, Tensor) and x.dtype.is_floating):
        return None
    pairs = zip(targets, upstream or [None] * len(targets), strict=True)
    found = [jnp.ones_like(x._array) if g is None else g for part, g in pairs if part is x]
    return sum(found[1:], start=found[0]) if found else None


def check_unconnected(given: Any) -> UnconnectedGradients:
    """Return what an unconnected source gets; raise ValueError if it is not such a word."""
    try:
        return UnconnectedGradients(given)
    except ValueError:
        raise ValueError(f"Unknown value for unconnected_gradients: {given!r}") from None


def like_sources(sources: Any, found: Sequence[Any]) -> Any:
    """Return gradients in the structure of the sources, as Tensors and `tf.IndexedSlices`."""
    made = [None if g is None else _wrap_gradient(g) for g in found]
    pairs = zip(nest.flatten(sources), made, strict=True)
    return nest.pack_sequence_as(
        sources,
        [
            x.with_flat_values(g) if g is not None and isinstance(x, RaggedTensor) else g
            for x, g in pairs
        ],
    )


def _wrap_gradient(found: Any) -> Any:
    if not isinstance(found, Rows):
        return wrap(conjugate(found))
    shape = Tensor(np.array(found.shape, np.int32))
    return IndexedSlices(Tensor(conjugate(found.values)), Tensor(found.indices), shape)


def conjugate(gradient: Any) -> Any:
    """Return a gradient by TensorFlow's convention made of one by JAX's, or the other way round.

    For JAX, that of a real y by z is dy/da - i dy/db, where z = a + i b; for TensorFlow, it is the
    direction in which y grows, dy/da + i dy/db.
    """
    return jnp.conj(gradient) if gradient.dtype.kind == "c" else gradient


@final
class ForwardAccumulator(_Recording):
    """Record what runs, to differentiate it forward: Jacobian-vector products.

    Args:
        primals: a tensor, variable, or structure of them, to differentiate with respect to.
        tangents: the directions, in the same structure.

    Raises:
        ValueError: when they do not match.

    >>> from jaxvars import tf
    >>> v = tf.Variable([1.0, 2.0])
    >>> with tf.autodiff.ForwardAccumulator(v, tf.constant([1.0, 0.0])) as acc:
    ...     y = v * v
    >>> acc.jvp(y).numpy().tolist()
    [2.0, 0.0]
    """

    _reopened = "Accumulator is already recording."

    def __init__(self, primals: Any, tangents: Any) -> None:
        nest.assert_same_structure(primals, tangents, check_types=False)
        moved = [core_of(x) for x in nest.flatten(primals)]
        given = [to_array(x) for x in nest.flatten(tangents)]
        if len(set(map(id, moved))) < len(moved):
            raise ValueError(
                "ForwardAccumulator was asked to watch one tensor multiple times. Sum its tangents "
                "first: ForwardAccumulator(x, tangent_1 + tangent_2)."
            )
        for x, tangent in zip(moved, given, strict=True):
            if x.dtype != tangent.dtype:
                raise ValueError(f"A tangent is {tangent.dtype}, its primal {x.dtype}.")
        try:
            self._core = CoreAccumulator(moved, given)
        except TapeError as error:
            raise ValueError(str(error)) from None

    def jvp(self, primals: Any, unconnected_gradients: Any = UnconnectedGradients.NONE) -> Any:
        """Return the tangents of tensors; None where they do not depend on the primals.

        Args:
            primals: what was computed: a tensor, or a structure of them.
            unconnected_gradients: "none", or "zero" for zeros in place of None.
        """
        flat = [core_of(x) for x in nest.flatten(primals)]
        found = self._core.jvp(flat, unconnected_gradients=unconnected_gradients)
        return nest.pack_sequence_as(primals, [None if x is None else wrap(x) for x in found])
