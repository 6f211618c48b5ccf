"""The public names, their docstrings, and what importing them costs."""

from __future__ import annotations

import dataclasses
import doctest
import importlib.metadata
import inspect
import pickle
import re
from typing import Any

import pytest

import jaxvars as jv
from jaxvars import parallel
from jaxvars.autodiff import forward, tape
from jaxvars.checkpoint import checkpoint as _checkpoint
from jaxvars.checkpoint import manager as _checkpoint_manager
from jaxvars.compiler import concrete_function as _concrete
from jaxvars.compiler import function
from jaxvars.core import module as _module
from jaxvars.core import state as _state
from jaxvars.core import variable as _variable
from jaxvars.export import loaded as _saved_loaded

NAMES = {
    "ConcreteFunction", "ForwardAccumulator", "Function", "GradientTape", "Module", "State",
    "TensorArray", "TensorSpec", "Variable", "abstract", "autograph", "checkpoint", "compile",
    "cond", "config", "custom_gradient", "debugging", "device", "errors", "export", "fori_loop",
    "functionalize", "initializers", "interop", "launch", "losses", "map_fn", "mesh", "metrics",
    "name_scope", "optimizers", "parallel", "place", "plan", "print", "profiler", "progress",
    "random", "recompute", "scan", "shard", "stop_gradient", "switch", "tensorboard", "tf",
    "use_mesh", "vectorized_map", "while_loop",
}  # fmt: skip

MODULES = {
    "autograph", "checkpoint", "config", "debugging", "errors", "export", "initializers", "interop",
    "launch", "losses", "metrics", "optimizers", "parallel", "profiler", "random", "tensorboard",
    "tf",
}  # fmt: skip
DOCUMENTED = sorted(NAMES - MODULES)

CLASSES = [
    _checkpoint.Checkpoint, _checkpoint.Status, _checkpoint_manager.CheckpointManager,
    function.BoundFunction, function.Function, _concrete.ConcreteFunction, _module.Module,
    _saved_loaded.Loaded, _saved_loaded.SavedFunction, _state.State, forward.ForwardAccumulator,
    tape.GradientTape, _variable.Slice, _variable.Variable, parallel.Batches,
    parallel.InputContext, parallel.MirroredStrategy, parallel.MultiWorkerMirroredStrategy,
    parallel.OneDeviceStrategy, parallel.Strategy, jv.interop.LinenModule, jv.interop.NnxModule,
]  # fmt: skip


def test_the_public_names_are_exactly_these():
    assert set(dir(jv)) == set(jv.__all__) == NAMES


RENAMED = {
    "saved": "jv.export", "summary": "jv.tensorboard", "distribute": "jv.parallel",
    "distributed": "jv.parallel", "recompute_grad": "jv.recompute",
    "run_eagerly": "jv.config.run_eagerly", "list_devices": "jv.config.list_devices",
    "get_soft_device_placement": "jv.config.get_soft_device_placement",
    "set_soft_device_placement": "jv.config.set_soft_device_placement",
    "string": 'the dtype "string"',
    "UnconnectedGradients": 'unconnected_gradients="none" or "zero"',
}  # fmt: skip


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_is_answered_with_the_new_one(old):
    with pytest.raises(AttributeError) as error:
        getattr(jv, old)
    assert str(error.value) == f"jaxvars has no attribute {old!r}. It is {RENAMED[old]} now."


def test_get_concrete_function_is_trace():
    step = jv.compile(lambda x: x)
    with pytest.raises(AttributeError, match="'get_concrete_function': it is `trace` here"):
        step.get_concrete_function()


@pytest.mark.parametrize(
    ("name", "cure"),
    [("jit", "jv.compile"), ("function", "jv.compile"), ("vmap", "jv.vectorized_map, or"),
     ("grad", "jv.GradientTape"), ("save", r"jv.checkpoint \(values\) or jv.export")],
)  # fmt: skip
def test_names_of_other_libraries_are_answered_with_ours(name, cure):
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'\. Use {cure}"):
        getattr(jv, name)


def test_private_names_are_not_offered():
    with pytest.raises(AttributeError) as error:
        jv.LATER  # noqa: B018 - the access is the test
    assert "_" not in str(error.value)


@pytest.mark.parametrize("name", sorted(MODULES - {"tf"}))
def test_a_namespace_shows_its_public_names_only(name):
    namespace = getattr(jv, name)
    assert sorted(dir(namespace)) == sorted(namespace.__all__)
    assert all(hasattr(namespace, public) for public in namespace.__all__)


