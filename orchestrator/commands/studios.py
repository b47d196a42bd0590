"""The studio that commands work on: the rows here, or one elsewhere where OFFICINA_API_URL is set. Same words, same
output."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from orchestrator.commands.output import looking
from registry.base import Json
from registry.errors import Refused

if TYPE_CHECKING:
    from orchestrator.client import Client
    from orchestrator.records import Event
    from orchestrator.settings import Settings
    from orchestrator.terminal.tracing import Names
    from orchestrator.trees import Fanout
    from orchestrator.watch import Source

View = dict[str, Json]


class Studio(Protocol):
    """What commands ask of a studio. Ids may be parts of ids."""

    def submit(self, source: str, *, key: str | None, mode: str | None, rehearse: bool, plan_only: bool) -> View:
        """{id, status, tasks, created}"""
        ...

    def start(self, given: str, plan: Json) -> View:
        """{id, status, tasks} of a project whose plan waited; with another plan where one is given."""
        ...

    def plan_again(self, given: str, note: str) -> str:
        """The whole id of a project whose plan waited, and that is planned anew."""
        ...

    def project(self, given: str) -> "tuple[View, Mapping[str, Fanout]]":
        """One project whole, and its fan-outs under way by the parent's id."""
        ...

    def projects(self, status: str | None, limit: int) -> list[View]: ...

    def trace(self, given: str, *, after: int, follow: bool) -> "tuple[Names, Iterator[Event]]": ...

    def source(self, given: str) -> "Source":
        """What `watch` looks at."""
        ...

    def cancel(self, given: str) -> str:
        """The whole id of what was cancelled; so with the moves below."""
        ...

    def retry(self, given: str) -> str: ...

    def fork(self, given: str, at: int) -> str:
        """The new run's id."""
        ...

    def wake(self, given: str) -> str: ...

    def signals(self, status: str | None, limit: int) -> tuple[list[View], Mapping[str, str]]:
        """Signals, and what the ids in them are called."""
        ...

    def signal(self, given: str) -> tuple[View, Mapping[str, str]]: ...

    def answer(self, given: str, said: dict[str, Json]) -> str: ...

    def dismiss(self, given: str) -> str: ...


def studio() -> Studio:
    """The studio of this process's settings."""
    from orchestrator.settings import get_settings

    settings = get_settings()
    if settings.api_url is None:
        return Here(settings)
    from orchestrator.commands.shelves import elsewhere

    return Elsewhere(elsewhere(settings))


class Here:
    """Rows of a database that this process reaches."""

    def __init__(self, settings: "Settings") -> None:
        self._settings = settings
        self._owner = settings.owner

    def submit(self, source: str, *, key: str | None, mode: str | None, rehearse: bool, plan_only: bool) -> View:
        from orchestrator.producer import submit

        made = submit(source, settings=self._settings, key=key, mode=mode, rehearse=rehearse, plan_only=plan_only)
        return made.to_json() | {"created": made.created}

    def start(self, given: str, plan: Json) -> View:
        from orchestrator import held
        from registry.skills import catalogue

        project_id = self._id("project", given)
        ids = held.start(self._settings, catalogue.build(), project_id, plan)
        return {"id": project_id, "status": "running", "tasks": ids}

    def plan_again(self, given: str, note: str) -> str:
        from orchestrator import held
        from registry.skills import catalogue

        project_id = self._id("project", given)
        held.again(self._settings, catalogue.build(), project_id, note, by=self._owner)
        return project_id

    def project(self, given: str) -> "tuple[View, Mapping[str, Fanout]]":
        from orchestrator import lookup, trees, views

        with looking(self._settings) as connection:
            project_id = lookup.project_id(connection, given, self._owner)
            found = views.project(connection, project_id, self._settings)
            return found, trees.under_way(connection, project_id)

    def projects(self, status: str | None, limit: int) -> list[View]:
        from orchestrator import views

        with looking(self._settings) as connection:
            return views.project_list(connection, self._owner, status=status, limit=limit)

    def trace(self, given: str, *, after: int, follow: bool) -> "tuple[Names, Iterator[Event]]":
        from orchestrator.terminal.tracing import Names, lines

        trace_id = self._id("trace", given)
        with looking(self._settings) as connection:
            names = Names.read(connection, trace_id)
        return names, lines(self._settings, trace_id, after=after, follow=follow)

    def source(self, given: str) -> "Source":
        from orchestrator.watch import Rows

        return Rows(self._settings, self._id("project", given))

    def cancel(self, given: str) -> str:
        from orchestrator import control

        project_id = self._id("project", given)
        control.cancel(self._settings, project_id, by=self._owner)
        return project_id

    def retry(self, given: str) -> str:
        from orchestrator import control

        task_id = self._id("task", given)
        control.retry(self._settings, task_id, by=self._owner)
        return task_id

    def fork(self, given: str, at: int) -> str:
        from orchestrator import control

        return control.fork(self._settings, self._id("run", given), at, by=self._owner)

    def wake(self, given: str) -> str:
        from orchestrator import control

        run_id = self._id("run", given)
        control.wake(self._settings, run_id, by=self._owner)
        return run_id

    def signals(self, status: str | None, limit: int) -> tuple[list[View], Mapping[str, str]]:
        from orchestrator import views

        with looking(self._settings) as connection:
            found = views.signal_list(connection, self._owner, status=status, limit=limit)
            return found, views.places(connection, found)

    def signal(self, given: str) -> tuple[View, Mapping[str, str]]:
        from orchestrator import lookup, views

        with looking(self._settings) as connection:
            found = views.signal(connection, lookup.signal_id(connection, given, self._owner))
            return found, views.places(connection, [found])

    def answer(self, given: str, said: dict[str, Json]) -> str:
        from orchestrator.signals import answer

        signal_id = self._id("signal", given)
        answer(self._settings, signal_id, **said, by=self._owner)
        return signal_id

    def dismiss(self, given: str) -> str:
        from orchestrator.signals import dismiss

        signal_id = self._id("signal", given)
        dismiss(self._settings, signal_id, by=self._owner)
        return signal_id

    def _id(self, what: str, given: str) -> str:
        from orchestrator import lookup

        find: Any = getattr(lookup, f"{what}_id")
        with looking(self._settings) as connection:
            return str(find(connection, given, self._owner))


