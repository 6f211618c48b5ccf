"""`tf.saved_model`: objects with their variables and functions, without their Python source.

    tf.saved_model.save(module, "model", signatures=module.__call__.get_concrete_function(spec))

    loaded = tf.saved_model.load("model")
    loaded(x), loaded.signatures["serving_default"](x=x)

It is what `jv.export` writes and runs: a folder with one file, `saved_model.jaxvars`, in it.

    tree         which object has what, and files
    functions    programs of functions, and of signatures
    restored     functions that were loaded
    options      options
"""

from __future__ import annotations

import os
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

from jaxvars import export as core
from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.errors import SavedError
from jaxvars.modules.module import Module as CoreModule
from jaxvars.objects.traversal import CLOSED_TYPES as CLOSED
from jaxvars.tf.errors import DataLossError
from jaxvars.tf.listing import namespace
from jaxvars.tf.saved_model.functions import (
    default_of,
    functions_of,
    programs_of,
    programs_to_serve,
)
from jaxvars.tf.saved_model.options import LoadOptions as LoadOptions
from jaxvars.tf.saved_model.options import SaveOptions as SaveOptions
from jaxvars.tf.saved_model.options import VariablePolicy
from jaxvars.tf.saved_model.restored import RestoredFunction, SignatureFunction
from jaxvars.tf.saved_model.tree import Asset as Asset
from jaxvars.tf.saved_model.tree import Assets, Item, LoadedObject, Tree, rebuild
from jaxvars.tf.train import graph as graphs
from jaxvars.tf.train.checkpoint import is_traced
from jaxvars.tf.train.stored import SAVED_FILE, SAVED_TREE

DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"
SERVING, TRAINING, GPU, TPU = "serve", "train", "gpu", "tpu"
ASSETS_DIRECTORY, ASSETS_KEY = "assets", "saved_model_assets"
PREDICT_INPUTS, PREDICT_OUTPUTS = "inputs", "outputs"
PREDICT_METHOD_NAME = "tensorflow/serving/predict"
CLASSIFY_INPUTS, CLASSIFY_OUTPUT_CLASSES, CLASSIFY_OUTPUT_SCORES = "inputs", "classes", "scores"
CLASSIFY_METHOD_NAME = "tensorflow/serving/classify"
REGRESS_INPUTS, REGRESS_OUTPUTS = "inputs", "outputs"
REGRESS_METHOD_NAME = "tensorflow/serving/regress"
FILE, _TREE = SAVED_FILE, SAVED_TREE

experimental = types.SimpleNamespace(VariablePolicy=VariablePolicy)


def save(
    obj: Any, export_dir: Any, signatures: Any = None, options: SaveOptions | None = None
) -> None:
    """Write an object's variables, and its `tf.function`s for the arguments they were traced for.

    Args:
        obj: a module, or another object with variables and functions, in lists and dicts, too.
        export_dir: the folder.
        signatures: what is served: a concrete function, or `tf.function` with an
            `input_signature`; or a dict of them by name, {} for nothing. One alone is
            "serving_default". When None it is what a model of `tf.keras` was built for, or the one
            function of another object that has an `input_signature`, if it is one.
        options: of no effect.

    Raises:
        ValueError: when the object can hold nothing, or a signature is not a function.
        AssertionError: in a `tf.function`.
        FileNotFoundError: when the file of an `Asset` is not there.
        jaxvars.errors.SavedError: when a function is what no file holds: it computes with what a
            `tf.py_function` returns, or with strings.

    Example:
        >>> import tempfile
        >>> from jaxvars import tf
        >>> folder = tempfile.TemporaryDirectory()
        >>> scale = tf.train.Checkpoint(v=tf.Variable(2.0))
        >>> scale.double = tf.function(
        ...     lambda x: x * scale.v, input_signature=[tf.TensorSpec([None])]
        ... )
        >>> save(scale, folder.name, signatures=scale.double)
        >>> loaded = load(folder.name)
        >>> print(loaded.double(tf.constant([1.0, 2.0])).numpy())
        [2. 4.]
        >>> list(loaded.signatures)
        ['serving_default']
        >>> folder.cleanup()

    Differs from TensorFlow: the folder holds one file, of programs for XLA, which TensorFlow and
    its servers cannot read. A function is saved without its `tf.print`, and without a
    `tf.py_function` that returns nothing, which a warning names; its checks are saved. Variables
    that a function uses are saved with it, whatever object has them. A size that is None must be
    one that the function can be traced for whatever it is; of those after the first, which often
    cannot be, a program is saved for each size that is found in the variables' shapes instead, or
    where none of them will do, for those that differ by up to 8.
    """
    if isinstance(obj, (*CLOSED, list, tuple, dict)):
        raise ValueError(
            "Expected an object of type `Trackable`, such as `tf.Module` or a subclass of the "
            f"`Trackable` class, for export. Got {obj!r} with type {type(obj)}."
        )
    if is_traced():
        raise AssertionError(
            "tf.saved_model.save is not supported inside a traced @tf.function. Move the call to "
            "the outer eagerly-executed context."
        )
    programs: dict[str, Any] = {}
    graph, assets = graphs.graph_of(obj), Assets(Path(export_dir))
    sizes = _list_sizes(graph)
    tree = Tree(
        [_describe_item(graph, i, programs, sizes, assets) for i in range(len(graph.objects))], {}
    )
    if signatures is None:
        signatures = default_of(graph.objects[0])
    if not isinstance(signatures, Mapping):
        signatures = {} if signatures is None else {DEFAULT_SERVING_SIGNATURE_DEF_KEY: signatures}
    for name, function in signatures.items():
        tree.signatures[name] = f"signature_{name}"
        try:
            programs[f"signature_{name}"] = programs_to_serve(function, sizes)
        except SavedError as error:
            error.add_note("With signatures={} it is saved, and nothing is served.")
            raise
    Path(export_dir).mkdir(parents=True, exist_ok=True)
    variables = {
        **graphs.by_name(graph),
        _TREE: CoreVariable(tree.to_string(), name=_TREE, trainable=False),
    }
    core.save(_Flat(variables), Path(export_dir) / FILE, programs)
    assets.write()


