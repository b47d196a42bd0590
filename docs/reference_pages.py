"""Writes the pages of `reference/` (commands, settings, nodes, events, codes) from the code: `make skill-pages`."""

import ast
import json
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic import BaseModel, SecretStr
from pydantic_core import PydanticUndefined

from orchestrator.settings import Model, Settings
from registry.base import Json
from registry.graph import findings, model

FOLDER = Path(__file__).parent / "reference"
ROOT = FOLDER.parents[1]
#: Where lines of traces and codes come from.
CODE = ("registry", "orchestrator", "workers")
#: How an error leaves, by the class that carries its code.
_ENDS = {
    "SkillError": "a call",
    "RunFailure": "a run",
    "ExpressionError": "a run",
    "ModelFault": "a run",
    "Refused": "a command (1)",
    "LeaseStale": "a command (1)",
    "Unavailable": "a command (1)",
    "WrongUse": "a command (2)",
}
#: A kind of event as it is written.
_KIND = re.compile(
    r"(project|team|task|run|node|tool|signal|wait|agent|map|budget|compaction|hook|file|mcp|plugin)(\.[a-z]+)+"
    r"|(schedule|webhook|trigger)\.[a-z]+|think|message|output"
)
_MADE = "This page is made from the code (`make skill-pages`)."


def pages() -> dict[str, str]:
    """Name of the file in `reference/` -> its text."""
    return {
        "commands.md": commands_page(),
        "settings.md": settings_page(),
        "nodes.md": nodes_page(),
        "events.md": events_page(),
        "codes.md": codes_page(),
    }


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", *parts]) + "\n"


# Commands


def commands_page() -> str:
    from typer.main import get_command

    from workers.cli import application

    found = list(_commands(get_command(application()), "officina"))
    intro = (
        f"{_MADE} `officina COMMAND --help` says the same. Every command leaves with 0 when it is done, 1 when the "
        "thing failed or was refused, and 2 when it was used wrongly."
    )
    overview = _table(("command", "does"), [(f"[`{name}`](#{_anchor(name)})", _first(one.help)) for name, one in found])
    return _page("Commands", intro, overview, *(_command(name, one) for name, one in found))


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    inner: dict[str, Any] = getattr(command, "commands", None) or {}
    if not inner or (getattr(command, "invoke_without_command", False) and name != "officina"):
        yield name, command
    for word, one in inner.items():
        if not one.hidden:
            yield from _commands(one, f"{name} {word}")


def _anchor(name: str) -> str:
    return name.replace(" ", "-")


def _first(text: str | None) -> str:
    return re.split(r"(?<=[.;])\s", " ".join((text or "").split()), maxsplit=1)[0].rstrip(".;")


def _command(name: str, command: Any) -> str:
    shown = [one for one in command.params if not getattr(one, "hidden", False) and one.name != "help"]
    words = [name, *(_word(one) for one in shown if _is_argument(one))]
    if any(not _is_argument(one) for one in shown):
        words.append("[OPTIONS]")
    parts = [f"## {name}", f"`{' '.join(words)}`", " ".join((command.help or "").split("\f")[0].split())]
    rows = [(f"`{_spelt(one)}`", _default(one), _help(one)) for one in shown]
    return "\n\n".join([*parts, *([_table(("word", "default", "meaning"), rows)] if rows else [])])


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _word(parameter: Any) -> str:
    word = (parameter.metavar or (parameter.name or "").upper()).strip("[]").removesuffix("...")
    more = "..." if parameter.nargs == -1 else ""
    return f"{word}{more}" if parameter.required else f"[{word}]{more}"


def _spelt(parameter: Any) -> str:
    if _is_argument(parameter):
        return _word(parameter)
    names = "/".join([", ".join(parameter.opts), *parameter.secondary_opts])
    if getattr(parameter, "is_flag", False):
        return names
    return f"{names} {parameter.metavar or _given(parameter.type_descriptor.annotation)}"


