"""What a tensor is: dtypes, specs, operators, conversion."""