@final
class _Flat(CoreModule):
    """Variables by path."""

    def __init__(self, variables: Mapping[str, CoreVariable]) -> None:
        super().__init__("saved")
        vars(self).update(variables)


def _list_sizes(graph: graphs.Graph) -> list[int]:
    """Return the sizes that the variables have, some of which arguments may have, too."""
    found = {size for variable in graphs.by_name(graph).values() for size in variable.shape}
    return sorted(found - {1}, reverse=True)[:8]


def _describe_item(
    graph: graphs.Graph, number: int, programs: dict[str, Any], sizes: Sequence[int], assets: Assets
) -> Item:
    """Describe an object, and add the programs of its functions."""
    value = graph.objects[number]
    if number in graph.names:
        return Item("variable", value=graph.names[number])
    if isinstance(value, Asset):
        return Item("asset", value=assets.name(value))
    kinds = {"list": list, "tuple": tuple, "dict": Mapping}
    kind = next((word for word, kind in kinds.items() if isinstance(value, kind)), "object")
    item = Item(kind, dict(graph.edges[number]))
    for name, function in functions_of(value) if kind == "object" else ():
        found = programs_of(function, sizes)
        word = f"{name}_{len(programs)}" if found else None
        if word is not None:
            programs[word] = found
        item.functions[name] = word
    return item


def load(export_dir: Any, tags: Any = None, options: LoadOptions | None = None) -> Any:
    """Return the object that was saved in a folder.

    Its variables and functions have the names that they had; `signatures` are what is served.

    Raises:
        OSError: when there is nothing saved in the folder.
        tf.errors.DataLossError: when it is damaged.
    """
    file = Path(export_dir) / FILE
    if not file.is_file():
        its = Path(export_dir) / "variables" / "variables"
        more = (
            ". What TensorFlow saved is not read, but for its values: "
            f"tf.train.Checkpoint(...).restore({str(its)!r})."
        ) * its.with_suffix(".index").exists()
        raise OSError(
            f"SavedModel file does not exist at: {os.fspath(export_dir)}/{{{FILE}}}{more}"
        )
    try:
        loaded = core.load(file)
        variables = loaded.named_variables
        tree = Tree.from_string(str(variables.pop(_TREE).numpy()))
    except (SavedError, ValueError, KeyError, TypeError) as error:
        raise DataLossError(None, None, f"{file}: {error}") from error
    functions = loaded.signatures

    def function(word: str | None) -> RestoredFunction:
        saved = None if word is None else functions[word]
        return RestoredFunction(saved, "" if word is None else word.rpartition("_")[0])

    try:
        root = rebuild(tree, variables, function, Assets(Path(export_dir)).load)
    except (ValueError, RecursionError) as error:
        raise DataLossError(None, None, f"{file}: {error}") from error
    served_functions = {
        name: SignatureFunction(functions[word], name, variables)
        for name, word in tree.signatures.items()
    }
    if isinstance(root, LoadedObject):
        vars(root)["signatures"] = MappingProxyType(served_functions)
    return root


def contains_saved_model(export_dir: Any) -> bool:
    """Return whether something is saved in a folder.

    >>> contains_saved_model("/there/is/none")
    False
    """
    return (Path(export_dir) / FILE).is_file()


__getattr__, __dir__ = namespace(__name__)
