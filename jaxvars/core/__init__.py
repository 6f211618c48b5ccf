"""The heart: where values are, frames, State, Variable and Module."""
