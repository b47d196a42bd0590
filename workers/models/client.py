"""The real model: chat completions of any OpenAI-compatible server, through the openai SDK.

A call has one deadline for everything: quick retries, fallbacks, waiting. The SDK's own retries are off; what does not
pass quickly is a fault that says so, and the engine parks the run on a row instead of holding a slot.
"""

import math
import random
import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestrator.settings import Settings
from registry.base import Json
from registry.eventlines import event_lines
from registry.ids import new_id
from registry.skills.context import Deadline
from workers.models import answers, faults, headers, payload, pools, prices, spans, streaming, tiers, tokens
from workers.models.model import ModelFault, Reply, Request
from workers.models.tiers import Endpoint
from workers.models.turns import turns_at

if TYPE_CHECKING:
    import httpx2
    import openai

#: Who is asked, as traces say it: whose wire format it is. `server.address` tells whose server.
PROVIDER = "openai"
QUICK_RETRIES = 2
#: Seconds of the first wait before a quick retry (doubled each time), and the longest wait that counts as quick.
FIRST_WAIT_S, QUICK_WAIT_S = 0.5, 5.0
#: Seconds a call waits for its turn in the slot of its run; a longer wait is the row's.
TURN_WAIT_S = 3.0
#: Optional fields one call may leave out, one refusal each.
MAX_REFUSED_FIELDS = 4
LOOK_S = 0.1
#: What the SDK itself has to know of a call.
_LOOKED_AT = frozenset({"model", "stream", "timeout"})
#: How servers say that they do not take a field at all.
_UNKNOWN = re.compile(r"unsupported|not support|unknown|unrecogni|not permitted|must be 'json_schema'", re.IGNORECASE)


