"""`tf.errors`: the exceptions of operations, by TensorFlow's names.

Those that name a mistake in the arguments are a ValueError, too, which TensorFlow raises for the
same mistake in a graph.
"""

from __future__ import annotations

from typing import Any, ClassVar, final

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

    Raised by: `tf.matmul(tf.ones((2, 3)), tf.ones((2, 3)))`.

    Fix: sizes that fit, as the message says.
    """

    _code: ClassVar[int] = UNKNOWN

    def __init_subclass__(cls, code: int | None = None) -> None:
        cls._code = cls._code if code is None else code

    def __init__(
        self, node_def: Any = None, op: Any = None, message: str = "", error_code: Any = None
    ) -> None:
        if isinstance(node_def, str) and not message:  # Keras makes an error again of its words
            node_def, message = None, node_def
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
class InvalidArgumentError(OpError, ValueError, code=INVALID_ARGUMENT):
    """An operation got what it cannot work with."""


@final
class OutOfRangeError(OpError, ValueError, code=OUT_OF_RANGE):
    """An operation went past the end."""


@final
class NotFoundError(OpError, code=NOT_FOUND):
    """What was requested is not there."""


@final
class FailedPreconditionError(OpError, code=FAILED_PRECONDITION):
    """The program is not in a state for the operation: a variable has no value."""


@final
class UnimplementedError(OpError, code=UNIMPLEMENTED):
    """The operation is not there for these arguments."""


@final
class AbortedError(OpError, code=ABORTED):
    """The operation was aborted."""


@final
class AlreadyExistsError(OpError, code=ALREADY_EXISTS):
    """What was to be made exists."""


@final
class CancelledError(OpError, code=CANCELLED):
    """The operation was cancelled."""


@final
class DataLossError(OpError, code=DATA_LOSS):
    """Data is damaged: a checkpoint whose values are not what was written."""


@final
class DeadlineExceededError(OpError, code=DEADLINE_EXCEEDED):
    """The operation took too long."""


@final
class InternalError(OpError, code=INTERNAL):
    """The system failed."""


@final
class PermissionDeniedError(OpError, code=PERMISSION_DENIED):
    """The caller may not do that."""


@final
class ResourceExhaustedError(OpError, code=RESOURCE_EXHAUSTED):
    """There is not enough memory, or of something else."""


@final
class UnauthenticatedError(OpError, code=UNAUTHENTICATED):
    """The caller is not known."""


@final
class UnavailableError(OpError, code=UNAVAILABLE):
    """What is needed is not available now."""


@final
class UnknownError(OpError, code=UNKNOWN):
    """Something else went wrong."""


@final
class OperatorNotAllowedInGraphError(TypeError):
    """Python needs a value that is only known when the function runs.

    Raised by: `if x > 0:` in a function with `autograph=False`.

    Fix: `tf.cond(x > 0, ...)`.
    """


__dir__ = lister(__name__)
