"""Writes the reference of the skills, a page each, into `skills/`, and of the packs, one page: `make skill-pages`."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from registry.base import Json
from registry.packs import PACKS, Pack
from registry.skills import catalogue
from registry.skills.contract import ModelContract
from registry.skills.skill import Skill

FOLDER = Path(__file__).parent / "skills"
PACKS_PAGE = Path(__file__).parent / "packs.md"
#: Inputs that are good, by skill; a test checks them.
EXAMPLES: dict[str, Json] = json.loads((FOLDER / "examples.json").read_text(encoding="utf-8"))

#: What a call may come to beside its own faults, by the ports it uses.
_OF_EVERY = ("invalid_input", "timeout", "cancelled", "tool_failed")
_OF_PORT = {
    "net": ("network_blocked", "network_error", "remote_error", "too_large"),
    "workspace": ("path_escape", "not_found", "conflict", "quota", "too_large"),
    "sandbox": ("sandbox_unavailable",),
    "connections": ("not_allowed", "remote_error", "network_error"),
    "llm": ("remote_error", "budget_exceeded", "invalid_output"),
    "images": ("remote_error", "budget_exceeded", "invalid_output"),
    "memory": ("quota",),
    "signals": ("quota",),
    "schedules": ("quota",),
    "studio": ("conflict", "quota"),
}
_MEANING = {
    "agent_invalid": "the agent that is meant has faults and cannot run here",
    "handoff_model_unresolved": "the agent that is meant has no model here",
    "blocked": "the name is one that file tools do not touch",
    "budget_exceeded": "its task or project has no money left for it",
    "cancelled": "its project or run was cancelled",
    "conflict": "something of this name is there already",
    "denied": "a person said no, or its agent may not; in a child run also what needs a person",
    "domain_error": "mathematics: 1/0, ln(0)",
    "invalid_input": "the input does not fit; the message names the field",
    "invalid_output": "what a model answered does not fit",
    "network_blocked": "the network guard refuses the address",
    "network_error": "no such name, no route, TLS, a broken connection",
    "not_allowed": "the connection, or the site's robots.txt, does not allow it",
    "not_found": "there is nothing of this name",
    "path_escape": "the path leads out of the workspace",
    "quota": "there is too much of it already",
    "rate_limited": "too many calls for now; `retryAfter` says how long",
    "remote_error": "the other side answered with a failure",
    "sandbox_unavailable": "this machine has no sandbox; nothing ran",
    "no_control_node": "the running graph has no node that would do it; nothing was queued",
    "timeout": "it took longer than it may",
    "too_large": "what was found, made or sent back is too large",
    "unsupported_type": "the file is of a kind that this cannot take",
    "tool_failed": "a fault on our side; the log has it",
    "unknown": "the worker died in the middle: it may have happened",
    "approval_required": "a person has to say yes first",
}


def pages() -> dict[str, str]:
    """Name of the file in `skills` -> its text."""
    found = list(catalogue.build())
    return {"README.md": _index(found), **{f"{skill.name}.md": _page(skill) for skill in found}}


def _index(found: list[Skill]) -> str:
    lines = [
        "# Skills",
        "",
        "What agents can use. These pages are made from the code (`make skill-pages`); `officina skills show NAME`",
        "says the same, and `officina skills invoke NAME --input JSON` calls one.",
        "",
        "| skill | does | asks | in the documentation |",
        "|---|---|---|---|",
    ]
    for skill in found:
        asks = "always" if skill.world_acting else "as permitted"
        documented = "yes" if skill.documented else "no"
        lines.append(f"| [{skill.name}]({skill.name}.md) | {skill.title} | {asks} | {documented} |")
    return "\n".join(lines) + "\n"


def _page(skill: Skill) -> str:
    parts = [f"# {skill.name}", skill.title + ".", skill.description, _facts(skill)]
    parts += ["## Input", _fields(skill.input.schema)]
    parts += ["## Output", _fields(skill.output.schema if skill.output else {})]
    if skill.name in EXAMPLES:
        text = json.dumps(EXAMPLES[skill.name], ensure_ascii=False)
        parts += ["## Example", f"```sh\nofficina skills invoke {skill.name} --input '{text}'\n```"]
    parts += ["## Errors", _errors(skill)]
    return "\n\n".join(parts) + "\n"


def _operations(skill: Skill) -> str:
    return "depend on the input" if callable(skill.operations) else ", ".join(sorted(skill.operations)) or "none"


def _effect(skill: Skill) -> str:
    return "depends on the input" if callable(skill.effect) else skill.effect


def _facts(skill: Skill) -> str:
    rows = [
        ("name for models", f"`{skill.wire_name}`"),
        ("operations", _operations(skill)),
        ("effect", _effect(skill)),
        (
            "asks a person",
            "always: it acts outside Officina" if skill.world_acting else "as its agent's permissions say",
        ),
        ("seconds", f"{skill.timeout_s:g}"),
        ("uses", ", ".join(sorted(skill.needs)) or "nothing"),
        ("rate", f"`OFFICINA_RATES__{skill.rate.upper()}` per owner" if skill.rate else "none of its own"),
        ("costs money", "yes" if skill.cost_bearing else "no"),
        ("output", "text from outside, fenced as data" if skill.open_world else "our own"),
        ("generators may name it", "yes" if skill.catalogued else "no"),
    ]
    return _table(("fact", "value"), rows)


def _fields(schema: dict[str, Json]) -> str:
    rows = list(_rows(schema, schema.get("$defs", {}), ""))
    return _table(("field", "type", "default", "rule"), rows) if rows else "Any JSON." if not schema else "Nothing."


def _rows(schema: dict[str, Json], defs: dict[str, Json], above: str, depth: int = 0) -> Iterator[tuple[str, ...]]:
    required = set(schema.get("required", ()))
    for name, written in schema.get("properties", {}).items():
        field, nullable = _resolved(written, defs)
        default = "required" if name in required else _default(written)
        yield f"`{above}{name}`", _kind(field, defs, nullable), default, _rule(written, field)
        inner, _ = _resolved(field.get("items", {}), defs) if field.get("type") == "array" else (field, False)
        mark = "[]" if field.get("type") == "array" else ""
        for one in [inner, *(_resolved(part, defs)[0] for part in inner.get("oneOf") or inner.get("anyOf") or ())]:
            if one.get("properties") and depth < 3:
                yield from _rows(one, defs, f"{above}{name}{mark}.", depth + 1)


def _resolved(schema: dict[str, Json], defs: dict[str, Json]) -> tuple[dict[str, Json], bool]:
    """A schema without references, and whether null is a value as well."""
    if "$ref" in schema:
        return {
            **defs.get(schema["$ref"].rpartition("/")[2], {}),
            **{k: v for k, v in schema.items() if k != "$ref"},
        }, False
    choices = schema.get("anyOf", [])
    real = [one for one in choices if one.get("type") != "null"]
    if choices and len(real) == 1 and len(choices) == 2:
        return _resolved(real[0], defs)[0], True
    return schema, False


def _kind(field: dict[str, Json], defs: dict[str, Json], nullable: bool) -> str:
    if "const" in field:
        kind = json.dumps(field["const"])
    elif "enum" in field:
        kind = ", ".join(json.dumps(one) for one in field["enum"])
    elif "anyOf" in field or "oneOf" in field:
        parts = field.get("anyOf") or field.get("oneOf") or ()
        kind = " or ".join(dict.fromkeys(_kind(_resolved(one, defs)[0], defs, False) for one in parts))
    elif field.get("type") == "array":
        kind = f"list of {_kind(_resolved(field.get('items', {}), defs)[0], defs, False)}"
    elif field.get("type") == "object" and "properties" not in field:
        values = field.get("additionalProperties")
        kind = "map" if not isinstance(values, dict) else f"map of {_kind(_resolved(values, defs)[0], defs, False)}"
    else:
        types = field.get("type", "any JSON")
        kind = " or ".join(types) if isinstance(types, list) else str(types)
    return f"{kind} or null" if nullable else kind


def _default(field: dict[str, Json]) -> str:
    if field.get("default") is None:
        return "none"
    return f"`{json.dumps(field['default'], ensure_ascii=False)}`"


def _rule(written: dict[str, Json], field: dict[str, Json]) -> str:
    said = str(written.get("description") or field.get("description") or "")
    inner = field.get("items", {}) if field.get("type") == "array" else {}
    bounds = [*_bounds(field), *(f"each {bound}" for bound in _bounds(inner))]
    return "; ".join(part for part in [said.rstrip("."), *bounds] if part)


def _bounds(field: dict[str, Json]) -> Iterator[str]:
    for low, high, what in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
        ("minProperties", "maxProperties", " entries"),
    ):
        least, most = field.get(low), field.get(high)
        if least is not None and most is not None:
            yield f"{least} to {most}{what}"
        elif least is not None:
            yield f"{least}{what} or more"
        elif most is not None:
            yield f"{most}{what} at most"
    if "exclusiveMinimum" in field:
        yield f"more than {field['exclusiveMinimum']}"
    if "pattern" in field:
        yield f"`{field['pattern']}`"


def _errors(skill: Skill) -> str:
    codes = {*_OF_EVERY, *(code for port in skill.needs for code in _OF_PORT.get(port, ()))}
    if skill.name == "math.evaluate":
        codes |= {"domain_error", "too_large"}
    if skill.rate:
        codes.add("rate_limited")
    if skill.world_acting:
        codes |= {"approval_required", "denied"}
    if skill.effect == "once" or callable(skill.effect):
        codes.add("unknown")
    return _table(("code", "when"), [(f"`{code}`", _MEANING[code]) for code in sorted(codes)])


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines)


def packs_page() -> str:
    """The text of `packs.md`."""
    intro = (
        "Packs give agents tools that are no skills of the catalogue: their own files and commands, plans, memory, "
        "other agents. An agent holds a pack by naming it: `packs: {files: true}`, or with settings: "
        '`packs: {shell: {spec: {allowlist: ["git status"]}, disabledTools: []}}`. This page is made from the code '
        "(`make skill-pages`)."
    )
    overview = _table(
        ("pack", "what for", "tools"),
        [(f"[{p.name}](#{p.name})", p.about, ", ".join(f"`{tool.name}`" for tool in p.tools)) for p in PACKS.values()],
    )
    common = (
        "Operations are what an agent's permissions speak of; a tool without any asks nobody. After a crash a `pure` "
        "or `idempotent` call runs again, and a `once` call that had begun is `unknown`. Beside its own faults every "
        "call may end in " + ", ".join(f"`{code}`" for code in _OF_EVERY) + "."
    )
    parts = ["# Packs", intro, overview, common, *(_pack(pack) for pack in PACKS.values())]
    return "\n\n".join([*parts, "## What a fault means", _meanings()]) + "\n"


def _pack(pack: Pack) -> str:
    settings = _fields(ModelContract(pack.spec).schema)
    parts = [f"## {pack.name}", f"{pack.about[:1].upper()}{pack.about[1:]}."]
    parts += ["It has no settings." if settings == "Nothing." else f"Settings (`spec`):\n\n{settings}"]
    heads = ("tool", "operations", "effect", "seconds", "faults of its own")
    rows = [
        (f"`{t.name}`", _operations(t), _effect(t), f"{t.timeout_s:g}", ", ".join(f"`{c}`" for c in t.fails) or "none")
        for t in pack.tools
    ]
    parts += [_table(heads, rows)]
    parts += [f"### {tool.name}\n\n{tool.description}\n\n{_fields(tool.input.schema)}" for tool in pack.tools]
    return "\n\n".join(parts)


def _meanings() -> str:
    codes = sorted({*_OF_EVERY, *(code for pack in PACKS.values() for tool in pack.tools for code in tool.fails)})
    return _table(("code", "when"), [(f"`{code}`", _MEANING.get(code, "as its words say")) for code in codes])


if __name__ == "__main__":
    PACKS_PAGE.write_text(packs_page(), encoding="utf-8")
    made = pages()
    for old in FOLDER.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
