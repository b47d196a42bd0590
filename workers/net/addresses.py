"""Which hosts may be reached: public unicast addresses, by an explicit list beside what `ipaddress` knows.

`ipaddress` calls multicast, NAT64, 6to4 and some reserved blocks global, so its word alone is not enough. An address
that wraps an IPv4 address is refused whatever it wraps.
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

from registry.skills.urls import Address, Url, literal

_NOT_PUBLIC_4: Final = tuple(
    ipaddress.IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared by carriers
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local: clouds answer with credentials here
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
#: The only IPv6 space that is given out as public unicast; everything outside of it is refused unseen.
_PUBLIC_6: Final = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_6: Final = tuple(
    ipaddress.IPv6Network(block)
    for block in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
)
#: Interface identifiers of ISATAP carry an IPv4 address under any prefix.
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})

#: Ports browsers refuse from 1024 up: other protocols live there.
_BAD_PORTS: Final = frozenset(
    {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, *range(6665, 6670), 6679, 6697, 10080}
)
_REFUSED_NAMES: Final = frozenset({"localhost", "local", "internal", "metadata.google.internal"})
_REFUSED_ENDINGS: Final = (".localhost", ".local", ".internal")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")


def is_public(address: Address) -> bool:
    """Whether it is public unicast, and wraps no other address."""
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not any(address in block for block in _NOT_PUBLIC_4)
    if address.scope_id is not None or address not in _PUBLIC_6 or not address.is_global:
        return False
    if any(address in block for block in _NOT_PUBLIC_6):
        return False
    return (int(address) >> 32) & 0xFFFFFFFF not in _ISATAP


def refusal(url: Url) -> str | None:
    """Why a URL's port or host is refused before anything is looked up; None when it is not."""
    if not (url.port in (80, 443) or url.port >= 1024) or url.port in _BAD_PORTS:
        return f"port {url.port} is not open to skills"
    if url.host in _REFUSED_NAMES or url.host.endswith(_REFUSED_ENDINGS):
        return f"the name {url.host} stands for a machine inside"
    address = literal(url.host)
    if address is not None:
        return None if is_public(address) else f"{address} is no public address"
    if _NUMBER.fullmatch(url.host.rpartition(".")[2]):
        # Resolvers read 127.1, 0x7f.1 and 2130706433 as addresses; a name never ends in a number.
        return f"{url.host} is an address in an unusual spelling; write four decimal numbers"
    return None


def private(addresses: Iterable[Address]) -> Address | None:
    """The first address that may not be reached; one is enough to refuse the name."""
    return next((address for address in addresses if not is_public(address)), None)


__all__ = ["is_public", "private", "refusal"]
