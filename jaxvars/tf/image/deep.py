"""PNG files with numbers of 16 bits, of which Pillow reads and writes those in gray only.

Source: https://www.w3.org/TR/png-3
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from jaxvars.tf.tensors.static import refused

_SIGN = b"\x89PNG\r\n\x1a\n"
_DEPTHS = {0: 1, 2: 3, 4: 2, 6: 4}  # how many numbers a pixel has, by the kind of color
_HEAD = ">IIBBBBB"  # width, height, bits, kind of color, compression, filters, interlacing
WEIGHTS = np.array([9797, 19234, 3737])
"""How much of gray each color is, of 32768: the weights of the eye (ITU-R BT.601)."""


def is_deep(contents: bytes) -> bool:
    """Return whether something is a PNG file with numbers of 16 bits."""
    return contents[:8] == _SIGN and contents[24] == 16


def read(contents: bytes) -> np.ndarray:
    """Return the pixels of such a file: uint16 of shape [height, width, channels]."""
    width, height, _, kind, _, _, laced = struct.unpack(_HEAD, contents[16:29])
    if laced:
        raise refused("PNG files of 16 bits are read if they are not interlaced.")
    data, at = b"", 8
    while at < len(contents):
        size, name = struct.unpack(">I4s", contents[at : at + 8])
        data += contents[at + 8 : at + 8 + size] if name == b"IDAT" else b""
        at += size + 12
    step = 2 * _DEPTHS[kind]
    lines = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + width * step)
    rows = [np.zeros(width * step, np.uint8)]
    for line in lines:
        rows.append(_unfilter(int(line[0]), line[1:], rows[-1], step))
    return np.stack(rows[1:]).view(">u2").astype(np.uint16).reshape(height, width, -1)


def _unfilter(kind: int, line: np.ndarray, above: np.ndarray, step: int) -> np.ndarray:
    """Return the bytes of a row, of which a file has the differences from what is guessed."""
    if kind == 0:
        return line
    if kind == 1:
        return np.cumsum(line.reshape(-1, step), 0, dtype=np.uint8).ravel()
    if kind == 2:
        return line + above
    made, known = bytearray(step), bytes(step) + above.tobytes()
    for i, byte in enumerate(line.tolist()):
        left, up, corner = made[i], known[i + step], known[i]
        guess = (left + up) // 2
        if kind == 4:  # the nearest of the three to left + up - corner
            far = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
            guess = (left, up, corner)[far.index(min(far))]
        made.append((byte + guess) & 255)
    return np.frombuffer(bytes(made[step:]), np.uint8)


def with_channels(pixels: np.ndarray, channels: int) -> np.ndarray:
    """Return pixels as gray (1), RGB (3) or RGBA (4); as they are for 0."""
    if not channels:
        return pixels
    depth = pixels.shape[-1]
    color = pixels[..., : 3 if depth > 2 else 1]
    if channels == 1 and depth > 2:
        color = ((color.astype(np.int64) @ WEIGHTS + 16384) >> 15).astype(np.uint16)[..., None]
    if channels > 1 and depth < 3:
        color = np.repeat(color, 3, -1)
    if channels < 4:
        return color
    alpha = np.full_like(color[..., :1], 65535) if depth % 2 else pixels[..., -1:]
    return np.concatenate([color, alpha], -1)


def write(pixels: np.ndarray, level: int) -> bytes:
    """Return a file of pixels: uint16 of shape [height, width, channels]."""
    height, width, depth = pixels.shape
    flat = pixels.astype(">u2").view(np.uint8).reshape(height, -1)
    lines = np.diff(flat, axis=0, prepend=np.zeros_like(flat[:1]))  # less what is above
    kind = next(kind for kind, count in _DEPTHS.items() if count == depth)
    parts = (
        (b"IHDR", struct.pack(_HEAD, width, height, 16, kind, 0, 0, 0)),
        (b"IDAT", zlib.compress(np.insert(lines, 0, 2, axis=1).tobytes(), level)),
        (b"IEND", b""),
    )
    return _SIGN + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts
    )
