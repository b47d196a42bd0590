"""The structural checks, one room a theme; `registry.graph.validation` runs them all."""
