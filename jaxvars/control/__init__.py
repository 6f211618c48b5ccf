"""Control flow with state: cond, while_loop, scan, vectorized_map, TensorArray."""
