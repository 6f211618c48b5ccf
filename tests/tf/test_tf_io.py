"""`tf.io`, `tf.lookup` and `tf.data` of files: what the table of operations cannot say.

What is expected here was looked up in TensorFlow 2.21.
"""

from __future__ import annotations

import base64
import io
import struct

import numpy as np
import PIL.Image
import pytest

from jaxvars import tf
from jaxvars.tf.io.records import crc32c

KeyValues = tf.lookup.KeyValueTensorInitializer


# ---------------------------------------------------------------- records
def bitwise(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize("size", [0, 1, 9, 2048, 2049, 4097, 10_001])
def test_the_checksum_is_crc32c(size):
    data = np.random.default_rng(size).bytes(size)
    assert crc32c(data) == bitwise(data)


def test_records_are_those_of_tensorflow(tmp_path):
    path = str(tmp_path / "a.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(b"x")
        writer.write(tf.constant("text"))
    data = (tmp_path / "a.tfrecord").read_bytes()
    assert data[:17] == bytes.fromhex("01000000000000000175de4178503daa61")
    assert [x.numpy() for x in tf.data.TFRecordDataset(path)] == [b"x", b"text"]
    with pytest.raises(tf.errors.FailedPreconditionError, match="previously closed"):
        writer.write(b"more")


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_compressed_records(tmp_path, kind):
    path = str(tmp_path / "a.tfrecord")
    with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type=kind)) as writer:
        writer.write(b"hello" * 100)
    assert (tmp_path / "a.tfrecord").stat().st_size < 100
    (record,) = tf.data.TFRecordDataset([path], compression_type=kind)
    assert record.numpy() == b"hello" * 100


def test_damaged_records(tmp_path):
    path = tmp_path / "a.tfrecord"
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(b"hello")
    whole = path.read_bytes()
    for data, message in [
        (whole[:-3], "truncated record at 0"),
        (whole[:13] + b"E" + whole[14:], "corrupted record at 0"),
        (struct.pack("<Q", 9) + whole[8:], "Is this even a TFRecord file"),
    ]:
        path.write_bytes(data)
        with pytest.raises(tf.errors.DataLossError, match=message):
            list(tf.data.TFRecordDataset(path))
    with pytest.raises(tf.errors.NotFoundError, match="No such file"):
        list(tf.data.TFRecordDataset(str(tmp_path / "none")))


