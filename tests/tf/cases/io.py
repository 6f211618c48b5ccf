"""Examples of `tf.io`."""

from __future__ import annotations

EXAMPLES = {
    "io.decode_base64": (
        "io.decode_base64(['aGk', 'aGk='])", "io.decode_base64('a*')", "io.decode_base64('')",
    ),
    "io.decode_compressed": (
        "io.decode_compressed(['abc', ''])",
        "io.decode_compressed(b'x\\x9cKLL\\x04\\x00\\x02I\\x01$', 'ZLIB')",
        "io.decode_compressed('abc', 'LZ')",
    ),
    "io.decode_csv": (
        'io.decode_csv([\'1,2.5,x\', \'3,,"y,""z"\'], [[0], [1.0], [\'\']])',
        "io.decode_csv('1 -', [[0], [7]], field_delim=' ', na_value='-')",
        "io.decode_csv(['1,2,3'], [[0], [0.5]], select_cols=[0, 2])",
        "io.decode_csv('1', [[0], [0]])", "io.decode_csv('a', [[0]])",
        "io.decode_csv('', [tf.constant([], tf.int32)])",
    ),
    "io.decode_raw": (
        "io.decode_raw('abcd', tf.uint8)", "io.decode_raw(['abcd'], tf.int16, False)",
        "io.decode_raw(['abcd', 'ef'], tf.uint8, fixed_length=4)",
        "io.decode_raw(['abcd', 'ef'], tf.uint8)", "io.decode_raw(['abc'], tf.int16)",
    ),
    "io.encode_base64": (
        "io.encode_base64(['hi', b'\\xff\\xfe'])", "io.encode_base64('hi', pad=True)",
        "io.encode_base64([['']])",
    ),
    "io.matching_files": (
        "io.matching_files('/no/*')", "io.matching_files(['/no/*', '/non/?'])",
        "io.matching_files('')",
    ),
    "io.parse_tensor": (
        "io.parse_tensor(tf.io.serialize_tensor([[1.5, 2.0]]), tf.float32)",
        "io.parse_tensor(tf.io.serialize_tensor(['a', 'b']), tf.string)",
        (""
        "io.parse_tensor(b'\\x08\\x01\\x12\\x04\\x12\\x02\\x08\\x03\\x2a\\x04\\0\\0\\x80\\x3f"
        "', 'float32')"),
        "io.parse_tensor(tf.io.serialize_tensor(tf.constant(2 + 1j)), tf.complex128)",
        "io.parse_tensor(tf.io.serialize_tensor([1]), tf.float32)",
        "io.parse_tensor('abc', tf.float32)",
    ),
    "io.read_file": (
        "io.read_file('/no/file')", "io.read_file(['a'])", "io.read_file('/no/other')",
    ),
    "io.serialize_tensor": (
        "io.serialize_tensor(tf.constant([1, 2]))", "io.serialize_tensor(['a', 'b'])",
        "io.serialize_tensor(tf.zeros([0, 2], tf.int64))", "io.serialize_tensor(True)",
    ),
}  # fmt: skip
