"""`tf.saved_model.SaveOptions` and `LoadOptions`."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, final


@final
class VariablePolicy(enum.Enum):
    """Options of variables' devices, which are of no effect: XLA places them."""

    NONE = None
    SAVE_VARIABLE_DEVICES = "save_variable_devices"
    EXPAND_DISTRIBUTED_VARIABLES = "expand_distributed_variables"


@final
@dataclass(eq=False, repr=False)
class SaveOptions:
    """How an object is saved: the options can be read back, and are of no effect.

    Custom gradients are always saved.

    >>> SaveOptions(experimental_custom_gradients=True).experimental_custom_gradients
    True
    """

    namespace_whitelist: Any = None
    save_debug_info: bool = False
    function_aliases: Any = None
    experimental_debug_stripper: bool = False
    experimental_io_device: str | None = None
    experimental_variable_policy: Any = None
    experimental_custom_gradients: bool = True
    experimental_image_format: bool = False
    experimental_skip_saver: bool = False
    experimental_sharding_callback: Any = None
    extra_tags: Any = None


@final
@dataclass(eq=False, repr=False)
class LoadOptions:
    """How a folder is loaded: the options can be read back, and are of no effect."""

    allow_partial_checkpoint: bool = False
    experimental_io_device: str | None = None
    experimental_skip_checkpoint: bool = False
    experimental_variable_policy: Any = None
    experimental_load_function_aliases: bool = False
