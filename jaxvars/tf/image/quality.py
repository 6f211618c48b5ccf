"""How much images are alike: `ssim` and the like; and their edges.

Source: Wang, Bovik, Sheikh, Simoncelli, "Image quality assessment: from error visibility to
structural similarity", 2004; Wang, Simoncelli, Bovik, "Multiscale structural similarity", 2003.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.image.colors import convert_type
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.static import refused
from jaxvars.typing import Array


def _both(a: Array, b: Array, max_val: Any) -> tuple[Array, Array, Array]:
    """Return two images and their largest value as floats."""
    if a.shape[-3:] != b.shape[-3:]:
        raise Refused(ValueError(f"Shapes {a.shape} and {b.shape} are incompatible"))
    given = max_val if isinstance(max_val, int | float) else _convert.to_array(max_val)
    top = convert_type(jnp.asarray(given).astype(a.dtype), np.float32)
    return convert_type(a, np.float32), convert_type(b, np.float32), top


@op("image.ssim", "img1 img2", kinds="float int", example="p(12, 13, 2), p(12, 13, 2), 1.0")
def ssim(
    img1: Array, img2: Array, max_val: Any, filter_size: int = 11, filter_sigma: float = 1.5,
    k1: float = 0.01, k2: float = 0.03, return_index_map: bool = False,
) -> Array:  # fmt: skip
    """Return how much images are alike in structure: 1 if they are the same."""
    x, y, top = _both(img1, img2, max_val)
    _check_size(x, filter_size)
    light, contrast = _parts(x, y, top, int(filter_size), float(filter_sigma), k1, k2)
    whole = light * contrast
    return jnp.mean(whole if return_index_map else jnp.mean(whole, (-3, -2)), -1)


def _check_size(x: Array, size: int) -> None:
    if min(x.shape[-3:-1]) < size:
        raise refused(
            f"Images of {x.shape[-3]} by {x.shape[-2]} are smaller than the filter of size {size}."
        )


@functools.partial(jax.jit, static_argnums=(3, 4))
def _parts(
    x: Array, y: Array, top: Array, size: int, sigma: float, k1: float, k2: float
) -> tuple[Array, Array]:
    """Return how much the lightness and the contrast of each place are alike."""
    blur = functools.partial(_blur, kernel=_gaussian(size, sigma))
    c1, c2 = (k1 * top) ** 2, (k2 * top) ** 2
    mean_x, mean_y = blur(x), blur(y)
    product, squares = mean_x * mean_y * 2, mean_x**2 + mean_y**2
    light = (product + c1) / (squares + c1)
    return light, (blur(x * y) * 2 - product + c2) / (blur(x**2 + y**2) - squares + c2)


def _gaussian(size: int, sigma: float) -> np.ndarray:
    places = np.arange(size) - (size - 1) / 2
    weights = np.exp(-(places**2) / (2 * sigma**2))
    return (weights / weights.sum()).astype(np.float32)


def _blur(x: Array, kernel: np.ndarray) -> Array:
    for axis in (x.ndim - 3, x.ndim - 2):
        count = x.shape[axis] - len(kernel) + 1
        total: Any = sum(
            weight * jax.lax.slice_in_dim(x, i, i + count, axis=axis)
            for i, weight in enumerate(kernel)
        )
        x = total
    return x


@op("image.ssim_multiscale", "img1 img2", kinds="float int")
def ssim_multiscale(
    img1: Array, img2: Array, max_val: Any,
    power_factors: Sequence[float] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
    filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03,
) -> Array:  # fmt: skip
    """Return how much images are alike in structure, at several scales.

    Example:
    `tf.image.ssim_multiscale(p(9, 8, 1), tf.ones([9, 8, 1]), 1.0, (0.5, 0.5), filter_size=3)`.
    """
    x, y, top = _both(img1, img2, max_val)
    found: list[Array] = []
    for i in range(len(power_factors)):
        if i:
            x, y = _halve(x), _halve(y)
        _check_size(x, filter_size)
        light, contrast = _parts(x, y, top, int(filter_size), float(filter_sigma), k1, k2)
        last = i == len(power_factors) - 1
        found.append(jax.nn.relu(jnp.mean(light * contrast if last else contrast, (-3, -2))))
    powers = np.asarray(power_factors, np.float32)
    return jnp.mean(jnp.prod(jnp.stack(found, -1) ** powers, -1), -1)


@jax.jit
def _halve(x: Array) -> Array:
    """Return images of half the size: means of four pixels."""
    pads = [(0, 0)] * (x.ndim - 3) + [(0, n % 2) for n in x.shape[-3:-1]] + [(0, 0)]
    x = jnp.pad(x, pads, mode="symmetric")
    *batch, height, width, depth = x.shape
    return x.reshape(*batch, height // 2, 2, width // 2, 2, depth).mean((-4, -2))


# ---------------------------------------------------------------- edges
@op("image.sobel_edges", "image", kinds="float", example="r(1, 3, 4, 2)")
@jax.jit
def sobel_edges(image: Array) -> Array:
    """Return how fast each pixel changes downwards and to the right, by Sobel's filter."""
    if image.ndim != 4:
        raise refused(f"An image of shape {list(image.shape)} is not a batch of 4 dimensions.")
    x = jnp.pad(image, [(0, 0), (1, 1), (1, 1), (0, 0)], mode="reflect")
    smooth, step = (1, 2, 1), (-1, 0, 1)
    pairs = [(step, smooth), (smooth, step)]
    return jnp.stack([_filter(x, *pair) for pair in pairs], -1)


def _filter(x: Array, down: tuple[int, ...], across: tuple[int, ...]) -> Array:
    height, width = x.shape[1] - 2, x.shape[2] - 2
    rows: Any = sum(n * x[:, i : i + height] for i, n in enumerate(down) if n)
    made: Any = sum(n * rows[:, :, i : i + width] for i, n in enumerate(across) if n)
    return made


@op("image.image_gradients", "image", kinds="float int", example="r(1, 3, 4, 2)")
def image_gradients(image: Array) -> tuple[Array, Array]:
    """Return the differences of each pixel from the next ones, below and to the right."""
    if image.ndim != 4:
        raise Refused(
            ValueError(
                "image_gradients expects a 4D tensor [batch_size, h, w, d], not "
                f"{tuple(image.shape)}."
            )
        )
    down = image[:, 1:] - image[:, :-1]
    across = image[:, :, 1:] - image[:, :, :-1]
    return (
        jnp.pad(down, [(0, 0), (0, 1), (0, 0), (0, 0)]),
        jnp.pad(across, [(0, 0), (0, 0), (0, 1), (0, 0)]),
    )
