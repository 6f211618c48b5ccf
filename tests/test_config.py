"""`config.py`: devices before and after JAX has started. Each start is a separate process."""

from __future__ import annotations

import os

import jax
import pytest

import jaxvars as jv
from jaxvars import config
from jaxvars.errors import DeviceError

pytestmark = pytest.mark.skipif(
    len(jv.config.list_devices("cpu")) < 8, reason="needs 8 CPU devices: see conftest.py"
)
CPU = config.PhysicalDevice("/physical_device:CPU:0", "CPU")


# ---------------------------------------------------------------- after the start
def test_the_cpu_is_one_processor_and_eight_devices():
    assert config.list_physical_devices("CPU") == config.list_physical_devices("cpu") == [CPU]
    assert CPU in config.list_physical_devices()
    logical = config.list_logical_devices("CPU")
    assert len(logical) == 8
    assert logical[3] == config.LogicalDevice("/job:localhost/replica:0/task:0/device:CPU:3", "CPU")
    assert config.list_logical_devices("ABACUS") == []


def test_names_of_logical_devices_are_taken_by_device():
    for listed, device in zip(config.list_logical_devices("CPU"), jax.devices("cpu"), strict=True):
        with jv.device(listed.name) as found:
            assert found == device


@pytest.mark.parametrize(
    "late",
    [
        lambda: config.set_logical_devices(4),
        lambda: config.set_visible_devices([], "GPU"),
        lambda: config.set_memory_fraction(0.5),
    ],
)
def test_what_comes_too_late_is_refused(late):
    assert config.has_started()
    with pytest.raises(DeviceError, match=r"JAX has started .* right after `import jaxvars`"):
        late()


def test_what_is_so_already_is_never_too_late():
    config.set_logical_devices(8)
    assert len(jax.devices("cpu")) == 8


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (lambda: config.set_logical_devices(2, "GPU"), "JAX has no virtual GPU devices"),
        (lambda: config.set_logical_devices(0), "at least one CPU device, not 0"),
        (lambda: config.set_memory_fraction(0), "more than 0 and at most 1, not 0"),
        (lambda: config.set_memory_growth("CPU:0", True), "CPU always grows"),
        (lambda: config.get_memory_growth(CPU), "CPU always grows"),
        (
            lambda: config.set_memory_growth("GPU:77", True),
            r"Device 'GPU:77' does not exist; there are: .*CPU",
        ),
        (lambda: config.set_visible_devices("CPU:0", "GPU"), r"CPU:0' is not a GPU"),
        (lambda: config.get_memory_info("CPU:1"), r"device:CPU:1 does not count its memory"),
    ],
)
def test_what_is_refused(refused, message):
    with pytest.raises(DeviceError, match=message):
        refused()


def test_soft_placement_is_here_too():
    assert config.get_soft_device_placement is jv.config.get_soft_device_placement
    assert config.set_soft_device_placement is jv.config.set_soft_device_placement


# ---------------------------------------------------------------- before it
def in_a_new_process(run_python, code, **env):
    done = run_python("-c", "import os, jax\nimport jaxvars as jv\n" + code, XLA_FLAGS="", **env)
    assert done.stdout.endswith("fine\n"), done.stdout + done.stderr
    return done


def test_virtual_devices_and_listing_before_the_start(run_python):
    in_a_new_process(
        run_python,
        """
assert [d.device_type for d in jv.config.list_physical_devices()] == ["CPU"]
assert not jv.config.has_started()
jv.config.set_logical_devices(2)
jv.config.set_logical_devices(3)
jv.config.set_visible_devices(jv.config.list_physical_devices("CPU"), "CPU")
assert not jv.config.has_started()
assert len(jv.config.list_logical_devices()) == len(jax.devices()) == 3
assert jv.config.has_started()
with jv.device("CPU:2"):
    assert jv.Variable(1.0).device == jax.devices()[2]
print("fine")
""",
    )


def test_jax_starts_in_another_thread_while_it_is_asked_whether_it_has(run_python):
    in_a_new_process(
        run_python,
        """
import threading

def update_and_start(*args, own=jax.config.update):
    own(*args)
    jax.config.update = own
    starts = threading.Thread(target=jax.devices)
    starts.start()
    starts.join(60)

jv.config.set_logical_devices(2)
jax.config.update = update_and_start
jv.config.list_physical_devices("GPU")
assert jv.config.has_started()
jv.config.set_logical_devices(len(jax.devices()))
assert len(jax.devices()) == jax.config.jax_num_cpu_devices == 2
jax.config.update("jax_num_cpu_devices", 2)
print("fine")
""",
    )


FAKE_GPUS = """
jv.config._count_driver_gpus = lambda: 3  # as on a machine that has them
gpus = jv.config.list_physical_devices("GPU")
assert [gpu.name for gpu in gpus] == [f"/physical_device:GPU:{i}" for i in range(3)]
"""


