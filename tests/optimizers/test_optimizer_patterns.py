"""Learning rates and weight decay by pattern."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxvars as jv
from jaxvars import optimizers

RATES = {"head/**": 0.5, "**": 0.25}


def model_of() -> dict[str, Any]:
    names = ("encoder", "head")
    return {n: {"kernel": jv.Variable([1.0, 2.0]), "bias": jv.Variable(1.0)} for n in names}


def loss_of(model: Any) -> Any:
    return sum((jnp.sum(v**2) for part in model.values() for v in part.values()), jnp.float32(0))


KINDS = {
    "SGD": lambda rate: optimizers.SGD(rate, momentum=0.5),
    "Adam": optimizers.Adam,
    "Lamb": optimizers.Lamb,
    "Adafactor": optimizers.Adafactor,
    "Nadam": optimizers.Nadam,
    "RMSprop": optimizers.RMSprop,
    "Optax": lambda rate: optimizers.Optax(optax.scale_by_adam(), rate),
    "decayed": lambda rate: optimizers.SGD(rate, weight_decay=0.5),
}


@pytest.mark.parametrize(
    ("kind", "compiled"), [*((kind, True) for kind in KINDS), ("Adam", False), ("decayed", False)]
)
def test_each_variable_goes_by_its_rate(kind: str, compiled: bool) -> None:
    def train(rate: Any) -> Any:
        model, optimizer = model_of(), KINDS[kind](rate)
        optimizer.build(model)
        step = (lambda f: jv.compile(f)) if compiled else (lambda f: f)
        run = step(lambda: optimizer.minimize(lambda: loss_of(model), model))
        for _ in range(3):
            run()
        return {path: v.numpy() for path, v in jv.select(model).items()}

    found, quick, slow = train(RATES), train(0.5), train(0.25)
    for path, value in found.items():
        np.testing.assert_array_equal(value, (quick if path.startswith("head") else slow)[path])


def test_the_rates_are_variables_that_are_assigned_saved_and_copied(tmp_path: Any) -> None:
    model, optimizer = model_of(), optimizers.SGD(RATES)
    optimizer.build(model)
    step = jv.compile(lambda: optimizer.minimize(lambda: loss_of(model), model))
    step()
    optimizer.learning_rate["head/**"].assign(0.0)
    before = jv.State.of(model)
    step()
    after = jv.State.of(model)
    assert [p for p in after if not np.array_equal(after[p], before[p])] == [
        "encoder/bias", "encoder/kernel"
    ]  # fmt: skip
    assert step.trace_count == 1
    assert "learning_rate/head/**" in jv.State.of(optimizer)
    copied = copy.deepcopy(optimizer)
    assert copied.learning_rate["head/**"] is not optimizer.learning_rate["head/**"]
    for name in ("folder", "file.npz"):
        path = jv.checkpoint.Checkpoint(optimizer=optimizer).save(tmp_path / name)
        new = optimizers.SGD(RATES)
        jv.checkpoint.Checkpoint(optimizer=new).restore(path)
        assert float(new.learning_rate["head/**"]) == 0.0
        assert float(new.learning_rate["**"]) == 0.25


def test_schedules_and_variables_are_rates() -> None:
    model, shared = model_of(), jv.Variable(0.5, trainable=False)
    rates = {"head/**": shared, "**": lambda step: jnp.where(step < 1, 0.0, 1.0)}
    optimizer = optimizers.SGD(rates)
    optimizer.build(model)
    gradients = [(jnp.ones_like(v.value), v) for v in jv.select(model).values()]
    optimizer.apply_gradients(gradients)
    assert (float(model["encoder"]["bias"]), float(model["head"]["bias"])) == (1.0, 0.5)
    optimizer.apply_gradients(gradients)
    assert (float(model["encoder"]["bias"]), float(model["head"]["bias"])) == (0.0, 0.0)
    assert optimizer.learning_rate["head/**"] is shared
    assert float(optimizer.learning_rate["**"]) == 1.0


def test_weight_decay_by_pattern() -> None:
    model, optimizer = model_of(), optimizers.AdamW(1.0, {"**/kernel": 0.5, "**": 0.0})
    optimizer.build(model)
    optimizer.apply_gradients([(jnp.zeros_like(v.value), v) for v in jv.select(model).values()])
    for part in model.values():
        assert part["kernel"].numpy().tolist() == [0.5, 1.0]
        assert float(part["bias"]) == 1.0


@pytest.mark.parametrize("what", ["learning_rate", "weight_decay"])
@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"head/**": 1.0}, "(?s)has a rule for each.*'encoder/bias' has no rule.*'encoder/kernel'"),
        ({"haed/**": 1.0, "**": 2.0}, r"rule 'haed/\*\*' is the first to fit none of \['enc"),
        ({"**": 1.0, "head/**": 2.0}, r"rule 'head/\*\*' is the first to fit none of"),
        ({lambda path, v: True: 1.0}, "the keys of the dict are strings"),
        ({"head$": 1.0}, "'head\\$' is a regular expression"),
    ],
)  # fmt: skip
def test_rules_that_do_not_fit_are_refused(what: str, rules: Any, message: str) -> None:
    optimizer = optimizers.SGD(**{"learning_rate": 0.1, what: rules})
    with pytest.raises(ValueError, match=message):
        optimizer.build(model_of())
    assert not optimizer.slots


def test_rules_go_by_paths() -> None:
    model, optimizer = model_of(), optimizers.SGD(RATES)
    message = "has rules by path, .* variable 'Variable': call optimizer.build"
    with pytest.raises(ValueError, match=message):
        optimizer.minimize(lambda: loss_of(model), model)
    with pytest.raises(TypeError, match=r"optimizer.learning_rate\[pattern\].assign"):
        optimizer.learning_rate = 0.5


def test_a_frozen_part_has_a_rule_and_needs_no_slots() -> None:
    model, optimizer = model_of(), optimizers.Adam({"encoder/**": 0.1, "**": 0.2})
    with jv.freeze(model["encoder"]):
        optimizer.build(model)
        optimizer.minimize(lambda: loss_of(model), model)
    assert sorted(optimizer.slots) == ["head/bias", "head/kernel"]
    assert float(model["encoder"]["bias"]) == 1.0


def test_a_loss_scale_around_it() -> None:
    model = model_of()
    optimizer = optimizers.LossScaleOptimizer(optimizers.SGD(RATES), 4.0)
    optimizer.build(model)
    optimizer.minimize(lambda: loss_of(model), model)
    assert (float(model["encoder"]["bias"]), float(model["head"]["bias"])) == (0.5, 0.0)


def tied() -> dict[str, Any]:
    """One weight under two paths, and another one."""
    kernel = jv.Variable([1.0, 1.0])
    return {"decoder": {"kernel": kernel}, "embed": {"kernel": kernel}, "top": jv.Variable([1.0])}


def update(optimizer: Any, model: Any, gradient: float) -> list[float]:
    optimizer.build(model)
    named = jv.select(model)
    optimizer.apply_gradients([(jnp.full_like(v.value, gradient), v) for v in named.values()])
    return [v.numpy()[0].item() for v in named.values()]


@pytest.mark.parametrize(
    ("rules", "kernel"),
    [
        ({"embed/**": 0.0, "**": 0.5}, 1.0),
        ({"decoder/**": 0.0, "**": 0.5}, 1.0),
        ({"embed/**": 0.25, "decoder/**": 0.25, "**": 0.5}, 0.75),
        ({"embed/kernel": 0.25, "decoder/**": 0.0, "**": 0.5}, 0.75),
        ({"**/kernel": 0.25, "**": 0.5}, 0.75),
    ],
)
def test_a_shared_variable_has_the_first_rule_for_one_of_its_paths(
    rules: dict[str, float], kernel: float
) -> None:
    assert update(optimizers.SGD(rules), tied(), 1.0) == [kernel, 0.5]
    assert update(optimizers.SGD(1.0, weight_decay=rules), tied(), 0.0) == [kernel, 0.5]
    optimizer = copy.deepcopy(optimizers.SGD(rules))
    update(optimizer, model := tied(), 0.0)
    model, optimizer = pickle.loads(pickle.dumps((model, optimizer)))
    optimizer.apply_gradients([(jnp.ones(2), model["embed"]["kernel"])])
    assert model["decoder"]["kernel"].numpy()[0] == kernel


@pytest.mark.parametrize("what", ["learning_rate", "weight_decay"])
def test_rules_that_disagree_on_a_shared_variable_are_refused(what: str) -> None:
    rules = {"embed/**": 0.0, "decoder/*": 0.5, "**": 1.0}
    optimizer, model = optimizers.SGD(**{"learning_rate": 0.1, what: rules}), tied()
    with pytest.raises(ValueError, match=f"{what} of 'sgd'") as caught:
        optimizer.build(model)
    assert str(caught.value).partition("\n")[2] == (
        "  variable 'decoder/kernel' has several paths, and rules that differ: 'embed/**' for "
        "'embed/kernel', 'decoder/*' for 'decoder/kernel'. Put a rule before them whose pattern "
        "is one of these paths"
    )
    assert not optimizer.slots
    cured = optimizers.SGD(**{"learning_rate": 0.1, what: {"embed/kernel": 0.5, **rules}})
    with pytest.raises(ValueError, match=r"rule 'embed/\*\*' is the first to fit none"):
        cured.build(model)
    del rules["embed/**"]
    optimizers.SGD(**{"learning_rate": 0.1, what: {"embed/kernel": 0.5, **rules}}).build(model)


def test_weight_decay_is_kept_from_a_shared_variable_by_its_other_path() -> None:
    optimizer = optimizers.SGD(1.0, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=["^embed/"])
    assert update(optimizer, tied(), 0.0) == [1.0, 0.5]
