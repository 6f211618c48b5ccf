"""JAX's tracing machinery: the only package that may touch it."""
