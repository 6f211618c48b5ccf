"""What of this package plugs into the tape, and where."""

from __future__ import annotations

from jaxvars.autodiff import rules
from jaxvars.derivatives import (
    dependencies,
    explain,
    irreversible,
    jacobian,
    linearize,
    sparse_rows,
)


def install() -> None:
    """Register it: `import jaxvars` does."""
    rules.PATHS.update(dependencies.PATHS)
    rules.RUN_ONCE.append(linearize.Linearizer)
    rules.REFUSALS.append(irreversible.refuse_loop)
    rules.NOTES.append(explain.AssignNotes)
    rules.VERBS.update(
        explain=explain.explain,
        jacobian=jacobian.jacobian,
        batch_jacobian=jacobian.batch_jacobian,
        row_gradients=sparse_rows.row_gradients,
    )
