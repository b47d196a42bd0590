"""How the stand-in works where no script says what to do: read what the task names, write what it wants, finish.

The stage follows from the number of model calls made before, so the same run always does the same. Everything said here
begins with a label: nobody should take it for a model's words.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from registry.base import Json
from registry.jsontext import compact
from workers.models import planned
from workers.models.model import ModelFault, Request, Situation, ToolCall
from workers.models.smallest import smallest

LABEL = "[stand-in] "
#: Files one run reads, and characters of each that its deliverables quote.
MAX_READS, MAX_QUOTE = 8, 600

TEXT_ENDINGS = (
    "md",
    "txt",
    "csv",
    "tsv",
    "json",
    "jsonl",
    "yaml",
    "yml",
    "html",
    "xml",
    "py",
    "js",
    "ts",
    "toml",
    "log",
)
#: A relative path of a text file, as people write it in an instruction; never a part of an address.
_PATH = re.compile(rf"(?<![\w./:@-])(?:[\w-][\w.-]*/)*[\w-][\w.-]*\.(?:{'|'.join(TEXT_ENDINGS)})(?![\w/])")
#: Skills that write a file of an extension, best first; any text can go through the plain writers.
_WRITERS = {".md": ["docs.write_markdown"], ".docx": ["docs.write_docx"], ".pdf": ["docs.write_pdf"]}
_PLAIN_WRITERS = ["files.write", "write_file"]
_BINARY = frozenset({".docx", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".glb", ".xlsx", ".pptx", ".zip"})


@dataclass(frozen=True)
class Said:
    """One answer of the rule."""

    text: str
    calls: list[ToolCall]


def answer(request: Request) -> Said:
    """What the stand-in says and calls next.

    Raises:
        ModelFault: a structured answer is wanted and no small value fits its schema.
    """
    if request.output is not None:
        return Said(compact(_structured(request.situation, request.output)), [])
    situation = request.situation
    if situation.closing or situation.task is None or situation.kind != "root":
        return Said(_words(situation), [])
    stages = [stage for stage in (_reads(request), _writes(request)) if stage]
    if situation.turn < len(stages):
        calls = stages[situation.turn]
        return Said(f"{LABEL}{', '.join(call.name for call in calls)} for {_title(situation)}.", calls)
    return Said(_finish(request), [])


def _structured(situation: Situation, schema: dict[str, Json]) -> Json:
    if situation.task is None and planned.is_plan(schema):
        plan = planned.plan(situation.input, schema)
        if plan is not None:
            return plan
    try:
        return smallest(schema)
    except LookupError as error:
        where = f"of agent {situation.agent_name or situation.agent_id!r}"
        raise ModelFault(f"the stand-in: {error} {where}; name an `output` for it in the stand-in script") from None


def _reads(request: Request) -> list[ToolCall]:
    """Reads of every input and dependency file named, or one look at the folder when none is."""
    reader = _offered(request, ["files.read", "read_file"])
    paths = _named(request.situation)[:MAX_READS]
    if reader and paths:
        return [ToolCall(None, reader, {"path": path}) for path in paths]
    lister = _offered(request, ["files.list", "list_dir"])
    return [ToolCall(None, lister, {"path": "."})] if lister and not paths else []


def _writes(request: Request) -> list[ToolCall]:
    calls = (_write(request, path) for path in _deliverables(request.situation))
    return [call for call in calls if call is not None]


def _write(request: Request, path: str) -> ToolCall | None:
    """The call that makes one deliverable; None where no tool at hand can make such a file."""
    ending = _suffix(path)
    if writer := _offered(request, _WRITERS.get(ending, [])):
        body = _body(request.situation)
        return ToolCall(None, writer, {"path": path, "title": _title(request.situation)[:200], "markdown": body})
    writer = None if ending in _BINARY else _offered(request, _PLAIN_WRITERS)
    return ToolCall(None, writer, {"path": path, "content": _content(request.situation, ending)}) if writer else None


def _offered(request: Request, names: list[str]) -> str | None:
    """The first of these skills that the model may call, under the name it is offered by."""
    known = {tool.name.replace(".", "__"): tool.name for tool in request.tools}
    return next((known[wire] for name in names if (wire := name.replace(".", "__")) in known), None)


def _named(situation: Situation) -> list[str]:
    """Paths of dependency files, then those the instruction names, without the task's own deliverables."""
    given = situation.input if isinstance(situation.input, Mapping) else {}
    dependencies = given.get("dependencies")
    found = [path for each in _values(dependencies) for path in _paths(each.get("files"))]
    instruction = str((situation.task or {}).get("instruction") or "")
    found += _PATH.findall(f"{instruction} {compact(given.get('data'))}")
    own = set(_deliverables(situation))
    return [path for path in dict.fromkeys(found) if path not in own and _suffix(path)[1:] in TEXT_ENDINGS]


