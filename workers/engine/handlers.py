"""How a hook is asked: a program or a plugin in the sandbox, a function of an installed package, an address
behind the guard.

A handler answers with a JSON object or with nothing. Whatever else it does is a fault, and a fault has no effect.
"""

import contextlib
import json
import queue
import threading
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any, Final

from registry.agents import Handler
from registry.base import Json
from registry.errors import SkillError
from registry.jsontext import JsonFault, parse
from registry.skills.context import Execution
from registry.skills.network import Outgoing
from workers.engine.session import Session

#: Where packages name functions that may be hooks: payload in, answer out.
GROUP: Final = "officina.hooks"
#: The exit code of a program that says no; its reason stands on stderr.
BLOCKS: Final = 2
MAX_OUTPUT_BYTES: Final = 1024 * 1024


class HandlerFault(Exception):
    """A handler gave no usable answer; the message says why."""


def ask(session: Session, handler: Handler, payload: dict[str, Json]) -> Json:
    """The answer of a handler; None when it has nothing to say.

    Raises:
        HandlerFault: it could not be asked, took too long, or answered with something else than JSON.
    """
    # ASCII: whatever half characters a model wrote, the payload can be sent.
    text = json.dumps(payload, separators=(",", ":"))
    if handler.command:
        return _command(session, handler.command, text)
    if handler.plugin:
        return _plugin(session, handler.plugin, text)
    return _http(session, str(handler.http), text)


def _command(session: Session, argv: list[str], text: str) -> Json:
    sandbox = session.services.sandbox(session.record)
    if sandbox is None:
        raise HandlerFault("there is no sandbox here to run the command in")
    seconds = session.limits.hook_timeout_s
    try:
        done = sandbox.execute(
            argv,
            stdin=text.encode(),
            files={},
            timeout_s=seconds,
            cancelled=session.stopped.is_set,
            max_output_bytes=MAX_OUTPUT_BYTES,
        )
    except SkillError as error:
        raise HandlerFault(f"{error.code}: {error.message}") from None
    if done.timed_out:
        raise HandlerFault(f"no answer within {seconds:g} s")
    return _read(done)


def _read(done: Execution) -> Json:
    complaint = done.stderr.decode("utf-8", "replace").strip()
    if done.exit_code == BLOCKS:
        return {"block": complaint or "no reason given"}
    if done.exit_code != 0:
        how = f"exit code {done.exit_code}" if done.exit_code is not None else f"signal {done.signal}"
        raise HandlerFault(f"it ended with {how}" + (f": {complaint[-300:]}" if complaint else ""))
    if done.stdout_truncated:
        raise HandlerFault(f"its answer has more than {MAX_OUTPUT_BYTES} bytes")
    return _parsed(done.stdout) if done.stdout.strip() else None


def _http(session: Session, url: str, text: str) -> Json:
    """Posts the payload through the guard, once; a redirect is no answer."""
    net = session.services.net
    if net is None:
        raise HandlerFault("there is no network here to ask over")
    request = Outgoing(
        url,
        method="POST",
        headers={"Content-Type": "application/json", "Accept": "application/json"},
        body=text.encode(),
        timeout_s=session.limits.hook_timeout_s,
        max_bytes=MAX_OUTPUT_BYTES,
        whole=True,
        redirects=0,
        once=True,
    )
    try:
        answer = net.send(request, cancelled=session.stopped.is_set)
    except SkillError as error:
        raise HandlerFault(f"{error.code}: {error.message}") from None
    if not answer.ok:
        raise HandlerFault(f"{answer.url.host} answered {answer.status}")
    return _parsed(answer.body) if answer.body.strip() else None


def _plugin(session: Session, name: str, text: str) -> Json:
    """Asks a plugin's function behind the wall; else one of an installed package, with a payload of its own: nothing it
    changes there reaches the run."""
    seconds = session.limits.hook_timeout_s
    if "." in name:
        with contextlib.suppress(LookupError):
            return _plugged(session, name, text, seconds)
    answer = _within(seconds, _function(name), json.loads(text))
    if answer is None:
        return None
    try:
        return _parsed(json.dumps(answer, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise HandlerFault(f"its answer is no JSON: {error}") from None


def _plugged(session: Session, name: str, text: str, seconds: float) -> Json:
    """Raises:
    LookupError: no plugin of the owner has such a hook.
    """
    ask, owner = session.services.plugins.hook, session.record.owner_id
    try:
        return ask(owner, name, json.loads(text), timeout_s=seconds, cancelled=session.stopped.is_set)
    except SkillError as error:
        raise HandlerFault(f"{error.code}: {error.message}") from None


@lru_cache(maxsize=256)
def _function(name: str) -> Callable[[Any], Any]:
    found = next(iter(entry_points(group=GROUP, name=name)), None)
    if found is None:
        raise HandlerFault(f"no installed package gives the hook {name!r} (entry points of {GROUP})")
    try:
        loaded = found.load()
    except Exception as error:
        raise HandlerFault(f"the hook {name!r} cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(loaded):
        raise HandlerFault(f"the hook {name!r} is no function")
    return loaded  # type: ignore[no-any-return]


def _within(seconds: float, function: Callable[[Any], Any], payload: Json) -> Any:
    """Calls a function in a thread of its own: one that hangs costs its thread, and not the run."""
    answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put((function(payload), None))
        except BaseException as error:
            answers.put((None, error))

    threading.Thread(target=work, name="hook", daemon=True).start()
    try:
        answer, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise HandlerFault(f"no answer within {seconds:g} s") from None
    if error is not None:
        raise HandlerFault(f"it failed: {type(error).__name__}: {error}") from error
    return answer


def _parsed(text: str | bytes) -> Json:
    try:
        return parse(text)
    except JsonFault as fault:
        raise HandlerFault(f"its answer is {fault}") from None
