"""What Keras's layers need of this package."""