class Elsewhere:
    """A studio's HTTP API."""

    def __init__(self, client: "Client") -> None:
        self._client = client

    def submit(self, source: str, *, key: str | None, mode: str | None, rehearse: bool, plan_only: bool) -> View:
        return self._client.submit(source, key=key, mode=mode, rehearse=rehearse, plan_only=plan_only)

    def start(self, given: str, plan: Json) -> View:
        return self._client.start(given, plan)

    def plan_again(self, given: str, note: str) -> str:
        return str(self._client.plan_again(given, note)["id"])

    def project(self, given: str) -> "tuple[View, Mapping[str, Fanout]]":
        from orchestrator.terminal import underway

        found = self._client.project(given, live=True)
        return found, underway.heard(live).fanouts if (live := found.pop("live", None)) else {}

    def projects(self, status: str | None, limit: int) -> list[View]:
        return self._client.projects(status=status, limit=limit)

    def trace(self, given: str, *, after: int, follow: bool) -> "tuple[Names, Iterator[Event]]":
        from orchestrator.terminal.elsewhere import event_of, nameless, names_of

        try:
            names = names_of(self._client, self._client.project(given))
        except Refused as refused:
            if refused.code != "unknown_project":
                raise
            names = nameless(self._client, given)  # a conversation has a trace, too
        return names, map(event_of, self._client.events(names.project_id, after=after, follow=follow))

    def source(self, given: str) -> "Source":
        from orchestrator.terminal.elsewhere import Remote

        return Remote(self._client, self._client.project(given)["id"])

    def cancel(self, given: str) -> str:
        return str(self._client.cancel(given)["id"])

    def retry(self, given: str) -> str:
        return self._client.retry(given)

    def fork(self, given: str, at: int) -> str:
        return self._client.fork(given, at)

    def wake(self, given: str) -> str:
        return self._client.wake(given)

    def signals(self, status: str | None, limit: int) -> tuple[list[View], Mapping[str, str]]:
        found = self._client.signals(status=status or "all", limit=limit)
        return found, self._places(found)

    def signal(self, given: str) -> tuple[View, Mapping[str, str]]:
        found = self._client.signal(given)
        return found, self._places([found])

    def answer(self, given: str, said: dict[str, Json]) -> str:
        return str(self._client.answer(given, **said)["id"])

    def dismiss(self, given: str) -> str:
        return str(self._client.dismiss(given)["id"])

    def _places(self, found: list[View]) -> dict[str, str]:
        places: dict[str, str] = {}
        for project_id in {one["projectId"] for one in found if one.get("projectId")}:
            try:
                whole = self._client.project(project_id)
            except Refused:
                continue  # a conversation, or gone meanwhile
            places |= {project_id: whole["title"]} | {task["id"]: task["key"] for task in whole["tasks"]}
        return places
