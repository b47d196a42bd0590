"""The resources, one module each; a new one is a line here."""

from importlib import import_module
from typing import Final

from fastapi import APIRouter

MODULES: Final = (
    "health",
    "metrics",
    "keys",
    "projects",
    "events",
    "files",
    "work",
    "signals",
    "agents",
    "library",
    "skills",
    "connections",
    "schedules",
    "memories",
    "generators",
    "hooks",
    "threads",
    "knowledge",
    "plugins",
    "audit",
)


def routers() -> list[APIRouter]:
    """The router of each module, in the order of the document."""
    return [import_module(f"{__name__}.{name}").router for name in MODULES]
