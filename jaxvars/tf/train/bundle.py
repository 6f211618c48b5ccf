"""Checkpoints that TensorFlow wrote: an index of the values, and files with their bytes.

The index is a sorted table, in the form of LevelDB's: blocks of keys and values, and at its end
where the blocks are. A value says where a tensor's bytes are, and what their checksum is.

Rules this file keeps:
- the index and each tensor are compared with their checksums, and sizes with shapes and files;
  what cannot be read is refused with the tensor's name;
- variables are matched by the graph of objects that is in the checkpoint; in one of
  `tf.compat.v1.train.Saver`, which has none, by their names.

Source: https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/protobuf/tensor_bundle.proto
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, final

import numpy as np

from jaxvars.checkpoint.checksum import Entry
from jaxvars.checkpoint.disk import DamageError, read_checked
from jaxvars.checkpoint.stored import Stored
from jaxvars.errors import CheckpointError
from jaxvars.tf.io.records import masked_crc32c
from jaxvars.tf.messages import parse
from jaxvars.tf.tensors.dtypes import any_dtype
from jaxvars.tf.train.graph import GRAPH, Edges, Graph, Slot
from jaxvars.tf.train.slices import read_slices
from jaxvars.tf.variables.strings import to_core_strings
from jaxvars.typing import Value

INDEX = ".index"
_MAGIC = 0xDB4775248B80FB57
NOT_READ = "a type that jaxvars has not"
_VALUE = "VARIABLE_VALUE"
_CONFIG = "/.ATTRIBUTES/OBJECT_CONFIG_JSON"
_OLD_SLOTS = {"m": "momentum", "v": "velocity", "vhat": "velocity_hat"}
"""What slots are called in Keras 3, of those whose name differs in Keras 2."""


@final
class Bundle(Stored):
    """A checkpoint of TensorFlow's; the names of its values are their keys.

    Args:
        path: of the index; of TensorFlow 1's first format, the file itself.

    Raises:
        CheckpointError: when the index is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.about = path, {}
        self.time_ns = path.stat().st_mtime_ns
        self._counters: set[str] = set()
        try:
            read_checked(self._read_index)
        except DamageError as error:
            raise CheckpointError(f"{path} is damaged: {error}") from error

    def _read_index(self) -> None:
        self._slices: dict[str, np.ndarray] = {}
        if self.path.suffix != INDEX:
            self._slices = read_slices(self.path, _read_table)
            self.entries = {key: _entry_of(x.shape, x.dtype) for key, x in self._slices.items()}
            return
        found = dict(_read_table(self.path.read_bytes()))
        header = parse("BundleHeaderProto", found.pop(b""))
        if header.endianness:
            raise ValueError("its numbers are big-endian, and jaxvars reads little-endian ones")
        self._shards = header.num_shards
        self._found = {key: parse("BundleEntryProto", data) for key, data in found.items()}
        named = {key.decode(): x for key, x in self._found.items() if key[:1] != b"\0"}
        self.entries = {key: _entry_of(_shape_of(x), x.dtype) for key, x in named.items()}

    def _words(self) -> Any:
        return None  # the index stands for a manifest

    def _size(self) -> int:
        return self.path.stat().st_size

    # ------------------------------------------------------------ values
    def tensor(self, key: str) -> np.ndarray:
        """Return a value, strings as bytes; raise DamageError if it is another."""
        return read_checked(lambda: self._array(key, self.entries[key]))

    def _value(self, path: str, load: Callable[[], np.ndarray]) -> Value:
        """Return a value as variables have it; raise DamageError if it is another."""
        entry = self.entries[path]
        if entry.dtype == NOT_READ:  # it will be left, as no variable has this type
            return np.empty(0)
        array = read_checked(load)
        if entry.dtype == "string":
            return read_checked(lambda: to_core_strings(array))
        if path in self._counters and array >= 2**31:
            raise DamageError(f"it is {array}, which is too large for jaxvars: counters are int32")
        return array.astype(np.int32) if path in self._counters else array

    def _array(self, path: str, entry: Entry) -> np.ndarray:
        if entry.dtype == NOT_READ:
            raise ValueError(f"it has {NOT_READ}")
        if self._slices:
            return self._slices[path]
        found = self._found[path.encode()]
        return self._join(path, found) if found.slices else self._read(found)

    def _read(self, found: Any) -> np.ndarray:
        shape, dtype = _shape_of(found), any_dtype(found.dtype)
        count = math.prod(shape)
        least = count if dtype.is_string else count * dtype.dtype.itemsize
        if found.size < least or (found.size > least and not dtype.is_string):
            raise ValueError(f"it has {found.size} bytes for shape {shape} of {dtype.name}")
        data = self._read_bytes(found.shard_id, found.offset, found.size)
        summed, values = _parse_strings(data, count) if dtype.is_string else (data, None)
        if (computed := masked_crc32c(summed)) != found.crc32c:
            raise ValueError(f"its checksum is {computed:#x}, and {found.crc32c:#x} was written")
        array = np.frombuffer(data, dtype.dtype) if values is None else values
        return array.reshape(shape)

    def _read_bytes(self, shard: int, offset: int, size: int) -> bytes:
        path = self.path.with_name(
            f"{self.path.name.removesuffix(INDEX)}.data-{shard:05d}-of-{self._shards:05d}"
        )
        if not path.is_file():
            raise ValueError(f"the file {path} does not exist")
        if offset + size > path.stat().st_size:
            raise ValueError(f"{path} ends before it")
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(size)

    def _join(self, name: str, found: Any) -> np.ndarray:
        """Return the value of a partitioned variable, whose parts have separate entries."""
        start = b"\0" + name.encode().replace(b"\0", b"\0\xff") + b"\0\1"
        parts = [x for key, x in sorted(self._found.items()) if key.startswith(start)]
        shape = _shape_of(found)
        if sum(math.prod(_shape_of(x)) for x in parts) != math.prod(shape):
            raise ValueError("its parts are not all of it")
        whole = np.empty(shape, any_dtype(found.dtype).as_numpy_dtype)
        for extents, part in zip(sorted(map(_extents, found.slices)), parts, strict=True):
            sizes = [size if n < 0 else n for (_, n), size in zip(extents, shape, strict=True)]
            place = tuple(slice(at, at + n) for (at, _), n in zip(extents, sizes, strict=True))
            values = self._read(part)
            if not values.shape == whole[place].shape == tuple(sizes):
                raise ValueError(f"a part of it has the shape {values.shape}, not {tuple(sizes)}")
            whole[place] = values
        return whole

    # ------------------------------------------------------------ objects
    def graph(self) -> Graph:
        """Return the graph of the objects; that of a Saver's checkpoint has names only."""
        if GRAPH not in self.entries:
            return Graph([{}], dict(enumerate(self.entries, 1)), [], kind="names")
        nodes = parse("TrackableObjectGraph", self.tensor(GRAPH).item()).nodes
        edges = [{c.local_name: c.node_id for c in node.children} for node in nodes]
        values = {i: a for i, x in enumerate(nodes) for a in x.attributes if a.name == _VALUE}
        full_names = {i: str(a.full_name) for i, a in values.items()}
        names = {i: str(a.key) for i, a in values.items()}
        slots: dict[int, Slot] = {}
        for i, node in enumerate(nodes):
            slots |= _list_slots(i, edges, full_names)
            if node.slots and "iter" in edges[i]:  # Keras 2; those of tf.compat.v1.train differ
                edges[i]["_iterations"] = edges[i]["iter"]
                for x in node.slots:
                    kind = _OLD_SLOTS.get(x.slot_name, str(x.slot_name))
                    slots[x.id] = (i, x.variable_id, kind)
        return Graph(edges, names, [], slots, "keys")

    def prepare(self, graph: Graph) -> None:
        """Leave out what is not a value of an object, and have counters in the types of jaxvars."""
        for key in [key for key in self.entries if key == GRAPH or key.endswith(_CONFIG)]:
            del self.entries[key]
        for edges in graph.edges:
            is_optimizer = "_iterations" in edges and ("_variables" in edges or "iter" in edges)
            name = "_iterations" if is_optimizer else "save_counter"
            key = graph.names.get(edges.get(name, -1), "")
            counts = key in self.entries and (is_optimizer or edges is graph.edges[0])
            if counts and self.entries[key] == Entry((), "int64", (), "int64", ""):
                self._counters.add(key)
                self.entries[key] = Entry((), "int32", (), "int32", "")


