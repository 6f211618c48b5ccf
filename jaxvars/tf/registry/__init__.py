"""The table of tf's operations, and what is absent."""
