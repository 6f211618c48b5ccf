"""StringLookup, IntegerLookup, TextVectorization: the numbers are TensorFlow's."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from jaxvars import tf

pytestmark = pytest.mark.usefixtures("keras_on_jax")

VOCABULARY = ["a", "b", "c", "d"]
ROWS = [["a", "c", "d", "d"], ["d", "z", "b", "z"]]
WORDS = [["b", "a", "zz"], ["a", "zz", "y"], ["x", "x", "[UNK]"], ["é", "ü", "A"]]
SENTENCES = ["The cat, sat on the mat!", "the DOG sat;  ", "don't  stop\tit\n", "", "héllo Ünï"]
PROBE = ["The cat sat on a dog", "", "it's héllo stop"]


def lookup(inputs=None, **options):
    layer = tf.keras.layers.StringLookup(vocabulary=VOCABULARY, **options)
    return layer(np.array(ROWS) if inputs is None else inputs).numpy().tolist()


def vectorizer(data=SENTENCES, **options):
    layer = tf.keras.layers.TextVectorization(**options)
    layer.adapt(data)
    return layer


# ---------------------------------------------------------------- StringLookup
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [[1, 3, 4, 4], [4, 0, 2, 0]]),
        ({"mask_token": ""}, [[2, 4, 5, 5], [5, 1, 3, 1]]),
        ({"num_oov_indices": 3}, [[3, 5, 6, 6], [6, 1, 4, 1]]),
        ({"output_mode": "multi_hot"}, [[0, 1, 0, 1, 1], [1, 0, 1, 0, 1]]),
        ({"output_mode": "count", "mask_token": ""}, [[0, 1, 0, 1, 2], [2, 0, 1, 0, 1]]),
        ({"output_mode": "count", "max_tokens": 6, "pad_to_max_tokens": True},
         [[0, 1, 0, 1, 2, 0], [2, 0, 1, 0, 1, 0]]),
    ],
)  # fmt: skip
def test_strings_become_indices(options, expected):
    assert lookup(**options) == expected


def test_shapes_of_rows_scalars_and_columns():
    assert lookup("a") == 1
    assert lookup("a", output_mode="one_hot") == [[0, 1, 0, 0, 0]]
    assert np.shape(lookup([["a"], ["b"]], output_mode="one_hot")) == (2, 5)
    assert np.shape(lookup(output_mode="one_hot")) == (2, 4, 5)
    assert np.shape(lookup(tf.constant([ROWS, ROWS, ROWS]), output_mode="count")) == (3, 4, 5)
    mask = {"mask_token": "a", "output_mode": "count"}
    layer = tf.keras.layers.StringLookup(vocabulary=["b"], **mask)
    assert layer(["a", "a", "b", "q"]).numpy().tolist() == [1, 1]  # the mask is not counted


def test_the_way_back_gives_strings():
    layer = tf.keras.layers.StringLookup(vocabulary=VOCABULARY, invert=True, mask_token="")
    found = layer([[1, 3, 4], [4, 0, 2]])
    assert found.dtype == tf.string
    assert found.numpy().tolist() == [[b"[UNK]", b"b", b"c"], [b"c", b"", b"a"]]


def test_weights_of_tokens():
    given = {"output_mode": "tf_idf", "idf_weights": [0.25, 0.75, 0.6, 0.4]}
    np.testing.assert_allclose(lookup(**given), [[0, 0.25, 0, 0.6, 0.8], [1, 0, 0.75, 0, 0.4]])
    layer = tf.keras.layers.StringLookup(output_mode="tf_idf")
    layer.adapt(["q", "p", "p", "q"])
    weight = np.log(1 + 4 / 3)
    np.testing.assert_allclose(layer(["q", "z"]), [weight, weight, 0], rtol=1e-6)


@pytest.mark.parametrize("form", ["list", "array", "dataset", "generator"])
def test_ties_are_sorted_downwards(form):
    data = {
        "list": WORDS,
        "array": np.array(WORDS),
        "dataset": tf.data.Dataset.from_tensor_slices(WORDS).batch(2),
        "generator": iter(WORDS),
    }[form]
    layer = tf.keras.layers.StringLookup()
    layer.adapt(data)
    assert layer.get_vocabulary() == ["[UNK]", "zz", "x", "a", "ü", "é", "y", "b", "A"]
    assert layer.vocabulary_size() == 9


def test_a_vocabulary_is_cut_after_the_special_tokens():
    layer = tf.keras.layers.StringLookup(max_tokens=4, mask_token="a", num_oov_indices=2)
    layer.adapt(WORDS)
    assert layer.get_vocabulary() == ["a", "[UNK]", "[UNK]", "zz"]
    assert layer.get_vocabulary(include_special_tokens=False) == ["zz"]


def test_a_vocabulary_from_a_file(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("a\nb\n")
    layer = tf.keras.layers.StringLookup(vocabulary=str(path))
    assert layer(["b", "q"]).numpy().tolist() == [2, 0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"vocabulary": ["a", "a"]}, "at least one repeated term"),
        ({"vocabulary": ["a", ""], "mask_token": ""}, "Found reserved mask token"),
        ({"vocabulary": VOCABULARY, "max_tokens": 3}, "larger than the maximum vocab size"),
        ({"vocabulary": []}, "Cannot set an empty vocabulary"),
        ({"output_mode": "x"}, "Unknown value for `output_mode`"),
        ({"invert": True, "output_mode": "count"}, "`output_mode` must be `'int'`"),
        ({"sparse": True, "output_mode": "count"}, "sparse=True"),
        ({"pad_to_max_tokens": True}, "must set `max_tokens`"),
        ({"foo": 1}, "Unrecognized keyword"),
    ],
)
def test_wrong_arguments(options, words):
    with pytest.raises(ValueError, match=words):
        tf.keras.layers.StringLookup(**options)


def test_unknown_tokens_are_refused_and_named_without_a_place_for_them():
    with pytest.raises(tf.errors.InvalidArgumentError, match="found OOV values"):
        lookup(num_oov_indices=0)
    with pytest.raises(tf.errors.FailedPreconditionError, match="set the vocabulary"):
        tf.keras.layers.StringLookup()(["a"])
    for layer, given in (
        (tf.keras.layers.StringLookup(vocabulary=["a"], num_oov_indices=0), tf.constant(["z"])),
        (tf.keras.layers.IntegerLookup(vocabulary=[1], num_oov_indices=0), tf.constant([7])),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match="num_oov_indices=0"):
            tf.function(lambda x, layer=layer: layer(x))(given)


def test_ragged_tensors_are_looked_up():
    letters = tf.strings.unicode_split(["abz", "", "d"], "UTF-8")
    ids = tf.keras.layers.StringLookup(vocabulary=VOCABULARY)
    found = ids(letters)
    assert found.to_list() == [[1, 2, 0], [], [4]]
    back = tf.keras.layers.StringLookup(vocabulary=ids.get_vocabulary(), invert=True)
    assert tf.strings.reduce_join(back(found), axis=-1).numpy().tolist() == [b"ab[UNK]", b"", b"d"]
    many = tf.keras.layers.StringLookup(vocabulary=VOCABULARY, output_mode="count")
    assert many(letters).numpy().tolist() == [[1, 1, 1, 0, 0], [0] * 5, [0, 0, 0, 0, 1]]


def test_tokens_of_another_type_are_refused():
    for layer, given in (("StringLookup", [1]), ("IntegerLookup", ["a"])):
        made = getattr(tf.keras.layers, layer)(vocabulary=["1"] if layer[0] == "S" else [1])
        with pytest.raises(tf.errors.UnimplementedError, match=r"Cast .* is not supported"):
            made(tf.constant(given))


def test_a_mask_on_the_way_back_in_a_function():
    back = tf.keras.layers.StringLookup(vocabulary=["a"], invert=True, mask_token="")
    expected = [b"", b"[UNK]", b"a", b"[UNK]"]
    assert tf.function(lambda x: back(x))(tf.constant([0, 1, 2, 9])).numpy().tolist() == expected


# ---------------------------------------------------------------- IntegerLookup
def test_integers_become_indices_eager_and_compiled():
    layer = tf.keras.layers.IntegerLookup(vocabulary=[5, 6, 7, 8], num_oov_indices=3, mask_token=0)
    x = tf.constant([[5, 7, 0, 8], [8, 99, 6, -4]])
    expected = [[4, 6, 0, 7], [7, 1, 5, 3]]
    assert layer(x).numpy().tolist() == tf.function(layer)(x).numpy().tolist() == expected
    hot = tf.keras.layers.IntegerLookup(vocabulary=[3, 5, 9], output_mode="multi_hot")
    found = tf.function(lambda x: hot(x))(tf.constant([[3, 9], [4, 4]]))
    assert found.numpy().tolist() == [[0, 1, 0, 1], [1, 0, 0, 0]]


def test_integers_are_learned():
    layer = tf.keras.layers.IntegerLookup(mask_token=0)
    layer.adapt(np.array([5, 3, 3, -1, 0]))
    assert layer.get_vocabulary() == [0, -1, 3, 5]


# ---------------------------------------------------------------- TextVectorization
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [[2, 12, 3, 6, 1, 11], [0] * 6, [1, 9, 5, 0, 0, 0]]),
        ({"output_sequence_length": 2}, [[2, 12], [0, 0], [1, 9]]),
        ({"max_tokens": 4}, [[2, 1, 3, 1, 1, 1], [0] * 6, [1, 1, 1, 0, 0, 0]]),
        ({"output_mode": "count", "max_tokens": 4}, [[4, 1, 1, 0], [0] * 4, [3, 0, 0, 0]]),
    ],
)
def test_sentences_become_indices(options, expected):
    assert vectorizer(**options)(PROBE).numpy().tolist() == expected


def test_rows_of_words_may_be_ragged():
    layer = vectorizer(["x y", "x"], ragged=True)
    assert layer(["x y", "q", ""]).to_list() == [[2, 3], [1], []]
    assert layer(["", ""]).to_list() == [[], []]
    assert tf.function(lambda s: layer(s).to_tensor())(
        tf.constant(["x y", "q"])
    ).numpy().tolist() == [[2, 3], [1, 0]]
    assert layer.get_config()["ragged"] is True
    with pytest.raises(ValueError, match="ragged=True"):
        tf.keras.layers.TextVectorization(ragged=True, output_mode="count")


def test_standards_splits_and_ngrams():
    assert vectorizer(standardize="lower").get_vocabulary()[2:6] == ["the", "Ünï", "stop", "sat;"]
    by_letters = vectorizer(split="character", data=["abb", "c b"])
    assert by_letters.get_vocabulary() == ["", "[UNK]", "b", "c", "a", " "]
    pairs = vectorizer(ngrams=2, data=["a b c", "b c"])
    assert pairs.get_vocabulary() == ["", "[UNK]", "c", "b c", "b", "a b", "a"]
    assert pairs(["b c a"]).numpy().tolist() == [[4, 2, 6, 3, 1]]
    own = vectorizer(
        data=["X-y", "y"],
        standardize=tf.strings.upper,
        split=lambda words: tf.strings.split(words, "-"),
    )
    assert own.get_vocabulary() == ["", "[UNK]", "Y", "X"]


def test_a_layer_in_a_dataset_and_as_a_batch():
    layer = tf.keras.layers.TextVectorization(vocabulary=["cat", "dog"])
    assert layer([["a dog"], ["cat"]]).numpy().tolist() == [[1, 3], [2, 0]]
    rows = tf.data.Dataset.from_tensor_slices((["cat", "dog dog"], [0, 1])).batch(2)
    words, _ = next(iter(rows.map(lambda x, y: (layer(x), y))))
    assert words.numpy().tolist() == [[2, 0], [3, 3]]
    with pytest.raises(ValueError, match="last shape dimension must be 1"):
        layer([["a", "b"]])


@pytest.mark.parametrize("mode", ["int", "tf_idf"])
def test_a_model_of_strings_is_saved_and_loaded(tmp_path, mode):
    words = vectorizer(output_mode=mode)
    model = tf.keras.Sequential([tf.keras.Input((1,), dtype=tf.string), words])
    model.save(tmp_path / "model.keras")
    again = tf.keras.models.load_model(tmp_path / "model.keras")
    x = tf.constant(PROBE)[:, None]
    assert again(x).numpy().tolist() == model(x).numpy().tolist()
    assert again.layers[0].get_vocabulary() == words.get_vocabulary()
    twin = type(words).from_config(words.get_config())
    sizes = {"vocabulary_size": None}
    assert twin.get_config() | sizes == words.get_config() | sizes


# ---------------------------------------------------------------- models of strings
def test_a_model_takes_strings_and_is_trained():
    words = tf.keras.layers.TextVectorization(output_sequence_length=4)
    strings = ["good movie", "bad movie", "good good", "bad bad film"]
    words.adapt(strings)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [words, layers.Embedding(10, 4), layers.GlobalAveragePooling1D(), layers.Dense(1)]
    )
    model.compile(tf.keras.optimizers.Adam(0.1), "mse")
    data = tf.data.Dataset.from_tensor_slices((strings, [1.0, 0.0, 1.0, 0.0])).batch(2)
    losses = model.fit(data, epochs=8, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 2
    found = model.predict(tf.constant(strings), verbose=0)
    np.testing.assert_allclose(found, model(tf.constant(strings)), rtol=1e-5)


@pytest.mark.parametrize("kind", [tf.constant, lambda x: np.array(x, object)])
def test_tensors_of_strings_are_trained_on_with_targets(kind):
    words, targets = kind(["a", "b", "c", "z", "a"]), np.array([1.0, 0, 1, 0, 1], np.float32)
    layer = tf.keras.layers.StringLookup(vocabulary=VOCABULARY, output_mode="one_hot")
    model = tf.keras.Sequential([layer, tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    history = model.fit(words, targets, 2, 3, verbose=0, validation_data=(words, targets)).history
    assert len(history["val_loss"]) == 3
    assert model.evaluate(words, targets, verbose=0) == pytest.approx(history["val_loss"][-1])
    weighted = model.evaluate(words, targets, verbose=0, sample_weight=np.zeros(5, np.float32))
    assert weighted == 0


def test_strings_and_numbers_side_by_side():
    layers = tf.keras.layers
    a, b = tf.keras.Input((1,), dtype=tf.string, name="a"), tf.keras.Input((1,), name="b")
    hot = layers.CategoryEncoding(4, output_mode="one_hot")(
        layers.StringLookup(vocabulary=["x", "y", "z"])(a)
    )
    last = layers.Dense(1, kernel_initializer="ones")
    model = tf.keras.Model({"a": a, "b": b}, last(layers.concatenate([hot, b])))
    model.compile("sgd", "mse")
    rows = {"a": [["x"], ["y"], ["q"]], "b": [[1.0], [2.0], [3.0]]}
    data = tf.data.Dataset.from_tensor_slices((rows, [1.0, 0.0, 2.0])).batch(2)
    losses = model.fit(data, epochs=2, verbose=0).history["loss"]
    np.testing.assert_allclose(losses, [4.3542, 2.788], rtol=1e-4)


def test_normalization_learns_from_a_dataset():
    layer = tf.keras.layers.Normalization()
    layer.adapt(tf.data.Dataset.from_tensor_slices([[1.0], [2.0], [6.0]]).batch(2))
    np.testing.assert_allclose(layer([[1.0], [2.0]]), [[-0.92582], [-0.46291]], rtol=1e-5)


# ---------------------------------------------------------------- what tutorials do
def test_predictions_for_a_dict_of_strings_and_numbers():
    layers = tf.keras.layers
    a, b = tf.keras.Input((1,), dtype=tf.string, name="a"), tf.keras.Input((1,), name="b")
    hot = layers.StringLookup(vocabulary=["x"], output_mode="one_hot")(a)
    model = tf.keras.Model({"a": a, "b": b}, layers.concatenate([hot, b]))
    given = {"a": tf.constant(["x", "q"]), "b": tf.constant([1.0, 2.0])}
    assert model.predict(given, verbose=0).tolist() == [[0, 1, 1], [1, 0, 2]]


class Column:
    """What a table of pandas has, as far as it counts here."""

    def __init__(self, values):
        self.values = np.array(values)
        self.dtype, self.shape = self.values.dtype, self.values.shape

    def to_numpy(self):
        return self.values

    def __array__(self, *args, **kwargs):
        return self.values.__array__(*args, **kwargs)


@pytest.mark.parametrize("kind", [np.array, Column, lambda x: np.array(x, object), tf.constant])
def test_a_model_is_called_with_strings_of_numpy_and_columns_of_tables(kind):
    layers = tf.keras.layers
    a, b = tf.keras.Input((), dtype=tf.string, name="a"), tf.keras.Input((2,), name="b")
    hot = layers.StringLookup(vocabulary=["x"], output_mode="one_hot")(a)
    model = tf.keras.Model({"a": a, "b": b}, layers.concatenate([hot, b]))
    numbers = Column([[1.0, 2.0]] * 2) if kind is Column else np.array([[1.0, 2.0]] * 2)
    found = model({"a": kind(["x", "q"]), "b": numbers})
    assert found.numpy().tolist() == [[0, 1, 1, 2], [1, 0, 1, 2]]


def test_what_normalization_has_learned_is_a_tensor():
    layer = tf.keras.layers.Normalization()
    assert layer.mean is None
    layer.adapt(np.float32([[1, 2], [3, 5]]))
    assert isinstance(layer.variance, tf.Tensor)
    assert layer.mean.numpy().tolist() == [[2, 3.5]]
    model = tf.keras.Sequential([layer])
    assert model(np.float32([[3, 5]])).numpy().tolist() == [[1, 1]]


def test_a_decorator_of_keras_returns_what_it_decorates():
    @tf.keras.utils.register_keras_serializable(package="tests")
    def doubled(x):
        return 2 * x

    assert doubled(2) == 4


def test_a_program_may_delete_the_mask_of_a_tensor():
    layer = tf.keras.layers.Embedding(4, 2, mask_zero=True)
    found = layer(tf.constant([[1, 0]]))
    assert np.asarray(found._keras_mask).tolist() == [[True, False]]
    del found._keras_mask
    assert not hasattr(found, "_keras_mask")
    assert not hasattr(tf.constant([1.0]), "_keras_mask")


@pytest.mark.parametrize(
    ("options", "shapes", "last"),
    [
        ({}, [(2, 3), (2, 3), (1, 3)], [4, 5, 6]),
        ({"sequence_stride": 2}, [(2, 3), (1, 3)], [4, 5, 6]),
        ({"sampling_rate": 2}, [(2, 3), (1, 3)], [2, 4, 6]),
        ({"batch_size": None, "start_index": 3}, [(3,), (3,)], [4, 5, 6]),
    ],
)
def test_windows_of_a_series(options, shapes, last):
    make = tf.keras.utils.timeseries_dataset_from_array
    rows = list(make(np.arange(9), None, 3, end_index=7, **{"batch_size": 2, **options}))
    assert [tuple(row.shape) for row in rows] == shapes
    assert rows[-1].numpy().reshape(-1, 3)[-1].tolist() == last


def test_windows_with_targets():
    make = tf.keras.utils.timeseries_dataset_from_array
    ((x, y),) = make(np.arange(6.0), np.arange(6)[2:] * 10, sequence_length=3)
    assert x.numpy().tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]]
    assert y.numpy().tolist() == [20, 30, 40, 50]


def test_a_model_in_the_old_format_knows_its_optimizer(tmp_path):
    pytest.importorskip("h5py")
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.Adam(0.5), tf.keras.losses.MeanSquaredError())
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    model.save(tmp_path / "model.h5")
    again = tf.keras.models.load_model(tmp_path / "model.h5")
    assert type(again.optimizer).__name__ == type(model.optimizer).__name__ == "Adam"


def test_a_checkpoint_holds_a_model_with_a_vocabulary(tmp_path):
    words = tf.keras.layers.TextVectorization(vocabulary=["a"])
    model = tf.keras.Sequential([words, tf.keras.layers.Embedding(3, 2)])
    first = model(tf.constant(["a b"])).numpy()
    path = tf.train.Checkpoint(model=model).save(str(tmp_path / "ck"))
    model.layers[1].embeddings.assign(np.zeros((3, 2)))
    tf.train.Checkpoint(model=model).restore(path)
    assert model(tf.constant(["a b"])).numpy().tolist() == first.tolist()


@pytest.fixture
def wide_numbers_in_all_threads():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)  # as tests/conftest.py has it


@pytest.mark.usefixtures("wide_numbers_in_all_threads")
def test_letters_are_generated_as_by_tensorflow():
    known, layers = sorted(set("the letters of a café, you know?")), tf.keras.layers
    number = layers.StringLookup(vocabulary=known, mask_token=None)
    known = number.get_vocabulary()
    letter = layers.StringLookup(vocabulary=known, invert=True, mask_token=None)
    table, out = layers.Embedding(len(known), 6), layers.Dense(len(known))
    memory = layers.GRU(8, return_sequences=True, return_state=True)
    out(memory(table(tf.constant([[1]])))[0])
    for weight in (w for layer in (table, memory, out) for w in layer.weights):
        weight.assign(3 * np.sin(np.arange(np.prod(weight.shape)) ** 2 + 1.0).reshape(weight.shape))
    never = tf.constant([float("-inf")] + [0.0] * (len(known) - 1))  # an unknown letter

    @tf.function
    def write_one(given, states=None):
        ids = number(tf.strings.unicode_split(given, "UTF-8")).to_tensor()
        x, states = memory(table(ids), initial_state=states)
        logits = out(x)[:, -1, :] / 1e-3 + never  # so cold that nothing is left to chance
        drawn = tf.random.categorical(logits, num_samples=1)
        return letter(tf.squeeze(drawn, axis=-1)), states

    states, given = None, tf.constant(["the", "you"])
    written = [given]
    for _ in range(12):
        given, states = write_one(given, states=states)
        written.append(given)
    found = [x.decode() for x in tf.strings.join(written).numpy()]
    assert found == ["theykyykyykyyky", "youcfwwwf wwfww"]
    assert write_one.experimental_get_tracing_count() == 2


# ---------------------------------------------------------------- ragged tensors of numbers
class Averages(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.rows = tf.keras.layers.Embedding(5, 2)
        self.last = tf.keras.layers.Dense(1)

    def call(self, x):
        return self.last(tf.reduce_mean(self.rows(x), axis=1))


@pytest.mark.filterwarnings("ignore:__array__ impl:DeprecationWarning")  # Keras's own variables
def test_a_model_embeds_the_values_of_ragged_tensors():
    model, x = Averages(), tf.ragged.constant([[1, 2], [3], [1, 1, 4]])
    found = model(x)
    [table], last = model.rows.get_weights(), model.last
    means = np.stack([table[[1, 2]].mean(0), table[[3]].mean(0), table[[1, 1, 4]].mean(0)])
    np.testing.assert_allclose(found, last(means), rtol=1e-5)
    np.testing.assert_allclose(tf.function(model)(x), found, rtol=1e-5)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(model(x))
    kernel = last.get_weights()[0][:, 0]
    change = tf.convert_to_tensor(tape.gradient(y, model.rows.embeddings))
    np.testing.assert_allclose(change[1], kernel * (1 / 2 + 2 / 3), rtol=1e-5)
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((x, tf.ones([3, 1]))).batch(3)
    assert model.fit(data, epochs=2, verbose=0).history["loss"][1] < 10


def test_other_layers_say_what_to_do_with_ragged_tensors():
    x = tf.ragged.constant([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], ragged_rank=1)
    dense = tf.keras.layers.Dense(1)
    with pytest.raises(TypeError, match=r"Dense takes no ragged tensors.*tf\.ragged\.map_flat_va"):
        dense(x)
    with pytest.raises(TypeError, match="Add takes no ragged tensors"):
        tf.keras.layers.Add()([x, x])
    assert tf.ragged.map_flat_values(dense, x).shape.as_list() == [2, None, 1]
