"""Telegram's Bot API and WhatsApp's Cloud API as their documentation describes them: one method each, its limits, its
ways to refuse. They count what they accepted and remember every request."""

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "123456789:AAcanary_token-of-the-bot_0123456789abc"
BEARER = "EAAGcanary0tokenofthenumber0123456789"
NUMBER_ID = "106540352242922"
MARKS = "_*[]()~`>#+-=|{}.!"


class Refuse(Exception):
    """The service says no with this status and error."""

    def __init__(self, status: int, *error: Any) -> None:
        super().__init__(status)
        self.status, self.error = status, error


@dataclass
class Messenger:
    """Both services on one port."""

    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    delivered: list[dict[str, Any]] = field(default_factory=list)
    #: Answered instead: (status, body), or `drop` to hang up after the request was read.
    instead: tuple[int, bytes] | str | None = None
    #: Chats that blocked the bot, that do not exist, that have become another one.
    blocked: set[int | str] = field(default_factory=set)
    unknown: set[int | str] = field(default_factory=set)
    moved: dict[int | str, int] = field(default_factory=dict)
    retry_after: int | None = None
    #: Numbers that wrote within 24 hours; None: all of them.
    open_windows: set[str] | None = None
    templates: dict[str, int] = field(default_factory=lambda: {"hello": 0, "order_sent": 2})
    fault: dict[str, Any] | None = None

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def telegram(self, token: str, method: str, given: dict[str, Any]) -> dict[str, Any]:
        if token != TOKEN:
            raise Refuse(401 if re.fullmatch(r"\d+:[\w-]{35}", token) else 404, "Unauthorized")
        if method != "sendMessage":
            raise Refuse(404, "Not Found: method not found")
        if self.retry_after is not None:
            raise Refuse(429, f"Too Many Requests: retry after {self.retry_after}", {"retry_after": self.retry_after})
        chat, text = given.get("chat_id"), given.get("text")
        if not isinstance(chat, int | str) or chat in self.unknown:
            raise Refuse(400, "Bad Request: chat not found")
        if chat in self.moved:
            words = "Bad Request: group chat was upgraded to a supergroup chat"
            raise Refuse(400, words, {"migrate_to_chat_id": self.moved[chat]})
        if chat in self.blocked:
            raise Refuse(403, "Forbidden: bot was blocked by the user")
        if not isinstance(text, str) or not text.strip():
            raise Refuse(400, "Bad Request: message text is empty")
        _entities(text, given.get("parse_mode"))
        if len(text.encode("utf-16-le")) // 2 > 4_096:
            raise Refuse(400, "Bad Request: message is too long")
        for name, kind in (("disable_notification", bool), ("link_preview_options", dict), ("reply_parameters", dict)):
            if name in given and not isinstance(given[name], kind):
                raise Refuse(400, f"Bad Request: {name} is wrong")
        self.delivered.append(given)
        shown = {"id": chat if isinstance(chat, int) else -1_001_234_567_890, "type": "private"}
        return {"message_id": len(self.delivered), "date": 1_790_000_000, "chat": shown, "text": text}

    def whatsapp(self, path: str, authorization: str | None, given: dict[str, Any]) -> dict[str, Any]:
        if authorization != f"Bearer {BEARER}":
            raise Refuse(401, "Invalid OAuth access token", "OAuthException", 190, "Cannot parse access token")
        if not re.fullmatch(rf"v\d+\.\d/{NUMBER_ID}/messages", path):
            raise Refuse(400, "Unsupported post request", "GraphMethodException", 100, "no such object")
        if self.fault is not None:
            raise Refuse(self.fault["status"], "(#x) A title", "OAuthException", self.fault["code"], "what it means")
        if given.get("messaging_product") != "whatsapp" or given.get("recipient_type") != "individual":
            raise Refuse(400, "(#100) Invalid parameter", "OAuthException", 100, "messaging_product is required")
        to = str(given.get("to"))
        if not re.fullmatch(r"\d{7,15}", to):
            raise Refuse(400, "(#131009) Parameter value is not valid", "OAuthException", 131_009, "to is no number")
        self._content(given, to)
        self.delivered.append(given)
        known = f"wamid.HBgL{len(self.delivered):08d}"
        return {
            "messaging_product": "whatsapp",
            "contacts": [{"input": to, "wa_id": to}],
            "messages": [{"id": known, "message_status": "accepted"}],
        }

    def _content(self, given: dict[str, Any], to: str) -> None:
        if given.get("type") == "text":
            text = given.get("text", {}).get("body", "")
            if not 1 <= len(text) <= 4_096:
                raise Refuse(400, "(#100) Invalid parameter", "OAuthException", 100, "body must be 1 to 4096 long")
            if self.open_windows is not None and to not in self.open_windows:
                words = "more than 24 hours have passed since the customer last replied"
                raise Refuse(400, "(#131047) Re-engagement message", "OAuthException", 131_047, words)
            return
        template = given.get("template", {})
        wanted = self.templates.get(template.get("name"))
        if given.get("type") != "template" or wanted is None or template.get("language", {}).get("code") != "en_US":
            raise Refuse(404, "(#132001) Template name does not exist", "OAuthException", 132_001, "no such template")
        parameters = [p for c in template.get("components", []) for p in c["parameters"]]
        if len(parameters) != wanted:
            words = f"body: number of localizable_params ({len(parameters)}) does not match ({wanted})"
            raise Refuse(400, "(#132000) Number of parameters does not match", "OAuthException", 132_000, words)


