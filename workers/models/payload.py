"""The body of one chat completions request.

A structured answer is asked for in words, with the schema in the system text; the engine checks it. `json_schema` of
the API is not used: servers differ in the part of JSON Schema they take, and a strict one refuses schemas that work.
The weaker `json_object` is added where it cannot hurt: an object is wanted and no tool is offered.
"""

from collections.abc import Collection
from urllib.parse import urlsplit

from registry.base import Json
from registry.jsontext import compact
from workers.models.messages import to_api, wire_name
from workers.models.model import Request, Tool
from workers.models.scrub import scrub
from workers.models.tiers import Endpoint

#: Our generation settings, and the API's name of each.
GENERATION = {
    "temperature": "temperature",
    "topP": "top_p",
    "frequencyPenalty": "frequency_penalty",
    "presencePenalty": "presence_penalty",
    "effort": "reasoning_effort",
    "stop": "stop",
}
#: OpenAI wants the newer name of the length limit, other servers know the older one.
NEW_LIMIT, OLD_LIMIT = "max_completion_tokens", "max_tokens"
#: Fields a model may refuse and can do without; a refused limit is sent under its other name.
OPTIONAL = frozenset({*GENERATION.values(), NEW_LIMIT, OLD_LIMIT, "response_format", "stream", "stream_options"})


def build(endpoint: Endpoint, request: Request, without: Collection[str] = ()) -> dict[str, Json]:
    """The body, less the optional fields this model is known to refuse."""
    body: dict[str, Json] = {
        "model": endpoint.name,
        "messages": to_api(_system(request), request.messages),
        **{
            GENERATION[key]: value
            for key, value in request.generation.items()
            if key in GENERATION and value is not None
        },
        **_limit(endpoint, request, without),
    }
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    elif request.output is not None and request.output.get("type") == "object":
        body["response_format"] = {"type": "json_object"}
    if request.hear is not None and endpoint.streams and "stream" not in without:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return scrub({key: value for key, value in body.items() if key not in without})  # type: ignore[no-any-return]


def _limit(endpoint: Endpoint, request: Request, without: Collection[str]) -> dict[str, Json]:
    names = (NEW_LIMIT, OLD_LIMIT) if is_openai(endpoint) else (OLD_LIMIT, NEW_LIMIT)
    name = next((name for name in names if name not in without), None)
    return {name: request.generation.get("maxTokens") or endpoint.max_tokens} if name else {}


def is_openai(endpoint: Endpoint) -> bool:
    return endpoint.base_url is None or urlsplit(endpoint.base_url).hostname == "api.openai.com"


def _system(request: Request) -> str:
    if request.output is None:
        return request.system
    words = (
        "Answer with one JSON value and nothing else: no words around it, no code fence. "
        f"It must be valid under this JSON Schema:\n{compact(request.output)}"
    )
    return f"{request.system}\n\n{words}" if request.system else words


def _tool(tool: Tool) -> dict[str, Json]:
    parameters = tool.schema if "type" in tool.schema else {"type": "object", **tool.schema}
    function = {"name": wire_name(tool.name), "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}
