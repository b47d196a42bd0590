"""What a studio keeps besides its projects, as commands work on it: the rows here, or those of a studio elsewhere where
OFFICINA_API_URL is set. Same words, same output."""

import base64
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from orchestrator.commands.agent_shelf import PAGE, AgentsElsewhere, AgentShelf, AgentsHere, View
from orchestrator.commands.output import looking
from registry.errors import Fault, Refused, WrongUse

if TYPE_CHECKING:
    from orchestrator.client import Client
    from orchestrator.settings import Settings
    from registry.generators import Generator

#: Rows of a list at most.
MOST: Final = 1_000


class Shelf(AgentShelf, Protocol):
    """Agents, generators, plugins, schedules, webhooks and what agents look things up in."""

    def generators(self) -> list[View]: ...
    def generator(self, given: str) -> View: ...
    def save_generator(self, made: "Generator") -> View: ...
    def remove_generator(self, given: str) -> None: ...
    def run_generator(self, given: str, inputs: View, *, key: str | None, rehearse: bool) -> View:
        """{id, status, tasks, created}"""
        ...

    def plugins(self) -> list[View]: ...
    def install_plugin(self, source: str, grant: list[str], expect: str | None) -> View:
        """`source`: a path of this machine; at a studio elsewhere a name in its own plugin folder."""
        ...

    def switch_plugin(self, given: str, *, on: bool) -> View: ...
    def remove_plugin(self, given: str) -> None: ...

    def schedules(self) -> list[View]: ...
    def schedule(self, given: str, last: int) -> View:
        """One, with `firings`: what became of its last due times."""
        ...

    def set_schedule(self, given: str, status: str) -> View: ...
    def remove_schedule(self, given: str) -> str:
        """Its whole id."""
        ...

    def hooks(self) -> list[View]: ...
    def add_hook(self, wanted: View) -> View:
        """With its secret. `wanted`: name, agentId, detail, mode, projects, generatorId."""
        ...

    def hook_secret(self, given: str) -> str: ...
    def rotate_hook(self, given: str) -> str: ...
    def set_hook(self, given: str, status: str) -> None: ...
    def remove_hook(self, given: str) -> None: ...

    def sources(self, agent: str | None) -> list[View]: ...
    def remove_source(self, given: str) -> None: ...


def shelf(*, make: bool = False) -> Shelf:
    """The shelf of this process's settings.

    Args:
        make: an SQLite file that is not there is made; else that is refused.
    """
    from orchestrator.settings import get_settings

    settings = get_settings()
    if settings.api_url is not None:
        return Elsewhere(elsewhere(settings))
    if make:
        from orchestrator.store.database import prepare

        prepare(settings)
    else:
        with looking(settings):
            pass
    return Here(settings)


def elsewhere(settings: "Settings") -> "Client":
    """The client of the studio of the settings, closed when this process ends."""
    import atexit

    from orchestrator.client import Client

    client = Client.of(settings)
    atexit.register(client.close)
    return client


