"""The global generator, which the functions of `jaxvars.random` draw from.

Rules this file keeps:
- it is made when it is first asked for, outside of whatever is being traced;
- `set_seed` changes it in place, so that compiled functions that use it see that.
"""

from __future__ import annotations

import threading
from typing import Any, ClassVar, final

import jax

from jaxvars.core.frames import LOCAL, within
from jaxvars.random.generator import Generator
from jaxvars.tracing import context


@final
class _Global:
    """The generator that is there for all, once there is one."""

    generator: ClassVar[Generator | None] = None
    lock: ClassVar[Any] = threading.Lock()


def get_global_generator() -> Generator:
    """Return the generator that the functions here draw from.

    The first time it is made, with a seed from the operating system.

    >>> get_global_generator() is get_global_generator()
    True
    """
    with _Global.lock:
        if _Global.generator is None:
            # A compiled function may be the first to ask: the generator is not one that it makes.
            with context.at(context.EVAL), jax.default_device(None):
                _Global.generator = within(LOCAL.eager, Generator)
        return _Global.generator


def set_global_generator(generator: Generator) -> None:
    """Have the functions here draw from another generator.

    Args:
        generator: a `Generator`. Compiled functions that drew from the one before go on with it
            as long as it is referenced.

    Raises:
        TypeError: when it is none.

    >>> set_global_generator(Generator.from_seed(7))
    """
    if not isinstance(generator, Generator):
        raise TypeError(
            f"{generator!r} is not a Generator; for a seed use jv.random.set_seed({generator!r})."
        )
    _Global.generator = generator


def set_seed(seed: Any) -> None:
    """Begin the global generator's stream of a seed.

    Args:
        seed: an integer, two of them, or a key of `jax.random`.

    Raises:
        TypeError: when it is something else.

    >>> set_seed(7)
    >>> x = get_global_generator().uniform(())
    >>> set_seed(7)
    >>> bool(x == get_global_generator().uniform(()))
    True

    Differs from TensorFlow: it has an effect on the global generator, and only on that.
    """
    get_global_generator().reset_from_seed(seed)
