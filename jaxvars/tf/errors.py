"""`tf.errors`: the exceptions of operations, by TensorFlow's names.

Rules this file keeps:
- each is a subclass of OpError, with TensorFlow's code; those that name a mistake in the arguments
  are a ValueError, too, which TensorFlow raises for the same mistake in a graph.
"""

from __future__ import annotations

from typing import Any, final

from jaxvars.tf.listing import lister

OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT = 0, 1, 2, 3
DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED = 4, 5, 6, 7
RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE = 8, 9, 10, 11
UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED = 12, 13, 14, 15, 16


class OpError(Exception):
    """The base of the errors that operations raise.

    Args:
        node_def: None: there are no nodes.
        op: None: there are no nodes.
        message: what went wrong.
        error_code: the number of the kind of error; or a dict, which is kept as
            `experimental_payloads`.

    Wrong: `tf.matmul(tf.ones((2, 3)), tf.ones((2, 3)))`. Cure: sizes that fit, as the message says.
    """

    _code = UNKNOWN

    def __init__(
        self, node_def: Any = None, op: Any = None, message: str = "", error_code: Any = None
    ) -> None:
        super().__init__(message)
        self.node_def, self.op, self.message = node_def, op, message
        self.experimental_payloads = error_code if isinstance(error_code, dict) else {}
        has_code = error_code is not None and not isinstance(error_code, dict)
        self.error_code = error_code if has_code else self._code

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> Any:
        return type(self), (self.node_def, self.op, self.message)


@final
class InvalidArgumentError(OpError, ValueError):
    """An operation got what it cannot work with."""

    _code = INVALID_ARGUMENT


@final
class OutOfRangeError(OpError, ValueError):
    """An operation went past the end."""

    _code = OUT_OF_RANGE


@final
class NotFoundError(OpError):
    """What was requested is not there."""

    _code = NOT_FOUND


@final
class FailedPreconditionError(OpError):
    """The program is not in a state for the operation: a variable has no value."""

    _code = FAILED_PRECONDITION


@final
class UnimplementedError(OpError):
    """The operation is not there for these arguments."""

    _code = UNIMPLEMENTED


@final
class AbortedError(OpError):
    """The operation was aborted."""

    _code = ABORTED


@final
class AlreadyExistsError(OpError):
    """What was to be made exists."""

    _code = ALREADY_EXISTS


@final
class CancelledError(OpError):
    """The operation was cancelled."""

    _code = CANCELLED


@final
class DataLossError(OpError):
    """Data is damaged: a checkpoint whose values are not what was written."""

    _code = DATA_LOSS


@final
class DeadlineExceededError(OpError):
    """The operation took too long."""

    _code = DEADLINE_EXCEEDED


@final
class InternalError(OpError):
    """The system failed."""

    _code = INTERNAL


@final
class PermissionDeniedError(OpError):
    """The caller may not do that."""

    _code = PERMISSION_DENIED


@final
class ResourceExhaustedError(OpError):
    """There is not enough memory, or of something else."""

    _code = RESOURCE_EXHAUSTED


@final
class UnauthenticatedError(OpError):
    """The caller is not known."""

    _code = UNAUTHENTICATED


@final
class UnavailableError(OpError):
    """What is needed is not available now."""

    _code = UNAVAILABLE


@final
class UnknownError(OpError):
    """Something else went wrong."""

    _code = UNKNOWN


@final
class OperatorNotAllowedInGraphError(TypeError):
    """Python needs a value that is only known when the function runs.

    Wrong: `if x > 0:` in a function with `autograph=False`. Cure: `tf.cond(x > 0, ...)`.
    """


__dir__ = lister(__name__)
