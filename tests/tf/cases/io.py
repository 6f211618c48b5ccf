"""Examples of `tf.io`."""

from __future__ import annotations

EXAMPLES = r"""
decode_csv: ['1,2.5,x', '3,,"y,""z"'], [[0], [1.0], ['']] |
    '1 -', [[0], [7]], field_delim=' ', na_value='-' | ['1,2,3'], [[0], [0.5]], select_cols=[0, 2] |
    '1', [[0], [0]] | 'a', [[0]] | '', [tf.constant([], tf.int32)]
decode_raw: 'abcd', tf.uint8 | ['abcd'], tf.int16, False |
    ['abcd', 'ef'], tf.uint8, fixed_length=4 | ['abcd', 'ef'], tf.uint8 | ['abc'], tf.int16
parse_tensor: tf.io.serialize_tensor([[1.5, 2.0]]), tf.float32 |
    tf.io.serialize_tensor(['a', 'b']), tf.string |
    b'\x08\x01\x12\x04\x12\x02\x08\x03\x2a\x04\0\0\x80\x3f', 'float32' |
    tf.io.serialize_tensor(tf.constant(2 + 1j)), tf.complex128 |
    tf.io.serialize_tensor([1]), tf.float32 | 'abc', tf.float32
read_file: '/no/file' | ['a'] | '/no/other'
serialize_tensor: tf.constant([1, 2]) | ['a', 'b'] | tf.zeros([0, 2], tf.int64) | True
"""
