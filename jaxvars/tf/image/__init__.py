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

from jaxvars.tf.image import colors as _image_colors
from jaxvars.tf.image import files as _image_files
from jaxvars.tf.image import pieces as _image_pieces
from jaxvars.tf.image import places as _image_places
from jaxvars.tf.image import quality as _image_quality
from jaxvars.tf.image import random as _image_random
from jaxvars.tf.image import resizing as _image_resize
from jaxvars.tf.image import spaces as _image_spaces
from jaxvars.tf.image import suppression as _image_suppression
from jaxvars.tf.image.resizing import ResizeMethod as ResizeMethod
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
