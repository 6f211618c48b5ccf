"""`text_dataset_from_directory` of `tf.keras.utils`: Keras's own needs TensorFlow."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from jaxvars.tf.io import read_file
from jaxvars.tf.strings import substr


def strings_of_directory(
    directory: Any, labels: Any = "inferred", label_mode: str | None = "int",
    class_names: Any = None, batch_size: int | None = 32, max_length: int | None = None,
    shuffle: bool = True, seed: int | None = None, validation_split: float | None = None,
    subset: str | None = None, follow_links: bool = False, format: str = "tf",
    verbose: bool = True,
) -> Any:  # fmt: skip
    """Return a Dataset of what is in the files of a directory, and of their labels.

    See `keras.utils.text_dataset_from_directory`: the order is Keras's, for the same seed.
    """
    _check(labels, label_mode, class_names, format)
    files = importlib.import_module("keras.src.utils.dataset_utils")
    files.check_validation_split_arg(validation_split, subset, shuffle, seed)
    seed = int(np.random.randint(1_000_000)) if seed is None else seed  # noqa: NPY002 - as Keras
    labels = None if label_mode is None else labels
    paths, numbers, names = files.index_directory(
        directory, labels, formats=(".txt",), class_names=class_names, shuffle=shuffle, seed=seed,
        follow_links=follow_links, verbose=verbose,
    )  # fmt: skip
    if labels is not None and label_mode == "binary" and len(names) != 2:
        raise ValueError(
            'When passing `label_mode="binary"`, there must be exactly 2 class_names. Received: '
            f"class_names={names}"
        )

    def read(path: Any, *label: Any) -> Any:
        text = substr(read_file(path), 0, 2**31 - 1 if max_length is None else max_length)
        return (text, *label) if label else text

    found = []
    for part in ("training", "validation") if subset == "both" else (subset,):
        some = files.get_training_or_validation_split(paths, numbers, validation_split, part)
        if not some[0]:
            kind = f"{part} text" if subset == "both" else "text"
            raise ValueError(
                f"No {kind} files found in directory {directory}. Allowed format: .txt"
            )
        made = _pairs(some[0], some[1], label_mode, len(names or ()))
        if shuffle and (part, subset) != ("validation", "both"):
            made = made.shuffle(8 * batch_size if batch_size else 1024, seed=seed)
        made = made.map(read)
        made = (made.batch(batch_size) if batch_size else made).prefetch(-1)
        made.class_names = names
        found.append(made)
    return found if subset == "both" else found[0]


def _check(labels: Any, label_mode: Any, class_names: Any, format: str) -> None:
    is_list = isinstance(labels, list | tuple)
    for is_right, message in (
        (is_list or labels in ("inferred", None),
         f"`labels` should be a list/tuple of integers, 'inferred', or None. Received: {labels}"),
        (not is_list or not class_names,
         f'`class_names` can only be passed if `labels="inferred"`. Received: labels={labels}'),
        (label_mode in ("int", "categorical", "binary", None),
         f"`label_mode` must be 'int', 'categorical', 'binary', or None. Received: {label_mode}"),
        (format == "tf", f"`format` should be 'tf'. Received: format={format}"),
    ):  # fmt: skip
        if not is_right:
            raise ValueError(message)


def _pairs(paths: Any, labels: Any, mode: str | None, count: int) -> Any:
    """Return a Dataset of paths, with the labels as a mode has them."""
    datasets = importlib.import_module("jaxvars.tf.data").Dataset
    if labels is None:
        return datasets.from_tensor_slices((paths,))
    numbers: Any = np.asarray(labels, np.int32)
    if mode == "binary":
        numbers = numbers.astype(np.float32)[:, None]
    if mode == "categorical":
        numbers = np.eye(count, dtype=np.float32)[numbers]
    return datasets.from_tensor_slices((paths, numbers))
