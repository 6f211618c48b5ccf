"""What `python -m jaxvars` runs."""
