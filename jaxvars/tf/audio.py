"""`tf.audio`: WAV files of 16 bits."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxvars.tf.registry.rows import op, operations
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.static import one_int, refused, require_known

Text: TypeAlias = np.ndarray

_HOST = "files are on the host: inside a `tf.function` they must be known"


class DecodeWav(NamedTuple):
    """What `decode_wav` returns."""

    audio: Any
    sample_rate: Any


@op("audio.decode_wav", "contents", kinds="string", strings=True, eager_only=_HOST)
def decode_wav(contents: Text, desired_channels: int = -1, desired_samples: int = -1) -> DecodeWav:
    """Read a WAV file: samples from -1 to 1, and their rate.

    Example: `tf.audio.decode_wav(tf.audio.encode_wav([[0.5, 0.1], [-1.0, 0.3]], 16000))`.
    """
    data = contents.item()
    if len(data) < 12:
        raise refused("Data too short when trying to read string")
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise refused("Header mismatch: Expected RIFF and WAVE")
    channels, rate, samples = _chunks(data)
    whole = samples.reshape(-1, channels).astype(np.float32) / 32768
    if desired_channels not in (-1, channels):
        shown = whole[:, :1] if desired_channels < channels else whole
        whole = np.concatenate(
            [shown[:, :desired_channels]]
            + [shown[:, -1:]] * max(desired_channels - shown.shape[1], 0),
            axis=1,
        )
    if desired_samples != -1:
        missing = max(desired_samples - len(whole), 0)
        whole = np.pad(whole[:desired_samples], [(0, missing), (0, 0)])
    return DecodeWav(_convert.to_array(whole), _convert.to_array(np.int32(rate)))


def _chunks(data: bytes) -> tuple[int, int, np.ndarray]:
    """Return the channels, the rate and the samples of a file."""
    at, form = 12, None
    while at + 8 <= len(data):
        name, size = data[at : at + 4], struct.unpack_from("<I", data, at + 4)[0]
        body = data[at + 8 : at + 8 + size]
        if name == b"fmt ":
            form = struct.unpack_from("<HHIIHH", body)
            if form[0] not in (1, 0xFFFE):
                raise refused(f"Bad audio format for WAV: Expected 1 (PCM), but got {form[0]}")
            if form[5] != 16:
                raise refused(f"Can only read 16-bit WAV files, but received {form[5]}")
        elif name == b"data":
            if form is None:
                raise refused("Data chunk found before format chunk.")
            return form[1], form[2], np.frombuffer(body[: len(body) // 2 * 2], "<i2")
        at += 8 + size + size % 2
    raise refused("No data chunk found in WAV")


@op("audio.encode_wav", "audio", kinds="float", eager_only=_HOST)
def encode_wav(audio: Any, sample_rate: Any) -> Text:
    """Write samples from -1 to 1 as a WAV file.

    Example: `tf.io.decode_raw(tf.audio.encode_wav([[0.5, 0.1], [-1.0, 0.3]], 16000), tf.int8)`.
    """
    sound, rate = require_known(audio, "audio"), one_int(sample_rate, "sample_rate")
    if sound.ndim != 2:
        raise refused(f"audio must be 2-dimensional{list(sound.shape)}")
    if rate <= 0:
        raise refused(f"sample_rate must be positive, got {rate}")
    samples = np.clip(np.rint(sound * 32768), -32768, 32767).astype("<i2").tobytes()
    channels = sound.shape[1]
    head = struct.pack("<HHIIHH", 1, channels, rate, rate * channels * 2, channels * 2, 16)
    size = 36 + len(samples)
    made = np.empty((), object)
    made[()] = b"".join(
        [b"RIFF", struct.pack("<I", size), b"WAVEfmt ", struct.pack("<I", 16), head, b"data",
         struct.pack("<I", len(samples)), samples]
    )  # fmt: skip
    return made


__getattr__ = operations(__name__, ("DecodeWav",))
