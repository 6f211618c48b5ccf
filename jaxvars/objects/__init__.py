"""What Python objects are: their exact identity, the order of their keys, what is found in them."""
