"""Python's control flow on tensors: parts of it."""
