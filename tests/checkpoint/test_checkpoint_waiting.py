"""What waits for its variable is state: saved, copied, pickled, and of the variable it was for."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxvars as jv
from jaxvars.checkpoint import Checkpoint, CheckpointManager, list_variables, load, waiting
from jaxvars.checkpoint.waiting import NEW_CELLS, PENDING
from jaxvars.errors import CheckpointError, CheckpointWarning, StateError
from jaxvars.modules.module import WAITING
from jaxvars.tracing.guards import GUARDS


@pytest.fixture(autouse=True)
def _nothing_is_pending_afterwards():
    yield
    gc.collect()
    assert PENDING == []
    assert NEW_CELLS == {}
    assert GUARDS == {}


def sgd(**options: Any) -> Any:
    return jv.optimizers.SGD(0.1, momentum=0.9, **options)


class Run:
    """An encoder and a head, their optimizer, a Checkpoint of all, and its steps."""

    def __init__(self, make: Callable[[], Any] = sgd):
        self.model, self.optimizer = jv.Module(), make()
        self.model.encoder = jv.Variable([1.0, 1.0])
        self.model.head = jv.Variable([1.0, 1.0])
        self.checkpoint = Checkpoint(model=self.model, optimizer=self.optimizer)

    def step(self, times: int = 1) -> Run:
        for _ in range(times):
            weights = self.model.trainable_variables
            self.optimizer.apply_gradients([(w * 1.0, w) for w in weights])
        return self

    def weights(self) -> list[list[float]]:
        return [v.numpy().tolist() for v in (self.model.encoder, self.model.head)]


def saved(folder: Path, make: Callable[[], Any] = sgd) -> str:
    return Run(make).step(3).checkpoint.write(folder / "three.npz")


def paths_in(path: str) -> list[str]:
    return [name for name, _ in list_variables(path)]


# ---------------------------------------------------------------- saved, copied, pickled
def between_save(run: Run, make: Callable[[], Any], folder: Path) -> Run:
    for i in range(2):  # as often as it is stopped
        path = run.checkpoint.write(folder / f"again{i}.npz")
        run = Run(make)
        run.checkpoint.restore(path).expect_partial()
    return run


def between_copy(run: Run, make: Callable[[], Any], folder: Path) -> Run:
    other = Run(make)
    other.model, other.optimizer = copy.deepcopy((run.model, run.optimizer))
    return other


def between_pickle(run: Run, make: Callable[[], Any], folder: Path) -> Run:
    other = Run(make)
    other.model, other.optimizer = pickle.loads(pickle.dumps((run.model, run.optimizer)))
    return other


def between_weights(run: Run, make: Callable[[], Any], folder: Path) -> Run:
    weights = Checkpoint(model=run.model)
    weights.restore(weights.write(folder / "weights.npz")).assert_consumed()
    return run


@pytest.mark.parametrize(("make", "between"), [
    (sgd, between_save), (sgd, between_copy), (sgd, between_pickle), (sgd, between_weights),
    (lambda: sgd(use_ema=True), between_save),
    (lambda: jv.optimizers.LossScaleOptimizer(sgd()), between_weights),
    (lambda: jv.optimizers.Optax(optax.scale_by_adam()), between_copy),
])  # fmt: skip
def test_slots_of_a_frozen_variable_wait_until_it_is_thawed(tmp_path: Path, make, between):
    want = Run(make).step(2)
    want.model.encoder.trainable = False
    want.step()
    run = Run(make)
    run.checkpoint.restore(Run(make).step(2).checkpoint.write(tmp_path / "c.npz")).expect_partial()
    run.model.encoder.trainable = False
    run = between(run.step(), make, tmp_path)
    for each in (want, run):
        each.model.encoder.trainable = True
        each.step()
    assert run.weights() == want.weights()
    assert not vars(run.optimizer).get(WAITING)


class Lazy(jv.Module):
    """A layer that makes its variables when it is first called."""

    def __call__(self, x):
        if not hasattr(self, "w"):
            self.w = jv.Variable(jnp.zeros((x.shape[-1], 2)))
            self.key, self.word = jv.Variable(jax.random.key(0)), jv.Variable("")
        return x @ self.w


def made_lazy() -> Lazy:
    lazy = Lazy()
    lazy(jnp.ones((1, 3)))
    lazy.w.assign(jnp.full((3, 2), 5.0))
    lazy.key.assign(jax.random.key(7))
    lazy.word.assign("yes")
    return lazy


COPIES = [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]


@pytest.mark.parametrize("copied", COPIES)
def test_layers_that_are_not_made_yet_are_copied_with_what_waits_for_them(tmp_path: Path, copied):
    path = Checkpoint(lazy=made_lazy()).write(tmp_path / "c.npz")
    lazy = Lazy()
    status = Checkpoint(lazy=lazy).restore(path)
    assert "wait" not in repr(lazy)
    for each in (copied(lazy), lazy):
        assert each(jnp.ones((1, 3))).tolist() == [[15.0, 15.0]]
        assert bool(jax.random.key_data(each.key.value)[1] == 7)
        assert each.word.numpy().item() == "yes"
    status.assert_consumed()


@pytest.mark.parametrize("is_partial", [False, True])
def test_layers_that_are_not_made_yet_are_saved(tmp_path: Path, is_partial: bool):
    path = Checkpoint(lazy=made_lazy()).write(tmp_path / "c.npz")
    checkpoint = Checkpoint(lazy=Lazy())
    status = checkpoint.restore(path)
    again = checkpoint.write(tmp_path / "d.npz")
    status.expect_partial()
    if is_partial:
        again = checkpoint.write(tmp_path / "e.npz")
    lazy = Lazy()
    status = Checkpoint(lazy=lazy).restore(again)
    assert lazy(jnp.ones((1, 3))).tolist() == [[15.0, 15.0]]
    status.assert_consumed()


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_takes_nothing_that_its_original_did_not_take(tmp_path: Path, copied):
    run = Run()
    run.model.encoder.assign([3.0, 4.0])
    run.checkpoint.write(tmp_path / "c.npz")
    run.model.head = run.model.encoder
    status = run.checkpoint.restore(tmp_path / "c.npz")
    assert copied(run.model).head.numpy().tolist() == run.weights()[1] == [3.0, 4.0]
    with pytest.raises(CheckpointError, match=r"c\.npz was not restored as a whole:\n  .*extra"):
        status.assert_consumed()
    status.expect_partial()


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_may_be_made_before_new_variables_are_read(tmp_path: Path, copied):
    path = Checkpoint(lazy=made_lazy()).write(tmp_path / "c.npz")
    lazy = Lazy()
    status = Checkpoint(lazy=lazy).restore(path)
    lazy.w = jv.Variable(jnp.zeros((3, 2)))
    lazy.key, lazy.word = jv.Variable(jax.random.key(0)), jv.Variable("")
    assert copied(lazy).word.numpy().item() == "yes"
    assert lazy(jnp.ones((1, 3))).tolist() == [[15.0, 15.0]]
    status.assert_consumed()


def test_what_was_not_expected_to_be_taken_is_not_saved(tmp_path: Path):
    path = saved(tmp_path)
    run = Run()
    del run.model.head
    run.model.top = jv.Variable([1.0])
    run.checkpoint.restore(path).expect_partial()
    again = run.step().checkpoint.write(tmp_path / "again.npz")
    assert not [path for path in paths_in(again) if "head" in path]
    run.checkpoint.restore(again).assert_consumed()


def test_a_slot_is_saved_under_the_path_that_its_variable_has(tmp_path: Path):
    run = Run()
    run.checkpoint.restore(saved(tmp_path)).expect_partial()
    other = Checkpoint(net=run.model, sgd=run.optimizer)
    path = other.write(tmp_path / "other.npz")
    assert [p for p in paths_in(path) if "slots" in p] == [
        "sgd/slots/net/encoder/momentum",
        "sgd/slots/net/head/momentum",
    ]
    with pytest.raises(CheckpointError, match=r"at 'sgd' has slots for several.*called 'Variable'"):
        Checkpoint(sgd=run.optimizer).write(tmp_path / "alone.npz")


@pytest.mark.filterwarnings("ignore::jaxvars.errors.CheckpointWarning")
def test_a_save_that_loses_nothing_replaces_the_only_file(tmp_path: Path):
    def manage(**objects: object) -> CheckpointManager:
        return CheckpointManager(Checkpoint(**objects), tmp_path / "d", 1, format="npz")

    first = Run().step(3)
    manage(model=first.model, optimizer=first.optimizer).save()
    for _ in range(2):  # started, saved and stopped before a step
        run = Run()
        manager = manage(model=run.model, optimizer=run.optimizer)
        manager.restore_or_initialize()
        manager.save()
        assert len(manager.checkpoints) == 1
    assert run.step().weights() == first.step().weights()


@pytest.mark.filterwarnings("ignore::jaxvars.errors.CheckpointWarning")
def test_a_checkpoint_that_values_wait_from_for_no_object_is_kept(tmp_path: Path):
    def manage(**objects: object) -> CheckpointManager:
        return CheckpointManager(Checkpoint(**objects), tmp_path / "d", 1, format="npz")

    first, run = Run().step(3), Run()
    only = manage(model=first.model, optimizer=first.optimizer).save()
    manager = manage(model=run.model)
    manager.restore_or_initialize()
    manager.save()
    latest = manager.save()
    assert manager.checkpoints == [only, latest]
    manager.checkpoint.optimizer = run.optimizer = sgd()
    assert run.step().weights() == first.step().weights()
    latest = manager.save()
    assert manager.checkpoints == [latest]


# ---------------------------------------------------------------- whose it is
@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("size", [2, 3])
def test_a_variable_in_the_place_of_another_gets_nothing_of_it(tmp_path: Path, wrap, size: int):
    run = Run()
    run.checkpoint.restore(saved(tmp_path)).expect_partial()
    run.model.head = jv.Variable(jnp.ones(size))
    step = wrap(lambda: run.step() and None)
    for _ in range(3):
        step()
    fresh = Run().step(3)
    assert run.model.head.numpy().tolist() == [fresh.weights()[1][0]] * size
    assert run.weights()[0] == Run().step(6).weights()[0]


def test_slots_of_a_variable_that_is_gone_are_told_once(tmp_path: Path):
    run = Run()
    run.checkpoint.restore(saved(tmp_path))
    run.model.head = jv.Variable([1.0, 1.0])
    with pytest.warns(
        CheckpointWarning, match=r"never used: optimizer/slots/model/head/momentum\."
    ):
        run.step()
    run.step()


def test_a_variable_that_has_moved_keeps_its_slots(tmp_path: Path):
    run, want = Run(), Run().step(3)
    run.checkpoint.restore(saved(tmp_path)).expect_partial()
    run.model.old, run.model.head = run.model.head, jv.Variable([1.0, 1.0])
    again = run.checkpoint.write(tmp_path / "again.npz")
    assert "optimizer/slots/model/old/momentum" in paths_in(again)
    assert "optimizer/slots/model/head/momentum" not in paths_in(again)
    run.optimizer.apply_gradients([(run.model.old * 1.0, run.model.old)])
    assert run.model.old.numpy().tolist() == want.step().weights()[1]


def test_an_optimizer_that_is_put_in_later_gives_slots_to_the_variables_restored(tmp_path: Path):
    run, want = Run(), Run().step(4)
    checkpoint = Checkpoint(model=run.model)
    checkpoint.restore(saved(tmp_path)).expect_partial()
    old, run.model.head = run.model.head, jv.Variable([1.0, 1.0])
    checkpoint.optimizer = run.optimizer
    assert run.step().weights() == [want.weights()[0], Run().step().weights()[1]]
    assert old.numpy().tolist() == Run().step(3).weights()[1]


def test_a_layer_in_the_place_of_another_gets_nothing_of_it(tmp_path: Path):
    path = Checkpoint(lazy=made_lazy()).write(tmp_path / "c.npz")
    checkpoint = Checkpoint(lazy=Lazy())
    checkpoint.restore(path)
    with pytest.warns(CheckpointWarning, match=r"never used: lazy/key, lazy/w, lazy/word\. If"):
        checkpoint.lazy = Lazy()
    assert checkpoint.lazy(jnp.ones((1, 5))).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("order", ["mo", "om", "omm"])
@pytest.mark.parametrize("name", [None, "w"])
def test_a_model_and_its_optimizer_may_have_checkpoints_of_their_own(tmp_path: Path, order, name):
    def made() -> Run:
        run = Run()
        if name is not None:
            run.model.encoder, run.model.head = (
                jv.Variable([1.0, 1.0], name=f"{name}{i}") for i in range(2)
            )
        return run

    first, run = made().step(3), made()
    path = first.checkpoint.write(tmp_path / "c.npz")
    objects = {"m": {"model": run.model}, "o": {"optimizer": run.optimizer}}
    other = Checkpoint(model=made().model).write(tmp_path / "other.npz")
    for i, each in enumerate(order):
        source = other if i == 2 else path  # other weights, once the slots have their variables
        status = Checkpoint(**objects[each]).restore(source).expect_partial()
        status.assert_existing_objects_matched()
    if order == "omm":
        first.model.encoder.assign([1.0, 1.0])
        first.model.head.assign([1.0, 1.0])
    assert run.step().weights() == first.step().weights()


def test_a_checkpoint_that_is_restored_again_ends_what_waits_from_it(tmp_path: Path):
    path, other, run = saved(tmp_path), Run(), Run().step()
    # A variable of another model may be the one that slots wait for.
    other.checkpoint.restore(path).expect_partial()
    del run.model.head
    Checkpoint(model=run.model).restore(path).expect_partial()
    Checkpoint(optimizer=run.optimizer).restore(path).expect_partial()
    run.checkpoint.restore(path).expect_partial()
    run.checkpoint.write(tmp_path / "again.npz")
    run.model.head = jv.Variable([1.0, 1.0])
    assert run.step().weights() == Run().step(4).weights()


def test_a_variable_that_has_moved_keeps_its_slots_when_all_is_restored_again(tmp_path: Path):
    path, run = saved(tmp_path), Run()
    run.checkpoint.restore(path).expect_partial()
    run.model.old, run.model.head = run.model.head, jv.Variable([1.0, 1.0])
    run.checkpoint.restore(path).expect_partial()
    run.step()
    want = Run().step(4).weights()
    assert [*run.weights(), run.model.old.numpy().tolist()] == [*want, want[1]]


@pytest.mark.parametrize("begin", ["b", "mo"])
@pytest.mark.parametrize("order", ["mo", "b", "ob", "omo"])
def test_a_variable_that_took_the_place_of_another_has_its_slots(tmp_path, begin, order):
    path, run = saved(tmp_path), Run()
    objects = {"m": {"model": run.model}, "o": {"optimizer": run.optimizer}}
    objects["b"] = objects["m"] | objects["o"]
    for each in begin:
        Checkpoint(**objects[each]).restore(path).expect_partial()
    run.step()
    run.model.head, run.model.encoder = run.model.encoder, jv.Variable([1.0, 1.0])
    run.step()
    for each in order:
        Checkpoint(**objects[each]).restore(path).expect_partial()
    assert run.step().weights() == Run().step(4).weights()


def test_another_model_of_the_same_checkpoint_takes_nothing_away(tmp_path: Path):
    path, teacher, run = saved(tmp_path), Run(), Run()
    Checkpoint(model=teacher.model).restore(path).expect_partial()
    Checkpoint(optimizer=run.optimizer).restore(path).expect_partial()
    Checkpoint(model=run.model).restore(path).expect_partial()
    assert run.step().weights() == Run().step(4).weights()


@pytest.mark.parametrize("order", ["b", "om", "mo"])
@pytest.mark.parametrize("is_saved", [False, True])
def test_of_two_models_each_has_slots_of_its_own(tmp_path: Path, order: str, is_saved: bool):
    path, run, teacher = saved(tmp_path), Run(), Run()
    objects = {"m": {"model": run.model}, "o": {"optimizer": run.optimizer}}
    objects["b"] = {**objects["m"], **objects["o"]}
    if order != "b":
        teacher.checkpoint.restore(path).expect_partial()
    for each in order:
        Checkpoint(**objects[each]).restore(path).expect_partial()
    if order == "b":
        teacher.checkpoint.restore(path).expect_partial()
        Checkpoint(**objects["m"]).restore(path).expect_partial()
    if is_saved:
        again = run.checkpoint.write(tmp_path / "again.npz")
        assert len([name for name in paths_in(again) if "slots/model/" in name]) == 2
        run = Run()
        run.checkpoint.restore(again).expect_partial()
    assert run.step().weights() == Run().step(4).weights()


def test_slots_that_are_there_get_theirs_though_another_model_has_been_restored(tmp_path: Path):
    run, other, path = Run(), Run(), saved(tmp_path)
    run.model.encoder, run.model.head = (jv.Variable([1.0, 1.0], name=n) for n in "ab")
    run.step()
    for each in (other, run):
        Checkpoint(optimizer=each.optimizer).restore(path).expect_partial()
        Checkpoint(model=each.model).restore(path).expect_partial()
    want = Run().step(4).weights()
    assert run.step().weights() == other.step().weights() == want


@pytest.mark.parametrize("order", ["om", "mo"])
def test_slots_of_a_variable_that_was_replaced_are_not_saved(tmp_path: Path, order: str):
    path, run, teacher = saved(tmp_path), Run(), Run()
    teacher.checkpoint.restore(path).expect_partial()
    for each in order:
        objects = {"m": {"model": run.model}, "o": {"optimizer": run.optimizer}}[each]
        Checkpoint(**objects).restore(path).expect_partial()
    run.model.head = jv.Variable([1.0, 1.0])
    again = paths_in(run.checkpoint.write(tmp_path / "again.npz"))
    assert [name for name in again if "slots" in name] == ["optimizer/slots/model/encoder/momentum"]
    run.step()
    assert run.weights() == [Run().step(4).weights()[0], Run().step().weights()[1]]


@pytest.mark.parametrize("copied", COPIES)
def test_of_two_restores_of_slots_the_last_counts(tmp_path: Path, copied):
    first, run = Run().step(3), Run()
    old = first.checkpoint.write(tmp_path / "old.npz")
    new = first.step(2).checkpoint.write(tmp_path / "new.npz")
    run.checkpoint.restore(old).expect_partial()
    Checkpoint(optimizer=run.optimizer).restore(new).expect_partial()
    Checkpoint(model=run.model).restore(new).expect_partial()
    assert run.step().weights() == first.step().weights()
    run.model, run.optimizer = copied((run.model, run.optimizer))
    assert run.step().weights() == first.step().weights()


def test_slots_that_are_there_get_their_values_when_it_is_known_whose_they_are(tmp_path: Path):
    run, first = Run(), Run().step(3)
    for each in (run, first):
        each.model.encoder, each.model.head = (jv.Variable([1.0, 1.0], name=n) for n in "ab")
    path = first.step(3).checkpoint.write(tmp_path / "c.npz")
    run.optimizer.build([run.model.encoder, run.model.head])
    status = Checkpoint(optimizer=run.optimizer).restore(path).expect_partial()
    Checkpoint(model=run.model).restore(path).expect_partial()
    assert run.step().weights() == first.step().weights()
    assert status.assert_existing_objects_matched() is status


# ---------------------------------------------------------------- the guard
def test_what_is_only_shown_takes_no_value(tmp_path: Path):
    path = Checkpoint(v=jv.Variable(1.0)).write(tmp_path / "c.npz")
    checkpoint = Checkpoint()
    checkpoint.restore(path)
    assert GUARDS == {}  # reads are as fast as ever, as long as there is no new variable
    checkpoint.v = jv.Variable(0.0, name="v")
    assert len(GUARDS) == 1
    assert repr(checkpoint.v) == "<Variable 'v' float32[] 0.>"
    assert checkpoint.v.device is not None
    assert float(checkpoint.v) == 1.0
    assert GUARDS == {}


def test_showing_one_that_a_value_does_not_fit_raises_nothing(tmp_path: Path):
    path = Checkpoint(v=jv.Variable(1.0)).write(tmp_path / "c.npz")
    checkpoint = Checkpoint()
    checkpoint.restore(path).expect_partial()
    checkpoint.v = jv.Variable([0.0, 0.0], name="v")
    assert repr(checkpoint.v) == "<Variable 'v' float32[2] [0. 0.]>"
    with pytest.raises(CheckpointError, match="does not fit"):
        checkpoint.v.numpy()
    assert checkpoint.v.numpy().tolist() == [0.0, 0.0]


def test_a_variable_that_is_gone_is_not_looked_for(tmp_path: Path):
    path = Checkpoint(v=jv.Variable(1.0)).write(tmp_path / "c.npz")
    checkpoint = Checkpoint()
    checkpoint.restore(path)
    kept, gone = jv.Variable(2.0), jv.Variable(3.0)
    keys = {v._cell.key for v in (kept, gone)}
    assert NEW_CELLS.keys() == keys
    del gone
    gc.collect()
    assert NEW_CELLS.keys() == {kept._cell.key}
    checkpoint.v = jv.Variable(0.0)
    assert float(checkpoint.v) == 1.0


# ---------------------------------------------------------------- when it ends
def test_it_ends_when_what_has_those_very_values_is_restored(tmp_path: Path):
    first, run = Run().step(3), Run()
    paths = [first.checkpoint.write(tmp_path / "a.npz")]
    paths.append(first.step(2).checkpoint.write(tmp_path / "b.npz"))
    old, new = map(run.checkpoint.restore, paths)
    assert len(PENDING) == 1
    assert run.step().weights() == first.step().weights()
    new.assert_consumed()
    with pytest.raises(CheckpointError, match=r"as a whole: .*b\.npz has been restored since"):
        old.assert_consumed()


def test_a_restore_of_something_else_does_not_end_it(tmp_path: Path):
    first, run = Run().step(3), Run()
    run.checkpoint.restore(first.checkpoint.write(tmp_path / "c.npz"))
    encoder = Checkpoint(v=run.model.encoder, optimizer=run.optimizer.iterations)
    encoder.restore(encoder.write(tmp_path / "v.npz")).assert_consumed()
    assert run.step().weights() == first.step().weights()


def test_nothing_is_left_of_restores_that_are_over(tmp_path: Path):
    run, path = Run(), saved(tmp_path)
    for _ in range(3):
        status = run.checkpoint.restore(path)
    assert len(PENDING) == len(vars(run.optimizer)[WAITING]) == 1
    run.step()
    status.assert_consumed()
    assert PENDING == []
    assert not vars(run.optimizer).get(WAITING)


def test_a_copy_and_the_original_are_told_apart(tmp_path: Path):
    run, other = Run(), Run()
    status = run.checkpoint.restore(saved(tmp_path))
    other.model, other.optimizer = copy.deepcopy((run.model, run.optimizer))
    other.step()
    with pytest.raises(CheckpointError, match="optimizer/slots/model/head/momentum: extra"):
        status.assert_consumed()
    assert run.step().weights() == other.weights()
    status.assert_consumed()


# ---------------------------------------------------------------- what does not fit
READS = {
    "numpy": lambda v: v.numpy(), "item": lambda v: v.item(), "float": float, "bool": bool,
    "int": int, "complex": complex, "array": np.array, "value": lambda v: v.value,
    "add": lambda v: v + 1, "assign": lambda v: v.assign(1.0), "format": "{:.1f}".format,
}  # fmt: skip


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_no_read_passes_over_a_value_that_does_not_fit(tmp_path: Path, read):
    path = Checkpoint(v=jv.Variable([1.0, 2.0])).write(tmp_path / "c.npz")
    checkpoint = Checkpoint()
    checkpoint.restore(path).expect_partial()
    checkpoint.v = jv.Variable(0.0)
    with pytest.raises(CheckpointError, match=r"created since:\n  v: shape \(2,\) in the check"):
        read(checkpoint.v)
    read(checkpoint.v)  # it was told


def test_another_new_variable_has_nothing_to_do_with_it(tmp_path: Path):
    path = Checkpoint(v=jv.Variable([1.0, 2.0])).write(tmp_path / "c.npz")
    checkpoint = Checkpoint()
    checkpoint.restore(path).expect_partial()
    checkpoint.v = jv.Variable(0.0)
    assert float(jv.Variable(3.0) + 1) == 4.0
    with pytest.raises(CheckpointError, match="v: shape"):
        float(checkpoint.v)


@pytest.mark.parametrize("is_partial", [False, True])
def test_slots_that_could_be_of_several_are_refused_once(tmp_path: Path, is_partial: bool):
    one, two, optimizer = jv.Variable([1.0]), jv.Variable([1.0]), sgd()
    optimizer.apply_gradients([([1.0], one)])
    path = Checkpoint(sgd=optimizer).write(tmp_path / "c.npz")
    other = sgd()
    status = Checkpoint(sgd=other).restore(path)
    if is_partial:
        status.expect_partial()
    with pytest.raises(
        CheckpointError, match=r"name=Variable/mom.*The optimizer at 'sgd' has slots"
    ):
        other.apply_gradients([([1.0], one), ([1.0], two)])
    assert float(jv.Variable(3.0) + 1) == 4.0
    other.apply_gradients([([1.0], one), ([1.0], two)])


def test_slots_of_another_form_are_refused_once(tmp_path: Path):
    path = saved(tmp_path)
    values = load(path)
    narrow = Checkpoint(
        model={k: jv.Variable(values[f"model/{k}"]) for k in ("encoder", "head")},
        optimizer={
            "iterations": jv.Variable(values["optimizer/iterations"]),
            "learning_rate": jv.Variable(values["optimizer/learning_rate"]),
            "slots": {"model": {"head": {"momentum": jv.Variable([1.0])}}},
        },
    ).write(tmp_path / "narrow.npz")
    run = Run()
    run.checkpoint.restore(narrow)
    with pytest.raises(
        CheckpointError, match=r"head/momentum: shape \(1,\) in the checkpoint, \(2"
    ):
        run.step()
    run.step()


# ---------------------------------------------------------------- while it is looked for
@pytest.mark.parametrize("use", [float, np.asarray, lambda v: v.numpy(), lambda v: v.value, repr])
def test_each_use_of_a_new_variable_is_one_look(tmp_path: Path, use: Callable[[Any], Any]):
    model = jv.Module()
    model.w = jv.Variable(5.0)
    path = Checkpoint(model=model).write(tmp_path / "c.npz")
    del model.w
    status = Checkpoint(model=model).restore(path)
    w = jv.Variable(1.0)
    for _ in range(waiting._LOOKS - 1):
        use(w)
    model.w = w
    assert float(w) == 5.0
    status.assert_consumed()


def test_a_variable_that_is_looked_for_is_listed_all_the_time(tmp_path: Path, monkeypatch):
    class Listed(dict):
        def pop(self, key, *default):
            assert self[key] <= 1, "another thread could use it now, and not look"
            return super().pop(key, *default)

    monkeypatch.setattr(waiting, "NEW_CELLS", listed := Listed())
    model, path = jv.Module(), saved(tmp_path)
    Checkpoint(model=model).restore(path).expect_partial()
    w = jv.Variable(1.0)
    assert w.value == 1.0
    assert listed[w._cell.key] == waiting._LOOKS - 1
    listed.clear()


def test_the_guard_is_there_while_there_are_new_variables(monkeypatch):
    threads: list[threading.Thread] = []

    class Guards(dict):
        def pop(self, rank, *default):
            thread = threading.Thread(target=waiting.announce, args=([-1],))
            threads.append(thread)
            thread.start()
            thread.join(0.1)
            found = super().pop(rank, *default)
            assert not NEW_CELLS, "another thread could use it now, and not look"
            return found

    monkeypatch.setattr(waiting, "GUARDS", guards := Guards())
    waiting._stop_looking()
    threads[0].join()
    assert list(NEW_CELLS) == [-1]
    assert list(guards) == [waiting._RANK]
    NEW_CELLS.clear()


def test_a_module_in_which_nothing_waits_any_more_holds_nothing(tmp_path: Path):
    model, other = jv.Module(), jv.Module()
    model.w, v = jv.Variable(5.0), jv.Variable(1.0)
    path = Checkpoint(model=model).write(tmp_path / "c.npz")
    Checkpoint(model=other).restore(path).expect_partial()
    other.w = v
    copied = copy.deepcopy(other)
    del copied.w, other
    gc.collect()
    with pytest.raises(CheckpointError, match="would save nothing of 'x'"):
        Checkpoint(x=copied, y=model.w).write(tmp_path / "again.npz")


def test_a_forked_process_looks_for_nothing(tmp_path: Path, monkeypatch):
    model = jv.Module()
    model.w = jv.Variable(5.0)
    path = Checkpoint(model=model).write(tmp_path / "c.npz")
    del model.w
    Checkpoint(model=model).restore(path).expect_partial()
    model.w = jv.Variable(1.0)
    with monkeypatch.context() as forked:
        forked.setattr(waiting, "GUARDS", {})  # as a fork leaves it
        waiting.settle()
        assert model.w._cell.key in NEW_CELLS
    waiting.settle()
    assert model.w.value == 5.0


# ---------------------------------------------------------------- replaced by other values
class Late(jv.Module):
    """Makes its variable at its first call."""

    def __call__(self) -> Any:
        if not hasattr(self, "w"):
            self.w = jv.Variable([5.0, 5.0])
        return self.w


@pytest.mark.parametrize("made", ["after", "between"])
@pytest.mark.parametrize("how", ["as it is", "twice", "compiled", "copied", "after a copy"])
def test_weights_that_take_the_place_of_what_waits_have_the_slots_that_waited_with_it(
    tmp_path, made, how
):
    def slots_of(model: Any, optimizer: Any) -> list[float]:
        def step() -> None:
            optimizer.apply_gradients([(jnp.zeros(2), model())])

        (jv.compile(step) if how == "compiled" else step)()
        return optimizer.get_slot(model.w, "momentum").numpy().tolist()

    trained, optimizer = Late(), sgd()
    optimizer.apply_gradients([(jnp.ones(2), trained())])
    path = Checkpoint(model=trained, optimizer=optimizer).write(tmp_path / "all.npz")
    weights = Checkpoint(model=trained).write(tmp_path / "weights.npz")
    expected = slots_of(trained, optimizer)

    model, optimizer = Late(), sgd()
    statuses = [Checkpoint(model=model, optimizer=optimizer).restore(path)]
    if made == "between":
        model.w = jv.Variable([5.0, 5.0])
    times = 2 if how == "twice" else 1
    statuses += [Checkpoint(model=model).restore(weights) for _ in range(times)]
    if how in ("copied", "after a copy"):
        for status in statuses:
            status.expect_partial()  # the original may have no use for them
        both = copy.deepcopy((model, optimizer))
        if how == "copied":
            model, optimizer = both
        else:
            assert slots_of(*both) == expected
    assert slots_of(model, optimizer) == expected != [0.0, 0.0]


def pair() -> Any:
    model: Any = jv.Module()
    model.low, model.high = Late(), Late()
    return model


def step_in_pair(model: Any, optimizer: Any) -> list[float]:
    pairs = [(jnp.full(2, float(i)), v()) for i, v in enumerate((model.low, model.high))]
    optimizer.apply_gradients(pairs)
    return [float(optimizer.get_slot(v, "momentum").value[0]) for _, v in pairs]


@pytest.mark.parametrize("how", ["saved", "copied", "pickled", "the other is gone", "apart"])
@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile], ids=["eager", "compiled"])
def test_slots_do_not_wait_for_another_model_while_their_own_is_still_to_be_made(
    tmp_path: Path, wrap, how: str
):
    def step(model: Any, optimizer: Any) -> list[float]:
        def update() -> None:
            grads = [jax.grad(jnp.sum)(v.value) for v in (model.low(), model.high())]
            optimizer.apply_gradients(zip(grads, model.variables, strict=True))

        wrap(update)()
        slots = [optimizer.get_slot(v, "momentum") for v in model.variables]
        return [float(x.value[0]) for x in slots]

    trained, optimizer = pair(), sgd()
    step(trained, optimizer)
    path = Checkpoint(model=trained, optimizer=optimizer).write(tmp_path / "c.npz")
    teacher = pair()
    Checkpoint(model=teacher).restore(path).expect_partial()
    assert teacher.low() + teacher.high() is not None
    model, own = pair(), sgd()
    objects = {"model": model, "optimizer": own}
    if how != "apart":
        Checkpoint(**objects).restore(path).expect_partial()
    else:
        Checkpoint(optimizer=own).restore(path).expect_partial()
    if how == "saved":
        again = Checkpoint(**objects).write(tmp_path / "again.npz")
        model, own = pair(), sgd()
        Checkpoint(model=model, optimizer=own).restore(again).expect_partial()
    elif how == "copied":
        model, own = copy.deepcopy((model, own))
    elif how == "pickled":
        model, own = pickle.loads(pickle.dumps((model, own)))
    else:
        del teacher
        gc.collect()
    if how == "apart":
        assert jv.Variable(1.0) + 1.0 == 2.0  # what is new is looked for
        Checkpoint(model=model).restore(path).expect_partial()
    assert step(model, own) == step(trained, optimizer) != [-0.1, -0.1]


@pytest.mark.parametrize("is_partial", [False, True])
@pytest.mark.parametrize("how", ["exchanged", "renamed", "other weights"])
def test_slots_are_saved_with_the_layers_that_are_still_to_make_their_variables(
    tmp_path: Path, how: str, is_partial: bool
):
    trained, optimizer = pair(), sgd()
    step_in_pair(trained, optimizer)
    path = Checkpoint(model=trained, optimizer=optimizer).write(tmp_path / "c.npz")
    weights = Checkpoint(only=trained).write(tmp_path / "weights.npz")
    models = [(trained, optimizer), (pair(), sgd())]
    statuses = [Checkpoint(model=models[1][0], optimizer=models[1][1]).restore(path)]
    if how == "exchanged":
        for each, _ in models:
            each.low, each.high = each.high, each.low
    elif how == "other weights":
        statuses.append(Checkpoint(only=models[1][0]).restore(weights))
    for status in statuses if is_partial else ():
        status.expect_partial()
    again = Checkpoint(net=models[1][0], optimizer=models[1][1]).write(tmp_path / "again.npz")
    for status in statuses:
        status.expect_partial()
    model, own = pair(), sgd()
    status = Checkpoint(net=model, optimizer=own).restore(again)
    assert step_in_pair(model, own) == step_in_pair(trained, optimizer)
    status.assert_consumed()


@pytest.mark.parametrize("copied", [lambda x: x, *COPIES])
def test_slots_restored_apart_are_saved_under_the_paths_of_layers_that_are_still_to_be_made(
    tmp_path: Path, copied
):
    trained, optimizer = pair(), sgd()
    step_in_pair(trained, optimizer)
    path = Checkpoint(model=trained, optimizer=optimizer).write(tmp_path / "c.npz")
    teacher, model, own = pair(), pair(), sgd()
    Checkpoint(model=teacher).restore(path).expect_partial()
    assert teacher.low() + teacher.high() is not None
    Checkpoint(model=model).restore(path).expect_partial()
    Checkpoint(optimizer=own).restore(path).expect_partial()
    model, own = copied((model, own))
    again = Checkpoint(net=model, optimizer=own).write(tmp_path / "again.npz")
    model, own = pair(), sgd()
    status = Checkpoint(net=model, optimizer=own).restore(again)
    assert step_in_pair(model, own) == step_in_pair(trained, optimizer)
    status.assert_consumed()


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_has_the_slots_of_its_own_also_if_another_model_has_been_restored(
    tmp_path: Path, copied
):
    path, teacher, run = saved(tmp_path), Run(), Run()
    teacher.checkpoint.restore(path).expect_partial()
    Checkpoint(optimizer=run.optimizer).restore(path).expect_partial()
    model, optimizer = copied((run.model, run.optimizer))
    assert jv.Variable(1.0) + 1.0 == 2.0
    Checkpoint(model=model).restore(path).expect_partial()
    run.model, run.optimizer = model, optimizer
    assert run.step().weights() == Run().step(4).weights()


def test_slots_are_of_the_variable_at_their_path_though_another_is_alive_that_was_there(tmp_path):
    path, run = saved(tmp_path), Run()
    Checkpoint(model=run.model).restore(path)
    run.optimizer.build(run.model)
    replaced, run.model.head = run.model.head, jv.Variable([7.0, 7.0])
    run.checkpoint.restore(path).expect_partial()
    assert run.step().weights() == Run().step(4).weights()
    assert replaced.numpy().tolist() != [7.0, 7.0]


def test_a_variable_and_the_one_that_it_has_replaced_may_both_have_slots(tmp_path):
    path, run = saved(tmp_path), Run()
    run.checkpoint.restore(path)
    run.step()
    replaced, run.model.head = run.model.head, jv.Variable([7.0, 7.0])
    run.step()
    before = run.optimizer.get_slot(replaced, "momentum").numpy().tolist()
    run.checkpoint.restore(path).assert_nontrivial_match()
    assert run.optimizer.get_slot(replaced, "momentum").numpy().tolist() == before
    assert run.step().weights() == Run().step(4).weights()


# ---------------------------------------------------------------- averages
@pytest.mark.parametrize("make", [sgd, lambda **k: jv.optimizers.LossScaleOptimizer(sgd(**k))])
@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile], ids=["eager", "compiled"])
def test_averages_that_wait_are_not_passed_over(tmp_path: Path, make, wrap):
    def show(run: Run) -> list[list[float]]:
        def read() -> list[Any]:
            with run.optimizer.averaged():
                return [v * 1.0 for v in run.model.variables]

        return [x.tolist() for x in wrap(read)()]

    def made() -> Any:
        return make(use_ema=True)

    first, run = Run(made).step(3), Run(made)
    run.model.encoder.trainable = False
    run.checkpoint.restore(first.checkpoint.write(tmp_path / "c.npz")).expect_partial()
    for names in ("'model/encoder', 'model/head'", "'model/encoder'"):
        for use in (run.optimizer.swap_averages, lambda: show(run)):
            with pytest.raises(StateError, match=rf"Averages of \[{names}\] have been restored, a"):
                use()
        run.optimizer.build(run.model)
    run.optimizer.build([run.model.encoder])
    assert show(run) == show(first) != first.weights()


# ---------------------------------------------------------------- in a transaction
def test_in_a_transaction_nothing_may_wait_that_would_not_be_undone(tmp_path):
    path, fresh = saved(tmp_path), Run()
    with pytest.raises(CheckpointError) as caught, jv.transaction():
        fresh.checkpoint.restore(path)
    assert (
        "There are no variables for optimizer/slots/model/encoder/momentum, "
        "optimizer/slots/model/head/momentum, so these would wait, which an exception would not "
        "undo. Restore it outside of the transaction, or make all variables before: those of an "
        "optimizer by optimizer.build(model)." in str(caught.value)
    )
    assert (fresh.weights(), PENDING) == ([[1.0, 1.0], [1.0, 1.0]], [])
    fresh.optimizer.build(fresh.model)
    before = fresh.weights()
    with suppress(ZeroDivisionError), jv.transaction():
        fresh.checkpoint.restore(path).assert_consumed()
        assert fresh.weights() != before
        raise ZeroDivisionError
    assert fresh.step().weights() == Run().step().weights()


def test_in_a_transaction_nothing_is_dropped_that_waits(tmp_path):
    path, fresh = saved(tmp_path), Run()
    fresh.checkpoint.restore(path)
    alone = Checkpoint(head=fresh.model.head)
    other = alone.write(tmp_path / "head.npz")
    match = f"Values of {path} wait for variables, and might be dropped"
    with pytest.raises(CheckpointError, match=match), jv.transaction():
        alone.restore(other)
    assert fresh.step().weights() == Run().step(4).weights()


def test_in_a_transaction_no_array_is_restored_that_would_not_be_put_back(tmp_path):
    v = jv.Variable(1.0)
    checkpoint = Checkpoint(v=v, params={"x": jnp.zeros(2)})
    path = checkpoint.write(tmp_path / "c.npz")
    v.assign(7.0)
    checkpoint.params = {"x": jnp.full(2, 7.0)}
    match = r"params/x are arrays in no variable, .* hold them in variables: jv.variables\(tree\)"
    with pytest.raises(CheckpointError, match=match), jv.transaction():
        checkpoint.restore(path)
    assert (float(v), checkpoint.params["x"].tolist()) == (7.0, [7.0, 7.0])


# ---------------------------------------------------------------- plans, averages, threads
@pytest.mark.parametrize("compiled", [True, False])
def test_what_a_plan_made_has_its_restored_value_before_the_first_step(tmp_path, compiled):
    path, runs = saved(tmp_path), [Run(), Run()]
    gradient = jnp.array([1.0, 3.0])
    for run in runs:
        run.checkpoint.restore(path)

        def step(x: Any, run: Run = run) -> None:
            run.optimizer.apply_gradients([(x, w) for w in run.model.trainable_variables])

        compiled_step = jv.compile(step)
        if run is runs[1]:
            jv.plan(compiled_step, gradient)
        (compiled_step if compiled else step)(gradient)
    assert runs[0].weights() == runs[1].weights()
    slots = [run.optimizer.get_slot(run.model.head, "momentum").numpy().tolist() for run in runs]
    assert slots[0] == slots[1]


def test_a_checkpoint_of_averages_and_their_optimizer_is_refused(tmp_path):
    run = Run(lambda: sgd(use_ema=True)).step(3)
    weights = run.weights()
    match = r"saved at .* inside of `with optimizer.averaged\(\):`, with the optimizer in it"
    with run.optimizer.averaged():
        with pytest.raises(StateError, match=match):
            run.checkpoint.write(tmp_path / "c.npz")
        averages = Checkpoint(model=run.model).write(tmp_path / "model.npz")
        shown = run.weights()
    assert [load(averages)[f"model/{name}"].tolist() for name in ("encoder", "head")] == shown
    other = Run(lambda: sgd(use_ema=True))
    other.checkpoint.restore(run.checkpoint.write(tmp_path / "c.npz")).expect_partial()
    assert other.weights() == weights != shown


def test_a_restore_in_another_thread_is_not_forgotten_as_the_last_one_ends(tmp_path, monkeypatch):
    class Slow(dict[int, int]):
        def clear(self) -> None:
            if threading.current_thread() is ending:
                at_clear.set()
                built.wait(0.5)
            super().clear()

    def restored() -> Lazy:
        layer = Lazy()
        Checkpoint(layer=layer).restore(path).expect_partial()
        return layer

    def end() -> None:
        restored()  # a layer that is never built

    path = Checkpoint(layer=made(Lazy(), 5.0)).write(tmp_path / "c.npz")
    at_clear, built = threading.Event(), threading.Event()
    cells = Slow()
    monkeypatch.setattr(waiting, "NEW_CELLS", cells)
    ending = threading.Thread(target=end)
    ending.start()
    assert at_clear.wait(60)
    layer = restored()
    layer.w = jv.Variable([0.0, 0.0])
    built.set()
    ending.join()
    assert layer.w.numpy().tolist() == [5.0, 5.0]
    assert not cells


def made(layer: Lazy, value: float) -> Lazy:
    layer.w = jv.Variable([value, value])
    return layer
