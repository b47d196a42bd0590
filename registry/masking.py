"""Taking secrets out of what people, logs and traces see: by the name they stand under, by their look, by their value.

What is masked stays masked however it is quoted; the stored call keeps its exact input elsewhere.
"""

import re
import threading
from collections import OrderedDict
from functools import lru_cache
from itertools import pairwise
from typing import Final
from urllib.parse import quote

from registry.base import Json

MASK: Final = "***"
#: Values shorter than this are not looked for: they would garble ordinary words.
MIN_VALUE: Final = 6
#: Values this process has opened and still takes out of texts.
MAX_VALUES: Final = 1_000

#: Words of a name (`X-Api-Token`, `dbPassword`) under which secrets stand, alone or two in a row.
_SECRET_WORDS: Final = frozenset(
    {
        *("auth", "authorization", "bearer", "cookie", "cookies", "credential", "credentials", "jwt", "signature"),
        *("apikey", "passphrase", "passwd", "password", "pwd", "secret", "secrets", "token"),
    }
)
_SECRET_PAIRS: Final = frozenset(
    {("api", "key"), ("access", "key"), ("private", "key"), ("signing", "key"), ("session", "id")}
)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_IN_QUERY: Final = re.compile(r"(?<=[?&;])(?P<name>[\w.\[\]-]{1,60})=(?P<value>[^&#;\s\"'<>]+)")
#: Parameters that are secrets by convention, though their names are ordinary words.
_QUERY_NAMES: Final = frozenset({"key", "sig", "hmac"})
#: Every repetition is bounded: texts come from anyone, and no text may make this slow.
_LOOKS: Final = re.compile(
    r"\b(?:Bearer|Basic)\s{1,10}[\w.~+/=-]{8,}"
    r"|\b(?:sk|pk|rk)[-_][\w*.-]{8,}"
    r"|\b(?:ghp|gho|ghu|ghs|github_pat|glpat|xox[abprs])[-_][\w-]{10,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\beyJ[\w-]{10,500}\.[\w-]{10,2000}\.[\w-]{0,1000}"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)"
    r"|\bbot\d{6,20}:[\w-]{20,}",
    re.IGNORECASE,
)
#: One of these stands in whatever `_LOOKS` finds: looking for them costs a hundredth of it.
_HINTS: Final = (
    *("bearer", "basic", "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "ghp", "gho", "ghu", "ghs", "github_pat", "glpat"),
    *("xox", "akia", "eyj", "-----begin", "bot"),
)
_USER_INFO: Final = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]{0,20}://)[^/\s@?#\"']{1,500}@", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Whether what stands under this name (a header, a field) is likely a secret."""
    return _is_secret(name[:200])


@lru_cache(maxsize=4096)
def _is_secret(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    return not _SECRET_WORDS.isdisjoint(words) or not _SECRET_PAIRS.isdisjoint(pairwise(words))


class _Values:
    """Secrets this process has opened; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, None] = OrderedDict()
        self._pattern: re.Pattern[str] | None = None

    def add(self, value: str) -> None:
        with self._lock:
            for form in (value, quote(value, safe="")):
                if len(form) < MIN_VALUE or form in self._known:
                    continue
                self._known[form] = None
                if len(self._known) > MAX_VALUES:
                    self._known.popitem(last=False)
                # The longest first: one secret may be the beginning of another.
                self._pattern = re.compile("|".join(map(re.escape, sorted(self._known, key=len, reverse=True))))

    def replace(self, text: str) -> str:
        return self._pattern.sub(MASK, text) if self._pattern else text


_values = _Values()


def remember(value: str) -> None:
    """Makes this value disappear from every text this process masks from now on."""
    _values.add(value)


def hide(value: Json) -> Json:
    """A JSON value without secrets this process has opened, otherwise as it is: answers may repeat what was sent."""
    if isinstance(value, str):
        return _values.replace(value)
    if isinstance(value, list):
        return [hide(item) for item in value]
    if isinstance(value, dict):
        return {key: hide(item) for key, item in value.items()}
    return value


def hide_in_bytes(data: bytes) -> bytes:
    """The same for a body that may be anything."""
    text = data.decode("latin-1")
    shown = _values.replace(text)
    return data if shown == text else shown.encode("latin-1")


def mask_text(text: str) -> str:
    """A text without known secrets, without what looks like one, without credentials in URLs."""
    text = _values.replace(text)
    if "://" in text:
        text = _USER_INFO.sub(rf"\g<scheme>{MASK}@", text)
    if "=" in text:
        text = _IN_QUERY.sub(_parameter, text)
    lowered = text.lower()
    return _LOOKS.sub(MASK, text) if any(hint in lowered for hint in _HINTS) else text


def _parameter(found: re.Match[str]) -> str:
    name = found["name"]
    return f"{name}={MASK}" if name.lower() in _QUERY_NAMES or is_secret_name(name) else found[0]


def mask(value: Json) -> Json:
    """A JSON value fit to be shown; texts under names of secrets are replaced as a whole."""
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, list):
        return [mask(item) for item in value]
    if isinstance(value, dict):
        return {key: _under(key, item) for key, item in value.items()}
    return value


def _under(name: str, value: Json) -> Json:
    if isinstance(value, str) and value and is_secret_name(name):
        return MASK
    return mask(value)


__all__ = ["MASK", "hide", "hide_in_bytes", "is_secret_name", "mask", "mask_text", "remember"]
