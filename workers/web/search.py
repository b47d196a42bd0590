"""Search providers, asked one after the other until one answers (spec: skills 7.1)."""

import html
import re
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlencode

from orchestrator.sections import SearchProvider
from registry import masking
from registry.base import Json
from registry.errors import SkillError
from registry.jsontext import JsonFault, compact, parse
from registry.skills.context import SkillContext
from registry.skills.network import MIB, Incoming, Network, Outgoing
from registry.skills.pages import Found, Hit, Query
from registry.skills.urls import MAX_URL, parse_url
from workers.web.cache import Cache
from workers.web.reader import brake

MAX_TITLE: Final = 200
MAX_SNIPPET: Final = 500
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
#: Parameters that say how someone came to a page, and change nothing about it.
_TRACKING: Final = re.compile(r"(?:utm_\w+|gclid|fbclid|msclkid|mc_[ce]id|ref_src)=[^&]*&?")
_BRAVE_TIME: Final = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}
_DDGS_TIME: Final = {"day": "d", "week": "w", "month": "m", "year": "y"}


class Searcher:
    """One per process."""

    def __init__(self, net: Network, providers: tuple[SearchProvider, ...]) -> None:
        self._net = net
        self._providers = providers
        self._known: Cache[Found] = Cache(seconds=600, most=500)
        for provider in providers:
            if provider.key is not None:
                masking.remember(provider.key.get_secret_value())

    def search(self, query: Query, context: SkillContext, *, seconds: float) -> Found | None:
        """See `Web.search`."""
        if not self._providers:
            return None
        until = time.monotonic() + seconds
        faults: list[SkillError] = []
        for position, provider in enumerate(self._providers):
            context.check()
            key = (position, query)
            known = self._known.get(key)
            if known is not None:
                return known
            left = until - time.monotonic()
            if left <= 0:
                break
            try:
                # A share of the time for each provider that is left: one that hangs does not cost all of it.
                hits = self._ask(provider, query, context, left / (len(self._providers) - position))
            except SkillError as fault:
                if fault.code == "cancelled" or (fault.code == "rate_limited" and not fault.retryable):
                    raise
                faults.append(fault)
                continue
            found = Found(provider.kind, _distinct(hits, query.limit))
            self._known.put(key, found)
            return found
        raise _joined(faults)

    def _ask(self, provider: SearchProvider, query: Query, context: SkillContext, seconds: float) -> list[Hit]:
        if provider.kind == "ddgs":
            return _ddgs(query, seconds)
        request, read = _REQUESTS[provider.kind](provider, query)
        request = Outgoing(
            url=request.url,
            method=request.method,
            headers=request.headers,
            body=request.body,
            timeout_s=seconds,
            max_bytes=2 * MIB,
            whole=True,
            on_hop=lambda url: brake(context, url),
        )
        answer = self._net.send(request, cancelled=context.cancelled)
        _require_ok(provider, answer)
        try:
            return [hit for hit in read(parse(answer.body, twice=True)) if hit is not None]
        except (JsonFault, AttributeError, TypeError, KeyError):
            words = f"the search provider {provider.kind} answered in a form that is not its own"
            raise SkillError("remote_error", words) from None


Read = Callable[[Any], list[Hit | None]]


def _searxng(provider: SearchProvider, query: Query) -> tuple[Outgoing, Read]:
    fields = {"q": _with_site(query), "format": "json", "safesearch": "1"}
    if query.recency != "any":
        fields["time_range"] = query.recency
    if query.language:
        fields["language"] = query.language
    base = (provider.url or "").rstrip("/")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    request = _asking(f"{base}/search", fields, {"Accept": "application/json"}, form, urlencode(fields).encode())
    return request, lambda data: [
        _hit(one.get("title"), one.get("url"), one.get("content"), one.get("publishedDate")) for one in data["results"]
    ]


def _brave(provider: SearchProvider, query: Query) -> tuple[Outgoing, Read]:
    fields: dict[str, Json] = {"q": _with_site(query), "count": query.limit, "text_decorations": "false"}
    if query.recency != "any":
        fields["freshness"] = _BRAVE_TIME[query.recency]
    if query.language:
        fields["search_lang"] = query.language.partition("-")[0].lower()
    base = (provider.url or "https://api.search.brave.com").rstrip("/")
    headers = {"Accept": "application/json", "X-Subscription-Token": _key(provider)}
    form = {"Content-Type": "application/json"}
    request = _asking(f"{base}/res/v1/web/search", fields, headers, form, compact(fields).encode())
    return request, lambda data: [
        _hit(one.get("title"), one.get("url"), one.get("description"), one.get("page_age"))
        for one in (data.get("web") or {}).get("results") or []
    ]


