"""Datasets of the files in a directory: what Keras on TensorFlow makes of them, in its order."""

from __future__ import annotations

import numpy as np
import pytest

from jaxvars import tf

pytestmark = pytest.mark.usefixtures("keras_on_jax")

NONE = 87654321  # the seed that stands for none: another test may have set one
WORDS = ["neg0", "neg1", "neg2", "negx", "pos0", "pos1", "pos2", "posx"]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letters")
    for kind in ("neg", "pos"):
        (folder / kind / "deep").mkdir(parents=True)
        for n in range(3):
            (folder / kind / f"{n}.txt").write_text(f"{kind}{n}")
        (folder / kind / "deep" / "x.txt").write_text(f"{kind}x")
        (folder / kind / "y.md").write_text("not a string")
    (folder / "neg" / "link").symlink_to(folder / "pos" / "deep")
    return folder


def read(root, epochs=1, **options):
    tf.random.set_seed(NONE)
    data = tf.keras.utils.text_dataset_from_directory(root, verbose=False, **options)
    parts = data if isinstance(data, list) else [data]
    return [
        tf.nest.map_structure(lambda x: np.asarray(x.numpy()).tolist(), batch)
        for part in parts
        for _ in range(epochs)
        for batch in part
    ]


def test_strings_and_labels_in_the_order_of_keras(root):
    first, second = read(root, 2, seed=3, batch_size=8)
    words, again = (
        "negx pos0 posx pos1 pos2 neg0 neg1 neg2",
        "pos1 neg1 negx neg0 posx pos0 pos2 neg2",
    )
    assert first == (words.encode().split(), [0, 1, 1, 1, 1, 0, 0, 0])
    assert second == (again.encode().split(), [1, 0, 0, 0, 1, 1, 1, 0])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"shuffle": False, "batch_size": 5, "max_length": 1},
         [([b"n", b"n", b"n", b"n", b"p"], [0, 0, 0, 0, 1]), ([b"p", b"p", b"p"], [1, 1, 1])]),
        ({"shuffle": False, "batch_size": 1, "label_mode": "categorical", "labels": [*range(8)]},
         [([word.encode()], [[float(i == n) for i in range(8)]]) for n, word in enumerate(WORDS)]),
        ({"shuffle": False, "label_mode": "binary"},
         [([word.encode() for word in WORDS], [[0.0]] * 4 + [[1.0]] * 4)]),
        ({"seed": 1, "label_mode": None},
         [[b"posx", b"neg2", b"pos2", b"negx", b"pos0", b"neg1", b"pos1", b"neg0"]]),
        ({"seed": 5, "validation_split": 0.3, "subset": "both", "batch_size": 3},
         [([b"neg2", b"pos0", b"pos1"], [0, 1, 1]), ([b"posx", b"neg1", b"neg0"], [1, 0, 0]),
          ([b"pos2", b"negx"], [1, 0])]),
        ({"shuffle": False, "class_names": ["pos", "neg"], "batch_size": None},
         [(word.encode(), int(word < "p")) for word in WORDS[4:] + WORDS[:4]]),
        ({"shuffle": False, "class_names": ["neg"], "follow_links": True},
         [([b"neg0", b"neg1", b"neg2", b"negx", b"posx"], [0] * 5)]),
    ],
)  # fmt: skip
def test_what_is_in_batches(root, options, expected):
    assert read(root, **options) == expected


def test_what_is_known_of_the_dataset(root):
    read_all = tf.keras.utils.text_dataset_from_directory
    data = read_all(root, label_mode="categorical", seed=1, verbose=False)
    assert data.class_names == ["neg", "pos"]
    shapes = [spec.shape.as_list() for spec in data.element_spec]
    assert (shapes, data.element_spec[0].dtype) == ([[None], [None, 2]], tf.string)
    layer = tf.keras.layers.TextVectorization(output_sequence_length=2)
    layer.adapt(data.map(lambda strings, _: strings))
    vectors = data.map(lambda strings, label: (layer(strings), label))
    assert vectors.element_spec[0].shape.as_list() == [None, 2]
    assert {tuple(row) for row in next(iter(vectors))[0].numpy().tolist()} == {
        (n, 0) for n in range(2, 10)
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label_mode": "x"}, "`label_mode` must be"),
        ({"labels": "x"}, "should be integers in a list"),
        ({"format": "grain"}, "`format` should be"),
        ({"label_mode": "binary", "class_names": ["pos"]}, "exactly 2 class_names"),
        ({"validation_split": 0.01, "subset": "both", "seed": 1, "class_names": ["pos"]},
         "No training text files found"),
    ],
)  # fmt: skip
def test_wrong_arguments(root, options, words):
    with pytest.raises(ValueError, match=words):
        read(root, **options)


# ---------------------------------------------------------------- images
@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    for c, kind in enumerate("xy"):
        (folder / kind).mkdir()
        for n in range(4):
            shape = (6 + n, 9 - n, 3)
            pixels = np.arange(np.prod(shape)).reshape(shape) * (3 + 2 * c + n) % 251
            image = tf.io.encode_png(tf.constant(pixels.astype(np.uint8)))
            tf.io.write_file(str(folder / kind / f"{n}.png"), image)
    return folder


