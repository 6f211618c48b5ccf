"""Examples of `tf.bitwise`."""

from __future__ import annotations

EXAMPLES = {
    "bitwise.bitwise_and": (
        "bitwise.bitwise_and(i(4), i(4))", "bitwise.bitwise_and(i(2, 3), 3)",
        "bitwise.bitwise_and(r(2), r(2))",
    ),
    "bitwise.bitwise_or": (
        "bitwise.bitwise_or(i(4), i(4))", "bitwise.bitwise_or(i(2, 3), 3)",
        "bitwise.bitwise_or(b(2), b(2))",
    ),
    "bitwise.bitwise_xor": (
        "bitwise.bitwise_xor(i(4), i(4))", "bitwise.bitwise_xor(i(2, 3), 3)",
        "bitwise.bitwise_xor(i(2), i(3))",
    ),
    "bitwise.invert": (
        "bitwise.invert(i(4))", "bitwise.invert(np.array([1, 255], np.uint8))",
        "bitwise.invert(b(2))",
    ),
    "bitwise.left_shift": (
        "bitwise.left_shift(i(4), 2)", "bitwise.left_shift([1, 1], [33, -1])",
        "bitwise.left_shift(r(2), 1)",
    ),
    "bitwise.right_shift": (
        "bitwise.right_shift(i(4), 2)", "bitwise.right_shift([-8, 8], [33, -1])",
        "bitwise.right_shift(r(2), 1)",
    ),
}  # fmt: skip
