"""The handwritten digits that come with the package, split for training and testing.

Rule of this file: the split is the same on every machine and with every NumPy. It is made from
the raw stream of a bit generator, which NumPy promises to keep, unlike `Generator.permutation`.
"""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt

_HELD_OUT = 360  # of 1,797: a fifth
_SEED = 0


@final
class Digits(NamedTuple):
    """The digits in two parts; no image is in both.

    Attributes:
        train_images: float32, shape (1437, 8, 8), from 0 (paper) to 1 (ink).
        train_labels: int32, shape (1437,), the digit from 0 to 9.
        test_images: float32, shape (360, 8, 8).
        test_labels: int32, shape (360,).
    """

    train_images: npt.NDArray[np.float32]
    train_labels: npt.NDArray[np.int32]
    test_images: npt.NDArray[np.float32]
    test_labels: npt.NDArray[np.int32]


def load() -> Digits:
    """Read the digits and hold a shuffled fifth of them out.

    Source and licence stand in `jaxvars/data/README.md`.

    Returns:
        The training and the test part, as new arrays on every call.

    Example:
        >>> digits = load()
        >>> digits.train_images.shape, digits.test_images.shape
        ((1437, 8, 8), (360, 8, 8))
        >>> digits.test_labels[:5].tolist()
        [6, 2, 4, 2, 4]
    """
    path = resources.files("jaxvars") / "data" / "digits.npz"
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        images = archive["images"].astype(np.float32) / 16
        labels = archive["labels"].astype(np.int32)
    order = np.argsort(np.random.PCG64(_SEED).random_raw(len(labels)), kind="stable")
    train, test = order[:-_HELD_OUT], order[-_HELD_OUT:]
    return Digits(images[train], labels[train], images[test], labels[test])
