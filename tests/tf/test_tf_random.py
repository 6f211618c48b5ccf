"""`tf.random`: the same seeds give the same values; shapes, types and errors of TensorFlow."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threads import run_in_threads

import jaxvars as jv
from jaxvars import random as core
from jaxvars import tf

R = tf.random

# What TensorFlow 2.21 draws in `test_the_numbers_are_tensorflows`.
EAGER = [
    0.5380393266677856,
    0.32536470890045166,
    -0.13862521946430206,
    -0.24789245426654816,
    -0.12448886036872864,
    1.1529078483581543,
]
IN_FUNCTION = [
    [-0.3010156750679016, 0.5185916423797607, 29, 0.11935383826494217, -0.10138487815856934],
    [0.3091649115085602, 0.03633794188499451, 15, 0.7167350053787231, -1.7670727968215942],
]
FULL = [4175744164, 1555169499]
SEEDS = [-1648345058620875413, 1494989255412213957]
SPLIT = [0.08069798873195645, 0.9276112077217662]
CLASSES = [[1, 1, 1, 2], [1, 1, 0, 2]]
TRUNCATED = [3.0058155059814453, 1.9421091079711914]


@pytest.fixture(autouse=True)
def _no_global_seed():
    yield
    from jaxvars.tf.random.streams import _Streams

    _Streams.seed = None
    _Streams.eager.clear()
    _Streams.traced.clear()
    core.set_seed(0)


def numbers(x):
    return [float(part.numpy().ravel()[0]) for part in tf.nest.flatten(x)]


def two():
    return R.uniform([1]), R.uniform([1])


# ---------------------------------------------------------------- seeds
def test_set_seed_begins_anew():
    R.set_seed(1234)
    first = numbers([*two(), R.normal([2]), R.shuffle(tf.range(9))])
    R.set_seed(1234)
    assert numbers([*two(), R.normal([2]), R.shuffle(tf.range(9))]) == first
    assert first[0] != first[1]
    R.set_seed(1235)
    assert numbers(two()) != first[:2]


def test_without_a_seed_each_stream_begins_anew():
    tf.random.set_seed(3)
    seeded = tf.random.uniform([8])
    tf.random.set_seed(None)
    first = tf.random.uniform([8])
    tf.random.set_seed(None)
    assert not np.array_equal(first, tf.random.uniform([8]))
    assert not np.array_equal(first, seeded)


def test_functions_are_separate_programs():
    R.set_seed(1234)
    f, g = tf.function(two), tf.function(lambda: two())
    first, second = numbers(f()), numbers(f())
    assert len({*first, *second}) == 4  # again each time
    assert numbers(g()) == first
    R.set_seed(1234)
    assert numbers(f()) == first


def test_functions_without_a_seed_draw_anew():
    f = tf.function(two)
    assert len({*numbers(f()), *numbers(f()), *numbers(two())}) == 6


def test_seeds_of_operations():
    first = numbers([R.uniform([1], seed=1), R.uniform([1], seed=1), R.uniform([1], seed=2)])
    assert len(set(first)) == 3
    f = tf.function(lambda: (R.uniform([1], seed=1), R.uniform([1], seed=1)))
    assert numbers(f()) == [first[0]] * 2  # each operation that is written begins the stream
    assert numbers(f()) == [first[1]] * 2


def test_a_loop_draws_anew():
    @tf.function
    def f():
        total = tf.zeros([4])
        for i in tf.range(4):
            drawn = R.uniform([])
            total = tf.tensor_scatter_nd_add(total, [[i]], [drawn])
        return total

    R.set_seed(5)
    assert len(set(f().numpy().tolist())) == 4


def test_the_numbers_are_tensorflows():
    R.set_seed(1234)  # those of TensorFlow 2.21
    drawn = [R.uniform([1]), R.uniform([1]), R.normal([2], seed=3), R.normal([2], seed=3)]
    assert_close([x for part in drawn for x in part.numpy().tolist()], EAGER)
    R.set_seed(42)

    @tf.function
    def f():
        return R.normal([2]), R.uniform([], maxval=100, dtype=tf.int64), R.truncated_normal([2])

    for wanted in IN_FUNCTION:
        assert_close([x for part in f() for x in np.ravel(part.numpy()).tolist()], wanted)
    g = R.Generator.from_seed(1)
    assert g.uniform_full_int([2], tf.uint32).numpy().tolist() == FULL
    assert g.make_seeds(2).numpy().tolist() == [SEEDS, [0, 0]]
    assert_close(g.split(1)[0].normal([2], dtype=tf.float64).numpy(), SPLIT)
    classes = R.stateless_categorical([[0.0, 1.0, 2.0]] * 2, 4, [5, 6]).numpy().tolist()
    assert classes == CLASSES
    many = R.stateless_truncated_normal([200], [1, 2]).numpy()
    assert_close([many.sum(), np.abs(many).max()], TRUNCATED)


def assert_close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=2e-5)


def test_classes_are_drawn_after_each_other_as_in_tensorflow():
    R.set_seed(3)
    drawn = [R.categorical([[0.0, 1.0, 2.0]], 3, seed=1).numpy().tolist() for _ in range(3)]
    assert drawn == [[[1, 0, 2]], [[1, 2, 2]], [[1, 2, 0]]]


def test_one_trace_draws_for_all_sizes():
    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def f(x):
        return R.normal(tf.shape(x), seed=3), R.truncated_normal(tf.shape(x), seed=3)

    R.set_seed(1)
    for rows in (3, 2):
        both = f(tf.ones([rows, 3]))
        if rows == 3:  # the same as of a size that is known
            wanted = R.Generator.from_state([0, 3, 1], 1)
            assert_close(both[0], wanted.normal([3, 3]))
            wanted.reset([0, 3, 1])
            assert_close(both[1], wanted.truncated_normal([3, 3]))
        assert [x.shape for x in both] == [[rows, 3]] * 2


def test_determinism_wants_seeds():
    from jaxvars.tf.random import streams as streams

    try:
        streams.require_seeds()
        with pytest.raises(RuntimeError, match="Random ops require a seed to be set"):
            R.normal([])
        with pytest.raises(RuntimeError, match="from_non_deterministic_state"):
            R.Generator.from_non_deterministic_state()
        R.normal([], seed=1)
    finally:
        streams._Streams.is_strict = False


def test_maps_draw_for_each_example():
    g = R.Generator.from_seed(3)
    found = tf.vectorized_map(lambda _: g.normal([2]), tf.range(4)).numpy()
    assert len(set(found.ravel().tolist())) == 8
    assert g.state.numpy().tolist() == [3 + 2 * 256, 0, 0]
    again = [tf.vectorized_map(lambda _: R.uniform([], seed=4), tf.range(3)) for _ in range(2)]
    assert len({x for part in again for x in part.numpy().tolist()}) == 6


# ---------------------------------------------------------------- values
@pytest.mark.parametrize(
    ("draw", "mean", "deviation"),
    [
        (lambda: R.normal([4000], mean=3.0, stddev=2.0), 3.0, 2.0),
        (lambda: R.truncated_normal([4000]), 0.0, 0.88),
        (lambda: R.uniform([4000], -1.0, 3.0), 1.0, 1.1547),
        (lambda: R.uniform([4000], 0, 4, dtype=tf.int32), 1.5, 1.118),
        (lambda: R.poisson([4000], 4.0), 4.0, 2.0),
        (lambda: R.gamma([4000], 4.0, beta=2.0), 2.0, 1.0),
        (lambda: R.categorical(tf.math.log([[0.25, 0.75]]), 4000), 0.75, 0.433),
        (lambda: R.stateless_binomial([4000], [1, 2], 10.0, 0.5), 5.0, 1.58),
    ],
)
def test_statistics(draw, mean, deviation):
    R.set_seed(1)
    found = draw().numpy()
    assert abs(found.mean() - mean) < 0.1 * max(deviation, 0.5)
    assert abs(found.std() - deviation) < 0.1 * deviation


@pytest.mark.parametrize(
    ("draw", "dtype", "shape"),
    [
        (lambda: R.normal([2], mean=[[1.0], [2.0]]), "float32", (2, 2)),
        (lambda: R.normal(tf.constant([2, 3]), dtype=tf.float64), "float64", (2, 3)),
        (lambda: R.uniform((), 0, 3, dtype=tf.int64), "int64", ()),
        (lambda: R.poisson([3], [1.0, 2.0]), "float32", (3, 2)),
        (lambda: R.gamma([3], [1.0, 2.0], beta=[[1.0], [2.0]]), "float32", (3, 2, 2)),
        (lambda: R.categorical([[1.0, 2.0]], 5), "int64", (1, 5)),
        (lambda: R.stateless_uniform([4], [1, 2], None, None, dtype=tf.uint32), "uint32", (4,)),
        (lambda: R.stateless_gamma([3, 2], [1, 2], alpha=[1.0, 2.0]), "float32", (3, 2)),
        (lambda: R.stateless_poisson([3, 2], [1, 2], lam=[1.0, 2.0]), "int32", (3, 2)),
        (lambda: R.stateless_categorical([[1.0, 2.0]], 5, [1, 2]), "int64", (1, 5)),
        (lambda: R.split(tf.constant([1, 2], tf.int64), 3), "int64", (3, 2)),
        (lambda: R.fold_in([1, 2], 3), "int32", (2,)),
        (lambda: R.experimental.stateless_shuffle([1, 2, 3], [1, 2]), "int32", (3,)),
    ],
)
def test_shapes_and_types(draw, dtype, shape):
    found = draw()
    assert (found.dtype.name, tuple(found.shape)) == (dtype, shape)


@pytest.mark.parametrize(("draw", "error", "words"), [
    (lambda: R.uniform([2], dtype=tf.int32), ValueError, "Must specify maxval"),
    (lambda: R.uniform([2], 0, 3, dtype=tf.uint8), ValueError, "Accepted dtypes"),
    (lambda: R.uniform([2], 3, 3, dtype=tf.int32), "Invalid", "Need minval < maxval, got 3"),
    (lambda: R.normal([2], mean=[1.0, 2.0, 3.0]), "Invalid", "Incompatible shapes"),
    (lambda: R.normal([2], dtype=tf.int32), TypeError, "int32"),
    (lambda: R.categorical([1.0, 2.0], 5), "Invalid", "logits should be a matrix"),
    (lambda: R.stateless_normal([2], seed=1), "Invalid", r"seed must have shape \[2\]"),
    (lambda: R.stateless_gamma([3], [1, 2], [1.0, 2.0]), "Invalid", "must end with"),
    (lambda: R.stateless_uniform([4], [1, 2], minval=0, dtype=tf.int32), ValueError,
     "must be both None or not None"),
    (lambda: R.Generator.from_seed(1, alg="dice"), ValueError, "unsupported value dice"),
    (lambda: R.Generator(), ValueError, "made of `copy_from`"),
    (lambda: R.Generator.from_state([1, 2], "philox"), ValueError, r"\(2,\) and \[3\] are inc"),
    (lambda: R.Generator.from_key_counter(1, [1], 1), ValueError, r"\(1,\) and \[2\] are inc"),
    (lambda: R.Generator.from_seed(1, alg=1.5), TypeError, "Can't convert argument `alg`"),
    (lambda: R.uniform([2], [0, 1], 3, dtype=tf.int32), ValueError, "minval must be a scalar"),
    (lambda: R.stateless_normal([2], [1.0, 2.0]), "Invalid", "allowed values: int32, int64"),
    (lambda: R.set_global_generator(3), TypeError, "is not a Generator"),
])  # fmt: skip
def test_errors(draw, error, words):
    kind = tf.errors.InvalidArgumentError if error == "Invalid" else error
    with pytest.raises(kind, match=words):
        draw()


def test_a_refused_draw_changes_nothing():
    generator = R.Generator.from_seed(7)
    before = generator.state.numpy().tolist()
    with pytest.raises(tf.errors.InvalidArgumentError):
        generator.normal([2], mean=[1.0, 2.0, 3.0])
    assert generator.state.numpy().tolist() == before


def test_stateless_seeds():
    plain = R.stateless_normal([3], [1, -2]).numpy().tolist()
    assert R.stateless_normal([3], tf.constant([1, -2], tf.int64)).numpy().tolist() == plain
    assert tf.function(lambda s: R.stateless_normal([3], s))([1, -2]).numpy().tolist() == plain
    large = tf.constant([1 + 2**40, -2], tf.int64)
    assert R.stateless_normal([3], large).numpy().tolist() != plain
    rows = R.split([1, 2], 4).numpy()
    assert len({tuple(row) for row in rows}) == 4
    assert R.fold_in([1, 2], 5).numpy()[1] == 5


def test_gradients_go_to_the_parameters():
    mean = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(R.normal([3, 2], mean=mean, stddev=2.0))
    assert tape.gradient(loss, mean).numpy().tolist() == [3.0, 3.0]


def test_a_range_may_be_given_from_its_end():  # what TensorFlow 2.21 draws
    R.set_seed(1)
    assert_close(R.uniform([3], 5, 2), [4.504607, 2.295556, 3.1070776])
    assert R.uniform([3], 2, 2).numpy().tolist() == [2.0, 2.0, 2.0]
    low, high = [1.0, 5.0, 2.0], [2.0, 2.0, 2.0]
    drawn = tf.function(lambda low: R.stateless_uniform([3], [1, 2], low, high))(low)
    assert_close(drawn, [1.8440604, 4.423864, 2.0])
    assert_close(R.Generator.from_seed(1).uniform([3], 5, 2), [2.6375146, 3.8280468, 4.1221085])


# ---------------------------------------------------------------- generators
def test_a_generator():
    one, other = R.Generator.from_seed(7), R.Generator.from_seed(7, alg="philox")
    drawn = tf.function(lambda: other.normal([2]))
    first, second = one.normal([2]).numpy().tolist(), one.normal([2]).numpy().tolist()
    assert [drawn().numpy().tolist(), drawn().numpy().tolist()] == [first, second]
    one.reset_from_seed(7)
    one.skip(2)  # as many as there were values
    assert one.normal([2]).numpy().tolist() == second
    assert one.state.numpy().tolist() == [7 + 4 * 256, 0, 0]
    copied = R.Generator.from_state(one.state.numpy(), alg="philox")
    again = R.Generator.from_key_counter(one.key, one.state[:2], "philox")
    shared = R.Generator.from_state(one.state, alg="philox")
    wanted = one.uniform([2]).numpy().tolist()
    assert copied.uniform([2]).numpy().tolist() == wanted == again.uniform([2]).numpy().tolist()
    assert shared.state is one.state
    assert one.algorithm == R.Algorithm.PHILOX.value
    with pytest.raises(ValueError, match=r"Philox is the only algorithm here"):
        R.Generator.from_seed(7, "threefry")


def test_what_a_generator_draws():
    g = R.Generator.from_seed([1, 2, 3])
    assert g.make_seeds(3).shape == (2, 3)
    assert g.make_seeds().dtype == tf.int64
    assert g.uniform_full_int([2]).dtype == tf.uint64
    assert g.binomial([2], counts=[5.0, 6.0], probs=[0.1, 0.2]).dtype == tf.int32
    assert set(g.uniform([60], 1, 4, dtype=tf.int32).numpy()) == {1, 2, 3}
    assert np.abs(g.truncated_normal([50]).numpy()).max() <= 2
    with pytest.raises(ValueError, match="both `None` or both"):
        g.uniform([2], dtype=tf.int32)
    left, right = g.split(2)
    assert left.normal([]) != right.normal([])
    state = R.create_rng_state(7, "philox")
    made = R.Generator.from_state(state, "philox").normal([2])
    assert made.numpy().tolist() == R.Generator.from_seed(7).normal([2]).numpy().tolist()


def test_the_global_generator(tmp_path):
    before = R.get_global_generator()
    try:
        R.set_global_generator(R.Generator.from_seed(7))
        drawn = R.get_global_generator().normal([2]).numpy().tolist()
        assert drawn == R.Generator.from_seed(7).normal([2]).numpy().tolist()
    finally:
        R.set_global_generator(before)


def test_initializers_with_a_seed_have_tensorflows_values():
    uniform = tf.random_uniform_initializer(seed=1)
    for _ in range(2):  # the same each time
        assert_close(uniform([3]), [0.03784882, -0.00400198, 0.01002913])
    normal = tf.random_normal_initializer(seed=1)
    assert_close(normal([3]), [0.00633252, -0.02465083, 0.03155954])
    whole = tf.random_uniform_initializer(0, 10, seed=1)([3], "int32")
    assert whole.numpy().tolist() == [9, 4, 0]


def test_bounds_may_be_tensors_in_a_function():
    @tf.function
    def f(low):
        return tf.random.uniform([100], low), tf.random.uniform([100], low, low + 1.0)

    plain, moved = f(tf.constant(0.5))
    assert all(0.5 <= x < 1.0 for x in plain.numpy())
    assert all(0.5 <= x < 1.5 for x in moved.numpy())


def test_a_generator_made_in_the_first_call(tmp_path):
    class Draws(tf.Module):
        def __init__(self):
            super().__init__()
            self.generator = None

        @tf.function(input_signature=[])
        def __call__(self):
            if self.generator is None:
                self.generator = tf.random.Generator.from_seed(1)
            return self.generator.normal([])

    draws = Draws()
    found = [draws().numpy() for _ in range(3)]
    np.testing.assert_allclose(found, [0.43842274, 1.6272374, 1.6307176], rtol=1e-6)
    draws.generator.reset_from_seed(1)
    draws()
    saved = tf.train.Checkpoint(draws=draws)
    saved.write(str(tmp_path / "state"))
    assert draws().numpy() == found[1]
    saved.restore(str(tmp_path / "state"))
    tf.saved_model.save(draws, str(tmp_path / "model"))
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    for one in (loaded, draws):
        assert [one().numpy(), one().numpy()] == found[1:]


# ---------------------------------------------------------------- threads
def test_a_transaction_draws_while_another_thread_sets_the_seed(monkeypatch):
    v, has_begun, sets, drawn = tf.Variable(0.0), *(threading.Event() for _ in range(3))
    own, found = core.set_seed, []

    def set_core_seed(seed):  # which assigns, and so waits for the transaction
        sets.set()
        found.append(drawn.wait(20))
        own(seed) if found[0] else None

    def train():
        with jv.transaction():
            v.assign(1.0)
            has_begun.set()
            sets.wait(20)
            v.assign(tf.random.uniform([]))
            drawn.set()

    def set_seed():
        has_begun.wait(20)
        tf.random.set_seed(1234)

    monkeypatch.setattr(core, "set_seed", set_core_seed)
    run_in_threads(train, set_seed)
    assert found == [True]
    assert v.numpy() == pytest.approx(EAGER[0])
