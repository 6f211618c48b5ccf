"""`Batches` and their sources: threads, arrays of other libraries, arrays that are used again."""

from __future__ import annotations

import gc
import itertools
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding

import jaxvars as jv
from jaxvars.errors import DtypeError, NotATensorError, ShardingError
from jaxvars.parallel import Batches

both = pytest.mark.parametrize("thread", [False, True])


def workers() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "jaxvars batches"]


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert workers() == []


def numbers(closed: list[str] | None = None) -> Iterator[dict[str, np.ndarray]]:
    try:
        for i in itertools.count():
            yield {"x": np.full(8, i, np.float32)}
    finally:
        if closed is not None:
            closed.append(threading.current_thread().name)


@both
@pytest.mark.parametrize("devices", [1, 8])
@pytest.mark.parametrize("local", [False, True])
def test_a_source_may_use_one_array_for_all_batches(local, devices, thread, batch):
    def source() -> Any:
        for n in range(20):
            batch[:] = n
            yield batch
        batch[:] = -1

    with jv.use_mesh({"data": devices}):
        found = list(Batches(source(), prefetch=3, local=local, thread=thread))
    assert [np.unique(x).tolist() for x in found] == [[n] for n in range(20)]


@both
@pytest.mark.parametrize("prefetch", [0, 1, 5])
def test_order_values_and_the_end_of_a_source(thread, prefetch):
    source = [{"x": np.arange(3) + i, "n": i, "nothing": None} for i in range(9)]
    batches = Batches(source, prefetch=prefetch, thread=thread)
    assert len(batches) == 9
    for _ in range(2):
        found = [(b["x"].tolist(), int(b["n"]), b["nothing"]) for b in batches]
        assert found == [([i, i + 1, i + 2], i, None) for i in range(9)]
    assert list(Batches([], thread=thread)) == []


@both
def test_without_a_mesh_they_go_to_the_device_in_force(thread):
    device = jax.devices()[3]
    batches = Batches([np.ones(3)], thread=thread)
    assert next(iter(batches)).devices() == {jax.devices()[0]}
    with jv.device(device):
        assert next(iter(batches)).devices() == {device}
    assert next(iter(Batches([np.ones(3)], device, thread=thread))).devices() == {device}


@both
@pytest.mark.parametrize("prefetch", [0, 2, 9])
def test_an_error_of_the_source_comes_in_its_place_with_its_traceback(thread, prefetch):
    def source() -> Any:
        yield from itertools.islice(numbers(), 4)
        raise OSError("the disk is gone")

    batches = iter(Batches(source(), prefetch=prefetch, thread=thread))
    assert [int(next(batches)["x"][0]) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(OSError, match="the disk is gone") as caught:
        next(batches)
    assert "source" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_a_thread_is_as_far_ahead_as_it_may_be():
    taken = []

    def source() -> Any:
        for batch in numbers():
            taken.append(threading.current_thread().name)
            yield batch

    batches = iter(Batches(source(), prefetch=2, thread=True))
    assert workers() == []  # not before the first one is asked for
    for n in range(3):
        assert int(next(batches)["x"][0]) == n
        deadline = time.monotonic() + 10
        while len(taken) < n + 5 and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.02)
        assert taken == ["jaxvars batches"] * (n + 5)
    batches.close()


@both
@pytest.mark.parametrize("how", ["break", "raise", "del", "cycle", "close"])
def test_a_loop_may_be_left_early(how, thread):
    closed: list[str] = []
    batches: Any = iter(Batches(numbers(closed), thread=thread))
    next(batches)
    assert len(workers()) == thread
    if how == "close":
        batches.close()
    if how == "cycle":
        cycle = [batches]
        cycle.append(cycle)
        del cycle
    if how in ("del", "cycle"):
        del batches
    else:
        with pytest.raises(KeyError) if how == "raise" else pytest.MonkeyPatch.context():
            for _ in batches:
                if how == "raise":
                    raise KeyError
                break
        del batches
    gc.collect()
    assert (workers(), len(closed)) == ([], 1)


def test_ctrl_c_while_a_loop_waits_for_the_source():
    def source() -> Any:
        yield from itertools.islice(numbers(), 3)
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.3)
        yield from itertools.islice(numbers(), 1000)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may have been ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            for _ in Batches(source(), thread=True):
                pass
    finally:
        signal.signal(signal.SIGINT, before)
    assert workers() == []


def test_a_program_may_end_with_threads_at_work(run_python):
    code = """
import itertools, time, numpy as np, jaxvars as jv
def waits():
    yield np.ones(4)
    time.sleep(0.5)
    yield np.ones(4)
sources = itertools.repeat(np.ones(4)), waits()
batches = [iter(jv.parallel.Batches(x, thread=True, prefetch=0)) for x in sources]
print(*(next(each).sum() for each in batches))
"""
    done = run_python("-c", code)
    assert (done.stdout, done.stderr, done.returncode) == ("4.0 4.0\n", "", 0)


