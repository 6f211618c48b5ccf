"""Objects of a module that programs change from outside (`autograph/test_autograph_world.py`)."""

from __future__ import annotations

import types

STATE = types.SimpleNamespace(n=0.0)


def bump(x):
    STATE.n += x
