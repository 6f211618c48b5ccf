"""What of this package plugs in, and where."""

from __future__ import annotations

from jaxvars.autodiff import rules
from jaxvars.core.staging import INLINED
from jaxvars.derivatives import (
    custom_gradient,
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
    INLINED.append(custom_gradient.with_explicit_rules)
    rules.VERBS.update(
        explain=explain.explain,
        jacobian=jacobian.jacobian,
        batch_jacobian=jacobian.batch_jacobian,
        row_gradients=sparse_rows.row_gradients,
    )