def test_gpus_before_the_start(run_python):
    in_a_new_process(
        run_python,
        FAKE_GPUS
        + """
jv.config.set_visible_devices(gpus, "GPU")  # all of them: nothing to do
jv.config.set_visible_devices([gpus[0], "GPU:2"], "GPU")
assert jax.config.values["jax_cuda_visible_devices"] == "0,2"
assert jv.config.get_visible_devices("GPU") == [gpus[0], gpus[2]]
assert not jv.config.get_memory_growth(gpus[0])
jv.config.set_memory_growth(gpus[0], True)
assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
assert jv.config.get_memory_growth("GPU:1")
jv.config.set_memory_fraction(0.5)
assert os.environ["XLA_CLIENT_MEM_FRACTION"] == "0.5"
jv.config.set_visible_devices([], "GPU")
assert jax.config.values["jax_platforms"] == "cpu"
assert jv.config.get_visible_devices() == jv.config.list_physical_devices("CPU")
try:
    jv.config.set_visible_devices([])
except jv.errors.DeviceError as error:
    assert "JAX always has its CPU" in str(error), error
    print("fine")
""",
        JAX_PLATFORMS="",
    )


# ---------------------------------------------------------------- compiled programs in a folder
TRAINING = """
import jax.numpy as jnp
rate, others = float(os.environ["RATE"]), int(os.environ["OTHERS"])
jv.config.compilation_cache("programs")
events = []
jax.monitoring.register_event_listener(lambda name, **_: events.append(name))
others = [jv.Variable(0.0) for _ in range(others)]  # numbers of cells and epochs differ
for other in others:
    jv.compile(lambda other=other: other.assign_add(1.0))()
before = len(events)

class Dense(jv.Module):
    w = None

    def __call__(self, x):
        if self.w is None:
            self.w = jv.Variable(jnp.ones((4, 3)))
        return jnp.tanh(x @ self.w)

dense, adam = Dense(), jv.optimizers.Adam(0.1)

@jv.compile
def step(x):
    with jv.GradientTape() as tape:
        loss = rate * jnp.sum(dense(x) ** 2)
    adam.apply_gradients(zip(tape.gradient(loss, [dense.w]), [dense.w]))
    return loss

print([float(step(jnp.linspace(0.0, 1.0, 4)[None])) for _ in range(3)])
names = [name.rpartition("/")[2] for name in events[before:]]
asked, found = names.count("compile_requests_use_cache"), names.count("cache_hits")
print(asked > 2, asked - found)
print("fine")
"""


def train(run_python, **env):
    """Return the losses, and how many programs were compiled."""
    done = in_a_new_process(run_python, TRAINING, **env)
    losses, compiled, _ = done.stdout.splitlines()
    assert compiled.startswith("True ")
    return losses, int(compiled.removeprefix("True "))


def test_another_process_compiles_nothing_that_is_in_the_folder(run_python):
    losses, compiled = train(run_python, RATE="1", OTHERS="0")
    assert compiled > 2
    assert train(run_python, RATE="1", OTHERS="3") == (losses, 0)
    other_losses, compiled = train(run_python, RATE="2", OTHERS="0")
    assert (other_losses != losses, compiled) == (True, 1)


def test_a_folder_is_used_from_the_call_on(run_python):
    in_a_new_process(
        run_python,
        """
from pathlib import Path
v = jv.Variable(1.0)
step, traces = jv.compile(lambda x: traces.append(x) or v.assign_add(x)), []
step(1.0)
for name in "one", "one/two":
    jv.config.compilation_cache(Path(name))
    step(1.0)
    assert not list(Path(name).glob("xla-*/*-cache")), name
    jv.compile(lambda: v * 2.0)()
    assert list(Path(name).glob("xla-*/*_lambda*-cache")), name
assert len(traces) == 1
files = set(Path().rglob("*-cache"))
jv.config.compilation_cache(None)
jv.compile(lambda: v * 3.0)()
assert set(Path().rglob("*-cache")) == files
print("fine")
""",
    )


def test_the_folder_is_the_users_and_one_of_it_is_this_machines(run_python, tmp_path):
    code = 'jv.config.compilation_cache()\njv.compile(lambda x: x * 2.0)(1.0)\nprint("fine")'
    in_a_new_process(run_python, code, HOME=str(tmp_path))
    (folder,) = (tmp_path / ".cache" / "jaxvars").iterdir()
    assert list(folder.glob("*-cache"))
    assert folder.name == f"xla-{config._kind_of_machine()}"


def test_what_was_used_longest_ago_is_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(config.jax.config, "update", lambda *_: None)
    monkeypatch.setattr(config, "reset_cache", lambda: None)
    (tmp_path / "xla-of-another-cpu").mkdir()
    (tmp_path / "mine-cache").write_bytes(b"not a program")
    for age, name in enumerate("abcd"):
        file = tmp_path / "xla-of-another-cpu" / f"{name}-cache"
        file.write_bytes(b"12345")
        os.utime(file, (1000 - age, 1000 - age))
    config.compilation_cache(tmp_path, most_bytes=12)
    left = sorted(file.name for file in tmp_path.rglob("*-cache"))
    assert left == ["a-cache", "b-cache", "mine-cache"]


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    before = jax.config.values["jax_compilation_cache_dir"]
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(
            OSError, match=r"can't be kept in '.*file(/below)?/xla-\w+': (File|Not)"
        ):
            config.compilation_cache(path)
    (tmp_path / "locked").mkdir(mode=0o500)
    if not os.access(tmp_path / "locked", os.W_OK):  # root may write anywhere
        with pytest.raises(OSError, match=r"can't be kept in '.*locked/xla-\w+': Permission"):
            config.compilation_cache(tmp_path / "locked")
    assert jax.config.values["jax_compilation_cache_dir"] == before
