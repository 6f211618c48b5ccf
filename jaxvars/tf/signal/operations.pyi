# Written by tests/write_stubs.py: what type checkers know of tf.signal.
import builtins
from typing import Any

from jaxvars.tf.tensors.tensor import Tensor

def dct(input: Any, type: builtins.int = ..., n: Any = ..., axis: builtins.int = ..., norm: builtins.str | None = ..., name: builtins.str | None = ...) -> Tensor: """Return the cosine transform, of type 2, of the last axis."""
def fft(input: Any, name: builtins.str | None = ...) -> Tensor: """Return the Fourier transform over the last axis."""
def fft2d(input: Any, name: builtins.str | None = ...) -> Tensor: """Return the Fourier transform over the last two axes."""
def fft3d(input: Any, name: builtins.str | None = ...) -> Tensor: """Return the Fourier transform over the last three axes."""
def fftshift(x: Any, axes: Any = ..., name: builtins.str | None = ...) -> Tensor: """Move the zero frequency to the middle."""
def frame(signal: Any, frame_length: Any, frame_step: Any, pad_end: builtins.bool = ..., pad_value: Any = ..., axis: Any = ..., name: builtins.str | None = ...) -> Tensor: """Cut a signal in frames that may overlap."""
def hamming_window(window_length: Any, periodic: Any = ..., dtype: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return the window of Hamming, of raised cosines."""
def hann_window(window_length: Any, periodic: Any = ..., dtype: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return the window of Hann, of raised cosines."""
def idct(input: Any, type: builtins.int = ..., n: Any = ..., axis: builtins.int = ..., norm: builtins.str | None = ..., name: builtins.str | None = ...) -> Tensor: """Return the inverse cosine transform, of type 2, of the last axis, up to a factor."""
def ifft(input: Any, name: builtins.str | None = ...) -> Tensor: """Return the inverse Fourier transform over the last axis."""
def ifft2d(input: Any, name: builtins.str | None = ...) -> Tensor: """Return the inverse Fourier transform over the last two axes."""
def ifft3d(input: Any, name: builtins.str | None = ...) -> Tensor: """Return the inverse Fourier transform over the last three axes."""
def ifftshift(x: Any, axes: Any = ..., name: builtins.str | None = ...) -> Tensor: """Move the zero frequency from the middle to the start."""
def inverse_stft(stfts: Any, frame_length: Any, frame_step: Any, fft_length: Any = ..., window_fn: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return a signal of the Fourier transforms of its frames."""
def inverse_stft_window_fn(frame_step: Any, forward_window_fn: Any = ..., name: builtins.str | None = ...) -> Any: """Return the window function with which `inverse_stft` reconstructs what `stft` got."""
def irfft(input_tensor: Any, fft_length: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return the inverse Fourier transform of real numbers over the last axis."""
def irfft2d(input_tensor: Any, fft_length: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return the inverse Fourier transform of real numbers over the last two axes."""
def irfft3d(input_tensor: Any, fft_length: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return the inverse Fourier transform of real numbers over the last three axes."""
def kaiser_window(window_length: Any, beta: Any = ..., dtype: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return the window of Kaiser."""
def linear_to_mel_weight_matrix(num_mel_bins: Any = ..., num_spectrogram_bins: Any = ..., sample_rate: Any = ..., lower_edge_hertz: builtins.float = ..., upper_edge_hertz: builtins.float = ..., dtype: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return the matrix that turns a spectrogram to the mel scale."""
def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: builtins.str | None = ...) -> Tensor: """Return the mel-frequency cepstral coefficients."""
def overlap_and_add(signal: Any, frame_step: Any, name: builtins.str | None = ...) -> Tensor: """Put frames together again, and add up where they overlap."""
def rfft(input_tensor: Any, fft_length: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return the Fourier transform of real numbers over the last axis."""
def rfft2d(input_tensor: Any, fft_length: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return the Fourier transform of real numbers over the last two axes."""
def rfft3d(input_tensor: Any, fft_length: Any = ..., name: builtins.str | None = ...) -> Tensor: """Return the Fourier transform of real numbers over the last three axes."""
def stft(signals: Any, frame_length: Any, frame_step: Any, fft_length: Any = ..., window_fn: Any = ..., pad_end: builtins.bool = ..., name: builtins.str | None = ...) -> Tensor: """Return the Fourier transforms of the frames of a signal."""
