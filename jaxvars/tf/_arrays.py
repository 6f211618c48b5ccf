"""All of the array operations at the top level, put into the table."""

from __future__ import annotations

from jaxvars.tf import _arrays_encode as _arrays_encode
from jaxvars.tf import _arrays_gather as _arrays_gather
from jaxvars.tf import _arrays_join as _arrays_join
from jaxvars.tf import _arrays_places as _arrays_places
from jaxvars.tf import _arrays_scatter as _arrays_scatter
from jaxvars.tf import _arrays_shape as _arrays_shape
from jaxvars.tf import _arrays_slice as _arrays_slice
from jaxvars.tf import _arrays_sort as _arrays_sort
from jaxvars.tf import _arrays_turn as _arrays_turn
from jaxvars.tf._listing import HOMES

HOMES.update(
    {
        "meshgrid": "jaxvars.tf._arrays_join:meshgrid",
        "bitcast": "jaxvars.tf._arrays_encode:bitcast",
        "broadcast_static_shape": "jaxvars.tf._arrays_join:broadcast_static_shape",
        "broadcast_dynamic_shape": "jaxvars.tf._arrays_join:broadcast_dynamic_shape",
        "get_static_value": "jaxvars.tf._arrays_sort:get_static_value",
    }
)
"""Those whose signature no row can have."""