def test_records_of_one_size(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"HHaabbccF")
    found = tf.data.FixedLengthRecordDataset(path, 2, header_bytes=2, footer_bytes=1)
    assert [x.numpy() for x in found] == [b"aa", b"bb", b"cc"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Excess bytes 1"):
        list(tf.data.FixedLengthRecordDataset(path, 2, header_bytes=2))


def test_csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('a,b,c\n1,2.5,x\n3,,"y,""z\nw"\n')
    rows = tf.data.experimental.CsvDataset(str(path), [tf.int32, [0.5], tf.string], header=True)
    assert list(rows.as_numpy_iterator()) == [(1, 2.5, b"x"), (3, 0.5, b'y,"z\nw')]
    batches = tf.data.experimental.make_csv_dataset(
        str(path), 2, label_name="a", shuffle=False, num_epochs=1
    )
    ((features, label),) = batches.as_numpy_iterator()
    assert list(features) == ["b", "c"]
    assert features["b"].tolist() == [2.5, 0.0]
    assert label.tolist() == [1, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Field 1 is required but missing"):
        list(tf.data.experimental.CsvDataset(str(path), [tf.int32, tf.float32, ""], header=True))


def test_kept_in_files(tmp_path):
    calls = []
    dataset = tf.data.Dataset.range(3).map(lambda x: calls.append(0) or {"a": x, "b": (x, "t")})
    _ = dataset.element_spec
    calls.clear()
    dataset.save(str(tmp_path / "saved"), compression="GZIP")
    loaded = tf.data.Dataset.load(str(tmp_path / "saved"))
    assert loaded.element_spec == dataset.element_spec
    assert len(loaded) == 3
    assert [x["b"] for x in loaded.as_numpy_iterator()] == [(0, b"t"), (1, b"t"), (2, b"t")]
    calls.clear()
    for kept in (dataset.cache(str(tmp_path / "c")), dataset.snapshot(str(tmp_path / "s"))):
        next(iter(kept))  # not to its end: nothing is kept
        for _ in range(2):
            assert [int(x["a"]) for x in kept] == [0, 1, 2]
        assert len(calls) == 4
        calls.clear()
    with pytest.raises(tf.errors.NotFoundError, match="No dataset was saved there"):
        tf.data.Dataset.load(str(tmp_path / "none"))


def test_files_of_shards(tmp_path):
    tf.data.Dataset.range(6).save(str(tmp_path), shard_func=lambda x: x % 2)
    one_by_one = tf.data.Dataset.load(
        str(tmp_path), reader_func=lambda files: files.flat_map(lambda x: x)
    )
    assert [int(x) for x in one_by_one] == [0, 2, 4, 1, 3, 5]


# ---------------------------------------------------------------- examples
LISTS = {
    bytes: ("bytes_list", tf.train.BytesList),
    float: ("float_list", tf.train.FloatList),
    int: ("int64_list", tf.train.Int64List),
}


def example(**features):
    made = {}
    for key, values in features.items():
        name, kind = LISTS[type(values[0])]
        made[key] = tf.train.Feature(**{name: kind(value=values)})
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


def test_examples():
    texts = [example(a=[1, -2], s=[b"x"]), example(a=[3, 4], s=[b"y", b"z"], f=[0.5])]
    found = tf.io.parse_example(
        texts,
        {
            "a": tf.io.FixedLenFeature([2], tf.int64),
            "f": tf.io.FixedLenFeature([], tf.float32, 7.0),
            "s": tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True),
        },
    )
    assert found["a"].numpy().tolist() == [[1, -2], [3, 4]]
    assert found["f"].numpy().tolist() == [7.0, 0.5]
    assert found["s"].numpy().tolist() == [[b"x", b""], [b"y", b"z"]]
    sparse = tf.io.parse_example(texts, {"s": tf.io.VarLenFeature(tf.string)})["s"]
    assert sparse.indices.numpy().tolist() == [[0, 0], [1, 0], [1, 1]]
    assert sparse.dense_shape.numpy().tolist() == [2, 2]


def test_examples_with_rows():
    texts = [example(a=[5, 7], s=[b"x"]), example(s=[b"y", b"z"])]
    spec = {
        "a": tf.io.RaggedFeature(tf.int64),
        "words": tf.io.RaggedFeature(tf.string, "s", row_splits_dtype=tf.int64),
    }
    found = tf.io.parse_example(texts, spec)
    assert [x.to_list() for x in found.values()] == [[[5, 7], []], [[b"x"], [b"y", b"z"]]]
    assert [x.row_splits.dtype for x in found.values()] == [tf.int32, tf.int64]
    single = tf.io.parse_single_example(texts[1], spec)
    assert [single[key].numpy().tolist() for key in ("a", "words")] == [[], [b"y", b"z"]]
    with pytest.raises(ValueError, match="'a' has partitions, which are not read here"):
        tf.io.parse_example(texts, {"a": tf.io.RaggedFeature(tf.int64, "s", ["lengths"])})


def test_examples_with_sparse_tensors():
    texts = [example(i=[3, 0], j=[1, 0], w=[0.5, 2.0]), example(i=[1], j=[0], w=[7.0]), example()]
    one = tf.io.SparseFeature("i", "w", tf.float32, 5)
    two = tf.io.SparseFeature(["i", "j"], "w", tf.float32, [5, 2])
    found = tf.io.parse_example(texts, {"one": one, "two": two})
    assert parts_of(found["one"]) == [[[0, 0], [0, 3], [1, 1]], [2.0, 0.5, 7.0], [3, 5]]
    assert parts_of(found["two"])[::2] == [[[0, 0, 0], [0, 3, 1], [1, 1, 0]], [3, 5, 2]]
    single = tf.io.parse_single_example(texts[0], {"s": one._replace(already_sorted=True)})["s"]
    assert parts_of(single) == [[[3], [0]], [0.5, 2.0], [5]]
    for feature, error, message in (
        (one._replace(index_key=""), ValueError, "Missing index_key"),
        (one._replace(size=[5]), TypeError, "are both lists, or neither"),
        (one._replace(dtype=tf.int64), ValueError, "Data types don't match"),
    ):
        with pytest.raises(error, match=message):
            tf.io.parse_example(texts, {"s": feature})
    with pytest.raises(ValueError, match=r"has 1 values in 'w', and \[2\] indices in \['i'\]"):
        tf.io.parse_single_example(example(i=[3, 0], w=[0.5]), {"s": one})


def parts_of(sparse):
    return [x.numpy().tolist() for x in (sparse.indices, sparse.values, sparse.dense_shape)]


def test_sparse_tensors_as_strings():
    sparse = tf.SparseTensor([[0, 0], [1, 2]], [1.5, -2.0], [2, 3])
    whole, rows = tf.io.serialize_sparse(sparse), tf.io.serialize_many_sparse(sparse)
    assert (whole.shape, rows.shape) == ([3], [2, 3])
    assert rows[1, 1].numpy() == b'\x08\x01\x12\x04\x12\x02\x08\x01"\x04\x00\x00\x00\xc0'
    for text in (whole, rows):
        assert parts_of(tf.io.deserialize_many_sparse(text, tf.float32)) == parts_of(sparse)
    words = tf.SparseTensor([[0, 1]], ["a"], [1, 2])
    strings = tf.concat([tf.io.serialize_many_sparse(words)] * 2, 0)
    found = tf.io.deserialize_many_sparse(strings, tf.string, rank=2)
    assert parts_of(found) == [[[0, 1], [1, 1]], [b"a", b"a"], [2, 2]]
    for call, error, message in (
        (lambda: tf.io.deserialize_many_sparse(rows, tf.int32), ValueError, "Type mismatch"),
        (lambda: tf.io.deserialize_many_sparse(rows, tf.float32, 3), ValueError, "not 3"),
        (lambda: tf.io.deserialize_many_sparse(rows[:, :2], tf.float32), ValueError, "3 columns"),
        (lambda: tf.io.deserialize_many_sparse(rows[:0], tf.float32), ValueError, "not known"),
        (lambda: tf.io.serialize_many_sparse(tf.sparse.from_dense([1])), ValueError, "Rank of"),
        (lambda: tf.io.serialize_sparse([1]), TypeError, "must be a SparseTensor"),
        (lambda: tf.io.serialize_sparse(words, tf.int32), NotImplementedError, "as strings alone"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_examples_in_a_dataset():
    spec = {"a": tf.io.FixedLenFeature([], tf.int64)}
    texts = tf.data.Dataset.from_tensor_slices([example(a=[5]), example(a=[6])])
    singles = texts.map(lambda x: tf.io.parse_single_example(x, spec)["a"])
    assert [int(x) for x in singles] == [5, 6]
    batched = texts.batch(2).apply(tf.data.experimental.parse_example_dataset(spec))
    assert next(iter(batched))["a"].numpy().tolist() == [5, 6]


@pytest.mark.parametrize(
    ("text", "feature", "message"),
    [
        (example(b=[1]), tf.io.FixedLenFeature([], tf.int64), "is required but could not be found"),
        (example(a=[1]), tf.io.FixedLenFeature([], tf.float32), "Data types don't match"),
        (example(a=[1]), tf.io.FixedLenFeature([2], tf.int64), "Number of int64 values"),
        (example(a=[1]), tf.io.RaggedFeature(tf.string), "Data types don't match"),
        (b"\xff", tf.io.FixedLenFeature([2], tf.int64), "Could not parse"),
    ],
)
def test_examples_that_are_refused(text, feature, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        tf.io.parse_single_example(text, {"a": feature})


# ---------------------------------------------------------------- files
def test_files(tmp_path):
    gfile, path = tf.io.gfile, str(tmp_path / "d" / "a.txt")
    tf.io.write_file(path, "one\ntwo\n")
    assert tf.io.read_file(path).numpy() == b"one\ntwo\n"
    with gfile.GFile(path, "a") as file:
        file.write("three")
    assert list(gfile.GFile(path)) == ["one\n", "two\n", "three"]
    with gfile.GFile(path, "rb") as file:
        assert (file.read(3), file.tell(), file.size()) == (b"one", 3, 13)
    gfile.copy(path, str(tmp_path / "b"))
    with pytest.raises(tf.errors.AlreadyExistsError, match="already exists"):
        gfile.copy(path, str(tmp_path / "b"))
    gfile.rename(str(tmp_path / "b"), str(tmp_path / "c"))
    assert sorted(gfile.listdir(str(tmp_path))) == ["c", "d"]
    assert gfile.stat(str(tmp_path / "c")).length == 13
    gfile.makedirs(str(tmp_path / "e" / "f"))
    assert gfile.isdir(gfile.join(str(tmp_path), "e", "f"))
    gfile.rmtree(str(tmp_path / "e"))
    gfile.remove(str(tmp_path / "c"))
    assert gfile.glob(str(tmp_path / "*")) == [str(tmp_path / "d")]


@pytest.mark.parametrize("name", ["remove", "rmtree", "listdir", "stat"])
def test_files_that_are_not_there(name, tmp_path):
    with pytest.raises(tf.errors.NotFoundError):
        getattr(tf.io.gfile, name)(str(tmp_path / "none"))


# ---------------------------------------------------------------- tables
def test_static_tables_in_functions():
    table = tf.lookup.StaticHashTable(KeyValues([3, 1], [0.5, 2.5]), -1.0)
    program = tf.function(lambda keys: table.lookup(keys))
    keys = tf.constant([[1, 2], [3, 4]])
    assert program(keys).numpy().tolist() == table.lookup(keys).numpy().tolist()
    assert table[keys].numpy().tolist() == [[2.5, -1.0], [0.5, -1.0]]
    assert int(table.size()) == 2


def test_tables_of_files(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("a\nb\nc\n")
    index = tf.lookup.TextFileIndex
    source = tf.lookup.TextFileInitializer(
        str(path), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )
    words = tf.constant(["c", "TensorFlow"])
    assert tf.lookup.StaticHashTable(source, -1).lookup(words).numpy().tolist() == [2, -1]
    table = tf.lookup.StaticVocabularyTable(source, 10)
    assert table.lookup(words).numpy().tolist() == [2, 3 + 4]
    assert int(table.size()) == 13
    back = tf.lookup.TextFileInitializer(str(path), tf.int64, -1, tf.string, -2)
    found = tf.lookup.StaticHashTable(back, "?").lookup(tf.constant([1, 9], tf.int64))
    assert found.numpy().tolist() == [b"b", b"?"]


def test_tables_that_change(tmp_path):
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0])

    @tf.function
    def program(key):
        table.insert(key[None], tf.constant([[1.0, 2.0]]))
        return table.lookup(key)

    key = tf.constant(7, tf.int64)
    assert program(key).numpy().tolist() == [1.0, 2.0]
    assert table.export()[0].numpy().tolist() == [7]
    checkpoint = tf.train.Checkpoint(table=table)
    path = checkpoint.save(str(tmp_path / "ckpt"))
    table.remove(key[None])
    assert int(table.size()) == 0
    checkpoint.restore(path)
    assert table.lookup(key).numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: tf.lookup.StaticHashTable(KeyValues(["a", "a"], [1, 2]), 0),
     tf.errors.FailedPreconditionError, "Key a has 1 and trying to add value 2"),
    (lambda: tf.lookup.StaticHashTable(KeyValues(["a"], [1]), 0).lookup(tf.constant([1])),
     TypeError, "Dtype of argument `keys` must be"),
    (lambda: tf.lookup.StaticVocabularyTable(None, 0), ValueError, "`num_oov_buckets` must be > 0"),
    (lambda: tf.strings.unicode_script, AttributeError, "unicodedata.name"),
    (lambda: tf.io.parse_sequence_example, AttributeError, "VarLenFeature"),
])  # fmt: skip
def test_what_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ---------------------------------------------------------------- images
def test_random_changes_of_images_are_tensorflows():
    images = tf.reshape(tf.range(6.0), [3, 1, 2, 1])
    turned = tf.image.stateless_random_flip_left_right(images, seed=(1, 2))
    assert turned.numpy().ravel().tolist() == [1, 0, 2, 3, 5, 4]
    crop = tf.image.stateless_random_crop(tf.range(10), [3], seed=(1, 2))
    assert crop.numpy().tolist() == [4, 5, 6]
    light = tf.image.stateless_random_brightness(tf.zeros([1, 1, 1]), 0.5, (3, 4))
    assert float(light[0, 0, 0]) == pytest.approx(-0.25671256)


