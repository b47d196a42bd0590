"""`studio.author_skill_bundle`: new skills as a proposal, in plain files that a person reads (spec: skills 7.29).

Nothing here is imported, compiled, run or registered, whatever it says of itself. What the review tells is read from
the text of the files.
"""

import hashlib
import json
import re
from pathlib import PurePosixPath
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from registry.base import Json, Model
from registry.errors import SkillError
from registry.skills.context import SkillContext
from registry.skills.paths import WorkspacePath
from registry.skills.skill import skill
from registry.text import one_line

FOLDER: Final = "plugins-proposed"
NOT_WIRED: Final = "no workspace is wired to this call; nothing was written"
MAX_FILE_BYTES: Final = 64 * 1024
SUFFIXES: Final = (".py", ".md", ".json", ".txt")
#: First parts of names that are ours, or may become so.
GROUPS: Final = frozenset(
    [
        "agents",
        "code",
        "core",
        "docs",
        "email",
        "fetch",
        "files",
        "http",
        "image",
        "knowledge",
        "llm",
        "math",
        "memory",
        "officina",
        "plan",
        "plugin",
        "scene3d",
        "schedule",
        "scheduler",
        "shell",
        "signal",
        "skills",
        "studio",
        "system",
        "telegram",
        "threads",
        "web",
        "webhook",
        "whatsapp",
        "world",
    ]
)
#: Files that are written by us.
OURS: Final = ("manifest.json", "review.md")
_SEMVER: Final = r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$"
_CAPABILITY: Final = re.compile(
    r"net:[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?|files:read|files:write|llm|memory|signals|schedule|secret:[a-z][a-z0-9_-]{0,38}"
)
_SKILL_NAME: Final = re.compile(r"[a-z][a-z0-9]*\.[a-z][a-z0-9_]*")

Line = Annotated[str, StringConstraints(min_length=1, max_length=60), AfterValidator(one_line)]


def _capability(text: str) -> str:
    if not _CAPABILITY.fullmatch(text):
        known = "net:<host>, files:read, files:write, llm, memory, signals, schedule, secret:<name>"
        raise ValueError(f"is none of {known}")
    return text


def _free(group: str) -> str:
    if group in GROUPS:
        raise ValueError("is a group of built-in names; choose another id")
    return group


def judged_name(name: str, plugin: str) -> str:
    """The name of a plugin's skill.

    Raises:
        ValueError: it is none, or another plugin's.
    """
    if not _SKILL_NAME.fullmatch(name) or "__" in name or not name.startswith(f"{plugin}."):
        raise ValueError(f"the skill name {name} has to be {plugin}.<name> in lower case")
    return name


Capability = Annotated[str, AfterValidator(_capability)]
PluginId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]{1,30}$"), AfterValidator(_free)]
Version = Annotated[str, StringConstraints(pattern=_SEMVER, max_length=60)]


class ProposedSkill(Model):
    name: Annotated[str, StringConstraints(min_length=3, max_length=60)]
    description: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    input_schema: dict[str, Json]
    output_schema: dict[str, Json]
    world_acting: bool


class ProposedFile(Model):
    path: WorkspacePath
    content: str

    @model_validator(mode="after")
    def _fits(self) -> "ProposedFile":
        if (size := len(self.content.encode())) > MAX_FILE_BYTES:
            raise ValueError(f"content has {size} bytes, and {MAX_FILE_BYTES} is the most")
        if PurePosixPath(self.path).suffix not in SUFFIXES:
            raise ValueError(f"path has to end in one of {', '.join(SUFFIXES)}")
        if self.path.casefold() in OURS:
            raise ValueError(f"path {self.path} is written by Officina")
        return self


