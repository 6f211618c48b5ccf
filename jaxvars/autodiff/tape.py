"""`GradientTape` and its relatives: differentiate what was recorded.

    with jv.GradientTape() as tape:
        loss = jnp.mean((x @ w - y) ** 2)
    grad = tape.gradient(loss, w)

A tape opens a `Recorder` on the current trace and a `Record` listens. For a gradient,
it replays the operations between sources and target through `jax.vjp`: all derivatives are
JAX's own. Values inside the `with` are concrete, ordinary Python control flow works.

Rules this file keeps:
- a read of a variable is a source; an assign is not differentiated (as in TensorFlow), unless the
  tape is told to: what is read after it starts again. The gradient is the sum over the reads;
- no connection is None (or zeros on request), never silently zeros;
- run eagerly, a replay is compiled as a whole: of new operations at once, so that all its calls
  round alike; of operations that were differentiated before from the second time on.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, final, overload

import jax

from jaxvars.autodiff import rules
from jaxvars.autodiff.replay import Program, Question, can_be_compiled
from jaxvars.autodiff.reverse import add_up, answer, check_cotangents, make_zeros, vjp
from jaxvars.autodiff.tape_base import TapeBase, flatten
from jaxvars.core.variable import Variable
from jaxvars.errors import TapeError
from jaxvars.objects.key_order import ordered_like
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tracing import context
from jaxvars.tracing.guards import ask
from jaxvars.typing import A, Array, K, PyTree, Value


class UnconnectedGradients(enum.Enum):
    """What the gradient of an unconnected source is."""

    NONE = "none"
    ZERO = "zero"


@final
class GradientTape(TapeBase):
    """Record operations, and differentiate them in reverse.

    Trainable variables are watched as soon as they are read; other values with `watch`.
    The tape itself reads no state and changes no variable.

    Args:
        persistent: allow more than one gradient; the recorded values are then kept until the
            tape is gone.
        watch_accessed_variables: watch trainable variables automatically.
        everything: watch all floats that anything is computed from, so that each of them may be a
            source without having been watched.
        through_assigns: follow what is assigned to a variable to where it is read again, as
            `jax.grad` of the pure function does: simulations, unrolled optimizers, losses that a
            model keeps. A variable is then a source as it was before the first assign.

    Example:
        >>> w = Variable(3.0)
        >>> with GradientTape() as tape:
        ...     y = w * w
        >>> tape.gradient(y, w)
        Array(6., dtype=float32)
        >>> position, speed = Variable(0.0), Variable(2.0)
        >>> with GradientTape(through_assigns=True) as tape:
        ...     for _ in range(3):
        ...         _ = position.assign_add(speed * 0.5)
        >>> tape.gradient(position, speed)
        Array(1.5, dtype=float32)

    Differs from TensorFlow: operations are JAX's primitives, so any JAX code is recorded;
    gradients of complex values follow JAX's convention. Where the rule of a `jax.custom_vjp` is
    not its derivative, as in a straight-through estimator, second derivatives are those of the
    rule's code, as in JAX; in a compiled function so are those, by a tape around it, of whatever a
    tape in it has watched.

    Source: Griewank and Walther, Evaluating Derivatives, 2008, chapter 3 (reverse mode).
    """

    def __init__(
        self,
        persistent: bool = False,
        watch_accessed_variables: bool = True,
        *,
        everything: bool = False,
        through_assigns: bool = False,
    ) -> None:
        super().__init__(
            watch_accessed_variables=watch_accessed_variables,
            reverse=True,
            everything=everything,
            through_assigns=through_assigns,
        )
        self._persistent = persistent
        self._used = False

    def watch(self, tensor: PyTree) -> None:
        """Follow what is computed from an array, a variable, or each of a pytree of them.

        An array is watched, and not those equal to it: an argument of a compiled function, or of a
        loop's or branch's function when compiled, is another array than the one that was passed.

        Args:
            tensor: to be watched before it is computed with.

        Raises:
            TapeError: for a Python number or NumPy array, which cannot be followed; and in the
                body of a staged loop or branch that the tape is around.

        >>> import jax.numpy as jnp
        >>> x = jnp.asarray(2.0)
        >>> with GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x**3
        >>> float(tape.gradient(y, x))
        12.0
        """
        self._refuse_inside("tape.watch")
        self._watch(tensor)

    def watched_variables(self) -> tuple[Variable, ...]:
        """Return the variables watched so far, in the order in which they were first seen."""
        return tuple(self._variables.values())

    def stop_recording(self) -> Any:
        """Return a context in which nothing is recorded.

        >>> w = Variable(3.0)
        >>> with GradientTape() as tape:
        ...     y = w * w
        ...     with tape.stop_recording():
        ...         norm = w * 100.0
        >>> tape.gradient(norm, w, unconnected_gradients="zero")
        Array(0., dtype=float32)

        Raises:
            TapeError: in the body of a staged loop or branch that the tape is around.
        """
        self._refuse_inside("tape.stop_recording")
        return self._record.pause()

    def reset(self) -> None:
        """Forget everything recorded and watched; an open tape goes on recording."""
        self._clear()
        self._used = False

    @overload
    def gradient(
        self, target: PyTree, sources: Array, output_gradients: PyTree = None,
        unconnected_gradients: UnconnectedGradients | str = ...,
    ) -> Array: ...  # fmt: skip
    @overload
    def gradient(
        self, target: PyTree, sources: list[A], output_gradients: PyTree = None,
        unconnected_gradients: UnconnectedGradients | str = ...,
    ) -> list[Array]: ...  # fmt: skip
    @overload
    def gradient(
        self, target: PyTree, sources: tuple[A, ...], output_gradients: PyTree = None,
        unconnected_gradients: UnconnectedGradients | str = ...,
    ) -> tuple[Array, ...]: ...  # fmt: skip
    @overload
    def gradient(
        self, target: PyTree, sources: dict[K, A], output_gradients: PyTree = None,
        unconnected_gradients: UnconnectedGradients | str = ...,
    ) -> dict[K, Array]: ...  # fmt: skip
    @overload
    def gradient(
        self, target: PyTree, sources: PyTree, output_gradients: PyTree = None,
        unconnected_gradients: UnconnectedGradients | str = ...,
    ) -> Any: ...  # fmt: skip
    @context.restoring()
    def gradient(
        self,
        target: PyTree,
        sources: PyTree,
        output_gradients: PyTree = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """Return the gradient of the sum of the targets with respect to each source.

        Args:
            target: an array, or a pytree of arrays.
            sources: a variable, a watched or computed array, or a pytree of them.
            output_gradients: what each target's gradient is multiplied with, of its shape;
                ones when None.
            unconnected_gradients: "none" or "zero": what a source gets that no target
                depends on.

        Returns:
            A pytree like `sources`.

        Raises:
            TapeError: at the second call, unless the tape is persistent; or for a target
                that is not an array.

        Warns:
            GradientWarning: when all gradients are None, with the reason for the first source.
        """
        leaves, treedef = flatten(sources)
        how = UnconnectedGradients(unconnected_gradients)
        found = self._find_gradients(target, leaves, output_gradients, how)
        if self._notes is not None and leaves and all(x is None for x in found):
            self._notes.warn_of_none(self, target, leaves)
        return ordered_like(sources, jax.tree.unflatten(treedef, found))

    @context.restoring()
    def row_gradients(
        self,
        target: PyTree,
        sources: Sequence[Any],
        output_gradients: PyTree = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        stops: Sequence[Any] = (),
    ) -> list[Any]:
        """Return gradients as `gradient` does; that of a table that was only looked up in as Rows.

        It does not warn when all are None.

        Args:
            target: an array, or a pytree of arrays.
            sources: variables, watched or computed arrays.
            output_gradients: what each target's gradient is multiplied with.
            unconnected_gradients: "none" or "zero".
            stops: variables and arrays that count as constants, unless they are sources.

        Raises:
            TapeError: as `gradient`.
        """
        how = UnconnectedGradients(unconnected_gradients)
        return rules.VERBS["row_gradients"](self, target, sources, output_gradients, how, stops)

    def _find_gradients(
        self,
        target: PyTree,
        sources: Sequence[Any],
        output_gradients: Any,
        unconnected: UnconnectedGradients,
        stops: Sequence[Any] = (),
        *,
        by: GradientRule | None = None,
        add: Callable[[Sequence[Any]], Any] = add_up,
    ) -> list[Any]:
        """Return the gradients of sources.

        Args:
            target: as `gradient` takes it.
            sources: a list of them.
            output_gradients: as `gradient` takes them.
            unconnected: what a source gets that no target depends on.
            stops: what counts as constant.
            by: what may give gradients of another kind.
            add: returns the sum of one or more gradients.
        """
        self._use()
        targets = [self._target_value(t) for t in flatten(target)[0]]
        with self._aside():
            values = Sources(self, sources)
            pairs = zip(targets, check_cotangents(targets, output_gradients), strict=True)
            active = [(t, c) for t, c in pairs if t is not None and is_inexact(t)]
            constants = [value for stop in stops for value in self._values_of(stop)]
            query = GradientQuery(self, [t for t, _ in active], [c for _, c in active], constants)
            grads = values.gather(query.answer(values.unique, by), add)
            if self._notes is not None:
                self._notes.warn_of_gaps(self, sources, targets, values.unique, grads)
            if unconnected is UnconnectedGradients.ZERO:
                pairs = zip(sources, grads, strict=True)
                grads = [make_zeros(x) if grad is None else grad for x, grad in pairs]
        return grads

    @context.restoring()
    def jacobian(
        self,
        target: PyTree,
        sources: PyTree,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        **_: Any,
    ) -> Any:
        """Return the derivative of each element of a target by each element of the sources.

        Args:
            target: an array.
            sources: a variable, a watched or computed array, or a pytree of them.
            unconnected_gradients: "none" or "zero".

        Returns:
            A pytree like `sources` of arrays of shape `target.shape + source.shape`.

        Raises:
            TapeError: as `gradient`.

        >>> w = Variable([1.0, 2.0])
        >>> with GradientTape() as tape:
        ...     y = w * w
        >>> tape.jacobian(y, w).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
        """
        how = UnconnectedGradients(unconnected_gradients)
        return rules.VERBS["jacobian"](self, target, sources, how)

    @context.restoring()
    def batch_jacobian(
        self,
        target: PyTree,
        source: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        **_: Any,
    ) -> Any:
        """Return the Jacobian of each example, where `target[i]` depends on `source[i]` only.

        Args:
            target: an array of shape [batch, ...].
            source: a watched or computed array, or a variable, of shape [batch, ...].
            unconnected_gradients: "none" or "zero".

        Returns:
            An array of shape `[batch, *target.shape[1:], *source.shape[1:]]`.

        Raises:
            TapeError: when the batch sizes differ, and as `gradient`.

        >>> import jax.numpy as jnp
        >>> x = jnp.asarray([[1.0, 2.0], [3.0, 4.0]])
        >>> with GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> tape.batch_jacobian(y, x).tolist()
        [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
        """
        how = UnconnectedGradients(unconnected_gradients)
        return rules.VERBS["batch_jacobian"](self, target, source, how)

    def explain(self, target: PyTree, source: Any) -> str:
        """Say whether a target depends on a source on this tape, and if not, why not.

        Does not count as a use of the tape.

        Args:
            target: a computed array, or a variable.
            source: a variable, or an array.

        >>> w = Variable(1.0, name="w", trainable=False)
        >>> with GradientTape() as tape:
        ...     y = w * 2.0
        >>> print(tape.explain(y, w))
        Variable 'w' is not trainable, so it is not watched by itself: call tape.watch(w) first.
        """
        return rules.VERBS["explain"](self, target, source)

    # ------------------------------------------------------------ parts
    def _use(self) -> None:
        ask("A gradient is requested")
        if self._used and not self._persistent:
            raise TapeError(
                "A non-persistent GradientTape can only be used once, to compute one set of "
                "gradients (or Jacobians). Use jv.GradientTape(persistent=True), or one call "
                "with all sources: tape.gradient(loss, [w, b])."
            )
        self._used = True

    @contextmanager
    def _aside(self) -> Generator[None]:
        """Compute without recording it here, unless a persistent tape is still open."""
        if not self._open or self._persistent:
            yield
        else:
            with self._record.pause():
                yield

    def _make_program(
        self, sources: Sequence[Array], targets: Sequence[Value], stops: Sequence[Array] = ()
    ) -> Program:
        again = bool(self._open) and not self._record.paused  # the replay itself is recorded
        return self._record.make_program(sources, targets, replay_loops=again, stops=stops)

    def _make_question(self, *values: Sequence[Array], by: GradientRule | None) -> Question | None:
        """Return what is asked of the record; None if its answer is not kept."""
        nodes = self._record.nodes
        if context.current() is not context.EVAL or any(node.again for node in nodes):
            return None
        options = by, self.through_assigns
        return Question(nodes, values, options) if can_be_compiled(nodes) else None


@final
class GradientQuery:
    """Which gradients are requested: of what, multiplied with what, and what counts as constant."""

    def __init__(
        self,
        tape: GradientTape,
        targets: list[Value],
        cotangents: list[Array | None],
        stops: Sequence[Array],
    ) -> None:
        self._tape = tape
        self.targets = targets
        self.cotangents = cotangents
        self._stops = stops

    def answer(self, sources: Sequence[Array], by: GradientRule | None = None) -> list[Any]:
        """Return the gradient of each source, by a rule if that has an answer."""
        question = self._tape._make_question(sources, self.targets, self._stops, by=by)
        known = question and answer(question, sources, self.cotangents)
        if known is not None:
            return list(known)
        program = self._tape._make_program(sources, self.targets, self._stops)
        found = by and by(self, program, sources)
        return found or list(vjp(program, sources, self.cotangents, question))


GradientRule: TypeAlias = Callable[[GradientQuery, Program, Sequence[Array]], list[Any] | None]


@final
class Sources:
    """The known values that sources stand for, each once, and their gradients put together."""

    def __init__(self, tape: TapeBase, sources: Sequence[Any]) -> None:
        self._values = [tape._values_of(source) for source in sources]
        by_id = {id(x): x for values in self._values for x in values}
        self.unique = list(by_id.values())
        self._index = {key: i for i, key in enumerate(by_id)}

    def gather(
        self, found: Sequence[Any], add: Callable[[Sequence[Any]], Any] = add_up
    ) -> list[Any]:
        """Return a gradient for each source: the sum over its values, None if there is none."""
        parts = [[found[self._index[id(x)]] for x in values] for values in self._values]
        known = [[g for g in each if g is not None] for each in parts]
        return [add(each) if each else None for each in known]
