"""`text_dataset_from_directory`: the order is that of Keras on TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

from jaxvars import tf

pytestmark = pytest.mark.usefixtures("keras_on_jax")

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
    tf.random.set_seed(87654321)  # what stands for none: another test may have set one
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
        ({"labels": "x"}, "should be a list/tuple of integers"),
        ({"format": "grain"}, "`format` should be"),
        ({"label_mode": "binary", "class_names": ["pos"]}, "exactly 2 class_names"),
        ({"validation_split": 0.01, "subset": "both", "seed": 1, "class_names": ["pos"]},
         "No training text files found"),
    ],
)  # fmt: skip
def test_wrong_arguments(root, options, words):
    with pytest.raises(ValueError, match=words):
        read(root, **options)