def test_images_as_files():
    pixels = tf.cast(tf.reshape(tf.range(48), [4, 4, 3]) * 5, tf.uint8)
    image = tf.io.decode_image(tf.io.encode_png(pixels), dtype=tf.float32)
    np.testing.assert_allclose(image.numpy(), pixels.numpy() / 255, rtol=1e-6)
    even = tf.fill([16, 8, 3], tf.constant(77, tf.uint8))
    file = tf.io.encode_jpeg(even)
    assert bool(tf.io.is_jpeg(file))
    assert np.abs(tf.io.decode_jpeg(file).numpy().astype(int) - 77).max() <= 2
    assert tf.io.decode_jpeg(file, ratio=4).shape == (4, 2, 3)
    assert tf.image.adjust_jpeg_quality(tf.fill([8, 8, 3], 0.25), 50).shape == (8, 8, 3)


def test_bmp_files_of_32_bits_have_their_alpha():
    pixels, header = np.arange(24, dtype=np.uint8).reshape(2, 3, 4), b"BM" + bytes(8)
    rows = pixels[:, :, [2, 1, 0, 3]]  # blue first
    for height, given in ((2, rows[::-1]), (-2, rows)):
        sizes = struct.pack("<iiiihhiiiiii", 54, 40, 3, height, 1, 32, 0, 24, 0, 0, 0, 0)
        for read in (tf.io.decode_bmp, tf.io.decode_image):
            found = read(header + sizes + given.tobytes())
            assert (found.numpy() == pixels).all()


