"""A studio elsewhere, over its HTTP API: `Client(url, key)`; what the command line uses where OFFICINA_API_URL is set.

    client = Client("https://studio.example.com", key="ofk_...")
    made = client.submit("project.yaml")
    for event in client.events(made["id"], follow=True):
        print(event["kind"])

Answers are the JSON of the API. What it refuses is raised as the error it would be here, with the same code.
"""

import json
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import httpx2

from orchestrator.deltas import Delta
from orchestrator.parcels import document_of
from orchestrator.patience import PATIENCE_S, Busy
from registry import jsontext
from registry.base import Json
from registry.errors import Fault, OfficinaError, Refused, Unavailable, WrongUse
from registry.eventlines import event_lines

if TYPE_CHECKING:
    from orchestrator.settings import Settings

#: Seconds an answer may take; a stream lives as long as it hears something every so often.
TIMEOUT_S: Final = 60
SILENCE_S: Final = 45
#: Seconds between tries to come back to a stream: doubled each time, from the first to the last.
FIRST_S, LAST_S = 0.2, 5.0
#: Seconds without any answer after which following is given up.
GIVE_UP_S: Final = 300
#: Name of the events of a stream that are pieces of what is being said.
LIVE: Final = "live"
#: What a comment is called here: it says that the connection lives, and nothing else.
COMMENT: Final = ":"
_ENDED: Final = frozenset({"completed", "partial", "failed", "cancelled"})


