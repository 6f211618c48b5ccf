"""Examples of `tf.audio`."""

from __future__ import annotations

EXAMPLES = """
decode_wav: tf.audio.encode_wav([[0.5, 0.1], [-1.0, 0.3]], 16000) |
    tf.audio.encode_wav([[0.5, 0.1], [-1.0, 0.3]], 16000), desired_channels=1, desired_samples=3 |
    tf.audio.encode_wav([[0.5]], 16000), 2 | 'abc'
encode_wav: = io.decode_raw(tf.audio.encode_wav([[0.5, 0.1], [-1.0, 0.3]], 16000), tf.int8) |
    [0.5], 16000 | = io.decode_raw(tf.audio.encode_wav([[2.0], [-2.0], [1e-5]], 8000), tf.int16)
"""
