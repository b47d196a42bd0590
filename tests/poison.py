"""Every text in the database that a model, a page, a mail, a file or a person may have written, made hostile.

By construction: each text column of each table is either of our own making (`_OURS`) or is poisoned, so that a new
column is in one of the two before the tests pass.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from sqlalchemy import Table, Text, select, update

from orchestrator.settings import Settings
from orchestrator.store import kept, tables  # noqa: F401 - every table there is
from orchestrator.store.columns import JsonText, metadata
from orchestrator.store.database import get_database

#: Markup, a script, marks that turn the reading direction, controls, what draws nothing, signs of templates.
TAIL: Final = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script><b>bold</b>"
    "\u202egnp.exe\u202c\x1b[31m\u200b\x07{{ 7*7 }}{% raw %}&lt;i&gt;\"'`"
)
#: What a check forbids controls in still may look like markup.
CHECKED: Final = "<img src=x onerror=alert(1)>{{ 7*7 }}"
#: Characters that no page may hold as they are.
UNSEEN: Final = frozenset("\u202e\u202c\x1b\u200b\x07")

#: Names of columns that hold what Officina itself makes or has checked to be a word of its own, in every table.
_OURS_EVERYWHERE: Final = frozenset(
    {
        *(
            "id",
            "kind",
            "status",
            "mode",
            "approvals",
            "digest",
            "history",
            "permissions",
            "origin",
            "scopes",
            "secret",
        ),
        *("content_hash", "name_key", "call_key", "client_key", "dedupe_key", "creator_key", "call_id", "call_key"),
        *(
            "definition_digest",
            "file_digest",
            "trace_parent",
            "namespace",
            "space",
            "embedded_by",
            "version",
            "maker",
            "tier",
        ),
    }
)
#: Tables whose rows nobody can change, and that no page shows.
_FOR_GOOD: Final = frozenset({"audit"})
#: And of single tables.
_OURS: Final = frozenset(
    {
        *(
            "agents.key",
            "files.skill",
            "requests.approved",
            "requests.skill",
            "calls.outcome",
            "checkpoints.counters",
            "checkpoints.speaker",
            "deliveries.key",
        ),
        *("connections.secrets", "files.sha256", "firings.result", "leases.name", "leases.holder", "memory_words.word"),
        *("plugins.files", "plugins.granted", "plugins.manifest", "projects.script", "projects.workspace"),
        *("repairs.how", "runs.resumed_by", "runs.waiting_on", "runs.window", "schedules.last_result"),
        *(
            "schedules.spec",
            "schedules.timezone",
            "signals.execution",
            "signals.priority",
            "tasks.key",
            "workers.routing",
        ),
        *("teams.member_agent_ids", "tasks.skills", "projects.skills", "checkpoints.output_ref"),
    }
)
#: Poisoned, and on no page of the desk.
NOT_SHOWN: Final = frozenset(
    {
        *("agenda_items.description", "agenda_items.result_note", "agenda_items.role", "agenda_items.title"),
        *("agendas.overview", "api_keys.name", "calls.result", "checkpoints.memo", "checkpoints.output"),
        *("checkpoints.patch", "checkpoints.resume", "firings.reason", "messages.body", "plugins.reason"),
        *("repairs.by", "repairs.reason", "repairs.result", "runs.result", "tasks.input", "triggers.message"),
        *(
            "agents.role",
            "projects.plan_before",
            "requests.input",
            "requests.result",
            "webhooks.action",
            "webhooks.detail",
            "webhooks.name",
            "webhooks.reason",
            "sources.text",
        ),
    }
)
#: Keys of JSON whose values are checked words, by column.
_KEPT: Final[Mapping[str, frozenset[str]]] = {
    "connections.config": frozenset({"kind"}),
    "generators.inputs": frozenset({"key", "type"}),
    "generators.steps": frozenset({"key", "dependsOn"}),
    "projects.plan": frozenset({"key", "dependsOn"}),
    "schedules.action": frozenset({"kind"}),
    "signals.schema": frozenset({"type"}),
}
#: What of an agent's definition is free text.
_FREE: Final = frozenset({"name", "description", "role", "instructions", "label"})


def name(table: Table, column: Any) -> str:
    return f"{table.name}.{column.name}"


def mark(place: str, number: int, tail: str = TAIL) -> str:
    """Words that say which column they are from."""
    return f"«{place}»{number} {tail}"


def written() -> dict[str, tuple[Table, Any]]:
    """Every column that somebody else's words may stand in."""
    return {
        name(table, column): (table, column)
        for table in metadata.sorted_tables
        if table.name not in _FOR_GOOD
        for column in table.c
        if isinstance(column.type, Text | JsonText)
        and column.name not in _OURS_EVERYWHERE
        and not column.name.endswith("_id")
        and name(table, column) not in _OURS
    }


def poison(settings: Settings) -> None:
    """Writes a mark into every such column of every row."""
    by_table: dict[Table, list[Any]] = {}
    for table, column in written().values():
        by_table.setdefault(table, []).append(column)

    def write(connection: Any) -> None:
        for table, columns in by_table.items():
            keys = list(table.primary_key.columns)
            for number, row in enumerate(connection.execute(select(table)).all()):
                old = row._mapping
                values = {column.name: _hostile(table, column, old[column.name], number) for column in columns}
                mine = [key == old[key.name] for key in keys]
                connection.execute(update(table).where(*mine).values(values))

    get_database(settings).write(write)


def _hostile(table: Table, column: Any, value: Any, number: int) -> Any:
    place = name(table, column)
    if not isinstance(column.type, JsonText):
        return mark(place, number)
    if place == "definitions.body":
        return _only(value, mark(place, number, CHECKED))
    words = mark(place, number)
    if place == "signals.schema":
        value = _renamed(value, words)
    return _leaves(value, lambda: words, _KEPT.get(place, frozenset()))


def _leaves(value: Any, make: Callable[[], str], keep: frozenset[str]) -> Any:
    if isinstance(value, str):
        return make()
    if isinstance(value, list):
        return [_leaves(one, make, keep) for one in value]
    if isinstance(value, dict):
        return {key: one if key in keep else _leaves(one, make, keep) for key, one in value.items()}
    return value


def _only(value: Any, words: str) -> Any:
    """An agent's definition with free texts replaced."""
    if isinstance(value, list):
        return [_only(one, words) for one in value]
    if isinstance(value, dict):
        return {
            key: words if key in _FREE and isinstance(one, str) else _only(one, words) for key, one in value.items()
        }
    return value


def _renamed(schema: Any, words: str) -> Any:
    """A schema whose fields are called something hostile."""
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        return schema
    return schema | {"properties": {f"{key} {words}": one for key, one in schema["properties"].items()}}