class Here(AgentsHere):
    """Rows of a database that this process reaches."""

    def generators(self) -> list[View]:
        from orchestrator import saved

        return [*saved.generators_built_in(), *saved.generator_list(self._settings, limit=PAGE, after=None)]

    def generator(self, given: str) -> View:
        from orchestrator import saved

        return saved.generator(self._settings, given)

    def save_generator(self, made: "Generator") -> View:
        from orchestrator import saved
        from registry.skills import catalogue

        return saved.create_generator(self._settings, catalogue.build(), made)

    def remove_generator(self, given: str) -> None:
        from orchestrator import saved

        saved.remove_generator(self._settings, given)

    def run_generator(self, given: str, inputs: View, *, key: str | None, rehearse: bool) -> View:
        from orchestrator import saved
        from registry.skills import catalogue

        made = saved.run_generator(self._settings, catalogue.build(), given, inputs, key=key, rehearse=rehearse)
        return made.to_json() | {"created": made.created}

    def plugins(self) -> list[View]:
        from orchestrator import plugins

        return plugins.listed(self._settings)

    def install_plugin(self, source: str, grant: list[str], expect: str | None) -> View:
        from pathlib import Path

        from orchestrator import plugins
        from registry.packs.names import taken
        from registry.skills import catalogue

        return plugins.install(self._settings, Path(source), grant, taken=taken(catalogue.build()), expect=expect)

    def switch_plugin(self, given: str, *, on: bool) -> View:
        from orchestrator import plugins

        return plugins.enable(self._settings, given) if on else plugins.disable(self._settings, given)

    def remove_plugin(self, given: str) -> None:
        from orchestrator import plugins

        plugins.remove(self._settings, given)

    def schedules(self) -> list[View]:
        from orchestrator import timetable

        return timetable.listed(self._settings, limit=MOST, after=None)

    def schedule(self, given: str, last: int) -> View:
        from orchestrator import timetable

        schedule_id = self._schedule(given)
        found = timetable.show(self._settings, schedule_id)
        return found | {"firings": timetable.seen(self._settings, schedule_id, last)}

    def set_schedule(self, given: str, status: str) -> View:
        from orchestrator import timetable

        return timetable.change(self._settings, self._schedule(given), title=None, status=status)

    def remove_schedule(self, given: str) -> str:
        from orchestrator import timetable

        schedule_id = self._schedule(given)
        timetable.remove(self._settings, schedule_id)
        return schedule_id

    def hooks(self) -> list[View]:
        from orchestrator import webhooks

        return webhooks.listed(self._settings)

    def add_hook(self, wanted: View) -> View:
        from orchestrator import webhooks

        return webhooks.add(
            self._settings,
            wanted["name"],
            wanted["agentId"],
            detail=wanted["detail"],
            mode=wanted["mode"],
            projects=wanted["projects"],
            generator_id=wanted["generatorId"],
        )

    def hook_secret(self, given: str) -> str:
        from orchestrator import webhooks

        return webhooks.secret(self._settings, given)

    def rotate_hook(self, given: str) -> str:
        from orchestrator import webhooks

        return webhooks.rotate(self._settings, given)

    def set_hook(self, given: str, status: Any) -> None:
        from orchestrator import webhooks

        webhooks.change(self._settings, given, status=status)

    def remove_hook(self, given: str) -> None:
        from orchestrator import webhooks

        webhooks.remove(self._settings, given)

    def sources(self, agent: str | None) -> list[View]:
        from orchestrator import knowledge

        return knowledge.listed(self._settings, self._settings.owner, agent_id=agent)

    def remove_source(self, given: str) -> None:
        from orchestrator import knowledge

        knowledge.remove(self._settings, self._settings.owner, given)

    def _schedule(self, given: str) -> str:
        return meant(given, (row["id"] for row in self.schedules()), "schedule")


