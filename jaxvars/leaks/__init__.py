"""State of a compiled function that is not in a Variable: found once it has been traced."""
