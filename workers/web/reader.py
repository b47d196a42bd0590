"""Reading a page: asked for through the guard, turned into text in a child process."""

from typing import Final

from registry import masking
from registry.errors import Detail, SkillError
from registry.skills.context import SkillContext
from registry.skills.network import MIB, Incoming, Network, Outgoing
from registry.skills.pages import Form, Page
from registry.skills.urls import Url
from workers.web import opener
from workers.web.robots import Robots

MAX_BYTES: Final = 5 * MIB
#: Characters of a failing answer that its error quotes.
QUOTED: Final = 300
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_ALSO_TEXT: Final = frozenset(
    {"application/json", "application/xml", "application/javascript", "application/yaml", "application/x-yaml"}
)


class Reader:
    """One per process."""

    def __init__(self, net: Network) -> None:
        self._net = net
        self._robots = Robots(net)

    def page(self, url: str, form: Form, context: SkillContext, *, seconds: float) -> Page:
        """See `Web.page`."""

        def on_hop(hop: Url) -> None:
            brake(context, hop)
            if context.caller.kind == "person":
                return
            if not self._robots.allows(hop, left=context.deadline.left, cancelled=context.cancelled):
                raise SkillError("not_allowed", f"robots.txt of {hop.host} does not let machines read this page")

        request = Outgoing(
            url=url,
            headers={"Accept": "text/html,application/xhtml+xml,text/*;q=0.9,application/pdf;q=0.8,*/*;q=0.5"},
            timeout_s=seconds,
            max_bytes=MAX_BYTES,
            whole=True,
            on_hop=on_hop,
        )
        answer = self._net.send(request, cancelled=context.cancelled)
        if answer.status >= 400:
            raise _failed(answer)
        kind = _kind(answer)
        text, title = _plain(answer, kind, form)
        if text is None:
            head = {"kind": kind, "charset": _charset(answer), "form": form, "url": str(answer.url)}
            left = max(0.5, context.deadline.left)
            made = opener.open_document(head, answer.body, seconds=left, check=context.check)
            text, title = str(made["text"]), made["title"]
        return Page(
            url=answer.url,
            status=answer.status,
            content_type=answer.header("content-type") or "",
            title=title,
            text=_clean(text),
            bytes=len(answer.body),
            hops=tuple(answer.hops),
        )


def brake(context: SkillContext, url: Url) -> None:
    """Counts a GET of the task, or of a run that has none; a person's own call is not braked."""
    task = context.caller.task_id or context.caller.run_id
    if context.meter is not None and task is not None:
        context.meter.outbound(task, url.host)


def _kind(answer: Incoming) -> str:
    """html, pdf or text, by its header, and by its look where there is none."""
    kind = answer.content_type
    if kind in _HTML:
        return "html"
    if kind == "application/pdf" or (not kind and answer.body.startswith(b"%PDF-")):
        return "pdf"
    if kind.startswith("text/") or kind in _ALSO_TEXT or kind.endswith(("+json", "+xml")):
        return "text"
    if not kind and b"\0" not in answer.body[:8192]:
        start = answer.body[:1024].lstrip().lower()
        return "html" if start.startswith((b"<!doctype html", b"<html")) else "text"
    sent = kind[:80] or "bytes of no known kind"
    words = f"{answer.url.host} sent {sent}; only web pages, text, JSON, XML and PDF are read"
    raise SkillError("unsupported_type", words)


def _plain(answer: Incoming, kind: str, form: Form) -> tuple[str | None, str | None]:
    """Text that needs no child: plain UTF-8."""
    if kind == "pdf" or (kind == "html" and form != "raw"):
        return None, None
    named = (_charset(answer) or "utf-8").lower()
    if named not in ("utf-8", "utf8") or answer.body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return None, None
    try:
        return answer.body.decode("utf-8-sig"), None
    except UnicodeDecodeError:
        return None, None


def _charset(answer: Incoming) -> str | None:
    for part in (answer.header("content-type") or "").split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'") or None
    return None


def _failed(answer: Incoming) -> SkillError:
    said = " ".join(answer.body[: 8 * QUOTED].decode("utf-8", "replace").split())
    again = f": {masking.mask_text(said)[:QUOTED]}" if said else ""  # masked first: a cut would part a secret
    words = f"{answer.url.host} answered {answer.status}{again}"
    return SkillError(
        "remote_error", words, retryable=answer.status >= 500, details=[Detail("status", str(answer.status))]
    )


def _clean(text: str) -> str:
    """Half characters cannot be passed on."""
    return text.encode("utf-8", "replace").decode()


__all__ = ["Reader", "brake"]
