"""`tf.nn`: activations, losses, convolutions, pools, normalisation.

Differs from TensorFlow: channels may come first (NCHW) on any device.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

from jaxvars.tf.listing import HOMES, namespace
from jaxvars.tf.nn import activations, convolutions, losses, norm, pooling
from jaxvars.tf.nn.activations import dropout as dropout
from jaxvars.tf.nn.activations import stateless_dropout as _stateless_dropout
from jaxvars.tf.nn.losses import nce_loss as nce_loss
from jaxvars.tf.nn.losses import sampled_softmax_loss as sampled_softmax_loss
from jaxvars.tf.nn.sparse import ctc_greedy_decoder as ctc_greedy_decoder
from jaxvars.tf.registry.rows import operations

experimental = types.SimpleNamespace(stateless_dropout=_stateless_dropout)

_PARTS = (activations, convolutions, losses, norm, pooling)
"""Imported: their operations are in the table."""

_rows = operations(__name__, others=["dropout"])
HOMES["nn.space_to_batch"] = "jaxvars.tf.arrays.shape:space_to_batch"

if TYPE_CHECKING:
    from jaxvars.tf.nn.operations import *  # noqa: F403
else:
    __getattr__, __dir__ = namespace(__name__, ["dropout"], _rows)
