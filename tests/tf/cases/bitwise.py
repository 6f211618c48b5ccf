"""Examples of `tf.bitwise`."""

from __future__ import annotations

EXAMPLES = """
bitwise_and: i(4), i(4) | i(2, 3), 3 | r(2), r(2)
bitwise_or: i(4), i(4) | i(2, 3), 3 | b(2), b(2)
bitwise_xor: i(4), i(4) | i(2, 3), 3 | i(2), i(3)
invert: i(4) | np.array([1, 255], np.uint8) | b(2)
left_shift: i(4), 2 | [1, 1], [33, -1] | r(2), 1
right_shift: i(4), 2 | [-8, 8], [33, -1] | r(2), 1
"""
