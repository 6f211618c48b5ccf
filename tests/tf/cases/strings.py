"""Examples of `tf.strings`."""

from __future__ import annotations

EXAMPLES = r"""
as_string: [1.5, 2.0, 1e10, nan, -0.0] | [1, -2], width=4, fill='0' | [1.5, 1e-7], shortest=True |
    [True, False] | tf.constant(1 + 2j), precision=2 | [1], precision=2 |
    [1.5], scientific=True, width=14
bytes_split: 'ab' | '' | 'x'
format: 'a {} {}', ([*range(10)], [[1.5, 2.0], [3.0, 4.0]]) |
    'a %%', [tf.constant(['x', 'y'])], placeholder='%%' |
    '{}', tf.constant([1.0, 0.1, 1e-8, 1e20]) | '{}', tf.reshape(tf.range(64), [8, 8])
join: ['a', ['b', 'c']], '-' | [] | [['a'], ['b', 'c']]
length: ['abc', 'h\u00e9'] | 'h\u00e9', unit='UTF8_CHAR' | [['']]
lower: ['AB\u00c9'] | 'AB\u00c9', encoding='utf-8' | 'A', encoding='ascii'
reduce_join: [['a', 'b'], ['c', 'd']] | [['a', 'b'], ['c', 'd']], axis=[0, 1], separator='-' |
    [['a', 'b'], ['c', 'd']], -1, keepdims=True | tf.zeros([0, 1], tf.string), 1 |
    tf.zeros([0, 1], tf.string), 0
regex_full_match: ['abc', 'ab'], 'a.c' | 'a\u00e9', 'a.' | [['']], 'a?'
regex_replace: ['aXbX'], 'X(b)', r'[\1\0]' | 'aXbX', 'X', '-', replace_global=False |
    'aXbX', '(', '-' | 'a, b!', '[[:punct:]]', '' | 'aXbX', 'X', r'\5'
split: ' a  b ' | 'a, b,c', sep=',' | 'a b c', maxsplit=1
strip: [' a\t\n', 'b'] | '' | ' a b '
substr: ['hello', 'wo'], [1, 0], [2, 1] | ['hello', 'wo'], -2, 5 | 'hi', 3, 1 |
    'h\u00e9!', 1, 1, unit='UTF8_CHAR' | 'hi', 2, 1
to_hash_bucket_fast: ['a' * n for n in (0, 3, 7, 15, 31, 63, 64, 65, 129)], 1 << 60 | 'Hello', 10 |
    'a', 0
to_number: ['1.5', ' 2 ', '1e3', 'nan', '-inf'] | '-7', tf.int32 | ['1.5'], tf.int32 | 'x' | '1_0' |
    '99999999999', tf.int32 | ['0xF', '-0x1.8p1', '0x1p999'] | '0xF', tf.int32
unicode_decode: 'h\u00e9', 'UTF-8' | b'a\xffb', 'UTF-8', errors='ignore' | b'a\xffb', 'UTF-8' |
    '', 'UTF-8'
unicode_decode_with_offsets: 'h\u00e9!', 'UTF-8' | b'\0h\0i', 'UTF-16-BE' | '', 'UTF-8'
unicode_encode: [104, 233], 'UTF-8' | [[104, 233], [65, 0x110000]], 'UTF-8' |
    [0x110000], 'UTF-8', errors='strict'
unicode_split: 'h\u00e9', 'UTF-8' | '', 'UTF-8' | b'a\xffb', 'UTF-8'
unicode_split_with_offsets: 'h\u00e9!', 'UTF-8' | '', 'UTF-8' | 'ab', 'UTF-8'
upper: ['ab\u00e9'] | 'ab\u00e9', encoding='utf-8' | ''
"""