def _entities(text: str, mode: str | None) -> None:
    if mode == "HTML":
        opened: list[str] = []
        for slash, name in re.findall(r"<(/?)([a-z-]+)[^>]*>", text):
            if name not in ("b", "strong", "i", "em", "u", "s", "a", "code", "pre", "blockquote", "tg-spoiler"):
                raise Refuse(400, f'Bad Request: can\'t parse entities: Unsupported start tag "{name}"')
            if not slash:
                opened.append(name)
            elif not opened or opened.pop() != name:
                raise Refuse(400, "Bad Request: can't parse entities: Unmatched end tag")
    elif mode == "MarkdownV2":
        bare = re.sub(r"\\.", "", text)
        pairs = re.sub(r"\*[^*]*\*|_[^_]*_|`[^`]*`|~[^~]*~|\[[^]]*\]\([^)]*\)", "", bare)
        if found := next((mark for mark in pairs if mark in MARKS), None):
            words = f"Character '{found}' is reserved and must be escaped with the preceding '\\'"
            raise Refuse(400, f"Bad Request: can't parse entities: {words}")
    elif mode is not None:
        raise Refuse(400, "Bad Request: unsupported parse_mode")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def do_POST(self) -> None:
        stub = self.server.messenger
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        given = json.loads(body)
        stub.requests.append({"path": self.path, "headers": dict(self.headers), "json": given})
        if stub.instead == "drop":
            self.close_connection = True
            return
        if isinstance(stub.instead, tuple):
            self._say(*stub.instead)
            return
        self._say(*_answer(stub, self.path, self.headers.get("Authorization"), given))

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def _answer(stub: Messenger, path: str, authorization: str | None, given: dict[str, Any]) -> tuple[int, bytes]:
    bot = re.fullmatch(r"/bot([^/]*)/(\w+)", path)
    try:
        if bot:
            said: dict[str, Any] = {"ok": True, "result": stub.telegram(bot[1], bot[2], given)}
        else:
            said = stub.whatsapp(path[1:], authorization, given)
        return 200, json.dumps(said).encode()
    except Refuse as no:
        if bot:
            said = {"ok": False, "error_code": no.status, "description": no.error[0]}
            if len(no.error) > 1:
                said["parameters"] = no.error[1]
        else:
            message, kind, code, details = no.error
            data = {"messaging_product": "whatsapp", "details": details}
            said = {"error": {"message": message, "type": kind, "code": code, "error_data": data, "fbtrace_id": "A1"}}
        return no.status, json.dumps(said).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    messenger: Messenger


@contextlib.contextmanager
def serving() -> Iterator[Messenger]:
    """Both services, listening."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.messenger = Messenger(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield server.messenger
        server.shutdown()
        thread.join(5)
