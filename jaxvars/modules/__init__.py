"""Modules of variables, and States: the values of variables by their paths."""
