"""Datasets, one row at least for each public function that makes one: `MAKERS`, by that name.

A row takes a folder, and makes the dataset again, as another program would. What it keeps on disk
is in `folder/kept`, what it reads in `folder`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from jaxvars import tf

Make: TypeAlias = Callable[[Path], Any]

Dataset = tf.data.Dataset
experimental = tf.data.experimental


def sized(n):
    return Dataset.from_tensor_slices(np.arange(n, dtype=np.int64))


def grown(x):
    return Dataset.range(x + 1).map(lambda y: 10 * x + y)


def draw(x):
    return x, tf.random.uniform([], seed=3)


def draw_unseeded(x):
    return x, tf.random.uniform([]), tf.random.uniform([])


def shuffled(n=5, **options):
    return Dataset.range(n).shuffle(n, **options)


def lines(folder):
    path = folder / "lines.txt"
    path.write_text("a,1\nb,2\nc,3\nd,4\n")
    return str(path)


def records(folder):
    path = str(folder / "records")
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(4):
            writer.write(str(i))
    return path


def saved(folder, **options):
    path = str(folder / "saved")
    if not (folder / "saved").exists():
        sized(4).save(path, **options)
    return path


def twice(dataset, change):
    return change(dataset, dataset)


def inner(dataset):
    return Dataset.range(2).flat_map(lambda x: dataset)


def odd(x):
    return x % 2


def odd32(x):
    return tf.cast(x % 2, tf.int32)


def joined(folder):
    (folder / "b.txt").write_text("b")
    lines(folder)
    return Dataset.list_files(f"{folder}/*.txt").map(lambda x: tf.strings.substr(x, -5, 5))


def examples(folder):
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
    text = tf.train.Example(features=tf.train.Features(feature={"a": feature})).SerializeToString()
    rows = Dataset.from_tensor_slices([text] * 4).batch(2)
    return rows.apply(
        experimental.parse_example_dataset({"a": tf.io.FixedLenFeature([], tf.int64)})
    )


def errors(*_):
    ones = Dataset.from_tensor_slices([1.0, 0.0, 2.0, 4.0])
    return ones.map(lambda x: tf.debugging.check_numerics(1.0 / x, "none"))


MAKERS: dict[str, dict[str, Make]] = {
    # ------------------------------------------------------------ made
    "Dataset.from_tensor_slices": {
        "": lambda _: Dataset.from_tensor_slices(([1, 2, 3], ["a", "b", "c"])),
        "of datasets": lambda _: Dataset.from_tensor_slices([sized(2), sized(3)]).flat_map(
            lambda x: x
        ),
    },
    "Dataset.from_tensors": {"": lambda _: Dataset.from_tensors({"a": 1})},
    "Dataset.from_list": {"": lambda _: Dataset.from_list([1, 2, 3])},
    "Dataset.from_generator": {
        "": lambda _: Dataset.from_generator(lambda: range(4), tf.int32, []),
    },
    "Dataset.range": {"": lambda _: Dataset.range(7, 1, -2)},
    "Dataset.counter": {"": lambda _: Dataset.counter(1, 2).take(3)},
    "experimental.Counter": {"": lambda _: experimental.Counter(1, 2).take(3)},
    "Dataset.random": {
        "": lambda _: Dataset.random(seed=1).take(3),
        "unseeded": lambda _: Dataset.random().take(3),
        "changing": lambda _: Dataset.random(rerandomize_each_iteration=True).take(3),
    },
    "experimental.RandomDataset": {"": lambda _: experimental.RandomDataset().take(3)},
    "Dataset.list_files": {"": joined},
    "Dataset.load": {
        "": lambda f: Dataset.load(saved(f)),
        "shards": lambda f: Dataset.load(saved(f, shard_func=odd)),
        "reader": lambda f: Dataset.load(
            saved(f, shard_func=odd), reader_func=lambda x: x.interleave(lambda y: y)
        ),
    },
    "experimental.load": {"": lambda f: experimental.load(saved(f, shard_func=odd))},
    "experimental.from_list": {"": lambda _: experimental.from_list([1, 2, 3])},
    "TFRecordDataset": {
        "": lambda f: tf.data.TFRecordDataset(records(f)),
        "several": lambda f: tf.data.TFRecordDataset([records(f)] * 2, num_parallel_reads=2),
    },
    "TextLineDataset": {"": lambda f: tf.data.TextLineDataset([lines(f)] * 2)},
    "FixedLengthRecordDataset": {"": lambda f: tf.data.FixedLengthRecordDataset(lines(f), 4)},
    "experimental.CsvDataset": {
        "": lambda f: experimental.CsvDataset(lines(f), [tf.string, tf.int32])
    },
    "experimental.make_csv_dataset": {
        "": lambda f: experimental.make_csv_dataset(
            lines(f), 2, ["a", "b"], header=False, num_epochs=1)
    },
    # ------------------------------------------------------------ functions
    "Dataset.map": {
        "": lambda _: Dataset.range(4).map(lambda x: x * x),
        "draws": lambda _: Dataset.range(4).map(draw),
        "draws unseeded": lambda _: Dataset.range(4).map(draw_unseeded),
        "a tf.function draws": lambda _: Dataset.range(4).map(tf.function(draw)),
        "parallel": lambda _: Dataset.range(4).map(draw, num_parallel_calls=2),
        "a generator draws": lambda _: twice(
            tf.random.Generator.from_seed(3),
            lambda made, _: Dataset.range(4).map(lambda x: x + made.make_seeds()[0, 0])),
    },
    "Dataset.filter": {
        "": lambda _: Dataset.range(6).filter(lambda x: x % 2 == 0),
        "draws": lambda _: Dataset.range(9).filter(lambda x: draw(x)[1] > 0.4),
    },
    "Dataset.flat_map": {
        "": lambda _: Dataset.range(3).flat_map(grown),
        "draws": lambda _: Dataset.range(3).flat_map(
            lambda x: Dataset.from_tensors(draw_unseeded(x)).repeat(2)),
        "shuffled": lambda _: Dataset.range(2).flat_map(lambda x: shuffled().repeat(2)),
        "cached": lambda _: Dataset.range(2).flat_map(lambda x: shuffled(3).cache().repeat(2)),
        "one shuffled": lambda _: inner(shuffled()),
        "one cached": lambda _: inner(shuffled().cache()),
        "one that draws": lambda _: inner(Dataset.range(3).map(draw)),
        "one after another": lambda _: Dataset.range(2).flat_map(
            lambda x: Dataset.range(2).concatenate(shuffled(4)).repeat(2)),
    },
    "Dataset.interleave": {
        "": lambda _: Dataset.range(4).interleave(grown, cycle_length=2, block_length=2),
        "shuffled": lambda _: Dataset.range(3).interleave(lambda x: shuffled(), cycle_length=2),
        "draws within": lambda _: Dataset.range(3).interleave(
            lambda x: Dataset.range(2).map(lambda y: draw(y)), cycle_length=2),
    },
    "Dataset.scan": {
        "": lambda _: Dataset.range(5).scan(np.int64(0), lambda s, x: (s + x, s)),
        "draws": lambda _: Dataset.range(4).scan(0.0, lambda s, x: (s + draw(x)[1], s)),
    },
    "experimental.scan": {
        "": lambda _: Dataset.range(5).apply(
            experimental.scan(np.int64(0), lambda s, x: (s + x, s)))
    },
    "Dataset.take_while": {
        "": lambda _: Dataset.range(5).take_while(lambda x: x < 3),
        "draws": lambda _: Dataset.range(9).take_while(lambda x: draw(x)[1] < 0.9),
    },
    "experimental.take_while": {
        "": lambda _: Dataset.range(5).apply(experimental.take_while(lambda x: x < 3))
    },
    "Dataset.apply": {"": lambda _: Dataset.range(3).apply(lambda d: d.map(draw))},
    "Dataset.ignore_errors": {"": lambda _: errors().ignore_errors()},
    "experimental.ignore_errors": {"": lambda _: errors().apply(experimental.ignore_errors())},
    "experimental.parse_example_dataset": {"": examples},
    # ------------------------------------------------------------ order and number
    "Dataset.shuffle": {
        "": lambda _: Dataset.range(5).shuffle(3, seed=2),
        "unseeded": lambda _: shuffled(),
        "one order": lambda _: shuffled(reshuffle_each_iteration=False),
        "of pairs": lambda _: Dataset.zip((sized(5), {"a": sized(5)})).shuffle(3),
        "of draws": lambda _: Dataset.range(6).map(draw_unseeded).shuffle(3),
        "of ragged": lambda _: Dataset.range(6).map(tf.range).ragged_batch(2).shuffle(3),
        "of sparse": lambda _: sized(4).map(lambda x: tf.sparse.from_dense([x, 0])).shuffle(3),
        "of datasets": lambda _: Dataset.range(3).map(Dataset.range).shuffle(2).flat_map(
            lambda x: x),
    },
    "Dataset.repeat": {"": lambda _: shuffled(3).repeat(2)},
    "Dataset.take": {
        "": lambda _: Dataset.range(9).take(3), "all": lambda _: Dataset.range(3).take(-1),
    },
    "Dataset.skip": {
        "": lambda _: Dataset.range(5).skip(2), "all": lambda _: Dataset.range(3).skip(-1),
    },
    "Dataset.shard": {"": lambda _: Dataset.range(9).shard(3, 1)},
    "Dataset.enumerate": {"": lambda _: Dataset.range(3).enumerate(5)},
    "experimental.enumerate_dataset": {
        "": lambda _: Dataset.range(3).apply(experimental.enumerate_dataset(5))
    },
    "Dataset.unique": {"": lambda _: Dataset.from_tensor_slices([1, 2, 1, 3, 2, 4]).unique()},
    "experimental.unique": {
        "": lambda _: Dataset.from_tensor_slices([1, 2, 1, 3]).apply(experimental.unique())
    },
    "Dataset.prefetch": {"": lambda _: Dataset.range(3).prefetch(2)},
    "Dataset.with_options": {"": lambda _: Dataset.range(3).with_options(tf.data.Options())},
    "experimental.assert_cardinality": {
        "": lambda _: Dataset.range(3).apply(experimental.assert_cardinality(3))
    },
    # ------------------------------------------------------------ groups
    "Dataset.batch": {"": lambda _: Dataset.range(7).map(lambda x: x * x).batch(2)},
    "Dataset.padded_batch": {"": lambda _: Dataset.range(5).map(tf.range).padded_batch(2)},
    "Dataset.ragged_batch": {"": lambda _: Dataset.range(5).map(tf.range).ragged_batch(2)},
    "Dataset.unbatch": {"": lambda _: Dataset.range(5).batch(2).unbatch()},
    "experimental.unbatch": {
        "": lambda _: Dataset.range(5).batch(2).apply(experimental.unbatch())
    },
    "Dataset.rebatch": {
        "": lambda _: Dataset.range(7).batch(3).rebatch([2, 1]),
        "one size": lambda _: Dataset.range(7).batch(3).rebatch(2),
    },
    "Dataset.window": {
        "": lambda _: Dataset.range(7).window(2, shift=3),
        "flat": lambda _: Dataset.range(5).window(3, 1, 1, True).flat_map(lambda w: w),
        "shuffled": lambda _: Dataset.range(7).window(2).shuffle(3).flat_map(lambda w: w),
        "draws": lambda _: Dataset.range(3).flat_map(
            lambda x: Dataset.from_tensors(draw(x)[1]).repeat(2)).window(2),
    },
    "Dataset.group_by_window": {
        "": lambda _: Dataset.range(7).group_by_window(odd, lambda _, g: g.batch(2), 2),
        "shuffled": lambda _: Dataset.range(9).group_by_window(odd, lambda _, g: g.shuffle(5), 5),
        "draws": lambda _: Dataset.range(9).group_by_window(
            odd, lambda _, g: Dataset.zip((g, Dataset.from_tensors(draw(0)).repeat())), 5),
    },
    "experimental.group_by_window": {
        "": lambda _: Dataset.range(7).apply(
            experimental.group_by_window(odd, lambda _, g: g.batch(2), 2))
    },
    "Dataset.bucket_by_sequence_length": {
        "": lambda _: Dataset.range(7).map(tf.range).bucket_by_sequence_length(
            tf.size, [3], [2, 2])
    },
    "experimental.bucket_by_sequence_length": {
        "": lambda _: Dataset.range(7).map(tf.range).apply(
            experimental.bucket_by_sequence_length(tf.size, [3], [2, 2]))
    },
    # ------------------------------------------------------------ of several
    "Dataset.zip": {
        "": lambda _: Dataset.zip((sized(3), sized(4).map(draw))),
        "the second ends": lambda _: Dataset.zip((sized(4), shuffled(2))),
        "one twice": lambda _: twice(shuffled(4).map(draw), lambda *d: Dataset.zip(d)),
    },
    "Dataset.concatenate": {
        "": lambda _: Dataset.range(2).concatenate(Dataset.range(5, 8)),
        "one twice": lambda _: twice(shuffled(4), Dataset.concatenate),
        "a cached one": lambda _: shuffled().cache().concatenate(Dataset.range(2)),
        "a shuffled one": lambda _: Dataset.range(2).concatenate(shuffled(9)),
    },
    "Dataset.choose_from_datasets": {
        "": lambda _: Dataset.choose_from_datasets([sized(2), shuffled(3)], sized(2).repeat(3)),
        "all": lambda _: Dataset.choose_from_datasets(
            [sized(2), sized(3)], sized(2).repeat(5), False),
    },
    "experimental.choose_from_datasets": {
        "": lambda _: experimental.choose_from_datasets([sized(2), sized(3)], sized(2).repeat(5))
    },
    "Dataset.sample_from_datasets": {
        "": lambda _: Dataset.sample_from_datasets([sized(3), sized(4)], seed=3),
        "unseeded": lambda _: Dataset.sample_from_datasets([sized(3), shuffled(4)]),
        "changing": lambda _: Dataset.sample_from_datasets(
            [sized(3), sized(4)], [0.2, 0.8], rerandomize_each_iteration=True),
        "weights": lambda _: Dataset.sample_from_datasets(
            [sized(3), sized(4)],
            Dataset.from_tensor_slices([[0.9, 0.1], [0.1, 0.9]]).shuffle(2).repeat()),
    },
    "experimental.sample_from_datasets": {
        "": lambda _: experimental.sample_from_datasets([sized(3), sized(4)])
    },
    "Dataset.rejection_resample": {
        "": lambda _: Dataset.range(20).rejection_resample(odd32, [0.2, 0.8], seed=1),
        "unseeded": lambda _: Dataset.range(20).rejection_resample(odd32, [0.2, 0.8]),
    },
    "experimental.rejection_resample": {
        "": lambda _: Dataset.range(20).apply(
            experimental.rejection_resample(odd32, [0.2, 0.8]))
    },
    # ------------------------------------------------------------ kept
    "Dataset.cache": {
        "": lambda _: Dataset.range(3).cache(),
        "shuffled": lambda _: shuffled().cache(),
        "then shuffled": lambda _: Dataset.range(5).cache().shuffle(5),
        "draws": lambda _: Dataset.range(4).map(draw_unseeded).cache(),
        "in files": lambda f: Dataset.range(3).cache(f"{f}/kept"),
        "in files, shuffled": lambda f: shuffled(8).cache(f"{f}/kept"),
        "in files, draws": lambda f: Dataset.range(3).map(draw).cache(f"{f}/kept"),
    },
    "Dataset.snapshot": {
        "": lambda f: Dataset.range(3).snapshot(f"{f}/kept"),
        "shuffled": lambda f: shuffled(8).snapshot(f"{f}/kept"),
        "shards": lambda f: Dataset.range(4).snapshot(f"{f}/kept", shard_func=odd),
        "shards, shuffled": lambda f: shuffled(8).snapshot(f"{f}/kept", shard_func=odd),
    },
    "experimental.snapshot": {
        "": lambda f: Dataset.range(3).apply(experimental.snapshot(f"{f}/kept"))
    },
    "Dataset.pad_to_cardinality": {
        "": lambda _: Dataset.from_tensor_slices({"a": [1, 2]}).pad_to_cardinality(4, "is_there")
    },
    "experimental.pad_to_cardinality": {
        "": lambda _: Dataset.from_tensor_slices({"a": [1, 2]}).apply(
            experimental.pad_to_cardinality(4))
    },
}  # fmt: skip

REFUSED = {
    "Dataset.load: reader": "Interleave.*keeps a Dataset from one element to the next",
    "Dataset.from_tensor_slices: of datasets": "FlatMap.*keeps a Dataset from one element",
    "Dataset.shuffle: of datasets": "keeps a Dataset from one element.*files.shuffle",
    "Dataset.interleave: draws within": r"once RandomUniform has drawn.*random.stateless_uniform",
    "Dataset.map: a generator draws": "variable 'StateVar'.*generator=generator",
    "Dataset.cache: in files, shuffled": "`cache` or `snapshot` in .* other elements",
    "Dataset.snapshot: shuffled": "`cache` or `snapshot` in .* other elements",
    "Dataset.snapshot: shards, shuffled": "`cache` or `snapshot` in .* other elements",
}
"""Those that are right or refused, at least once, and what is said."""

MAKE_NONE = {
    *("Dataset.as_numpy_iterator", "Dataset.at", "Dataset.cardinality", "Dataset.element_spec"),
    *("Dataset.get_single_element", "Dataset.options", "Dataset.reduce", "Dataset.save"),
    *("Dataset.sparse_batch", "experimental.AutoShardPolicy", "experimental.AutotuneAlgorithm"),
    *("experimental.AutotuneOptions", "experimental.DistributeOptions", "experimental.Optional"),
    *("experimental.ExternalStatePolicy", "experimental.OptimizationOptions", "experimental.at"),
    *("experimental.ServiceOptions", "experimental.ThreadingOptions"),
    *("experimental.cardinality", "experimental.save", "experimental.enable_debug_mode"),
    "experimental.get_single_element",
}  # fmt: skip
"""The public names that make no dataset."""

MOMENTS: dict[str, tuple[int, Callable[[int], int]]] = {
    "before the first element": (2, lambda n: 0),
    "in the first epoch": (2, lambda n: (n + 1) // 2),
    "after the first epoch": (2, lambda n: n),
    "in the second epoch": (2, lambda n: n + (n + 1) // 2),
    "at the end": (2, lambda n: 2 * n),
    "exhausted": (2, lambda n: 2 * n + 99),
    "in the only epoch": (1, lambda n: (n + 1) // 2),
    "at its end": (1, lambda n: n),
    "past its end": (1, lambda n: n + 99),
}
"""How many epochs there are, and after how many elements it is saved, of those of one."""