def is_table(path: Path) -> bool:
    """Return whether a file is a checkpoint in TensorFlow 1's first format."""
    if not path.is_file() or path.stat().st_size < 48:
        return False
    with path.open("rb") as file:
        file.seek(-8, os.SEEK_END)
        return file.read() == struct.pack("<Q", _MAGIC)


def _shape_of(found: Any) -> tuple[int, ...]:
    return tuple(dim.size for dim in found.shape.dim)


def _entry_of(shape: tuple[int, ...], dtype: Any) -> Entry:
    try:
        name = any_dtype(dtype).name
    except TypeError:
        name = NOT_READ
    return Entry(shape, name, shape, name, "")


def _extents(found: Any) -> list[tuple[int, int]]:
    """Return where a part begins and how long it is, for each dimension: -1 is all of it."""
    return [(x.start, x.length if x.WhichOneof("has_length") else -1) for x in found.extent]


def _list_slots(number: int, edges: list[Edges], names: dict[int, str]) -> Iterator[Any]:
    """Yield the slots of an optimizer of Keras 3, which has lists as long as its variables'."""
    owners = edges[edges[number].get("_trainable_variables", 0)] if number else {}
    for child in edges[number].values() if owners else ():
        for i, slot in edges[child].items():
            owner = names.get(owners.get(i, -1), "").replace("/", "_")
            full = names.get(slot, "").rpartition("/")[2]
            if owner and full.startswith(f"{owner}_"):
                kind = full.removeprefix(f"{owner}_").removeprefix("0_")  # a tf.Variable is "w:0"
                yield slot, (number, owners[i], kind)


