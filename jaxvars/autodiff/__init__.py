"""Record what ran, and differentiate it."""
