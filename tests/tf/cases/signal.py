"""Examples of `tf.signal`."""

from __future__ import annotations

EXAMPLES = {
    "signal.dct": (
        "signal.dct(r(2, 3))", "signal.dct(r(3), type=1)", "signal.dct(r(3), 3, norm='ortho')",
        "signal.dct(r(3), 4, n=5)", "signal.dct(r(3), 2, 2, norm='ortho')", "signal.dct(r(3), 5)",
        "signal.dct(i(3))",
    ),
    "signal.fft": ("signal.fft(z(3))", "signal.fft(z(2, 3))", "signal.fft(r(3))"),
    "signal.fft2d": ("signal.fft2d(z(2, 3))", "signal.fft2d(z(2, 2, 3))", "signal.fft2d(r(2, 3))"),
    "signal.fft3d": (
        "signal.fft3d(z(2, 2, 2))", "signal.fft3d(z(2, 2, 2, 2))", "signal.fft3d(r(2, 2, 2))",
    ),
    "signal.fftshift": (
        "signal.fftshift(r(5))", "signal.fftshift(i(2, 3), axes=1)", "signal.fftshift(r(2, 3))",
    ),
    "signal.frame": (
        "signal.frame(r(2, 7), 3, 2)", "signal.frame(i(5), 2, 2, pad_end=True, pad_value=9)",
        "signal.frame(r(5), 7, 2)", "signal.frame(i(3, 2), 2, 1, axis=0)",
    ),
    "signal.hamming_window": (
        "signal.hamming_window(4)", "signal.hamming_window(5, periodic=False)",
        "signal.hamming_window(1, dtype=tf.float64)",
    ),
    "signal.hann_window": (
        "signal.hann_window(4)", "signal.hann_window(5, periodic=False)",
        "signal.hann_window(1, dtype=tf.float64)",
    ),
    "signal.idct": (
        "signal.idct(r(2, 3))", "signal.idct(r(3), 3, norm='ortho')", "signal.idct(r(3), 4)",
        "signal.idct(r(2), type=1, norm='ortho')",
    ),
    "signal.ifft": ("signal.ifft(z(3))", "signal.ifft(z(2, 3))", "signal.ifft(r(3))"),
    "signal.ifft2d": (
        "signal.ifft2d(z(2, 3))", "signal.ifft2d(z(2, 2, 3))", "signal.ifft2d(r(2, 3))",
    ),
    "signal.ifft3d": (
        "signal.ifft3d(z(2, 2, 2))", "signal.ifft3d(z(2, 2, 2, 2))", "signal.ifft3d(r(2, 2, 2))",
    ),
    "signal.ifftshift": (
        "signal.ifftshift(r(5))", "signal.ifftshift(i(2, 3), axes=[1])",
        "signal.ifftshift(r(2, 3))",
    ),
    "signal.inverse_mdct": (
        "signal.inverse_mdct(r(3, 4))", "signal.inverse_mdct(r(2, 2), None, 'ortho')",
        "signal.inverse_mdct(r(2, 3, 2))",
    ),
    "signal.inverse_stft": (
        "signal.inverse_stft(z(3, 3), 4, 2)", "signal.inverse_stft(z(2, 3), 6, 2, 4, None)",
        "signal.inverse_stft(z(2, 3), 3, 2)",
    ),
    "signal.inverse_stft_window_fn": (
        "signal.inverse_stft_window_fn(2)(4, dtype=tf.float32)",
        "signal.inverse_stft_window_fn(2, tf.signal.hamming_window)(5, tf.float32)",
        "signal.inverse_stft_window_fn(1)(4, dtype=tf.float64)",
    ),
    "signal.irfft": ("signal.irfft(z(4))", "signal.irfft(z(4), [6])", "signal.irfft(r(4))"),
    "signal.irfft2d": (
        "signal.irfft2d(z(2, 4))", "signal.irfft2d(z(2, 4), [3, 3])", "signal.irfft2d(r(2, 4))",
    ),
    "signal.irfft3d": (
        "signal.irfft3d(z(2, 2, 3))", "signal.irfft3d(z(2, 2, 3), [1, 2, 4])",
        "signal.irfft3d(r(2, 2, 3))",
    ),
    "signal.kaiser_bessel_derived_window": (
        "signal.kaiser_bessel_derived_window(6)", "signal.kaiser_bessel_derived_window(4, 2.0)",
        "signal.kaiser_bessel_derived_window(2)",
    ),
    "signal.kaiser_window": (
        "signal.kaiser_window(5)", "signal.kaiser_window(4, 2.0)", "signal.kaiser_window(1)",
    ),
    "signal.linear_to_mel_weight_matrix": (
        "signal.linear_to_mel_weight_matrix(3, 5)",
        "signal.linear_to_mel_weight_matrix(2, 9, 16000, 20.0, 7000.0, tf.float64)",
        "signal.linear_to_mel_weight_matrix(3, 5, lower_edge_hertz=-1.0)",
    ),
    "signal.mdct": (
        "signal.mdct(r(8), 4)", "signal.mdct(r(6), 4, None, True, 'ortho')", "signal.mdct(r(8), 3)",
    ),
    "signal.mfccs_from_log_mel_spectrograms": (
        "signal.mfccs_from_log_mel_spectrograms(r(2, 4))",
        "signal.mfccs_from_log_mel_spectrograms(r(3))",
        "signal.mfccs_from_log_mel_spectrograms(r(2, 0))",
    ),
    "signal.overlap_and_add": (
        "signal.overlap_and_add(r(2, 3, 4), 2)", "signal.overlap_and_add(i(2, 2), 3)",
        "signal.overlap_and_add(r(2), 1)",
    ),
    "signal.rfft": ("signal.rfft(r(4))", "signal.rfft(r(4), [6])", "signal.rfft(i(4))"),
    "signal.rfft2d": (
        "signal.rfft2d(r(2, 4))", "signal.rfft2d(r(2, 4), [3, 3])", "signal.rfft2d(i(2, 4))",
    ),
    "signal.rfft3d": (
        "signal.rfft3d(r(2, 2, 3))", "signal.rfft3d(r(2, 2, 3), [1, 2, 4])",
        "signal.rfft3d(i(2, 2, 3))",
    ),
    "signal.stft": (
        "signal.stft(r(10), 4, 2)", "signal.stft(r(2, 6), 3, 2, 8, None, True)",
        "signal.stft(r(8), 4, 4, window_fn=tf.signal.hamming_window)",
    ),
    "signal.vorbis_window": (
        "signal.vorbis_window(4)", "signal.vorbis_window(3, dtype=tf.float64)",
        "signal.vorbis_window(1)",
    ),
}  # fmt: skip