class AuthorBundle(Model):
    id: PluginId
    name: Line
    description: Annotated[str, StringConstraints(max_length=500)] = ""
    version: Version
    skills: list[ProposedSkill] = Field(min_length=1, max_length=5)
    files: list[ProposedFile] = Field(min_length=1, max_length=10)
    capabilities: list[Capability] = Field(default=[], max_length=20)

    @model_validator(mode="after")
    def _belongs_together(self) -> "AuthorBundle":
        for one in self.skills:
            judged_name(one.name, self.id)
        for what, names in (
            ("skill", [s.name for s in self.skills]),
            ("file", [f.path.casefold() for f in self.files]),
        ):
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise ValueError(f"the {what} {twice} is there twice")
        return self


class BundleFile(Model):
    path: str
    bytes: int
    sha256: str


class Finding(Model):
    path: str
    line: int | None = None
    what: str


class AuthoredBundle(Model):
    dir: str
    files: list[BundleFile] = Field(default_factory=list)
    manifest_path: str | None = None
    review_path: str | None = None
    #: Always false: only a person installs.
    installed: Literal[False] = False
    findings: list[Finding] = Field(default_factory=list)
    wired: bool = True
    note: str | None = None


@skill(
    "studio.author_skill_bundle",
    title="Propose new skills",
    timeout_s=10,
    operations=("fs.write",),
    effect="once",
    needs=("workspace",),
    documented=False,
)
def author_skill_bundle(given: AuthorBundle, context: SkillContext) -> AuthoredBundle:
    """Writes a proposal for 1 to 5 new skills into the workspace, under plugins-proposed/<id>: at most 10 files of
    Python, Markdown, JSON or text, a manifest, and a review for the person who decides. Nothing of it is installed,
    imported or run; `installed` is always false and no capability is granted. A folder that is there is a conflict."""
    folder = f"{FOLDER}/{given.id}"
    if context.workspace is None:
        return AuthoredBundle(dir=folder, wired=False, note=NOT_WIRED)
    if context.workspace.exists(folder):
        raise SkillError("conflict", f"{folder!r} is there already; a proposal is never changed, choose another id")
    from registry.skills.reviews import findings, review

    sources = {one.path: one.content for one in given.files}
    found = [Finding(path=path, line=line, what=what) for path, line, what in findings(sources)]
    tree = {path: content.encode() for path, content in sources.items()}
    tree["manifest.json"] = _manifest(given, tree).encode()
    tree["REVIEW.md"] = review(_facts(given), tree, [(f.path, f.line, f.what) for f in found]).encode()
    context.check()
    stored = context.workspace.write_tree(folder, tree)
    for one in stored:
        context.emit(
            "file.written",
            {"path": one.path, "bytes": one.bytes, "sha256": one.sha256, "skill": "studio.author_skill_bundle"},
        )
    return AuthoredBundle(
        dir=folder,
        files=[BundleFile(path=one.path, bytes=one.bytes, sha256=one.sha256) for one in stored],
        manifest_path=f"{folder}/manifest.json",
        review_path=f"{folder}/REVIEW.md",
        findings=found[:100],
    )


def _facts(given: AuthorBundle) -> dict[str, Json]:
    return {
        "id": given.id,
        "name": given.name,
        "version": given.version,
        "description": given.description,
        "skills": [(one.name, one.world_acting) for one in given.skills],
        "capabilities": list(given.capabilities),
    }


def _manifest(given: AuthorBundle, tree: dict[str, bytes]) -> str:
    entry = next((one.path for one in given.files if one.path.endswith(".py")), None)
    manifest = {
        "id": given.id,
        "name": given.name,
        "version": given.version,
        "description": given.description,
        "skills": [one.to_json() for one in given.skills],
        "entry": entry,
        "capabilities": given.capabilities,
        "minApi": 1,
        "files": {path: hashlib.sha256(content).hexdigest() for path, content in sorted(tree.items())},
        "installed": False,
        "granted": [],
    }
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


__all__ = ["Capability", "Line", "PluginId", "Version", "author_skill_bundle", "judged_name"]
