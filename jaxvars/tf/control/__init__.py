"""TensorFlow's control flow, callbacks, printing and TensorArray."""