def images_of(folder, **options):
    tf.random.set_seed(NONE)
    options = {"seed": 3, "verbose": False, "image_size": (4, 5), **options}
    return tf.keras.utils.image_dataset_from_directory(folder, **options)


@pytest.mark.parametrize(
    ("options", "shape", "kind", "first", "mean"),
    [
        ({}, [4, 5, 3], "float32", [69.3, 75.3, 81.3, 90.9], 117.798),
        ({"image_size": 4, "interpolation": "Nearest"}, [4, 4, 3], "uint8",
         [108, 114, 120, 144], 116.31),
        ({"crop_to_aspect_ratio": True}, [4, 5, 3], "float32",
         [217.8, 223.8, 229.8, 164.1], 117.275),
        ({"crop_to_aspect_ratio": True, "data_format": "channels_first"}, [3, 4, 5], "float32",
         [217.8, 164.1, 10.0, 31.6], 117.275),
        ({"pad_to_aspect_ratio": True, "color_mode": "grayscale"}, [4, 5, 1], "float32",
         [0.0, 89.5, 143.5, 0.0], 75.696),
        ({"color_mode": "rgba", "interpolation": "area"}, [4, 5, 4], "float32",
         [75.0, 81.0, 87.0, 255.0], 153.407),
    ],
)  # fmt: skip
def test_images_and_labels(pictures, options, shape, kind, first, mean):
    data = images_of(pictures, batch_size=8, **options)
    spec = data.element_spec[0]
    assert (spec.shape.as_list(), spec.dtype.name) == ([None, *shape], kind)
    [(images, labels)] = data
    assert images.shape.as_list() == [8, *shape]
    assert labels.numpy().tolist() == [0, 1, 1, 1, 1, 0, 0, 0]
    np.testing.assert_allclose(images.numpy().ravel()[:4], first, atol=1e-3)
    np.testing.assert_allclose(images.numpy().mean(dtype=np.float64), mean, atol=1e-3)


def test_parts_of_images(pictures):
    first, second = images_of(
        pictures, batch_size=4, validation_split=0.3, subset="both", label_mode="categorical"
    )
    assert first.class_names == second.class_names == ["x", "y"]
    assert [path[-5:] for path in second.file_paths] == ["0.png", "2.png"]
    assert [labels.shape.as_list() for _, labels in first] == [[4, 2], [2, 2]]
    alone = images_of(pictures, labels=None, batch_size=None, shuffle=False)
    assert alone.element_spec == tf.TensorSpec([4, 5, 3], tf.float32)
    assert len(list(alone)) == 8


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"color_mode": "x"}, "`color_mode` must be"),
        ({"image_size": (1, 2, 3)}, "two integers"),
        ({"interpolation": "x"}, "`interpolation` should be"),
        ({"crop_to_aspect_ratio": True, "pad_to_aspect_ratio": True}, "Only one of"),
        ({"validation_split": 0.01, "subset": "both"}, "No training images found"),
    ],
)
def test_wrong_arguments_of_images(pictures, options, words):
    with pytest.raises(ValueError, match=words):
        images_of(pictures, **options)


# ---------------------------------------------------------------- sounds
@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    for c, kind in enumerate("xy"):
        (folder / kind).mkdir()
        for n in range(3):
            samples = tf.reshape(tf.range(5 + n, dtype=tf.float32), [-1, 1]) / 16 + c / 4
            sound = tf.audio.encode_wav(samples, 8000)
            tf.io.write_file(str(folder / kind / f"{n}.wav"), sound)
    return folder


def sounds_of(folder, **options):
    tf.random.set_seed(NONE)
    options = {"seed": 3, "verbose": False, **options}
    return tf.keras.utils.audio_dataset_from_directory(folder, **options)


def test_sounds_and_labels(recordings):
    padded = sounds_of(recordings, batch_size=4)
    assert padded.class_names == ["x", "y"]
    (sounds, labels), (others, _) = padded
    assert (sounds.shape.as_list(), others.shape.as_list()) == ([4, 7, 1], [2, 7, 1])
    assert labels.numpy().tolist() == [1, 1, 1, 0]
    assert (16 * sounds.numpy()[0, :, 0]).tolist() == [4, 5, 6, 7, 8, 0, 0]
    [(ragged, _)] = sounds_of(recordings, ragged=True)
    assert ragged.row_lengths().numpy().tolist() == [5, 7, 6, 6, 5, 7]
    cut = sounds_of(
        recordings, batch_size=2, output_sequence_length=6, validation_split=0.5, subset="both"
    )
    assert isinstance(cut, tuple)
    assert cut[0].element_spec[0].shape.as_list() == [None, 6, None]
    assert [x.shape.as_list() for part in cut for x, _ in part] == [[2, 6, 1], [1, 6, 1]] * 2


def test_wrong_arguments_of_sounds(recordings):
    with pytest.raises(ValueError, match="Cannot set both"):
        sounds_of(recordings, ragged=True, output_sequence_length=6)
    with pytest.raises(NotImplementedError, match="tensorflow_io"):
        sounds_of(recordings, sampling_rate=16000)
