"""Plugins at work: out of process behind the sandbox's wall, with what they were granted served from outside it."""
