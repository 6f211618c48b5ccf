"""What has become of the values of a checkpoint: what `tf.train.Checkpoint.restore` returns."""

from __future__ import annotations

from typing import Any, final

from jaxvars.checkpoint import restore as restoring
from jaxvars.tf.train import graph as graphs
from jaxvars.tf.train.restore import Wait
from jaxvars.tf.train.stored import NOTES


@final
class Status:
    """What has become of the values of a checkpoint; returned by `Checkpoint.restore`.

    Its methods look again each time: variables may have been made since.
    """

    __slots__ = ("_owner", "_wait")

    def __init__(self, wait: Wait | None, owner: object = None) -> None:
        self._wait = wait
        self._owner = owner  # which lives as long as its values may be queried

    def assert_consumed(self) -> Status:
        """Raise AssertionError unless all values have variables, and all variables values."""
        wait = self._given()
        restore = wait.restore
        self._refuse_misfits(restore)
        for name in sorted(restore.waiting):
            place = f"(root).{name.replace('/', '.')}"
            if wait.owner_of(name) is not None:
                raise AssertionError(
                    "Unused attributes in these objects (the attributes exist in the checkpoint "
                    f"but were not restored):\n{place}: it is not a variable, and there is the "
                    f"value {graphs.key_of(name)}."
                )
            raise AssertionError(
                f"Unresolved object in checkpoint {place}: no variable has taken the value "
                f"{graphs.key_of(name)}."
            )
        return self._all_have_values(wait)

    def assert_existing_objects_matched(self) -> Status:
        """Raise AssertionError unless all variables that there are have values from it."""
        wait = self._given()
        self._refuse_misfits(wait.restore)
        return self._all_have_values(wait)

    def assert_nontrivial_match(self) -> Status:
        """Raise AssertionError unless a variable has a value from it."""
        wait = self._given()
        if not wait.restore.taken.keys() - NOTES:
            raise AssertionError(
                "Nothing except the root object matched a checkpointed value. Typically this means "
                "that the checkpoint does not match the Python program. In it are: "
                f"{sorted(wait.restore.waiting)[:10]}"
            )
        return self

    def expect_partial(self) -> Status:
        """Give no warning of values that were never used."""
        if self._wait is not None:
            self._wait.restore.is_partial = True
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Do nothing: values are restored at once."""

    run_restore_ops = initialize_or_restore

    def _given(self) -> Wait:
        if self._wait is None:
            raise AssertionError(
                "No checkpoint specified (save_path=None); nothing is being restored."
            )
        return self._wait

    def _refuse_misfits(self, restore: restoring.Restore) -> None:
        if restore.misfits:
            lines = [f"{name}: {what}" for name, what in sorted(restore.misfits.items())]
            raise AssertionError("\n  ".join(["Values that do not fit their variables:", *lines]))

    def _all_have_values(self, wait: Wait) -> Status:
        if left := wait.missing():
            raise AssertionError(
                f"Found {len(left)} Python objects that were not bound to checkpointed values, "
                "likely due to changes in the Python program. Showing "
                f"{min(10, len(left))} of {len(left)} unmatched objects: {left[:10]}"
            )
        return self