class Elsewhere(AgentsElsewhere):
    """A studio's HTTP API."""

    def generators(self) -> list[View]:
        first = self._ask("GET", "studio/generators", params={"limit": str(PAGE)})
        return [*first["builtIn"], *first["items"]]

    def generator(self, given: str) -> View:
        return self._ask("GET", f"studio/generators/{part(given)}")

    def save_generator(self, made: "Generator") -> View:
        return self._ask("POST", "studio/generators", made.to_json())

    def remove_generator(self, given: str) -> None:
        self._ask("DELETE", f"studio/generators/{part(given)}")

    def run_generator(self, given: str, inputs: View, *, key: str | None, rehearse: bool) -> View:
        headers = {"idempotency-key": key} if key else None
        body = {"inputs": inputs, "rehearse": rehearse}
        return self._ask("POST", f"studio/generators/{part(given)}/run", body, headers)

    def plugins(self) -> list[View]:
        return list(self._ask("GET", "plugins")["items"])

    def install_plugin(self, source: str, grant: list[str], expect: str | None) -> View:
        from registry.archives import LAID

        if not LAID.fullmatch(source):
            words = (
                f"{source[:80]!r} is no name: a studio elsewhere installs what lies in its own plugin folder "
                "(OFFICINA_PLUGINS__ROOT there) and takes nothing from this machine; lay the plugin there and give the "
                "name of its folder or archive"
            )
            raise WrongUse(words, faults=[Fault("PATH", "not_there", words)])
        body = {"dir": source, "grant": grant} | ({"expect": expect} if expect is not None else {})
        return self._ask("POST", "plugins", body)

    def switch_plugin(self, given: str, *, on: bool) -> View:
        return self._ask("POST", f"plugins/{part(given)}/{'enable' if on else 'disable'}")

    def remove_plugin(self, given: str) -> None:
        self._ask("DELETE", f"plugins/{part(given)}")

    def schedules(self) -> list[View]:
        found: list[View] = []
        cursor: str | None = None
        while len(found) < MOST:
            more = {"cursor": cursor} if cursor else {}
            page = self._ask("GET", "studio/schedules", params={"limit": str(PAGE)} | more)
            found += page["items"]
            if (cursor := page["next"]) is None:
                break
        return found

    def schedule(self, given: str, last: int) -> View:
        return self._ask("GET", f"studio/schedules/{part(self._schedule(given))}", params={"firings": str(last)})

    def set_schedule(self, given: str, status: str) -> View:
        return self._ask("PATCH", f"studio/schedules/{part(self._schedule(given))}", {"status": status})

    def remove_schedule(self, given: str) -> str:
        schedule_id = self._schedule(given)
        self._ask("DELETE", f"studio/schedules/{part(schedule_id)}")
        return schedule_id

    def hooks(self) -> list[View]:
        return list(self._ask("GET", "studio/hooks")["items"])

    def add_hook(self, wanted: View) -> View:
        return self._ask("POST", "studio/hooks", {name: one for name, one in wanted.items() if one is not None})

    def hook_secret(self, given: str) -> str:
        return str(self._ask("POST", f"studio/hooks/{part(given)}/secret")["secret"])

    def rotate_hook(self, given: str) -> str:
        return str(self._ask("POST", f"studio/hooks/{part(given)}/rotate")["secret"])

    def set_hook(self, given: str, status: str) -> None:
        self._ask("PATCH", f"studio/hooks/{part(given)}", {"status": status})

    def remove_hook(self, given: str) -> None:
        self._ask("DELETE", f"studio/hooks/{part(given)}")

    def sources(self, agent: str | None) -> list[View]:
        return list(self._ask("GET", "studio/knowledge", params={"agentId": agent} if agent else None)["items"])

    def remove_source(self, given: str) -> None:
        self._ask("DELETE", f"studio/knowledge/{part(given)}")

    def add_file(self, name: str, content: bytes, agent: str | None) -> View:
        """{id, how, passages} of a file the studio reads."""
        body = {"name": name, "base64": base64.b64encode(content).decode()} | ({"agentId": agent} if agent else {})
        return self._client.finished(self._ask("POST", "studio/knowledge", body))

    def search(self, query: str, agent: str | None, limit: int) -> list[View]:
        params = {"q": query, "limit": str(limit)} | ({"agentId": agent} if agent else {})
        return list(self._ask("GET", "studio/knowledge/search", params=params)["items"])

    def _schedule(self, given: str) -> str:
        return meant(given, (row["id"] for row in self.schedules()), "schedule")


def meant(given: str, ids: Iterator[str], what: str) -> str:
    """The id that is meant by its end; what fits none is left as it is.

    Raises:
        Refused: `ambiguous_id`.
    """
    there = list(ids)
    if given in there:
        return given
    found = [id_ for id_ in there if len(given) >= 6 and id_.endswith(given.lower())]
    if len(found) > 1:
        raise Refused(f"{given!r} means more than one {what}: {', '.join(found[:5])}", code="ambiguous_id")
    return found[0] if found else given


def part(id_: str) -> str:
    """An id as a part of a path."""
    from orchestrator.client import part as quoted

    return quoted(id_)