def _parse_strings(data: bytes, count: int) -> tuple[bytes, np.ndarray]:
    """Return the bytes that strings' checksum is of, and the strings.

    First are their lengths, of variable size, then the checksum of these, then the strings.
    """
    lengths, at = [], 0
    for _ in range(count):
        length, at = _read_number(data, at)
        lengths.append(length)
    fixed = b"".join(struct.pack("<I" if n < 2**32 else "<Q", n) for n in lengths)
    values, end = np.empty(count, object), at + 4
    for i, length in enumerate(lengths):
        values[i] = data[end : end + length]
        end += length
    if end != len(data):
        raise ValueError(f"its strings have {end} bytes, and {len(data)} were written")
    return fixed + data[at:], values


# ---------------------------------------------------------------- the table
def _read_table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a sorted table."""
    if len(data) < 48 or struct.unpack("<Q", data[-8:])[0] != _MAGIC:
        raise ValueError("it is not the index of a checkpoint")
    at = len(data) - 48
    list(_read_block(data, at, data))  # other facts, of which there are none
    for _ in range(2):
        _, at = _read_number(data, at)
    for _, place in _read_block(data, at, data):
        yield from _read_block(place, 0, data)


def _read_block(place: bytes, at: int, data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of the block whose place is written somewhere."""
    start, at = _read_number(place, at)
    end = start + _read_number(place, at)[0]
    kind, checksum = struct.unpack_from("<BI", data, end)
    if masked_crc32c(data[start : end + 1]) != checksum:
        raise ValueError("the checksum of its index is not that of what was written")
    if kind:
        raise ValueError("its index is compressed, which TensorFlow's checkpoints are not")
    end -= 4 + 4 * struct.unpack_from("<I", data, end - 4)[0]
    key, at = b"", start
    while at < end:
        shared, at = _read_number(data, at)
        more, at = _read_number(data, at)
        size, at = _read_number(data, at)
        key = key[:shared] + data[at : at + more]
        yield key, data[at + more : at + more + size]
        at += more + size


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of 7 bits a byte, the last without the eighth, and where it ends."""
    number = shift = 0
    while data[at] & 0x80:
        number |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
    return number | data[at] << shift, at + 1
