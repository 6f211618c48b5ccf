"""The vendored digits are the ones their README describes, and the split never changes."""

from __future__ import annotations

import hashlib
from importlib import resources

import numpy as np
import pytest

from jaxvars.demo import digits as _digits

DATA = resources.files("jaxvars") / "data"


@pytest.fixture(scope="module")
def digits() -> _digits.Digits:
    return _digits.load()


def sha256(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


@pytest.mark.parametrize(("name", "shape"), [("images", (1797, 8, 8)), ("labels", (1797,))])
def test_the_file_is_what_its_readme_says(name: str, shape: tuple[int, ...]) -> None:
    with (DATA / "digits.npz").open("rb") as file, np.load(file, allow_pickle=False) as archive:
        assert sorted(archive.files) == ["images", "labels"]
        array = archive[name]
    assert (array.dtype, array.shape) == (np.uint8, shape)
    assert f"{name} {sha256(array)}" in (DATA / "README.md").read_text(encoding="utf-8")


def test_the_readme_names_source_and_licence() -> None:
    text = (DATA / "README.md").read_text(encoding="utf-8")
    for words in ("Alpaydin", "Kaynak", "1998", "CC BY 4.0", "10.24432/C50P49"):
        assert words in text


def test_shapes_and_dtypes(digits: _digits.Digits) -> None:
    assert [(a.dtype.name, a.shape) for a in digits] == [
        ("float32", (1437, 8, 8)),
        ("int32", (1437,)),
        ("float32", (360, 8, 8)),
        ("int32", (360,)),
    ]


def test_pixels_run_from_paper_to_ink(digits: _digits.Digits) -> None:
    for images in (digits.train_images, digits.test_images):
        assert images.min() == 0
        assert images.max() == 1
        assert np.array_equal(images * 16, np.round(images * 16))


def test_every_image_is_in_exactly_one_part(digits: _digits.Digits) -> None:
    with (DATA / "digits.npz").open("rb") as file, np.load(file, allow_pickle=False) as archive:
        rows = zip(archive["images"], archive["labels"], strict=True)
        expected = sorted(image.tobytes() + bytes([label]) for image, label in rows)
    images = np.concatenate([digits.train_images, digits.test_images]) * 16
    labels = np.concatenate([digits.train_labels, digits.test_labels])
    rows = zip(images.astype(np.uint8), labels, strict=True)
    assert sorted(image.tobytes() + bytes([label]) for image, label in rows) == expected


def test_each_digit_is_in_both_parts(digits: _digits.Digits) -> None:
    assert np.bincount(digits.train_labels, minlength=10).min() > 100
    assert np.bincount(digits.test_labels, minlength=10).min() >= 27


def test_the_split_never_changes(digits: _digits.Digits) -> None:
    images = (digits.test_images * 16).astype(np.uint8)
    assert sha256(images) == "4a104d33474ab936cd9669a5a7b803467a023c651bafde5edf4e3a34f1810cd6"


def test_every_call_gives_new_arrays(digits: _digits.Digits) -> None:
    again = _digits.load()
    again.train_images[:] = -1
    assert digits.train_images.min() == 0
    assert _digits.load().train_images.min() == 0
