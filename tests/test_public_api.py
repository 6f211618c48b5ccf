"""The public names, their docstrings, and what importing them costs."""

from __future__ import annotations

import dataclasses
import doctest
import importlib.metadata
import inspect
import re
from typing import Any

import pytest

import jaxvars as jv
from jaxvars import parallel
from jaxvars.autodiff import tape
from jaxvars.checkpoint import checkpoint as _checkpoint
from jaxvars.checkpoint import manager as _checkpoint_manager
from jaxvars.compiler import concrete_function as _concrete
from jaxvars.compiler import function
from jaxvars.core import variable as _variable
from jaxvars.derivatives import forward
from jaxvars.export import loaded as _saved_loaded
from jaxvars.modules import module as _module
from jaxvars.modules import state as _state

NAMES = {
    "ConcreteFunction", "ForwardAccumulator", "Function", "GradientTape", "Module", "State",
    "TensorArray", "TensorSpec", "Variable", "abstract", "autograph", "checkpoint", "compile",
    "cond", "config", "custom_gradient", "debugging", "device", "diff", "errors", "export",
    "fori_loop", "freeze", "functionalize", "initializers", "interop", "losses", "map_fn",
    "mesh", "metrics", "name_scope", "optimizers", "parallel", "place", "plan", "print", "profiler",
    "progress", "random", "recompute", "scan", "select", "shard", "stop_gradient", "switch",
    "tensorboard", "transaction", "use_mesh", "variables", "vectorized_map", "while_loop",
}  # fmt: skip

MODULES = {
    "autograph", "checkpoint", "config", "debugging", "errors", "export", "initializers", "interop",
    "losses", "metrics", "optimizers", "parallel", "profiler", "random", "tensorboard",
}  # fmt: skip
DOCUMENTED = sorted(NAMES - MODULES)

CLASSES = [
    _checkpoint.Checkpoint, _checkpoint.Status, _checkpoint_manager.CheckpointManager,
    function.BoundFunction, function.Function, _concrete.ConcreteFunction, _module.Module,
    _saved_loaded.Loaded, _saved_loaded.SavedFunction, _state.State, forward.ForwardAccumulator,
    tape.GradientTape, _variable.Slice, _variable.Variable, parallel.Batches,
    jv.interop.LinenModule, jv.interop.NnxModule,
    jv.interop.EquinoxModule, jv.interop.VariableTree,
]  # fmt: skip


def test_the_public_names_are_exactly_these():
    assert set(dir(jv)) == set(jv.__all__) == NAMES


def test_get_concrete_function_is_trace():
    step = jv.compile(lambda x: x)
    with pytest.raises(AttributeError, match=r"'get_concrete_function'\. Use fn\.trace\(\.\.\.\)"):
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


@pytest.mark.parametrize("name", sorted(MODULES))
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


def public() -> dict[str, Any]:
    """What is public outside of `jv.tf`, each once: `initializers.zeros` is `Zeros`."""
    found = {name: getattr(jv, name) for name in DOCUMENTED}
    for space in sorted(MODULES):
        names = getattr(jv, space).__all__
        found |= {f"{space}.{name}": getattr(getattr(jv, space), name) for name in names}
    names = {id(thing): name for name, thing in reversed(found.items())}.values()
    return {name: found[name] for name in reversed(names)}


PUBLIC = public()
RAISED = {name for name in PUBLIC if name.startswith("errors.")}
MADE_BY_OTHERS = {
    "ConcreteFunction", "Function", "State", "checkpoint.Status", "config.LogicalDevice",
    "config.PhysicalDevice", "export.Loaded", "export.SavedFunction", "interop.EquinoxModule",
    "interop.FlaxModule", "interop.LinenModule", "interop.NnxModule", "interop.VariableTree",
    "profiler.Profile", "tensorboard.SummaryWriter",
}  # fmt: skip
CALLED = sorted(PUBLIC.keys() - MADE_BY_OTHERS - RAISED)
FUNCTIONS = [name for name in CALLED if inspect.isroutine(PUBLIC[name])]
NO_EXAMPLE = {  # they need a GPU, other processes or a subclass
    "config.get_memory_growth", "config.get_memory_info", "config.set_memory_fraction",
    "config.set_memory_growth", "optimizers.Optimizer", "parallel.initialize",
}  # fmt: skip
NO_PAPER = {
    "initializers.Constant", "initializers.Identity", "initializers.Initializer",
    "initializers.Ones", "initializers.RandomNormal", "initializers.RandomUniform",
    "initializers.TruncatedNormal", "initializers.Zeros", "initializers.get", "optimizers.Optax",
    "optimizers.Optimizer",
}  # fmt: skip
NO_FORMULA = {"losses.Loss", "losses.get", "metrics.Metric", "metrics.get"}


def of(*spaces: str) -> list[str]:
    return [name for name in CALLED if name.startswith(spaces)]


def doc_of(name: str) -> str:
    return inspect.getdoc(PUBLIC[name]) or ""


