"""A React and Node project made of templates."""
