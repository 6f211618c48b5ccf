"""Examples of `tf.signal`."""

from __future__ import annotations

EXAMPLES = """
dct: r(2, 3) | r(3), 2, norm='ortho' | r(3), 2, 2, norm='ortho' | r(3), 5 | i(3)
fft: z(3) | z(2, 3) | r(3)
fft2d: z(2, 3) | z(2, 2, 3) | r(2, 3)
fft3d: z(2, 2, 2) | z(2, 2, 2, 2) | r(2, 2, 2)
fftshift: r(5) | i(2, 3), axes=1 | r(2, 3)
frame: r(2, 7), 3, 2 | i(5), 2, 2, pad_end=True, pad_value=9 | r(5), 7, 2 | i(3, 2), 2, 1, axis=0
hamming_window: 4 | 5, periodic=False | 1, dtype=tf.float64
hann_window: 4 | 5, periodic=False | 1, dtype=tf.float64
idct: r(2, 3) | r(3), 2, norm='ortho' | r(2), type=1, norm='ortho'
ifft: z(3) | z(2, 3) | r(3)
ifft2d: z(2, 3) | z(2, 2, 3) | r(2, 3)
ifft3d: z(2, 2, 2) | z(2, 2, 2, 2) | r(2, 2, 2)
ifftshift: r(5) | i(2, 3), axes=[1] | r(2, 3)
inverse_stft: z(3, 3), 4, 2 | z(2, 3), 6, 2, 4, None | z(2, 3), 3, 2
inverse_stft_window_fn: = signal.inverse_stft_window_fn(2)(4, dtype=tf.float32) |
    = signal.inverse_stft_window_fn(2, tf.signal.hamming_window)(5, tf.float32) |
    = signal.inverse_stft_window_fn(1)(4, dtype=tf.float64)
irfft: z(4) | z(4), [6] | r(4)
irfft2d: z(2, 4) | z(2, 4), [3, 3] | r(2, 4)
irfft3d: z(2, 2, 3) | z(2, 2, 3), [1, 2, 4] | r(2, 2, 3)
kaiser_window: 5 | 4, 2.0 | 1
linear_to_mel_weight_matrix: 3, 5 | 2, 9, 16000, 20.0, 7000.0, tf.float64 |
    3, 5, lower_edge_hertz=-1.0
mfccs_from_log_mel_spectrograms: r(2, 4) | r(3) | r(2, 0)
overlap_and_add: r(2, 3, 4), 2 | i(2, 2), 3 | r(2), 1
rfft: r(4) | r(4), [6] | i(4)
rfft2d: r(2, 4) | r(2, 4), [3, 3] | i(2, 4)
rfft3d: r(2, 2, 3) | r(2, 2, 3), [1, 2, 4] | i(2, 2, 3)
stft: r(10), 4, 2 | r(2, 6), 3, 2, 8, None, True | r(8), 4, 4, window_fn=tf.signal.hamming_window
"""
