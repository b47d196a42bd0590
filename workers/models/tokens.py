"""Tokens guessed by characters: before a call, for answers without usage, and for everything the stand-in says.

Four characters count as a token, rounded up part by part; a real tokenizer would download its tables at first use.
"""

from registry.base import Json
from registry.jsontext import compact
from workers.models.model import Request, ToolCall, Usage

CHARACTERS_PER_TOKEN = 4


def of_text(text: str) -> int:
    """Tokens of one text, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def of_message(message: dict[str, Json]) -> int:
    """Tokens of one message row: its words and the calls it carries."""
    content, calls = message.get("content"), message.get("toolCalls")
    words = content if isinstance(content, str) else "" if content is None else compact(content)
    return of_text(words) + (of_text(compact(calls)) if calls else 0)


def of_request(request: Request) -> int:
    """Tokens a request sends: system text, history, names and descriptions of the tools."""
    history = sum(of_message(message) for message in request.messages)
    tools = sum(of_text(tool.name + tool.description) for tool in request.tools)
    return of_text(request.system) + history + tools


def of_answer(text: str, calls: list[ToolCall]) -> int:
    """Tokens of an answer, at least 1."""
    return max(1, of_text(text) + sum(of_text(call.name + compact(call.arguments)) for call in calls))


def estimated(request: Request, text: str, calls: list[ToolCall]) -> Usage:
    """The usage of an answer that came without one, marked as a guess; at least 1 each way."""
    return Usage(max(1, of_request(request)), of_answer(text, calls), estimated=True)