def _given(kind: Any) -> str:
    """What an option of this kind takes, as a word."""
    kinds = [one for one in get_args(kind) if one is not type(None)] or [kind]
    if isinstance(kinds[0], type) and issubclass(kinds[0], Enum):
        return "|".join(str(one.value) for one in kinds[0])
    return {"int": "NUMBER", "float": "NUMBER", "Path": "PATH"}.get(getattr(kinds[0], "__name__", ""), "TEXT")


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    value = parameter.default
    if callable(value) or value in (None, False, (), []) or "UNSET" in repr(value):
        return "none"
    return f"`{value}`"


def _help(parameter: Any) -> str:
    return " ".join((getattr(parameter, "help", None) or "").split())


# Settings


def settings_page() -> str:
    intro = (
        f"{_MADE} A setting is read from the environment, or from a file `.env` in the folder where a process starts. "
        "`officina doctor` prints what is in force, and names that look like settings and set nothing."
    )
    groups: dict[str, list[tuple[str, ...]]] = {"General": []}
    _settings(Settings, "OFFICINA_", groups["General"], groups)
    return _page("Settings", intro, *(_group(title, rows) for title, rows in groups.items()))


def _group(title: str, rows: list[tuple[str, ...]]) -> str:
    return f"## {title}\n\n" + _table(("variable", "kind", "default", "meaning"), rows)


def _settings(
    group: type[BaseModel], prefix: str, rows: list[tuple[str, ...]], groups: dict[str, list[tuple[str, ...]]]
) -> None:
    said = _docstrings(group)
    for name, field in group.model_fields.items():
        variable = prefix + name.upper()
        inner = _section(field.annotation)
        if inner is None:
            rows.append(
                (
                    f"`{variable}`",
                    _kind(field.annotation),
                    _value(field.get_default(call_default_factory=True)),
                    said[name],
                )
            )
        else:
            title = name.replace("_", " ").capitalize()
            if name in said:
                rows.append((f"`{variable}`", f"[group](#{title.lower().replace(' ', '-')})", "none", said[name]))
            _settings(inner, f"{variable}__", groups.setdefault(title, []), groups)
        if name == "models":
            _settings(Model, f"{variable}__TIER__", groups.setdefault("Models", []), groups)


def _section(kind: Any) -> type[BaseModel] | None:
    kinds = get_args(kind) if get_origin(kind) is UnionType else (kind,)
    return next((one for one in kinds if isinstance(one, type) and issubclass(one, BaseModel)), None)


def _docstrings(group: type[BaseModel]) -> dict[str, str]:
    """What stands below each field, those of a base as well."""
    found: dict[str, str] = {}
    for one in reversed(group.__mro__):
        if one.__module__.partition(".")[0] in ("registry", "orchestrator"):
            found |= _below(Path(str(sys.modules[one.__module__].__file__)), one.__name__)
    return found


def _below(path: Path, name: str) -> dict[str, str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = next(one.body for one in tree.body if isinstance(one, ast.ClassDef) and one.name == name)
    found: dict[str, str] = {}
    for here, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(here, ast.AnnAssign) and isinstance(here.target, ast.Name):
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                found[here.target.id] = " ".join(str(after.value.value).split())
            elif found:
                # Two fields in a row share the text of the first, as `entries` and `chars` of a list do.
                found.setdefault(here.target.id, next(reversed(found.values())))
    return found


def _kind(kind: Any) -> str:
    if get_origin(kind) is UnionType:
        return " or ".join(_kind(one) for one in get_args(kind) if one is not type(None))
    if get_origin(kind) is Literal:
        return ", ".join(f"`{one}`" for one in get_args(kind))
    if get_origin(kind) in (tuple, list):
        return "JSON list"
    if get_origin(kind) is dict:
        return "group"
    names = {"int": "whole number", "float": "number", "Decimal": "number", "str": "text", "bool": "true, false"}
    return {**names, "Path": "path", "SecretStr": "secret"}.get(getattr(kind, "__name__", ""), "text")


def _value(value: Any) -> str:
    if value in (None, "", (), {}) or value is PydanticUndefined or isinstance(value, SecretStr):
        return "none" if value is not PydanticUndefined else "required"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple | list):
        return f"`{json.dumps(list(value))}`"
    return f"`{value}`"


