"""What a plugin asks for while it works, served outside of its wall as far as a person granted it (spec: skills 17).

Each thing is one capability. All but the network is a call of a catalogue skill, through the one `invoke`, for the
caller `plugin`: it has the owner and the run of whoever called the plugin, and never a person's authority.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter, ValidationError

from registry import masking
from registry.base import Json
from registry.connections import HttpConnection
from registry.errors import SkillError
from registry.skills.context import SkillContext
from registry.skills.http import HeaderName, HeaderValue, judged_headers, shown_headers
from registry.skills.network import MIB, Outgoing
from registry.skills.registry import SkillRegistry
from registry.skills.urls import Url, parse_url

#: Use -> (capability, skill, the input of what is given).
_Made = Callable[[dict[str, Json]], dict[str, Json]]
_SKILLS: Final[dict[str, tuple[str, str, _Made]]] = {
    "read": ("files:read", "files.read", lambda g: {"path": g.get("path"), "maxLines": 5000}),
    "files": ("files:read", "files.list", lambda g: {"path": g.get("path", "."), "limit": 1000}),
    "write": ("files:write", "files.write", lambda g: {"path": g.get("path"), "content": g.get("content")}),
    "ask": ("llm", "llm.generate", lambda g: {k: v for k, v in g.items() if k in ("prompt", "system") and v}),
    "recall": ("memory", "memory.recall", lambda g: {"query": g.get("query"), "limit": g.get("limit", 5)}),
    "remember": ("memory", "memory.store", lambda g: {"content": g.get("content"), "tags": g.get("tags", [])}),
    "signal": ("signals", "signal.raise", lambda g: {"title": g.get("title"), "body": g.get("body", "")}),
    "schedule": ("schedule", "schedule.create", lambda g: g),
}
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
MAX_BODY: Final = 2 * MIB
_HEADERS: Final = TypeAdapter(Annotated[dict[HeaderName, HeaderValue], Field(max_length=32)])


class Granted:
    """What one call of a plugin may ask for."""

    def __init__(self, plugin_id: str, granted: Collection[str], skills: SkillRegistry, context: SkillContext) -> None:
        self._plugin_id, self._granted = plugin_id, frozenset(granted)
        self._skills, self._context = skills, context
        self._calls = 0

    def __call__(self, use: str, given: dict[str, Json]) -> Json:
        """Does what it asks for.

        Raises:
            SkillError: `not_allowed` when it was not granted; else the fault of what it asked.
        """
        self._context.check()
        if use == "fetch":
            return self._fetch(given)
        if use not in _SKILLS:
            raise SkillError("unknown_skill", f"there is nothing called {use[:60]!r} to ask for")
        capability, name, made = _SKILLS[use]
        self._need(capability)
        policy = self._context.policy
        if capability == "schedule" and policy is not None and policy.ancestors:
            raise SkillError("denied", "denied in subagent context: a child run plans nothing")
        output = self._call(name, made(given))
        return _plain(use, output)

    def _need(self, capability: str) -> None:
        if capability not in self._granted:
            wanted = capability[:280]
            words = f"{self._plugin_id} was not granted {wanted}; its owner installs it with --grant {wanted}"
            raise SkillError("not_allowed", words)

    def _call(self, name: str, given: dict[str, Json]) -> Any:
        self._calls += 1
        outer = self._context
        caller = replace(outer.caller, kind="plugin", call_id=f"{outer.caller.call_id or 'call'}/{self._calls}")
        inner = SkillContext(
            caller=caller,
            # The plugin's own call was judged by all it may do: nobody is asked twice, and the world is out of reach.
            # A schedule outlives it, and may do later no more than whoever called the plugin may now.
            policy=outer.policy if name == "schedule.create" else None,
            allowed=frozenset({name}),
            workspace=outer.workspace,
            signals=outer.signals,
            memory=outer.memory,
            schedules=outer.schedules,
            llm=outer.llm,
            meter=outer.meter,
            agent=outer.agent,
            rehearsal=outer.rehearsal,
            cancelled=outer.cancelled,
            time_left=outer.deadline.left,
            now_ms=outer.now_ms,
            emit=outer.emit,
        )
        result = self._skills.invoke(name, given, inner)
        self._tell(name, result.ok)
        if not result.ok:
            raise SkillError(result.code or "tool_failed", result.error or "it failed", details=result.details)
        return result.output

    def _fetch(self, given: dict[str, Json]) -> Json:
        """One request through the guard, to a granted host and nowhere else; a redirect is the answer."""
        url, secret = parse_url(str(given.get("url"))), given.get("secret")
        method = str(given.get("method", "GET")).upper()
        self._need(f"net:{url.host}")
        if method not in _METHODS:
            raise SkillError("invalid_input", f"method has to be one of {', '.join(_METHODS)}")
        headers, body = _headers(given.get("headers")), given.get("body")
        if body is not None and (not isinstance(body, str) or len(body.encode()) > MAX_BODY):
            raise SkillError("invalid_input", f"body has to be a text of at most {MAX_BODY} bytes")
        if secret is not None:
            self._need(f"secret:{secret}")
            headers = self._with_secret(str(secret), url, headers)
        context = self._context
        if context.net is None:
            raise SkillError("network_error", "there is no network here: nothing was sent")
        task = context.caller.task_id or context.caller.run_id
        reads = method in ("GET", "HEAD")
        if reads and context.meter is not None and task is not None:
            context.meter.outbound(task, url.host)
        self._tell(f"{method} {url.origin}", True)
        answer = context.net.send(
            Outgoing(
                str(given.get("url")),
                method=method,
                headers=headers,
                body=body.encode() if body is not None else None,
                timeout_s=max(0.1, context.deadline.left),
                max_bytes=MAX_BODY,
                redirects=0,
                once=not reads,
            ),
            cancelled=context.cancelled,
        )
        text = masking.hide_in_bytes(answer.body).decode(answer.charset, "replace")
        return {"status": answer.status, "headers": shown_headers(answer), "body": text, "truncated": answer.truncated}

    def _with_secret(self, name: str, url: Url, headers: dict[str, str]) -> dict[str, str]:
        """The secret of a connection goes from here to the hosts it is bound to; the plugin never sees it."""
        context = self._context
        ports = context.connections
        found = ports.find(context.caller.owner_id, HttpConnection, name) if ports is not None else None
        if found is None:
            raise SkillError("not_found", f"there is no http connection {name[:40]!r}; nothing was sent")
        if not found.bound_to(url):
            raise SkillError("not_allowed", f"the connection {name!r} is not for {url.origin}; nothing was sent")
        value = found.header_value()
        masking.remember(value.rpartition(" ")[2])
        return {k: v for k, v in headers.items() if k.lower() != found.header.lower()} | {found.header: value}

    def _tell(self, use: str, ok: bool) -> None:
        self._context.emit("plugin.used", {"plugin": self._plugin_id, "use": use, "ok": ok})


def _headers(given: Json) -> dict[str, str]:
    try:
        return judged_headers(_HEADERS.validate_python(given or {}, strict=True))
    except ValueError as error:
        words = "names and texts of one line, at most 32" if isinstance(error, ValidationError) else str(error)
        raise SkillError("invalid_input", f"headers: {words}") from None


def _plain(use: str, output: Any) -> Json:
    """What the function of the plugin gets: the thing itself."""
    if use == "read":
        return output.get("content")
    if use == "files":
        return [one["path"] for one in output.get("entries", [])]
    if use == "ask":
        return output.get("text")
    if use == "recall":
        return output.get("memories", output)
    return output


__all__ = ["Granted"]
