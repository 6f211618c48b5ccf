"""CTC's decoder, candidates and their losses; values are TensorFlow's."""

from __future__ import annotations

import numpy as np
import pytest

from jaxvars import tf

TABLE = np.arange(6, dtype=np.float32).reshape(3, 2)
SHARES = [[0.1, 0.6, 0.3], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.7, 0.1, 0.2]]
LOGITS = np.log(np.array(SHARES, np.float32))[:, None]


def test_ctc_greedy_decoder():
    (labels,), score = tf.nn.ctc_greedy_decoder(LOGITS, [4])
    assert tf.sparse.to_dense(labels).numpy().tolist() == [[1, 0]]
    np.testing.assert_allclose(score, [[1.8891516]], rtol=1e-6)
    (both,), _ = tf.nn.ctc_greedy_decoder(LOGITS, [4], merge_repeated=False)
    assert both.values.numpy().tolist() == [1, 1, 0]
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"sequence_length\(0\) <= 4"):
        tf.nn.ctc_greedy_decoder(LOGITS, [5])


def test_samplers():
    drawn, of_true, of_drawn = tf.random.uniform_candidate_sampler([[0, 1]], 2, 3, False, 5, seed=1)
    assert (drawn.dtype, drawn.shape) == (tf.int64, [3])
    np.testing.assert_allclose(of_true, [[0.6, 0.6]], rtol=1e-6)
    np.testing.assert_allclose(of_drawn, [0.6] * 3, rtol=1e-6)
    drawn, of_true, of_drawn = tf.random.log_uniform_candidate_sampler([[0]], 1, 5, True, 5, seed=1)
    assert sorted(drawn.numpy().tolist()) == [0, 1, 2, 3, 4]
    share = np.log((np.arange(5) + 2) / (np.arange(5) + 1)) / np.log(6)
    tries = np.arange(6, 500)  # of drawing until all were there; or five, by luck
    possible = np.append(-np.expm1(tries * np.log1p(-share[0])), share[0] * 5)
    assert np.isclose(possible, of_true.numpy(), rtol=1e-5).any()
    with pytest.raises(tf.errors.InvalidArgumentError, match="range is too small"):
        tf.random.uniform_candidate_sampler([[0]], 1, 6, True, 5)


SAMPLED = (
    tf.constant([1, 3, 4], tf.int64), tf.constant([[0.5], [0.4]]), tf.constant([0.3, 0.2, 0.1]),
)  # fmt: skip
ONES = {
    "weights": np.ones((5, 2), np.float32), "biases": np.zeros(5, np.float32),
    "inputs": np.ones((2, 2), np.float32), "labels": tf.constant([[0], [1]], tf.int64),
    "num_sampled": 3, "num_classes": 5, "sampled_values": SAMPLED,
}  # fmt: skip


@pytest.mark.parametrize(("loss", "options", "wanted"), [
    ("nce_loss", {}, [11.261420249938965, 11.248663902282715]),
    ("nce_loss", {"remove_accidental_hits": True}, [11.261420249938965, 8.00489330291748]),
    ("sampled_softmax_loss", {}, [2.3191144466400146, 1.9459102153778076]),
    ("sampled_softmax_loss", {"remove_accidental_hits": False},
     [2.3191144466400146, 2.1202635765075684]),
])  # fmt: skip
def test_losses_of_samples(loss, options, wanted):
    found = getattr(tf.nn, loss)(**ONES, **options)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_table_in_parts_is_looked_up_as_one():
    parts = [TABLE[:2], TABLE[2:]]
    for ids in ([2, 0], tf.ragged.constant([[2], [0]])):
        found = tf.nn.embedding_lookup(parts, ids, max_norm=None)
        assert getattr(found, "flat_values", found).numpy().tolist() == [[4, 5], [0, 1]]
    for wrong, message in ((None, "params must be specified"), ([], "Need at least one param")):
        with pytest.raises(ValueError, match=message):
            tf.nn.embedding_lookup(wrong, [0])


def test_losses_of_samples_take_tables_in_parts():
    bias, x = np.array([0.5, 1.0, 2.0], np.float32), np.ones((1, 2), np.float32)
    drawn = ([0, 1], [[0.5]], [0.5, 0.5])
    losses = [
        tf.nn.sampled_softmax_loss(table, biases, label, x, 2, 3, sampled_values=drawn)
        for table, biases, label in (
            (TABLE, bias, [[2]]),
            ([TABLE[:2], TABLE[2:]], [bias[:2], bias[2:]], tf.constant([[2]], tf.bfloat16)),
        )
    ]
    assert losses[0].numpy() == losses[1].numpy()


def test_ctc_takes_sparse_labels():
    labels = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 2, 2], [2, 2])
    logits = tf.random.stateless_normal((4, 2, 3), (1, 2))
    expected = tf.nn.ctc_loss([[1, 2], [2, 0]], logits, [2, 1], [4, 3], blank_index=0)
    for call in (tf.nn.ctc_loss, tf.function(tf.nn.ctc_loss)):
        found = call(labels, logits, None, [4, 3], blank_index=0)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(ValueError, match="`blank_index` must be provided"):
        tf.nn.ctc_loss(labels, logits, None, [4, 3])
    holes = tf.SparseTensor([[0, 0], [0, 2], [1, 1]], [1, 2, 2], [2, 3])  # TensorFlow's has none
    np.testing.assert_allclose(
        tf.nn.ctc_loss(holes, logits, None, [4, 3], blank_index=0), expected, rtol=1e-6
    )
    turned = tf.SparseTensor(labels.indices[::-1], labels.values, [2, 2])
    for wrong, words in ((turned, "out of order"), (labels.with_values([1, -2, 2]), "nonnegative")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            tf.nn.ctc_loss(wrong, logits, None, [4, 3], blank_index=0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than the 2 labels"):
        tf.nn.ctc_loss([[1, 2], [1, 1]], logits, [2, 3], [4, 3])


@pytest.mark.parametrize(("call", "message"), [
    (lambda: tf.nn.ctc_greedy_decoder(LOGITS, [4], blank_index=7), "blank_index must be"),
    (lambda: tf.nn.embedding_lookup([tf.ones([1, 2]), tf.ones([2, 2])], [1]), "parts of one size"),
])  # fmt: skip
def test_decoders_and_samplers_refuse(call, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()
