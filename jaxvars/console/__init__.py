"""Printing while programs run: print and progress."""
