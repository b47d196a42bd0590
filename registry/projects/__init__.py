"""Project files: what a person submits, read whole and refused with every fault at once (spec: project)."""
