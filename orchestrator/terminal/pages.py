"""The pages of `show`, `list`, `signals` and `skills`: views, laid out for reading. The JSON of a view is the contract;
a page may change."""

import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator import trees
from orchestrator.terminal import children
from orchestrator.terminal.frames import STYLES
from orchestrator.terminal.outline import outline, under
from orchestrator.terminal.rendering import answer_command
from orchestrator.terminal.wording import clock, glyph, money, one_line, several, size, visible, word
from orchestrator.trees import Child, Fanout
from registry.base import Json
from registry.jsontext import compact

#: Columns of a page that goes into a file or a pipe.
PIPE_WIDTH = 160

View = dict[str, Any]


def console() -> Console:
    """Standard output, taking text as it is: no markup, no emoji names, no highlighting."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(highlight=False, emoji=False, markup=False, width=width)


def print_project(project: View, fanouts: Mapping[str, Fanout]) -> None:
    """One project: state, tasks with their children at work (by the parent's id), what waits, files."""
    out = console()
    out.print(Text.assemble((one_line(project["title"], 200), "bold"), "  ", _state(project["status"])))
    out.print(Text(_facts(project), style="dim"))
    if project.get("reason"):
        out.print(Text(one_line(project["reason"])))
    out.print(_grid([("project", project["id"]), ("workspace", project["workspace"])]))
    if project["status"] == "planning":
        print_plan(out, project)
    else:
        _section(out, "", _tasks(project["tasks"], fanouts))
    for task in project["tasks"]:
        if task["status"] == "failed":
            out.print(Text(f"again: officina retry {task['id']}   ({task['key']})"))
    waiting = [signal for signal in project["signals"] if signal["status"] == "open"]
    if waiting:
        _section(out, "Waits for you", _signals(waiting))
    if project["unknown"]:
        _section(out, "May have happened", _unknown(project["unknown"]))
    if project["files"]:
        _section(out, "Files", _files(project["files"]))


def print_plan(out: Console, project: View) -> None:
    """A plan that waits for its start, and what to do with it."""
    plan = project.get("plan")
    if plan is None:
        _section(out, "", Text("the planner makes tasks of the brief", style="dim"))
        return
    for name in ("goal", "summary", "note"):
        if plan.get(name):
            out.print()
            out.print(Text.assemble((f"{name}  ", "dim"), one_line(plan[name], 4_000)))
    _section(out, "", _planned(plan["tasks"]))
    steps = [
        ("start it", f"officina start {project['id']}"),
        ("change it", f"officina show {project['id']} --plan > plan.yaml"),
        ("", f"officina start {project['id']} --plan plan.yaml"),
    ]
    _section(out, "", _grid(steps))


def _planned(tasks: Sequence[View]) -> Table:
    by_key = {task["key"]: task for task in tasks}
    table = _table("task", "role", "tier", "skills", "leaves", "does")
    for line in outline({key: task["dependsOn"] for key, task in by_key.items()}):
        task = by_key[line.key]
        also = f"  also after {', '.join(line.also_after)}" if line.also_after else ""
        table.add_row(
            Text(f"{line.guides}{task['key']}{also}", overflow="fold"),
            one_line(task.get("agent") or task["role"], 40),
            task.get("tier", "as its agent"),
            one_line(", ".join(task["skills"]), 200) or "as its role",
            Text(one_line(", ".join(task["deliverables"]), 200), overflow="fold"),
            Text(one_line(task["instruction"], 300), overflow="fold"),
        )
    return table


def print_projects(found: Sequence[View]) -> None:
    """A line a project."""
    table = _table("id", "title", "state", "tasks", "cost", "created")
    for project in found:
        table.add_row(
            project["id"],
            Text(one_line(project["title"], 60), overflow="fold"),
            Text("◆ plan ready", style=STYLES["needs_input"])
            if project.get("planReady")
            else _state(project["status"]),
            f"{project['endedTasks']} of {project['tasks']}" if project["tasks"] else "",
            money(project["costUsd"], incomplete=project.get("costIncomplete", False)),
            _time(project["createdAt"]),
        )
    console().print(table if found else "no projects yet: officina submit FILE makes one")


def print_skills(found: Sequence[View]) -> None:
    """A line a skill."""
    table = _table("name", "does", "operations", "effect")
    for skill in found:
        title = skill["title"] if skill.get("wired", True) else f"{skill['title']} (not set up)"
        table.add_row(skill["name"], title, ", ".join(skill["operations"]) or "none", skill["effect"])
    console().print(table if found else "no skills are registered")


def print_skill(skill: View) -> None:
    """One skill and the fields of its input and output."""
    out = console()
    out.print(Text.assemble((skill["name"], "bold"), f"  {skill['title']}"))
    out.print(Text(skill["description"]))
    out.print()
    asks = "always: it acts outside Officina" if skill["worldActing"] else "as the agent's permissions say"
    facts = [("operations", ", ".join(skill["operations"]) or "none"), ("effect", skill["effect"])]
    here = "yes" if skill.get("wired", True) else "no: a call says that nothing happened, and what is missing"
    out.print(_grid([*facts, ("seconds", f"{skill['timeoutS']:g}"), ("asks", asks), ("set up here", here)]))
    for name in ("inputSchema", "outputSchema"):
        _section(out, name.removesuffix("Schema"), _schema(skill[name]))


def print_servers(found: Sequence[View]) -> None:
    """A line a server; under it what it offers, or why it does not."""
    table = _table("server", "where", "state", "tools")
    for one in found:
        about = Text(one_line(one["where"], 160), overflow="fold")
        if one["reason"]:
            about.append(f"\n{one_line(one['reason'], 300)}", style="dim")
        for lost in one["leftOut"]:
            about.append(
                f"\nleft out: {one_line(lost['tool'] or '-', 80)}: {one_line(lost['reason'], 200)}", style="dim"
            )
        names = Text("\n".join(tool["name"] for tool in one["tools"]))
        table.add_row(Text(one["id"], style="bold"), about, one["state"], names)
    console().print(table if found else "no servers are configured; docs/mcp.md shows how")


def print_documents(found: Sequence[View]) -> None:
    """A line a document."""
    table = _table("document", "about", "files", "from")
    for book in found:
        about = Text(one_line(book["description"], 200))
        if book["whenToUse"]:
            about.append(f"\n{one_line(book['whenToUse'], 200)}", style="dim")
        place = "shipped" if book["shipped"] else one_line(book["path"], 120)
        table.add_row(Text(book["name"], style="bold"), about, str(len(book["files"])), Text(place, overflow="fold"))
    console().print(table if found else "there are no documents")


def print_document(book: View, text: str) -> None:
    """One document, as an agent reads it."""
    out = console()
    out.print(Text.assemble((book["name"], "bold"), f"  {one_line(book['description'], 400)}"))
    out.print(
        _grid([("when", book["whenToUse"] or "-"), ("files", ", ".join(book["files"]) or "-"), ("path", book["path"])])
    )
    out.print()
    out.print(Text(visible(text)))


def print_connections(found: Sequence[View]) -> None:
    """A line a connection; its secrets by name only."""
    table = _table("connection", "kind", "settings", "secrets")
    for one in found:
        config = ", ".join(f"{key}={_brief(value)}" for key, value in one["config"].items())
        table.add_row(
            Text(one["name"], style="bold"), one["kind"], Text(one_line(config, 200)), ", ".join(one["secrets"])
        )
    console().print(table if found else "nothing is connected; `officina connections set --help`")


def print_keys(found: Sequence[View]) -> None:
    """A line a key; those that are of no use any more say so."""
    table = _table("key", "id", "may", "used", "until")
    for one in found:
        used = _time(one["lastUsedAt"]) if one["lastUsedAt"] else "never"
        name = Text(one_line(one["name"], 80), style="bold")
        table.add_row(name, one["id"], ", ".join(one["scopes"]), used, _until(one))
    console().print(table if found else "no keys yet; `officina keys add NAME` makes one")


def _until(key: View) -> str:
    """How long a key is of use."""
    if key["revokedAt"]:
        return "revoked"
    if not key["expiresAt"]:
        return "you revoke it"
    gone = key["expiresAt"] <= time.time() * 1000
    return f"{'expired ' if gone else ''}{_time(key['expiresAt'])}"


def _brief(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)


def print_presets(found: Sequence[View]) -> None:
    """A line a preset; under one that cannot run here, what it lacks."""
    table = _table("preset", "does", "budget", "asks for")
    for preset in found:
        budget = preset["budget"] or {}
        limits = [f"{budget['maxSteps']} steps"] if "maxSteps" in budget else []
        limits += [clock(budget["deadlineMs"])] if "deadlineMs" in budget else []
        asks = [name for name, gate in preset["permissions"].items() if gate == "ask"]
        about = Text(one_line(preset["description"] or preset["role"], 200))
        if preset["lacks"]:
            about.append(f"\ncannot run here: {_lacks(preset['lacks'])}", style="dim")
        table.add_row(Text(preset["id"], style="bold"), about, ", ".join(limits), ", ".join(asks) or "nothing")
    console().print(table if found else "there are no presets")


def _lacks(found: Sequence[View]) -> str:
    more = f"; and {len(found) - 3} more (--json lists them)" if len(found) > 3 else ""
    return "; ".join(one_line(lack["message"], 100) for lack in found[:3]) + more


def _section(out: Console, head: str, body: RenderableType) -> None:
    out.print()
    if head:
        out.print(Text(head, style="bold"))
    out.print(body)


def _facts(project: View) -> str:
    done = sum(task["endedAt"] is not None for task in project["tasks"])
    parts = [f"{done} of {several(len(project['tasks']), 'task')}"] if project["tasks"] else []
    parts.append(money(project["costUsd"], incomplete=project.get("costIncomplete", False)))
    if project["endedAt"]:
        parts.append(f"took {clock(project['endedAt'] - project['createdAt'])}")
    return "  ".join([*parts, f"submitted {_time(project['createdAt'])}"])


def _tasks(tasks: Sequence[View], fanouts: Mapping[str, Fanout]) -> Table:
    by_key = {task["key"]: task for task in tasks}
    table = _table("task", "state", "agent", "cost", "time", "what came of it")
    for line in outline({key: task["dependsOn"] for key, task in by_key.items()}):
        task = by_key[line.key]
        status, fanout = task["status"], trees.of_root(fanouts, (run["id"] for run in task["runs"]))
        also = f"  also after {', '.join(line.also_after)}" if line.also_after else ""
        spent = clock(task["endedAt"] - task["startedAt"]) if task["endedAt"] and task["startedAt"] else ""
        table.add_row(
            Text(f"{line.guides}{glyph(status)} {task['key']}{also}", overflow="fold"),
            Text(word(status), style=STYLES.get(status, "")),
            one_line(task["agent"], 30),
            money(task["costUsd"], incomplete=task.get("costIncomplete", False)),
            spent,
            Text(children.summary(fanout) if fanout is not None else _outcome(task), overflow="fold"),
        )
        for child in children.below(fanout, _place) if fanout is not None else ():
            state = Text(word(child.status), style=STYLES.get(child.status, "")) if child.status else ""
            table.add_row(Text(f"{under(line.guides)}{child.guides}{child.name}"), state, "", "", "", Text(child.now))
    return table


def _place(child: Child) -> str:
    """Where a running child stands; what exactly it does is for `watch` to tell."""
    return f"at {one_line(child.node or 'its start', 40)}, {several(child.steps, 'step')}"


def _outcome(task: View) -> str:
    if task["error"]:
        node = f" (at {task['error']['node']})" if task["error"].get("node") else ""
        return one_line(f"{task['error']['code']}: {task['error']['message']}{node}", 400)
    if task.get("reason"):
        return one_line(task["reason"], 400)
    return one_line(task["output"] if task["output"] is not None else "", 100)


def _signals(found: Sequence[View]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    for signal in found:
        table.add_row(Text(f"◆ {one_line(signal['title'], 200)}", style="yellow"))
        table.add_row(Text("  " + answer_command(signal)))
    return table


def _unknown(found: Sequence[View]) -> Table:
    """Calls whose worker died in the middle, and the command that says what became of them."""
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold")
    for call in found:
        words = "its run asks whether to do it again" if call["where"] == "asked" else "its run went on without it"
        table.add_row(
            Text(f"? {one_line(call['name'], 60)}, by {one_line(call['agent'], 40)}: {words}", style="yellow")
        )
        several = sum(other["runId"] == call["runId"] for other in found) > 1
        which = f" --call {shlex.quote(call['callId'])}" if several else ""
        table.add_row(Text(f"  officina repair {call['runId']}{which} --result JSON | --retry | --skip"))
    return table


def _files(found: Sequence[View]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for file in found:
        table.add_row(size(file["bytes"]), Text(visible(file["path"])))
    return table


def _schema(schema: dict[str, Json]) -> RenderableType:
    required = set(schema.get("required", []))
    table = Table.grid(padding=(0, 2))
    for _ in range(3):
        table.add_column(overflow="fold")
    for name, field in schema.get("properties", {}).items():
        default = f"default {field['default']!r}" if "default" in field else "optional"
        need = "required" if name in required else default
        table.add_row(name, _kind(field), Text(f"{need}  {field.get('description', '')}".rstrip()))
    return table if table.row_count else Text("any JSON" if not schema else str(schema.get("type", "none")))


def _kind(field: dict[str, Json]) -> str:
    return str(field.get("type") or "/".join(str(part.get("type", "any")) for part in field.get("anyOf", [])) or "any")


def _state(status: str) -> Text:
    return Text(f"{glyph(status)} {word(status)}", style=STYLES.get(status, ""))


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _table(*heads: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


def _grid(rows: Sequence[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(value))
    return table
