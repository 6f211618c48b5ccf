"""What of this package plugs into the tape, and where."""

from __future__ import annotations

from jaxvars.autodiff import rules
from jaxvars.derivatives import dependencies, irreversible, linearize


def install() -> None:
    """Register it: `import jaxvars` does."""
    rules.PATHS.update(dependencies.PATHS)
    rules.RUN_ONCE.append(linearize.Linearizer)
    rules.REFUSALS.append(irreversible.refuse_loop)
