"""TensorFlow's variables and modules."""
