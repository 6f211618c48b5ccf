"""Datasets of the files in a directory, of `tf.keras.utils`: Keras's own need TensorFlow.

The order of the files is Keras's, for the same seed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxvars.objects.interpreter import load
from jaxvars.tf.arrays.places import transpose
from jaxvars.tf.audio import decode_wav
from jaxvars.tf.image.files import decode_image
from jaxvars.tf.image.resizing import resize, resize_with_pad
from jaxvars.tf.io import read_file
from jaxvars.tf.keras.adapter.keras import keras
from jaxvars.tf.strings import substr
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.specs import TensorSpec

_MODES = ("int", "categorical", "binary")
_IMAGES = (".bmp", ".gif", ".jpeg", ".jpg", ".png")
_METHODS = (
    "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic",
)  # fmt: skip
_CHANNELS = {"rgb": 3, "rgba": 4, "grayscale": 1}


# ---------------------------------------------------------------- strings
def strings_of_directory(
    directory: Any, labels: Any = "inferred", label_mode: str | None = "int",
    class_names: Any = None, batch_size: int | None = 32, max_length: int | None = None,
    shuffle: bool = True, seed: int | None = None, validation_split: float | None = None,
    subset: str | None = None, follow_links: bool = False, format: str = "tf",
    verbose: bool = True,
) -> Any:  # fmt: skip
    """Return a Dataset of what is in the files of a directory, and of their labels.

    See `keras.utils.text_dataset_from_directory`.
    """
    _check((format == "tf", f"`format` should be 'tf'. Received: format={format}"))

    def read(path: Any) -> Any:
        return substr(read_file(path), 0, 2**31 - 1 if max_length is None else max_length)

    files = _Files(directory, labels, label_mode, class_names, (".txt",), "text files")
    files.find(shuffle, seed, follow_links, verbose, (validation_split, subset))
    made = files.datasets(read, TensorSpec([], "string"), batch_size)
    return _batched(made, batch_size)


# ---------------------------------------------------------------- images
def images_of_directory(
    directory: Any, labels: Any = "inferred", label_mode: str | None = "int",
    class_names: Any = None, color_mode: str = "rgb", batch_size: int | None = 32,
    image_size: Any = (256, 256), shuffle: bool = True, seed: int | None = None,
    validation_split: float | None = None, subset: str | None = None,
    interpolation: str = "bilinear", follow_links: bool = False,
    crop_to_aspect_ratio: bool = False, pad_to_aspect_ratio: bool = False,
    data_format: str | None = None, format: str = "tf", verbose: bool = True,
) -> Any:  # fmt: skip
    """Return a Dataset of the images in a directory, and of their labels.

    See `keras.utils.image_dataset_from_directory`. Pillow reads the files.
    """
    size = [image_size] * 2 if isinstance(image_size, int) else list(image_size)
    method, depth = interpolation.lower(), _CHANNELS.get(color_mode, 0)
    _check(
        (format == "tf", f"`format` should be 'tf'. Received: format={format}"),
        (depth, f"`color_mode` must be one of {[*_CHANNELS]}. Received: color_mode={color_mode}"),
        (len(size) == 2, f"`image_size` must be two integers. Received: image_size={image_size}"),
        (method in _METHODS,
         f"`interpolation` should be one of {_METHODS}. Received: interpolation={method}"),
        (not (crop_to_aspect_ratio and pad_to_aspect_ratio),
         "Only one of `pad_to_aspect_ratio`, `crop_to_aspect_ratio` can be set to `True`."),
    )  # fmt: skip
    is_first = (data_format or keras().config.image_data_format()) == "channels_first"

    def read(path: Any) -> Any:
        image = decode_image(read_file(path), depth, expand_animations=False)
        if pad_to_aspect_ratio:
            image = resize_with_pad(image, *size, method=method)
        else:
            image = _crop(image, *size) if crop_to_aspect_ratio else image
            image = resize(image, size, method=method)
        return transpose(image, [2, 0, 1]) if is_first else image

    files = _Files(directory, labels, label_mode, class_names, _IMAGES, "images")
    files.find(shuffle, seed, follow_links, verbose, (validation_split, subset))
    shape = [depth, *size] if is_first else [*size, depth]
    spec = TensorSpec(shape, "uint8" if method == "nearest" else "float32")
    return _batched(files.datasets(read, spec, batch_size), batch_size, has_paths=True)


def _crop(image: Any, height: int, width: int) -> Any:
    """Return the middle of an image that has the ratio of a height and a width."""
    old_height, old_width = image.shape[:2]
    tall = int(np.float32(old_width * height) / np.float32(width))
    wide = int(np.float32(old_height * width) / np.float32(height))
    tall, wide = max(min(old_height, tall), 1), max(min(old_width, wide), 1)
    top, left = (old_height - tall) // 2, (old_width - wide) // 2
    return image[top : top + tall, left : left + wide]


# ---------------------------------------------------------------- sounds
def sounds_of_directory(
    directory: Any, labels: Any = "inferred", label_mode: str | None = "int",
    class_names: Any = None, batch_size: int | None = 32, sampling_rate: int | None = None,
    output_sequence_length: int | None = None, ragged: bool = False, shuffle: bool = True,
    seed: int | None = None, validation_split: float | None = None, subset: str | None = None,
    follow_links: bool = False, verbose: bool = True,
) -> Any:  # fmt: skip
    """Return a Dataset of the WAV files in a directory, and of their labels.

    See `keras.utils.audio_dataset_from_directory`.
    """
    length = output_sequence_length
    _check((not ragged or length is None, "Cannot set both `ragged` and `output_sequence_length`"))
    if sampling_rate is not None:
        raise NotImplementedError(
            "`sampling_rate` needs tensorflow_io: leave it out, and map what changes the rate."
        )

    def read(path: Any) -> Any:
        sound = decode_wav(read_file(path), desired_samples=-1 if length is None else length).audio
        return RaggedTensor.from_tensor(sound) if ragged else sound

    files = _Files(directory, labels, label_mode, class_names, (".wav",), "audio files")
    files.find(shuffle, seed, follow_links, verbose, (validation_split, subset))
    spec = None if ragged else TensorSpec([length, None])
    is_padded = length is None and not ragged
    found = []
    for made, names, _ in files.datasets(read, spec, batch_size):
        whole = made.prefetch(-1)
        if batch_size:
            whole = whole.padded_batch(batch_size) if is_padded else whole.batch(batch_size)
        whole.class_names = names
        found.append(whole)
    return tuple(found) if subset == "both" else found[0]


# ---------------------------------------------------------------- all
def _check(*conditions: tuple[Any, str]) -> None:
    for is_right, message in conditions:
        if not is_right:
            raise ValueError(message)


def _batched(parts: list[Any], size: int | None, *, has_paths: bool = False) -> Any:
    """Return one Dataset of batches, or a list of two."""
    found = []
    for made, names, paths in parts:
        whole = (made.batch(size) if size else made).prefetch(-1)
        whole.class_names = names
        if has_paths:
            whole.file_paths = paths
        found.append(whole)
    return found if len(found) == 2 else found[0]


class _Files:
    """The files of a directory, with their labels."""

    def __init__(
        self, directory: Any, labels: Any, label_mode: str | None, class_names: Any,
        formats: Sequence[str], kind: str,
    ) -> None:  # fmt: skip
        is_list = isinstance(labels, list | tuple)
        _check(
            (is_list or labels in ("inferred", None),
             f"`labels` should be integers in a list, 'inferred', or None. Received: {labels}"),
            (not is_list or not class_names,
             f'`class_names` can only be passed if `labels="inferred"`. Received: labels={labels}'),
            (label_mode in (*_MODES, None),
             f"`label_mode` must be one of {_MODES}, or None. Received: {label_mode}"),
        )  # fmt: skip
        self._directory, self._class_names = directory, class_names
        self._formats, self._kind = tuple(formats), kind
        self._mode = None if labels is None else label_mode
        self._labels = None if label_mode is None else labels

    def find(
        self, shuffle: bool, seed: Any, follow_links: bool, verbose: bool, split: tuple[Any, Any]
    ) -> None:
        """Find the files.

        Args:
            shuffle: whether in any order.
            seed: of the order.
            follow_links: to directories.
            verbose: whether to say how many there are.
            split: which share of them is for validation, and which part of them is wanted.
        """
        utils = importlib.import_module("keras.src.utils.dataset_utils")
        utils.check_validation_split_arg(*split, shuffle, seed)
        self._seed = int(np.random.randint(1_000_000)) if seed is None else seed  # noqa: NPY002
        self._is_mixed, self._subset = shuffle, split[1]
        paths, labels, self._names = utils.index_directory(
            self._directory, self._labels, formats=self._formats, class_names=self._class_names,
            shuffle=shuffle, seed=self._seed, follow_links=follow_links, verbose=verbose,
        )  # fmt: skip
        message = f'`label_mode="binary"` needs exactly 2 class_names. Received: {self._names}'
        _check((self._mode != "binary" or len(self._names) == 2, message))
        parts = ("training", "validation") if self._subset == "both" else (self._subset,)
        self._parts = [
            (part, *utils.get_training_or_validation_split(paths, labels, split[0], part))
            for part in parts
        ]

    def datasets(
        self, read: Callable[[Any], Any], spec: Any, batch_size: int | None
    ) -> list[tuple[Any, Any, Any]]:
        """Return a Dataset of what is read, the names of the classes and the paths of each part.

        Args:
            read: takes a path.
            spec: of what it returns; None if that has to be found.
            batch_size: of what is made of the Datasets.
        """
        for part, paths, _ in self._parts:
            kind = f"{part} {self._kind}" if self._subset == "both" else self._kind
            place = f"directory {self._directory}. Allowed formats: {self._formats}"
            _check((paths, f"No {kind} found in {place}"))
        found = []
        for part, paths, labels in self._parts:
            made = self._pairs(paths, labels)
            if self._is_mixed and (part, self._subset) != ("validation", "both"):
                made = made.shuffle(8 * batch_size if batch_size else 1024, seed=self._seed)
            found.append((_mapped(made, read, spec), self._names, paths))
        return found

    def _pairs(self, paths: Any, labels: Any) -> Any:
        """Return a Dataset of paths, with the labels as the mode has them."""
        datasets = load("jaxvars.tf.data").Dataset
        if labels is None:
            return datasets.from_tensor_slices((paths,))
        numbers: Any = np.asarray(labels, np.int32)
        if self._mode == "binary":
            numbers = numbers.astype(np.float32)[:, None]
        if self._mode == "categorical":
            numbers = np.eye(len(self._names), dtype=np.float32)[numbers]
        return datasets.from_tensor_slices((paths, numbers))


def _mapped(made: Any, read: Callable[[Any], Any], spec: Any) -> Any:
    """Return a Dataset of what is read at paths, of a spec that is known, beside the labels."""

    def load(path: Any, *label: Any) -> Any:
        return (read(path), *label) if label else read(path)

    given = made.element_spec
    mapped = made.map(load, num_parallel_calls=-1)
    if spec is None:
        return mapped
    known = (spec, *given[1:]) if len(given) > 1 else spec
    return mapped._like(mapped._kind, mapped._run, spec=lambda: known)
