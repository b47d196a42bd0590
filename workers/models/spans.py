"""A model call as a span, in the words of the GenAI conventions of OpenTelemetry."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from orchestrator import tracing
from registry import masking
from registry.base import Json
from registry.jsontext import compact
from workers.models.model import ModelClient, Reply, Request

#: Our words for why an answer ended, and theirs.
_REASONS = {"tool-calls": "tool_call", "content-filter": "content_filter"}
_SETTINGS = {
    "temperature": "gen_ai.request.temperature",
    "topP": "gen_ai.request.top_p",
    "frequencyPenalty": "gen_ai.request.frequency_penalty",
    "presencePenalty": "gen_ai.request.presence_penalty",
    "maxTokens": "gen_ai.request.max_tokens",
}
#: Characters of a conversation that a span shows at most, where it shows any.
SHOWN = 64_000


def chat(request: Request, model: str, provider: str, work: Callable[[], Reply], base_url: str | None = None) -> Reply:
    """The answer of one model, in its span: quick retries are inside of it, another model is another span.

    Args:
        model: what is asked.
        provider: whose wire format it speaks.
        base_url: where it is asked.
    """
    if not tracing.on():
        return work()
    with tracing.span(f"chat {model}", kind="client") as span:
        if span.recording:
            span.say(_asked(request, model, provider) | _server(base_url))
        reply = work()
        if span.recording:
            span.say(_answered(reply))
    return reply


def traced(client: ModelClient, model: str, provider: str) -> ModelClient:
    """A client that is one model, with a span around each of its answers where somebody wants it."""
    return _Traced(client, model, provider) if tracing.on() else client


class _Traced:
    def __init__(self, client: ModelClient, model: str, provider: str) -> None:
        self._client, self._model, self._provider = client, model, provider
        self.worst_micro, self.context_tokens = client.worst_micro, client.context_tokens

    def generate(self, request: Request) -> Reply:
        """See `ModelClient`."""
        return chat(request, self._model, self._provider, lambda: self._client.generate(request))


def _asked(request: Request, model: str, provider: str) -> dict[str, Any]:
    settings = {name: request.generation.get(ours) for ours, name in _SETTINGS.items()}
    return settings | {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "gen_ai.request.stream": True if request.hear is not None else None,
        "gen_ai.output.type": "json" if request.output is not None else "text",
        "gen_ai.agent.id": request.situation.agent_id or None,
        "gen_ai.agent.name": request.situation.agent_name or None,
        "officina.model.tier": request.tier,
        "officina.model.skill": request.situation.skill,
        "officina.model.tools": len(request.tools),
        **(_content(request) if tracing.shows_content() else {}),
    }


def _answered(reply: Reply) -> dict[str, Any]:
    reason = _REASONS.get(reply.finish_reason, reply.finish_reason)
    found = {
        "gen_ai.response.model": reply.model,
        "gen_ai.response.finish_reasons": [reason],
        "gen_ai.usage.input_tokens": reply.usage.input_tokens,
        "gen_ai.usage.output_tokens": reply.usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": reply.usage.cached_tokens or None,
        "officina.model.usage_estimated": True if reply.usage.estimated else None,
        "officina.model.stand_in": True if reply.stand_in else None,
        "officina.cost_usd": None if reply.cost_micro is None else reply.cost_micro / 1_000_000,
    }
    if tracing.shows_content():
        calls = [{"id": call.id, "name": call.name, "args": call.arguments} for call in reply.calls]
        said = _message({"role": "assistant", "content": reply.text, "toolCalls": calls})
        found["gen_ai.output.messages"] = _shown([said | {"finish_reason": reason}])
    return found


def _server(base_url: str | None) -> dict[str, Any]:
    """Host and port, and nothing else of an address: a path or a user name may be a secret."""
    if base_url is None:
        return {}
    try:
        found = urlsplit(base_url)
        port = found.port or (443 if found.scheme == "https" else 80)
    except ValueError:
        return {}
    return {"server.address": found.hostname, "server.port": port}


def _content(request: Request) -> dict[str, str]:
    """What was sent, in the form the conventions give it."""
    return {
        "gen_ai.system_instructions": _shown([{"type": "text", "content": request.system}]),
        "gen_ai.input.messages": _shown([_message(body) for body in request.messages]),
    }


def _message(body: dict[str, Json]) -> dict[str, Json]:
    text, parts = body.get("content"), []
    if body["role"] == "tool":
        parts.append({"type": "tool_call_response", "id": body.get("toolCallId"), "response": text})
    elif text:
        parts.append({"type": "text", "content": text})
    for call in body.get("toolCalls") or []:
        parts.append({"type": "tool_call", "id": call["id"], "name": call["name"], "arguments": call["args"]})
    return {"role": body["role"], "parts": parts}


def _shown(value: Json) -> str:
    return compact(masking.mask(value))[:SHOWN]