def _tavily(provider: SearchProvider, query: Query) -> tuple[Outgoing, Read]:
    fields: dict[str, Json] = {"query": query.text, "max_results": query.limit}
    if query.recency != "any":
        fields["time_range"] = query.recency
    if query.site:
        fields["include_domains"] = [query.site]
    base = (provider.url or "https://api.tavily.com").rstrip("/")
    headers = {"Authorization": f"Bearer {_key(provider)}", "Content-Type": "application/json"}
    request = Outgoing(f"{base}/search", method="POST", headers=headers, body=compact(fields).encode())
    return request, lambda data: [
        _hit(one.get("title"), one.get("url"), one.get("content"), one.get("published_date")) for one in data["results"]
    ]


_REQUESTS: Final = {"searxng": _searxng, "brave": _brave, "tavily": _tavily}


def _asking(
    place: str, fields: Mapping[str, Json], headers: dict[str, str], form: dict[str, str], body: bytes
) -> Outgoing:
    """A question in the address, or in the body where an address cannot hold it: 400 characters of some scripts."""
    url = f"{place}?{urlencode(fields)}"
    if len(url) <= MAX_URL:
        return Outgoing(url, headers=headers)
    return Outgoing(place, "POST", headers=headers | form, body=body)


def _ddgs(query: Query, seconds: float) -> list[Hit]:
    """By an optional package that reads result pages meant for people; it breaks when they change."""
    try:
        engine = import_module("ddgs").DDGS
    except ImportError:
        raise SkillError("remote_error", "the search provider ddgs needs the package: install officina[ddgs]") from None
    try:
        found = engine(timeout=max(1, int(seconds))).text(
            _with_site(query), timelimit=_DDGS_TIME.get(query.recency), max_results=query.limit
        )
    except Exception as error:
        limited = "ratelimit" in type(error).__name__.lower()
        code = "rate_limited" if limited else "remote_error"
        raise SkillError(code, f"the search provider ddgs failed: {type(error).__name__}", retryable=True) from None
    made = (_hit(one.get("title"), one.get("href"), one.get("body"), None) for one in found)
    return [hit for hit in made if hit is not None]


def _with_site(query: Query) -> str:
    return f"{query.text} site:{query.site}" if query.site else query.text


def _key(provider: SearchProvider) -> str:
    return provider.key.get_secret_value() if provider.key else ""


def _require_ok(provider: SearchProvider, answer: Incoming) -> None:
    if answer.status == 429:
        raise SkillError("rate_limited", f"the search provider {provider.kind} takes no more for now", retryable=True)
    if answer.ok:
        return
    advice = ""
    if answer.status in (401, 403):
        advice = "; JSON has to be enabled there" if provider.kind == "searxng" else "; its key is not accepted"
    words = f"the search provider {provider.kind} answered {answer.status}{advice}"
    raise SkillError("remote_error", words, retryable=answer.status >= 500)


def _hit(title: Json, url: Json, snippet: Json, published: Json) -> Hit | None:
    """One result in our form; None when it leads to no page of the web."""
    if not isinstance(url, str):
        return None
    try:
        parse_url(url)
    except SkillError:
        return None
    when = published[:40] if isinstance(published, str) and published else None
    return Hit(_words(title, MAX_TITLE) or url[:MAX_TITLE], url, _words(snippet, MAX_SNIPPET), when)


def _words(text: Json, most: int) -> str:
    """Plain words of a text that may carry markup of highlighting."""
    if not isinstance(text, str):
        return ""
    plain = " ".join(html.unescape(_TAG.sub("", text)).split()).encode("utf-8", "replace").decode()
    return plain if len(plain) <= most else plain[: most - 1].rstrip() + "…"


def normalised(url: str) -> str:
    """One text for addresses that lead to the same page."""
    read = parse_url(url)
    query = _TRACKING.sub("", read.query or "").rstrip("&")
    return f"{read.place}{read.path.rstrip('/')}" + (f"?{query}" if query else "")


def _distinct(hits: list[Hit], limit: int) -> tuple[Hit, ...]:
    seen: dict[str, Hit] = {}
    for hit in hits:
        seen.setdefault(normalised(hit.url), hit)
    return tuple(seen.values())[:limit]


def _joined(faults: list[SkillError]) -> SkillError:
    """One fault for all providers: rate_limited only when each of them said so."""
    if not faults:
        return SkillError("timeout", "no search provider answered in time", retryable=True)
    words = "; then ".join(fault.message for fault in faults)
    codes = {fault.code for fault in faults}
    code = codes.pop() if len(codes) == 1 else "remote_error"
    code = code if code in ("rate_limited", "timeout") else "remote_error"
    return SkillError(code, words, retryable=any(fault.retryable for fault in faults))
