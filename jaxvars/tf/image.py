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

from jaxvars.tf import (
    _image_colors,
    _image_files,
    _image_pieces,
    _image_places,
    _image_quality,
    _image_random,
    _image_resize,
    _image_spaces,
    _image_suppression,
)
from jaxvars.tf._image_resize import ResizeMethod as ResizeMethod
from jaxvars.tf.registry.rows import operations

ROWS = [
    row
    for part in (
        _image_places,
        _image_resize,
        _image_colors,
        _image_spaces,
        _image_quality,
        _image_pieces,
        _image_suppression,
        _image_random,
        _image_files,
    )
    for row in part.ROWS
]

__getattr__ = operations(__name__, ROWS, ("ResizeMethod",))
