"""Checkpoints on disk: whole or not at all, every bit verified, nothing trusted."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checkpoint_storm import check as check_storm

from jaxvars.checkpoint import Checkpoint, latest_checkpoint, list_variables, load, load_variable
from jaxvars.checkpoint import files as _checkpoint_files
from jaxvars.checkpoint import stored as _stored
from jaxvars.checkpoint.checksum import Entry, _checksum, encode
from jaxvars.checkpoint.files import _HOST, _manifest, write
from jaxvars.checkpoint.stored import MANIFEST, checksum_of, is_damaged, open_stored, stored_name
from jaxvars.errors import CheckpointError

import jaxvars as jv  # isort: skip - after the names that are under test

FORMS = ["folder", "file.npz"]


@pytest.mark.parametrize("form", FORMS)
def test_values_come_back_with_what_was_said_about_them(tmp_path: Path, form: str):
    path = write(tmp_path / form, {"a/w": jnp.arange(6.0).reshape(2, 3)}, {"step": 3})
    found = open_stored(path)
    assert found.about == {"step": 3}
    np.testing.assert_array_equal(found.value("a/w"), [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize("form", FORMS)
def test_there_may_be_nothing_in_it(tmp_path: Path, form: str):
    assert load(write(tmp_path / form, {})) == {}


@pytest.mark.parametrize(("path", "name"), [
    ("model/layers/0/w_1", "model/layers/0/w_1"), ("../../etc", "%2E%2E%2F%2E%2E%2Fetc"),
    ("/etc", "%2Fetc"), ("a//b", "a%2F%2Fb"), ("a/../b", "a%2F%2E%2E%2Fb"), (".", "%2E"), ("", ""),
    ("a%2Fb", "a%252Fb"), ("ü\n", "%C3%BC%0A"),
])  # fmt: skip
def test_names_on_disk_lead_nowhere(path: str, name: str):
    assert stored_name(path) == name


# ---------------------------------------------------------------- looking inside
def test_what_is_in_a_checkpoint_can_be_seen_without_the_objects(tmp_path: Path):
    model = {"w": jv.Variable(jnp.arange(3, dtype=jnp.bfloat16)), "word": jv.Variable("yes")}
    path = Checkpoint(model=model).save(tmp_path / "c")
    assert list_variables(path) == [("model/w", (3,)), ("model/word", ()), ("save_counter", ())]
    assert load_variable(path, "model/w").dtype == jnp.bfloat16
    assert load_variable(path, "model/word").item() == "yes"
    assert load(path)["save_counter"] == 1
    with pytest.raises(
        CheckpointError, match=r" has no value 'w'; there are: model/w, model/word, save_"
    ):
        load_variable(path, "w")


def test_the_latest_is_what_was_written_last_and_is_whole(tmp_path: Path):
    assert latest_checkpoint(tmp_path / "nowhere") is None
    assert latest_checkpoint(tmp_path) is None
    checkpoint = Checkpoint(v=jv.Variable(1.0))
    first = checkpoint.save(tmp_path / "ckpt")
    second = checkpoint.save(tmp_path / "ckpt.npz")
    third = checkpoint.write(tmp_path / "best")
    os.utime(first)  # when it was copied is not when it was written
    assert latest_checkpoint(tmp_path) == third
    assert latest_checkpoint(tmp_path, "ckpt") == second
    data = Path(second).read_bytes()
    Path(second).write_bytes(data[: len(data) // 2])
    (tmp_path / "ckpt-3").mkdir()
    shutil.copytree(third, tmp_path / "ckpt-3.tmp-1-1")
    assert latest_checkpoint(tmp_path, "ckpt") == first
    assert [is_damaged(path) for path in (first, second, third)] == [False, True, False]


def test_a_file_that_is_replaced_while_it_is_read_is_read_to_its_end(tmp_path: Path):
    old = {"a": jnp.zeros(3), "b": jnp.zeros(2)}
    stored = open_stored(write(tmp_path / "c.npz", old))
    assert not stored.value("a").any()
    write(tmp_path / "c.npz", {"a": jnp.ones(3), "b": jnp.ones(2)})
    values, problems = stored.values()
    assert not problems
    assert not any(x.any() for x in values.values())
    assert open_stored(tmp_path / "c.npz").value("b").all()


def test_a_folder_that_was_being_replaced_is_found(tmp_path: Path):
    checkpoint = Checkpoint(v=jv.Variable(1.0))
    path = Path(checkpoint.write(tmp_path / "c"))
    path.rename(tmp_path / ".c.replaced")  # as it is for a moment
    assert latest_checkpoint(tmp_path) == str(path)
    assert load(path)["v"] == 1.0
    checkpoint.v.assign(2.0)
    checkpoint.write(path)
    assert load(path)["v"] == 2.0
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


@pytest.mark.parametrize("form", FORMS)
def test_replacing_can_be_cut_off_after_each_step(tmp_path: Path, monkeypatch, form: str):
    class Killed(BaseException):
        pass

    steps = [0]

    def counted(step: Callable[..., object]) -> Callable[..., object]:
        def run(*args: object, **options: object) -> object:
            steps[0] -= 1
            if steps[0] < 0:
                raise Killed
            return step(*args, **options)

        return run

    path, seen = tmp_path / form, []
    write(path, {"v": jnp.zeros(3)})
    monkeypatch.setattr(_checkpoint_files, "remove", counted(_checkpoint_files.remove))
    monkeypatch.setattr(Path, "rename", counted(Path.rename))
    monkeypatch.setattr(os, "replace", counted(os.replace))
    for last in range(9):
        steps[0] = last
        with contextlib.suppress(Killed):
            write(path, {"v": jnp.full(3, last + 1.0)})
        seen.append(load(path)["v"].tolist())
    values = [value[0] for value in seen]
    assert seen == [[value] * 3 for value in values]
    assert values == sorted(values)  # never an older one
    assert values[-1] == 9


def test_what_writers_left_is_cleared_and_what_others_write_is_not(tmp_path: Path, monkeypatch):
    mine, busy = (f"d.tmp-{_HOST}-{os.getpid()}-{n}" for n in (0, 1))
    monkeypatch.setattr(_checkpoint_files, "_WRITING", {busy})  # by another thread
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    gone = int(done.stdout)
    (tmp_path / f"c.tmp-{_HOST}-{gone}-0.orbax-checkpoint-tmp").mkdir()
    (tmp_path / f"{mine}.orbax-checkpoint-tmp").mkdir()
    others = {f"c.tmp-{_HOST}-{os.getppid()}-0", f"d.tmp-{_HOST}-{gone}-0", f"c.tmp-x-{gone}-0"}
    others |= {busy, f"{busy}.orbax-checkpoint-tmp"}
    for name in others:
        (tmp_path / name).mkdir()
    write(tmp_path / "c", {"v": jnp.zeros(1)})
    assert {p.name for p in tmp_path.iterdir()} == {"c", *others}


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import orbax.checkpoint as ocp

    def fail(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    for form in FORMS:
        write(tmp_path / form, {"v": jnp.zeros(3)})
    monkeypatch.setattr(np.lib.format, "write_array", fail)
    monkeypatch.setattr(ocp.PyTreeCheckpointHandler, "finalize", fail)
    for form in FORMS:
        with pytest.raises(OSError, match="the disk is full"):
            write(tmp_path / form, {"v": jnp.ones(3)})
        assert load(tmp_path / form)["v"].tolist() == [0.0] * 3
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(FORMS)


def test_a_checkpoint_whose_name_ends_like_one_set_aside_stays(tmp_path: Path):
    checkpoint = Checkpoint(v=jv.Variable(1.0))
    for name in ("best.replaced", "best", "best"):
        checkpoint.write(tmp_path / name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["best", "best.replaced"]


def test_a_folder_of_something_else_is_not_replaced(tmp_path: Path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results/precious").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"holds something else.*results/ckpt\."):
        write(tmp_path / "results", {"v": jnp.zeros(3)})
    assert [p.name for p in (tmp_path / "results").iterdir()] == ["precious"]
    write(tmp_path / "empty", {"v": jnp.zeros(3)})
    assert load(tmp_path / "empty")["v"].tolist() == [0.0] * 3


def test_what_orbax_loses_is_noticed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "c[1]"  # a pattern, in which orbax does not find what it wrote
    write(path, {"v": jnp.zeros(3)})
    monkeypatch.setattr(_checkpoint_files, "_avoid_patterns", contextlib.nullcontext)
    with pytest.raises(OSError, match="orbax could not write it: v is lost: "):
        write(path, {"v": jnp.ones(3)})
    assert load(path)["v"].tolist() == [0.0] * 3
    assert [p.name for p in tmp_path.iterdir()] == ["c[1]"]


def test_a_full_disk_changes_nothing(tmp_path: Path, run_python):
    code = """