class Foreign:
    """What PyTorch's tensors are like: an array in the memory of another library."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.shape, self.dtype = array, array.shape, f"torch.{array.dtype}"

    def __array__(self, dtype: Any = None) -> np.ndarray:  # without `copy`, as PyTorch has it
        return self.array


@both
@pytest.mark.parametrize("local", [False, True])
def test_arrays_of_other_libraries(thread, local, batch):
    def source() -> Any:
        for n in range(6):
            batch[:] = n
            yield [Foreign(batch), {"label": Foreign(np.full(len(batch), n))}]

    with jv.use_mesh({"data": 1}):
        found = list(Batches(source(), thread=thread, local=local))
    assert [np.unique(x).tolist() for x, _ in found] == [[n] for n in range(6)]
    assert [int(y["label"][0]) for _, y in found] == list(range(6))
    assert found[0][1]["label"].dtype == np.int32


@both
def test_errors_name_the_leaf(thread):
    good = {"x": np.ones(4), "file": np.ones(4)}
    for leaf, kind, match in [
        ("word", NotATensorError, r"array\['file'\] is not one that JAX takes: .*str"),
        (np.array(list("abcd")), NotATensorError, r"array\['file'\] is not one that JAX takes"),
        (np.arange(4) + 2**40, DtypeError, r"array\['file'\] reaches from 1099511627776"),
    ]:
        batches = iter(Batches([good, {"x": np.ones(4), "file": leaf}], prefetch=0, thread=thread))
        next(batches)
        with pytest.raises(kind, match=match):
            next(batches)
    mesh = jv.mesh({"rows": 4})
    with pytest.raises(ShardingError, match=r"this mesh has \['rows'\]: .*jax\.P\('rows'\)"):
        list(Batches([good], mesh=mesh, thread=thread))
    assert len(list(Batches([{"x": np.ones(4)}], jax.P("rows"), mesh=mesh, thread=thread))) == 1


@both
def test_an_iterator_is_iterated_over_once(thread):
    batches = Batches(numbers(), thread=thread)
    for _ in batches:
        break
    with pytest.raises(
        ValueError, match=r"source, a generator, gives each batch once: (?s:.*)iter"
    ):
        next(iter(batches))
    kept = Batches([np.ones(2)], thread=thread)
    assert [len(list(kept)), len(list(kept))] == [1, 1]


# ---------------------------------------------------------------- batches on a mesh
@pytest.fixture(scope="module")
def mesh():
    return jv.mesh({"data": 8})


def test_batches_are_sent_ahead_and_no_more(mesh):
    taken = []

    def source():
        for i in range(5):
            taken.append(i)
            yield {"x": np.full((8, 2), i), "y": np.full(8, i)}

    for i, batch in enumerate(Batches(source(), mesh=mesh, prefetch=2)):
        assert len(taken) == min(5, i + 3)
        assert {k: v.sharding.spec for k, v in batch.items()} == dict.fromkeys("xy", jax.P("data"))
        assert batch["x"].dtype == jnp.int32
        assert int(batch["y"][0]) == i
    assert len(taken) == 5


def test_batches_on_the_mesh_in_force(mesh):
    with jv.use_mesh(mesh):
        batches = Batches([np.ones((8, 4))], None)
    (x,) = batches
    assert x.sharding == NamedSharding(mesh, jax.P())


@both
def test_batches_that_cannot_be_sharded(mesh, thread):
    ragged = [{"x": np.ones(8)}, {"x": np.ones(8)}, {"x": np.ones(5)}]
    batches = iter(Batches(ragged, mesh=mesh, prefetch=0, thread=thread))
    next(batches)
    next(batches)
    match = r"Batch 2 .*array\['x'\] of shape \(5,\) cannot be sharded(?s:.*)drop_remainder=True"
    with pytest.raises(ShardingError, match=match):
        next(batches)
    assert len(list(Batches(ragged, mesh=mesh, thread=thread, drop_remainder=True))) == 2
    with pytest.raises(ShardingError, match=r"not a multiple of the 8 devices"):
        list(Batches(ragged[2:], mesh=mesh, drop_remainder=True))
    with pytest.raises(ShardingError, match="no mesh is in force"):
        list(Batches(ragged, jax.P("data")))
    with pytest.raises(ShardingError, match="no mesh is in force"):
        list(Batches(ragged, local=True))
    with pytest.raises(ValueError, match="prefetch is how many"):
        Batches(ragged, mesh=mesh, prefetch=-1)


@pytest.mark.parametrize("prefetch", [0, 1, 2, 9])
def test_batches_before_one_that_fails_arrive(prefetch):
    source = [*(np.full(8, i, np.float32) for i in range(5)), np.ones(3, np.float32)]
    mesh = jv.mesh({"data": 4})
    batches = iter(Batches(source, mesh=mesh, prefetch=prefetch))
    assert [float(next(batches)[0]) for _ in range(5)] == [0.0, 1.0, 2.0, 3.0, 4.0]
    with pytest.raises(ShardingError):
        next(batches)
    batches = Batches(source, mesh=mesh, prefetch=prefetch, drop_remainder=True)
    assert len(list(batches)) == 5
    with pytest.raises(TypeError, match="remainders are left out"):
        len(batches)


def test_batches_and_trees_with_nothing_in_a_place():
    mesh = jv.mesh({"data": 4})
    (batch,) = Batches([(np.ones(4, np.float32), None)], mesh=mesh)
    assert (batch[0].shape, batch[1]) == ((4,), None)
    tree = {"a": np.ones(4), "b": None, "c": np.ones(3)}
    spread = jv.shard(tree, {"a": jax.P("data"), "b": None, "c": None}, mesh=mesh)
    assert (spread["a"].sharding.spec, spread["b"]) == (jax.P("data"), None)