class Client:
    """One studio, as one owner. Safe to use from several threads."""

    def __init__(self, url: str, *, key: str | None = None, session: str | None = None) -> None:
        """
        Args:
            url: where the studio answers, as `http://127.0.0.1:4000`.
            key: a key's text.
            session: instead of a key, a person's session: it may approve.
        """
        headers = {"accept": "application/json"}
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        elif session is not None:
            headers["cookie"] = f"officina_session={session}"
        self._http = httpx2.Client(base_url=f"{url.rstrip('/')}/api/", headers=headers, timeout=TIMEOUT_S)

    @classmethod
    def of(cls, settings: "Settings") -> "Client":
        """The studio of the settings, with their key or the session that `officina login` keeps.

        Raises:
            WrongUse: `no_key` when there is neither.
        """
        assert settings.api_url is not None
        if settings.api_key is not None:
            return cls(settings.api_url, key=settings.api_key.get_secret_value())
        session = kept_session(settings)
        if session is None:
            words = "set OFFICINA_API_KEY, or begin a session with `officina login`"
            raise WrongUse(words, code="no_key", faults=[Fault("OFFICINA_API_KEY", "no_key", words)])
        return cls(settings.api_url, session=session)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def submit(
        self,
        source: str | Path,
        *,
        key: str | None = None,
        mode: str | None = None,
        rehearse: bool = False,
        plan_only: bool = False,
    ) -> dict[str, Json]:
        """Submits a project file with the files it names, a file that holds a brief, or the brief itself.

        Raises:
            WrongUse: with every fault found, there or here.
        """
        body = document_of(str(source))
        body |= {"rehearse": True} if rehearse else {}
        body |= {"planOnly": True} if plan_only else {}
        body |= {"mode": mode} if mode else {}
        return self._ask("POST", "projects", body, {"idempotency-key": key} if key else None)

    def projects(self, *, status: str | None = None, limit: int = 50) -> list[dict[str, Json]]:
        """The newest projects."""
        return self._page("projects", limit, {"status": status})

    def project(self, project_id: str, *, live: bool = False) -> dict[str, Json]:
        """One project whole; `live`: with how its fan-outs stand, and whether anybody works there."""
        return self._ask("GET", f"projects/{part(project_id)}" + ("?live=true" if live else ""))

    def start(self, project_id: str, plan: Json = None) -> dict[str, Json]:
        """Starts a project whose plan waits: {id, status, tasks}."""
        body = {"plan": plan} if plan is not None else {}
        return self._ask("POST", f"projects/{part(project_id)}/start", body)

    def cancel(self, project_id: str) -> dict[str, Json]:
        return self._ask("POST", f"projects/{part(project_id)}/cancel")

    def retry(self, task_id: str) -> str:
        """Runs a failed task again; gives its whole id."""
        return str(self._ask("POST", f"tasks/{part(task_id)}/retry")["id"])

    def fork(self, run_id: str, at: int) -> str:
        """Runs a task again from a checkpoint; gives the new run's id."""
        return str(self._ask("POST", f"runs/{part(run_id)}/fork", {"at": at})["id"])

    def wake(self, run_id: str) -> str:
        """Ends a run's sleep; gives its whole id."""
        return str(self._ask("POST", f"runs/{part(run_id)}/wake")["id"])

    def signals(self, *, status: str = "open", limit: int = 50) -> list[dict[str, Json]]:
        """Signals, the longest waiting first; `all` for every state."""
        return self._page("signals", limit, {"status": status})

    def signal(self, signal_id: str) -> dict[str, Json]:
        return self._ask("GET", f"signals/{part(signal_id)}")

    def answer(self, signal_id: str, **given: Json) -> dict[str, Json]:
        """Answers a signal: `option` or `payload`."""
        return self._ask("POST", f"signals/{part(signal_id)}/answer", given)

    def dismiss(self, signal_id: str) -> dict[str, Json]:
        return self._ask("POST", f"signals/{part(signal_id)}/dismiss")

    def redeem(self, code: str) -> dict[str, Json]:
        """A session for a one-time code."""
        return self._ask("POST", "session", {"code": code})

    def events(
        self,
        project_id: str,
        *,
        after: int = 0,
        follow: bool = False,
        hear: Callable[[Delta], None] | None = None,
    ) -> Iterator[dict[str, Json]]:
        """The lines of a trace in order, each once; with `follow` until the project has ended, whatever connections
        break on the way.

        Args:
            hear: takes pieces of what agents say while they say it, as they come between the lines that are followed.

        Raises:
            Unavailable: the studio has not answered for minutes.
        """
        if follow:
            yield from self._follow(project_id, after, hear)
            return
        while True:
            page = self._ask("GET", f"projects/{part(project_id)}/events?after={after}&limit=1000")
            yield from page["items"]
            if page["next"] is None:
                return
            after = page["next"]

    def _follow(self, project_id: str, after: int, hear: Callable[[Delta], None] | None) -> Iterator[dict[str, Json]]:
        delay, heard = FIRST_S, time.monotonic()
        while True:
            ended = False
            try:
                with self._stream(project_id, after, live=hear is not None) as answer:
                    if answer.status_code == 204:
                        return
                    for name, event in _events(event_lines(answer.iter_bytes())):
                        # Whoever sends comments is there: a project may say nothing for days while it waits.
                        heard = time.monotonic()
                        if name == COMMENT:
                            continue
                        delay = FIRST_S
                        if name == LIVE and hear is not None:
                            hear(Delta.of_json(event))
                        if name is not None or event["seq"] <= after:
                            continue
                        after = event["seq"]
                        ended = event["kind"] == "project.status" and event["data"].get("status") in _ENDED
                        yield event
            except Busy as busy:
                if time.monotonic() - heard + busy.wait_s > GIVE_UP_S:
                    raise
                time.sleep(busy.pause())
                continue
            except (httpx2.TransportError, Unavailable) as error:
                if time.monotonic() - heard > GIVE_UP_S:
                    raise Unavailable(f"the studio does not answer: {error}") from error
            if ended:
                # Whether anything follows the end is for the studio to say: it answers 204 when nothing does.
                delay = 0
            time.sleep(delay * random.uniform(0.5, 1))
            delay = min(max(delay, FIRST_S / 2) * 2, LAST_S)

    @contextmanager
    def _stream(self, project_id: str, after: int, *, live: bool) -> Iterator[httpx2.Response]:
        headers = {"accept": "text/event-stream"} | ({"last-event-id": str(after)} if after else {})
        path = f"studio/projects/{part(project_id)}/events" + ("?live=true" if live else "")
        timeout = httpx2.Timeout(TIMEOUT_S, read=SILENCE_S)
        with self._http.stream("GET", path, headers=headers, timeout=timeout) as answer:
            if answer.status_code >= 400:
                answer.read()
                raise _error(answer)
            yield answer

    def _page(self, path: str, limit: int, query: Mapping[str, str | None]) -> list[dict[str, Json]]:
        params = {name: value for name, value in query.items() if value is not None} | {"limit": str(limit)}
        items: list[dict[str, Json]] = self._ask("GET", path, params=params)["items"]
        return items

    def skills(self) -> list[dict[str, Json]]:
        """Every registered skill, and those of your plugins."""
        found: Json = self._ask("GET", "skills")
        return list(found)

    def plan_again(self, project_id: str, note: str = "") -> dict[str, Json]:
        """Has another plan made in the place of one that waits."""
        return self._ask("POST", f"projects/{part(project_id)}/plan", {"note": note})

    def invoke(self, name: str, given: dict[str, Json], *, project: str | None = None) -> dict[str, Json]:
        """Calls a skill once: {ok, output} or {ok, error, code}; waits for it however long it takes."""
        body = {"name": name, "input": given} | ({"projectId": project} if project else {})
        patience = {"prefer": f"wait={round(TIMEOUT_S / 2)}"}
        return self.finished(self._ask("POST", "skills/invoke", body, patience))

    def finished(self, answer: dict[str, Json]) -> dict[str, Json]:
        """What came of an answer that may be a call a worker is at (202).

        Raises:
            Refused: the call failed, where its result is what was asked for.
        """
        if "status" not in answer or "createdAt" not in answer:
            return answer
        name, delay = str(answer["name"]), FIRST_S
        while (result := answer["result"]) is None:
            time.sleep(delay)
            delay = min(delay * 1.5, LAST_S)
            answer = self._ask("GET", f"skills/calls/{part(answer['id'])}")
        if name != "knowledge.add":
            return dict(result)
        if not result["ok"]:
            raise Refused(str(result["error"]), code=str(result["code"]))
        return dict(result["output"])

    def _ask(
        self,
        method: str,
        path: str,
        body: Json = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> dict[str, Json]:
        return self.ask(method, f"studio/{path}", body, headers, params)

    def ask(
        self,
        method: str,
        path: str,
        body: Json = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> dict[str, Json]:
        """Any route, by its path below `/api/`; an answer without a body is an empty object.

        Where the studio asks to wait (429) it is waited for, for two minutes at most, and asked again if that can do
        nothing twice.

        Raises:
            OfficinaError: as the studio refused it.
        """
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self._once(method, path, body, headers, params)
            except Busy as busy:
                if not busy.may_repeat(method, headers) or time.monotonic() + busy.wait_s > until:
                    raise
                time.sleep(busy.pause())

    def _once(
        self,
        method: str,
        path: str,
        body: Json,
        headers: Mapping[str, str] | None,
        params: Mapping[str, str] | None,
    ) -> dict[str, Json]:
        try:
            answer = self._http.request(method, path, json=body, headers=dict(headers or {}), params=params)
        except httpx2.TransportError as error:
            raise Unavailable(f"the studio at {self._http.base_url.host} does not answer: {error}") from error
        if answer.status_code >= 400:
            raise _error(answer)
        found: dict[str, Json] = jsontext.parse(answer.content, twice=True) if answer.content else {}
        return found


def _events(lines: Iterator[str]) -> Iterator[tuple[str | None, dict[str, Json]]]:
    """Name and data of each server-sent event, `COMMENT` for a comment; a piece of one that a broken connection left
    is no event."""
    name: str | None = None
    data: list[str] = []
    for line in lines:
        if line.startswith(":"):
            yield COMMENT, {}
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif line.startswith("event:"):
            name = line[6:].strip()
        elif not line:
            if data:
                yield name, json.loads("\n".join(data))
            name, data = None, []


def _error(answer: httpx2.Response) -> OfficinaError:
    """The error an answer speaks of."""
    try:
        said = jsontext.parse(answer.content, twice=True)
        words, code = str(said["error"]), str(said["code"])
    except (jsontext.JsonFault, KeyError, TypeError):
        if answer.status_code == 429:
            return Busy.of(answer, "too many requests, as somebody between us and the studio says", None)
        return Unavailable(f"the studio answered {answer.status_code}, and nothing we understand")
    if answer.status_code == 429:
        return Busy.of(answer, words, code)
    if answer.status_code >= 500:
        return Unavailable(words, code=code)
    faults = [
        Fault(str(one.get("path", "")), str(one.get("code") or code), str(one.get("message", "")))
        for one in said.get("details") or []
    ]
    if answer.status_code in (400, 413, 415) or faults:
        return WrongUse(words, code=code, faults=faults)
    return Refused(words, code=code)


def part(id_: str) -> str:
    """An id as a part of a path; what is none finds nothing there."""
    from urllib.parse import quote

    return quote(id_.strip(), safe="") or "-"


def kept_session(settings: "Settings") -> str | None:
    """The session this home has at the studio of the settings."""
    try:
        kept = json.loads(_file(settings).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    token = kept.get(settings.api_url) if isinstance(kept, dict) else None
    return token if isinstance(token, str) else None


def keep_session(settings: "Settings", token: str) -> None:
    """Keeps a session for this studio, in a file that only its owner reads."""
    path, kept = _file(settings), {}
    with suppress(OSError, ValueError):
        kept = json.loads(path.read_text(encoding="utf-8"))
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_suffix(".new")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        json.dump({**kept, str(settings.api_url): token}, out)
    fresh.replace(path)


def _file(settings: "Settings") -> Path:
    return settings.home / "sessions.json"


__all__ = ["Client", "document_of", "keep_session", "kept_session", "part"]