def source_of(name: str) -> str:
    """The source of what runs when a public name is called."""
    thing = PUBLIC[name]
    named = "__post_init__" if dataclasses.is_dataclass(thing) else "__init__"
    made = getattr(thing, named, None) if inspect.isclass(thing) else thing
    return inspect.getsource(made) if hasattr(made, "__code__") else ""


def begins_with_one_line_that_is_a_sentence(name: str) -> bool:
    first, *rest = doc_of(name).split("\n")
    is_sentence = (first[0].isupper() or first[0] == "`") and first.endswith((".", ":"))
    return is_sentence and len(first) <= 100 and not any(rest[:1])


def says_what_to_do(name: str) -> bool:
    return not doc_of(name).split()[0].endswith(("ing", "ed", "es"))  # imperative


def has_an_example_that_runs(name: str) -> bool:
    return bool(doctest.DocTestParser().get_examples(doc_of(name)))


def documents_every_parameter(name: str) -> bool:
    parameters = inspect.signature(PUBLIC[name]).parameters
    return all(re.search(rf"(?m)^    \**{one}: \S", doc_of(name)) for one in parameters)


def documents_what_it_returns(name: str) -> bool:
    returned = str(inspect.signature(PUBLIC[name]).return_annotation)
    verbs = r"(?m)^(Returns:|Return |Make |Create |Draw |Count |Stop |Compile )"
    nothing = returned.startswith(("None", "Generator", "AbstractContextManager", "NoReturn"))
    return nothing or bool(re.search(verbs, doc_of(name)))


def documents_what_it_raises(name: str) -> bool:
    raised = re.findall(r"raise (\w+Error)\(", source_of(name))
    return all(re.search(rf"(?m)^Raises:(\n .*)*\n    {e}: ", doc_of(name)) for e in raised)


def names_its_paper(name: str) -> bool:
    source = re.findall(r"(?m)^Source: ((?:.+\n?)+)", doc_of(name))
    return len(source) == 1 and bool(re.search(r"\b(19|20)\d\d\b", source[0]))


def has_its_formula(name: str) -> bool:
    stated = re.search(r"(?m)^Formula: (.+\n?)+", doc_of(name))
    formula = r"`[^`]+`" if stated else r"`[^`]*( [-+*/<=>] |\w\()[^`]*`"
    return bool(re.search(formula, stated[0] if stated else doc_of(name).split("\n")[0]))


@pytest.mark.parametrize(
    ("check", "names", "but"),
    [
        (begins_with_one_line_that_is_a_sentence, PUBLIC, ()),
        (says_what_to_do, FUNCTIONS, ()),
        (has_an_example_that_runs, CALLED, NO_EXAMPLE),
        (documents_every_parameter, CALLED, ()),
        (documents_what_it_returns, FUNCTIONS, ()),
        (documents_what_it_raises, CALLED, ()),
        (names_its_paper, of("optimizers.", "initializers."), NO_PAPER),
        (has_its_formula, of("losses.", "metrics."), NO_FORMULA),
    ],
)
def test_a_docstring(check, names, but):
    assert [name for name in names if name not in but and not check(name)] == []


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_every_public_method_has_a_docstring(cls):
    for name, member in vars(cls).items():
        public = not name.startswith("_") and (
            inspect.isfunction(member) or isinstance(member, property)
        )
        if public:
            assert inspect.getdoc(member), f"{cls.__name__}.{name}"


def test_importing_and_use_import_no_more_than_is_needed(run_python):
    code = """
import sys, jax, numpy
before = set(sys.modules)
import jaxvars as jv
import jaxvars.display.repr

heavy = {"optax", "flax", "orbax", "rich", "matplotlib", "treescope", "tensorboardX"}

def check(but=()):
    assert not heavy & (sys.modules.keys() - before - {*but})

check()
jax.config.update("jax_num_cpu_devices", 3)
assert len(jax.devices()) == 3, "it starts no backend"

jv.progress(3)
v = {"w": jv.Variable(1.0)}
jv.interop.from_numpy(v, jv.interop.to_numpy(v))
try:
    jv.interop.from_flax(v)
except jv.errors.InteropError as error:
    assert "refused" in str(error) or "not dict" in str(error), error
for kind in (jv.optimizers.SGD, jv.optimizers.Adam, jv.optimizers.AdamW):
    kind().apply_gradients([(1.0, v["w"])])
check()
import jaxvars.__main__
check(but=["rich"])

help(jv)
from jaxvars import *
assert "jaxvars.tf" not in sys.modules, "it switches numbers of 64 bits on"
print(jv.tf.Variable.__name__)
"""
    done = run_python("-c", code, XLA_FLAGS="")
    assert done.stdout.endswith("\nVariable\n"), done.stderr


def test_everything_is_there_without_docstrings(run_python):
    code = """
import importlib, pkgutil
import jaxvars as jv, jaxvars.tf as tf

for name in jv.__all__:
    getattr(jv, name)
for found in pkgutil.walk_packages(jv.__path__, "jaxvars."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
print(float(jv.compile(lambda x: x + 1)(1.0)), jv.Variable.__doc__)
"""
    done = run_python("-OO", "-c", code, KERAS_BACKEND="jax")
    assert done.stdout.endswith("2.0 None\n"), done.stderr