import resource, jax.numpy as jnp, jaxvars as jv
checkpoint = jv.checkpoint.Checkpoint(v=jv.Variable(jnp.arange(30000.0)))
forms = ("folder", "file.npz")
for form in forms:
    checkpoint.write(form)
checkpoint.v.assign(jnp.zeros(30000))
resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))
for form in forms:
    for verb in (checkpoint.write, checkpoint.save):
        try:
            verb(form)
        except OSError as error:
            print(error)
    print(jv.checkpoint.load(form)["v"][7], checkpoint.save_counter.numpy())
"""
    done = run_python("-W", "error", "-c", code)
    # A thread of orbax's may come back when its failed write has been given up.
    assert done.stderr.count("Traceback") == done.stderr.count("Event loop is closed\n")
    assert done.stdout.count("orbax could not write it: ") == 2
    assert done.stdout.lower().count("file too large") == 4
    assert done.stdout.count("7.0 0\n") == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file.npz", "folder"]


def test_only_the_first_process_writes_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jax, "process_index", lambda: 1)
    with pytest.raises(CheckpointError, match=r"in process 0 alone, and this is process 1\. Let"):
        write(tmp_path / "c", {"v": jnp.zeros(3)})
    assert list(tmp_path.iterdir()) == []
    assert load(write(tmp_path / "c.npz", {"v": jnp.zeros(3)}))["v"].tolist() == [0.0] * 3


# ---------------------------------------------------------------- what is not damage
class AlarmError(Exception):
    """What a handler raises."""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("where", ["_words", "_array"])
@pytest.mark.parametrize("error", [AlarmError("now"), ValueError("now"), OSError("now")])
def test_what_a_signal_handler_raises_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, where: str, error: Exception
):
    path = Checkpoint(v=jv.Variable(1.0)).write(tmp_path / form)
    kind = _stored.File if form.endswith("npz") else _stored.Folder
    where = {("folder", "_array"): "_open"}.get((form, where), where)
    do = getattr(kind, where)

    def handler(*_: Any):
        raise error

    def late(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGUSR1)
        return do(*arguments)

    monkeypatch.setattr(kind, where, late)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(type(error)) as caught:
            Checkpoint(v=jv.Variable(0.0)).restore(path)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert caught.value is error


def test_arrays_are_read_ahead_up_to_a_limit_in_order():
    running: set[int] = set()
    most = []

    def start(item: int) -> int:
        running.add(item)
        most.append(sum(running))
        return item

    for item in _stored._ahead([(x, x) for x in (3, 9, 4, 5, 1, 40, 2)], start, 10):
        assert item in running
        running.remove(item)
    assert not running
    assert most == [3, 9, 4, 9, 10, 40, 2]  # at most 10, or one alone


def test_every_damaged_array_of_many_is_named(tmp_path: Path):
    values = {f"v{i}": jnp.full(3, i) for i in range(600)} | {"none": jnp.zeros((0, 4))}
    stored = open_stored(write(tmp_path / "c", values))
    stored.entries["v7"] = dataclasses.replace(stored.entries["v7"], sha256="0" * 64)
    stored.entries["v300"] = dataclasses.replace(stored.entries["v300"], stored_dtype="float64")
    stored.entries["lost"] = stored.entries["v8"]
    found, problems = stored.values()
    assert sorted(problems) == ["lost", "v300", "v7"]
    assert "NOT_FOUND" in problems["lost"]
    assert "dtype" in problems["v300"]
    assert "its checksum" in problems["v7"]
    assert found.keys() == values.keys() - {"v7", "v300"}
    assert all(found[name].tolist() == values[name].tolist() for name in found)


def test_an_error_of_the_disk_is_not_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = Checkpoint(v=jv.Variable(1.0)).write(tmp_path / "c.npz")
    bad = Checkpoint(v=jv.Variable(0.0))

    def fail(_: object):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(zipfile, "_EndRecData", fail)  # to zipfile it is then not a zip file
    for read in (bad.restore, jv.checkpoint.load, jv.checkpoint.list_variables, is_damaged):
        with pytest.raises(OSError, match="Input/output error"):
            read(path)
    monkeypatch.undo()
    try:
        raise OSError(5, "of the caller")
    except OSError:  # is nothing of the file's
        Path(path).write_bytes(b"no zip file")
        with pytest.raises(CheckpointError, match=r"is not a checkpoint .* BadZipFile"):
            bad.restore(path)


# ---------------------------------------------------------------- damage
def _damaged(rng: random.Random, files: list[Path]) -> str:
    """Damage one of some files, and return how."""
    (file,) = rng.choices(files, [1 + f.stat().st_size ** 0.5 for f in files])
    data, how = bytearray(file.read_bytes()), rng.choice(["flip", "flip", "flip", "cut", "gone"])
    if how == "flip":
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        file.write_bytes(data)
    elif how == "cut":
        file.write_bytes(data[: rng.randrange(len(data))])
    else:
        file.unlink()
    return how


def _storm(folder: Path, count: int, seed: int) -> dict[str, int]:
    """Damage copies of checkpoints; return how many were refused, and how many were whole."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    good = {
        "w": numbers.normal(size=(8, 4)).astype(np.float32),
        "b": np.asarray(jnp.asarray(numbers.normal(size=200), jnp.bfloat16)),
        "n": np.arange(60),
        "t": np.array("some text", np.dtypes.StringDType()),
    }
    saved = Checkpoint(w=jv.Variable(good["w"], sharding=spread),
                       **{name: jv.Variable(good[name]) for name in "bnt"})  # fmt: skip
    again = Checkpoint(w=jv.Variable(0 * good["w"], sharding=spread), b=jv.Variable(0 * good["b"]),
                       n=jv.Variable(0 * good["n"]), t=jv.Variable("no text"))  # fmt: skip
    blank = {name: v.value for name, v in again.named_variables.items()}
    paths = [saved.write(folder / form) for form in FORMS]
    told = {"refused": 0, "restored": 0}
    for i in range(count):
        copied = folder / f"copy.{FORMS[i % 2]}"
        _copy(Path(paths[i % 2]), copied)
        files = [copied] if copied.is_file() else [f for f in copied.rglob("*") if f.is_file()]
        how = _damaged(rng, files)
        try:
            again.restore(copied).assert_consumed()
            wanted, what = good, "restored"
        except CheckpointError as error:
            wanted, what = blank, "refused" if str(copied) in str(error) else "unclear"
        told[what] += 1
        for name, v in again.named_variables.items():
            same = np.array_equal(v.value, wanted.get(name, 0))
            assert same, f"{name} after {how}, number {i} of seed {seed}, was {what}"
            v.assign(blank[name])
    return told


