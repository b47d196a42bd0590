"""Scenes: from objects as written to meshes, and the files that hold them."""
