"""Models of `tf.keras` as programs: what `tf.saved_model.save` serves of them, and `export`."""

from __future__ import annotations

import importlib
import types
from typing import Any

from jaxvars.tf import saved_model
from jaxvars.tf.functions.decorator import function
from jaxvars.tf.keras.adapter.keras import keras
from jaxvars.tf.saved_model.functions import holds_for_all_sizes
from jaxvars.tf.tensors.specs import TensorSpec

_KINDS = ("variables", "trainable_variables", "non_trainable_variables")


class Served:
    """What a model of `tf.keras` has to be saved as a program."""

    @property
    def _default_save_signature(self) -> Any:
        """What `tf.saved_model.save` serves: the model; None where its inputs are not known."""
        this: Any = self
        graph = getattr(getattr(this, "_functional", None) or this, "_inputs_struct", None)
        if graph is not None:
            return _serve(this, [_map(lambda x: TensorSpec(x.shape, x.dtype), graph)])
        built = [*(this._build_shapes_dict or {}).values()]
        if not built:
            return None
        opened = _serve(this, _specs_of(built, this.input_dtype, is_open=True))
        if holds_for_all_sizes(opened):
            return opened
        return _serve(this, _specs_of(built, this.input_dtype, is_open=False))

    def export(
        self, filepath: Any, format: str = "tf_saved_model", verbose: bool | None = None,
        input_signature: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        """Write a program of the model, which `tf.saved_model.load` loads, as `serve`.

        Args:
            filepath: the folder.
            format: "tf_saved_model": what `tf.saved_model.save` writes. Others are left to Keras.
            verbose: say what was written, if it is not False.
            input_signature: the arguments, as `tf.TensorSpec`s or `keras.InputSpec`s; when None
                those that the model was built for, with any number of examples.
            **options: for the other formats.

        Raises:
            ValueError: when the inputs of the model are not known.
            TypeError: for options of other formats.
        """
        if format != "tf_saved_model":
            model: Any = super()
            model.export(filepath, format, verbose, input_signature, **options)
            return
        if options:
            raise TypeError(f"Options of other formats: {sorted(options)}.")
        this: Any = self
        if not this.built:
            raise ValueError(
                "The model provided has not yet been built. It must be built before export."
            )
        given = _inputs_of(this) if input_signature is None else input_signature
        specs = _map(lambda x: TensorSpec(x.shape, x.dtype, x.name), given)
        serve = function(lambda *args: this(*args), input_signature=specs, autograph=False)
        held = types.SimpleNamespace(
            serve=serve, **{kind: [*getattr(this, kind)] for kind in _KINDS}
        )
        saved_model.save(held, filepath, signatures={"serve": serve, "serving_default": serve})
        if verbose is not False:
            _of_keras("utils.io_utils").print_msg(
                f"Saved artifact at '{filepath}'. The following endpoints are available:\n\n"
                f"* Endpoint 'serve'\n{serve.get_concrete_function()}"
            )


def _serve(model: Any, specs: Any) -> Any:
    def serving_default(inputs: Any, *more: Any) -> Any:
        return model(inputs, *more)

    return function(serving_default, input_signature=specs, autograph=False)


def _specs_of(shapes: Any, dtype: Any, *, is_open: bool) -> Any:
    """Return specs of what a model was built for, or of any number of such examples."""

    def spec(shape: Any) -> TensorSpec:
        return TensorSpec([None, *shape[1:]] if is_open else shape, dtype)

    return keras().tree.map_shape_structure(spec, shapes)


def _map(make: Any, given: Any) -> Any:
    return keras().tree.map_structure(make, given)


def _inputs_of(model: Any) -> Any:
    """Return what a model takes: specs of Keras's, for each argument."""
    return _of_keras("export.export_utils").get_input_signature(model)


def _of_keras(path: str) -> Any:
    return importlib.import_module(f"keras.src.{path}")
