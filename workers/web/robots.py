"""robots.txt, obeyed for agents: what a site does not want read by machines is not read (RFC 9309)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from registry.skills.network import Network, NetworkFault, Outgoing
from registry.skills.urls import Url
from workers.net.guard import USER_AGENT
from workers.web.cache import Cache

if TYPE_CHECKING:
    from protego import Protego

MAX_BYTES: Final = 512 * 1024
PATIENCE_S: Final = 5.0
#: What stands for "nothing is allowed", and for "everything is".
CLOSED: Final = "closed"
OPEN: Final = "open"


class Robots:
    """One per process; what a site says is remembered for an hour."""

    def __init__(self, net: Network) -> None:
        self._net = net
        self._known: Cache[Protego | str] = Cache(seconds=3600, most=500)

    def allows(self, url: Url, *, left: float, cancelled: Callable[[], bool]) -> bool:
        """Whether the site lets us read a page.

        A site without the file, or whose file cannot be had, allows everything; one that fails (5xx), nothing.
        """
        rules = self._known.get(url.origin)
        if rules is None:
            rules = self._ask(url, left, cancelled)
            self._known.put(url.origin, rules)
        if isinstance(rules, str):
            return rules == OPEN
        return bool(rules.can_fetch(str(url), USER_AGENT))

    def _ask(self, url: Url, left: float, cancelled: Callable[[], bool]) -> "Protego | str":
        from protego import Protego

        request = Outgoing(f"{url.origin}/robots.txt", timeout_s=min(PATIENCE_S, left), max_bytes=MAX_BYTES)
        try:
            answer = self._net.send(request, cancelled=cancelled)
        except NetworkFault as fault:
            if fault.code == "cancelled":
                raise
            return OPEN
        if answer.status >= 500:
            return CLOSED
        if not answer.ok:
            return OPEN
        try:
            return Protego.parse(answer.body.decode("utf-8", "replace"))
        except Exception:  # what cannot be read says nothing
            return OPEN
