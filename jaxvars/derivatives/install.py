"""What of this package plugs into the tape, and where."""

from __future__ import annotations

from jaxvars.autodiff import rules
from jaxvars.derivatives import dependencies, irreversible


def install() -> None:
    """Register it: `import jaxvars` does."""
    rules.PATHS.update(dependencies.PATHS)
    rules.REFUSALS.append(irreversible.refuse_loop)
