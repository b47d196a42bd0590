"""Mathematics as people write it, computed exactly where it can be (spec: skills 7.16)."""
