"""Devices, meshes, and how values are sharded over them."""
