"""Programs with unknown dimensions: traced once, run for all sizes."""