class OpenAIClient:
    """A `ModelClient` over the settings; cheap to make, safe from any thread, pools are shared by the process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turns = turns_at(settings.redis)

    def generate(self, request: Request) -> Reply:
        """One answer of the first model that gives one; see `ModelClient`."""
        deadline = Deadline(min(request.timeout_s, self._settings.model_timeout_s))
        found: list[ModelFault] = []
        for endpoint in tiers.resolve(self._settings, request.tier, request.model, request.fallback):
            ask = partial(self._patiently, endpoint, request, deadline)
            try:
                return spans.chat(request, endpoint.name, PROVIDER, ask, endpoint.base_url or pools.OPENAI)
            except ModelFault as fault:
                found.append(fault)
            if deadline.passed or request.cancelled():
                break
        raise faults.joined(found)

    def worst_micro(self, request: Request) -> int | None:
        """Micro-USD the call may cost at most, by estimate, whichever model answers; None: a price is unknown.

        Raises:
            ModelFault: `model_unresolved`.
        """
        endpoints = tiers.resolve(self._settings, request.tier, request.model, request.fallback)
        costs = [prices.worst_micro(endpoint, request) for endpoint in endpoints]
        known = [cost for cost in costs if cost is not None]
        return max(known) if len(known) == len(costs) else None

    def context_tokens(self, request: Request) -> int | None:
        """Tokens of the context of the model asked first, as the settings say.

        Raises:
            ModelFault: `model_unresolved`.
        """
        return tiers.resolve(self._settings, request.tier, request.model, request.fallback)[0].context_tokens

    def _patiently(self, endpoint: Endpoint, request: Request, deadline: Deadline) -> Reply:
        """One model, with quick retries of what may pass."""
        wait = FIRST_WAIT_S
        for _ in range(QUICK_RETRIES):
            try:
                return self._accepted(endpoint, request, deadline)
            except ModelFault as fault:
                if not fault.passing or fault.held:
                    raise
                pause = (wait if fault.retry_after is None else fault.retry_after) + random.uniform(0, wait / 2)
                if pause > min(QUICK_WAIT_S, deadline.left):
                    raise
                _sleep(pause, request.cancelled)
            wait *= 2
        return self._accepted(endpoint, request, deadline)

    def _accepted(self, endpoint: Endpoint, request: Request, deadline: Deadline) -> Reply:
        """One model, asked again at once without an optional field it refuses."""
        import openai

        for _ in range(MAX_REFUSED_FIELDS):
            body = payload.build(endpoint, request, pools.refused(endpoint.base_url, endpoint.name))
            try:
                return self._once(endpoint, request, deadline, body)
            except openai.APIStatusError as error:
                field = _refused_field(error, body)
                if field is None:
                    raise self._fault(error, endpoint) from None
                pools.refuse(endpoint.base_url, endpoint.name, field)
        raise ModelFault(f"model {endpoint.name!r} refuses one setting after another; set fewer in `generation`")

    def _once(self, endpoint: Endpoint, request: Request, deadline: Deadline, body: dict[str, Json]) -> Reply:
        import openai

        from workers.models import wire

        counted = self._turn(endpoint, request, deadline)
        begun = time.monotonic()
        watch = wire.Watch(begun + deadline.left, request.cancelled)
        try:
            with wire.watched(watch):
                answer = self._answer(endpoint, request, body, wire.timeout(watch))
            elapsed = int((time.monotonic() - begun) * 1000)
            reply = answers.of(answer, endpoint, request, duration_ms=elapsed)
            self._turns.took(endpoint, reply.usage.total - counted)
            return reply
        except openai.APIStatusError as error:
            if error.status_code == faults.TOO_MANY:
                self._heed(endpoint, error.response.headers, refused=True)
            raise
        except openai.OpenAIError as error:
            raise self._fault(error, endpoint) from None
        except wire.broken() as error:
            raise faults.broken_off(error, endpoint.name, pools.address(endpoint.base_url), endpoint.key) from None
        except wire.HungUp:
            raise _stopped() from None
        except (answers.BrokenAnswer, wire.TooLong) as error:
            words = faults.masked(str(error), endpoint.key) or "it is too long"
            raise ModelFault(f"{_named(endpoint)} sent no usable answer: {words}", passing=True) from None
        except UnicodeError:
            raise ModelFault(f"{_named(endpoint)}: the key is no ASCII text; check the setting it comes from") from None

    def _fault(self, error: "openai.OpenAIError", endpoint: Endpoint) -> ModelFault:
        return faults.classify(error, endpoint.name, pools.address(endpoint.base_url), endpoint.key)

    def _answer(
        self, endpoint: Endpoint, request: Request, body: dict[str, Json], timeout: "httpx2.Timeout"
    ) -> dict[str, Any]:
        """The answer as the server sent it, heard while it came where somebody listens and the server streams."""
        from workers.models import direct

        server = pools.server(endpoint.base_url, endpoint.key)
        if not body.get("stream") or request.hear is None:
            answered = direct.post(server.sdk, server.http, server.head, body, timeout)
            self._heed(endpoint, answered.headers)
            return answers.whole(answered.content)
        request.hear("again", "")
        arguments = _as_it_is({**body, "timeout": timeout})
        with server.sdk.chat.completions.with_streaming_response.create(**arguments) as streamed:
            self._heed(endpoint, streamed.headers)
            if "event-stream" in streamed.headers.get("content-type", ""):
                return streaming.read(event_lines(streamed.iter_bytes()), request.hear)
            return answers.whole(streamed.read())

    def _turn(self, endpoint: Endpoint, request: Request, deadline: Deadline) -> int:
        """Waits for the call's turn, if that takes no more than moments; gives the tokens that were counted.

        Raises:
            ModelFault: `held`, with the seconds until the turn should come.
        """
        size = tokens.of_request(request) if endpoint.tokens_per_minute else 0
        ticket = request.ticket or new_id()
        until = time.monotonic() + min(TURN_WAIT_S, deadline.left)
        while (wait := self._turns.take(endpoint, ticket, request.lane, size)) > 0:
            if time.monotonic() + wait > until:
                words = f"{_named(endpoint)} takes no more calls just now; the next turn is in {math.ceil(wait)} s"
                raise ModelFault(words, passing=True, retry_after=wait, held=True)
            _sleep(wait, request.cancelled)
        return size

    def _heed(self, endpoint: Endpoint, said: Mapping[str, str], *, refused: bool = False) -> None:
        """Keeps every worker from calling where the other side says that it is too early."""
        wait = headers.wait_of(said, refused=refused)
        if wait:
            self._turns.hold(endpoint, wait)


def _as_it_is(arguments: dict[str, Any]) -> dict[str, Any]:
    """The same call with all that needs no look of the SDK beside its parameters: it would walk through every message
    of the history for fields to rename, of which there are none, and take several times as long as the rest of it."""
    own = {name: value for name, value in arguments.items() if name in _LOOKED_AT}
    rest = {name: value for name, value in arguments.items() if name not in _LOOKED_AT}
    return own | {"messages": [], "extra_body": rest}


def _refused_field(error: "openai.APIStatusError", body: dict[str, Json]) -> str | None:
    """The field sent that a 400 or 422 says it does not know; a bad value is the definition's fault and stays one."""
    said = faults.words(error.body)
    if error.status_code not in (400, 422) or not _UNKNOWN.search(f"{error.code} {said}"):
        return None
    named = {error.param, *re.findall(r"[a-z_]+", said)}
    return next((field for field in sorted(payload.OPTIONAL) if field in body and field in named), None)


def _named(endpoint: Endpoint) -> str:
    return f"model {endpoint.name!r} at {pools.address(endpoint.base_url)}"


def _sleep(seconds: float, cancelled: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if cancelled():
            raise _stopped()
        time.sleep(min(left, LOOK_S))


def _stopped() -> ModelFault:
    return ModelFault("the run was stopped while its model call was under way", passing=True)
