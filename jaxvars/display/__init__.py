"""How objects show themselves."""