# Nodes


def nodes_page() -> str:
    intro = (
        f"{_MADE} [Graphs](../graphs.md) explains what they are for. A *value* may be JSON or an expression (a text "
        "that begins with `$`); an *expression* is always one. Every node may have a `label`, for drawings."
    )
    comments = _above(Path(str(model.__file__)))
    parts = [_node(one, comments) for one in get_args(get_args(model.Node)[0])]
    return _page("Nodes", intro, *parts)


def _above(path: Path) -> dict[tuple[str, str], str]:
    """(class, field) -> what the `#:` lines above it say."""
    with tokenize.open(path) as file:
        said = {
            t.start[0]: t.string[2:].strip() for t in tokenize.generate_tokens(file.readline) if t.string[:2] == "#:"
        }
    found: dict[tuple[str, str], str] = {}
    for one in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for field in one.body if isinstance(one, ast.ClassDef) else ():
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(one, ast.ClassDef)
            ):
                lines: list[str] = []
                above = field.lineno - 1
                while above in said:
                    lines.insert(0, said[above])
                    above -= 1
                found[one.name, field.target.id] = " ".join(lines)
    return found


def _node(node: type[BaseModel], comments: dict[tuple[str, str], str]) -> str:
    schema = node.model_json_schema(by_alias=True)
    defs, required = schema.get("$defs", {}), set(schema.get("required", ()))
    named = {field.alias or name: name for name, field in node.model_fields.items()}
    rows = [
        (
            f"`{alias}`",
            _json_kind(schema["properties"][alias], defs),
            "required" if alias in required else _json_default(schema["properties"][alias]),
            comments.get((node.__name__, name), ""),
        )
        for alias, name in named.items()
        if name not in ("type", "label")
    ]
    title = str(node.model_fields["type"].default)
    about = " ".join((node.__doc__ or "").split()) if "__doc__" in vars(node) else ""
    table = _table(("field", "kind", "default", "meaning"), rows) if rows else "It has no fields of its own."
    return "\n\n".join(part for part in (f"## {title}", about, _ports(title), table) if part)


def _ports(title: str) -> str:
    """Which edges a node takes and gives, as validation holds it."""
    into = "no edge leads to it" if title == "core:start" else "edges lead to it"
    out = {
        "core:end": "none leads on",
        "control:goto": "its target is where it leads",
        "control:yield": "none leads on: it ends the item",
    }
    body = "; `enter` is where its body begins, which `control:yield` ends" if title == "control:map" else ""
    return f"Ports: {into}; {out.get(title, 'edges out are tried in order')}{body}."


def _json_kind(field: dict[str, Json], defs: dict[str, Json]) -> str:
    if "$ref" in field:
        inner = defs[field["$ref"].rpartition("/")[2]]
        return "{" + ", ".join(inner.get("properties", {})) + "}"
    if "anyOf" in field:
        kinds = [_json_kind(one, defs) for one in field["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in field or "const" in field:
        return ", ".join(f"`{one}`" for one in field.get("enum", [field.get("const")]))
    if field.get("type") == "array":
        return "list" if not field.get("items") else f"list of {_json_kind(field['items'], defs)}"
    return {"string": "text", "object": "object", "integer": "whole number"}.get(
        str(field.get("type")), str(field.get("type", "any JSON"))
    )


def _json_default(field: dict[str, Json]) -> str:
    value = field.get("default")
    return "none" if value is None else f"`{json.dumps(value)}`"


# Events


def events() -> dict[str, dict[str, Any]]:
    """Kind -> what it says, and its data."""
    return dict(yaml.safe_load((FOLDER / "events.yaml").read_text(encoding="utf-8")))


def events_page() -> str:
    intro = (
        f"{_MADE} A trace is a list of events, a JSON line each in `officina trace ID --json`: "
        "`{seq, at, kind, projectId?, taskId?, runId?, agentId?, nodeId?, data}`. `seq` rises by one within a trace. "
        "Values that look like secrets are masked. While somebody watches, `think.delta` and `message.delta` carry "
        "words as they come; they are never stored."
    )
    rows = [
        (f"`{kind}`", one["says"], ", ".join(f"`{field}`" for field in one["data"].split()))
        for kind, one in events().items()
    ]
    return _page("Events", intro, _table(("kind", "says", "data"), rows))


@cache
def _nodes() -> list[ast.AST]:
    """Every node of the code's trees."""
    files = [path for part in CODE for path in sorted((ROOT / part).rglob("*.py"))]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    kinds = (ast.Call, ast.Assign, ast.ClassDef)
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, kinds)]


