"""All of the array operations at the top level, put into the table."""

from __future__ import annotations

from jaxvars.tf.arrays import creation as creation
from jaxvars.tf.arrays import gather as gather
from jaxvars.tf.arrays import join as join
from jaxvars.tf.arrays import places as places
from jaxvars.tf.arrays import ranges as ranges
from jaxvars.tf.arrays import scatter as scatter
from jaxvars.tf.arrays import shape as shape
from jaxvars.tf.arrays import sort as sort
from jaxvars.tf.listing import HOMES

HOMES.update(
    {
        "meshgrid": "jaxvars.tf.arrays.join:meshgrid",
        "bitcast": "jaxvars.tf.arrays.creation:bitcast",
        "broadcast_static_shape": "jaxvars.tf.arrays.join:broadcast_static_shape",
        "broadcast_dynamic_shape": "jaxvars.tf.arrays.join:broadcast_dynamic_shape",
        "get_static_value": "jaxvars.tf.arrays.sort:get_static_value",
    }
)
"""Those whose signature no row can have, and those that few programs need."""
