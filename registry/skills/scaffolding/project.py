"""The files of a small React (Vite) and Node (Express) project (spec: skills 7.11)."""

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from registry.base import Json
from registry.skills.scaffolding.rendering import render

#: Pinned by us: what a project starts with was tried together.
VERSIONS: Final = {
    "@vitejs/plugin-react": "6.3.0",
    "express": "5.3.0",
    "react": "19.3.1",
    "react-dom": "19.3.1",
    "react-router": "8.5.3",
    "vite": "8.4.0",
}
#: The oldest that all of them take; it has an SQLite of its own.
NODE: Final = ">=22.22"


@dataclass(frozen=True)
class Page:
    name: str
    path: str


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    summary: str


@dataclass(frozen=True)
class Plan:
    """What is wanted of a project."""

    name: str
    title: str
    description: str
    pages: Sequence[Page]
    routes: Sequence[Route]
    features: frozenset[str]
    port: int

    @property
    def scripts(self) -> dict[str, str]:
        """The commands of its package.json."""
        made = {
            "build": "vite build",
            "dev:client": "vite",
            "dev:server": "node --watch server/index.js",
            "start": "node server/index.js",
        }
        return made | ({"test": "node --test tests/*.test.js"} if "tests" in self.features else {})


def files(plan: Plan) -> dict[str, str]:
    """Every file of the project, by path."""
    has = {name: name in plan.features for name in ("router", "tests", "sqlite", "docker")}
    pages = _named(plan.pages)
    routes = [{"method": r.method, "path": r.path, "summary": r.summary, "answer": _answer(r)} for r in plan.routes]
    about = {"title": plan.title, "description": plan.description or plan.title, "port": plan.port} | has
    made = {
        "package.json": json.dumps(_package(plan), indent=2) + "\n",
        ".gitignore": render("gitignore"),
        "README.md": render("README.md", **about),
        "index.html": render("index.html", **about),
        "vite.config.js": render("vite.config.js", **about),
        "src/main.jsx": render("src/main.jsx", **about),
        "src/App.jsx": render("src/App.jsx", pages=pages, **about),
        "src/styles.css": render("src/styles.css"),
        "server/index.js": render("server/index.js", **about),
        "server/app.js": render("server/app.js", **about),
        "server/routes.js": render("server/routes.js", routes=routes),
    }
    for place, page in enumerate(pages):
        path = f"src/pages/{page['component']}.jsx"
        made[path] = render("src/pages/Page.jsx", page=page, first=place == 0, **about)
    if has["sqlite"]:
        made["server/database.js"] = render("server/database.js")
    if has["tests"]:
        made["tests/app.test.js"] = render("tests/app.test.js", **about)
    if has["docker"]:
        made["Dockerfile"] = render("Dockerfile", **about)
        made[".dockerignore"] = render("dockerignore")
    return made


def _package(plan: Plan) -> dict[str, Json]:
    used = ["express", "react", "react-dom"] + (["react-router"] if "router" in plan.features else [])
    return {
        "name": plan.name,
        "version": "0.1.0",
        "private": True,
        "description": plan.description,
        "type": "module",
        "engines": {"node": NODE},
        "scripts": plan.scripts,
        "dependencies": {name: VERSIONS[name] for name in used},
        "devDependencies": {name: VERSIONS[name] for name in ("@vitejs/plugin-react", "vite")},
    }


def _named(pages: Sequence[Page]) -> list[dict[str, str]]:
    """Pages with the name of their component, each its own whatever the case."""
    taken: set[str] = set()
    found = []
    for page in pages:
        component = _component(page.name)
        number, name = 1, component
        while name.lower() in taken:
            number += 1
            name = f"{component}{number}"
        taken.add(name.lower())
        found.append({"name": page.name, "path": page.path, "component": name})
    return found


def _component(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    words = re.findall(r"[A-Za-z0-9]+", plain)
    return ("".join(word[:1].upper() + word[1:] for word in words) or "")[:40] + "Page"


def _answer(route: Route) -> Json:
    return {"ok": True} if route.path == "/health" else {"todo": route.summary or f"{route.method} {route.path}"}


__all__ = ["Page", "Plan", "Route", "files"]
