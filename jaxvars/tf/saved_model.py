"""`tf.saved_model`: objects with their variables and functions, without their Python source.

    tf.saved_model.save(module, "model", signatures=module.__call__.get_concrete_function(spec))

    loaded = tf.saved_model.load("model")
    loaded(x), loaded.signatures["serving_default"](x=x)

It is what `jv.saved` writes and runs: a folder with one file, `saved_model.jaxvars`, in it.

    _saved_tree         which object has what
    _saved_functions    programs, and functions that were loaded
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, final

from jaxvars import saved as core
from jaxvars._display import did_you_mean
from jaxvars._module import Module as CoreModule
from jaxvars._variable import Variable as CoreVariable
from jaxvars._walk import _CLOSED as CLOSED
from jaxvars.errors import SavedError
from jaxvars.tf import _train_graph as graphs
from jaxvars.tf._saved_functions import (
    RestoredFunction,
    SignatureFunction,
    functions_of,
    programs_of,
    served,
)
from jaxvars.tf._saved_tree import Item, LoadedObject, Tree, rebuilt
from jaxvars.tf.errors import DataLossError

DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"
SERVING, TRAINING, GPU, TPU = "serve", "train", "gpu", "tpu"
FILE = "saved_model.jaxvars"
_TREE = "_SAVED_OBJECT_GRAPH"


@final
class SaveOptions:
    """How an object is saved.

    Args:
        namespace_whitelist: of no effect.
        save_debug_info: of no effect.
        function_aliases: of no effect.
        experimental_debug_stripper: of no effect.
        experimental_io_device: of no effect.
        experimental_variable_policy: of no effect.
        experimental_custom_gradients: of no effect: they are always saved.
        experimental_image_format: of no effect.
        experimental_skip_saver: of no effect.
        experimental_sharding_callback: of no effect.
        extra_tags: of no effect.

    >>> SaveOptions(experimental_custom_gradients=True).experimental_custom_gradients
    True
    """

    def __init__(
        self,
        namespace_whitelist: Any = None,
        save_debug_info: bool = False,
        function_aliases: Any = None,
        experimental_debug_stripper: bool = False,
        experimental_io_device: str | None = None,
        experimental_variable_policy: Any = None,
        experimental_custom_gradients: bool = True,
        experimental_image_format: bool = False,
        experimental_skip_saver: bool = False,
        experimental_sharding_callback: Any = None,
        extra_tags: Any = None,
    ) -> None:
        self.namespace_whitelist = namespace_whitelist
        self.save_debug_info = save_debug_info
        self.function_aliases = function_aliases
        self.experimental_debug_stripper = experimental_debug_stripper
        self.experimental_io_device = experimental_io_device
        self.experimental_variable_policy = experimental_variable_policy
        self.experimental_custom_gradients = experimental_custom_gradients
        self.experimental_image_format = experimental_image_format
        self.experimental_skip_saver = experimental_skip_saver
        self.experimental_sharding_callback = experimental_sharding_callback
        self.extra_tags = extra_tags


@final
class LoadOptions:
    """How a folder is loaded.

    Args:
        allow_partial_checkpoint: of no effect.
        experimental_io_device: of no effect.
        experimental_skip_checkpoint: of no effect.
        experimental_variable_policy: of no effect.
        experimental_load_function_aliases: of no effect.
    """

    def __init__(
        self,
        allow_partial_checkpoint: bool = False,
        experimental_io_device: str | None = None,
        experimental_skip_checkpoint: bool = False,
        experimental_variable_policy: Any = None,
        experimental_load_function_aliases: bool = False,
    ) -> None:
        self.allow_partial_checkpoint = allow_partial_checkpoint
        self.experimental_io_device = experimental_io_device
        self.experimental_skip_checkpoint = experimental_skip_checkpoint
        self.experimental_variable_policy = experimental_variable_policy
        self.experimental_load_function_aliases = experimental_load_function_aliases


def save(
    obj: Any, export_dir: Any, signatures: Any = None, options: SaveOptions | None = None
) -> None:
    """Write an object's variables, and its `tf.function`s for the arguments they were traced for.

    Args:
        obj: a module, or another object with variables and functions, in lists and dicts, too.
        export_dir: the folder.
        signatures: what is served: a concrete function, or `tf.function` with an
            `input_signature`; or a dict of them by name. One alone is "serving_default".
        options: of no effect.

    Raises:
        ValueError: when the object can hold nothing, or a signature is no function.
        jaxvars.errors.SavedError: when a function is what no file holds: it calls back into
            Python, or works with text.

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
    its servers cannot read. There are no assets. A size that is None must be one that the function
    can be traced for whatever it is; of those after the first, which often cannot be, a program is
    saved for each size that is found in the variables' shapes instead.
    """
    if isinstance(obj, (*CLOSED, list, tuple, dict)):
        raise ValueError(
            "Expected an object of type `Trackable`, such as `tf.Module` or a subclass of the "
            f"`Trackable` class, for export. Got {obj!r} with type {type(obj)}."
        )
    programs: dict[str, Any] = {}
    graph = graphs.graph_of(obj)
    sizes = _sizes(graph)
    tree = Tree([_item(graph, i, programs, sizes) for i in range(len(graph.objects))], {})
    for name, function in _named(signatures).items():
        tree.signatures[name] = f"signature_{name}"
        programs[f"signature_{name}"] = served(function, sizes)
    Path(export_dir).mkdir(parents=True, exist_ok=True)
    variables = {
        **graphs.by_name(graph),
        _TREE: CoreVariable(tree.to_text(), name=_TREE, trainable=False),
    }
    core.save(_Flat(variables), Path(export_dir) / FILE, programs)


@final
class _Flat(CoreModule):
    """Variables by path."""

    def __init__(self, variables: Mapping[str, CoreVariable]) -> None:
        super().__init__("saved")
        vars(self).update(variables)


def _named(signatures: Any) -> dict[str, Any]:
    if signatures is None:
        return {}
    if isinstance(signatures, Mapping):
        return dict(signatures)
    return {DEFAULT_SERVING_SIGNATURE_DEF_KEY: signatures}


def _sizes(graph: graphs.Graph) -> list[int]:
    """Return the sizes that the variables have, some of which arguments may have, too."""
    found = {size for variable in graphs.by_name(graph).values() for size in variable.shape}
    return sorted(found - {1}, reverse=True)[:8]


def _item(graph: graphs.Graph, number: int, programs: dict[str, Any], sizes: Sequence[int]) -> Item:
    """Describe an object, and add the programs of its functions."""
    value = graph.objects[number]
    if number in graph.names:
        return Item("variable", value=graph.names[number])
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
        raise OSError(f"SavedModel file does not exist at: {os.fspath(export_dir)}/{{{FILE}}}")
    try:
        loaded = core.load(file)
        variables = loaded.named_variables
        tree = Tree.from_text(str(variables.pop(_TREE).numpy()))
    except (SavedError, ValueError, KeyError, TypeError) as error:
        raise DataLossError(None, None, f"{file}: {error}") from error
    functions = loaded.signatures

    def function(word: str | None) -> RestoredFunction:
        saved = None if word is None else functions[word]
        return RestoredFunction(saved, "" if word is None else word.rpartition("_")[0])

    root = rebuilt(tree, variables, function)
    served_functions = {
        name: SignatureFunction(functions[word], name, variables)
        for name, word in tree.signatures.items()
    }
    if isinstance(root, LoadedObject):
        vars(root)["signatures"] = MappingProxyType(served_functions)
    return root


def contains_saved_model(export_dir: Any) -> bool:
    """Tell whether something is saved in a folder.

    >>> contains_saved_model("/there/is/none")
    False
    """
    return (Path(export_dir) / FILE).is_file()


def __getattr__(name: str) -> NoReturn:
    if name == "Asset":
        raise AttributeError("tf.saved_model has no Asset: put files beside what is saved.")
    hint = did_you_mean(name, list(globals()))
    raise AttributeError(f"tf.saved_model has no attribute {name!r}.{' ' + hint if hint else ''}")
