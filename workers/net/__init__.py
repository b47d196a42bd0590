"""The network guard: everything that goes out for a skill or a hook goes through here (spec: skills 4)."""
