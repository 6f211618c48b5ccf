"""Examples of `tf.strings`."""

from __future__ import annotations

EXAMPLES = {
    "strings.as_string": (
        "strings.as_string([1.5, 2.0, 1e10, nan, -0.0])",
        "strings.as_string([1, -2], width=4, fill='0')",
        "strings.as_string([1.5, 1e-7], shortest=True)", "strings.as_string([True, False])",
        "strings.as_string(tf.constant(1 + 2j), precision=2)",
        "strings.as_string([1], precision=2)",
        "strings.as_string([1.5], scientific=True, width=14)",
    ),
    "strings.bytes_split": (
        "strings.bytes_split('ab')", "strings.bytes_split('')", "strings.bytes_split('x')",
    ),
    "strings.format": (
        "strings.format('a {} {}', ([*range(10)], [[1.5, 2.0], [3.0, 4.0]]))",
        "strings.format('a %%', [tf.constant(['x', 'y'])], placeholder='%%')",
        "strings.format('{}', tf.constant([1.0, 0.1, 1e-8, 1e20]))",
        "strings.format('{}', tf.reshape(tf.range(64), [8, 8]))",
    ),
    "strings.join": (
        "strings.join(['a', ['b', 'c']], '-')", "strings.join([])",
        "strings.join([['a'], ['b', 'c']])",
    ),
    "strings.length": (
        "strings.length(['abc', 'h\\u00e9'])", "strings.length('h\\u00e9', unit='UTF8_CHAR')",
        "strings.length([['']])",
    ),
    "strings.lower": (
        "strings.lower(['AB\\u00c9'])", "strings.lower('AB\\u00c9', encoding='utf-8')",
        "strings.lower('A', encoding='ascii')",
    ),
    "strings.ngrams": (
        "strings.ngrams(['a', 'b', 'c'], [1, 2], separator='|')",
        "strings.ngrams([['a', 'b'], ['c', 'd']], 2)",
        "strings.ngrams(['a', 'b'], 3, pad_values=('L', 'R'))",
        "strings.ngrams(['a', 'b', 'c'], 3, pad_values='-', padding_width=1)",
        "strings.ngrams(['a', 'b'], 5, preserve_short_sequences=True)", "strings.ngrams('a', 2)",
    ),
    "strings.reduce_join": (
        "strings.reduce_join([['a', 'b'], ['c', 'd']])",
        "strings.reduce_join([['a', 'b'], ['c', 'd']], axis=[0, 1], separator='-')",
        "strings.reduce_join([['a', 'b'], ['c', 'd']], -1, keepdims=True)",
    ),
    "strings.regex_full_match": (
        "strings.regex_full_match(['abc', 'ab'], 'a.c')",
        "strings.regex_full_match('a\\u00e9', 'a.')", "strings.regex_full_match([['']], 'a?')",
    ),
    "strings.regex_replace": (
        "strings.regex_replace(['aXbX'], 'X(b)', r'[\\1\\0]')",
        "strings.regex_replace('aXbX', 'X', '-', replace_global=False)",
        "strings.regex_replace('aXbX', '(', '-')",
        "strings.regex_replace('a, b!', '[[:punct:]]', '')",
        "strings.regex_replace('aXbX', 'X', r'\\5')",
    ),
    "strings.split": (
        "strings.split(' a  b ')", "strings.split('a, b,c', sep=',')",
        "strings.split('a b c', maxsplit=1)",
    ),
    "strings.strip": (
        "strings.strip([' a\\t\\n', 'b'])", "strings.strip('')", "strings.strip(' a b ')",
    ),
    "strings.substr": (
        "strings.substr(['hello', 'wo'], [1, 0], [2, 1])", "strings.substr(['hello', 'wo'], -2, 5)",
        "strings.substr('hi', 3, 1)", "strings.substr('h\\u00e9!', 1, 1, unit='UTF8_CHAR')",
        "strings.substr('hi', 2, 1)",
    ),
    "strings.to_hash_bucket": (
        "strings.to_hash_bucket(['Hello', 'TensorFlow', ''], 1000000)",
        "strings.to_hash_bucket('a longer text', 7)", "strings.to_hash_bucket([['']], 3)",
    ),
    "strings.to_hash_bucket_fast": (
        ("strings.to_hash_bucket_fast(['a' * n for n in (0, 3, 7, 15, 31, 63, 64, 65, 129)], 1 "
        "<< 60)"),
        "strings.to_hash_bucket_fast('Hello', 10)", "strings.to_hash_bucket_fast('a', 0)",
    ),
    "strings.to_hash_bucket_strong": (
        "strings.to_hash_bucket_strong(['Hello', 'TF', ''], 1 << 60, [1, 2])",
        "strings.to_hash_bucket_strong('a longer text', 7, [3, 4])",
        "strings.to_hash_bucket_strong(['Hello'], 3, [1])",
    ),
    "strings.to_number": (
        "strings.to_number(['1.5', ' 2 ', '1e3', 'nan', '-inf'])",
        "strings.to_number('-7', tf.int32)", "strings.to_number(['1.5'], tf.int32)",
        "strings.to_number('x')", "strings.to_number('1_0')",
        "strings.to_number('99999999999', tf.int32)",
    ),
    "strings.unicode_decode": (
        "strings.unicode_decode('h\\u00e9', 'UTF-8')",
        "strings.unicode_decode(b'a\\xffb', 'UTF-8', errors='ignore')",
        "strings.unicode_decode(b'a\\xffb', 'UTF-8')", "strings.unicode_decode('', 'UTF-8')",
    ),
    "strings.unicode_decode_with_offsets": (
        "strings.unicode_decode_with_offsets('h\\u00e9!', 'UTF-8')",
        "strings.unicode_decode_with_offsets(b'\\0h\\0i', 'UTF-16-BE')",
        "strings.unicode_decode_with_offsets('', 'UTF-8')",
    ),
    "strings.unicode_encode": (
        "strings.unicode_encode([104, 233], 'UTF-8')",
        "strings.unicode_encode([[104, 233], [65, 0x110000]], 'UTF-8')",
        "strings.unicode_encode([0x110000], 'UTF-8', errors='strict')",
    ),
    "strings.unicode_split": (
        "strings.unicode_split('h\\u00e9', 'UTF-8')", "strings.unicode_split('', 'UTF-8')",
        "strings.unicode_split(b'a\\xffb', 'UTF-8')",
    ),
    "strings.unicode_split_with_offsets": (
        "strings.unicode_split_with_offsets('h\\u00e9!', 'UTF-8')",
        "strings.unicode_split_with_offsets('', 'UTF-8')",
        "strings.unicode_split_with_offsets('ab', 'UTF-8')",
    ),
    "strings.unicode_transcode": (
        "strings.unicode_transcode(['hi', 'a'], 'UTF-8', 'UTF-16-BE')",
        ("strings.unicode_transcode(b'a\\xffb\\x01', 'UTF-8', 'UTF-8', replacement_char=63, "
        "replace_control_characters=True)"),
        "strings.unicode_transcode('a', 'UTF-8', 'UTF-7')",
        "strings.unicode_transcode(b'\\xff', 'UTF-8', 'UTF-8', errors='strict')",
    ),
    "strings.unsorted_segment_join": (
        "strings.unsorted_segment_join(['a', 'b', 'c'], [1, 0, 1], 3, '-')",
        "strings.unsorted_segment_join([['a', 'b'], ['c', 'd']], [1, 1], 2)",
        "strings.unsorted_segment_join(['a', 'b'], [0, -1], 1)",
    ),
    "strings.upper": (
        "strings.upper(['ab\\u00e9'])", "strings.upper('ab\\u00e9', encoding='utf-8')",
        "strings.upper('')",
    ),
}  # fmt: skip
