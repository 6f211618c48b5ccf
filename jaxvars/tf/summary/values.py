"""Values, as `jv.tensorboard` takes them; sound, as WAV."""

from __future__ import annotations

import importlib
import io
import wave
from collections.abc import Iterator
from typing import Any

import numpy as np

from jaxvars.tensorboard.writer import write
from jaxvars.tf.tensors.convert import is_text, to_array
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable


def as_value(value: Any) -> Any:
    """Return a tensor as an array, a string as one, and anything else as it is."""
    if isinstance(value, Variable):
        return value.aliased
    if not isinstance(value, Tensor):
        return value
    return value._array.item().decode() if is_text(value._array) else value._array


_MOST = 2**15 - 1


def record(name: str, data: Any, sample_rate: Any, step: Any, max_outputs: int) -> None:
    """Write clips of sound: see `tf.summary.audio`."""
    clips = to_array(data)
    if clips.ndim != 3:
        raise ValueError(
            f"audio {name!r} has shape [clips, frames, channels], not {list(clips.shape)}."
        )
    rate = int(as_value(sample_rate))

    def build(tag: str, x: np.ndarray) -> Iterator[Any]:
        proto: Any = importlib.import_module("tensorboardX.proto.summary_pb2")
        for i, clip in enumerate(x):
            one = tag if len(x) == 1 else f"{tag}/{i}"
            sound = proto.Summary.Audio(
                sample_rate=rate,
                num_channels=clip.shape[1],
                length_frames=len(clip),
                encoded_audio_string=wav(clip, rate),
                content_type="audio/wav",
            )
            yield proto.Summary(value=[proto.Summary.Value(tag=one, audio=sound)])

    write("audio", name, build, [clips[:max_outputs]], as_value(step))


def wav(clip: np.ndarray, rate: int) -> bytes:
    """Return a clip as the bytes of a WAV file of 16 bits.

    Args:
        clip: [frames, channels], from -1 to 1; what is beyond is cut off.
        rate: frames in a second.

    >>> len(wav(np.zeros((10, 1), np.float32), 8000))
    64
    """
    whole = np.round(np.clip(np.asarray(clip, np.float64), -1, 1) * _MOST).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(clip.shape[1])
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(whole.tobytes())
    return file.getvalue()