def _copy(path: Path, to: Path) -> None:
    if path.is_dir():
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(path, to)
    else:
        shutil.copy(path, to)


def test_no_damage_goes_unseen(tmp_path: Path):
    told = _storm(tmp_path, 60, 1)
    assert told["refused"] > 20


@pytest.mark.slow
def test_no_damage_of_thousands_goes_unseen(tmp_path: Path):
    assert _storm(tmp_path, 3000, 2)["refused"] > 1000


def test_all_that_is_damaged_is_named(tmp_path: Path):
    checkpoint = Checkpoint(**{name: jv.Variable(jnp.arange(300.0)) for name in "abc"})
    path = Path(checkpoint.write(tmp_path / "c.npz"))
    data = bytearray(path.read_bytes())
    piece = np.arange(300, dtype=np.float32).tobytes()
    first = data.index(piece)
    data[first + 7] ^= 2
    data[data.index(piece, first) + 9] ^= 1
    path.write_bytes(data)
    for refused in (lambda: checkpoint.restore(path), lambda: load(path)):
        with pytest.raises(CheckpointError) as caught:
            refused()
        lines = [line.strip() for line in str(caught.value).splitlines()[1:]]
        assert [line.split(": ")[:2] for line in lines] == [["a", "corrupt"], ["b", "corrupt"]]
    with pytest.raises(CheckpointError, match=r"damaged:\n  a: corrupt"):
        load_variable(path, "a")
    assert load_variable(path, "c")[299] == 299


