"""The names that modules had before they were in packages, for pickles that were written then.

Nothing else imports them; they go with the next release.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_OLD = {  # by the module that has their classes and functions now
    "core.variable": "_variable",
    "core.state": "_state",
    "core.module": "_module",
    "tensors.spec": "_tensor",
    "random": "_generator random.choices random.shared",
    "initializers": "_initializer initializers.drawn initializers.scaled",
    "losses": "_loss _losses_classification _losses_regression _losses_structured losses.binary "
    "losses.margins",
    "metrics": "_metric _metrics_accuracy _metrics_auc _metrics_confusion _metrics_iou "
    "_metrics_mean _metrics_rows _metrics_scores metrics.correlation metrics.determination "
    "metrics.rows metrics.iou metrics.trade_offs",
    "metrics.sums": "metrics.tally",
    "optimizers": "_optimizer _optimizers_adam _optimizers_sgd _loss_scale optimizers.adam "
    "optimizers.adaptive optimizers.sgd optimizers.transformed",
    "debugging.watchers": "debugging.numerics debugging.placement_log",
    "tf.keras.optimizers.schedules": "tf.keras.adapter.schedules",
    "tf.train.checkpoint": "tf.train.options",
    "tf.train.stored": "tf.train.folder",
    "checkpoint.stored": "checkpoint.view",
    "interop.module": "interop.form",
    "tf.tensors.specs": "tf.tensors.type_specs",
    "tf.context.scope": "tf.context.name_scope",
    "tf.functions.concrete_binding": "tf.functions.function_type",
    "tf.saved_model.tree": "tf.saved_model.assets",
    "tf.variables.variable": "tf._variable",
    "tf.tensors.shapes": "tf._shapes",
    "tf.tensors.dtypes": "tf._dtypes",
    "tf.random.stateless": "tf.random.algorithm",
}
_NOW = {old: now for now, names in _OLD.items() for old in names.split()}


class OldNames:
    """Finds modules by the names that they had."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return how a module is made whose attributes are those of today's."""
        known = name.removeprefix("jaxvars.") in _NOW and name.startswith("jaxvars.")
        return ModuleSpec(name, OldNames) if known else None  # pyright: ignore[reportArgumentType] - it has the methods

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Have Python make an empty module."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Have the module look its attributes up in today's."""
        now = import_module(f"jaxvars.{_NOW[module.__name__.removeprefix('jaxvars.')]}")
        vars(module)["__getattr__"] = partial(getattr, now)


def install() -> None:
    """Let pickles find what has moved."""
    sys.meta_path.append(OldNames)  # pyright: ignore[reportArgumentType] - it has the methods
