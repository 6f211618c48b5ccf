"""Where code runs: name scopes, eager or traced."""