def test_an_image_with_a_palette_is_as_gray_as_one_without():
    pixels = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
    few = PIL.Image.fromarray(pixels).quantize(64)
    files = [io.BytesIO(), io.BytesIO()]
    few.save(files[0], "PNG"), few.convert("RGB").save(files[1], "PNG")
    with_palette, without = (tf.io.decode_png(x.getvalue(), channels=1).numpy() for x in files)
    assert (with_palette == without).all()


FIRST_ROW = [[28017, 40059, 9372], [10201, 37597, 17904], [42909, 16241, 43002]]
DEEP = (  # 6 by 3 pixels with colors of 16 bits, by TensorFlow
    "iVBORw0KGgoAAAANSUhEUgAAAAMAAAAGEAIAAADZF28YAAAAeUlEQVQImWPILZxTrTJH/eaku64fls+1L1z+i/mZ60VPAU"
    "dW6YtyPyVPxzFUnLNgkamVrZWtFejkZ+NnE/gr8FfgL4tsrUytTK3oSdG9ontF/4r+Ff3LWPil5G8FmxSnNCcES3EyydbK"
    "1srUKu1V3Ku4V/2v+l/1vwAV5yqSpdYHbQAAAABJRU5ErkJggg=="
)


def test_images_of_16_bits():
    pixels = np.array([[[28017], [40059]], [[9372], [65535]]], np.uint16)
    written = tf.io.encode_png(pixels)
    assert (tf.io.decode_png(written, dtype="uint16").numpy() == pixels).all()
    assert (tf.io.decode_png(written).numpy() == pixels >> 8).all()
    rgba = tf.io.decode_png(written, channels=4, dtype="uint16").numpy()
    assert (rgba[..., :3] == pixels).all()
    assert (rgba[..., 3] == 65535).all()
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be 0, 1, 3 or 4 but got 2"):
        tf.io.decode_png(written, channels=2)
    file = base64.b64decode(DEEP)
    assert tf.io.decode_png(file).numpy()[0].tolist() == [
        [x >> 8 for x in row] for row in FIRST_ROW
    ]
    for call in (lambda: tf.io.decode_png(file, dtype="uint16"), lambda: tf.io.encode_png(rgba)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Colors of 16 bits"):
            call()


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: tf.image.adjust_contrast(x, [2.0]), "contrast_factor must be scalar"),
    (lambda x: tf.image.adjust_gamma(x, tf.constant(-1.0)), "Gamma should be a non-negative"),
    (lambda x: tf.image.flip_up_down(x[:0]), "must be > 0"),
    (lambda x: tf.image.transpose(x[0]), "must be at least three-dimensional"),
    (lambda x: tf.image.non_max_suppression([[0.0, 0, 1, 1]], [0.9], [3]), "must be 0-D"),
])  # fmt: skip
def test_what_is_no_image_is_refused(call, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call(tf.ones([2, 2, 3]))


def test_a_jpeg_of_16_bits_is_not_stretched_to_the_end():
    file = tf.io.encode_jpeg(tf.fill([8, 8, 1], tf.constant(255, tf.uint8)))
    assert tf.io.decode_image(file, dtype=tf.uint16).numpy().max() == 255 * 256


def test_boxes_at_random_cover_enough():
    box = tf.constant([[[0.2, 0.2, 0.6, 0.6]]])
    for seed in range(5):
        begin, size, found = tf.image.stateless_sample_distorted_bounding_box(
            [50, 40, 3], box, (seed, 0), min_object_covered=0.5
        )
        top, left, bottom, right = found.numpy().ravel()
        shared = max(0, min(bottom, 0.6) - max(top, 0.2)) * max(0, min(right, 0.6) - max(left, 0.2))
        assert shared >= 0.5 * 0.16 - 1e-3
        assert begin.numpy()[0] == pytest.approx(top * 50, abs=1e-3)
        assert size.numpy().tolist()[2] == -1


def test_boxes_that_overlap_score_less():
    boxes = tf.constant([[0, 0, 1, 1.0], [0, 0.1, 1, 1.1], [0, 0.2, 1, 1.2]])
    kept, scores = tf.image.non_max_suppression_with_scores(
        boxes, tf.constant([0.9, 0.8, 0.7]), 3, iou_threshold=0.5, soft_nms_sigma=0.5
    )
    assert kept.numpy().tolist() == [0, 2, 1]
    assert scores.numpy()[:2].tolist() == pytest.approx([0.9, 0.44882628])


# ---------------------------------------------------------------- strings
def test_parts_of_text():
    assert tf.strings.substr("abc", 1, -1).numpy() == b"bc"
    with pytest.raises(TypeError, match="to EagerTensor of dtype string"):
        tf.strings.join([[1]])
    with pytest.raises(tf.errors.OutOfRangeError, match="dimension 2 for input with 2"):
        tf.strings.reduce_join([["a"]], axis=2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Duplicate reduction dimension -2"):
        tf.strings.reduce_join([["a"]], axis=[0, -2])


def test_keys_in_rows_are_looked_up() -> None:
    source = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])
    table = tf.lookup.StaticHashTable(source, default_value=-1)
    rows = tf.ragged.constant([["a", "z"], [], ["b"]])
    assert table.lookup(rows).to_list() == [[1, -1], [], [2]]
    sparse = table[rows.to_sparse()]
    assert sparse.values.numpy().tolist() == [1, -1, 2]
    assert sparse.indices.numpy().tolist() == [[0, 0], [0, 1], [2, 0]]


@pytest.mark.parametrize(
    ("columns", "words"),
    [([0], "do not match"), ([1, 0], "not strictly increasing"), ([-1, 0], "negative values")],
)
def test_columns_of_csv_that_do_not_fit(columns: list[int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        tf.io.decode_csv(["1,2,3"], [[0], [0]], select_cols=columns)


def test_strings_are_written_in_a_width() -> None:
    texts = tf.constant(["a", "bcd"])
    assert tf.strings.as_string(texts, width=4).numpy().tolist() == [b"   a", b" bcd"]
    assert tf.strings.as_string(texts, width=4, fill="-").numpy().tolist() == [b"a   ", b"bcd "]
    assert tf.strings.as_string(texts, 2, width=3).numpy().tolist() == [b"  a", b" bc"]
    found = tf.strings.as_string([1.5, np.inf], precision=1, width=5, fill="0")
    assert found.numpy().tolist() == [b"001.5", b"  inf"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="not supported: 'x'"):
        tf.strings.as_string(texts, fill="x")
    for wrong, words in (
        ({"fill": "ab"}, "Fill string must be one or fewer"),
        ({"scientific": True}, "scientific and shortest format not supported"),
        ({"precision": 0}, "precision not supported"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            tf.strings.as_string([1], **wrong)
