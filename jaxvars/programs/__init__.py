"""What plugs into the compiler: where programs come from, and how bodies are traced."""
