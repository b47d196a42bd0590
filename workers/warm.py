"""Imports what executing a run needs, and opens nothing: loaded by the process that suspects are forked from."""

from registry.skills import catalogue
from workers import runtime

catalogue.build()

__all__ = ["runtime"]
