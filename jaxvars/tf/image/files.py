"""Images as files: PNG, JPEG, GIF, BMP and WebP, for `tf.image` and `tf.io`.

Rules this file keeps:
- Pillow does it, and is imported when it is needed;
- files are strings, on the host: inside a `tf.function` they must be known.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxvars.tf.errors import UnimplementedError
from jaxvars.tf.image.colors import convert_type
from jaxvars.tf.registry.rows import Operation, P, Refused, op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.static import ints, one_int, refused, require_known
from jaxvars.typing import Array

HOST = "files are on the host: inside a `tf.function` they must be known"
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_KINDS = {"JPEG", "PNG", "GIF", "BMP", "WEBP"}
_PNG = b"\x89PNG\r\n\x1a\n"
_COLORS = "Colors of 16 bits are neither read nor written, as Pillow does not: gray is, or uint8."
_WEIGHTS = np.array([9797, 19234, 3737])
"""How much of gray each color is, of 32768: the weights of the eye (ITU-R BT.601)."""


def _pillow() -> Any:
    try:
        import PIL.Image
    except ImportError as error:
        raise Refused(
            UnimplementedError(
                message="Files of images are read and written by Pillow: pip install pillow"
            )
        ) from error
    return PIL.Image


# ---------------------------------------------------------------- reading
def _reading_op(name: str) -> Callable[[Callable[P, Any]], Operation[P]]:
    """Return `op` for what reads files, which is in `tf.image` and in `tf.io`."""
    return op(
        f"image.{name}", "contents", kinds="string", strings=True, eager_only=HOST,
        aliases=(f"io.{name}",),
    )  # fmt: skip


def _open(contents: Any) -> Any:
    if contents.ndim:
        raise refused(f"contents must be scalar but got shape {list(contents.shape)}")
    pillow = _pillow()
    try:
        image = pillow.open(io.BytesIO(contents.item()))
        image.load()
    except Exception as error:
        raise refused(
            "Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required."
        ) from error
    if image.format not in _KINDS:
        raise refused(f"Files of {image.format} are not read: convert it to PNG.")
    if image.format == "BMP" and image.mode == "RGB" and contents.item()[28] == 32:
        image.putalpha(pillow.fromarray(_alpha_of_bmp(contents.item(), image.height, image.width)))
    return image


def _alpha_of_bmp(data: bytes, height: int, width: int) -> np.ndarray:
    """Return the fourth bytes of the pixels of a BMP file of 32 bits, which Pillow leaves out."""
    start, is_downward = int.from_bytes(data[10:14], "little"), data[25] > 127
    pixels = np.frombuffer(data, np.uint8, height * width * 4, start).reshape(height, width, 4)
    return np.ascontiguousarray(pixels[:: 1 if is_downward else -1, :, 3])


def _read_pixels(
    image: Any, channels: int, dtype: Any = np.uint8, contents: Any = None
) -> np.ndarray:
    """Return an image as an array: [height, width, channels]."""
    if channels not in (0, 1, 3, 4):
        raise refused(f"`channels` must be 0, 1, 3 or 4 but got {channels}")
    is_deep = contents is not None and contents.item()[:8] == _PNG and contents.item()[24] == 16
    if is_deep and image.mode.startswith("I"):
        gray = np.asarray(image).astype(np.uint16)[..., None]
        alpha = [np.full_like(gray, 65535)] if channels == 4 else []
        made = np.concatenate([*[gray] * (3 if channels > 1 else 1), *alpha], -1)
        return made if dtype == np.uint16 else (made >> 8).astype(np.uint8)
    if is_deep and dtype == np.uint16:
        raise refused(_COLORS)
    if channels == 1 and image.mode in ("RGB", "RGBA", "P") and image.format != "JPEG":
        weighed = np.asarray(image.convert("RGB")).astype(np.int64) @ _WEIGHTS
        made = (weighed >> 15).astype(np.uint8)
    else:
        made = np.asarray(image.convert(_MODES[channels] if channels else _own_mode(image)))
    made = made if made.ndim == 3 else made[..., None]
    if dtype != np.uint16:
        return made
    return made.astype(np.uint16) * (257 if image.format == "PNG" else 256)


def _own_mode(image: Any) -> str:
    if image.mode in ("L", "LA", "RGB", "RGBA"):
        return image.mode
    if image.mode == "P":
        return "RGBA" if "transparency" in image.info else "RGB"
    return "L" if image.mode in ("1", "F") else "RGB"


@_reading_op("decode_png")
def decode_png(contents: Any, channels: int = 0, dtype: Any = "uint8") -> Array:
    """Read a PNG file, or another image.

    Example:
    `tf.image.decode_png(tf.io.encode_png(tf.cast(tf.reshape(tf.range(12), [2, 2, 3]) * 20,
    tf.uint8)))`.

    Differs from TensorFlow: of 16 bits are files in gray alone.
    """
    kind = as_dtype(dtype).dtype
    if kind not in (np.dtype(np.uint8), np.dtype(np.uint16)):
        raise Refused(TypeError(f"dtype must be uint8 or uint16, not {as_dtype(dtype).name}"))
    return _array(_read_pixels(_open(contents), channels, kind, contents))


@_reading_op("decode_bmp")
def decode_bmp(contents: Any, channels: int = 0) -> Array:
    """Read a BMP file.

    Example: `tf.image.decode_bmp(b'BM')`.

    Differs from TensorFlow: of an image with a palette the colors are returned, not their numbers.
    """
    image = _open(contents)
    if image.format != "BMP":
        raise refused(f"Trying to decode {image.format} format using DecodeBmp op.")
    return _array(_read_pixels(image, channels))


@_reading_op("decode_jpeg")
def decode_jpeg(
    contents: Any, channels: int = 0, ratio: int = 1, fancy_upscaling: bool = True,
    try_recover_truncated: bool = False, acceptable_fraction: float = 1, dct_method: str = "",
) -> Array:  # fmt: skip
    """Read a JPEG file, or another image.

    Example:
    `tf.image.decode_jpeg(tf.io.encode_png(tf.cast(tf.reshape(tf.range(12), [2, 2, 3]) * 20,
    tf.uint8)))`.
    """
    if ratio not in (1, 2, 4, 8):
        raise refused(f"ratio must be 1, 2, 4, or 8, got {ratio}")
    made = _read_pixels(_open(contents), channels, contents=contents)
    if ratio == 1:
        return _array(made)
    height, width = (-(-n // ratio) for n in made.shape[:2])
    padded = np.pad(made, [(0, -n % ratio) for n in made.shape[:2]] + [(0, 0)], "edge")
    blocks = padded.reshape(height, ratio, width, ratio, -1).astype(np.float32)
    return _array(np.rint(blocks.mean((1, 3))).astype(np.uint8))


@_reading_op("decode_and_crop_jpeg")
def decode_and_crop_jpeg(
    contents: Any, crop_window: Any, channels: int = 0, ratio: int = 1,
    fancy_upscaling: bool = True, try_recover_truncated: bool = False,
    acceptable_fraction: float = 1, dct_method: str = "",
) -> Array:  # fmt: skip
    """Read a part of a JPEG file.

    Example:
    `tf.image.decode_and_crop_jpeg(tf.io.encode_jpeg(tf.fill([8, 16, 3], tf.constant(77,
    tf.uint8))), [1, 2, 2, 1])`.
    """
    window = ints(crop_window, "crop_window")
    if len(window) != 4:
        raise refused(f"crop_window must have four elements {list(window)}")
    whole = np.asarray(decode_jpeg.__wrapped__(contents, channels, ratio, True, False, 1.0, ""))
    top, left, height, width = window
    if (
        min(top, left, height - 1, width - 1) < 0
        or top + height > whole.shape[0]
        or left + width > whole.shape[1]
    ):
        raise refused("Invalid JPEG data or crop window")
    return _array(whole[top : top + height, left : left + width])


@_reading_op("decode_gif")
def decode_gif(contents: Any) -> Array:
    """Read the frames of a GIF file.

    Example:
    `tf.image.decode_gif(tf.io.encode_png(tf.cast(tf.reshape(tf.range(12), [2, 2, 3]) * 20,
    tf.uint8)))`.
    """
    image = _open(contents)
    if image.format != "GIF":
        return _array(_read_pixels(image, 3, contents=contents)[None])
    return _array(_frames(image))


def _frames(image: Any) -> np.ndarray:
    from PIL import ImageSequence

    return np.stack([np.asarray(x.convert("RGB")) for x in ImageSequence.Iterator(image)])


@_reading_op("decode_image")
def decode_image(
    contents: Any, channels: Any = None, dtype: Any = "uint8", *, expand_animations: bool = True
) -> Array:
    """Read an image of any kind.

    Example:
    `tf.image.decode_image(tf.io.encode_png(tf.cast(tf.reshape(tf.range(12), [2, 2, 3]) * 20,
    tf.uint8)))`.
    """
    count, kind = int(channels or 0), as_dtype(dtype).dtype
    image = _open(contents)
    if image.format == "GIF":
        if count not in (0, 3):
            raise refused(f"channels must be 0 or 3 for GIF, got {count}")
        frames = _frames(image)
        made = frames if expand_animations else frames[0]
    else:
        wide = image.format == "PNG" and kind != np.uint8
        made = _read_pixels(image, count, np.uint16 if wide else np.uint8, contents)
    return convert_type(_array(made), kind)


@_reading_op("is_jpeg")
def is_jpeg(contents: Any) -> Array:
    """Return whether a file is a JPEG.

    Example: `tf.image.is_jpeg(b'abc')`.
    """
    starts = [string[:3] == b"\xff\xd8\xff" for string in contents.ravel()]
    return _array(np.array(starts, bool).reshape(contents.shape))


@_reading_op("extract_jpeg_shape")
def extract_jpeg_shape(contents: Any, output_type: Any = "int32") -> Array:
    """Return the height, width and channels of a JPEG file.

    Example:
    `tf.image.extract_jpeg_shape(tf.io.encode_jpeg(tf.fill([8, 16, 3], tf.constant(77,
    tf.uint8))))`.
    """
    image = _open(contents)
    if image.format != "JPEG":
        raise refused("Invalid JPEG data")
    depth = len(image.getbands())
    shape = [image.height, image.width, depth]
    return _array(np.array(shape, as_dtype(output_type).dtype))


def _array(pixels: np.ndarray) -> Array:
    return _convert.to_array(pixels.copy())


# ---------------------------------------------------------------- writing
def _encode(pixels: np.ndarray, kind: str, **options: Any) -> Any:
    pillow = _pillow()
    file = io.BytesIO()
    plain = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
    pillow.fromarray(np.ascontiguousarray(plain)).save(file, kind, **options)
    return file.getvalue()


@op("image.encode_png", "image", kinds="int float", eager_only=HOST, aliases=("io.encode_png",))
def encode_png(image: Array, compression: int = -1) -> Any:
    """Write an image as a PNG file.

    Example:
    `tf.image.decode_png(tf.image.encode_png(tf.cast(tf.reshape(tf.range(12), [2, 2, 3]) * 20,
    tf.uint8), compression=3))`.

    Differs from TensorFlow: the file has other bytes, of the same pixels; of 16 bits are those in
    gray alone.
    """
    pixels = require_known(image, "image")
    if pixels.dtype not in (np.dtype(np.uint8), np.dtype(np.uint16)):
        raise refused(
            f"Value for attr 'T' of {_convert.dtype_of(pixels).name} is not in the list of allowed "
            "values: uint8, uint16"
        )
    if pixels.ndim < 3:
        raise refused(f"images must be at least rank 3{list(pixels.shape)}")
    if pixels.shape[-1] not in _MODES:
        raise refused(f"image must have 1, 2, 3, or 4 channels, got {pixels.shape[-1]}")
    if pixels.dtype == np.uint16 and pixels.shape[-1] != 1:
        raise refused(_COLORS)
    options = {} if compression < 0 else {"compress_level": int(compression)}
    return _write_each(pixels, pixels.ndim - 3, lambda x: _encode(x, "PNG", **options))


@op("image.encode_jpeg", "image", kinds="int float", eager_only=HOST, aliases=("io.encode_jpeg",))
def encode_jpeg(
    image: Array, format: str = "", quality: int = 95, progressive: bool = False,
    optimize_size: bool = False, chroma_downsampling: bool = True, density_unit: str = "in",
    x_density: int = 300, y_density: int = 300, xmp_metadata: str = "",
) -> Any:  # fmt: skip
    """Write an image as a JPEG file.

    Example:
    `tf.image.extract_jpeg_shape(tf.image.encode_jpeg(tf.cast(tf.reshape(tf.range(12), [2, 2,
    3]) * 20, tf.uint8)))`.

    Differs from TensorFlow: the file has other bytes.
    """
    pixels = require_known(image, "image")
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[-1] not in (1, 3):
        raise refused(
            f"image must be of uint8, 3-dimensional, with 1 or 3 channels, not {pixels.dtype} of "
            f"shape {list(pixels.shape)}"
        )
    if not 0 <= quality <= 100:
        raise refused(f"quality must be in [0,100], got {quality}")
    options = {
        "quality": int(quality), "progressive": bool(progressive), "optimize": bool(optimize_size),
        "subsampling": 2 if chroma_downsampling else 0, "dpi": (x_density, y_density),
    }  # fmt: skip
    return _write_each(pixels, 0, lambda x: _encode(x, "JPEG", **options))


def _write_each(pixels: np.ndarray, dims: int, write: Any) -> np.ndarray:
    made = np.empty(pixels.shape[:dims], object)
    for index in np.ndindex(made.shape):
        made[index] = write(pixels[index])
    return made


@op("image.adjust_jpeg_quality", "image", kinds="float int", eager_only=HOST)
def adjust_jpeg_quality(image: Array, jpeg_quality: Any, dct_method: Any = "") -> Array:
    """Lose what JPEG loses at a quality.

    Example: `tf.image.adjust_jpeg_quality(tf.zeros([8, 8, 3]), 75)`.
    """
    quality = one_int(jpeg_quality, "jpeg_quality")
    bytes_of = np.asarray(require_known(convert_type(image, np.uint8, saturate=True), "image"))
    written = _encode(bytes_of, "JPEG", quality=quality, subsampling=2)
    pixels = _read_pixels(_pillow().open(io.BytesIO(written)), bytes_of.shape[-1])
    return convert_type(_array(pixels), image.dtype)
