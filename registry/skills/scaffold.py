"""`code.scaffold_react_node`: a small web project to start from (spec: skills 7.11). Nothing is installed or run."""

import shlex
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from registry.base import Model
from registry.errors import SkillError
from registry.skills.context import SkillContext
from registry.skills.paths import WorkspacePath
from registry.skills.skill import Skill, skill
from registry.text import one_line

NOT_WIRED: Final = "no workspace is wired to this call; nothing was written"
MAX_FILES: Final = 60

#: Names that Node or npm keep for themselves.
RESERVED: Final = frozenset(
    [
        "assert",
        "async_hooks",
        "buffer",
        "child_process",
        "cluster",
        "console",
        "constants",
        "crypto",
        "dgram",
        "diagnostics_channel",
        "dns",
        "domain",
        "events",
        "favicon",
        "fs",
        "http",
        "http2",
        "https",
        "inspector",
        "module",
        "net",
        "node",
        "node_modules",
        "npm",
        "os",
        "path",
        "perf_hooks",
        "process",
        "punycode",
        "querystring",
        "readline",
        "repl",
        "sea",
        "sqlite",
        "stream",
        "string_decoder",
        "sys",
        "test",
        "timers",
        "tls",
        "trace_events",
        "tty",
        "url",
        "util",
        "v8",
        "vm",
        "wasi",
        "worker_threads",
        "zlib",
    ]
)


def _free(name: str) -> str:
    if name in RESERVED or name.replace("-", "_") in RESERVED:
        raise ValueError("is a name that Node or npm keep for themselves")
    return name


def _text(text: str) -> str:
    return one_line(text).strip() if text.strip() else ""


def _squeezed(text: str) -> str:
    """A text on one line: line breaks and control characters become blanks."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


#: Where the server tells its own routes.
LISTING: Final = "/_routes"
#: Segments are plain, or a parameter such as :id.
UrlPath = Annotated[
    str, StringConstraints(pattern=r"^(/|(/(:[A-Za-z_][A-Za-z0-9_]*|[A-Za-z0-9_.~-]+))+)$", max_length=100)
]


class WantedPage(Model):
    name: Annotated[str, StringConstraints(min_length=1, max_length=40), AfterValidator(one_line)]
    path: UrlPath


class WantedRoute(Model):
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: UrlPath = Field(description="below /api")
    summary: Annotated[str, StringConstraints(max_length=200), AfterValidator(_squeezed)] = ""


class Scaffold(Model):
    name: Annotated[
        str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{1,38}$"), AfterValidator(_free), Field(description="a slug")
    ]
    title: Annotated[str, StringConstraints(max_length=80), AfterValidator(_text)] = Field(
        default="", description="made of the name when left out"
    )
    description: Annotated[str, StringConstraints(max_length=500), AfterValidator(_squeezed)] = ""
    dir: WorkspacePath | None = Field(default=None, description="the name when left out")
    pages: list[WantedPage] = Field(
        default_factory=lambda: [WantedPage(name="Home", path="/")], min_length=1, max_length=12
    )
    api_routes: list[WantedRoute] = Field(
        default_factory=lambda: [WantedRoute(method="GET", path="/health", summary="Says that the server is up")],
        max_length=20,
    )
    features: list[Literal["router", "tests", "sqlite", "docker"]] = Field(default=["router"], max_length=4)
    port: int = Field(default=3000, ge=1024, le=65535)
    overwrite: bool = Field(default=False, description="whether files of a folder that holds something are replaced")

    @model_validator(mode="after")
    def _distinct(self) -> "Scaffold":
        named: tuple[tuple[str, list[str]], ...] = (
            ("page path", [page.path for page in self.pages]),
            ("route", [f"{route.method} {route.path}" for route in self.api_routes]),
            ("feature", [*self.features]),
        )
        for what, keys in named:
            if twice := next((key for key in keys if keys.count(key) > 1), None):
                raise ValueError(f"the {what} {twice} is there twice")
        if any(route.path == LISTING for route in self.api_routes):
            raise ValueError(f"the route {LISTING} tells the routes of the server; choose another path")
        return self


class ScaffoldedFile(Model):
    path: str
    bytes: int
    sha256: str


class Scaffolded(Model):
    root: str
    files: list[ScaffoldedFile] = Field(default_factory=list)
    #: Names of the commands that `npm run` knows.
    scripts: list[str] = Field(default_factory=list)
    next_steps: list[str] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    wired: bool = True
    note: str | None = None


@skill(
    "code.scaffold_react_node",
    title="Start a React and Node project",
    timeout_s=20,
    operations=("fs.write", "world"),
    effect="once",
    needs=("workspace",),
)
def scaffold(given: Scaffold, context: SkillContext) -> Scaffolded:
    """Writes a small web project into the workspace: React pages built by Vite, an Express server with your API
    routes, and on demand a router, tests, SQLite, a Dockerfile. At most 60 files with pinned versions, all of them or
    none; a folder that holds something is a conflict unless `overwrite` replaces its files of the same names. Nothing
    is installed, started or fetched: nextSteps says what a person types."""
    root = given.dir or given.name
    if context.workspace is None:
        return Scaffolded(root=root, wired=False, note=NOT_WIRED)
    from registry.skills.scaffolding.project import Page, Plan, Route, files

    plan = Plan(
        name=given.name,
        title=given.title or given.name.replace("-", " ").strip().capitalize(),
        description=given.description,
        pages=[Page(page.name, page.path) for page in given.pages],
        routes=[Route(route.method, route.path, route.summary) for route in given.api_routes],
        features=frozenset(given.features),
        port=given.port,
    )
    made = {path: text.encode() for path, text in files(plan).items()}
    if len(made) > MAX_FILES:
        raise SkillError("too_large", f"the project would have {len(made)} files, and {MAX_FILES} is the most")
    context.check()
    stored = context.workspace.write_tree(root, made, overwrite=given.overwrite)
    for one in stored:
        told = {"path": one.path, "bytes": one.bytes, "sha256": one.sha256, "skill": "code.scaffold_react_node"}
        context.emit("file.written", told)
    return Scaffolded(
        root=root,
        files=[ScaffoldedFile(path=one.path, bytes=one.bytes, sha256=one.sha256) for one in stored],
        scripts=sorted(plan.scripts),
        next_steps=[
            f"cd {shlex.quote(root)}",  # a person types it, and a folder may be called anything
            "npm install  # with Node 22.22 or later",
            "npm run dev:server",
            "npm run dev:client",
        ],
        warnings=_warnings(given),
    )


def _warnings(given: Scaffold) -> list[str]:
    found = []
    if all(page.path != "/" for page in given.pages):
        found.append('no page has the path "/": the first look at the server finds none')
    if "router" not in given.features and any(":" in page.path for page in given.pages):
        found.append("without the router a path with parameters is never met")
    return found


SKILLS: tuple[Skill, ...] = (scaffold,)

__all__ = ["SKILLS", "scaffold"]
