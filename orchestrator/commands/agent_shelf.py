"""The part of a shelf that has to do with agents: those an owner saved, the citizens, and what they remember; here, or
at a studio elsewhere (see `shelves`)."""

from typing import TYPE_CHECKING, Any, Final, Protocol

from registry.base import Json

if TYPE_CHECKING:
    from orchestrator.client import Client
    from orchestrator.remembered import Only
    from orchestrator.settings import Settings

View = dict[str, Json]
#: Rows one request gives at most.
PAGE: Final = 200


class AgentShelf(Protocol):
    """Saved agents, citizens and memories."""

    def agents(self) -> list[View]: ...
    def promote(self, given: str) -> View: ...
    def remove_agent(self, given: str) -> None: ...
    def citizens(self) -> list[View]: ...
    def adopt(self, citizen_id: str) -> tuple[View, bool]:
        """The owner's copy, and whether it is new."""
        ...

    def memories(self, only: "Only", most: int) -> list[View]: ...
    def forget(self, only: "Only", *, everything: bool) -> int: ...
    def forget_one(self, given: str) -> None: ...


class AgentsHere:
    """Rows of a database that this process reaches."""

    def __init__(self, settings: "Settings") -> None:
        self._settings = settings

    def agents(self) -> list[View]:
        from orchestrator import saved

        return saved.agent_list(self._settings, limit=PAGE, after=None)

    def promote(self, given: str) -> View:
        from orchestrator import saved

        return saved.promote_agent(self._settings, given, version=None)

    def remove_agent(self, given: str) -> None:
        from orchestrator import saved

        saved.remove_agent(self._settings, given, version=None)

    def citizens(self) -> list[View]:
        from orchestrator import saved

        return saved.citizen_list(self._settings)

    def adopt(self, citizen_id: str) -> tuple[View, bool]:
        from orchestrator import saved
        from registry.skills import catalogue

        return saved.adopt_citizen(self._settings, catalogue.build(), citizen_id)

    def memories(self, only: "Only", most: int) -> list[View]:
        from orchestrator import remembered

        return remembered.page(self._settings, only, limit=most)

    def forget(self, only: "Only", *, everything: bool) -> int:
        from orchestrator import remembered

        return remembered.forget(self._settings, only, everything=everything)

    def forget_one(self, given: str) -> None:
        from orchestrator import remembered

        remembered.forget_one(self._settings, given)


class AgentsElsewhere:
    """A studio's HTTP API."""

    def __init__(self, client: "Client") -> None:
        self._client, self._ask = client, client.ask

    def agents(self) -> list[View]:
        return list(self._ask("GET", "studio/agents", params={"limit": str(PAGE)})["items"])

    def promote(self, given: str) -> View:
        return self._ask("POST", f"studio/agents/{_part(given)}/promote")

    def remove_agent(self, given: str) -> None:
        self._ask("DELETE", f"studio/agents/{_part(given)}")

    def citizens(self) -> list[View]:
        return list(self._ask("GET", "studio/citizens")["items"])

    def adopt(self, citizen_id: str) -> tuple[View, bool]:
        path = f"studio/citizens/{_part(citizen_id)}"
        known = self._ask("GET", path)["agentId"]
        kept = self._ask("POST", f"{path}/adopt")
        return kept, kept["id"] != known

    def memories(self, only: "Only", most: int) -> list[View]:
        found: list[View] = []
        more: dict[str, str] = {}
        while len(found) < most:
            params = _named(only) | {"limit": str(min(PAGE, most - len(found)))} | more
            page = self._ask("GET", "studio/memories", params=params)
            found += page["items"]
            if page["next"] is None:
                break
            more = {"cursor": page["next"]}
        return found

    def forget(self, only: "Only", *, everything: bool) -> int:
        params = _named(only) | ({"all": "true"} if everything else {})
        return int(self._ask("DELETE", "studio/memories", params=params)["forgotten"])

    def forget_one(self, given: str) -> None:
        self._ask("DELETE", f"studio/memories/{_part(given)}")


def _named(only: "Only") -> dict[str, str]:
    given: dict[str, Any] = {"kind": only.kind, "projectId": only.project_id, "beingId": only.being_id}
    return {name: value for name, value in given.items() if value is not None}


def _part(id_: str) -> str:
    """An id as a part of a path."""
    from orchestrator.client import part

    return part(id_)