def _suffix(path: str) -> str:
    return PurePosixPath(path).suffix.lower()


def _values(dependencies: Json) -> list[Mapping[str, Json]]:
    values = dependencies.values() if isinstance(dependencies, Mapping) else ()
    return [value for value in values if isinstance(value, Mapping)]


def _paths(files: Json) -> list[str]:
    """Paths of a list of files, each written as a path or as `{path, ...}`."""
    listed = files if isinstance(files, list) else []
    found = [entry.get("path") if isinstance(entry, Mapping) else entry for entry in listed]
    return [path for path in found if isinstance(path, str)]


def _deliverables(situation: Situation) -> list[str]:
    return _paths((situation.task or {}).get("deliverables"))


def _title(situation: Situation) -> str:
    task = situation.task or {}
    return str(task.get("title") or task.get("key") or situation.agent_name or situation.agent_id or "this run")


def _body(situation: Situation) -> str:
    """The text of a deliverable: what was asked, and what was really read, quoted."""
    task = situation.task or {}
    parts = [
        f"{LABEL}Written by the stand-in by rule; no model was asked.",
        "Asked for:",
        _quote(task.get("instruction")),
    ]
    if task.get("expectedOutput"):
        parts += ["Expected:", _quote(task["expectedOutput"])]
    for result in situation.results:
        if result.ok:
            parts += [f"From `{result.name}`:", _quote(result.text)]
    return "\n\n".join(parts) + "\n"


def _quote(text: Json) -> str:
    words = str(text or "").strip()
    cut = words[:MAX_QUOTE] + (" ..." if len(words) > MAX_QUOTE else "")
    return "\n".join(f"> {line}" for line in cut.splitlines()) or "> (nothing)"


def _content(situation: Situation, ending: str) -> str:
    """The text of a deliverable in the form its ending promises."""
    title, task = _title(situation), situation.task or {}
    if ending == ".json":
        return compact({"standIn": True, "title": title, "instruction": str(task.get("instruction") or "")}) + "\n"
    if ending in (".csv", ".tsv"):
        mark = "," if ending == ".csv" else "\t"
        plain = re.sub(r"[^\w -]", " ", title)
        return f"note{mark}task\n[stand-in]{mark}{plain}\n"
    if ending in (".py", ".sh", ".yaml", ".yml", ".toml"):
        return "".join(f"# {line}\n" for line in _body(situation).splitlines())
    return _body(situation)


def _words(situation: Situation) -> str:
    """A closing text where nothing is to be written: who stands in, and for what."""
    asked = situation.item if situation.kind == "item" else situation.input
    text = asked if isinstance(asked, str) else asked.get("text") if isinstance(asked, Mapping) else None
    shown = text if isinstance(text, str) else compact(asked)
    who = situation.agent_name or situation.agent_id or "an agent"
    which = f", item {situation.index}" if situation.kind == "item" else ""
    return f"{LABEL}{who}{which}: no model was asked. Given: {shown[:300]}"


def _finish(request: Request) -> str:
    """The last text: only files whose tool said so count as written."""
    situation = request.situation
    written = {result.output.get("path") for result in situation.results if result.ok and _is_object(result.output)}
    wanted = _deliverables(situation)
    made = [path for path in wanted if path in written]
    missed = [path for path in wanted if path not in written]
    parts = [f"{LABEL}{_title(situation)}: worked through by rule; no model was asked."]
    for words, paths in (("Named in the task", _named(situation)), ("Written", made), ("Not written", missed)):
        if paths:
            parts.append(f"{words}: {', '.join(paths)}.")
    return " ".join(parts)


def _is_object(value: Json) -> bool:
    return isinstance(value, Mapping)
