"""jaxvars: TensorFlow 2's variable programming model for JAX.

    import jaxvars as jv

    w = jv.Variable(0.0)

    @jv.compile
    def step(x, y):
        with jv.GradientTape() as tape:
            loss = (w * x - y) ** 2
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

Where things live, lowest layer first (a lower one never imports a higher one):

    errors, _display, _trace      what goes wrong; how things look; JAX's tracing machinery
    _walk, _tensor, _face         finding variables; what is a tensor; operators
    _placement                    devices
    _store, _frames, _state       the heart: where values are, frames, State, functionalize
    _staging                      a function as a program over the variables that it touches
    _reread, _checks              reads after an assign; checks while a program runs
    _examples                     which example of a vectorized_map runs
    _variable                     Variable
    _module                       Module
    _record, _tape, _custom       what ran; GradientTape; functions with their own derivative
    _control, _loops, _maps       cond, while_loop, scan, ...; _carry says what they may carry
    _print, _tensor_array         print in compiled code; arrays written element by element
    _progress                     a bar for a loop, drawn by _progress_display
    autograph                     Python's if, while and for: _autograph_rewrite turns them into
                                  calls of _autograph_branches, _autograph_loops, ...
    config                        devices before JAX starts
    _compile                      the decorator; _signature, _entry, _hotpath, _concrete, _graph
    debugging                     checks while a program runs; NaN alarms; the log of placement
    _abstract, _plan, _hlo        variables without values; what a program takes on each device
    random, initializers          _generator and _stateless; first values for variables
    checkpoint                    Checkpoint; _checkpoint_files (on disk), _digest;
                                  CheckpointManager: _checkpoint_directory, _retention, _background
    interop                       flax modules as Modules: _interop_linen, _interop_nnx, ...
    losses, metrics               _loss and its functions; _metric, sums in a _tally
    optimizers                    Adam, SGD, ...; _optimizer, and its _step, _rules and _slots
    saved                         programs in a file; _saved_export, _program, _loaded, _files, ...
    launch, distributed           many processes; _launch_supervisor and others keep them running
    profiler                      where the time of a step goes; _profiler_ops
    summary                       numbers for TensorBoard; _summary_call, _defaults and _writer

To read it, begin with tests/test_tour.py, then _frames, _state, _variable, _compile, _trace,
_tape and _module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxvars import launch as launch

if launch.is_asked_for():  # `python -m jaxvars.launch` ends here: a launcher needs no JAX
    raise SystemExit(launch.main())

from jaxvars import autograph as autograph
from jaxvars import errors as errors
from jaxvars.autodiff.custom_gradient import custom_gradient as custom_gradient
from jaxvars.autodiff.custom_gradient import recompute as recompute
from jaxvars.autodiff.custom_gradient import recompute_grad as recompute_grad
from jaxvars.autodiff.custom_gradient import stop_gradient as stop_gradient
from jaxvars.autodiff.forward import ForwardAccumulator as ForwardAccumulator
from jaxvars.autodiff.tape import GradientTape as GradientTape
from jaxvars.autodiff.tape import UnconnectedGradients as UnconnectedGradients
from jaxvars.compiler.concrete_function import ConcreteFunction as ConcreteFunction
from jaxvars.compiler.decorator import compile as compile
from jaxvars.compiler.eager_mode import run_eagerly as run_eagerly
from jaxvars.compiler.function import Function as Function
from jaxvars.console.print import print as print
from jaxvars.control.branches import cond as cond
from jaxvars.control.branches import switch as switch
from jaxvars.control.loops import fori_loop as fori_loop
from jaxvars.control.loops import scan as scan
from jaxvars.control.loops import while_loop as while_loop
from jaxvars.control.maps import map_fn as map_fn
from jaxvars.control.maps import vectorized_map as vectorized_map
from jaxvars.control.tensor_array import TensorArray as TensorArray
from jaxvars.core.abstract import abstract as abstract
from jaxvars.core.cells import name_scope as name_scope
from jaxvars.core.module import Module as Module
from jaxvars.core.state import State as State
from jaxvars.core.state import functionalize as functionalize
from jaxvars.core.variable import Variable as Variable
from jaxvars.devices.device import device as device
from jaxvars.devices.device import get_soft_device_placement as get_soft_device_placement
from jaxvars.devices.device import list_devices as list_devices
from jaxvars.devices.device import set_soft_device_placement as set_soft_device_placement
from jaxvars.devices.mesh import mesh as mesh
from jaxvars.devices.mesh import shard as shard
from jaxvars.devices.mesh import use_mesh as use_mesh
from jaxvars.tensors.dtypes import string as string
from jaxvars.tensors.spec import TensorSpec as TensorSpec

if TYPE_CHECKING:  # imported when they are first asked for, so that `import jaxvars` is quick
    from jaxvars import checkpoint as checkpoint
    from jaxvars import config as config
    from jaxvars import debugging as debugging
    from jaxvars import distribute as distribute
    from jaxvars import distributed as distributed
    from jaxvars import initializers as initializers
    from jaxvars import interop as interop
    from jaxvars import losses as losses
    from jaxvars import metrics as metrics
    from jaxvars import optimizers as optimizers
    from jaxvars import profiler as profiler
    from jaxvars import random as random
    from jaxvars import saved as saved
    from jaxvars import summary as summary
    from jaxvars.compiler.plan import plan as plan
    from jaxvars.console.progress import progress as progress
    from jaxvars.parallel.placement import place as place

_LATER = {
    "checkpoint": "", "config": "", "debugging": "", "distribute": "", "distributed": "",
    "initializers": "", "interop": "", "losses": "", "metrics": "", "optimizers": "",
    "profiler": "", "random": "", "saved": "", "summary": "", "tf": "",
    "place": "jaxvars.parallel.placement", "plan": "jaxvars.compiler.plan",
    "progress": "jaxvars.console.progress",
}  # fmt: skip
"""What is imported when it is first asked for: namespaces, and functions with their files."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        found = import_module(_LATER[name] or f"jaxvars.{name}")
        globals()[name] = found = getattr(found, name) if _LATER[name] else found
        return found
    if name == "__version__":  # read when asked for: importlib.metadata takes time
        from importlib.metadata import version

        return version("jaxvars")
    from jaxvars.display.repr import did_you_mean

    hint = did_you_mean(name, __dir__())
    raise AttributeError(f"jaxvars has no attribute {name!r}.{' ' + hint if hint else ''}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