def test_a_checksum_is_of_shape_dtype_and_every_bit():
    value = np.zeros((2, 3), np.float32)
    _, entry = encode(value)
    assert entry.holds(np.zeros((2, 3), np.float32))
    assert not entry.holds(np.zeros((3, 2), np.float32))
    assert not entry.holds(np.zeros((2, 3), np.int32))
    assert not entry.holds(np.array([[0, 0, 0], [0, 0, -0.0]], np.float32))
    assert Entry.from_json(json.loads(json.dumps(entry.to_json()))) == entry


# ---------------------------------------------------------------- killed
def test_a_process_can_be_killed_at_any_moment(run_python, tmp_path: Path):
    check_storm(run_python, tmp_path, "checkpoints", 10, 1)


@pytest.mark.slow
def test_a_process_can_be_killed_a_hundred_times(run_python, tmp_path: Path):
    check_storm(run_python, tmp_path, "checkpoints", 100, 1)


# ---------------------------------------------------------------- hostile files
def _signed(entries: dict[str, Entry], **changes: object) -> dict[str, object]:
    """A manifest with a right checksum, whatever it says."""
    words = _manifest(entries, {}) | changes
    words.pop("sha256")
    return words | {"sha256": checksum_of(words)}


def _file(path: Path, manifest: object, members: dict[str, bytes], *, packed: bool = False) -> Path:
    how = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        archive.writestr(MANIFEST, text, zipfile.ZIP_STORED)
    return path


