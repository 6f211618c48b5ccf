"""`compile`: trace a function once for each signature, run it as one XLA program."""