@pytest.mark.parametrize("name", sorted(MODULES | jv._LATER.keys()))
def test_what_is_imported_later_is_there(name):
    assert getattr(jv, name) is getattr(jv, name)
    assert name in dir(jv)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(AttributeError, match=r"jaxvars has no attribute 'Varible'.*'Variable'"):
        jv.Varible  # noqa: B018 - the access is the test


def test_the_version_is_that_of_the_installed_package():
    try:
        importlib.metadata.version("jaxvars")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("run from the source tree, without an installed package")
    assert jv.__version__.count(".") == 2


MADE_BY_OTHERS = {"ConcreteFunction", "Function", "State", "UnconnectedGradients"}
CALLED = sorted(set(DOCUMENTED) - MADE_BY_OTHERS)


def made_by(name: str) -> Any:
    """The function that runs when a public name is called."""
    thing = getattr(jv, name)
    return thing.__init__ if inspect.isclass(thing) else thing


@pytest.mark.parametrize("name", DOCUMENTED)
def test_docstrings_begin_with_one_line_that_is_a_sentence(name):
    first, *rest = (inspect.getdoc(getattr(jv, name)) or "").split("\n")
    assert first[0].isupper()
    assert first.endswith((".", ":"))
    assert len(first) <= 100
    assert not rest or not rest[0]


@pytest.mark.parametrize("name", [n for n in CALLED if not inspect.isclass(getattr(jv, n))])
def test_a_function_says_what_to_do(name):
    verb = (inspect.getdoc(getattr(jv, name)) or "").split()[0]
    assert not verb.endswith(("ing", "ed", "es")), "imperative"


@pytest.mark.parametrize("name", CALLED)
def test_there_is_an_example_that_runs(name):
    doc = inspect.getdoc(getattr(jv, name)) or ""
    assert doctest.DocTestParser().get_examples(doc)


@pytest.mark.parametrize("name", CALLED)
def test_every_parameter_is_documented(name):
    doc = inspect.getdoc(getattr(jv, name)) or ""
    for parameter in inspect.signature(made_by(name)).parameters:
        if parameter != "self":
            assert re.search(rf"(?m)^    \**{parameter}: \S", doc), parameter


@pytest.mark.parametrize("name", CALLED)
def test_what_it_raises_is_documented(name):
    made = made_by(name)
    if dataclasses.is_dataclass(getattr(jv, name)):
        made = getattr(jv, name).__post_init__
    doc, source = inspect.getdoc(getattr(jv, name)) or "", inspect.getsource(made)
    for error in set(re.findall(r"raise (\w+Error)\(", source)):
        assert re.search(rf"(?m)^Raises:(\n .*)*\n    {error}: ", doc), error


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_every_public_method_has_a_docstring(cls):
    for name, member in vars(cls).items():
        public = not name.startswith("_") and (
            inspect.isfunction(member) or isinstance(member, property)
        )
        if public:
            assert inspect.getdoc(member), f"{cls.__name__}.{name}"


@pytest.mark.parametrize("error", [e for e in vars(jv.errors).values() if inspect.isclass(e)])
def test_errors_are_subclasses_of_builtins_and_show_a_fix(error):
    if not error.__module__.startswith("jaxvars") or error is jv.errors.JaxvarsError:
        return
    builtins = [base for base in error.__mro__ if base.__module__ == "builtins"]
    assert len(builtins) > 2, "an exception that one would catch anyway"
    assert "Fix: " in (error.__doc__ or "")


def test_importing_is_light_and_starts_no_backend(run_python):
    code = """
import sys, jax, jaxvars
heavy = {"optax", "flax", "orbax", "rich", "matplotlib", "treescope", "tensorboardX"}
heavy &= set(sys.modules)
assert not heavy, heavy
jax.config.update("jax_num_cpu_devices", 3)
assert len(jax.devices()) == 3
print("fine")
"""
    done = run_python("-c", code, XLA_FLAGS="")
    assert "fine" in done.stdout, done.stderr


def test_pickles_that_name_the_old_modules_are_read():
    v = jv.Variable([1.0, 2.0], name="w")
    written = pickle.dumps(v, protocol=0)
    assert b"jaxvars.core.variable" in written
    old = written.replace(b"jaxvars.core.variable", b"jaxvars._variable")
    read = pickle.loads(old)
    assert (read.name, read.numpy().tolist()) == ("w", [1.0, 2.0])
    from jaxvars.moved import _NOW

    for name, now in _NOW.items():
        module = importlib.import_module(f"jaxvars.{name}")
        assert module.__getattr__("__name__") == f"jaxvars.{now}"
        package, _, last = f"jaxvars.{name}".rpartition(".")
        assert last not in getattr(importlib.import_module(package), "__all__", ()), "hides it"
