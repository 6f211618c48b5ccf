"""What plugs into the tape: finer rules of some operations, and other kinds of derivatives.

By default each result of an operation depends on all its inputs, and is differentiated as JAX does.
"""
