"""`tf.nn`: activations, losses, convolutions, pools, normalisation.

Differs from TensorFlow: channels may come first (NCHW) on any device.
"""

from __future__ import annotations

import types

from jaxvars.tf import _nn_activations, _nn_conv, _nn_losses, _nn_norm, _nn_pool
from jaxvars.tf._nn_dropout import dropout as dropout
from jaxvars.tf._nn_dropout import stateless_dropout as _stateless_dropout
from jaxvars.tf._rows import operations

ROWS = [
    *_nn_activations.ROWS,
    *_nn_losses.ROWS,
    *_nn_conv.ROWS,
    *_nn_pool.ROWS,
    *_nn_norm.ROWS,
]

experimental = types.SimpleNamespace(stateless_dropout=_stateless_dropout)

__getattr__ = operations(__name__, ROWS, others=["dropout"])
