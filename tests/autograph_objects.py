"""What tests of autograph import as users do: objects that programs change, and functions."""

from __future__ import annotations

import types

import jax

import jaxvars as jv

STATE = types.SimpleNamespace(n=0.0)


def bump(x):
    STATE.n += x


def map_rows(xs):
    @jv.autograph.convert
    def relu(x):
        return x if x > 0 else 0.0

    def add_up(x):
        def bounded(y):
            return y if y < 2 else 2.0

        return jax.vmap(jv.autograph.convert(bounded))(x).sum()

    return jax.vmap(relu)(xs), jv.autograph.convert(lambda x: add_up(2 * x))(xs)
