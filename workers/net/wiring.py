"""The guard as the settings want it."""

from urllib.parse import urlsplit

from orchestrator.sentinels import watched
from orchestrator.settings import Settings
from registry.errors import Fault, SkillError, WrongUse
from registry.skills.urls import clean_host
from workers.net.guard import Guard


def guard_for(settings: Settings) -> Guard:
    """The guard of this process.

    Raises:
        WrongUse: `OFFICINA_NET_ALLOW` cannot be read.
    """
    return Guard(allow=allowed(settings.net_allow), refuse=own_places(settings))


def allowed(text: str) -> set[tuple[str, int]]:
    """The host and port pairs of a setting, parted by commas.

    Raises:
        WrongUse: one of them is none.
    """
    found = set()
    for part in filter(None, (one.strip() for one in text.split(","))):
        host, _, port = part.rpartition(":")
        try:
            found.add((clean_host(host), int(port)))
        except (SkillError, ValueError):
            words = f"{part[:80]!r} is no host:port pair"
            raise WrongUse(words, faults=[Fault("OFFICINA_NET_ALLOW", "invalid_place", words)]) from None
    return found


def own_places(settings: Settings) -> set[tuple[str, int]]:
    """Database, Redis and its Sentinels, should they stand at a public address: never a skill's business."""
    standard = {"postgresql": 5432, "redis": 6379, "rediss": 6379, "amqp": 5672, "amqps": 5671}
    found = set()
    for address in filter(None, (settings.database_url, settings.broker_url, settings.redis_url)):
        if (behind := watched(address)) is not None:
            found |= {(host.lower(), port) for host, port in behind.hosts}
            continue
        try:
            parts = urlsplit(address)
            port = parts.port or standard.get(parts.scheme.partition("+")[0])
        except ValueError:
            continue
        if parts.hostname and port:
            found.add((parts.hostname.lower(), port))
    return found
