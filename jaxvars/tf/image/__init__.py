"""`tf.image`: resize, flip, crop and color images: [height, width, channels], or batches of them.

_image_places       flips, crops, borders
_image_resize       other sizes
_image_colors       colors and types
_image_spaces       YIQ and YUV
_image_quality      how much images are alike; edges
_image_pieces       patches, boxes and glimpses
_image_suppression  which boxes are kept
_image_random       random changes
_image_files        files: PNG, JPEG, ...
"""

from __future__ import annotations

from jaxvars.tf.image import (
    colors,
    files,
    pieces,
    places,
    quality,
    random,
    resizing,
    spaces,
    suppression,
)
from jaxvars.tf.image.resizing import ResizeMethod as ResizeMethod
from jaxvars.tf.registry.rows import operations

_PARTS = (colors, files, pieces, places, quality, random, resizing, spaces, suppression)
"""Imported: their operations are in the table."""

__getattr__ = operations(__name__, ("ResizeMethod",))