def found_kinds() -> set[str]:
    """Kinds of events that the code writes.

    A kind is the first argument of what writes lines, or was put aside as `kind` for it.
    """
    return {kind for node in _nodes() for kind in _kinds_of(node)}


def _kinds_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and _called(node) in ("emit", "Event", "_status", "_tell"):
        yield from (kind for one in node.args[:3] for kind in _texts(one) if _KIND.fullmatch(kind))
    elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("kind", "FIRED"):
        values = node.value.values if isinstance(node.value, ast.Dict) else [node.value]
        yield from (kind for one in values for kind in _texts(one) if "." in kind and _KIND.fullmatch(kind))


def _texts(value: ast.expr) -> Iterator[str]:
    """The texts an expression may give."""
    for one in (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


# Codes


def codes() -> dict[str, tuple[str, str]]:
    """Code -> what it means, what to do."""
    written = yaml.safe_load((FOLDER / "codes.yaml").read_text(encoding="utf-8"))
    return {code: (str(means), str(remedy)) for code, (means, remedy) in written.items()}


def codes_page() -> str:
    known, ends = codes(), found_codes()
    rows = [
        (f"`{code}`", known[code][0], ", ".join(sorted(where)) or "a call", known[code][1])
        for code, where in sorted(ends.items())
        if code in known
    ]
    checked = [
        (f"`{code}`", "warning" if code in findings._WARNINGS else "error", *known[code])
        for code in findings.CODES
        if code in known
    ]
    intro = (
        f"{_MADE} A code is for programs and for looking things up; the message beside it says what happened this "
        "time, and names the field. A code that ends a call goes to the model, and the run goes on."
    )
    return _page(
        "Codes",
        intro,
        "## Of calls, runs and commands",
        "The number after a command is its exit code.",
        _table(("code", "means", "ends", "what to do"), rows),
        "## Of definitions",
        "What `officina graph validate` finds. An error refuses the definition; a warning never does.",
        _table(("code", "severity", "means", "what to do"), checked),
    )


def found_codes() -> dict[str, set[str]]:
    """Codes that the code raises -> what they end."""
    found: dict[str, set[str]] = {"unknown": {"a call"}, "network_blocked": {"a call"}}
    for node in _nodes():
        if isinstance(node, ast.ClassDef) and node.name in _ENDS:
            for one in node.body:
                if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant):
                    found.setdefault(str(one.value.value), set()).add(_ENDS[node.name])
        if isinstance(node, ast.Call):
            for code in _codes_of(node):
                found.setdefault(code, set()).update({_ENDS[_called(node)]} if _called(node) in _ENDS else ())
    return found


def _codes_of(call: ast.Call) -> Iterator[str]:
    given: list[ast.expr] = [one.value for one in call.keywords if one.arg == "code"]
    if _called(call) in ("RunFailure", "SkillError", "ExpressionError"):
        given += call.args[:1]
    yield from (code for one in given for code in _texts(one))


if __name__ == "__main__":
    for file, text in pages().items():
        (FOLDER / file).write_text(text, encoding="utf-8")
