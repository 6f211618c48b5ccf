"""Several devices and processes."""
