"""The `Web` port as the settings want it."""

from orchestrator.settings import Settings
from registry.skills.context import SkillContext
from registry.skills.network import Network
from registry.skills.pages import Form, Found, Page, Query
from registry.skills.urls import parse_url
from workers.net.guard import Guard
from workers.net.wiring import allowed, own_places
from workers.web.reader import Reader
from workers.web.search import Searcher


class GuardedWeb:
    """Pages and searches behind the guard."""

    def __init__(self, reader: Reader, searcher: Searcher) -> None:
        self._reader = reader
        self._searcher = searcher

    def search(self, query: Query, context: SkillContext, *, seconds: float) -> Found | None:
        return self._searcher.search(query, context, seconds=seconds)

    def page(self, url: str, form: Form, context: SkillContext, *, seconds: float) -> Page:
        return self._reader.page(url, form, context, seconds=seconds)


def web_for(settings: Settings, net: Network) -> GuardedWeb:
    """The port; providers may be reached where the operator put them, inside too, and pages only through `net`."""
    places = allowed(settings.net_allow)
    for provider in settings.search:
        if provider.url:
            url = parse_url(provider.url)
            places.add((url.host, url.port))
    searching = Guard(allow=places, refuse=own_places(settings))
    return GuardedWeb(Reader(net), Searcher(searching, settings.search))
