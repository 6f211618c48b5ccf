"""`tf.image`: resize, flip, crop and color images: [height, width, channels], or batches of them.

places       flips, crops, borders
resizing     other sizes
colors       colors and types
quality      how much images are alike; edges
pieces       patches, boxes and glimpses
suppression  which boxes are kept
random       random changes
files        files: PNG, JPEG, ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxvars.tf.image import colors, files, pieces, places, quality, random, resizing, suppression
from jaxvars.tf.image.resizing import ResizeMethod as ResizeMethod
from jaxvars.tf.registry.rows import operations

_PARTS = (colors, files, pieces, places, quality, random, resizing, suppression)
"""Imported: their operations are in the table."""

if TYPE_CHECKING:
    from jaxvars.tf.image.operations import *  # noqa: F403
else:
    __getattr__ = operations(__name__, ("ResizeMethod",))
