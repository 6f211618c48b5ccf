"""TensorFlow's tensors: dtypes, shapes, specs, conversion."""