def _npy(array: np.ndarray, **options: bool) -> bytes:
    data = io.BytesIO()
    np.lib.format.write_array(data, array, **options)
    return data.getvalue()


class Evil:
    """Something that writes a file when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self.path,)


def _huge(shape: tuple[int, ...]) -> Entry:
    return Entry(shape, "float32", shape, "float32", "0" * 64)


_, SMALL = encode(np.zeros(4, np.float32))
OBJECTS = Entry((), "object", (8,), "uint8", _checksum((), "object", np.zeros(8, np.uint8)))
_CODE = b"\x93NUMPY\x01\x00\x20\x00" + b"__import__('os').abort()".ljust(32)
_GIANT = b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (2000000000000,), }".ljust(117) + b"\n"  # noqa: E501  # fmt: skip

HOSTILE = {
    "a pickle": lambda p: _file(
        p, _signed({"v": SMALL}), {"v.npy": _npy(np.array([Evil(p.with_name("pwned"))]))}
    ),
    "a header of two terabytes": lambda p: _file(p, _signed({"v": SMALL}), {"v.npy": _GIANT}),
    "a manifest of two terabytes": lambda p: _file(
        p, _signed({"v": _huge((500_000_000_000,))}), {"v.npy": _GIANT}
    ),
    "nothing, in too many dimensions": lambda p: _file(
        p, _signed({"v": _huge((0, 2**61, 2**61))}), {}
    ),
    "a bomb": lambda p: _file(p, _signed({"v": SMALL}), {"v.npy": bytes(10**7)}, packed=True),
    "code for a header": lambda p: _file(p, _signed({"v": SMALL}), {"v.npy": _CODE}),
    "objects": lambda p: _file(p, _signed({"v": OBJECTS}), {"v.npy": _npy(np.zeros(8, np.uint8))}),
    "objects on disk": lambda p: _file(
        p, _signed({"v": Entry((1,), "float32", (1,), "object", "")}), {"v.npy": _npy(np.zeros(1))}
    ),
    "a tower": lambda p: _file(p, "[" * 100_000, {}),
    "no variables": lambda p: _file(p, _signed({}, variables=[]), {}),
    "no shape": lambda p: _file(p, _signed({}, variables={"v": {"shape": "x"}}), {}),
    "a negative size": lambda p: _file(p, _signed({"v": _huge((-1,))}), {}),
    "the future": lambda p: _file(p, _signed({}, jaxvars=3), {}),
    "no time": lambda p: _file(p, _signed({}, time_ns="x", variables=None), {}),
    "another file": lambda p: (np.savez(p, v=np.zeros(4, np.float32)), p)[1],
    "text": lambda p: (p.write_text("hello"), p)[1],
    "nothing": lambda p: (p.write_bytes(b""), p)[1],
    "a pipe": lambda p: (os.mkfifo(p), p)[1],
    "a device": lambda p: (p.symlink_to("/dev/zero"), p)[1],
    "a folder with a pipe": lambda p: (p.mkdir(), os.mkfifo(p / "_METADATA"), p)[2],
}


WHY = {
    "a pickle": "another form", "a header of two terabytes": "another form",
    "a manifest of two terabytes": "should hold 2,000,000,000,000 bytes",
    "nothing, in too many dimensions": "corrupt: array is too big",
    "a bomb": "v.npy is compressed", "code for a header": "v: corrupt: ",
    "objects": "corrupt: TypeError: ", "objects on disk": "not an entry",
    "a tower": "manifest is damaged: RecursionError", "no variables": "AttributeError",
    "no shape": "not an entry", "a negative size": "not an entry", "the future": "its format is 3",
    "no time": "NoneType", "another file": "manifest is damaged: KeyError",
    "text": "File is not a zip file", "nothing": "File is not a zip file",
    "a pipe": "is a device or a pipe, which may have no end", "a device": "is a device or a pipe",
    "a folder with a pipe": "_METADATA is a device or a pipe",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_without_harm(tmp_path: Path, name: str):
    path = HOSTILE[name](tmp_path / "c.npz")
    v = jv.Variable(jnp.ones(4))
    for refused in (lambda: Checkpoint(v=v).restore(path), lambda: load(path)):
        with pytest.raises(CheckpointError, match=r"c\.npz") as caught:
            refused()
        assert WHY[name] in str(caught.value)
        assert len(str(caught.value)) < 1000
    assert v.numpy().tolist() == [1.0] * 4
    assert [p.name for p in tmp_path.iterdir()] == ["c.npz"]


def _orbax(path: Path, tree: dict[str, object], manifest: object, **options: bool) -> Path:
    import orbax.checkpoint as ocp

    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler(**options)) as checkpointer:
        checkpointer.save(path, ocp.args.PyTreeSave(tree, custom_metadata=manifest))
    return path


@pytest.mark.parametrize(
    ("stored", "entry", "packed", "why"),
    [
        (np.zeros(10**6, np.float32), SMALL, False, "v: corrupt"),
        (np.zeros(4, np.int32), SMALL, False, "v: corrupt"),
        (np.zeros(4, np.float32), SMALL, True, "v: corrupt"),
        (np.zeros(4, np.float32), _huge((10**12,)), False, "should hold 4,000,000,000,0"),
        (np.zeros(4, np.float32), None, False, "it has no manifest"),
    ],
    ids=["too large", "another dtype", "compressed", "a huge manifest", "no manifest"],
)
def test_hostile_folders_are_refused(tmp_path: Path, stored, entry, packed, why):
    manifest = {} if entry is None else _signed({"v": entry})
    path = _orbax(tmp_path / "c", {"v": stored}, manifest, use_compression=packed)
    v = jv.Variable(jnp.ones(4))
    with pytest.raises(CheckpointError, match=why):
        Checkpoint(v=v).restore(path)
    assert v.numpy().tolist() == [1.0] * 4


def test_the_folder_that_is_not_hostile_is_taken(tmp_path: Path):  # so that the others mean it
    manifest = _signed({"v": SMALL})
    path = _orbax(tmp_path / "c", {"v": np.zeros(4, np.float32)}, manifest, use_compression=False)
    assert load(path)["v"].tolist() == [0.0] * 4


@pytest.mark.parametrize("name", ["lr=[0.1]", "a*b?", "[ab]/c[d]", "{x} y%20#", "żółć"])
@pytest.mark.parametrize("end", ["", ".npz"])
def test_a_path_may_have_any_characters(tmp_path: Path, name, end):
    v = jv.Variable([1.0, 2.0])
    path = Checkpoint(v=v).write(tmp_path / f"{name}{end}")
    assert load(path)["v"].tolist() == [1.0, 2.0]
    assert [p.name for p in Path(path).parent.iterdir()] == [Path(path).name]


def test_a_folder_has_no_backslash_which_orbax_takes_for_a_slash(tmp_path: Path):
    with pytest.raises(CheckpointError, match=r"has a backslash in it.* ends in \.npz"):
        Checkpoint(v=jv.Variable(1.0)).write(tmp_path / "a\\b")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (1, 0, 5), (2, 3, 4)])
def test_an_array_is_read_without_pythons_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], order: str
):
    """Python 3.11's fails at times where several threads parse."""

    def fail(*_: object, **__: object) -> None:
        raise SystemError("AST constructor recursion depth mismatch (before=54, after=51)")

    kinds = ["float32", "int8", "uint16", "bool", "complex64", "bfloat16", "float16"]
    values = {kind: np.ones(shape).astype(jnp.dtype(kind)) for kind in kinds}
    model = {kind: jv.Variable(np.asarray(x, order=order)) for kind, x in values.items()}
    path = Checkpoint(**model).write(tmp_path / "c.npz")
    for v in model.values():
        v.assign(jnp.zeros(shape, v.dtype))
    monkeypatch.setattr("ast.literal_eval", fail)
    Checkpoint(**model).restore(path).assert_consumed()
    for kind, x in values.items():
        np.testing.assert_array_equal(model[kind].numpy(), x)


def test_a_file_is_written_whatever_the_clock_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    v = jv.Variable([1.0, 2.0])
    monkeypatch.setattr("time.time", lambda: 0.0)  # of a machine without a battery
    manager = jv.checkpoint.CheckpointManager(Checkpoint(v=v), tmp_path / "c", max_to_keep=2)
    path = Checkpoint(v=v).write(tmp_path / "after.npz")
    manager.save()
    v.assign([0.0, 0.0])
    Checkpoint(v=v).restore(path).assert_consumed()
    assert v.numpy().tolist() == [1.0, 2.0]
