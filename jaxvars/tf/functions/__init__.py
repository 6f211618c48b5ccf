"""`tf.function`, and functions with custom gradients."""
