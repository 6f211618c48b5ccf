"""All of the array operations at the top level, put into the table."""

from __future__ import annotations

from jaxvars.tf.arrays import encode as _arrays_encode
from jaxvars.tf.arrays import gather as _arrays_gather
from jaxvars.tf.arrays import join as _arrays_join
from jaxvars.tf.arrays import places as _arrays_places
from jaxvars.tf.arrays import scatter as _arrays_scatter
from jaxvars.tf.arrays import shape as _arrays_shape
from jaxvars.tf.arrays import slice as _arrays_slice
from jaxvars.tf.arrays import sort as _arrays_sort
from jaxvars.tf.arrays import turn as _arrays_turn
from jaxvars.tf.listing import HOMES

HOMES.update(
    {
        "meshgrid": "jaxvars.tf.arrays.join:meshgrid",
        "bitcast": "jaxvars.tf.arrays.encode:bitcast",
        "broadcast_static_shape": "jaxvars.tf.arrays.join:broadcast_static_shape",
        "broadcast_dynamic_shape": "jaxvars.tf.arrays.join:broadcast_dynamic_shape",
        "get_static_value": "jaxvars.tf.arrays.sort:get_static_value",
    }
)
"""Those whose signature no row can have."""
